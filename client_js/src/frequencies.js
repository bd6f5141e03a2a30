/**
 * Natural frequencies: of 100 people with an answer, how many reports name it.
 */

import { fromTenths } from "./privacy-loss.js";
import { isEntered, patterns } from "./truth.js";
import { tableRow, tableTruths } from "./weight-table.js";

/**
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./mechanism.js").SubsetSelection} SubsetSelection
 * @typedef {import("./mechanism.js").WeightTable} WeightTable
 * @typedef {Pick<Question, "type" | "channel" | "options" | "alone" | "max_ticks">} Protected
 *   the parts of a question that its frequencies need
 * @typedef {{own: bigint, other: bigint, of: bigint}} Weights
 */

/**
 * Return how many reports of 100 people name the first option: if they chose it, and if they did not.
 *
 * In tenths, rounded half up: the label's only numbers that are not bounds. Numbers and dates have
 * none, because their reports name no option.
 *
 * @param {Protected} question
 * @returns {{own: string, other: string}}
 */
export function frequencies(question) {
  if (isEntered(question.type)) return { own: "", other: "" };
  const { own, other, of } = nameWeights(question);
  return { own: perHundred(own, of), other: perHundred(other, of) };
}

/** @param {Protected} question @returns {Weights} */
function nameWeights(question) {
  const { channel } = question;
  if (channel.kind === "weight_table") return tableWeights(channel);
  const [T, L] = [BigInt(channel.T), BigInt(channel.L)];
  if (channel.kind === "bit_vector") return { own: T, other: L, of: T + L };
  return question.type === "multiple_choice" ? patternWeights(question) : setWeights(channel);
}

/**
 * Formula: own = dT/M,  other = d((d-1)T + (k-d)L) / (M(k-1)),  M = dT + (k-d)L
 *
 * @param {SubsetSelection} channel
 */
function setWeights(channel) {
  const [k, d, T, L] = [channel.k, channel.d, channel.T, channel.L].map(BigInt);
  const M = d * T + (k - d) * L;
  const others = k - 1n;
  return { own: d * T * others, other: d * ((d - 1n) * T + (k - d) * L), of: M * others };
}

/**
 * Formula: own = (T + (N-1)L)/M,  other = N L/M,  M = T + (k-1)L,  N patterns contain the option
 *
 * @param {Protected} question
 */
function patternWeights(question) {
  const { k, T, L } = /** @type {SubsetSelection} */ (question.channel);
  const N = patterns(question).filter((pattern) => pattern.includes(0)).length;
  return { own: BigInt(T + (N - 1) * L), other: BigInt(N * L), of: BigInt(T + (k - 1) * L) };
}

/**
 * Formula: own = W[0][0]/M, other = the smallest W[i][0]/M of another truth
 *
 * @param {WeightTable} channel
 */
function tableWeights(channel) {
  const truths = tableTruths(channel.table) + channel.no_answers;
  const first = tableRow(channel, 0);
  const others = Array.from({ length: truths - 1 }, (_, i) => tableRow(channel, i + 1)[0]);
  const of = first.reduce((sum, weight) => sum + weight, 0);
  return { own: BigInt(first[0]), other: BigInt(Math.min(...others)), of: BigInt(of) };
}

/** @param {bigint} weight @param {bigint} total */
function perHundred(weight, total) {
  return fromTenths((2000n * weight + total) / (2n * total));
}
