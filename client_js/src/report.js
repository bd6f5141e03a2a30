/**
 * From answers to the one report that leaves the device, and in exact numbers what it can tell.
 *
 * Pure and enumerable; a report's length is constant, every figure is rounded against us.
 */

import {
  askedBits,
  drawSome,
  encodeBase64url,
  longestCode,
  perturb,
  ratio,
  reportedOptions,
  tableReports,
  tableRow,
  tableTruths,
} from "./mechanism.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./mechanism.js").Code} Code
 * @typedef {import("./mechanism.js").Ratio} Ratio
 * @typedef {import("./mechanism.js").UniformBelow} UniformBelow
 * @typedef {number | readonly number[]} Answer  option index, or grid index, or grid points + option
 *   index; of a multiple choice the indices of the ticked options, ascending
 * @typedef {Readonly<Record<string, Answer>>} Answers  question id -> answer
 * @typedef {{question: Question, optOut: string}} Gap  a question that stops the page; `optOut` is
 *   the label of the option it will count as, "" when it must be answered
 * @typedef {readonly string[] | null} Drawn  ids of the questions asked of this person; null: all
 * @typedef {{stratum: string, invitation: string, drawn: Drawn}} Circumstances
 * @typedef {{asked: string[], named: string[], place: {at: number, of: number} | null}} Reported
 *   `named`: labels a code names; `asked`: labels it speaks of, none when it speaks of all; `place`:
 *   a report that names no option is one of so many
 */

/** @type {Circumstances} */
const PLAIN = { stratum: "", invitation: "", drawn: null };

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
 * @param {UniformBelow} uniformBelow
 * @param {Uint8Array} idBytes  16 random bytes
 * @param {Circumstances} [circumstances]
 * @returns {string}
 */
export function makeReport(definition, answers, uniformBelow, idBytes, circumstances = PLAIN) {
  if (idBytes.length !== 16) throw new RangeError(`an id has 16 bytes, not ${idBytes.length}`);
  checkDrawn(definition, circumstances.drawn);
  // All truths are known before the first draw: a missing one must not waste randomness.
  const truths = truthsOf(definition, answers, circumstances.drawn);
  const codes = questions(definition).map(({ id, channel }) => {
    const truth = truths.get(id);
    return truth === undefined ? null : perturb(channel, truth, uniformBelow);
  });
  return padded(definition, encodeBase64url(idBytes), codes, circumstances);
}

/**
 * Which questions this person is asked: whole groups, drawn before the first answer.
 *
 * @param {Definition} definition
 * @param {UniformBelow} uniformBelow
 * @returns {string[] | null}  null in a survey that asks everyone everything
 */
export function drawQuestions({ sampling }, uniformBelow) {
  return sampling && drawSome(sampling.groups, sampling.draw, uniformBelow).flat();
}

/**
 * In which order this person sees the options of shuffled questions; what is no answer stays last.
 *
 * @param {Definition} definition
 * @param {UniformBelow} uniformBelow
 * @returns {Map<string, number[]>}  question id -> indices of its options
 */
export function shuffleOptions(definition, uniformBelow) {
  const asked = questions(definition).filter(({ shuffled }) => shuffled);
  return new Map(asked.map((question) => [question.id, shuffledOrder(question, uniformBelow)]));
}

/** @param {Question} question @param {UniformBelow} uniformBelow */
function shuffledOrder({ options, alone, ...question }, uniformBelow) {
  const silent = [question.opt_out, question.not_applicable];
  const all = options.map((_, i) => i);
  const moved = all.filter((i) => i < options.length - alone && !silent.includes(options[i].id));
  const last = all.filter((i) => !moved.includes(i));
  return [...drawSome(moved, moved.length, uniformBelow), ...last];
}

/**
 * More groups than were promised would give away more than was promised.
 *
 * @param {Definition} definition
 * @param {Drawn} drawn
 */
