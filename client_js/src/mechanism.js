/**
 * What happens to an answer: integer channels that turn a truth into the code of a report.
 *
 * No DOM, no network, no float: Node enumerates this file, and what it proves is what runs.
 */

import { decodeBase64url, encodeBase64url } from "./base64url.js";
import { tableRow, tableTruths } from "./tables.js";

/**
 * @typedef {{kind: "subset_selection", k: number, d: number, T: number, L: number}} SubsetSelection
 *   P(report | truth) is T/M for a set of d options that holds the truth and L/M for one that does
 *   not; d = 1 is generalized randomized response
 * @typedef {{kind: "bit_vector", m: number, s: number, T: number, L: number}} BitVector
 *   one bit per option, each kept with weight T and flipped with weight L; at most s ticks
 * @typedef {import("./tables.js").TableChannel} WeightTable
 * @typedef {SubsetSelection | BitVector | WeightTable} Channel
 * @typedef {number | readonly number[]} Truth  an option index, or for a bit vector m ticks, 0 or 1
 * @typedef {number | string} Code  an option index, or for d > 1 a bit string in base64url
 * @typedef {import("./random.js").UniformBelow} UniformBelow
 */

/**
 * Perturb one truth.
 *
 * The number of draws depends on the channel alone, never on the truth or on what was drawn.
 *
 * @param {Channel} channel  the JSON form that a definition carries
 * @param {Truth} truth
 * @param {UniformBelow} uniformBelow
 * @returns {Code}
 */
export function perturb(channel, truth, uniformBelow) {
  switch (channel.kind) {
    case "subset_selection":
      return perturbSubset(channel, indexBelow(channel.k, truth), uniformBelow);
    case "bit_vector":
      return perturbBits(channel, ticks(channel, truth), uniformBelow);
    case "weight_table": {
      const truths = tableTruths(channel.table) + channel.no_answers;
      return perturbByTable(tableRow(channel, indexBelow(truths, truth)), uniformBelow);
    }
    default:
      throw new RangeError(`unknown kind of channel ${JSON.stringify(channel)}`);
  }
}

/**
 * The options a code names, as indices: one for d = 1, d of them for larger sets.
 *
 * @param {SubsetSelection} channel
 * @param {Code} code
 * @returns {number[]}
 */
export function reportedOptions(channel, code) {
  if (typeof code === "number") return [code];
  const octets = decodeBase64url(code);
  const options = Array.from({ length: channel.k }, (_, option) => option);
  return options.filter((option) => octets[option >> 3] & (128 >> (option & 7)));
}

/** @param {number} n @param {Truth} truth */
function indexBelow(n, truth) {
  if (typeof truth !== "number" || !Number.isInteger(truth) || truth < 0 || truth >= n) {
    throw new RangeError(`truth ${truth} is not an option index from 0 to ${n - 1}`);
  }
  return truth;
}

/** @param {BitVector} channel @param {Truth} truth */
function ticks({ m, s }, truth) {
  const isTicks = Array.isArray(truth) && truth.every((tick) => tick === 0 || tick === 1);
  if (!isTicks || truth.length !== m) throw new RangeError(`truth must be ${m} ticks, each 0 or 1`);
  const ticked = truth.reduce((count, tick) => count + tick, 0);
  if (ticked > s) throw new RangeError(`truth has ${ticked} ticks; at most ${s} are allowed`);
  return truth;
}

/** @param {number} T @param {number} L */
function demandPrivate(T, L) {
  if (!(T > L && L >= 1)) {
    throw new RangeError(`a device never runs a channel with T = ${T}, L = ${L}`);
  }
}

/**
 * Every bit is kept for T of T + L draws, whatever it is.
 *
 * @param {BitVector} channel
 * @param {readonly number[]} truth
 * @param {UniformBelow} uniformBelow
 */
function perturbBits({ m, T, L }, truth, uniformBelow) {
  demandPrivate(T, L);
  const bits = truth.map((tick) => tick ^ Number(uniformBelow(T + L) >= T));
  return packBits(
    bits.flatMap((bit, option) => (bit ? [option] : [])),
    m,
  );
}

/**
 * One draw, and the whole row scanned: the report is the number of partial sums it has reached.
 *
 * @param {number[]} row
 * @param {UniformBelow} uniformBelow
 */
function perturbByTable(row, uniformBelow) {
  const u = uniformBelow(row.reduce((sum, weight) => sum + weight, 0));
  let reached = 0;
  let report = 0;
  for (const weight of row) {
    reached += weight;
    report += Number(u >= reached);
  }
  return report;
}

/**
 * @param {SubsetSelection} channel
 * @param {number} truth
 * @param {UniformBelow} uniformBelow
 */
function perturbSubset({ k, d, T, L }, truth, uniformBelow) {
  demandPrivate(T, L);
  if (d === 1) return (truth + drawOffset(k, T, L, uniformBelow)) % k;
  return packBits(
    drawOffsets(k, d, T, L, uniformBelow).map((offset) => (truth + offset) % k),
    k,
  );
}

/**
 * Offset 0 for u in [0, T), then each other offset for L values of u; the truth is not looked at.
 *
 * @param {number} k
 * @param {number} T
 * @param {number} L
 * @param {UniformBelow} uniformBelow
 */
function drawOffset(k, T, L, uniformBelow) {
  const u = uniformBelow(T + (k - 1) * L);
  return u < T ? 0 : 1 + Math.floor((u - T) / L);
}

/**
 * d other offsets by a partial Fisher-Yates shuffle; the last may yield to offset 0.
 *
 * Drawing only the offsets that are needed would let the time taken tell whether the truth is in.
 *
 * @param {number} k
 * @param {number} d
 * @param {number} T
 * @param {number} L
 * @param {UniformBelow} uniformBelow
 */
function drawOffsets(k, d, T, L, uniformBelow) {
  const deck = Array.from({ length: k - 1 }, (_, i) => i + 1);
  for (let i = 0; i < d; i += 1) {
    const j = i + uniformBelow(k - 1 - i);
    const other = deck[j];
    deck[j] = deck[i];
    deck[i] = other;
  }
  if (uniformBelow(d * T + (k - d) * L) < d * T) deck[d - 1] = 0;
  return deck.slice(0, d);
}

/**
 * A set of options as k bits, option 0 first.
 *
 * @param {number[]} members
 * @param {number} k
 */
function packBits(members, k) {
  const octets = new Uint8Array((k + 7) >> 3);
  for (const option of members) octets[option >> 3] |= 128 >> (option & 7);
  return encodeBase64url(octets);
}
