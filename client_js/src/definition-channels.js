/**
 * The form of a channel: integers that fit in a draw, rows of one sum, a truth for every answer.
 */

import { isEntered, RANKING } from "./answers.js";
import { DefinitionError, ensure, isInteger } from "./definition-error.js";
import { tickWeights } from "./half-space.js";
import { ratio } from "./privacy-loss.js";
import { factorial } from "./ranking.js";
import { columnMaxima, tableReports, tableRow, tableTruths } from "./weight-table.js";

/**
 * @typedef {import("./mechanism.js").Channel} Channel
 * @typedef {import("./definition.js").Question} Question
 */

const MAX_WEIGHT_TOTAL = 2n ** 32n;

/** The largest truth probability in per cent; no definition can raise it. */
const MAX_PERCENT = 99n;

export const MAX_OPTIONS = 10_000;

const MAX_BITS = 1000;

/** Maximum number of bits of a half-space: one word draws any of the 2^m vectors. */
const MAX_HALF_SPACE_BITS = 32;

export const MAX_ALONE = 3;

const MAX_PATTERNS = 1024n;

export const MAX_GRID = 1000;

const MAX_REPORTS = 4096;

const MAX_EXPLICIT = 64;

export const MAX_NO_ANSWERS = 2;

export const MIN_RANKED = 3;

const MAX_RANKED = 6;

/** Channels that passed their checks; questions share equal channels. @type {WeakSet<Channel>} */
const checkedChannels = new WeakSet();

/**
 * Check that a channel is of a known kind and consists of integers that fit in a draw.
 *
 * @param {any} channel
 */
export function checkChannel(channel) {
  if (checkedChannels.has(channel)) return;
  const check = {
    subset_selection: checkSet,
    bit_vector: checkBits,
    half_space: checkHalfSpace,
    weight_table: checkTable,
  };
  const kind = /** @type {keyof typeof check} */ (String(channel?.kind));
  ensure(Object.keys(check).includes(kind));
  check[kind](channel);
  checkedChannels.add(channel);
}

/** @param {any} channel */
function checkSet({ k, d, T, L }) {
  ensure(isInteger(k, 2, MAX_OPTIONS));
  ensure(isInteger(d, 1, k - 1));
  checkWeights(T, L);
  checkTruthProbability(BigInt(d) * BigInt(T), BigInt(k - d) * BigInt(L));
}

/** @param {any} channel */
function checkBits({ m, s, alone, sampled, T, L }) {
  checkTickChannel(m, s, alone, MAX_BITS);
  ensure(isInteger(sampled, 1, m));
  checkWeights(T, L);
  checkTruthProbability(BigInt(T), BigInt(L));
}

/** @param {any} channel */
function checkHalfSpace(channel) {
  const { m, s, alone, agreements, near, far } = channel;
  checkTickChannel(m, s, alone, MAX_HALF_SPACE_BITS);
  ensure(isInteger(agreements, Math.floor(m / 2) + 1, m));
  ensure(isInteger(near, 1) && isInteger(far, 1));
  ensureDrawable(BigInt(near) + BigInt(far));
  const { numerator, denominator } = ratio(channel);
  // Reports near the truth must be the most likely ones.
  ensure(numerator > denominator);
  const { ownWeight, totalWeight } = tickWeights(channel);
  ensureAtMost(100n * ownWeight, MAX_PERCENT * totalWeight);
}

/** @param {any} m @param {any} s @param {any} alone @param {number} maximum */
function checkTickChannel(m, s, alone, maximum) {
  ensure(isInteger(m, 1, maximum));
  ensure(isInteger(alone, 0, Math.min(MAX_ALONE, m - 1)));
  ensure(isInteger(s, 1, m - alone));
}

/** @param {any} channel */
function checkTable(channel) {
  const { table, no_answers: noAnswers } = channel;
  ensure(isInteger(noAnswers, 0, MAX_NO_ANSWERS));
  ensureDrawable(shapeTotal(table));
  const { numerator, denominator } = ratio(channel);
  ensure(numerator > denominator);
  const truths = tableTruths(table) + noAnswers;
  const sum = listTotal(tableRow(channel, 0));
  ensureDrawable(sum);
  const maxima = columnMaxima(channel);
  // A table may have four million weights, so each is read only once.
  for (let truth = 0; truth < truths; truth += 1) {
    checkRow(tableRow(channel, truth), maxima, sum);
  }
}

/**
 * Check one row. Reports that are likeliest under the same truth count together: p is their total
 * probability, so that splitting one report into many cannot hide a high p.
 *
 * @param {number[]} row
 * @param {number[]} maxima  of all columns
 * @param {bigint} sum
 */
function checkRow(row, maxima, sum) {
  let [smallest, total, likeliest] = [row[0], 0, 0];
  for (let report = 0; report < row.length; report += 1) {
    const weight = row[report];
    total += weight;
    if (weight < smallest) smallest = weight;
    if (weight === maxima[report]) likeliest += weight;
  }
  ensure(smallest >= 1);
  ensure(BigInt(total) === sum);
  ensureAtMost(100n * BigInt(likeliest), MAX_PERCENT * sum);
}

/**
 * Check the integers of a table and return the sum of its rows, before any row is computed.
 *
 * @param {any} table
 * @returns {bigint}
 */
