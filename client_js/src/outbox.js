/**
 * A report is made once per survey, kept until it is acknowledged, resent identical, and shown so.
 */

import {
  button,
  disclosure,
  element,
  heading,
  listed,
  paragraphs,
  passage,
  surveyElement,
  surveyText,
} from "./dom.js";
import { isoDayText } from "./fields.js";
import { questions, readCode, reportCodes, saysAnswers } from "./report.js";
import { count, figure, say, sayOf } from "./words.js";

/**
 * @typedef {{state: "empty"}
 *   | {state: "pending", body: string}
 *   | {state: "refused", body: string} & Refusal
 *   | {state: "sent"}} Entry  a refused entry without a body is one that could not be read
 * @typedef {import("./transport.js").Refusal} Refusal
 * @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} KeptOnDevice
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {Definition | null} Known  null when only a kept report is left of the survey
 * @typedef {import("./dom.js").View} View
 */

/** @type {Entry} */
const EMPTY = { state: "empty" };
/** Something is kept here that this page cannot read: perhaps a report, so none is drawn again. */
const UNREADABLE = Object.freeze({ state: "refused", body: "", status: 0, name: "", detail: "" });

/**
 * The outbox of one survey on this device, whatever the survey's version: fresh draws for the same
 * questions would average the randomness away.
 *
 * @param {KeptOnDevice | null} storage  null where the browser denies it, and on shared devices
 * @param {string} slug
 * @param {number} [room]  characters of a report, for which there must be place
 */
