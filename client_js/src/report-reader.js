/**
 * Reads the codes of a report, to show what was sent.
 */

import { patterns } from "./question-types.js";
import { reportedOptions, sampledBits } from "./report-encoding.js";
import { tableReports, tableTruths } from "./weight-table.js";

/**
 * @typedef {import("./definition.js").Question} Question
 * @typedef {{covered: string[], named: string[], place: {at: number, of: number} | null}} Reported
 *   `named`: the labels that a code names; `covered`: the labels that it covers, empty if all; `place`:
 *   the number of a report that names no option
 */

/**
 * Return the codes of a report unchecked: another version may have made it, or it may be damaged.
 *
 * @param {string} body
 * @returns {unknown[]}
 */
export function reportCodes(body) {
  return JSON.parse(body).codes;
}

/**
 * Return what a code says, or null if it is not a report of this question.
 *
 * @param {Question} question
 * @param {unknown} code
 * @returns {Reported | null}
 */
export function readCode(question, code) {
  try {
    return describeCode(question, code);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** @param {Question} question @param {unknown} code @returns {Reported} */
function describeCode(question, code) {
  const { type, options, channel } = question;
  const labels = (/** @type {number[]} */ indices) => indices.map((i) => options[i].label);
  const indices = reportedOptions(channel, code);
  if (channel.kind === "weight_table") return describeColumn(question, indices[0]);
  if (channel.kind === "bit_vector" && channel.sampled < channel.m) {
    return { covered: labels(sampledBits(channel, code)), named: labels(indices), place: null };
  }
  const isPattern = channel.kind === "subset_selection" && type === "multiple_choice";
  return {
    covered: [],
    named: labels(isPattern ? patterns(question)[indices[0]] : indices),
    place: null,
  };
}

/** @param {Question} question @param {number} column @returns {Reported} */
function describeColumn({ options, channel }, column) {
  if (channel.kind !== "weight_table") throw new RangeError("only tables have columns");
  const of = tableReports(channel.table);
  const firstNoAnswer = options.length - channel.no_answers;
  if (column >= of)
    return { covered: [], named: [options[firstNoAnswer + column - of].label], place: null };
  if (namesOptions({ options, channel })) {
    return { covered: [], named: [options[column].label], place: null };
  }
  return { covered: [], named: [], place: { at: column, of } };
}

/**
 * Whether each report of a question names an option.
 *
 * @param {Pick<Question, "options" | "channel">} question
 */
export function namesOptions({ options, channel }) {
  if (channel.kind !== "weight_table") return true;
  const { table, no_answers: firstNoAnswer } = channel;
  return tableTruths(table) === tableReports(table) && options.length > firstNoAnswer;
}

/**
 * Whether every report names one answer: the true one or a random one.
 *
 * @param {Question} question
 */
export function saysAnswers({ channel }) {
  return channel.kind === "subset_selection" && channel.d === 1;
}
