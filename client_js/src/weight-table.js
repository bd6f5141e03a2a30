/**
 * Weight tables, whose rows follow from a few integers and equal the server's.
 */

import { factorial, orders, rankingAt } from "./ranking.js";

/**
 * @typedef {import("./mechanism.js").ByDistance} ByDistance
 * @typedef {import("./mechanism.js").FirstOrOrder} FirstOrOrder
 * @typedef {import("./mechanism.js").OneBit} OneBit
 * @typedef {import("./mechanism.js").Ratio} Ratio
 * @typedef {import("./mechanism.js").Table} Table
 * @typedef {import("./mechanism.js").WeightTable} WeightTable
 * @typedef {import("./mechanism.js").Window} Window
 * @typedef {{minima: number[], maxima: number[], sum: number, ratio: Ratio}} Extremes
 */

/**
 * Return the number of rows of a table, without those for no answer.
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
    case "first_or_order":
      return factorial(table.m);
    default:
      throw new RangeError();
  }
}

/**
 * Return the number of columns of a table, without those for no answer.
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
    case "first_or_order":
      return firstReports(table) + factorial(table.m) / factorial(table.m - table.size);
    default:
      return tableTruths(table);
  }
}

/** Return the number of reports that state only a first choice. @param {FirstOrOrder} table */
export function firstReports({ m, a }) {
  return a === 0 ? 0 : m;
}

/**
 * Return the weight of every report under one truth; all rows of a channel have the same sum.
 *
 * @param {WeightTable} channel
 * @param {number} truth
 * @returns {number[]}
 */
export function tableRow({ table, no_answers: noAnswers }, truth) {
  const truths = tableTruths(table);
  if (noAnswers === 0) return plainRow(table, truth);
  const extremes = columnExtremes(table);
  const { ownWeight, otherWeight } = noAnswerWeights(extremes);
  // Both kinds of row are computed, so that the time taken does not reveal whether there is an answer.
  const answerRow = plainRow(table, Math.min(truth, truths - 1));
  const noAnswerRow = raiseMinima(extremes, extremes.sum + otherWeight - ownWeight);
  const row = truth < truths ? answerRow : noAnswerRow;
  const noAnswerColumns = Array.from({ length: noAnswers }, (_, i) =>
    truth === truths + i ? ownWeight : otherWeight,
  );
  return [...row, ...noAnswerColumns];
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
    case "first_or_order":
      return rankingRow(table, truth);
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
  const weight = truth * T + (R - truth) * L;
  return [R * (T + L) - weight, weight];
}

/** Distribute around the truth; the ends of the grid collect what falls outside. @param {ByDistance} table @param {number} truth */
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
 * Return the weights: T if the report is true of the ranking, else L, times a for first choices or b
 * for orders.
 *
 * @param {FirstOrOrder} table
 * @param {number} truth
 */
function rankingRow({ m, size, a, b, T, L }, truth) {
  const ranking = rankingAt(m, truth);
  const place = ranking.map((_, option) => ranking.indexOf(option));
  const firsts = place.map((at) => a * (at === 0 ? T : L));
  // Compare every pair, so that the time does not reveal the ranking.
  const isTrue = (/** @type {number[]} */ order) =>
    order.filter((option, i) => i === 0 || place[order[i - 1]] < place[option]).length === size;
  return [
    ...(a === 0 ? [] : firsts),
    ...orders(m, size).map((order) => b * (isTrue(order) ? T : L)),
  ];
}

/**
 * Cache of extremes: tables never change, and a thousand rows take time.
 *
 * @type {WeakMap<Table, Extremes>}
 */
const extremesOf = new WeakMap();

/**
 * Return the extremes of a table; options for no answer never exceed their ratio.
 *
 * @param {Table} table
 */
export function columnExtremes(table) {
  const extremes = extremesOf.get(table) ?? findExtremes(table);
  extremesOf.set(table, extremes);
  return extremes;
}

/** @param {Table} table @returns {Extremes} */
function findExtremes(table) {
  const minima = plainRow(table, 0);
  const maxima = [...minima];
  const sum = total(minima);
  for (let truth = 1; truth < tableTruths(table); truth += 1) {
    plainRow(table, truth).forEach((weight, j) => {
      minima[j] = Math.min(minima[j], weight);
      maxima[j] = Math.max(maxima[j], weight);
    });
  }
  return { minima, maxima, sum, ratio: largestRatio(maxima, minima) };
}

/** @param {number[]} maxima @param {number[]} minima @returns {Ratio} */
function largestRatio(maxima, minima) {
  let largest = { numerator: 1n, denominator: 1n };
  maxima.forEach((weight, j) => {
    const ratio = { numerator: BigInt(weight), denominator: BigInt(minima[j]) };
    if (ratio.numerator * largest.denominator > largest.numerator * ratio.denominator)
      largest = ratio;
  });
  return largest;
}

/**
 * Return the largest weight of every column, including those for no answer.
 *
 * @param {WeightTable} channel
 * @returns {number[]}
 */
export function columnMaxima({ table, no_answers: noAnswers }) {
  const extremes = columnExtremes(table);
  return [...extremes.maxima, ...Array(noAnswers).fill(noAnswerWeights(extremes).ownWeight)];
}

/**
 * Weights of the columns for no answer: otherWeight = floor((M - sum of minima) / (rho - 1)),
 * ownWeight = floor(rho otherWeight).
 *
 * @param {Extremes} extremes
 */
function noAnswerWeights({ minima, sum, ratio }) {
  const spare = BigInt(sum - total(minima));
  const otherWeight = (spare * ratio.denominator) / (ratio.numerator - ratio.denominator);
  const ownWeight = (ratio.numerator * otherWeight) / ratio.denominator;
  return { ownWeight: Number(ownWeight), otherWeight: Number(otherWeight) };
}

/**
 * Raise the column minima from the left until they add up to `sum`.
 *
 * @param {Extremes} extremes
 * @param {number} sum
 */
function raiseMinima({ minima, maxima }, sum) {
  let missing = sum - total(minima);
  return minima.map((weight, j) => {
    const raise = Math.min(missing, maxima[j] - weight);
    missing -= raise;
    return weight + raise;
  });
}

/** @param {number[]} weights */
export function total(weights) {
  return weights.reduce((sum, weight) => sum + weight, 0);
}
