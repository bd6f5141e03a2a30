/**
 * The numbers of the privacy label, from the channels alone, in exact integers, rounded against us.
 */

/**
 * @typedef {import("./mechanism.js").SubsetSelection} Channel
 * @typedef {{channel: Channel}} Protected  a question, as far as the label needs it
 */

/** Above this e^epsilon (epsilon 8) all answers together are protected little. */
const LITTLE = 2980n;

/**
 * Of 100 people, how many reports name a given option: if it is their answer, and if another is.
 *
 *     own = 100 dT/M,  other = 100 d((d-1)T + (k-d)L) / (M(k-1)),  M = dT + (k-d)L
 *
 * Tenths, rounded half up: these are the only figures of the label that are not bounds.
 *
 * @param {Channel} channel
 * @returns {{own: string, other: string}}
 */
export function frequencies(channel) {
  const [k, d, T, L] = [channel.k, channel.d, channel.T, channel.L].map(BigInt);
  const M = d * T + (k - d) * L;
  return {
    own: perHundred(d * T, M),
    other: perHundred(d * ((d - 1n) * T + (k - d) * L), M * (k - 1n)),
  };
}

/**
 * The factor by which one report can at most multiply anyone's odds: T/L, rounded up to a tenth.
 *
 * @param {Channel} channel
 * @returns {string}
 */
export function oddsFactor({ T, L }) {
  return fromTenths(ceilDivide(10n * BigInt(T), BigInt(L)));
}

/**
 * What a suspicion of 10% and of 50% can at most become, in whole per cent, rounded up.
 *
 *     posterior = prior T / (prior T + (1 - prior) L)
 *
 * 100 means above 99%, never certainty: every report is possible under every answer.
 *
 * @param {Channel} channel
 * @returns {{from10: number, from50: number}}
 */
export function posteriorBounds(channel) {
  const [T, L] = [BigInt(channel.T), BigInt(channel.L)];
  return {
    from10: Number(ceilDivide(100n * T, T + 9n * L)),
    from50: Number(ceilDivide(100n * T, T + L)),
  };
}

/**
 * The odds factor of all questions together: the product of T/L, rounded up.
 *
 * @param {readonly Protected[]} asked
 * @returns {string}
 */
export function totalOddsFactor(asked) {
  const { product, base } = ratioOfAll(asked);
  return grouped(ceilDivide(product, base));
}

/**
 * Whether all answers together are protected little: epsilon above 8.
 *
 * @param {readonly Protected[]} asked
 */
export function isProtectedLittle(asked) {
  const { product, base } = ratioOfAll(asked);
  return product > LITTLE * base;
}

/**
 * The first question whose report says most.
 *
 * @template {Protected} Q
 * @param {readonly Q[]} asked
 * @returns {Q}
 */
export function leastProtected(asked) {
  return asked.reduce((least, question) => (saysMore(question, least) ? question : least));
}

/**
 * Whether one question's report says more than another's: T/L > T'/L'.
 *
 * @param {Protected} one
 * @param {Protected} other
 */
function saysMore({ channel: one }, { channel: other }) {
  return BigInt(one.T) * BigInt(other.L) > BigInt(other.T) * BigInt(one.L);
}

/** @param {readonly Protected[]} asked */
function ratioOfAll(asked) {
  return {
    product: asked.reduce((product, { channel }) => product * BigInt(channel.T), 1n),
    base: asked.reduce((product, { channel }) => product * BigInt(channel.L), 1n),
  };
}

/** @param {bigint} weight @param {bigint} total */
function perHundred(weight, total) {
  return fromTenths((2000n * weight + total) / (2n * total));
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
