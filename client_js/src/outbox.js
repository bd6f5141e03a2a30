/**
 * A report is made once per survey, kept until it is acknowledged, resent identical, and shown so.
 */

import { button, contact, disclosure, element, heading, paragraphs, surveyText } from "./dom.js";
import { questions, readCode, reportCodes, saysAnswers } from "./report.js";
import { words } from "./words.js";

/**
 * @typedef {{state: "empty"}
 *   | {state: "pending", body: string}
 *   | {state: "refused", body: string, status: number, detail: string}
 *   | {state: "sent"}} Entry  a refused entry without a body is one that could not be read
 * @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} KeptOnDevice
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {Definition | null} Known  null when only a kept report is left of the survey
 * @typedef {import("./dom.js").View} View
 */

/** @type {Entry} */
const EMPTY = { state: "empty" };
/** Something is kept here that this page cannot read: perhaps a report, so none is drawn again. */
const UNREADABLE = Object.freeze({ state: "refused", body: "", status: 0, detail: "" });

/**
 * The outbox of one survey on this device, whatever the survey's version: fresh draws for the same
 * questions would average the randomness away.
 *
 * @param {KeptOnDevice | null} storage  null where the browser denies it
 * @param {string} slug
 */
export function createOutbox(storage, slug) {
  const shelf = createShelf(storage, `survey-report:${slug}`);

  /** @param {Entry} entry */
  function keep(entry) {
    shelf.write(entry);
    return entry;
  }

  /**
   * Another tab may have gone further meanwhile, or keep another report: what it keeps stays.
   *
   * @param {string} body  the report this tab knows about
   * @param {Entry} entry  what became of it
   */
  function settle(body, entry) {
    const kept = shelf.read();
    const isOurs = kept.state === "empty" || ("body" in kept && kept.body === body);
    return isOurs ? keep(entry) : kept;
  }

  return {
    /** What is kept now, by this tab or another. */
    read: shelf.read,

    /** Whether what is kept, or would be, outlives this page. */
    get durable() {
      return shelf.durable;
    },

    /**
     * Make the report and keep it, unless this survey already has one: then `makeBody` is not
     * called, nothing is drawn, and what is kept is returned with `made: false`.
     *
     * @param {() => string} makeBody
     * @returns {{entry: Entry, made: boolean}}
     */
    freeze(makeBody) {
      const kept = shelf.read();
      if (kept.state !== "empty") return { entry: kept, made: false };
      return { entry: keep({ state: "pending", body: makeBody() }), made: true };
    },

    /**
     * The server has the report: keep a mark, without answers, body or id.
     *
     * @param {string} body
     * @returns {Entry}  what is kept now, here and below
     */
    accepted: (body) => settle(body, { state: "sent" }),

    /**
     * The server refused the report: keep it and the reason, unless another tab got it through.
     *
     * @param {string} body
     * @param {number} status
     * @param {string} detail
     * @returns {Entry}
     */
    refused: (body, status, detail) => settle(body, { state: "refused", body, status, detail }),

    /**
     * Send a refused report again, the same bytes, unless another tab got it through.
     *
     * @returns {Entry}
     */
    retry() {
      const kept = shelf.read();
      const canRetry = kept.state === "refused" && kept.body !== "";
      return canRetry ? keep({ state: "pending", body: kept.body }) : kept;
    },

    /**
     * Remove the mark, or what cannot be read; a report that may be sent again is never removed.
     *
     * @returns {Entry}
     */
    removeTrace() {
      const kept = shelf.read();
      const isMark = kept.state === "sent" || (kept.state === "refused" && kept.body === "");
      if (!isMark) return kept;
      shelf.clear();
      return EMPTY;
    },
  };
}

/** @typedef {ReturnType<typeof createOutbox>} Outbox */

/**
 * One entry in storage and in memory: storage speaks for all tabs, memory where it says nothing.
 *
 * @param {KeptOnDevice | null} storage
 * @param {string} key
 */
function createShelf(storage, key) {
  /** @type {Entry} */
  let held = EMPTY;
  let durable = canKeep(storage);

  return {
    get durable() {
      return durable;
    },
    /** @returns {Entry} */
    read() {
      const text = attempt(() => storage?.getItem(key)) ?? null;
      if (text === null) return held;
      durable = true;
      held = parseEntry(text);
      return held;
    },
    /** @param {Entry} entry */
    write(entry) {
      held = entry;
      const text = JSON.stringify(entry);
      attempt(() => storage?.setItem(key, text));
      durable = attempt(() => storage?.getItem(key)) === text;
    },
    clear() {
      held = EMPTY;
      attempt(() => storage?.removeItem(key));
    },
  };
}

