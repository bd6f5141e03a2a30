/**
 * The mechanism: integer channels that turn a true answer into the code of a report.
 *
 * No DOM, no network, no floats: the audit enumerates this very file under Node.
 */

import { drawFlips, halfSpaceRatio } from "./half-space.js";
import { tableReports, tableRow, tableTruths, total } from "./weight-table.js";

/**
 * @typedef {import("./random.js").UniformBelow} UniformBelow
 * @typedef {{kind: "subset_selection", k: number, d: number, T: number, L: number}} SubsetSelection
 *   P(report | truth) is T/M for a set of d options that holds the truth and L/M for one that does
 *   not; d = 1 is generalized randomized response
 * @typedef {{kind: "bit_vector", m: number, s: number, alone: number, sampled: number, T: number,
 *   L: number}} BitVector  one bit per option, each kept with weight T and flipped with weight L;
 *   at most s ticks, or one of the last `alone` options and no other; `sampled` bits are reported
 * @typedef {{kind: "half_space", m: number, s: number, alone: number, agreements: number,
 *   near: number, far: number}} HalfSpace  m bits in one report; with weight `near` at least
 *   `agreements` of them are right, with weight `far` fewer
 * @typedef {{kind: "weight_table", table: Table, no_answers: number}} WeightTable
 *   the last `no_answers` truths and reports stand for "prefer not to say", "does not apply"
 * @typedef {SubsetSelection | BitVector | HalfSpace | WeightTable} Channel
 * @typedef {{name: "window", k: number, width: number, stride: number, T: number, L: number}} Window
 * @typedef {{name: "one_bit", R: number, T: number, L: number}} OneBit
 * @typedef {{name: "by_distance", weights: number[]}} ByDistance
 * @typedef {{name: "explicit", table: number[][]}} Explicit
 * @typedef {{name: "mixture", a: number, first: Window | OneBit, b: number,
 *   second: Window | OneBit}} Mixture
 * @typedef {{name: "first_or_order", m: number, size: number, a: number, b: number, T: number,
 *   L: number}} FirstOrOrder
 * @typedef {Window | OneBit | ByDistance | Explicit | Mixture | FirstOrOrder} Table
 *   tables whose rows follow from a few integers, equal to the server's
 * @typedef {{numerator: bigint, denominator: bigint}} Ratio  numerator/denominator = e^epsilon
 * @typedef {number | readonly number[]} Truth  an option index, or m ticks, 0 or 1
 * @typedef {number | string} Code  an option index, or a bit string in base64url
 */

/**
 * Randomize one true answer.
 *
 * The number of draws depends on the channel alone, never on the truth or on earlier draws.
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
    case "half_space": {
      const reported = perturbHalfSpace(channel, ticks(channel, truth), uniformBelow);
      return packBits(
        numbersBelow(channel.m).filter((bit) => reported[bit]),
        channel.m,
      );
    }
    case "weight_table": {
      const truths = tableTruths(channel.table) + channel.no_answers;
      return perturbByTable(tableRow(channel, indexBelow(truths, truth)), uniformBelow);
    }
    default:
      throw new RangeError();
  }
}

/**
 * Randomize several answers as one: a combination of options, numbered row by row, the last question
 * fastest; or in a half-space, with 2 options per question.
 *
 * @param {SubsetSelection | HalfSpace} channel  over all combinations, d = 1, or of these questions
 * @param {(Truth | undefined)[]} truths
 * @param {number[]} sizes  how many options each question has
 * @param {UniformBelow} uniformBelow
 * @returns {number[]}  the reported option of each question
 */
export function perturbJointly(channel, truths, sizes, uniformBelow) {
  if (channel.kind === "half_space") {
    const bits = truths.map((truth) => indexBelow(2, truth));
    return perturbHalfSpace(channel, ticks(channel, bits), uniformBelow);
  }
  const truth = sizes.reduce((sum, size, i) => sum * size + indexBelow(size, truths[i]), 0);
  let report = Number(perturb(channel, truth, uniformBelow));
  const options = [];
  for (const size of [...sizes].reverse()) {
    options.unshift(report % size);
    report = Math.floor(report / size);
  }
  return options;
}