export function createOutbox(storage, slug, room = 0) {
  const shelf = createShelf(storage, `survey-report:${slug}`, room);

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
     * Keep the report that was made, unless this survey already has one: then this one is never
     * sent.
     *
     * @param {string} body
     * @returns {Entry}
     */
    freeze(body) {
      const kept = shelf.read();
      return kept.state === "empty" ? keep({ state: "pending", body }) : kept;
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
     * @param {Refusal} refusal
     * @returns {Entry}
     */
    refused: (body, { status, name, detail }) =>
      settle(body, { state: "refused", body, status, name, detail }),

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
     * Whoever wants no refused report here any more has it removed: the mark stays in its place,
     * because a server may have kept what it refused.
     *
     * @returns {Entry}
     */
    giveUp() {
      const kept = shelf.read();
      return kept.state === "refused" ? keep({ state: "sent" }) : kept;
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
 * @param {number} room
 */
function createShelf(storage, key, room) {
  /** @type {Entry} */
  let held = EMPTY;
  let durable = canKeep(storage, room);

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

/**
 * Try it with something that says nothing and is gone at once, as long as an entry can be.
 *
 * @param {KeptOnDevice | null} storage
 * @param {number} room
 */
function canKeep(storage, room) {
  const probe = "survey-probe";
  const filling = probe.padEnd(2 * room, "x");
  attempt(() => storage?.setItem(probe, filling));
  const isKept = attempt(() => storage?.getItem(probe)) === filling;
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
  const { body, status, name, detail } = entry;
  const written = (/** @type {unknown} */ value) => String(value ?? "");
  return {
    state: "refused",
    body,
    status: Number(status) || 0,
    name: written(name),
    detail: written(detail),
  };
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
    ? [surveyElement("p", definition, definition.title, { class: "quiet" })]
    : [];
  const content = element("div", { class: `view ${name}` }, ...survey, heading(title), ...children);
  // Browsers keep titles in their history: one that told the state would tell who took part.
  return { content, title: definition?.title ?? document.title };
}

/** @param {string} text @param {string} [name] */
function paragraph(text, name) {
  return element("p", name ? { class: name } : {}, text);
}

/** @param {boolean} earlier  whether the report was made before this visit's answers */
function earlierNotice(earlier) {
  return earlier ? [paragraph(say("earlier"), "notice")] : [];
}

/** @param {Known} definition @param {boolean} earlier */
export function sendingView(definition, earlier) {
  const content = [...earlierNotice(earlier), paragraph(say("sending.text"))];
  return view("sending", say("sending.heading"), definition, ...content);
}

/**
 * @typedef {{seconds: number, reason: "network" | "busy" | "many"}} Next  when it is tried again
 *
 * @param {object} of
 * @param {Known} of.definition
 * @param {boolean} of.durable
 * @param {boolean} of.earlier
 * @param {() => void} of.onTryNow
 * @returns {View & {tell: (next: Next) => void}}
 */
export function waitingView({ definition, durable, earlier, onTryNow }) {
  const status = element("p", { role: "status" });
  const tryNow = button(say("waiting.now"), () => {
    status.textContent = say("waiting.trying");
    onTryNow();
  });
  const unkept = definition?.kiosk ? "waiting.keepOpenKiosk" : "waiting.keepOpen";
  const shown = view(
    "waiting",
    say("waiting.heading"),
    definition,
    ...earlierNotice(earlier),
    status,
    paragraph(say(durable ? "waiting.safe" : unkept), durable ? "" : "notice"),
    paragraph(say("waiting.same")),
    tryNow,
  );
  return {
    ...shown,
    tell({ seconds, reason }) {
      const isLong = seconds >= 120;
      const time = isLong
        ? count("count.minutes", Math.ceil(seconds / 60))
        : count("count.seconds", seconds);
      status.textContent = `${say(`waiting.${reason}`)} ${say("waiting.next", { time })}`;
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
 * @param {() => void} of.onNext  begin for the next person on a shared device
 */
export function sentView({ definition, body, durable, earlier, onRemove, onNext }) {
  const { thanks } = definition ?? { thanks: "" };
  const written = paragraphs(thanks, surveyText(definition, thanks));
  const left = definition?.kiosk ? handOver(onNext) : markNotice(durable, onRemove);
  return view(
    "sent",
    say("sent.heading"),
    definition,
    ...earlierNotice(earlier),
    ...(written.length > 0 ? written : [paragraph(say("sent.thanks"))]),
    disclosure(say("sent.what"), ...whatWasSent(definition, body, say("sent.warning"))),
    ...left,
    ...around(definition),
  );
}

/** Where to turn to afterwards. @param {Known} definition */
function around(definition) {
  return definition ? [...passage(definition, "helpline"), ...passage(definition, "contact")] : [];
}

/** @param {() => void} onNext */
function handOver(onNext) {
  return [
    paragraph(say("sent.nextText")),
    paragraph(say("mark.kiosk")),
    button(say("sent.next"), onNext),
  ];
}

/**
 * What is said of the mark, and the way to remove it: only where there is one that stays.
 *
 * @param {boolean} durable
 * @param {() => void} onRemove
 */
function markNotice(durable, onRemove) {
  if (!durable) return [paragraph(say("mark.keepsNothing"), "notice")];
  return [
    paragraph(say("mark.text")),
    button(say("mark.remove"), onRemove, { class: "button second" }),
  ];
}

/**
 * @param {object} of
 * @param {Known} of.definition
 * @param {boolean} of.durable
 * @param {boolean} of.earlier
 * @param {() => void} of.onRemove
 */
export function markView({ definition, durable, earlier, onRemove }) {
  return view(
    "mark",
    say("mark.heading"),
    definition,
    ...earlierNotice(earlier),
    ...markNotice(durable, onRemove),
  );
}

/** @param {Known} definition */
export function removedView(definition) {
  return view("removed", say("mark.removedHeading"), definition, paragraph(say("mark.removed")));
}

/**
 * @param {object} of
 * @param {Known} of.definition
 * @param {{body: string} & Refusal} of.entry
 * @param {boolean} of.durable
 * @param {boolean} of.earlier
 * @param {() => void} of.onTryAgain
 * @param {() => void} of.onRemove
 */
export function refusedView({ definition, entry, durable, earlier, onTryAgain, onRemove }) {
  const { body, status, name, detail } = entry;
  const own = element("q", { dir: "auto", lang: "en" }, detail);
  const warning = isReplaced(definition) ? "refused.warning" : "refused.warningByChance";
  return view(
    "refused",
    say("refused.heading"),
    definition,
    ...earlierNotice(earlier),
    paragraph(because(status, name), "notice"),
    ...(detail ? [element("p", {}, `${say("refused.detail")} `, own)] : []),
    paragraph(`${say(durable ? "refused.kept" : "refused.keptHere")} ${say("waiting.same")}`),
    button(say("refused.again"), onTryAgain),
    ...(durable ? [button(say("mark.remove"), onRemove, { class: "button second" })] : []),
    disclosure(say("refused.what"), ...whatWasSent(definition, body, say(warning))),
    ...around(definition),
  );
}

/** What a status means when the answer does not say more: it need not come from the survey. */
const USUAL = /** @type {Readonly<Record<number, string>>} */ ({
  400: "malformed-report",
  404: "not-found",
  409: "conflict",
  410: "closed",
  413: "report-too-large",
  415: "unsupported-media",
  422: "report",
});

/** @param {number} status @param {string} name */
function because(status, name) {
  const usual = sayOf("refusal", USUAL[status] ?? "") ?? say("refusal.other", { status });
  return sayOf("refusal", name) ?? usual;
}

/** @param {Known} definition @param {() => void} onRemove */
export function damagedView(definition, onRemove) {
  return view(
    "refused damaged",
    say("damaged.heading"),
    definition,
    paragraph(say("damaged.text")),
    button(say("mark.remove"), onRemove, { class: "button second" }),
  );
}

/** What stays so: a button to try again would promise otherwise. */
const FINAL = ["closed", "full"];

/**
 * @param {object} of
 * @param {import("./definition.js").Obstacle} of.reason
 * @param {string} [of.opens]  the day on which it will be none, as in 2026-01-31, "" for no such day
 * @param {() => void} of.onTryAgain
 * @param {boolean} [of.asked]  whether answers had been given
 */
export function cannotView({ reason, opens, onTryAgain, asked = false }) {
  const isFinal = FINAL.includes(reason);
  const day = opens ? isoDayText(opens, document.documentElement.lang) : "";
  return view(
    "cannot",
    say(isFinal ? "cannot.headingClosed" : "cannot.heading"),
    null,
    paragraph(say(`cannot.${reason}`, { day }), "notice"),
    paragraph(say(asked ? "cannot.nothingSent" : "cannot.nothing")),
    ...(isFinal ? [] : [button(say("refused.again"), onTryAgain)]),
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
  const known = definition !== null && JSON.parse(body).definition === definition.id;
  return [
    paragraph(say(isReplaced(definition) ? "sent.whatMeans" : "sent.whatMeansByChance")),
    paragraph(warning, "notice"),
    known ? reportedList(definition, body) : paragraph(say("sent.unknown")),
    paragraph(say("sent.bytes"), "quiet"),
    // A region, because a label needs something to be the name of; it scrolls, so it takes focus.
    element(
      "pre",
      { tabindex: "0", role: "region", "aria-label": say("sent.bytes"), dir: "ltr" },
      body,
    ),
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
      surveyElement("dt", definition, question.text),
      ...(definition.sampling && codes[i] === null
        ? [element("dd", {}, say("sent.notAsked"))]
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
  const said = readCode(question, code);
  if (said === null) return [element("dd", {}, say("sent.unreadable"))];
  const about =
    said.asked.length === 0
      ? []
      : [labelled(say("sent.askedAbout"), listed(definition, said.asked))];
  const named =
    said.named.length > 0
      ? listed(definition, said.named)
      : [element("b", {}, said.place ? placeText(said.place) : say("sent.noneNamed"))];
  const chance = say(saysAnswers(question) ? "sent.mayBeRandom" : "sent.fromAnyAnswer");
  return [
    ...about,
    labelled(say("sent.reported"), named),
    element("dd", { class: "quiet" }, chance),
  ];
}

/** A report that names no option: which of all that are possible. @param {{at: number, of: number}} place */
function placeText({ at, of }) {
  if (of === 2) return say("sent.placeOfTwo", { at });
  return say("sent.place", { at: figure(String(at + 1)), of: figure(String(of)) });
}

/** @param {string} what @param {import("./dom.js").Child[]} children */
function labelled(what, children) {
  return element("dd", {}, `${what}: `, ...children);
}