function checkDrawn({ sampling }, drawn) {
  const groups = sampling?.groups.filter((group) => group.every((id) => drawn?.includes(id)));
  const isWhole = groups?.length === sampling?.draw && groups?.flat().length === drawn?.length;
  if (sampling === null ? drawn !== null : !isWhole) {
    throw new RangeError("the questions drawn are not the ones this survey draws");
  }
}

/**
 * The truth of every drawn question; one that is not shown does not apply, whatever was answered.
 *
 * @param {Definition} definition
 * @param {Answers} answers
 * @param {Drawn} drawn
 */
function truthsOf(definition, answers, drawn) {
  const chosen = chosenAnswers(definition, answers, drawn);
  return new Map(
    drawnQuestions(definition, drawn).map((question) => {
      const answer = chosen.get(question.id);
      if (answer === undefined) throw new UnansweredError(question.id);
      return [question.id, truthOf(question, answer)];
    }),
  );
}

/**
 * What the channel gets: an index, or ticks.
 *
 * @param {Question} question
 * @param {Answer} answer
 */
function truthOf(question, answer) {
  if (typeof answer === "number") return answer;
  const { options, channel } = question;
  if (channel.kind === "bit_vector") return options.map((_, i) => Number(answer.includes(i)));
  // All of them are looked at: time must not tell which it is.
  return patterns(question).reduce(
    (found, pattern, i) => (pattern.join() === answer.join() ? i : found),
    -1,
  );
}

/**
 * What every drawn question counts as: its answer, the opt-out of an untouched one, or "does not
 * apply" for one that is not asked. Undefined while an answer is owed.
 *
 * @param {Definition} definition
 * @param {Answers} answers
 * @param {Drawn} drawn
 */
function chosenAnswers(definition, answers, drawn) {
  /** @type {Map<string, Answer | undefined>} */
  const chosen = new Map();
  const asked = new Map(questions(definition).map((question) => [question.id, question]));
  for (const question of drawnQuestions(definition, drawn)) {
    const { id, opt_out: optOut, not_applicable: notApplicable } = question;
    const isShown = holds(question, asked, chosen);
    const untouched = optionAnswer(question, isShown ? optOut : notApplicable);
    chosen.set(id, isShown && isAnswered(answers, id) ? answers[id] : untouched);
  }
  return chosen;
}

/**
 * Whether what a question depends on was answered so that it is asked.
 *
 * @param {Question} question
 * @param {Map<string, Question>} asked
 * @param {Map<string, Answer | undefined>} chosen  of the questions before
 */
function holds({ ask_if: condition }, asked, chosen) {
  if (condition === null) return true;
  const options = asked.get(condition.question)?.options ?? [];
  const answer = chosen.get(condition.question);
  const indices = typeof answer === "number" ? [answer] : (answer ?? []);
  return indices.some((index) => condition.options.includes(options[index]?.id));
}

/**
 * An option as an answer; undefined for the id "".
 *
 * @param {Question} question
 * @param {string} option
 * @returns {Answer | undefined}
 */
function optionAnswer({ type, options, grid }, option) {
  const index = options.findIndex(({ id }) => id === option);
  if (index < 0) return undefined;
  if (type === "multiple_choice") return [index];
  return isEntered(type) ? index + (grid?.points ?? 0) : index;
}

/** Whether an answer is typed, on a grid, and not chosen. @param {string} type */
export function isEntered(type) {
  return type === "number" || type === "date";
}

/**
 * Untouched is also a multiple choice without a tick.
 *
 * @param {Answers} answers
 * @param {string} id
 */
function isAnswered(answers, id) {
  if (!Object.keys(answers).includes(id)) return false;
  const answer = answers[id];
  return typeof answer === "number" || answer.length > 0;
}

/**
 * The pages of this person with the questions to show now; those without any are passed over.
 *
 * @param {Definition} definition
 * @param {Answers} answers
 * @param {Drawn} drawn
 * @returns {Page[]}
 */
export function shownPages(definition, answers, drawn) {
  const chosen = chosenAnswers(definition, answers, drawn);
  const asked = new Map(questions(definition).map((question) => [question.id, question]));
  return definition.pages
    .map(({ title, questions: all }) => ({ title, questions: all.filter(isDrawn(drawn)) }))
    .filter((page) => page.questions.length > 0)
    .map(({ title, questions: all }) => ({
      title,
      questions: all.filter((question) => holds(question, asked, chosen)),
    }));
}

