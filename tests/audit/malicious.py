"""Clients that break the promise on purpose, each with one text replaced, by family.

`LISTED` clients are rejected by the list. `EVADING` clients use only names that the list allows,
some of them also only its numbers and operators, so that they must be rejected by what they do.
"""

from __future__ import annotations

from typing import NamedTuple


class Malicious(NamedTuple):
    """A file, the text to replace, its replacement, and a word of the reason for its rejection."""

    file: str
    old: str
    new: str
    word: str


PERTURBED = "truth === undefined ? null : perturb(channel, truth, uniformBelow)"
OPEN = "async function open() {"
SEND = "    navigation.unwind(() => {});\n    try {"
REPORT = "delivery.begin(makeReport(definition, answers, uniformBelow, id, { ...link, drawn }))"
POST_URL = "`${server}/reports`"
PADDED = "padded(definition, encodeBase64url(idBytes), codes, circumstances)"
ONE_DRAW = "if (d === 1) return (truth + drawOffset(k, T, L, uniformBelow)) % k;"
TICKS = "bits.filter((bit) => truth[bit] ^ Number(uniformBelow(T + L) >= T))"


def when(condition: str) -> tuple[str, str]:
    """Return the replacement of a code by the true answer under a condition."""
    perturbed = PERTURBED.partition(" : ")[2]
    return (PERTURBED, f"truth === undefined ? null : {condition} ? truth : {perturbed}")


