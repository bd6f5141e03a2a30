/**
 * From answers to the one report that leaves the device: pure, of constant length, enumerable.
 */

import { encodeBase64url } from "./base64url.js";
import { perturb } from "./mechanism.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./mechanism.js").Code} Code
 * @typedef {Readonly<Record<string, number>>} Answers  question id -> option index
 * @typedef {{stratum: string, invitation: string}} Link  what the link says about the report
 */

/** @type {Link} */
const PLAIN_LINK = { stratum: "", invitation: "" };

/** A question that cannot be left out was not answered. */
export class UnansweredError extends Error {
  /** @param {string} question */
  constructor(question) {
    super(`question ${JSON.stringify(question)} has no answer and no opt-out`);
    this.name = "UnansweredError";
  }
}

/** The survey's reports have no room for what must be in them. */
export class ReportTooLongError extends Error {
  /** @param {number} needed @param {number} room */
  constructor(needed, room) {
    super(`a report needs ${needed} bytes, this survey's have ${room}`);
    this.name = "ReportTooLongError";
  }
}

/**
 * Every answer perturbed once, in the order of the questions, as the body of one request.
 *
 * @param {Definition} definition
 * @param {Answers} answers
 * @param {import("./random.js").UniformBelow} uniformBelow
 * @param {Uint8Array} idBytes  16 random bytes
 * @param {Link} [link]
 * @returns {string}
 */
export function makeReport(definition, answers, uniformBelow, idBytes, link = PLAIN_LINK) {
  if (idBytes.length !== 16) throw new RangeError(`an id has 16 bytes, not ${idBytes.length}`);
  // All truths are known before the first draw: a missing one must not waste randomness.
  const asked = questions(definition);
  const truths = asked.map((question) => truthOf(question, answers));
  const codes = asked.map(({ channel }, i) => perturb(channel, truths[i], uniformBelow));
  return padded(definition, encodeBase64url(idBytes), codes, link);
}

/**
 * The codes of a report, to show what was sent.
 *
 * @param {string} body
 * @returns {Code[]}
 */
export function reportCodes(body) {
  return JSON.parse(body).codes;
}

/**
 * Refuse a survey whose longest report would not fit, before anyone answers it.
 *
 * @param {Definition} definition
 * @param {Link} [link]
 */
export function checkRoom(definition, link = PLAIN_LINK) {
  const longest = questions(definition).map(({ channel: { k, d } }) =>
    d === 1 ? k - 1 : encodeBase64url(new Uint8Array((k + 7) >> 3)),
  );
  padded(definition, encodeBase64url(new Uint8Array(16)), longest, link);
}

/**
 * All questions, in the order of their codes.
 *
 * @param {Definition} definition
 */
export function questions(definition) {
  return definition.pages.flatMap((page) => page.questions);
}

/**
 * @param {Question} question
 * @param {Answers} answers
 */
function truthOf(question, answers) {
  if (Object.keys(answers).includes(question.id)) return answers[question.id];
  const optOut = question.options.findIndex((option) => option.id === question.opt_out);
  if (optOut < 0) throw new UnansweredError(question.id);
  return optOut;
}

/**
 * The body as text; its padding hides how many digits the codes have.
 *
 * @param {Definition} definition
 * @param {string} id
 * @param {Code[]} codes
 * @param {Link} link
 */
function padded(definition, id, codes, link) {
  const { stratum, invitation } = link;
  const open = JSON.stringify({
    definition: definition.id,
    report_id: id,
    stratum,
    codes,
    invitation,
    pad: "",
  });
  const needed = new TextEncoder().encode(open).length;
  const room = definition.report_bytes;
  if (needed > room) throw new ReportTooLongError(needed, room);
  return `${open.slice(0, -2)}${".".repeat(room - needed)}"}`;
}