function shapeTotal(table) {
  switch (table?.name) {
    case "window":
      return windowTotal(table);
    case "one_bit":
      ensure(isInteger(table.R, 1, MAX_GRID - 1));
      checkWeights(table.T, table.L);
      return BigInt(table.R) * BigInt(table.T + table.L);
    case "by_distance":
      checkList(table.weights, MAX_GRID);
      return 2n * listTotal(table.weights) - BigInt(table.weights[0]);
    case "explicit":
      return explicitTotal(table.table);
    case "mixture":
      return mixtureTotal(table);
    case "first_or_order":
      return rankingTotal(table);
    default:
      throw new DefinitionError("malformed");
  }
}

/** @param {any} table */
function windowTotal({ k, width, stride, T, L }) {
  ensure(isInteger(k, 2, MAX_GRID));
  ensure(isInteger(width, 1) && isInteger(stride, 1));
  const reports = (k - 1) * stride + width;
  ensure(reports <= MAX_REPORTS);
  checkWeights(T, L);
  return BigInt(width) * BigInt(T) + BigInt(reports - width) * BigInt(L);
}

/** @param {any} rows */
function explicitTotal(rows) {
  const isTable = Array.isArray(rows) && isInteger(rows.length, 2, MAX_EXPLICIT);
  ensure(isTable);
  for (const row of rows) {
    checkList(row, MAX_EXPLICIT);
    ensure(row.length === rows[0].length);
    ensureDrawable(listTotal(row));
  }
  return listTotal(rows[0]);
}

/** @param {any} table */
function mixtureTotal({ a, first, b, second }) {
  ensure(isInteger(a, 1) && isInteger(b, 1));
  for (const part of [first, second]) {
    ensure(["window", "one_bit"].includes(part?.name));
  }
  const total = BigInt(a) * shapeTotal(first) + BigInt(b) * shapeTotal(second);
  ensure(tableTruths(first) === tableTruths(second));
  const reports = tableReports(first) + tableReports(second);
  ensure(reports <= MAX_REPORTS);
  return total;
}

/** @param {any} table */
function rankingTotal({ m, size, a, b, T, L }) {
  ensure(isInteger(m, MIN_RANKED, MAX_RANKED));
  ensure([2, 3, m].includes(size));
  const leastFirst = size === m ? 0 : 1;
  const mostFirst = size === m ? 0 : Number.MAX_SAFE_INTEGER;
  ensure(isInteger(a, leastFirst, mostFirst) && isInteger(b, 1));
  checkWeights(T, L);
  const [orders, subsets] = [factorial(size), factorial(m) / factorial(size) / factorial(m - size)];
  const first = BigInt(T) + BigInt(m - 1) * BigInt(L);
  const order = BigInt(T) + BigInt(orders - 1) * BigInt(L);
  return BigInt(a) * first + BigInt(b) * BigInt(subsets) * order;
}

/** @param {any} list @param {number} max */
function checkList(list, max) {
  const isList = Array.isArray(list) && isInteger(list.length, 2, max);
  ensure(isList);
  ensure(list.every((weight) => isInteger(weight, 1)));
}

/** @param {number[]} list */
function listTotal(list) {
  return list.reduce((sum, weight) => sum + BigInt(weight), 0n);
}

/** @param {any} T @param {any} L */
function checkWeights(T, L) {
  ensure([T, L].every(Number.isSafeInteger));
  ensure(T > L && L >= 1);
}

/** Check the weights of the reports with the truth, and of the others. @param {bigint} own @param {bigint} other */
function checkTruthProbability(own, other) {
  ensureDrawable(own + other);
  ensureAtMost(100n * own, MAX_PERCENT * (own + other));
}

/** @param {bigint} value @param {bigint} limit */
export function ensureAtMost(value, limit) {
  if (value > limit) throw new DefinitionError("too_weak");
}

/** @param {bigint} total */
function ensureDrawable(total) {
  ensure(total <= MAX_WEIGHT_TOTAL);
}

/** Whether the channel has exactly one truth per answer. @param {Question} question */
export function fitsQuestion({ type, options, grid, alone, max_ticks: s, channel }) {
  const isMultiple = type === "multiple_choice";
  if (channel.kind === "bit_vector" || channel.kind === "half_space") {
    return isMultiple && channel.m === options.length && channel.alone === alone && channel.s === s;
  }
  if (channel.kind === "weight_table") {
    const [truths, noAnswers] = [tableTruths(channel.table), channel.no_answers];
    const m = channel.table.name === "first_or_order" ? channel.table.m : 0;
    if (m > 0 !== (type === RANKING)) return false;
    if (m > 0) return m + noAnswers === options.length;
    if (isEntered(type)) return truths === grid?.points && noAnswers === options.length;
    return !isMultiple && truths + noAnswers === options.length;
  }
  if (type === RANKING) return false;
  if (!isMultiple) return !isEntered(type) && channel.k === options.length;
  const count = patternCount(options.length - alone, s) + BigInt(alone);
  return channel.d === 1 && count <= MAX_PATTERNS && BigInt(channel.k) === count;
}

/**
 * Count the sets of 1 to s of n options, and stop above `MAX_PATTERNS`.
 *
 * @param {number} n
 * @param {number} s
 */
function patternCount(n, s) {
  let [ofSize, count] = [1n, 0n];
  for (let size = 1; size <= s && count <= MAX_PATTERNS; size += 1) {
    ofSize = (ofSize * BigInt(n - size + 1)) / BigInt(size);
    count += ofSize;
  }
  return count;
}