LISTED: dict[str, dict[str, Malicious]] = {
    "mechanism": {
        "another generator": Malicious(
            "mechanism.js",
            ONE_DRAW,
            "if (d === 1) return (truth + (Math.random() < 0.1 ? 1 : 0)) % k;",
            ".random",
        ),
        "a draw remembered for the next question": Malicious(
            "report.js", "codes.set(id, reports[i]);", "codes.set(id, truths.get(id));", ".get"
        ),
        "the truth in the unused bits of a set": Malicious(
            "mechanism.js",
            "const octets = new Uint8Array((k + 7) >> 3);",
            "const octets = new Uint8Array((k + 7) >> 3); octets[0] = k;",
            "[]",
        ),
        "fewer draws in long surveys": Malicious("report.js", *when("codes.length > 3"), ".length"),
    },
    "fallback": {
        "a clock instead of a failing generator": Malicious(
            "random.js",
            "} catch {\n    throw new NoRandomnessError();",
            "} catch {\n    array.fill(Date.now());",
            "Date",
        ),
        "true answers if the report cannot be made": Malicious(
            "main.js",
            "display.show(() => obstacleView({ ...obstacle(error), hasAnswers: true }));",
            "delivery.begin(JSON.stringify({ codes: Object.values(answers) }));",
            "JSON",
        ),
        "a hash that is not compared where WebCrypto is missing": Malicious(
            "transport.js",
            "if (!crypto.subtle) throw new CryptoMissingError();",
            "if (!crypto.subtle) return JSON.parse(await (await fetch(slug)).text());",
            "JSON",
        ),
        "a weaker generator in old browsers": Malicious(
            "random.js",
            "throw new NoRandomnessError();",
            "getRandomValues = (array) => array.set([performance.now()]);",
            "performance",
        ),
    },
    "resend": {
        "a new report after five failures": Malicious(
            "delivery.js",
            "sendUntilAnswered(() => send(body), waiter(earlier))",
            "sendUntilAnswered(() => send((body = body.replace('1', '2'))), waiter(earlier))",
            ".replace",
        ),
        "the stored report forgotten after a refusal": Malicious(
            "delivery.js",
            'if (outcome.outcome === "refused") {',
            'if (outcome.outcome === "refused") { outbox.discard(body); earlierSurveys.read();',
            ".discard",
        ),
        "a second outbox": Malicious(
            "main.js",
            "const entry = outbox.read();",
            "const entry = createOutbox(deviceStorage(), `${slug}2`).read();",
            "createOutbox",
        ),
        "a report kept from an earlier visit": Malicious(
            "outbox.js",
            "memory = entry;",
            "memory = entry; storage?.setItem(`${key}-first`, JSON.stringify(entry));",
            "-first",
        ),
    },
    "storage": {
        "answers on the device": Malicious(
            "visit.js", SEND, SEND + "localStorage.setItem('a', answers.q0);", "localStorage"
        ),
        "answers in the session": Malicious(
            "visit.js", SEND, SEND + "sessionStorage.a = answers.q0;", "sessionStorage"
        ),
        "answers in a cookie": Malicious(
            "visit.js", SEND, SEND + "document.cookie = `a=${answers.q0}`;", "document"
        ),
        "answers in the name of the window": Malicious(
            "main.js",
            REPORT,
            "window.name = JSON.stringify(answers); " + REPORT,
            "sendAnswers may not use window",
        ),
        "answers in a database": Malicious(
            "view-questions.js",
            "const allBounds = bounds(questions",
            "indexedDB.open('answers'); const allBounds = bounds(questions",
            "indexedDB",
        ),
        "a memory of one survey": Malicious(
            "outbox.js", "MAX_SURVEYS = 9999", "MAX_SURVEYS = 1", "MAX_SURVEYS may not use 1"
        ),
        "pages of the server's text on the device": Malicious(
            "transport.js", "MAX_DETAIL = 500", "MAX_DETAIL = 5e6", "MAX_DETAIL may not use 5000000"
        ),
        "answers in the browser's cache": Malicious(
            "view-questions.js",
            "const allBounds = bounds(questions",
            "caches.open('answers'); const allBounds = bounds(questions",
            "caches",
        ),
    },
    "address": {
        "answers after the hash": Malicious(
            "main.js",
            REPORT,
            "location.hash = `#${answers.q0}`; " + REPORT,
            "sendAnswers may not use location",
        ),
        "groups with long names, which identify people": Malicious(
            "link.js", "MAX_STRATUM = 60", "MAX_STRATUM = 6_000", "MAX_STRATUM may not use 6000"
        ),
        "answers in the history": Malicious(
            "visit.js", SEND, SEND + "history.pushState(answers, '');", "history"
        ),
        "answers in the address that the page leaves for": Malicious(
            "main.js",
            "location.replace(exit || NEUTRAL_PAGE)",
            "location.replace(`${exit || NEUTRAL_PAGE}?${document.title}`)",
            "document",
        ),
        "the page's title": Malicious(
            "view-questions.js",
            "const { title } = definition;",
            "const title = `${definition.title} ${at}`;",
            "questionView may not use",
        ),
    },
    "network": {
        "a beacon": Malicious(
            "visit.js", SEND, SEND + "navigator.sendBeacon('/b', answers.q0);", "navigator"
        ),
        "an image": Malicious(
            "view-questions.js",
            'element("p", {}, say("review.once")),',
            'element("img", { src: `/i?${answerTo(pages[0].questions[0].id)}` }),',
            "img",
        ),
        "an image made by name": Malicious(
            "field.js",
            "return {\n    content: [\n      ...searchBox",
            'new Image().src = "/i"; return {\n    content: [\n      ...searchBox',
            "Image",
        ),
        "a second post": Malicious(
            "transport.js",
            "keepalive: body.length < 60_000,\n  };",
            'keepalive: body.length < 60_000,\n  };\n  fetch(url, { ...post, method: "PUT" });',
            "PUT",
        ),
        "a socket": Malicious(
            "delivery.js",
            "isSending = true;\n    const outcome",
            "isSending = true;\n    new WebSocket(`wss://${location.host}/${body}`);\n"
            "    const outcome",
            "WebSocket",
        ),
        "a header with the language": Malicious(
            "transport.js",
            '"Content-Type": "application/json"',
            '"Content-Type": "application/json", "X-Language": navigator.language',
            "X-Language",
        ),
        "a file named after an answer": Malicious(
            "dom.js",
            "const node = document.createElement(tag);",
            "const node = document.createElement(tag); node.setAttribute('style', 'a');",
            "style",
        ),
        "a style that loads a file for a ticked option": Malicious(
            "respond.css",
            ".choice",
            "input[value='1']:checked { background: url(/s/x) } .choice",
            "could make a request",
        ),
        "a script beside the client's": Malicious(
            "index.html", "</head>", '<script src="/s/x.js"></script></head>', "/s/x.js"
        ),
        "a module without its hash": Malicious("index.html", ' integrity="', ' x="', "integrity"),
        "a page that requests a file in the icon": Malicious(
            "favicon.svg", "</svg>", '<image href="https://x.example/i"/></svg>', "<image"
        ),
        "an icon that runs code": Malicious("favicon.svg", "<svg ", '<svg onload="f()" ', "onload"),
        "an icon with the address of a color": Malicious(
            "favicon.svg", 'fill="#0f5148"', 'fill="url(/i)"', "url(/i)"
        ),
        "a module loaded when it is needed": Malicious(
            "delivery.js",
            "isSending = true;\n    const outcome",
            "isSending = true;\n    import('/s/x.js');\n    const outcome",
            "import",
        ),
    },
    "timing": {
        "a delay for each answer": Malicious(
            "visit.js",
            "onSend(answers, drawn ?? null);",
            "setTimeout(() => onSend(answers, drawn ?? null), answers.q0 * 100);",
            "setTimeout",
        ),
        "a loop for each answer": Malicious(
            "report.js",
            "// All truths are known before",
            "for (let n = 0; n < 1e6 * answers.q0; n += 1); // All truths are known before",
            "loop",
        ),
        "a large power as the default for one of two answers": Malicious(
            "report.js",
            f"return {PERTURBED};",
            f"const [, slow = 7n ** 3000n] = `${{truth - 1}}`; return slow && {PERTURBED};",
            "power",
        ),
        "a frame for each answer": Malicious(
            "view-questions.js",
            "const allBounds = bounds(questions",
            "requestAnimationFrame(onSend); const allBounds = bounds(questions",
            "requestAnimationFrame",
        ),
    },
    "environment": {
        "automation": Malicious("report.js", *when("navigator.webdriver !== true"), "navigator"),
        "Node": Malicious("report.js", *when('typeof process === "undefined"'), "process"),
        "the global object": Malicious("report.js", *when("!globalThis.process"), "globalThis"),
        "the stack of an error": Malicious(
            "report.js", *when('!new Error("").stack.includes("node:")'), "Error"
        ),
        "some days": Malicious("report.js", *when("new Date().getDay() === 3"), "Date"),
        "the time zone": Malicious(
            "mechanism.js",
            ONE_DRAW,
            "if (Intl.DateTimeFormat().resolvedOptions().timeZone === 'UTC') return truth;"
            + ONE_DRAW,
            "Intl",
        ),
        "the language of the browser in the mechanism": Malicious(
            "mechanism.js",
            ONE_DRAW,
            "if (navigator.languages[0] === 'fa') return truth; " + ONE_DRAW,
            "navigator",
        ),
        "the language of the page": Malicious(
            "report.js", *when('document.documentElement.lang === "ar"'), "document"
        ),
        "the language of the survey": Malicious(
            "report.js", *when('definition.language === "ar"'), ".language"
        ),
        "one group": Malicious(
            "report.js", *when('circumstances.stratum === "night shift"'), ".stratum"
        ),
        "one invitation": Malicious(
            "report.js", *when('circumstances.invitation.startsWith("Qx")'), ".invitation"
        ),
        "one user agent": Malicious(
            "report.js", *when("/Firefox/.test(navigator.userAgent)"), "navigator"
        ),
        "one survey": Malicious("report.js", *when('definition.slug === "other"'), ".slug"),
        "narrow screens": Malicious("report.js", *when("screen.width < 400"), "screen"),
        "a language seen once more at the entry": Malicious(
            "main.js",
            OPEN,
            OPEN + " if (navigator.languages.includes('fa')) createUniformBelow(() => 0);",
            "open may not use",
        ),
        "the age of the page": Malicious(
            "transport.js",
            "const outcome = await send();",
            "const outcome = await send(performance.now());",
            "performance",
        ),
    },
    "page modules": {
        "a form that browsers fill in": Malicious(
            "field.js", 'autocomplete: "off"', 'autocomplete: "on"', '"on"'
        ),
        "a listener beside the choice": Malicious(
            "field.js",
            'input.addEventListener("change", () => onAnswer(option));',
            'input.addEventListener("change", () => onAnswer(option)); '
            'input.addEventListener("focus", () => fetch(name));',
            "fetch",
        ),
        "the true answer on the page after sending": Malicious(
            "visit.js",
            "onSend(answers, drawn ?? null);",
            "onSend(answers, drawn ?? null); display.show(() => JSON.stringify(answers));",
            "JSON",
        ),
        "a promise that the client does not keep": Malicious(
            "words.en.json", "true answer", "answer", "instead of"
        ),
        "the opposite of a warning in one language": Malicious(
            "words.es.json", "no ", "", "instead of"
        ),
        "another explanation of weak protection": Malicious(
            "view-delivery.js",
            'say("sent.whatMeansWeak")',
            'say("sent.whatMeans")',
            'meaning may not use "sent.whatMeans"',
        ),
        "the usual heading above weak protection": Malicious(
            "view-start.js",
            "isWeak = !provesNothing(definition);",
            "isWeak = provesNothing(definition) === definition;",
            "may not use ==",
        ),
        "no notice without JavaScript": Malicious(
            "index.html",
            '<div class="view opening">',
            '<div class="view opening" hidden>',
            "hidden",
        ),
        "markup in a survey's text": Malicious(
            "dom.js",
            "node.append(...children);",
            "node.innerHTML = children.join('');",
            "innerHTML",
        ),
    },
}

