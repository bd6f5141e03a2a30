/**
 * The privacy label as people read it: every sentence and figure computed from the channels.
 */

import { element, surveyText } from "./dom.js";
import {
  frequencies,
  isProtectedLittle,
  leastProtected,
  oddsFactor,
  posteriorBounds,
  totalOddsFactor,
} from "./label.js";
import { questions } from "./report.js";
import { words } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 */

/**
 * Natural frequencies of one question, for its first option that says something.
 *
 * @param {Question} question
 */
export function frequencySentence({ options, opt_out: optOut, channel }) {
  const own = options.find((option) => option.id !== optOut) ?? options[0];
  const other = options.find((option) => option !== own) ?? own;
  const of = frequencies(channel);
  const sentence =
    channel.k === 2
      ? words.label.frequencyOfTwo(own.label, other.label, of)
      : words.label.frequencyOfMany(own.label, of);
  return channel.d === 1 ? sentence : `${words.label.severalNamed(channel.d)} ${sentence}`;
}

/**
 * What one report of a question can at most do.
 *
 * @param {Question} question
 */
export function boundSentence({ channel }) {
  return words.label.bounds(oddsFactor(channel), posteriorBounds(channel));
}

/**
 * The frequencies of the question that is protected least, introduced by its text.
 *
 * @param {Definition} definition
 */
export function leastProtectedExample(definition) {
  const asked = questions(definition);
  const least = leastProtected(asked);
  const alike = asked.every(({ channel }) => oddsFactor(channel) === oddsFactor(least.channel));
  return element(
    "div",
    { class: "example" },
    element("p", { class: "quiet" }, alike ? words.start.example : words.start.least),
    element("p", { class: "asked", ...surveyText(definition) }, least.text),
    element("p", {}, frequencySentence(least)),
  );
}

/**
 * A table with one row per question.
 *
 * @param {Definition} definition
 */
export function protectionTable(definition) {
  const { caption, columns } = words.label;
  // The roles are explicit: on narrow screens the rows are laid out as blocks, and browsers then
  // no longer call it a table.
  return element(
    "table",
    { role: "table", class: "protection" },
    element("caption", {}, caption),
    element(
      "thead",
      { role: "rowgroup" },
      element(
        "tr",
        { role: "row" },
        ...columns.map((text) => element("th", { scope: "col", role: "columnheader" }, text)),
      ),
    ),
    element(
      "tbody",
      { role: "rowgroup" },
      ...questions(definition).map((question) => protectionRow(definition, question)),
    ),
  );
}

/** @param {Definition} definition @param {Question} question */
function protectionRow(definition, { text, channel }) {
  const { share, percent, columns } = words.label;
  const { own, other } = frequencies(channel);
  const { from10, from50 } = posteriorBounds(channel);
  const cells = [share(own), share(other), oddsFactor(channel), percent(from10), percent(from50)];
  return element(
    "tr",
    { role: "row" },
    element("th", { scope: "row", role: "rowheader", ...surveyText(definition) }, text),
    ...cells.map((cell, i) =>
      element("td", { role: "cell", "data-label": columns[i + 1] }, element("span", {}, cell)),
    ),
  );
}

/**
 * What all answers give away together, with a warning when that is much.
 *
 * @param {Definition} definition
 */
export function togetherNote(definition) {
  const asked = questions(definition);
  return element("p", {}, words.label.together(totalOddsFactor(asked)));
}

/**
 * The warning for surveys whose answers together are protected little; none for others.
 *
 * @param {Definition} definition
 * @returns {HTMLElement[]}
 */
export function littleWarning(definition) {
  if (!isProtectedLittle(questions(definition))) return [];
  const { little, littleMeans } = words.label;
  return [element("p", { class: "notice" }, element("strong", {}, little), ` ${littleMeans}`)];
}

/**
 * What is not protected, and the two fingerprints by which to check the page.
 *
 * @param {Definition} definition
 * @param {string} clientHash
 */
export function openSides(definition, clientHash) {
  const { openHeading, open, definition: text, code } = words.label;
  return element(
    "section",
    {},
    element("h3", {}, openHeading),
    element("ul", {}, ...open.map((side) => element("li", {}, side))),
    element(
      "dl",
      { class: "fingerprints" },
      ...fingerprint(text, definition.id),
      ...fingerprint(code, clientHash),
    ),
  );
}

/** @param {string} name @param {string} hash */
function fingerprint(name, hash) {
  return [element("dt", {}, name), element("dd", {}, element("code", {}, hash))];
}
