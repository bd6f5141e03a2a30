/**
 * Views of a report on its way, one per state, and of what keeps a survey from starting.
 */

import { questions } from "./answers.js";
import {
  button,
  disclosure,
  element,
  heading,
  listed,
  paragraph,
  paragraphs,
  passage,
  surveyElement,
  surveyText,
} from "./dom.js";
import { isoDayText } from "./field.js";
import { noProof, questionWarning, wholeReport } from "./privacy-label.js";
import { boundIn, bounds, oddsFactor, provesNothing } from "./privacy-loss.js";
import { readCode, reportCodes, saysAnswers } from "./report.js";
import { count, figure, gap, pieces, say, sayOf } from "./texts.js";

/**
 * @typedef {import("./transport.js").Obstacle} Obstacle
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./delivery.js").Offer} Offer
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./dom.js").View} View
 * @typedef {import("./transport.js").Refusal} Refusal
 * @typedef {import("./dom.js").Named} Named
 * @typedef {Definition | null} MaybeDefinition  null if only a stored report remains of the survey
 */

/**
 * @param {string} name
 * @param {string} title
 * @param {Named | null} definition
 * @param {...Node} children
 * @returns {View}
 */
function view(name, title, definition, ...children) {
  const survey = definition
    ? [surveyElement("p", definition, definition.title, { class: "quiet" })]
    : [];
  const content = element("div", { class: `view ${name}` }, ...survey, heading(title), ...children);
  // Browsers store titles in their history, where the state would reveal who took part.
  return { content, title: definition?.title ?? document.title };
}

/** @param {boolean} earlier  whether the report was made before this visit's answers */
function earlierNotice(earlier) {
  return earlier ? [paragraph(say("earlier"), "notice")] : [];
}

/** @param {MaybeDefinition} definition @param {boolean} earlier */
export function sendingView(definition, earlier) {
  const content = [...earlierNotice(earlier), paragraph(say("sending.text"))];
  return view("sending", say("sending.heading"), definition, ...content);
}

/**
 * @typedef {{seconds: number, reason: "network" | "busy" | "many"}} Attempt  the next one, and why the last one failed
 *
 * @param {object} of
 * @param {MaybeDefinition} of.definition
 * @param {boolean} of.durable
 * @param {boolean} of.earlier
 * @param {() => void} of.onTryNow
 * @returns {View & {announce: (attempt: Attempt) => void}}
 */
export function waitingView({ definition, durable, earlier, onTryNow }) {
  const status = element("p", { role: "status" });
  const tryNow = button(say("waiting.now"), () => {
    status.textContent = say("waiting.trying");
    onTryNow();
  });
  const keepOpenKey = definition?.kiosk ? "waiting.keepOpenKiosk" : "waiting.keepOpen";
  const base = view(
    "waiting",
    say("waiting.heading"),
    definition,
    ...earlierNotice(earlier),
    status,
    paragraph(say(durable ? "waiting.safe" : keepOpenKey), durable ? "" : "notice"),
    paragraph(say("waiting.same")),
    tryNow,
  );
  return {
    ...base,
    announce({ seconds, reason }) {
      const isLong = seconds >= 120;
      const time = isLong
        ? count("count.minutes", Math.ceil(seconds / 60))
        : count("count.seconds", seconds);
      status.textContent = say(`waiting.${reason}`) + gap() + say("waiting.next", { time });
    },
  };
}

/**
 * @param {object} of
 * @param {MaybeDefinition} of.definition
 * @param {string} of.body
 * @param {boolean} of.durable  whether the mark outlives this page
 * @param {boolean} of.earlier
 * @param {() => void} of.onRemove
 * @param {() => void} of.onNext  start for the next person on a shared device
 * @param {Offer | null} of.memory  null where nothing is remembered
 */
export function sentView({ definition, body, durable, earlier, onRemove, onNext, memory }) {
  const { thanks } = definition ?? { thanks: "" };
  const surveyThanks = paragraphs(thanks, surveyText(definition, thanks));
  const closing = definition?.kiosk ? handOver(onNext) : markNotice(durable, onRemove);
  return view(
    "sent",
    say("sent.heading"),
    definition,
    ...earlierNotice(earlier),
    paragraph(say("sent.thanks")),
    ...surveyThanks,
    ...helpAndContact(definition),
    ...closing,
    ...(memory ? [memorySection(memory)] : []),
    disclosure(say("sent.what"), ...whatWasSent(definition, body, say("sent.warning"))),
  );
}

/** Offer to remember this survey on the device, and to forget it. @param {Offer} memory */
function memorySection(memory) {
  return element(
    "section",
    { class: "passage memory", "aria-labelledby": "memory-heading" },
    element("h2", { id: "memory-heading" }, say("memory.heading")),
    ...memoryChoice(memory),
  );
}