/** @param {number} n @param {unknown} index  a truth or a code */
function indexBelow(n, index) {
  if (typeof index !== "number" || !Number.isInteger(index) || index < 0 || index >= n) {
    throw new RangeError();
  }
  return index;
}

/** @param {number} n */
function numbersBelow(n) {
  return Array.from({ length: n }, (_, i) => i);
}

/**
 * Check the ticks: at most s options that combine, or exactly one exclusive option.
 *
 * @param {BitVector | HalfSpace} channel
 * @param {Truth} truth
 */
function ticks(channel, truth) {
  const { m, s, alone } = channel;
  const sampled = channel.kind === "bit_vector" ? channel.sampled : m;
  if (![s, alone, sampled].every(Number.isInteger) || sampled < 1 || sampled > m) {
    throw new RangeError();
  }
  const isTicks = Array.isArray(truth) && truth.every((tick) => tick === 0 || tick === 1);
  if (!isTicks || truth.length !== m) throw new RangeError();
  const nTogether = total(truth.slice(0, m - alone));
  const nAlone = total(truth.slice(m - alone));
  if (nTogether > s) throw new RangeError();
  // An option that excludes all others is ticked together with another one.
  if (nAlone > 1 || (nAlone === 1 && nTogether > 0)) {
    throw new RangeError();
  }
  return truth;
}

/** @param {number} T @param {number} L */
function ensurePrivate(T, L) {
  // A device never runs such a channel: the truth would not be the most likely report, or it would be
  // the only one.
  if (!(T > L && L >= 1)) {
    throw new RangeError();
  }
}

/**
 * Keep every reported bit with probability T / (T + L), whether it is 0 or 1.
 *
 * The bits to report are drawn first, independently of the truth, and are part of the report.
 *
 * @param {BitVector} channel
 * @param {readonly number[]} truth
 * @param {UniformBelow} uniformBelow
 */
function perturbBits({ m, sampled, T, L }, truth, uniformBelow) {
  ensurePrivate(T, L);
  const bits = sampled < m ? drawSome(numbersBelow(m), sampled, uniformBelow) : numbersBelow(m);
  const ones = bits.filter((bit) => truth[bit] ^ Number(uniformBelow(T + L) >= T));
  if (sampled === m) return packBits(ones, m);
  return packBits([...bits, ...ones.map((bit) => m + bit)], 2 * m);
}

/**
 * Return all bits of a report; which of them are flipped is drawn without looking at the truth.
 *
 * @param {HalfSpace} channel
 * @param {readonly number[]} truth
 * @param {UniformBelow} uniformBelow
 */
function perturbHalfSpace(channel, truth, uniformBelow) {
  const { numerator, denominator } = halfSpaceRatio(channel);
  // A device never runs such a channel, either.
  if (!(channel.far >= 1 && numerator > denominator)) {
    throw new RangeError();
  }
  return drawFlips(channel, uniformBelow).map((flip, bit) => truth[bit] ^ flip);
}

/**
 * Draw once and scan the whole row: the report is the number of partial sums that the draw reached.
 *
 * @param {number[]} row
 * @param {UniformBelow} uniformBelow
 */
function perturbByTable(row, uniformBelow) {
  const u = uniformBelow(total(row));
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
  ensurePrivate(T, L);
  if (d === 1) return (truth + drawOffset(k, T, L, uniformBelow)) % k;
  return packBits(
    drawOffsets(k, d, T, L, uniformBelow).map((offset) => (truth + offset) % k),
    k,
  );
}

/**
 * Return offset 0 for u in [0, T), and each other offset for L values of u, whatever the truth.
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
 * Draw d offsets other than 0; offset 0 may replace the last.
 *
 * Always draw all of them, or the time taken would reveal whether the truth is in the set.
 *
 * @param {number} k
 * @param {number} d
 * @param {number} T
 * @param {number} L
 * @param {UniformBelow} uniformBelow
 */
function drawOffsets(k, d, T, L, uniformBelow) {
  const offsets = numbersBelow(k - 1).map((i) => i + 1);
  const deck = drawSome(offsets, d, uniformBelow);
  if (uniformBelow(d * T + (k - d) * L) < d * T) deck[d - 1] = 0;
  return deck;
}