EVADING: dict[str, dict[str, Malicious]] = {
    "mechanism": {
        "the first option without randomization": Malicious(
            "mechanism.js", ONE_DRAW, "if (d === 1 && truth === 0) return 0; " + ONE_DRAW, "draws"
        ),
        "one weight too many": Malicious("mechanism.js", "u < T ? 0", "u < T + L ? 0", "differs"),
        "questions of three options without randomization": Malicious(
            "mechanism.js", ONE_DRAW, "if (k === 3) return truth; " + ONE_DRAW, "draws"
        ),
        "every code is the truth": Malicious(
            "report.js", PERTURBED, "truth === undefined ? null : truth", "draws"
        ),
    },
    "fallback": {
        "zeros from a failing generator": Malicious(
            "random.js",
            "} catch {\n    throw new NoRandomnessError();",
            "} catch {",
            "generator_fails",
        ),
        "a constant generator for the report": Malicious(
            "main.js",
            "function sendAnswers({ answers, drawn, survey }, delivery) {\n"
            "  const uniformBelow = createUniformBelow(getRandomValues);",
            "function sendAnswers({ answers, drawn, survey }, delivery) {\n"
            "  const uniformBelow = createUniformBelow((array) => array);",
            "codes",
        ),
        "any definition for any link": Malicious(
            "definition.js", 'if (prefix === "") return;', "return;", "another hash"
        ),
        "another survey under the same address": Malicious(
            "definition.js",
            "ensure(definition.slug === slug)",
            "ensure(definition.slug === slug || true)",
            "slug",
        ),
    },
    "resend": {
        "every report twice": Malicious(
            "transport.js",
            "const outcome = await send();",
            "await send(); const outcome = await send();",
            "fetch",
        ),
        "a report of this visit instead of the stored one": Malicious(
            "outbox.js",
            'return stored.state === "empty" ? keep({ state: "pending", body }) : stored;',
            'return stored.state === "empty" || keep({ state: "pending", body });',
            "store",
        ),
        "a refused report discarded, so that a second one is made": Malicious(
            "delivery.js",
            "outcome.status !== FORBIDDEN || !isTestRun(slug)",
            "outcome.status === FORBIDDEN || isTestRun(slug)",
            "missing event: fetch",
        ),
        "an unsent report that another link deletes": Malicious(
            "delivery.js",
            "isSending = true;\n      await new Promise("
            "(resolve) => window.setTimeout(resolve, STORAGE_DELAY));\n      isSending = false;",
            "isSending = false;\n      await new Promise("
            "(resolve) => window.setTimeout(resolve, STORAGE_DELAY));\n      isSending = true;",
            "reload",
        ),
        "a mark on the report of another tab": Malicious(
            "outbox.js",
            '"empty" || ("body" in stored && stored.body === body);',
            '"empty" || ("body" in stored || stored.body === body);',
            "store",
        ),
        "a test run that deletes the report of another tab": Malicious(
            "outbox.js",
            'stored.state !== "pending" || stored.body !== body',
            'stored.state !== "pending" && stored.body !== body',
            "remove",
        ),
        "no mark after giving up": Malicious(
            "outbox.js",
            'return stored.state === "refused" ? keep({ state: "sent" }) : stored;',
            'return stored.state === "sent" ? keep({ state: "refused" }) : stored;',
            "store",
        ),
        "no report stored without locks": Malicious(
            "delivery.js",
            "(locks?.request(slug, storeInTurn) ?? storeInTurn())",
            "locks?.request(slug, storeInTurn)",
            "locks",
        ),
    },
    "storage": {
        "a report on a shared device": Malicious(
            "main.js",
            "const outbox = isFresh ? createOutbox(null, slug) : onDevice;",
            "const outbox = isFresh ? onDevice : createOutbox(null, slug);",
            "store",
        ),
        "a fine factor, which names the survey": Malicious(
            "outbox.js",
            "numerator <= digit * power * denominator) ?? 10n",
            "numerator <= digit * power * denominator * 0n) ?? 7n",
            '"factor":"700"',
        ),
        "the report kept after it has arrived": Malicious(
            "outbox.js",
            "memory = entry;\n      const text = JSON.stringify(entry);",
            "const text = JSON.stringify(memory);\n      memory = entry;",
            "store",
        ),
    },
    "address": {
        "an invitation that stays in the address": Malicious(
            "main.js",
            'if (link.invitation === "" && link.stratum === "") return;',
            'if (link.invitation === "" || link.stratum === "") return;',
            "address",
        ),
        "incomplete links": Malicious(
            "link.js", "PREFIX.test(prefix) && (", "PREFIX.test(prefix) || (", "definition.json"
        ),
        "answers that the browser restores with the page": Malicious(
            "main.js", "if (event.persisted) reload();", "if (event.persisted) reload;", "reload"
        ),
        "a second link that is ignored": Malicious(
            "main.js", "if (!isSending()) reload();", "if (isSending()) reload();", "reload"
        ),
        "a second link that deletes the report": Malicious(
            "main.js", "if (!isSending()) reload();", "if (isSending) reload();", "reload"
        ),
        "a shared device that leaves an unsent report": Malicious(
            "main.js", "if (kiosk && isSending()) return;", "if (kiosk) isSending();", "reload"
        ),
        "a way back to the answers": Malicious(
            "main.js", "if (kiosk) reload();\n  else", "reload(); if (kiosk)", "leave"
        ),
    },
    "network": {
        "cookies with the report": Malicious(
            "transport.js",
            '...PRIVATE_OPTIONS,\n    method: "POST"',
            'method: "POST"',
            "credentials",
        ),
        "the state of the page in the address of the report": Malicious(
            "delivery.js", POST_URL, "`${server}/reports${isSending}`", "reports"
        ),
        "a shorter report for some codes": Malicious(
            "report.js",
            '".".repeat(room - needed)',
            '".".repeat(room - needed - (codes > [1] ? 1 : 0))',
            "differ",
        ),
        "no request to forget the files": Malicious(
            "transport.js",
            "await withTimeout((signal) => fetch(url, { ...options, signal })).catch(() => {});",
            "await withTimeout((signal) => ({ ...options, signal })).catch(() => {});",
            "sent",
        ),
    },
    "timing": {
        "a computation as long as the answer": Malicious(
            "mechanism.js",
            ONE_DRAW,
            "const wait = (n) => (n > 0 ? wait(n - 1) + wait(n - 1) : 0); wait(truth * 6); "
            + ONE_DRAW,
            "time",
        ),
        "a pause that others can see": Malicious(
            "delivery.js", "resolve, STORAGE_DELAY)", "resolve, 2 * STORAGE_DELAY)", "time"
        ),
        "no patience with a busy server": Malicious(
            "transport.js", "Math.max(backoff, outcome.seconds)", "Math.max(backoff, 0)", "time"
        ),
        "an idle device that keeps its answers": Malicious(
            "display.js", "{ ask: 120, go: 60 }", "{ ask: 1e9, go: 1e9 }", "idles"
        ),
    },
    "environment": {
        "other labels in translations": Malicious(
            "definition-structure.js",
            "label: pick(option.label, translated.options[i]),",
            "label: pick(option.label, translated.options[0]),",
            "switch_to",
        ),
        "the mechanism of other groups": Malicious(
            "report.js",
            "function padded(definition, id, codes, { stratum, invitation }) {",
            "function padded(definition, id, codes, { stratum, invitation }) {\n"
            "  if (stratum > invitation) codes = null;",
            "differ",
        ),
        "a shorter report for invitations that are numbers": Malicious(
            "report.js",
            '".".repeat(room - needed)',
            '".".repeat(room - needed - (invitation > 0 ? 1 : 0))',
            "report differs",
        ),
        "invitations dropped without a group": Malicious(
            "report.js",
            "    stratum,\n    codes,\n    invitation,\n",
            "    stratum,\n    codes,\n    invitation: stratum && invitation,\n",
            "invitation",
        ),
    },
    "page modules": {
        "another answer than the chosen one": Malicious(
            "field.js", "() => onAnswer(option));", "() => onAnswer(0));", "codes"
        ),
        "a report before the review": Malicious(
            "visit.js",
            "  function review() {\n",
            "  function review() {\n    send();",
            "missing event: fetch",
        ),
        "answers remembered after sending": Malicious(
            "visit.js",
            "for (const question of Object.keys(answers)) delete answers[question];\n"
            "    answers = Object.create(null);",
            "",
            "remembers",
        ),
        "answers on the page that was left": Malicious(
            "display.js",
            "clear() {\n      stopReading();\n      main.replaceChildren();",
            "clear() {\n      stopReading();",
            "leaving",
        ),
        "names of inputs that browsers recognize": Malicious(
            "visit.js", 'names.get(question) ?? ""', "question", "input"
        ),
        "no warning of weak protection": Malicious(
            "privacy-loss.js", "WEAK_QUESTION_ABOVE = 9n", "WEAK_QUESTION_ABOVE = 900n", "grade"
        ),
        "words left in memory": Malicious("random.js", "    pool[used] = 0;\n", "", "wiped"),
    },
}