/**
 * All sets of ticks that can be reported as a whole: of the options that go together in ascending
 * order of their bitmask, then each that stands alone.
 *
 * @param {Pick<Question, "options" | "alone" | "max_ticks">} question
 * @returns {number[][]}
 */
export function patterns({ options, alone, max_ticks: most }) {
  const together = options.length - alone;
  return [...sets(together, most), ...options.slice(together).map((_, i) => [together + i])];
}

/**
 * Sets of 1 to `most` numbers below n: those whose largest is 0, then 1, ...
 *
 * @param {number} n
 * @param {number} most
 * @returns {number[][]}
 */
function sets(n, most) {
  if (most === 0) return [];
  return Array.from({ length: n }, (_, largest) => [[], ...sets(largest, most - 1)]).flatMap(
    (smaller, largest) => smaller.map((set) => [...set, largest]),
  );
}

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
 * All questions, in the order of their codes.
 *
 * @param {Definition} definition
 */
export function questions(definition) {
  return definition.pages.flatMap((page) => page.questions);
}

/**
 * The questions this person is asked.
 *
 * @param {Definition} definition
 * @param {Drawn} drawn
 */
function drawnQuestions(definition, drawn) {
  return questions(definition).filter(isDrawn(drawn));
}

/** @param {Drawn} drawn */
function isDrawn(drawn) {
  return (/** @type {Question} */ { id }) => drawn === null || drawn.includes(id);
}

/**
 * The body as text; its padding hides how many digits the codes have.
 *
 * @param {Definition} definition
 * @param {string} id
 * @param {(Code | null)[]} codes
 * @param {Circumstances} circumstances
 */