/**
 * Return the first cards of a shuffled deck (partial Fisher-Yates shuffle, one draw per card).
 *
 * @template T
 * @param {readonly T[]} cards
 * @param {number} count
 * @param {UniformBelow} uniformBelow
 * @returns {T[]}
 */
export function drawSome(cards, count, uniformBelow) {
  const deck = [...cards];
  for (let i = 0; i < count; i += 1) {
    const j = i + uniformBelow(deck.length - i);
    [deck[i], deck[j]] = [deck[j], deck[i]];
  }
  return deck.slice(0, count);
}

/**
 * Return the indices that a code names: d options, the bits that are 1, or one column of a table.
 *
 * @param {Channel} channel
 * @param {unknown} code  a RangeError unless it is one of the channel's reports
 * @returns {number[]}
 */
export function reportedOptions(channel, code) {
  switch (channel.kind) {
    case "subset_selection":
      return channel.d === 1 ? [indexBelow(channel.k, code)] : readSet(channel, code);
    case "bit_vector":
      return readBits(channel, code).ones;
    case "half_space":
      return unpackBits(code, channel.m);
    default:
      return [indexBelow(tableReports(channel.table) + channel.no_answers, code)];
  }
}

/**
 * Return the bits that a code reports: all of them, or the ones that were drawn.
 *
 * @param {BitVector} channel
 * @param {unknown} code  a RangeError unless it is one of the channel's reports
 * @returns {number[]}
 */
export function sampledBits(channel, code) {
  return readBits(channel, code).reported;
}

/** @param {SubsetSelection} channel @param {unknown} code */
function readSet({ k, d }, code) {
  const members = unpackBits(code, k);
  if (members.length !== d) throw new RangeError();
  return members;
}

/** @param {BitVector} channel @param {unknown} code */
function readBits({ m, sampled }, code) {
  if (sampled === m) return { reported: numbersBelow(m), ones: unpackBits(code, m) };
  const bits = unpackBits(code, 2 * m);
  const reported = bits.filter((bit) => bit < m);
  const ones = bits.filter((bit) => bit >= m).map((bit) => bit - m);
  if (reported.length !== sampled || !ones.every((bit) => reported.includes(bit))) {
    throw new RangeError();
  }
  return { reported, ones };
}

/**
 * Return the longest code of a channel.
 *
 * @param {Channel} channel
 * @returns {Code}
 */
export function longestCode(channel) {
  if (channel.kind === "weight_table") return tableReports(channel.table) + channel.no_answers - 1;
  if (channel.kind === "bit_vector") {
    return packBits([], channel.sampled < channel.m ? 2 * channel.m : channel.m);
  }
  if (channel.kind === "half_space") return packBits([], channel.m);
  return channel.d === 1 ? channel.k - 1 : packBits([], channel.k);
}

/**
 * Write a set of options as k bits, option 0 first.
 *
 * @param {number[]} members
 * @param {number} k
 */
function packBits(members, k) {
  const octets = new Uint8Array((k + 7) >> 3);
  for (const option of members) octets[option >> 3] |= 128 >> (option & 7);
  return encodeBase64url(octets);
}

/**
 * Return the numbers whose bits are 1; throw a RangeError unless the code is exactly n packed bits.
 *
 * @param {unknown} code
 * @param {number} n
 */
function unpackBits(code, n) {
  const octets = typeof code === "string" ? decodeBase64url(code) : new Uint8Array();
  const members = numbersBelow(n).filter((bit) => octets[bit >> 3] & (128 >> (bit & 7)));
  if (packBits(members, n) !== code) throw new RangeError();
  return members;
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/**
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function encodeBase64url(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const group = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    const characters = Math.min(3, bytes.length - at) + 1;
    for (let i = 0; i < characters; i += 1) text += ALPHABET[(group >> (18 - 6 * i)) & 63];
  }
  return text;
}

/**
 * @param {string} text
 * @returns {Uint8Array}
 */
export function decodeBase64url(text) {
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let pending = 0;
  let bits = 0;
  let at = 0;
  for (const character of text) {
    const value = ALPHABET.indexOf(character);
    if (value < 0) throw new RangeError();
    pending = ((pending << 6) | value) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at] = (pending >> bits) & 255;
      at += 1;
    }
  }
  return bytes;
}
