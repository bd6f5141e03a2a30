/**
 * The privacy label: what a report can say about an answer, in words and in a table.
 */

import { headOf, questionGroups, questions } from "./answers.js";
import { element, paragraph, quoted, surveyElement } from "./dom.js";
import {
  boundIn,
  bounds,
  frequencies,
  groupBounds,
  isWeakTogether,
  leastProtected,
  oddsFactor,
  posteriorBounds,
  provesNothing,
  questionStrength,
  ratio,
  reportStrength,
  topicRatios,
  totalRatio,
} from "./privacy-loss.js";
import { namesOptions, saysAnswers } from "./report.js";
import { figure, gap, pieces, say } from "./texts.js";

/**
 * @typedef {import("./mechanism.js").BitVector} BitVector
 * @typedef {import("./privacy-loss.js").Bound} Bound
 * @typedef {import("./mechanism.js").Channel} Channel
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./mechanism.js").Ratio} Ratio
 */

/**
 * Explain a question by natural frequencies of its first option, if its reports name options.
 *
 * @param {Definition} definition
 * @param {Question} question
 */
function frequencyParagraph(definition, question) {
  const { type, channel, options } = question;
  const promise = provesNothing(definition) ? [gap(), say("label.notProof")] : [];
  if (!namesOptions(question)) return element("p", {}, say("label.everyReport"), ...promise);
  const shares = frequencies(question);
  const [own, other] = options.map(({ label }) => quoted(definition, label));
  const values = {
    own,
    other,
    ownShare: aboutText(shares.ownShare),
    otherShare: aboutText(shares.otherShare),
  };
  const namesSeveral = channel.kind === "subset_selection" && channel.d > 1;
  return element(
    "p",
    {},
    ...(namesSeveral ? [say("label.severalNamed", { count: channel.d }), gap()] : []),
    ...(isSampled(channel)
      ? pieces("label.frequencyOfSampledTick", {
          ...values,
          sampled: channel.sampled,
          m: channel.m,
        })
      : pieces(frequencyKey(type, channel, options.length), values)),
    ...promise,
    ...(definition.sampling ? [gap(), say("label.ofAsked")] : []),
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

/** Write a share of 100; one that rounds to 0 is still possible. @param {string} tenths */
function aboutText(tenths) {
  if (tenths === "0") return say("label.fewer", { n: figure("0.1") });
  return say("label.about", { n: figure(tenths) });
}

/**
 * Whether a report covers only some of the options.
 *
 * @param {Channel} channel
 * @returns {channel is BitVector}
 */
function isSampled(channel) {
  return channel.kind === "bit_vector" && channel.sampled < channel.m;
}

/**
 * Say how much the reports about a question, or about all rows of a matrix, can change a suspicion at
 * most.
 *
 * @param {Question} question
 * @param {Bound} bound
 */
function boundSentence({ matrix }, bound) {
  const together = bound.joint ? "label.jointBounds" : "label.linkedBounds";
  const alone = matrix ? "label.matrixBounds" : "label.bounds";
  return say(bound.linked ? together : alone, boundTexts(bound, questionStrength(bound)));
}

/** @param {Ratio} bound @param {import("./privacy-loss.js").Strength} strength */
function boundTexts(bound, strength) {
  const { from10, from50 } = posteriorBounds(bound);
  return {
    strength: strengthText(strength),
    factor: figure(oddsFactor(bound)),
    from10: suspicionText(from10),
    from50: suspicionText(from50),
  };
}

/** Grade the protection in a word. @param {import("./privacy-loss.js").Strength} strength */
function strengthText(strength) {
  return say(`label.${strength}`);
}

/** Say what a suspicion becomes; "100%" would say too much, because bounds round up. @param {number} percent */
function suspicionText(percent) {
  return percent > 99 ? say("label.becomesNearly") : say("label.becomes", { percent });
}

/**
 * Explain the protection of a question, or of all rows of a matrix.
 *
 * @param {Definition} definition
 * @param {ReturnType<typeof leastProtected>} part
 */
export function partProtection(definition, { question, bound }) {
  return [
    frequencyParagraph(definition, question),
    element("p", { class: "bound" }, boundSentence(question, bound)),
    ...questionWarning(question, bound),
  ];
}

/**
 * Show the least protected question, or matrix, with its frequencies.
 *
 * @param {Definition} definition
 */
export function leastProtectedExample(definition) {
  const parts = groupBounds(questionGroups(questions(definition)));
  const weakest = leastProtected(parts);
  const areEqual = parts.every(({ bound }) => oddsFactor(bound) === oddsFactor(weakest.bound));
  return element(
    "div",
    { class: "example" },
    element("p", { class: "quiet" }, areEqual ? say("start.example") : say("start.least")),
    surveyElement("p", definition, headOf(weakest.question), { class: "asked" }),
    ...partProtection(definition, weakest),
  );
}

/**
 * Create the table of protection, one row per topic and one per question.
 *
 * @param {Definition} definition
 */
export function protectionTable(definition) {
  const all = questions(definition);
  const columns = [say("label.columnQuestion"), ...columnTexts()];
  const allBounds = bounds(all);
  // Explicit roles, because narrow screens lay out the rows as blocks and browsers then drop
  // the table's semantics.
  return element(
    "table",
    { role: "table", class: "protection" },
    element("caption", {}, say("label.caption"), ...tableNotes(definition, allBounds)),
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
      ...[...topicRatios(definition)].map(([topic, ratio]) => topicRow(definition, topic, ratio)),
      ...all.map((question) =>
        protectionRow(definition, question, boundIn(allBounds, question.id)),
      ),
    ),
  );
}

/** Return the headings of the table's numbers. */
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
 * Return the conditions under which the table's numbers are true.
 *
 * @param {Definition} definition
 * @param {Map<string, Bound>} allBounds
 */
function tableNotes(definition, allBounds) {
  const isAnySampled = questions(definition).some(({ channel }) => isSampled(channel));
  const notes = [
    ...(definition.sampling ? [say("label.ofAsked")] : []),
    ...(isAnySampled ? [say("label.ofSampled")] : []),
    ...(isAny(allBounds, ({ linked, joint }) => linked && !joint) ? [say("label.ofLinked")] : []),
    ...(isAny(allBounds, ({ joint }) => joint === true) ? [say("label.ofJoint")] : []),
  ];
  return notes.map((note) => element("span", { class: "note" }, note));
}

/** @param {Map<string, Bound>} allBounds @param {(bound: Bound) => boolean} condition */
function isAny(allBounds, condition) {
  return [...allBounds.values()].some(condition);
}

/** @param {Definition} definition @param {Question} question @param {Bound} bound */
function protectionRow(definition, question, bound) {
  const { ownShare, otherShare } = frequencies(question);
  const shares = namesOptions(question) ? [share(ownShare), share(otherShare)] : [];
  const heading = { scope: "row", role: "rowheader" };
  return labelRow(surveyElement("th", definition, question.text, heading), shares, bound);
}

/** @param {Definition} definition @param {string} topic @param {Ratio} ratio */
function topicRow(definition, topic, ratio) {
  const heading = pieces("label.topic", { topic: quoted(definition, topic) });
  return labelRow(element("th", { scope: "row", role: "rowheader" }, ...heading), [], ratio);
}

/**
 * @param {HTMLElement} heading
 * @param {string[]} shares  empty if they do not exist
 * @param {Ratio} bound
 */
function labelRow(heading, shares, bound) {
  const columns = columnTexts();
  const noShare = say("label.noShare");
  const { from10, from50 } = posteriorBounds(bound);
  const bounds = [figure(oddsFactor(bound)), percent(from10), percent(from50)];
  const cells = [...(shares.length > 0 ? shares : [noShare, noShare]), ...bounds];
  return element(
    "tr",
    { role: "row" },
    heading,
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
 * Say how much all lines together, and those about each topic, can change the odds, and warn if
 * they are weakly protected.
 *
 * @param {Definition} definition
 * @param {boolean} [isSent]  whether advice comes too late
 * @returns {HTMLElement[]}
 */
export function wholeReport(definition, isSent = false) {
  const [figures, ...notices] = totalProtection(definition, totalRatio(definition), isSent);
  return [figures, ...topicList(definition), ...notices];
}

/**
 * Say how much lines together can change the odds, and warn if they are weakly protected.
 *
 * @param {Definition} definition
 * @param {Ratio} total  e^epsilon of its report, or of it and the earlier surveys' reports
 * @param {boolean} [isSent]  whether advice comes too late
 */
export function totalProtection(definition, total, isSent = false) {
  const strength = reportStrength(definition, total);
  const texts = boundTexts(total, strength);
  const grade = element("b", {}, say("label.together", texts));
  return [
    element("p", {}, grade, gap(), say("label.togetherBounds", texts)),
    ...(strength === "weak" ? [warning(weakProtectionText(total), isSent)] : []),
  ];
}

/** Say what weak protection means: of all lines together, or only of some. @param {Ratio} total */
function weakProtectionText(total) {
  return say(isWeakTogether(total) ? "label.littleMeans" : "label.littleMeansInPart");
}

/** List the topics of several questions; one question's own figure says as much. @param {Definition} definition */
function topicList(definition) {
  const all = questions(definition);
  const isShared = (/** @type {string} */ topic) =>
    all.filter((question) => question.topic === topic).length > 1;
  const rows = [...topicRatios(definition)].filter(([topic]) => isShared(topic));
  if (rows.length === 0) return [];
  return [element("ul", { class: "topics" }, ...rows.map((row) => topicSentence(definition, row)))];
}

/** @param {Definition} definition @param {[string, import("./mechanism.js").Ratio]} row */
function topicSentence(definition, [topic, topicRatio]) {
  const words = pieces("label.topicTogether", {
    topic: quoted(definition, topic),
    strength: strengthText(questionStrength(topicRatio)),
    factor: figure(oddsFactor(topicRatio)),
  });
  return element("li", {}, ...words);
}

/** Return the promise that no line is proof, where it is true enough. @param {Definition} definition */
export function noProof(definition) {
  return provesNothing(definition) ? [say("start.noProof")] : [];
}

/** Give a warning with its advice. @param {string} reason @param {boolean} isSent */
function warning(reason, isSent) {
  return paragraph(isSent ? reason : reason + gap() + say("label.careful"), "notice");
}

/**
 * Warn of a weakly protected question.
 *
 * @param {Question} question
 * @param {Bound} bound
 * @param {boolean} [isSent]  whether advice comes too late
 */
export function questionWarning(question, bound, isSent = false) {
  if (questionStrength(bound) !== "weak") return [];
  // A question that only its linked questions weaken does not send the true answer more often.
  const isWeakAlone = questionStrength(ratio(question.channel)) === "weak";
  const reason =
    isWeakAlone && saysAnswers(question) && question.type !== "multiple_choice"
      ? say("label.weakAnswer", { times: figure(frequencies(question).ownShare) })
      : say("label.weakQuestion");
  return [warning(reason, isSent)];
}

/** List what is not protected. */
export function unprotectedList() {
  const gaps = [
    say("label.openPart"),
    say("label.openAddress"),
    say("label.openDevice"),
    say("label.openCode"),
  ];
  return element(
    "section",
    {},
    element("h3", {}, say("label.openHeading")),
    element("ul", {}, ...gaps.map((side) => element("li", {}, side))),
  );
}
