/**
 * Natural frequencies: how many of 100 reports name an option, if it is the true answer and if not.
 */

import { tickWeights } from "./half-space.js";
import { fromTenths } from "./privacy-loss.js";
import { isEntered, patterns } from "./question-types.js";
import { tableRow, tableTruths, total } from "./weight-table.js";

/**
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./mechanism.js").SubsetSelection} SubsetSelection
 * @typedef {import("./mechanism.js").WeightTable} WeightTable
 * @typedef {Pick<Question, "type" | "channel" | "options" | "alone" | "max_ticks">} Protected
 *   the parts of a question that its frequencies need
 * @typedef {{ownWeight: bigint, otherWeight: bigint, totalWeight: bigint}} Weights
 *   the shares are own = ownWeight/totalWeight and other = otherWeight/totalWeight
 */

/**
 * Return how many of 100 reports name the first option: `ownShare` among people who chose it,
 * `otherShare` among people who did not.
 *
 * Both are rounded half up to a tenth: the label's only numbers that are not bounds. Numbers and
 * dates have none (""), because their reports name no option.
 *
 * @param {Protected} question
 * @returns {{ownShare: string, otherShare: string}}
 */
export function frequencies(question) {
  if (isEntered(question.type)) return { ownShare: "", otherShare: "" };
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