/** Try it with a word that says nothing and is gone at once. @param {KeptOnDevice | null} storage */
function canKeep(storage) {
  const probe = "survey-probe";
  attempt(() => storage?.setItem(probe, probe));
  const isKept = attempt(() => storage?.getItem(probe)) === probe;
  attempt(() => storage?.removeItem(probe));
  return isKept;
}

/**
 * A browser may deny storage at any call.
 *
 * @template T
 * @param {() => T} action
 * @returns {T | undefined}
 */
function attempt(action) {
  try {
    return action();
  } catch {
    return undefined;
  }
}

/** @param {string} text @returns {Entry} */
function parseEntry(text) {
  const entry = attempt(() => JSON.parse(text));
  const hasBody = isReport(entry?.body);
  if (entry?.state === "sent") return { state: "sent" };
  if (entry?.state === "pending" && hasBody) return { state: "pending", body: entry.body };
  if (entry?.state !== "refused" || !hasBody) return UNREADABLE;
  const { body, status, detail } = entry;
  return { state: "refused", body, status: Number(status) || 0, detail: String(detail ?? "") };
}

/** @param {unknown} body */
function isReport(body) {
  const report = attempt(() => JSON.parse(String(body)));
  return typeof body === "string" && Array.isArray(report?.codes);
}

/**
 * @param {string} name
 * @param {string} title
 * @param {Known} definition
 * @param {...Node} children
 * @returns {View}
 */
function view(name, title, definition, ...children) {
  const survey = definition
    ? [element("p", { class: "quiet", ...surveyText(definition) }, definition.title)]
    : [];
  const content = element("div", { class: `view ${name}` }, ...survey, heading(title), ...children);
  return { content, title: definition ? `${title} – ${definition.title}` : title };
}

/** @param {string} text @param {string} [name] */
function paragraph(text, name) {
  return element("p", name ? { class: name } : {}, text);
}

/** @param {boolean} earlier  whether the report was made before this visit's answers */
function earlierNotice(earlier) {
  return earlier ? [paragraph(words.earlier, "notice")] : [];
}

/** @param {Known} definition @param {boolean} earlier */
export function sendingView(definition, earlier) {
  const { heading: title, text } = words.sending;
  return view("sending", title, definition, ...earlierNotice(earlier), paragraph(text));
}

/**
 * @param {object} of
 * @param {Known} of.definition
 * @param {boolean} of.durable
 * @param {boolean} of.earlier
 * @param {() => void} of.onTryNow
 * @returns {View & {say: (seconds: number, reason: "network" | "busy") => void}}
 */
export function waitingView({ definition, durable, earlier, onTryNow }) {
  const { waiting } = words;
  const status = element("p", { role: "status" });
  const tryNow = button(waiting.now, () => {
    status.textContent = waiting.trying;
    onTryNow();
  });
  const shown = view(
    "waiting",
    waiting.heading,
    definition,
    ...earlierNotice(earlier),
    status,
    paragraph(durable ? waiting.safe : waiting.keepOpen, durable ? "" : "notice"),
    paragraph(waiting.same),
    tryNow,
  );
  return {
    ...shown,
    say(seconds, reason) {
      status.textContent = `${waiting[reason]} ${waiting.next(seconds)}`;
    },
  };
}

/**
 * @param {object} of
 * @param {Known} of.definition
 * @param {string} of.body
 * @param {boolean} of.durable  whether the mark outlives this page
 * @param {boolean} of.earlier
 * @param {() => void} of.onRemove
 */
export function sentView({ definition, body, durable, earlier, onRemove }) {
  const { sent, mark } = words;
  const written = definition ? paragraphs(definition.thanks, surveyText(definition)) : [];
  return view(
    "sent",
    sent.heading,
    definition,
    ...earlierNotice(earlier),
    ...(written.length > 0 ? written : [paragraph(sent.thanks)]),
    disclosure(sent.what, ...whatWasSent(definition, body, sent.warning)),
    ...markNotice(mark.afterSending, durable, onRemove),
    ...(definition ? contact(definition) : []),
  );
}

/**
 * What is said of the mark, and the way to remove it: only where there is one that stays.
 *
 * @param {string} text
 * @param {boolean} durable
 * @param {() => void} onRemove
 */
function markNotice(text, durable, onRemove) {
  const { mark } = words;
  if (!durable) return [paragraph(mark.keepsNothing, "notice")];
  return [paragraph(text), button(mark.remove, onRemove, { class: "button second" })];
}

/**
 * @param {object} of
 * @param {Known} of.definition
 * @param {boolean} of.durable
 * @param {boolean} of.earlier
 * @param {() => void} of.onRemove
 */
export function markView({ definition, durable, earlier, onRemove }) {
  const { mark } = words;
  return view(
    "mark",
    mark.heading,
    definition,
    ...earlierNotice(earlier),
    ...markNotice(mark.text, durable, onRemove),
  );
}