/** @param {Offer} memory @returns {HTMLElement[]} */
function memoryChoice(memory) {
  const earlier = memory.read();
  /** @type {(choose: () => void) => (event: MouseEvent) => void} */
  const onPress =
    (choose) =>
    ({ currentTarget }) => {
      choose();
      const section = /** @type {Element} */ (currentTarget).closest("section");
      const [title] = section?.children ?? [];
      const parts = memoryChoice(memory);
      section?.replaceChildren(title, ...parts);
      // The pressed button is gone, and with it the focus.
      parts[0].focus();
    };
  if (earlier === undefined) {
    return [
      element("p", {}, say("memory.offer")),
      element("p", {}, say("memory.stores")),
      button(say("memory.remember"), onPress(memory.remember), { class: "button second" }),
    ];
  }
  const status = { role: "status", tabindex: "-1" };
  if (earlier === null) return [element("p", status, say("memory.forgotten"))];
  const stored = say("memory.stored", {
    surveys: count("count.surveys", earlier.surveys),
    factor: figure(oddsFactor(earlier.total)),
  });
  return [
    element("p", status, stored),
    button(say("memory.forget"), onPress(memory.forget), { class: "button second" }),
  ];
}

/** Show help line and contact. @param {MaybeDefinition} definition */
function helpAndContact(definition) {
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
 * Explain the stored mark and offer to remove it, if this browser stores one.
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
 * @param {MaybeDefinition} of.definition
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

/** @param {MaybeDefinition} definition */
export function removedView(definition) {
  return view("removed", say("mark.removedHeading"), definition, paragraph(say("mark.removed")));
}

/**
 * @param {object} of
 * @param {MaybeDefinition} of.definition
 * @param {{body: string} & Refusal} of.entry
 * @param {boolean} of.durable
 * @param {boolean} of.earlier
 * @param {() => void} of.onTryAgain
 * @param {() => void} of.onRemove
 */
export function refusedView({ definition, entry, durable, earlier, onTryAgain, onRemove }) {
  const { body, status, name } = entry;
  const warning = isReplaced(definition) ? "refused.warning" : "refused.warningByChance";
  return view(
    "refused",
    say("refused.heading"),
    definition,
    ...earlierNotice(earlier),
    paragraph(refusalSentence(status, name), "notice"),
    paragraph(say(durable ? "refused.kept" : "refused.keptHere")),
    ...(HOPELESS.includes(name)
      ? []
      : [paragraph(say("waiting.same")), button(say("refused.again"), onTryAgain)]),
    ...(durable ? [button(say("mark.remove"), onRemove, { class: "button second" })] : []),
    disclosure(say("refused.what"), ...whatWasSent(definition, body, say(warning))),
    ...helpAndContact(definition),
  );
}

/** Names of refusals by status, for answers without a name, which may not come from the survey. */
const NAMES_BY_STATUS = /** @type {Readonly<Record<number, string>>} */ ({
  400: "malformed-report",
  404: "not-found",
  409: "conflict",
  410: "closed",
  413: "report-too-large",
  415: "unsupported-media",
  422: "report",
});

/** Names of refusals that the same report always gets, so "Try again" would be a false promise. */
const HOPELESS = [
  ...["closed", "conflict", "invitation", "invitation-needed", "malformed-report", "outdated"],
  ...["report", "report-too-large", "unsupported-media"],
];

/** @param {number} status @param {string} name */
function refusalSentence(status, name) {
  const fallback =
    sayOf("refusal", NAMES_BY_STATUS[status] ?? "") ?? say("refusal.other", { status });
  return sayOf("refusal", name) ?? fallback;
}

/** @param {MaybeDefinition} definition */
export function testRunView(definition) {
  return view("test", say("test.heading"), definition, paragraph(say("test.text"), "notice"));
}

/** @param {MaybeDefinition} definition @param {() => void} onRemove */
export function damagedView(definition, onRemove) {
  return view(
    "refused damaged",
    say("damaged.heading"),
    definition,
    paragraph(say("damaged.text")),
    button(say("mark.remove"), onRemove, { class: "button second" }),
  );
}

/** Return the label of an obstacle's button. @param {Obstacle} reason */
function againKey(reason) {
  return reason === "other_version" ? "cannot.current" : "refused.again";
}

/** Final obstacles, for which "Try again" would be a false promise. */
const FINAL = ["closed", "full"];

/** Faults of the link, which remain when the page is loaded again. */
const OF_LINK = ["damaged_link", "other_definition", "invitation_needed"];

/**
 * @param {object} of
 * @param {Obstacle} of.reason
 * @param {string} [of.opens]  the day on which the survey opens, as in 2026-01-31, or ""
 * @param {import("./transport.js").Names | undefined} [of.survey]  the survey, if the server names it
 * @param {() => void} of.onTryAgain
 * @param {boolean} [of.hasAnswers]  whether the person had given answers
 */
export function obstacleView({ reason, opens, survey, onTryAgain, hasAnswers = false }) {
  const isFinal = FINAL.includes(reason);
  const day = opens ? isoDayText(opens, document.documentElement.lang) : "";
  const named = survey ? { ...survey, untranslated: new Map() } : null;
  return view(
    "cannot",
    say(isFinal ? "cannot.headingClosed" : "cannot.heading"),
    named,
    paragraph(say(`cannot.${reason}`, { day }), "notice"),
    paragraph(say(hasAnswers ? "cannot.nothingSent" : "cannot.nothing")),
    ...(isFinal || OF_LINK.includes(reason) ? [] : [button(say(againKey(reason)), onTryAgain)]),
    ...(named ? passage(named, "contact") : []),
  );
}

/**
 * Show the report by question, its meaning, and its exact bytes.
 *
 * @param {MaybeDefinition} definition
 * @param {string} body
 * @param {string} warning
 */
export function whatWasSent(definition, body, warning) {
  const isReadable = definition !== null && JSON.parse(body).definition === definition.id;
  return [
    ...(isReadable ? wholeReport(definition, true) : []),
    paragraph(meaning(definition)),
    ...(isReadable ? noProof(definition).map((text) => paragraph(text)) : []),
    paragraph(warning, "notice"),
    ...(isReadable ? reportedList(definition, body) : [paragraph(say("sent.unknown"))]),
    disclosure(
      say("sent.bytes"),
      // A region can have a label; because it scrolls, it must be focusable.
      element(
        "pre",
        { tabindex: "0", role: "region", "aria-label": say("sent.bytes"), dir: "ltr" },
        body,
      ),
    ),
  ];
}

/** Say what the lines are; weakly protected ones may well be the answers. @param {MaybeDefinition} definition */
function meaning(definition) {
  if (definition !== null && !provesNothing(definition)) return say("sent.whatMeansWeak");
  return isReplaced(definition) ? say("sent.whatMeans") : say("sent.whatMeansByChance");
}

/** Whether every line names an answer, true or random. @param {MaybeDefinition} definition */
export function isReplaced(definition) {
  return definition !== null && questions(definition).every(saysAnswers);
}

/** @param {Definition} definition @param {string} body */
function reportedList(definition, body) {
  const codes = reportCodes(body);
  const allBounds = bounds(questions(definition));
  const isAsked = (/** @type {number} */ i) => !(definition.sampling && codes[i] === null);
  const rows = questions(definition).flatMap((question, i) =>
    isAsked(i)
      ? [
          element(
            "div",
            {},
            // Without the earlier answers that it contained: they were cleared when the report was made.
            surveyElement("dt", definition, question.text),
            ...codeDescription(definition, question, codes[i], boundIn(allBounds, question.id)),
          ),
        ]
      : [],
  );
  return [
    element("dl", { class: "answers reported" }, ...rows),
    ...(definition.sampling ? [paragraph(say("sent.notAsked"))] : []),
  ];
}

/**
 * Describe in sentences what the dice sent for a question.
 *
 * @param {Definition} definition
 * @param {Question} question
 * @param {unknown} code
 * @param {import("./privacy-loss.js").Bound} bound
 */
function codeDescription(definition, question, code, bound) {
  const line = readCode(question, code);
  if (line === null) return [element("dd", {}, say("sent.unreadable"))];
  const { covered } = line;
  const about =
    covered.length === 0 ? [] : pieces("sent.about", { covered: span(definition, covered) });
  const note = say(saysAnswers(question) ? "sent.mayBeRandom" : "sent.fromAnyAnswer");
  const warning = questionWarning(question, bound, true);
  return [
    ...(about.length > 0 ? [element("dd", { class: "quiet" }, ...about)] : []),
    element("dd", {}, ...lineSentence(definition, question, line)),
    warning.length > 0
      ? element("dd", { class: "warning" }, ...warning)
      : element("dd", { class: "quiet" }, note),
  ];
}

/**
 * @param {Definition} definition
 * @param {Question} question
 * @param {import("./report.js").Reported} line
 * @returns {Child[]}
 */
function lineSentence(definition, question, { named, place, order }) {
  if (order) return pieces("sent.one", { named: orderText(definition, order) });
  if (place) return [placeSentence(place)];
  if (named.length === 0) return [say("sent.noneTicked")];
  const values = { named: span(definition, named) };
  if (question.max_ticks > 0) return pieces("sent.ticked", values);
  return pieces(named.length === 1 ? "sent.one" : "sent.several", values);
}

/** Write a report on a ranking: the first choice, or the order of a few options. @param {Definition} definition @param {string[]} order */
function orderText(definition, order) {
  const [first, ...others] = order.map((label) => surveyElement("b", definition, label));
  if (others.length === 0)
    return element("span", {}, ...pieces("sent.rankedFirst", { option: first }));
  /** @type {Node} */
  let earlier = first;
  for (const later of others) {
    earlier = element("span", {}, ...pieces("sent.rankedBefore", { earlier, later }));
  }
  return earlier;
}

/** @param {Definition} definition @param {readonly string[]} texts */
function span(definition, texts) {
  return element("span", {}, ...listed(definition, texts));
}

/** State the number of a report that names no option. @param {{at: number, of: number}} place */
function placeSentence({ at, of }) {
  if (of === 2) return say("sent.placeOfTwo", { at });
  return say("sent.place", { at: figure(String(at + 1)), of: figure(String(of)) });
}
