/**
 * The form of a channel: integers that fit in a draw, rows of one sum, a truth for every answer.
 */

import { isEntered } from "./answers.js";
import { ensureAtMost, LIMITS } from "./definition.js";
import { DefinitionError, ensure, isInteger } from "./definition-error.js";
import { ratio } from "./privacy-loss.js";
import { columnMaxima, tableReports, tableRow, tableTruths } from "./weight-table.js";

/**
 * @typedef {import("./mechanism.js").Channel} Channel
 * @typedef {import("./definition.js").Question} Question
 */

const WORD_VALUES = 2n ** 32n;

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

/** Channels that passed their checks; questions share equal channels. @type {WeakSet<Channel>} */
const checkedChannels = new WeakSet();

/**
 * Check that a channel is of a known kind and consists of integers that fit in a draw.
 *
 * @param {any} channel
 * @param {string} id
 */
export function checkChannel(channel, id) {
  if (checkedChannels.has(channel)) return;
  const check = {
    subset_selection: checkSet,
    bit_vector: checkBits,
    half_space: checkHalfSpace,
    weight_table: checkTable,
  };
  const kind = /** @type {keyof typeof check} */ (String(channel?.kind));
  ensure(Object.keys(check).includes(kind), `${id}: unknown channel kind ${kind}`);
  check[kind](channel, id);
  checkedChannels.add(channel);
}

/** @param {any} channel @param {string} id */
function checkSet({ k, d, T, L }, id) {
  ensure(isInteger(k, 2, MAX_OPTIONS), `${id}: k = ${k}`);
  ensure(isInteger(d, 1, k - 1), `${id}: d = ${d} is not from 1 to k - 1`);
  checkWeights(T, L, id);
  ensureDrawable(BigInt(d) * BigInt(T) + BigInt(k - d) * BigInt(L), id);
}

/** @param {any} channel @param {string} id */
function checkBits({ m, s, alone, sampled, T, L }, id) {
  checkTicks(m, s, alone, MAX_BITS, id);
  ensure(isInteger(sampled, 1, m), `${id}: ${sampled} of ${m} bits are reported`);
  checkWeights(T, L, id);
  ensureDrawable(BigInt(T) + BigInt(L), id);
}

/** @param {any} channel @param {string} id */
function checkHalfSpace(channel, id) {
  const { m, s, alone, agreements, near, far } = channel;
  checkTicks(m, s, alone, MAX_HALF_SPACE_BITS, id);
  ensure(
    isInteger(agreements, Math.floor(m / 2) + 1, m),
    `${id}: ${agreements} of ${m} bits agree in a near report`,
  );
  ensure(isInteger(near, 1) && isInteger(far, 1), `${id}: near = ${near}, far = ${far}`);
  ensureDrawable(BigInt(near) + BigInt(far), id);
  const { numerator, denominator } = ratio(channel);
  ensure(numerator > denominator, `${id}: its near reports are not the likeliest`);
}

/** @param {any} m @param {any} s @param {any} alone @param {number} maximum @param {string} id */
function checkTicks(m, s, alone, maximum, id) {
  ensure(isInteger(m, 1, maximum), `${id}: m = ${m} bits`);
  ensure(isInteger(alone, 0, Math.min(MAX_ALONE, m - 1)), `${id}: ${alone} bits stand alone`);
  ensure(isInteger(s, 1, m - alone), `${id}: s = ${s} ticks`);
}

/** @param {any} channel @param {string} id */
function checkTable(channel, id) {
  const { table, no_answers: noAnswers } = channel;
  ensure(
    isInteger(noAnswers, 0, MAX_NO_ANSWERS),
    `${id}: ${noAnswers} rows for no answer (0 to ${MAX_NO_ANSWERS})`,
  );
  ensureDrawable(shapeTotal(table, id), id);
  const { numerator, denominator } = ratio(channel);
  ensure(numerator > denominator, `${id}: all rows of its table are equal`);
  const truths = tableTruths(table) + noAnswers;
  const sum = listTotal(tableRow(channel, 0));
  ensureDrawable(sum, id);
  const maxima = columnMaxima(channel);
  // A table may have four million weights, so each is read only once.
  for (let truth = 0; truth < truths; truth += 1) {
    checkRow(tableRow(channel, truth), maxima, sum, id);
  }
}

/**
 * Check one row. Reports that are likeliest under the same truth count together: p is their total
 * probability, so that splitting one report into many cannot hide a high p.
 *
 * @param {number[]} row
 * @param {number[]} maxima  of all columns
 * @param {bigint} sum
 * @param {string} id
 */
function checkRow(row, maxima, sum, id) {
  let [smallest, total, likeliest] = [row[0], 0, 0];
  for (let report = 0; report < row.length; report += 1) {
    const weight = row[report];
    total += weight;
    if (weight < smallest) smallest = weight;
    if (weight === maxima[report]) likeliest += weight;
  }
  ensure(smallest >= 1, `${id}: a weight of its table is below 1`);
  ensure(BigInt(total) === sum, `${id}: the rows of its table have different sums`);
  ensureAtMost(100n * BigInt(likeliest), LIMITS.percent * sum, `${id}: p is above .99`);
}

