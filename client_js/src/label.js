/**
 * The privacy label: what a report can say about an answer, in words and in a table.
 */

import { element, quoted, surveyElement } from "./dom.js";
import { frequencies } from "./frequencies.js";
import {
  boundIn,
  bounds,
  isProtectedLittle,
  leastProtected,
  oddsFactor,
  posteriorBounds,
  totalOddsFactor,
} from "./privacy-loss.js";
import { namesOptions } from "./report-reader.js";
import { questions } from "./sampling.js";
import { figure, pieces, say } from "./words.js";

/**
 * @typedef {import("./mechanism.js").BitVector} BitVector
 * @typedef {import("./privacy-loss.js").Bound} Bound
 * @typedef {import("./mechanism.js").Channel} Channel
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 */

/**
 * Natural frequencies of one question, for its first option; reports that name none need other words.
 *
 * @param {Definition} definition
 * @param {Question} question
 */
export function frequencyParagraph(definition, question) {
  const { type, channel, options } = question;
  if (!namesOptions(question)) return element("p", {}, say("label.everyReport"));
  const of = frequencies(question);
  const [own, other] = options.map(({ label }) => quoted(definition, label));
  const values = { own, other, ownShare: about(of.own), otherShare: about(of.other) };
  const several = channel.kind === "subset_selection" && channel.d > 1;
  return element(
    "p",
    {},
    ...(several ? [say("label.severalNamed", { count: channel.d }), " "] : []),
    ...(isSampled(channel)
      ? pieces("label.frequencyOfSampledTick", {
          ...values,
          sampled: channel.sampled,
          m: channel.m,
        })
      : pieces(frequencyKey(type, channel, options.length), values)),
    ...(definition.sampling ? [" ", say("label.ofAsked")] : []),
  );
}

/**
 * @param {string} type
 * @param {Channel} channel
 * @param {number} options
 */
function frequencyKey(type, channel, options) {
  if (type === "multiple_choice") return "label.frequencyOfTick";
  if (options === 2) return "label.frequencyOfTwo";
  const isTable = channel.kind === "weight_table";
  return isTable ? "label.frequencyOfRarest" : "label.frequencyOfMany";
}

/** A share of 100 that rounds to nothing is still possible. @param {string} tenths */
function about(tenths) {
  if (tenths === "0") return say("label.fewer", { n: figure("0.1") });
  return say("label.about", { n: figure(tenths) });
}

/**
 * Whether a report speaks of some of the options only.
 *
 * @param {Channel} channel
 * @returns {channel is BitVector}
 */
function isSampled(channel) {
  return channel.kind === "bit_vector" && channel.sampled < channel.m;
}

/**
 * What one report can at most do about an answer.
 *
 * @param {Bound} bound
 */
export function boundSentence(bound) {
  const { from10, from50 } = posteriorBounds(bound);
  return say(bound.linked ? "label.linkedBounds" : "label.bounds", {
    factor: figure(oddsFactor(bound)),
    from10: becomes(from10),
    from50: becomes(from50),
  });
}

/** What a suspicion becomes; the bound rounds up, so 100 would say too much. @param {number} percent */
function becomes(percent) {
  return percent > 99 ? say("label.becomesNearly") : say("label.becomes", { percent });
}

/**
 * The frequencies of the question that is protected least, introduced by its text.
 *
 * @param {Definition} definition
 */
export function leastProtectedExample(definition) {
  const asked = questions(definition);
  const least = leastProtected(asked);
  const of = bounds(asked);
  const bound = boundIn(of, least.id);
  const alike = [...of.values()].every((one) => oddsFactor(one) === oddsFactor(bound));
  return element(
    "div",
    { class: "example" },
    element("p", { class: "quiet" }, alike ? say("start.example") : say("start.least")),
    surveyElement("p", definition, least.text, { class: "asked" }),
    frequencyParagraph(definition, least),
    ...(namesOptions(least) && !bound.linked
      ? []
      : [element("p", { class: "bound" }, boundSentence(bound))]),
  );
}

/**
 * A table with one row per question.
 *
 * @param {Definition} definition
 */
