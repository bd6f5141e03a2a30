/**
 * What happens to an answer: integer channels that turn a truth into the code of a report.
 *
 * No DOM, no network, no float: Node enumerates this file, and what it proves is what runs.
 */

/**
 * @typedef {{kind: "subset_selection", k: number, d: number, T: number, L: number}} SubsetSelection
 *   P(report | truth) is T/M for a set of d options that holds the truth and L/M for one that does
 *   not; d = 1 is generalized randomized response
 * @typedef {{kind: "bit_vector", m: number, s: number, alone: number, sampled: number, T: number,
 *   L: number}} BitVector  one bit per option, each kept with weight T and flipped with weight L;
 *   at most s ticks, or one of the last `alone` options and no other; `sampled` bits are reported
 * @typedef {{kind: "weight_table", table: Table, no_answers: number}} WeightTable
 *   the last `no_answers` truths and reports stand for "prefer not to say", "does not apply"
 * @typedef {SubsetSelection | BitVector | WeightTable} Channel
 * @typedef {{name: "window", k: number, width: number, stride: number, T: number, L: number}} Window
 * @typedef {{name: "one_bit", R: number, T: number, L: number}} OneBit
 * @typedef {{name: "by_distance", weights: number[]}} ByDistance
 * @typedef {{name: "explicit", table: number[][]}} Explicit
 * @typedef {{name: "mixture", a: number, first: Window | OneBit, b: number,
 *   second: Window | OneBit}} Mixture
 * @typedef {Window | OneBit | ByDistance | Explicit | Mixture} Table
 *   the rows that few integers of a definition stand for, the same as the server's
 * @typedef {{most: bigint, least: bigint}} Ratio  most/least = e^epsilon
 * @typedef {{least: number[], most: number[], sum: number, ratio: Ratio}} Extremes
 * @typedef {number | readonly number[]} Truth  an option index, or for a bit vector m ticks, 0 or 1
 * @typedef {number | string} Code  an option index, or a bit string in base64url
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

/**
 * What a code names, as indices: d options, the bits that are 1, or the one column of a table.
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
    default:
      return [indexBelow(tableReports(channel.table) + channel.no_answers, code)];
  }
}

/**
 * The bits a code speaks of: all, or those that were drawn.
 *
 * @param {BitVector} channel
 * @param {unknown} code  a RangeError unless it is one of the channel's reports
 * @returns {number[]}
 */
export function askedBits(channel, code) {
  return readBits(channel, code).asked;
}

/** @param {SubsetSelection} channel @param {unknown} code */
function readSet({ k, d }, code) {
  const members = unpackBits(code, k);
  if (members.length !== d) throw new RangeError(`${code} names no ${d} of ${k} options`);
  return members;
}

/** @param {BitVector} channel @param {unknown} code */
function readBits({ m, sampled }, code) {
  if (sampled === m) return { asked: numbersBelow(m), ones: unpackBits(code, m) };
  const both = unpackBits(code, 2 * m);
  const asked = both.filter((bit) => bit < m);
  const ones = both.filter((bit) => bit >= m).map((bit) => bit - m);
  if (asked.length !== sampled || !ones.every((bit) => asked.includes(bit))) {
    throw new RangeError(`${code} is no report of ${sampled} of ${m} bits`);
  }
  return { asked, ones };
}

/**
 * The code of a channel that takes most characters.
 *
 * @param {Channel} channel
 * @returns {Code}
 */
export function longestCode(channel) {
  if (channel.kind === "weight_table") return tableReports(channel.table) + channel.no_answers - 1;
  if (channel.kind === "bit_vector") {
    return packBits([], channel.sampled < channel.m ? 2 * channel.m : channel.m);
  }
  return channel.d === 1 ? channel.k - 1 : packBits([], channel.k);
}

/** @param {number} n @param {unknown} index  a truth or a code */
function indexBelow(n, index) {
  if (typeof index !== "number" || !Number.isInteger(index) || index < 0 || index >= n) {
    throw new RangeError(`${typeof index} ${JSON.stringify(index)} is not from 0 to ${n - 1}`);
  }
  return index;
}

/** @param {number} n */
function numbersBelow(n) {
  return Array.from({ length: n }, (_, i) => i);
}

/**
 * At most s ticks among the options that go together, or exactly one among those that stand alone.
 *
 * @param {BitVector} channel
 * @param {Truth} truth
 */
