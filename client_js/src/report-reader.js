/**
 * What the codes of a report say, to show what was sent.
 */

import { askedBits, reportedOptions } from "./code.js";
import { patterns } from "./truth.js";
import { tableReports, tableTruths } from "./weight-table.js";

/**
 * @typedef {import("./definition.js").Question} Question
 * @typedef {{asked: string[], named: string[], place: {at: number, of: number} | null}} Reported
 *   `named`: labels a code names; `asked`: labels it speaks of, none when it speaks of all; `place`:
 *   a report that names no option is one of so many
 */

/**
 * The codes of a report, to show what was sent: whatever stands there, for a device may keep a
 * report that another version made or that was damaged.
 *
 * @param {string} body
 * @returns {unknown[]}
 */
export function reportCodes(body) {
  return JSON.parse(body).codes;
}

/**
 * What a code says; null when it is no report of this question.
 *
 * @param {Question} question
 * @param {unknown} code
 * @returns {Reported | null}
 */
export function readCode(question, code) {
  try {
    return reported(question, code);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** @param {Question} question @param {unknown} code @returns {Reported} */
function reported(question, code) {
  const { type, options, channel } = question;
  const labels = (/** @type {number[]} */ indices) => indices.map((i) => options[i].label);
  const named = reportedOptions(channel, code);
  if (channel.kind === "weight_table") return reportedColumn(question, named[0]);
  if (channel.kind === "bit_vector" && channel.sampled < channel.m) {
    return { asked: labels(askedBits(channel, code)), named: labels(named), place: null };
  }
  const whole = channel.kind === "subset_selection" && type === "multiple_choice";
  return { asked: [], named: labels(whole ? patterns(question)[named[0]] : named), place: null };
}

/** @param {Question} question @param {number} column @returns {Reported} */
function reportedColumn({ options, channel }, column) {
  if (channel.kind !== "weight_table") throw new RangeError("only tables have columns");
  const of = tableReports(channel.table);
  const silent = options.length - channel.no_answers;
  if (column >= of) return { asked: [], named: [options[silent + column - of].label], place: null };
  if (namesOptions({ options, channel })) {
    return { asked: [], named: [options[column].label], place: null };
  }
  return { asked: [], named: [], place: { at: column, of } };
}

/**
 * Whether the reports of a question are its options, so that one can say an option.
 *
 * @param {Pick<Question, "options" | "channel">} question
 */
export function namesOptions({ options, channel }) {
  if (channel.kind !== "weight_table") return true;
  const { table, no_answers: silent } = channel;
  return tableTruths(table) === tableReports(table) && options.length > silent;
}

/**
 * Whether every report says an answer: the true one as it is, or a random one in its place.
 *
 * @param {Question} question
 */
export function saysAnswers({ channel }) {
  return channel.kind === "subset_selection" && channel.d === 1;
}
