/**
 * What was sent: the report question by question, what it means, and its exact bytes.
 */

import { element, listed, paragraph, surveyElement } from "./dom.js";
import { readCode, reportCodes, saysAnswers } from "./report-reader.js";
import { questions } from "./sampling.js";
import { figure, say } from "./words.js";

/**
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./view-delivery.js").Known} Known
 * @typedef {import("./definition.js").Question} Question
 */

/**
 * The report question by question, what it means, and its exact bytes.
 *
 * @param {Known} definition
 * @param {string} body
 * @param {string} warning
 */
export function whatWasSent(definition, body, warning) {
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
export function isReplaced(definition) {
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
 * @param {Question} question
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

/** @param {string} what @param {Child[]} children */
function labelled(what, children) {
  return element("dd", {}, `${what}: `, ...children);
}
