/**
 * Weight tables: the rows that a few integers of a definition stand for, the same as the server's.
 */

/**
 * @typedef {import("./mechanism.js").ByDistance} ByDistance
 * @typedef {import("./mechanism.js").OneBit} OneBit
 * @typedef {import("./mechanism.js").Ratio} Ratio
 * @typedef {import("./mechanism.js").Table} Table
 * @typedef {import("./mechanism.js").WeightTable} WeightTable
 * @typedef {import("./mechanism.js").Window} Window
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
export const known = new WeakMap();

/**
 * Least and most weight of every column; no option that is no answer goes beyond their ratio.
 *
 * @param {Table} table
 */
export function columnExtremes(table) {
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
export function total(weights) {
  return weights.reduce((sum, weight) => sum + weight, 0);
}
