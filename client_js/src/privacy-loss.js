/**
 * Privacy loss in exact numbers: e^epsilon of a channel, of linked questions and of a whole report.
 *
 * Every number is rounded up.
 */

import { isEntered, patterns, questions, RANKING } from "./answers.js";
import { halfSpaceRatio, tickWeights } from "./half-space.js";
import { columnExtremes, tableRow, tableTruths, total } from "./weight-table.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./mechanism.js").BitVector} BitVector
 * @typedef {import("./mechanism.js").Channel} Channel
 * @typedef {import("./mechanism.js").Ratio} Ratio
 * @typedef {import("./mechanism.js").SubsetSelection} SubsetSelection
 * @typedef {import("./mechanism.js").WeightTable} WeightTable
 * @typedef {Ratio & {linked: boolean, joint?: true}} Bound  e^epsilon of one question; `linked`: it
 *   includes the linked questions; `joint`: it is that of a joint response
 * @typedef {"strong" | "moderate" | "weak"} Strength
 */

/**
 * Return e^epsilon of a channel exactly.
 *
 *     T/L,  (T/L)^min(sampled, D),  near (2^m - G)/(far G),  or the largest ratio within a column of
 *     the table
 *
 * @param {Channel} channel
 * @returns {Ratio}
 */
export function ratio(channel) {
  if (channel.kind === "weight_table") return columnExtremes(channel.table).ratio;
  if (channel.kind === "half_space") return halfSpaceRatio(channel);
  const exponent = channel.kind === "bit_vector" ? differingBits(channel) : 1n;
  return { numerator: BigInt(channel.T) ** exponent, denominator: BigInt(channel.L) ** exponent };
}

/**
 * Return the number of reported bits in which two truths can differ: D = max(min(m - alone, 2s),
 * s + 1, 2), where the last two need one and two exclusive options, and at most `sampled`.
 *
 * @param {BitVector} channel
 */
function differingBits({ m, s, alone, sampled }) {
  const D = Math.max(Math.min(m - alone, 2 * s), alone >= 1 ? s + 1 : 0, alone >= 2 ? 2 : 0);
  return BigInt(Math.min(sampled, D));
}

/** The largest odds factor, e^epsilon, of strong protection. */
const STRONG_ODDS = 3n;

/** Above this e^epsilon, a question, or a whole report, is weakly protected. */
const WEAK_QUESTION_ABOVE = 9n;
const WEAK_REPORT_ABOVE = 20n;

/**
 * Return the bound of every question. An answer that hides later questions also determines their
 * truths, so all questions linked by `ask_if` reveal something about each other's answers. So does a
 * joint response: to somebody who knows one answer it reveals the other by as much as its e^epsilon.
 *
 *     e^epsilon of a question = product of e^epsilon over all questions linked to it
 *
 * @param {readonly Question[]} questions
 * @returns {Map<string, Bound>}
 */
export function bounds(questions) {
  const roots = linkRoots(questions);
  /** @type {Map<string, Bound>} */
  const groups = new Map();
  for (const question of questions) {
    const root = roots.get(question.id) ?? question.id;
    const group = groups.get(root);
    const ownRatio = reportRatio(question);
    groups.set(root, {
      ...(group ? productOf([group, ownRatio]) : ownRatio),
      linked: group !== undefined,
      ...(question.joint ? { joint: true } : {}),
    });
  }
  return new Map(questions.map(({ id }) => [id, boundIn(groups, roots.get(id) ?? id)]));
}

/**
 * Return the first question of each linked group. A question depends on at most one earlier question,
 * or is in a joint response.
 *
 * @param {readonly Question[]} questions
 * @returns {Map<string, string>}
 */
function linkRoots(questions) {
  /** @type {Map<string, string>} */
  const roots = new Map();
  for (const { id, ask_if: condition, joint } of questions) {
    const first = joint?.questions[0] ?? condition?.question ?? id;
    roots.set(id, roots.get(first) ?? id);
  }
  return roots;
}

/**
 * Return e^epsilon of a question's report; a joint report counts at the first of its questions.
 *
 * @param {Question} question
 * @returns {Ratio}
 */
function reportRatio({ id, channel, joint }) {
  if (!joint) return ratio(channel);
  return joint.questions[0] === id ? ratio(joint.channel) : productOf([]);
}

/** @param {Map<string, Bound>} allBounds @param {string} id @returns {Bound} */
export function boundIn(allBounds, id) {
  const bound = allBounds.get(id);
  if (!bound) throw new RangeError();
  return bound;
}

/**
 * Return e^epsilon of all that one respondent sends about each topic, by topic: the product over its
 * questions and those linked to them, or over the drawn groups in which these reveal most.
 *
 * @param {Pick<Definition, "pages" | "sampling">} definition
 * @returns {Map<string, Ratio>}
 */
