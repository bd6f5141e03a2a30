/**
 * Privacy loss in exact numbers: e^epsilon of a channel, of linked questions, of a whole report.
 *
 * Every figure is rounded up, against us.
 */

import { columnExtremes } from "./weight-table.js";

/**
 * @typedef {import("./mechanism.js").BitVector} BitVector
 * @typedef {import("./mechanism.js").Channel} Channel
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./mechanism.js").Ratio} Ratio
 * @typedef {Ratio & {linked: boolean}} Bound  what one report can do about one question at most;
 *   `linked`: together with the reports of other questions
 */

/**
 * e^epsilon of a channel, exactly.
 *
 *     T/L,  (T/L)^min(sampled, D),  or the largest ratio within a column of the table
 *
 * @param {Channel} channel
 * @returns {Ratio}
 */
export function ratio(channel) {
  if (channel.kind === "weight_table") return columnExtremes(channel.table).ratio;
  const exponent = channel.kind === "bit_vector" ? differingBits(channel) : 1n;
  return { most: BigInt(channel.T) ** exponent, least: BigInt(channel.L) ** exponent };
}

/**
 * In how many reported bits two truths can differ: D = max(min(m - alone, 2s), s + 1, 2), as far as
 * there are options that stand alone, and never more than are reported.
 *
 * @param {BitVector} channel
 */
function differingBits({ m, s, alone, sampled }) {
  const D = Math.max(Math.min(m - alone, 2 * s), alone >= 1 ? s + 1 : 0, alone >= 2 ? 2 : 0);
  return BigInt(Math.min(sampled, D));
}

/** Above this e^epsilon (epsilon 8) all answers together are protected little. */
const LITTLE = 2980n;

/**
 * What a report can do about every question. An answer that decides what is asked also decides the
 * truths of those questions: all that hang together by `ask_if` report on each other's answers.
 *
 *     e^epsilon of a question = product of e^epsilon over all questions linked to it
 *
 * @param {readonly Question[]} asked
 * @returns {Map<string, Bound>}
 */
export function bounds(asked) {
  const roots = linkRoots(asked);
  /** @type {Map<string, Bound>} */
  const groups = new Map();
  for (const { id, channel } of asked) {
    const root = roots.get(id) ?? id;
    const group = groups.get(root);
    const own = ratio(channel);
    groups.set(root, { ...(group ? productOf([group, own]) : own), linked: group !== undefined });
  }
  return new Map(asked.map(({ id }) => [id, boundIn(groups, roots.get(id) ?? id)]));
}

/**
 * The first question of those that hang together: each is asked after one earlier question at most.
 *
 * @param {readonly Question[]} asked
 * @returns {Map<string, string>}
 */
function linkRoots(asked) {
  /** @type {Map<string, string>} */
  const roots = new Map();
  for (const { id, ask_if: condition } of asked) {
    roots.set(id, condition ? (roots.get(condition.question) ?? id) : id);
  }
  return roots;
}

/** @param {Map<string, Bound>} of @param {string} id @returns {Bound} */
export function boundIn(of, id) {
  const bound = of.get(id);
  if (!bound) throw new RangeError(`no question ${id}`);
  return bound;
}

/**
 * The factor by which one report can at most multiply anyone's odds, rounded up to a tenth.
 *
 * @param {Ratio} ratio
 * @returns {string}
 */
export function oddsFactor({ most, least }) {
  return fromTenths(ceilDivide(10n * most, least));
}

/**
 * What a suspicion of 10% and of 50% can at most become, in whole per cent, rounded up.
 *
 *     posterior = prior R / (prior R + (1 - prior)),  R = e^epsilon
 *
 * 100 means above 99%, never certainty: every report is possible under every answer.
 *
 * @param {Ratio} ratio
 * @returns {{from10: number, from50: number}}
 */
export function posteriorBounds({ most, least }) {
  return {
    from10: Number(ceilDivide(100n * most, most + 9n * least)),
    from50: Number(ceilDivide(100n * most, most + least)),
  };
}

/**
 * The odds factor of all questions one person is asked, rounded up.
 *
 * @param {Definition} definition
 * @returns {string}
 */
export function totalOddsFactor(definition) {
  const { most, least } = totalRatio(definition);
  return grouped(ceilDivide(most, least));
}

/**
 * Whether all answers together are protected little: epsilon above 8.
 *
 * @param {Definition} definition
 */
export function isProtectedLittle(definition) {
  const { most, least } = totalRatio(definition);
  return most > LITTLE * least;
}

/**
 * The first question of which a report says most.
 *
 * @param {readonly Question[]} asked
 * @returns {Question}
 */
export function leastProtected(asked) {
  const of = bounds(asked);
  return asked.reduce((least, question) =>
    exceeds(boundIn(of, question.id), boundIn(of, least.id)) ? question : least,
  );
}

/**
 * e^epsilon of all that one person is asked: the product over all questions, or over the groups
 * drawn when they are the ones that say most.
 *
 * @param {Pick<Definition, "pages" | "sampling">} definition
 * @returns {Ratio}
 */
export function totalRatio({ pages, sampling }) {
  const asked = pages.flatMap((page) => page.questions);
  const groups = sampling?.groups ?? [asked.map(({ id }) => id)];
  return groups
    .map((group) => asked.filter(({ id }) => group.includes(id)))
    .map((members) => productOf(members.map(({ channel }) => ratio(channel))))
    .sort((one, other) => (exceeds(other, one) ? 1 : -1))
    .slice(0, sampling?.draw ?? 1)
    .reduce((product, group) => productOf([product, group]));
}

/** @param {Ratio[]} ratios @returns {Ratio} */
function productOf(ratios) {
  return {
    most: ratios.reduce((product, { most }) => product * most, 1n),
    least: ratios.reduce((product, { least }) => product * least, 1n),
  };
}

/** @param {Ratio} one @param {Ratio} other */
function exceeds(one, other) {
  return one.most * other.least > other.most * one.least;
}

/** @param {bigint} dividend @param {bigint} divisor */
function ceilDivide(dividend, divisor) {
  return (dividend + divisor - 1n) / divisor;
}

/** @param {bigint} tenths */
export function fromTenths(tenths) {
  const whole = grouped(tenths / 10n);
  return tenths % 10n === 0n ? whole : `${whole}.${tenths % 10n}`;
}

/** @param {bigint} value */
function grouped(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}