function padded(definition, id, codes, { stratum, invitation }) {
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

/**
 * The gaps that stop "Continue" now. A question with an opt-out stops it the first time only; one
 * with an entry that is no answer always.
 *
 * @param {readonly Question[]} asked  the page's questions
 * @param {Answers} answers
 * @param {Set<string>} nudged  ids of questions already asked for; grows
 * @param {ReadonlySet<string>} [wrong]  ids of questions with such an entry
 * @returns {Gap[]}
 */
export function stoppingGaps(asked, answers, nudged, wrong = new Set()) {
  const gaps = asked
    .filter((question) => wrong.has(question.id) || isOpen(question, answers, nudged))
    .map((question) => ({ question, optOut: wrong.has(question.id) ? "" : optOutLabel(question) }));
  for (const { question } of gaps) if (!wrong.has(question.id)) nudged.add(question.id);
  return gaps;
}

/**
 * Whether a question still waits for an answer, or for the word that it may be left out.
 *
 * @param {Question} question
 * @param {Answers} answers
 * @param {ReadonlySet<string>} nudged
 */
export function isOpen(question, answers, nudged) {
  return !isAnswered(answers, question.id) && !(optOutLabel(question) && nudged.has(question.id));
}

/**
 * The label of the option an untouched question becomes, "" when it has none.
 *
 * @param {Question} question
 */
export function optOutLabel(question) {
  return question.options.find((option) => option.id === question.opt_out)?.label ?? "";
}

/** Above this e^epsilon (epsilon 8) all answers together are protected little. */
const LITTLE = 2980n;

/**
 * @typedef {Pick<Question, "type" | "channel" | "options" | "alone" | "max_ticks">} Protected
 *   a question, as far as its numbers need it
 * @typedef {{own: bigint, other: bigint, of: bigint}} Weights
 */

/**
 * Of 100 people, how many reports name the first option: if it is in their answer, and if not.
 *
 * Tenths, rounded half up: these are the only figures of the label that are not bounds. None for
 * numbers and dates, whose reports name nothing.
 *
 * @param {Protected} question
 * @returns {{own: string, other: string}}
 */
export function frequencies(question) {
  if (isEntered(question.type)) return { own: "", other: "" };
  const { own, other, of } = nameWeights(question);
  return { own: perHundred(own, of), other: perHundred(other, of) };
}

/** @param {Protected} question @returns {Weights} */
function nameWeights(question) {
  const { channel } = question;
  if (channel.kind === "weight_table") return tableWeights(channel);
  const [T, L] = [BigInt(channel.T), BigInt(channel.L)];
  if (channel.kind === "bit_vector") return { own: T, other: L, of: T + L };
  return question.type === "multiple_choice" ? patternWeights(question) : setWeights(channel);
}

/**
 * own = dT/M,  other = d((d-1)T + (k-d)L) / (M(k-1)),  M = dT + (k-d)L
 *
 * @param {import("./mechanism.js").SubsetSelection} channel
 */
function setWeights(channel) {
  const [k, d, T, L] = [channel.k, channel.d, channel.T, channel.L].map(BigInt);
  const M = d * T + (k - d) * L;
  const others = k - 1n;
  return { own: d * T * others, other: d * ((d - 1n) * T + (k - d) * L), of: M * others };
}

/**
 * own = (T + (N-1)L)/M,  other = N L/M,  with N of the k patterns holding the option, M = T + (k-1)L
 *
 * @param {Protected} question
 */
function patternWeights(question) {
  const { k, T, L } = /** @type {import("./mechanism.js").SubsetSelection} */ (question.channel);
  const N = patterns(question).filter((pattern) => pattern.includes(0)).length;
  return { own: BigInt(T + (N - 1) * L), other: BigInt(N * L), of: BigInt(T + (k - 1) * L) };
}

/**
 * own = W[0][0]/M, other = the smallest W[i][0]/M of another truth
 *
 * @param {import("./mechanism.js").WeightTable} channel
 */
function tableWeights(channel) {
  const truths = tableTruths(channel.table) + channel.no_answers;
  const first = tableRow(channel, 0);
  const others = Array.from({ length: truths - 1 }, (_, i) => tableRow(channel, i + 1)[0]);
  const of = first.reduce((sum, weight) => sum + weight, 0);
  return { own: BigInt(first[0]), other: BigInt(Math.min(...others)), of: BigInt(of) };
}

/**
 * Whether every report says an answer: the true one as it is, or a random one in its place.
 *
 * @param {Question} question
 */
export function saysAnswers({ channel }) {
  return channel.kind === "subset_selection" && channel.d === 1;
}

/**
 * @typedef {Ratio & {linked: boolean}} Bound  what one report can do about one question at most;
 *   `linked`: together with the reports of other questions
 */

/**
 * What a report can do about every question. An answer that decides what is asked also decides the
 * truths of those questions: all that hang together by `ask_if` report on each other's answers.
 *
 *     e^epsilon of a question = product of e^epsilon over all questions linked to it
 *
 * @param {readonly Question[]} asked
 * @returns {Map<string, Bound>}
 */
export function bounds(asked) {
  const roots = linkRoots(asked);
  /** @type {Map<string, Bound>} */
  const groups = new Map();
  for (const { id, channel } of asked) {
    const root = roots.get(id) ?? id;
    const group = groups.get(root);
    const own = ratio(channel);
    groups.set(root, { ...(group ? productOf([group, own]) : own), linked: group !== undefined });
  }
  return new Map(asked.map(({ id }) => [id, boundIn(groups, roots.get(id) ?? id)]));
}

/**
 * The first question of those that hang together: each is asked after one earlier question at most.
 *
 * @param {readonly Question[]} asked
 * @returns {Map<string, string>}
 */
function linkRoots(asked) {
  /** @type {Map<string, string>} */
  const roots = new Map();
  for (const { id, ask_if: condition } of asked) {
    roots.set(id, condition ? (roots.get(condition.question) ?? id) : id);
  }
  return roots;
}

/** @param {Map<string, Bound>} of @param {string} id @returns {Bound} */
export function boundIn(of, id) {
  const bound = of.get(id);
  if (!bound) throw new RangeError(`no question ${id}`);
  return bound;
}

/**
 * The factor by which one report can at most multiply anyone's odds, rounded up to a tenth.
 *
 * @param {Ratio} ratio
 * @returns {string}
 */
export function oddsFactor({ most, least }) {
  return fromTenths(ceilDivide(10n * most, least));
}

/**
 * What a suspicion of 10% and of 50% can at most become, in whole per cent, rounded up.
 *
 *     posterior = prior R / (prior R + (1 - prior)),  R = e^epsilon
 *
 * 100 means above 99%, never certainty: every report is possible under every answer.
 *
 * @param {Ratio} ratio
 * @returns {{from10: number, from50: number}}
 */
export function posteriorBounds({ most, least }) {
  return {
    from10: Number(ceilDivide(100n * most, most + 9n * least)),
    from50: Number(ceilDivide(100n * most, most + least)),
  };
}

/**
 * The odds factor of all questions one person is asked, rounded up.
 *
 * @param {Definition} definition
 * @returns {string}
 */
export function totalOddsFactor(definition) {
  const { most, least } = totalRatio(definition);
  return grouped(ceilDivide(most, least));
}

/**
 * Whether all answers together are protected little: epsilon above 8.
 *
 * @param {Definition} definition
 */
export function isProtectedLittle(definition) {
  const { most, least } = totalRatio(definition);
  return most > LITTLE * least;
}

/**
 * The first question of which a report says most.
 *
 * @param {readonly Question[]} asked
 * @returns {Question}
 */
export function leastProtected(asked) {
  const of = bounds(asked);
  return asked.reduce((least, question) =>
    exceeds(boundIn(of, question.id), boundIn(of, least.id)) ? question : least,
  );
}

/**
 * e^epsilon of all that one person is asked: the product over all questions, or over the groups
 * drawn when they are the ones that say most.
 *
 * @param {Pick<Definition, "pages" | "sampling">} definition
 * @returns {Ratio}
 */
export function totalRatio({ pages, sampling }) {
  const asked = pages.flatMap((page) => page.questions);
  const groups = sampling?.groups ?? [asked.map(({ id }) => id)];
  return groups
    .map((group) => asked.filter(({ id }) => group.includes(id)))
    .map((members) => productOf(members.map(({ channel }) => ratio(channel))))
    .sort((one, other) => (exceeds(other, one) ? 1 : -1))
    .slice(0, sampling?.draw ?? 1)
    .reduce((product, group) => productOf([product, group]));
}

/** @param {Ratio[]} ratios @returns {Ratio} */
function productOf(ratios) {
  return {
    most: ratios.reduce((product, { most }) => product * most, 1n),
    least: ratios.reduce((product, { least }) => product * least, 1n),
  };
}

/** @param {Ratio} one @param {Ratio} other */
function exceeds(one, other) {
  return one.most * other.least > other.most * one.least;
}

/**
 * Of how many questions each person is asked how many: fewest and most, when groups differ in size.
 *
 * @param {Definition} definition
 */
export function sampledCounts(definition) {
  const all = questions(definition).length;
  const { draw, groups } = definition.sampling ?? { draw: 1, groups: [questions(definition)] };
  const sizes = groups.map((group) => group.length).sort((one, other) => one - other);
  const total = (/** @type {number[]} */ drawn) => drawn.reduce((sum, size) => sum + size, 0);
  return { fewest: total(sizes.slice(0, draw)), most: total(sizes.slice(-draw)), all };
}

/** @param {bigint} weight @param {bigint} total */
function perHundred(weight, total) {
  return fromTenths((2000n * weight + total) / (2n * total));
}

/** @param {bigint} dividend @param {bigint} divisor */
function ceilDivide(dividend, divisor) {
  return (dividend + divisor - 1n) / divisor;
}

/** @param {bigint} tenths */
function fromTenths(tenths) {
  const whole = grouped(tenths / 10n);
  return tenths % 10n === 0n ? whole : `${whole}.${tenths % 10n}`;
}

/** @param {bigint} value */
function grouped(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}