export function topicRatios(definition) {
  const all = questions(definition);
  const roots = linkRoots(all);
  const topics = new Set(all.flatMap(({ topic }) => topic ?? []));
  return new Map(
    [...topics].map((topic) => {
      const topicRoots = new Set(
        all.filter((q) => q.topic === topic).map(({ id }) => roots.get(id)),
      );
      const linked = all.filter(({ id }) => topicRoots.has(roots.get(id)));
      return [topic, drawnRatio(linked, definition.sampling)];
    }),
  );
}

/**
 * Return e^epsilon of one respondent's reports on these questions: the product over all of them, or
 * over the drawn groups in which they reveal most.
 *
 * @param {Question[]} questions
 * @param {Definition["sampling"]} sampling
 * @returns {Ratio}
 */
function drawnRatio(questions, sampling) {
  const groups = sampling?.groups ?? [questions.map(({ id }) => id)];
  const ratios = groups
    .map((group) => questions.filter(({ id }) => group.includes(id)))
    .map((members) => productOf(members.map(reportRatio)))
    .sort((a, b) => (exceeds(b, a) ? 1 : -1));
  return productOf(ratios.slice(0, sampling?.draw ?? 1));
}

/**
 * Return the factor by which reports change anyone's odds at most: below 10 rounded up to a tenth,
 * from 10 on to a whole number. A question, a topic and a whole report follow the same rule.
 *
 * @param {Ratio} ratio
 * @returns {string}
 */
export function oddsFactor({ numerator, denominator }) {
  if (numerator >= 10n * denominator) return grouped(ceilDivide(numerator, denominator));
  return fromTenths(ceilDivide(10n * numerator, denominator));
}

/**
 * Return what suspicions of 10% and 50% become at most, in whole per cent, rounded up.
 *
 *     posterior = prior R / (prior R + (1 - prior)),  R = e^epsilon
 *
 * 100 means above 99%, not certainty: every report is possible under every answer.
 *
 * @param {Ratio} ratio
 * @returns {{from10: number, from50: number}}
 */
export function posteriorBounds({ numerator, denominator }) {
  return {
    from10: Number(ceilDivide(100n * numerator, numerator + 9n * denominator)),
    from50: Number(ceilDivide(100n * numerator, numerator + denominator)),
  };
}

/**
 * Return the protection of one question, or of all questions about one topic.
 *
 * @param {Ratio} bound
 */
export function questionStrength(bound) {
  return strength(bound, WEAK_QUESTION_ABOVE);
}

/**
 * Return the protection of a whole report: weak if that of a question or of a topic is.
 *
 * @param {Definition} definition
 * @param {Ratio} [total]  e^epsilon of this report, or of it and the earlier surveys' reports
 */
export function reportStrength(definition, total = totalRatio(definition)) {
  const parts = [...bounds(questions(definition)).values(), ...topicRatios(definition).values()];
  const isAnyWeak = parts.some((part) => questionStrength(part) === "weak");
  return isAnyWeak ? "weak" : strength(total, WEAK_REPORT_ABOVE);
}

/** Return whether the lines together exceed the limit for a report. @param {Ratio} total */
export function isWeakTogether(total) {
  return exceeds(total, { numerator: WEAK_REPORT_ABOVE, denominator: 1n });
}

/** @param {Ratio} ratio @param {bigint} weakAbove @returns {Strength} */
function strength(ratio, weakAbove) {
  if (exceeds(ratio, { numerator: weakAbove, denominator: 1n })) return "weak";
  return exceeds(ratio, { numerator: STRONG_ODDS, denominator: 1n }) ? "moderate" : "strong";
}

/**
 * Whether the page may promise that no single line proves an answer.
 *
 * @param {Definition} definition
 */
export function provesNothing(definition) {
  return reportStrength(definition) !== "weak";
}

/**
 * Return each question, or the first row of each matrix, with the bound of all rows together: one
 * respondent answers them all.
 *
 * @param {readonly Question[][]} groups
 * @param {readonly Question[]} [questions]  of which some may be linked to these
 * @returns {{question: Question, bound: Bound}[]}
 */
export function groupBounds(groups, questions = groups.flat()) {
  const allBounds = bounds(questions);
  return groups.map((group) => {
    // Linked rows share one bound, which counts once.
    const shared = [...new Set(group.map(({ id }) => boundIn(allBounds, id)))];
    return { question: group[0], bound: { ...shared[0], ...productOf(shared) } };
  });
}

/**
 * Return the first part with the largest bound.
 *
 * @param {ReturnType<typeof groupBounds>} parts
 */
export function leastProtected(parts) {
  return parts.reduce((weakest, part) => (exceeds(part.bound, weakest.bound) ? part : weakest));
}

