/**
 * Makes the one report that leaves the device, and reads what a report says. All reports of a survey
 * have the same length.
 */

import { checkDrawn, patterns, questions, RANKING, truthsOf } from "./answers.js";
import {
  drawSome,
  encodeBase64url,
  longestCode,
  perturb,
  perturbJointly,
  reportedOptions,
  sampledBits,
} from "./mechanism.js";
import { orders } from "./ranking.js";
import { firstReports, tableReports, tableTruths } from "./weight-table.js";

/**
 * @typedef {import("./answers.js").Answers} Answers
 * @typedef {import("./answers.js").Drawn} Drawn
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./mechanism.js").Code} Code
 * @typedef {import("./random.js").UniformBelow} UniformBelow
 * @typedef {{stratum: string, invitation: string, drawn: Drawn}} Circumstances
 */

/** @type {Circumstances} */
const PLAIN = { stratum: "", invitation: "", drawn: null };

/** A report needs more bytes than the survey's reports have. */
export class ReportTooLongError extends Error {}

/**
 * Randomize every answer once, in the order of the questions, and return the body of the request.
 *
 * @param {Definition} definition
 * @param {Answers} answers
 * @param {UniformBelow} uniformBelow
 * @param {Uint8Array} idBytes  16 random bytes
 * @param {Circumstances} [circumstances]
 * @returns {string}
 */
export function makeReport(definition, answers, uniformBelow, idBytes, circumstances = PLAIN) {
  if (idBytes.length !== 16) throw new RangeError();
  checkDrawn(definition, circumstances.drawn);
  // All truths are known before the first draw: a missing answer must not waste randomness.
  const truths = truthsOf(definition, answers, circumstances.drawn);
  /** @type {Map<string, number>} */
  const jointCodes = new Map();
  const codes = questions(definition).map(({ id, channel, joint }) => {
    const truth = truths.get(id);
    if (truth !== undefined && joint) {
      if (!jointCodes.has(id)) drawJointly(definition, joint, truths, uniformBelow, jointCodes);
      return jointCodes.get(id) ?? null;
    }
    return truth === undefined ? null : perturb(channel, truth, uniformBelow);
  });
  return padded(definition, encodeBase64url(idBytes), codes, circumstances);
}

/**
 * Draw the codes of all questions of a joint response at once.
 *
 * @param {Definition} definition
 * @param {import("./definition.js").Joint} joint
 * @param {Map<string, import("./mechanism.js").Truth>} truths
 * @param {UniformBelow} uniformBelow
 * @param {Map<string, number>} codes  grows
 */
function drawJointly(definition, { questions: ids, channel }, truths, uniformBelow, codes) {
  const members = questions(definition).filter(({ id }) => ids.includes(id));
  const reports = perturbJointly(
    channel,
    members.map(({ id }) => truths.get(id)),
    members.map(({ options }) => options.length),
    uniformBelow,
  );
  for (const [i, { id }] of members.entries()) codes.set(id, reports[i]);
}

/**
 * Draw the questions that this person gets: whole groups, before the first answer.
 *
 * @param {Definition} definition
 * @param {UniformBelow} uniformBelow
 * @returns {string[] | null}  null in a survey that asks everyone everything
 */
export function drawQuestions({ sampling }, uniformBelow) {
  return sampling && drawSome(sampling.groups, sampling.draw, uniformBelow).flat();
}

/**
 * Refuse a survey whose longest report would not fit, before anyone answers it.
 *
 * @param {Definition} definition
 * @param {Circumstances} [circumstances]
 */
export function checkRoom(definition, circumstances = PLAIN) {
  const longest = questions(definition).map(({ channel }) => {
    const code = longestCode(channel);
    return definition.sampling && JSON.stringify(code).length < "null".length ? null : code;
  });
  padded(definition, encodeBase64url(new Uint8Array(16)), longest, circumstances);
}

/**
 * Return the body as text, padded so that its length does not reveal the codes.
 *
 * @param {Definition} definition
 * @param {string} id
 * @param {(Code | null)[]} codes
 * @param {Circumstances} circumstances
 */
function padded(definition, id, codes, { stratum, invitation }) {
  const text = JSON.stringify({
    definition: definition.id,
    report_id: id,
    stratum,
    codes,
    invitation,
    pad: "",
  });
  const needed = new TextEncoder().encode(text).length;
  const room = definition.report_bytes;
  if (needed > room) throw new ReportTooLongError();
  return `${text.slice(0, -2)}${".".repeat(room - needed)}"}`;
}

/**
 * @typedef {{covered: string[], named: string[], place: {at: number, of: number} | null,
 *   order?: string[]}} Reported
 *   `named`: the labels that a code names; `covered`: the labels that it covers, empty if all; `place`:
 *   the number of a report that names no option; `order`: for a ranking, the labels of the ordered
 *   options, or only that of the first choice
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
function describeColumn({ options, channel, type }, column) {
  if (channel.kind !== "weight_table") throw new RangeError();
  const of = tableReports(channel.table);
  const firstNoAnswer = options.length - channel.no_answers;
  if (column >= of)
    return { covered: [], named: [options[firstNoAnswer + column - of].label], place: null };
  if (namesOptions({ options, channel, type })) {
    return { covered: [], named: [options[column].label], place: null };
  }
  if (channel.table.name === "first_or_order") {
    const { m, size } = channel.table;
    const firsts = firstReports(channel.table);
    const order = column < firsts ? [column] : orders(m, size)[column - firsts];
    return { covered: [], named: [], place: null, order: order.map((i) => options[i].label) };
  }
  return { covered: [], named: [], place: { at: column, of } };
}

/**
 * Whether each report of a question names an option.
 *
 * @param {Pick<Question, "options" | "channel" | "type">} question
 */
export function namesOptions({ options, channel, type }) {
  if (type === RANKING) return false;
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