function ticks({ m, s, alone, sampled }, truth) {
  if (![s, alone, sampled].every(Number.isInteger) || sampled < 1 || sampled > m) {
    throw new RangeError(`${sampled} of ${m} bits, ${s} ticks, ${alone} alone: not a channel`);
  }
  const isTicks = Array.isArray(truth) && truth.every((tick) => tick === 0 || tick === 1);
  if (!isTicks || truth.length !== m) throw new RangeError(`truth must be ${m} ticks, each 0 or 1`);
  const together = total(truth.slice(0, m - alone));
  const apart = total(truth.slice(m - alone));
  if (together > s) throw new RangeError(`truth has ${together} ticks; at most ${s} are allowed`);
  if (apart > 1 || (apart === 1 && together > 0)) {
    throw new RangeError("truth ticks an option that stands alone together with another");
  }
  return truth;
}

/** @param {number} T @param {number} L */
function demandPrivate(T, L) {
  if (!(T > L && L >= 1)) {
    throw new RangeError(`a device never runs a channel with T = ${T}, L = ${L}`);
  }
}

/**
 * Every reported bit is kept for T of T + L draws, whatever it is.
 *
 * Which bits are reported is drawn first, says nothing about the truth, and is part of the report.
 *
 * @param {BitVector} channel
 * @param {readonly number[]} truth
 * @param {UniformBelow} uniformBelow
 */
function perturbBits({ m, sampled, T, L }, truth, uniformBelow) {
  demandPrivate(T, L);
  const asked = sampled < m ? drawSome(numbersBelow(m), sampled, uniformBelow) : numbersBelow(m);
  const ones = asked.filter((bit) => truth[bit] ^ Number(uniformBelow(T + L) >= T));
  if (sampled === m) return packBits(ones, m);
  return packBits([...asked, ...ones.map((bit) => m + bit)], 2 * m);
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
 * d other offsets; the last may yield to offset 0.
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
  const others = numbersBelow(k - 1).map((i) => i + 1);
  const deck = drawSome(others, d, uniformBelow);
  if (uniformBelow(d * T + (k - d) * L) < d * T) deck[d - 1] = 0;
  return deck;
}

/**
 * The first cards of a shuffled deck: a partial Fisher-Yates shuffle, one draw per card.
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

/**
 * The numbers whose bits are 1; a RangeError for what is not such bits, written in the one way.
 *
 * @param {unknown} code
 * @param {number} n
 */
function unpackBits(code, n) {
  const octets = typeof code === "string" ? decodeBase64url(code) : new Uint8Array();
  const members = numbersBelow(n).filter((bit) => octets[bit >> 3] & (128 >> (bit & 7)));
  if (packBits(members, n) !== code) throw new RangeError(`${JSON.stringify(code)}: not ${n} bits`);
  return members;
}

/**
 * Number of true answers a table has rows for, the ones that are no answer apart.
 *
 * @param {Table} table
 * @returns {number}
 */
export function tableTruths(table) {
  switch (table.name) {
    case "window":
      return table.k;
    case "one_bit":
      return table.R + 1;
    case "by_distance":
      return table.weights.length;
    case "explicit":
      return table.table.length;
    case "mixture":
      return tableTruths(table.first);
    default:
      throw new RangeError("unknown table");
  }
}

/**
 * Number of reports a table has columns for, the ones that are no answer apart.
 *
 * @param {Table} table
 * @returns {number}
 */
export function tableReports(table) {
  switch (table.name) {
    case "window":
      return (table.k - 1) * table.stride + table.width;
    case "one_bit":
      return 2;
    case "explicit":
      return table.table[0].length;
    case "mixture":
      return tableReports(table.first) + tableReports(table.second);
    default:
      return tableTruths(table);
  }
}

/**
 * Weights of every report, given one truth; all rows of a channel have the same sum.
 *
 * @param {WeightTable} channel
 * @param {number} truth
 * @returns {number[]}
 */
export function tableRow({ table, no_answers: silent }, truth) {
  const truths = tableTruths(table);
  if (silent === 0) return plainRow(table, truth);
  const extremes = columnExtremes(table);
  const { others, own } = silentWeights(extremes);
  // Both kinds of row are made whichever is asked for: time must not tell whether one answered.
  const answered = plainRow(table, Math.min(truth, truths - 1));
  const unanswered = filled(extremes, extremes.sum + others - own);
  const row = truth < truths ? answered : unanswered;
  const added = Array.from({ length: silent }, (_, i) => (truth === truths + i ? own : others));
  return [...row, ...added];
}