/**
 * Return e^epsilon of a whole report: the product over all questions, or over the drawn groups that
 * reveal most.
 *
 * @param {Pick<Definition, "pages" | "sampling">} definition
 * @returns {Ratio}
 */
export function totalRatio(definition) {
  return drawnRatio(questions(definition), definition.sampling);
}

/** @param {Ratio[]} ratios @returns {Ratio} */
export function productOf(ratios) {
  return {
    numerator: ratios.reduce((product, { numerator }) => product * numerator, 1n),
    denominator: ratios.reduce((product, { denominator }) => product * denominator, 1n),
  };
}

/** @param {Ratio} a @param {Ratio} b */
function exceeds(a, b) {
  return a.numerator * b.denominator > b.numerator * a.denominator;
}

/** @param {bigint} dividend @param {bigint} divisor */
function ceilDivide(dividend, divisor) {
  return (dividend + divisor - 1n) / divisor;
}

/** @param {bigint} tenths */
function fromTenths(tenths) {
  const whole = grouped(tenths / 10n);
  return tenths % 10n === 0n ? whole : `${whole}.${tenths % 10n}`;
}

/** @param {bigint} value */
function grouped(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * @typedef {Pick<Question, "type" | "channel" | "options" | "alone" | "max_ticks">} Protected
 *   the parts of a question that its frequencies need
 * @typedef {{ownWeight: bigint, otherWeight: bigint, totalWeight: bigint}} Weights
 *   the shares are own = ownWeight/totalWeight and other = otherWeight/totalWeight
 */

/**
 * Return how many of 100 reports name the first option: `ownShare` among people who chose it,
 * `otherShare` among people who did not.
 *
 * Both are rounded half up to a tenth: they are the label's only numbers that are not bounds. Both
 * are "" for numbers, dates and rankings, whose reports do not name an option as the answer.
 *
 * @param {Protected} question
 * @returns {{ownShare: string, otherShare: string}}
 */
export function frequencies(question) {
  if (isEntered(question.type) || question.type === RANKING) {
    return { ownShare: "", otherShare: "" };
  }
  const { ownWeight, otherWeight, totalWeight } = firstOptionWeights(question);
  return {
    ownShare: perHundred(ownWeight, totalWeight),
    otherShare: perHundred(otherWeight, totalWeight),
  };
}

/** @param {Protected} question @returns {Weights} */
function firstOptionWeights(question) {
  const { channel } = question;
  if (channel.kind === "weight_table") return tableWeights(channel);
  if (channel.kind === "half_space") return tickWeights(channel);
  const [T, L] = [BigInt(channel.T), BigInt(channel.L)];
  if (channel.kind === "bit_vector") return { ownWeight: T, otherWeight: L, totalWeight: T + L };
  return question.type === "multiple_choice" ? patternWeights(question) : setWeights(channel);
}

/**
 *     own = dT/M,  other = d((d-1)T + (k-d)L) / (M(k-1)),  M = dT + (k-d)L
 *
 * @param {SubsetSelection} channel
 */
function setWeights(channel) {
  const [k, d, T, L] = [channel.k, channel.d, channel.T, channel.L].map(BigInt);
  const M = d * T + (k - d) * L;
  return {
    ownWeight: d * T * (k - 1n),
    otherWeight: d * ((d - 1n) * T + (k - d) * L),
    totalWeight: M * (k - 1n),
  };
}

/**
 *     own = (T + (N-1)L)/M,  other = N L/M,  M = T + (k-1)L,  N patterns contain the option
 *
 * @param {Protected} question
 */
function patternWeights(question) {
  const { k, T, L } = /** @type {SubsetSelection} */ (question.channel);
  const N = patterns(question).filter((pattern) => pattern.includes(0)).length;
  return {
    ownWeight: BigInt(T + (N - 1) * L),
    otherWeight: BigInt(N * L),
    totalWeight: BigInt(T + (k - 1) * L),
  };
}

/**
 *     own = W[0][0]/M,  other = the smallest W[i][0]/M of another truth
 *
 * @param {WeightTable} channel
 */
function tableWeights(channel) {
  const truths = tableTruths(channel.table) + channel.no_answers;
  const ownRow = tableRow(channel, 0);
  const otherWeights = Array.from({ length: truths - 1 }, (_, i) => tableRow(channel, i + 1)[0]);
  return {
    ownWeight: BigInt(ownRow[0]),
    otherWeight: BigInt(Math.min(...otherWeights)),
    totalWeight: BigInt(total(ownRow)),
  };
}

/** @param {bigint} weight @param {bigint} totalWeight */
function perHundred(weight, totalWeight) {
  return fromTenths((2000n * weight + totalWeight) / (2n * totalWeight));
}
