/**
 * What happened to the report, in plain words: sending, waiting, sent, refused, or never made.
 */

import { button, disclosure, element, heading, paragraphs, surveyText } from "./dom.js";
import { reportedOptions } from "./mechanism.js";
import { questions, reportCodes } from "./report.js";
import { contact } from "./start.js";
import { words } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./stage.js").View} View
 * @typedef {Definition | null} Known  null when only a kept report is left of the survey
 */

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
 * @param {boolean} of.earlier
 * @param {() => void} of.onRemove
 */
export function sentView({ definition, body, earlier, onRemove }) {
  const { sent, mark } = words;
  const written = definition ? paragraphs(definition.thanks, surveyText(definition)) : [];
  return view(
    "sent",
    sent.heading,
    definition,
    ...earlierNotice(earlier),
    ...(written.length > 0 ? written : [paragraph(sent.thanks)]),
    disclosure(sent.what, ...whatWasSent(definition, body, sent.warning)),
    paragraph(mark.afterSending),
    button(mark.remove, onRemove, { class: "button second" }),
    ...(definition ? contact(definition) : []),
  );
}

/** @param {Known} definition @param {boolean} earlier @param {() => void} onRemove */
export function markView(definition, earlier, onRemove) {
  const { mark } = words;
  return view(
    "mark",
    mark.heading,
    definition,
    ...earlierNotice(earlier),
    paragraph(mark.text),
    button(mark.remove, onRemove, { class: "button second" }),
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
  return view(
    "refused",
    refused.heading,
    definition,
    ...earlierNotice(earlier),
    paragraph(refused.because[entry.status] ?? refused.other(entry.status), "notice"),
    ...detail,
    paragraph(durable ? refused.kept : refused.keptHere),
    button(refused.again, onTryAgain),
    disclosure(refused.what, ...whatWasSent(definition, entry.body, refused.warning)),
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
    paragraph(sent.whatMeans),
    paragraph(warning, "notice"),
    known ? reportedList(definition, body) : paragraph(sent.unknown),
    paragraph(sent.bytes, "quiet"),
    element("pre", { tabindex: "0", "aria-label": sent.bytes }, body),
  ];
}

/** @param {Definition} definition @param {string} body */
function reportedList(definition, body) {
  const codes = reportCodes(body);
  const spoken = surveyText(definition);
  const rows = questions(definition).map(({ text, options, channel }, i) => {
    const named = reportedOptions(channel, codes[i]).map((option) => options[option].label);
    return element(
      "div",
      {},
      element("dt", spoken, text),
      element("dd", {}, `${words.sent.reported}: `, element("b", spoken, named.join(", "))),
      element("dd", { class: "quiet" }, words.sent.mayBeRandom),
    );
  });
  return element("dl", { class: "answers reported" }, ...rows);
}