/** @param {Known} definition */
export function removedView(definition) {
  const { mark } = words;
  return view("removed", mark.removedHeading, definition, paragraph(mark.removed));
}

/**
 * @param {object} of
 * @param {Known} of.definition
 * @param {{body: string, status: number, detail: string}} of.entry
 * @param {boolean} of.durable
 * @param {boolean} of.earlier
 * @param {() => void} of.onTryAgain
 */
export function refusedView({ definition, entry, durable, earlier, onTryAgain }) {
  const { refused } = words;
  const detail = entry.detail
    ? [element("p", {}, `${refused.detail} `, element("q", { dir: "auto" }, entry.detail))]
    : [];
  const warning = isReplaced(definition) ? refused.warning : refused.warningByChance;
  return view(
    "refused",
    refused.heading,
    definition,
    ...earlierNotice(earlier),
    paragraph(refused.because[entry.status] ?? refused.other(entry.status), "notice"),
    ...detail,
    paragraph(durable ? refused.kept : refused.keptHere),
    button(refused.again, onTryAgain),
    disclosure(refused.what, ...whatWasSent(definition, entry.body, warning)),
    ...(definition ? contact(definition) : []),
  );
}

/** @param {Known} definition @param {() => void} onRemove */
export function damagedView(definition, onRemove) {
  const { damaged, mark } = words;
  return view(
    "refused damaged",
    damaged.heading,
    definition,
    paragraph(damaged.text),
    button(mark.remove, onRemove, { class: "button second" }),
  );
}

/**
 * @param {keyof typeof words.cannot.because} reason
 * @param {() => void} onTryAgain
 * @param {boolean} [asked]  whether answers had been given
 */
export function cannotView(reason, onTryAgain, asked = false) {
  const { cannot } = words;
  const closed = reason === "closed";
  return view(
    "cannot",
    closed ? cannot.headingClosed : cannot.heading,
    null,
    paragraph(cannot.because[reason], "notice"),
    paragraph(asked ? cannot.nothingSent : cannot.nothing),
    // What is closed stays closed: a button would promise otherwise.
    ...(closed ? [] : [button(cannot.again, onTryAgain)]),
  );
}

/**
 * The report question by question, what it means, and its exact bytes.
 *
 * @param {Known} definition
 * @param {string} body
 * @param {string} warning
 */
function whatWasSent(definition, body, warning) {
  const { sent } = words;
  const known = definition !== null && JSON.parse(body).definition === definition.id;
  return [
    paragraph(isReplaced(definition) ? sent.whatMeans : sent.whatMeansByChance),
    paragraph(warning, "notice"),
    known ? reportedList(definition, body) : paragraph(sent.unknown),
    paragraph(sent.bytes, "quiet"),
    element("pre", { tabindex: "0", "aria-label": sent.bytes }, body),
  ];
}

/** Whether "a random answer" is the word for every line. @param {Known} definition */
function isReplaced(definition) {
  return definition !== null && questions(definition).every(saysAnswers);
}

/** @param {Definition} definition @param {string} body */
function reportedList(definition, body) {
  const codes = reportCodes(body);
  const rows = questions(definition).map((question, i) =>
    element(
      "div",
      {},
      element("dt", surveyText(definition), question.text),
      ...(definition.sampling && codes[i] === null
        ? [element("dd", {}, words.sent.notAsked)]
        : reported(definition, question, codes[i])),
    ),
  );
  return element("dl", { class: "answers reported" }, ...rows);
}

/**
 * @param {Definition} definition
 * @param {import("./definition.js").Question} question
 * @param {unknown} code
 */
function reported(definition, question, code) {
  const { sent } = words;
  const spoken = surveyText(definition);
  const said = readCode(question, code);
  if (said === null) return [element("dd", {}, sent.unreadable)];
  const about = said.asked.length === 0 ? [] : labelled(sent.askedAbout, said.asked, spoken);
  return [
    ...about,
    ...labelled(sent.reported, said.named, spoken, said.place),
    element(
      "dd",
      { class: "quiet" },
      saysAnswers(question) ? sent.mayBeRandom : sent.fromAnyAnswer,
    ),
  ];
}

/**
 * @param {string} what
 * @param {string[]} labels
 * @param {import("./dom.js").Attributes} spoken
 * @param {{at: number, of: number} | null} [place]
 */
function labelled(what, labels, spoken, place = null) {
  const { noneNamed, place: placeText } = words.sent;
  const ours = place ? placeText(place.at, place.of) : noneNamed;
  const text = labels.length > 0 ? element("b", spoken, labels.join(", ")) : element("b", {}, ours);
  return [element("dd", {}, `${what}: `, text)];
}
