/**
 * What was sent: the report by question, its meaning, and its exact bytes.
 */

import { element, listed, paragraph, surveyElement } from "./dom.js";
import { noProof, questionWarning, wholeReport } from "./privacy-label.js";
import { boundIn, bounds, provesNothing } from "./privacy-loss.js";
import { readCode, reportCodes, saysAnswers } from "./report-reader.js";
import { questions } from "./sampling.js";
import { figure, say } from "./texts.js";

/**
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./view-delivery.js").MaybeDefinition} MaybeDefinition
 * @typedef {import("./definition.js").Question} Question
 */

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
    ...(isReadable ? noProof(definition) : []),
    paragraph(warning, "notice"),
    isReadable ? reportedList(definition, body) : paragraph(say("sent.unknown")),
    paragraph(say("sent.bytes"), "quiet"),
    // A region, so that it can have a label; it scrolls, so it can get the focus.
    element(
      "pre",
      { tabindex: "0", role: "region", "aria-label": say("sent.bytes"), dir: "ltr" },
      body,
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
  const rows = questions(definition).map((question, i) =>
    element(
      "div",
      {},
      surveyElement("dt", definition, question.text),
      ...(definition.sampling && codes[i] === null
        ? [element("dd", {}, say("sent.notAsked"))]
        : codeDescription(definition, question, codes[i], boundIn(allBounds, question.id))),
    ),
  );
  return element("dl", { class: "answers reported" }, ...rows);
}

/**
 * @param {Definition} definition
 * @param {Question} question
 * @param {unknown} code
 * @param {import("./privacy-loss.js").Bound} bound
 */
function codeDescription(definition, question, code, bound) {
  const line = readCode(question, code);
  if (line === null) return [element("dd", {}, say("sent.unreadable"))];
  const about =
    line.covered.length === 0
      ? []
      : [labelled(say("sent.askedAbout"), listed(definition, line.covered))];
  const names =
    line.named.length > 0
      ? listed(definition, line.named)
      : [element("b", {}, line.place ? placeText(line.place) : say("sent.noneNamed"))];
  const note = say(saysAnswers(question) ? "sent.mayBeRandom" : "sent.fromAnyAnswer");
  const warning = questionWarning(question, bound, true);
  return [
    ...about,
    labelled(say("sent.reported"), names),
    warning.length > 0
      ? element("dd", { class: "warning" }, ...warning)
      : element("dd", { class: "quiet" }, note),
  ];
}

/** Show a report that names no option by its number. @param {{at: number, of: number}} place */
function placeText({ at, of }) {
  if (of === 2) return say("sent.placeOfTwo", { at });
  return say("sent.place", { at: figure(String(at + 1)), of: figure(String(of)) });
}

/** @param {string} name @param {Child[]} children */
function labelled(name, children) {
  return element("dd", {}, `${name}: `, ...children);
}