/**
 * @param {Table} table
 * @param {number} truth
 * @returns {number[]}
 */
function plainRow(table, truth) {
  switch (table.name) {
    case "window":
      return windowRow(table, truth);
    case "one_bit":
      return oneBitRow(table, truth);
    case "by_distance":
      return distanceRow(table, truth);
    case "explicit":
      return [...table.table[truth]];
    default: {
      const { a, first, b, second } = table;
      const scaled = (/** @type {number} */ by, /** @type {Window | OneBit} */ part) =>
        plainRow(part, truth).map((weight) => by * weight);
      return [...scaled(a, first), ...scaled(b, second)];
    }
  }
}

/** @param {Window} table @param {number} truth */
function windowRow({ k, width, stride, T, L }, truth) {
  const start = truth * stride;
  const reports = (k - 1) * stride + width;
  return Array(reports)
    .fill(L)
    .fill(T, start, start + width);
}

/** P(1 | x) = (xT + (R-x)L) / (R(T+L)). @param {OneBit} table @param {number} truth */
function oneBitRow({ R, T, L }, truth) {
  const one = truth * T + (R - truth) * L;
  return [R * (T + L) - one, one];
}

/** Noise around the truth; the ends gather what falls outside. @param {ByDistance} table @param {number} truth */
function distanceRow({ weights }, truth) {
  const last = weights.length - 1;
  const row = weights.map((_, j) => weights[Math.abs(truth - j)]);
  const tail = (/** @type {number} */ from) =>
    weights.reduce((sum, weight, z) => sum + (z >= from ? weight : 0), 0);
  row[0] = tail(truth);
  row[last] = tail(last - truth);
  return row;
}

/**
 * A definition's tables never change, and a thousand rows take their time.
 *
 * @type {WeakMap<Table, Extremes>}
 */
const known = new WeakMap();

/**
 * Least and most weight of every column; no option that is no answer goes beyond their ratio.
 *
 * @param {Table} table
 */
function columnExtremes(table) {
  const extremes = known.get(table) ?? findExtremes(table);
  known.set(table, extremes);
  return extremes;
}

/** @param {Table} table @returns {Extremes} */
function findExtremes(table) {
  const least = plainRow(table, 0);
  const most = [...least];
  const sum = total(least);
  for (let truth = 1; truth < tableTruths(table); truth += 1) {
    plainRow(table, truth).forEach((weight, j) => {
      least[j] = Math.min(least[j], weight);
      most[j] = Math.max(most[j], weight);
    });
  }
  return { least, most, sum, ratio: largestRatio(most, least) };
}

/** @param {number[]} most @param {number[]} least @returns {Ratio} */
function largestRatio(most, least) {
  let largest = { most: 1n, least: 1n };
  most.forEach((weight, j) => {
    const ratio = { most: BigInt(weight), least: BigInt(least[j]) };
    if (ratio.most * largest.least > largest.most * ratio.least) largest = ratio;
  });
  return largest;
}

/**
 * The largest weight of every column, those of the options that are no answer among them.
 *
 * @param {WeightTable} channel
 * @returns {number[]}
 */
export function columnMaxima({ table, no_answers: silent }) {
  const extremes = columnExtremes(table);
  return [...extremes.most, ...Array(silent).fill(silentWeights(extremes).own)];
}

/**
 * others = floor((M - sum of minima) / (rho - 1)), own = floor(rho others).
 *
 * @param {Extremes} extremes
 */
function silentWeights({ least, sum, ratio }) {
  const spare = BigInt(sum - total(least));
  const others = (spare * ratio.least) / (ratio.most - ratio.least);
  const own = (ratio.most * others) / ratio.least;
  return { others: Number(others), own: Number(own) };
}

/**
 * Column minima, raised from the left until they add up to `sum`.
 *
 * @param {Extremes} extremes
 * @param {number} sum
 */
function filled({ least, most }, sum) {
  let missing = sum - total(least);
  return least.map((weight, j) => {
    const raise = Math.min(missing, most[j] - weight);
    missing -= raise;
    return weight + raise;
  });
}

/** @param {number[]} weights */
function total(weights) {
  return weights.reduce((sum, weight) => sum + weight, 0);
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
    if (value < 0) throw new RangeError(`${JSON.stringify(character)} is not base64url`);
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
