/**
 * From answers to the one report that leaves the device, and in exact numbers what it can tell.
 *
 * Pure and enumerable; a report's length is constant, every figure is rounded against us.
 */

import { encodeBase64url, perturb, reportedOptions } from "./mechanism.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./mechanism.js").Code} Code
 * @typedef {import("./mechanism.js").SubsetSelection} Channel
 * @typedef {Readonly<Record<string, number>>} Answers  question id -> option index
 * @typedef {{question: Question, optOut: string}} Gap  an unanswered question; `optOut` is the label
 *   of the option it will count as, "" when it must be answered
 * @typedef {{stratum: string, invitation: string}} Link  what the link says about the report
 * @typedef {{channel: Channel}} Protected  a question, as far as its numbers need it
 */

/** @type {Link} */
const PLAIN_LINK = { stratum: "", invitation: "" };

/** A question that cannot be left out was not answered. */
export class UnansweredError extends Error {
  /** @param {string} question */
  constructor(question) {
    super(`question ${JSON.stringify(question)} has no answer and no opt-out`);
    this.name = "UnansweredError";
  }
}

/** The survey's reports have no room for what must be in them. */
export class ReportTooLongError extends Error {
  /** @param {number} needed @param {number} room */
  constructor(needed, room) {
    super(`a report needs ${needed} bytes, this survey's have ${room}`);
    this.name = "ReportTooLongError";
  }
}

/**
 * Every answer perturbed once, in the order of the questions, as the body of one request.
 *
 * @param {Definition} definition
 * @param {Answers} answers
 * @param {import("./random.js").UniformBelow} uniformBelow
 * @param {Uint8Array} idBytes  16 random bytes
 * @param {Link} [link]
 * @returns {string}
 */
export function makeReport(definition, answers, uniformBelow, idBytes, link = PLAIN_LINK) {
  if (idBytes.length !== 16) throw new RangeError(`an id has 16 bytes, not ${idBytes.length}`);
  // All truths are known before the first draw: a missing one must not waste randomness.
  const asked = questions(definition);
  const truths = asked.map((question) => truthOf(question, answers));
  const codes = asked.map(({ channel }, i) => perturb(channel, truths[i], uniformBelow));
  return padded(definition, encodeBase64url(idBytes), codes, link);
}

/**
 * The codes of a report, to show what was sent: whatever stands there, for a device may keep a
 * report that another version made or that was damaged.
 *
 * @param {string} body
 * @returns {unknown[]}
 */
export function reportCodes(body) {
  return JSON.parse(body).codes;
}

/**
 * The labels of the options a code names; none when it is no report of this question.
 *
 * @param {Question} question
 * @param {unknown} code
 * @returns {string[]}
 */
export function reportedLabels({ channel, options }, code) {
  try {
    return reportedOptions(channel, code).map((option) => options[option].label);
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
}

/**
 * Refuse a survey whose longest report would not fit, before anyone answers it.
 *
 * @param {Definition} definition
 * @param {Link} [link]
 */
export function checkRoom(definition, link = PLAIN_LINK) {
  const longest = questions(definition).map(({ channel: { k, d } }) =>
    d === 1 ? k - 1 : encodeBase64url(new Uint8Array((k + 7) >> 3)),
  );
  padded(definition, encodeBase64url(new Uint8Array(16)), longest, link);
}

/**
 * All questions, in the order of their codes.
 *
 * @param {Definition} definition
 */
export function questions(definition) {
  return definition.pages.flatMap((page) => page.questions);
}

/**
 * @param {Question} question
 * @param {Answers} answers
 */
function truthOf(question, answers) {
  if (Object.keys(answers).includes(question.id)) return answers[question.id];
  const optOut = question.options.findIndex((option) => option.id === question.opt_out);
  if (optOut < 0) throw new UnansweredError(question.id);
  return optOut;
}

/**
 * The body as text; its padding hides how many digits the codes have.
 *
 * @param {Definition} definition
 * @param {string} id
 * @param {Code[]} codes
 * @param {Link} link
 */
function padded(definition, id, codes, link) {
  const { stratum, invitation } = link;
  const open = JSON.stringify({
    definition: definition.id,
    report_id: id,
    stratum,
    codes,
    invitation,
    pad: "",
  });
  const needed = new TextEncoder().encode(open).length;
  const room = definition.report_bytes;
  if (needed > room) throw new ReportTooLongError(needed, room);
  return `${open.slice(0, -2)}${".".repeat(room - needed)}"}`;
}

/**
 * The gaps that stop "Continue" now. A question with an opt-out stops it the first time only.
 *
 * @param {readonly Question[]} asked  the page's questions
 * @param {Answers} answers
 * @param {Set<string>} nudged  ids of questions already asked for; grows
 * @returns {Gap[]}
 */
export function stoppingGaps(asked, answers, nudged) {
  const gaps = asked
    .filter(({ id }) => !Object.keys(answers).includes(id))
    .map((question) => ({ question, optOut: optOutLabel(question) }))
    .filter(({ question, optOut }) => optOut === "" || !nudged.has(question.id));
  for (const { question } of gaps) nudged.add(question.id);
  return gaps;
}

/**
 * The label of the option an untouched question becomes, "" when it has none.
 *
 * @param {Question} question
 */
export function optOutLabel(question) {
  return question.options.find((option) => option.id === question.opt_out)?.label ?? "";
}

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
