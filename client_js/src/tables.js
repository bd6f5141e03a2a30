/**
 * Weight tables: the rows that few integers of a definition stand for, the same as the server's.
 *
 * No DOM, no network, no float that decides: all weights are integers below 2^32.
 */

/**
 * @typedef {{name: "window", k: number, width: number, stride: number, T: number, L: number}} Window
 * @typedef {{name: "one_bit", R: number, T: number, L: number}} OneBit
 * @typedef {{name: "by_distance", weights: number[]}} ByDistance
 * @typedef {{name: "explicit", table: number[][]}} Explicit
 * @typedef {{name: "mixture", a: number, first: Window | OneBit, b: number,
 *   second: Window | OneBit}} Mixture
 * @typedef {Window | OneBit | ByDistance | Explicit | Mixture} Table
 * @typedef {{kind: "weight_table", table: Table, no_answers: number}} TableChannel
 *   the last `no_answers` truths and reports stand for "prefer not to say", "does not apply"
 * @typedef {{most: bigint, least: bigint}} Ratio  most/least = e^epsilon
 * @typedef {{least: number[], most: number[], sum: number, ratio: Ratio}} Extremes
 */

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
 * Weights of every report, given one truth; all rows of a channel have the same sum.
 *
 * @param {TableChannel} channel
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
 * e^epsilon of a table; options that are no answer never raise it.
 *
 * @param {TableChannel} channel
 * @returns {Ratio}
 */
export function tableRatio({ table }) {
  return columnExtremes(table).ratio;
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
  return Array.from({ length: reports }, (_, j) => (j >= start && j < start + width ? T : L));
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

/** @param {Table} table @returns {Extremes} */
function columnExtremes(table) {
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