export function protectionTable(definition) {
  const asked = questions(definition);
  const columns = [say("label.columnQuestion"), ...columnTexts()];
  const of = bounds(asked);
  // The roles are explicit: on narrow screens the rows are laid out as blocks, and browsers then
  // no longer call it a table.
  return element(
    "table",
    { role: "table", class: "protection" },
    element("caption", {}, say("label.caption"), ...tableNotes(definition, of)),
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
      ...asked.map((question) => protectionRow(definition, question, boundIn(of, question.id))),
    ),
  );
}

/** What stands above the numbers of the table. */
function columnTexts() {
  return [
    say("label.columnOwn"),
    say("label.columnOther"),
    say("label.columnOdds"),
    say("label.columnFrom10"),
    say("label.columnFrom50"),
  ];
}

/**
 * Under which conditions the numbers of the table hold.
 *
 * @param {Definition} definition
 * @param {Map<string, Bound>} of
 */
function tableNotes(definition, of) {
  const isAnySampled = questions(definition).some(({ channel }) => isSampled(channel));
  const notes = [
    ...(definition.sampling ? [say("label.ofAsked")] : []),
    ...(isAnySampled ? [say("label.ofSampled")] : []),
    ...([...of.values()].some(({ linked }) => linked) ? [say("label.ofLinked")] : []),
  ];
  return notes.map((note) => element("span", { class: "note" }, note));
}

/** @param {Definition} definition @param {Question} question @param {Bound} bound */
function protectionRow(definition, question, bound) {
  const columns = columnTexts();
  const noShare = say("label.noShare");
  const { own, other } = frequencies(question);
  const shares = namesOptions(question) ? [share(own), share(other)] : [noShare, noShare];
  const { from10, from50 } = posteriorBounds(bound);
  const cells = [...shares, figure(oddsFactor(bound)), percent(from10), percent(from50)];
  return element(
    "tr",
    { role: "row" },
    surveyElement("th", definition, question.text, { scope: "row", role: "rowheader" }),
    ...cells.map((cell, i) =>
      element(
        "td",
        {
          role: "cell",
          "data-label": columns[i],
          ...(cell === noShare ? { class: "bare" } : {}),
        },
        element("span", {}, cell),
      ),
    ),
  );
}

/** @param {string} tenths */
function share(tenths) {
  return tenths === "0" ? say("label.shareFewer", { n: figure("0.1") }) : figure(tenths);
}

/** @param {number} whole */
function percent(whole) {
  return whole > 99 ? say("label.percentNearly") : say("label.percent", { n: whole });
}

/**
 * What all answers give away together, with a warning when that is much.
 *
 * @param {Definition} definition
 */
export function togetherNote(definition) {
  return element("p", {}, say("label.together", { factor: figure(totalOddsFactor(definition)) }));
}

/**
 * The warning for surveys whose answers together are protected little; none for others.
 *
 * @param {Definition} definition
 * @returns {HTMLElement[]}
 */
export function littleWarning(definition) {
  if (!isProtectedLittle(definition)) return [];
  const warning = element("strong", {}, say("label.little"));
  return [element("p", { class: "notice" }, warning, ` ${say("label.littleMeans")}`)];
}

/**
 * What is not protected, and the two fingerprints by which to check the page.
 *
 * @param {Definition} definition
 * @param {string} clientHash
 */
export function openSides(definition, clientHash) {
  const open = [
    say("label.openPart"),
    say("label.openAddress"),
    say("label.openDevice"),
    say("label.openCode"),
  ];
  return element(
    "section",
    {},
    element("h3", {}, say("label.openHeading")),
    element("ul", {}, ...open.map((side) => element("li", {}, side))),
    element(
      "dl",
      { class: "fingerprints" },
      ...fingerprint(say("label.definition"), definition.id),
      ...fingerprint(say("label.code"), clientHash),
    ),
  );
}

/** @param {string} name @param {string} hash */
function fingerprint(name, hash) {
  return [element("dt", {}, name), element("dd", {}, element("code", {}, hash))];
}