/**
 * Check the integers of a table and return the sum of its rows, before any row is computed.
 *
 * @param {any} table
 * @param {string} id
 * @returns {bigint}
 */
function shapeTotal(table, id) {
  switch (table?.name) {
    case "window":
      return windowTotal(table, id);
    case "one_bit":
      ensure(isInteger(table.R, 1, MAX_GRID - 1), `${id}: R = ${table.R}`);
      checkWeights(table.T, table.L, id);
      return BigInt(table.R) * BigInt(table.T + table.L);
    case "by_distance":
      checkList(table.weights, MAX_GRID, id);
      return 2n * listTotal(table.weights) - BigInt(table.weights[0]);
    case "explicit":
      return explicitTotal(table.table, id);
    case "mixture":
      return mixtureTotal(table, id);
    default:
      throw new DefinitionError("malformed", `${id}: unknown table`);
  }
}

/** @param {any} table @param {string} id */
function windowTotal({ k, width, stride, T, L }, id) {
  ensure(isInteger(k, 2, MAX_GRID), `${id}: a window over ${k} grid points`);
  ensure(isInteger(width, 1) && isInteger(stride, 1), `${id}: a window without width or stride`);
  const reports = (k - 1) * stride + width;
  ensure(reports <= MAX_REPORTS, `${id}: a window with ${reports} reports`);
  checkWeights(T, L, id);
  return BigInt(width) * BigInt(T) + BigInt(reports - width) * BigInt(L);
}

/** @param {any} rows @param {string} id */
function explicitTotal(rows, id) {
  const isTable = Array.isArray(rows) && isInteger(rows.length, 2, MAX_EXPLICIT);
  ensure(isTable, `${id}: a table has 2 to ${MAX_EXPLICIT} rows`);
  for (const row of rows) {
    checkList(row, MAX_EXPLICIT, id);
    ensure(row.length === rows[0].length, `${id}: the rows of its table differ in length`);
    ensureDrawable(listTotal(row), id);
  }
  return listTotal(rows[0]);
}

/** @param {any} table @param {string} id */
function mixtureTotal({ a, first, b, second }, id) {
  ensure(isInteger(a, 1) && isInteger(b, 1), `${id}: a mixture without weights`);
  for (const part of [first, second]) {
    ensure(["window", "one_bit"].includes(part?.name), `${id}: a mixture of other tables`);
  }
  const total = BigInt(a) * shapeTotal(first, id) + BigInt(b) * shapeTotal(second, id);
  ensure(
    tableTruths(first) === tableTruths(second),
    `${id}: the parts of a mixture have different numbers of truths`,
  );
  const reports = tableReports(first) + tableReports(second);
  ensure(reports <= MAX_REPORTS, `${id}: a mixture with ${reports} reports`);
  return total;
}

/** @param {any} list @param {number} max @param {string} id */
function checkList(list, max, id) {
  const isList = Array.isArray(list) && isInteger(list.length, 2, max);
  ensure(isList, `${id}: its table needs 2 to ${max} weights per row`);
  ensure(
    list.every((weight) => isInteger(weight, 1)),
    `${id}: a weight of its table is not an integer of at least 1`,
  );
}

/** @param {number[]} list */
function listTotal(list) {
  return list.reduce((sum, weight) => sum + BigInt(weight), 0n);
}

/** @param {any} T @param {any} L @param {string} id */
function checkWeights(T, L, id) {
  ensure([T, L].every(Number.isSafeInteger), `${id}: T and L must be integers`);
  ensure(T > L && L >= 1, `${id}: T = ${T}, L = ${L} but T > L >= 1 is required`);
}

/** @param {bigint} total @param {string} id */
function ensureDrawable(total, id) {
  ensure(total <= WORD_VALUES, `${id}: the weights add up to more than 2^32`);
}

/** @param {Question} question */
export function checkSize(question) {
  const { id, type } = question;
  ensure(fitsQuestion(question), `${id}: its channel does not fit its type ${type} and options`);
}

/** Whether the channel has exactly one truth per answer. @param {Question} question */
function fitsQuestion({ type, options, grid, alone, max_ticks: s, channel }) {
  const isMultiple = type === "multiple_choice";
  if (channel.kind === "bit_vector" || channel.kind === "half_space") {
    return isMultiple && channel.m === options.length && channel.alone === alone && channel.s === s;
  }
  if (channel.kind === "weight_table") {
    const [truths, noAnswers] = [tableTruths(channel.table), channel.no_answers];
    if (isEntered(type)) return truths === grid?.points && noAnswers === options.length;
    return !isMultiple && truths + noAnswers === options.length;
  }
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
