/**
 * Which questions a person gets, and what each counts as: an answer, an opt-out, "does not apply".
 */

import { drawSome } from "./mechanism.js";
import { factorial, rankingIndex } from "./ranking.js";
import { total } from "./weight-table.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./random.js").UniformBelow} UniformBelow
 * @typedef {number | readonly number[]} Answer  option index, or grid index, or grid points + option
 *   index; of a multiple choice the indices of the ticked options, ascending; of a ranking those of
 *   all options, from the first place to the last
 * @typedef {Readonly<Record<string, Answer>>} Answers  question id -> answer
 * @typedef {{question: Question, optOut: string}} Gap  a question that stops the page; `optOut` is
 *   the label of the option it will count as, "" when the question must be answered
 */

/** A required question has no answer. */
export class UnansweredError extends Error {}

/**
 * Return the truth of every drawn question. A hidden question counts as "does not apply".
 *
 * @param {Definition} definition
 * @param {Answers} answers
 * @param {Drawn} drawn
 */
export function truthsOf(definition, answers, drawn) {
  const effective = effectiveAnswers(definition, answers, drawn);
  return new Map(
    drawnQuestions(definition, drawn).map((question) => {
      const answer = effective.get(question.id);
      if (answer === undefined) throw new UnansweredError();
      return [question.id, truthOf(question, answer)];
    }),
  );
}

/**
 * Return what every drawn question counts as: its answer, the opt-out if it was left empty, or "does
 * not apply" if it is hidden. Undefined means that the question still needs an answer.
 *
 * @param {Definition} definition
 * @param {Answers} answers
 * @param {Drawn} drawn
 */
function effectiveAnswers(definition, answers, drawn) {
  /** @type {Map<string, Answer | undefined>} */
  const effective = new Map();
  const questionsById = new Map(questions(definition).map((question) => [question.id, question]));
  for (const question of drawnQuestions(definition, drawn)) {
    const { id, opt_out: optOut, not_applicable: notApplicable } = question;
    const isShown = isConditionMet(question, questionsById, effective);
    const untouched = optionAnswer(question, isShown ? optOut : notApplicable);
    effective.set(id, isShown && isAnswered(answers, id) ? answers[id] : untouched);
  }
  return effective;
}

/**
 * Whether the answer that a question depends on lets the question appear.
 *
 * @param {Question} question
 * @param {Map<string, Question>} questionsById
 * @param {Map<string, Answer | undefined>} effective  of the questions before
 */
function isConditionMet({ ask_if: condition }, questionsById, effective) {
  if (condition === null) return true;
  const options = questionsById.get(condition.question)?.options ?? [];
  const answer = effective.get(condition.question);
  const indices = typeof answer === "number" ? [answer] : (answer ?? []);
  return indices.some((index) => condition.options.includes(options[index]?.id));
}

/**
 * Whether a question has an answer. A multiple choice without a tick has none.
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
 * Maximum number of questions at which a survey shows one question at a time, unless it states a
 * layout; a matrix counts as one.
 */
const MAX_SINGLE = 20;

/**
 * Whether the survey shows one question at a time instead of whole pages.
 *
 * @param {Definition} definition
 */
export function showsOneQuestion({ layout, pages }) {
  const groups = pages.flatMap((page) => questionGroups(page.questions));
  return layout === "questions" || (layout === "" && groups.length <= MAX_SINGLE);
}

/** Return the text of a question, or the one that the rows of its matrix share. @param {Question} question */
export function headOf({ text, matrix }) {
  return matrix?.text ?? text;
}

/**
 * Return this person's pages with the questions to show now. A page may have no questions left.
 *
 * @param {Definition} definition
 * @param {Answers} answers
 * @param {Drawn} drawn
 * @returns {Page[]}
 */
export function shownPages(definition, answers, drawn) {
  const effective = effectiveAnswers(definition, answers, drawn);
  const questionsById = new Map(questions(definition).map((question) => [question.id, question]));
  const isSingle = showsOneQuestion(definition);
  return definition.pages
    .map(({ title, questions: all }) => ({ title, questions: all.filter(isDrawn(drawn)) }))
    .flatMap((page) =>
      isSingle
        ? questionGroups(page.questions).map((group) => ({ title: page.title, questions: group }))
        : page,
    )
    .filter((page) => page.questions.length > 0)
    .map(({ title, questions: all }) => ({
      title,
      questions: all.filter((question) => isConditionMet(question, questionsById, effective)),
    }));
}

/**
 * Return the gaps that stop "Continue". An empty question with an opt-out stops it only once; an
 * invalid entry stops it every time.
 *
 * @param {readonly Question[]} pageQuestions
 * @param {Answers} answers
 * @param {Set<string>} nudged  ids of questions already asked for; grows
 * @param {ReadonlySet<string>} [wrong]  ids of questions with such an entry
 * @returns {Gap[]}
 */
export function stoppingGaps(pageQuestions, answers, nudged, wrong = new Set()) {
  const gaps = pageQuestions
    .filter((question) => wrong.has(question.id) || isOpen(question, answers, nudged))
    .map((question) => ({ question, optOut: wrong.has(question.id) ? "" : optOutLabel(question) }));
  for (const { question } of gaps) if (!wrong.has(question.id)) nudged.add(question.id);
  return gaps;
}

/**
 * Whether a question still needs an answer or the notice that it may be left empty.
 *
 * @param {Question} question
 * @param {Answers} answers
 * @param {ReadonlySet<string>} nudged
 */
export function isOpen(question, answers, nudged) {
  return !isAnswered(answers, question.id) && !(optOutLabel(question) && nudged.has(question.id));
}

/** Whether an option stands for no answer. @param {Question} question @param {number} option */
export function isNoAnswer({ options, opt_out: optOut, not_applicable: notApplicable }, option) {
  return [optOut, notApplicable].includes(options[option].id);
}

/**
 * Return the label of the option that an empty question counts as, or "".
 *
 * @param {Question} question
 */
export function optOutLabel(question) {
  return question.options.find((option) => option.id === question.opt_out)?.label ?? "";
}

/**
 * @typedef {readonly string[] | null} Drawn  ids of the questions asked of this person; null: all
 */

/**
 * Draw the order of the options of shuffled questions; options for no answer stay last.
 *
 * @param {Definition} definition
 * @param {UniformBelow} uniformBelow
 * @returns {Map<string, number[]>}  question id -> indices of its options
 */
export function shuffleOptions(definition, uniformBelow) {
  const shuffled = questions(definition).filter(({ shuffled }) => shuffled);
  return new Map(shuffled.map((question) => [question.id, shuffledOrder(question, uniformBelow)]));
}

/** @param {Question} question @param {UniformBelow} uniformBelow */
function shuffledOrder({ options, alone, ...question }, uniformBelow) {
  const noAnswers = [question.opt_out, question.not_applicable];
  const all = options.map((_, i) => i);
  const movable = all.filter(
    (i) => i < options.length - alone && !noAnswers.includes(options[i].id),
  );
  const fixed = all.filter((i) => !movable.includes(i));
  return [...drawSome(movable, movable.length, uniformBelow), ...fixed];
}

/**
 * Check the drawn questions: more groups than the survey promises would reveal more than it promises.
 *
 * @param {Definition} definition
 * @param {Drawn} drawn
 */
export function checkDrawn({ sampling }, drawn) {
  const groups = sampling?.groups.filter((group) => group.every((id) => drawn?.includes(id)));
  const isWhole = groups?.length === sampling?.draw && groups?.flat().length === drawn?.length;
  if (sampling === null ? drawn !== null : !isWhole) {
    throw new RangeError();
  }
}

/**
 * Return all questions in the order of their codes.
 *
 * @param {Pick<Definition, "pages">} definition
 */
export function questions(definition) {
  return definition.pages.flatMap((page) => page.questions);
}

/**
 * Return the questions of a page in groups that count as one: the rows of a matrix are one group,
 * every other question is alone.
 *
 * @param {readonly Question[]} pageQuestions
 * @returns {Question[][]}
 */
export function questionGroups(pageQuestions) {
  /** @type {Question[][]} */
  const groups = [];
  for (const question of pageQuestions) {
    const last = groups[groups.length - 1];
    const isNextRow = question.matrix !== undefined && last?.[0].matrix?.id === question.matrix.id;
    if (last && isNextRow) last.push(question);
    else groups.push([question]);
  }
  return groups;
}

/**
 * Return the questions that this person gets.
 *
 * @param {Definition} definition
 * @param {Drawn} drawn
 */
function drawnQuestions(definition, drawn) {
  return questions(definition).filter(isDrawn(drawn));
}

/** @param {Drawn} drawn */
export function isDrawn(drawn) {
  return (/** @type {Question} */ { id }) => drawn === null || drawn.includes(id);
}

/**
 * Return the fewest and the most questions that one person gets. A matrix counts as one, as in the
 * progress display; `rows` is the average number of answers if a person gets the most questions.
 *
 * @param {Definition} definition
 */
export function sampledCounts(definition) {
  const { sampling } = definition;
  const all = questions(definition);
  const draw = sampling?.draw ?? 1;
  // The minifier moves destructuring declarations up, so none of them may use `all`.
  const groups = sampling?.groups ?? [all.map(({ id }) => id)];
  const sizes = groups
    .map((ids) => questionGroups(all.filter(({ id }) => ids.includes(id))).length)
    .sort((a, b) => a - b);
  const most = total(sizes.slice(-draw));
  const rows = (most * all.length) / questionGroups(all).length;
  return { fewest: total(sizes.slice(0, draw)), most, rows };
}

/**
 * Return the truth of an answer: an index, or ticks.
 *
 * @param {Question} question
 * @param {Answer} answer
 */
function truthOf(question, answer) {
  if (question.type === RANKING) return rankingTruth(question, answer);
  if (typeof answer === "number") return answer;
  const { options, channel } = question;
  if (channel.kind !== "subset_selection") {
    return options.map((_, i) => Number(answer.includes(i)));
  }
  // All patterns are compared, so that the time taken does not reveal the answer.
  return patterns(question).reduce(
    (index, pattern, i) => (pattern.join() === answer.join() ? i : index),
    -1,
  );
}

/**
 * Return the number of ranked options of a ranking; the options for no answer come after them.
 *
 * @param {Pick<Question, "options" | "channel">} question
 */
export function rankedCount({ options, channel }) {
  return options.length - (channel.kind === "weight_table" ? channel.no_answers : 0);
}

/** @param {Question} question @param {Answer} answer */
function rankingTruth(question, answer) {
  const ranked = rankedCount(question);
  if (typeof answer === "number") return factorial(ranked) + answer - ranked;
  return rankingIndex(answer);
}

/**
 * Return an option as an answer, or undefined for the id "".
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

/** Whether people type the answer, which is then a grid point. @param {string} type */
export function isEntered(type) {
  return type === "number" || type === "date";
}

/**
 * Return all sets of ticks that can be reported as a whole: options that combine, in ascending
 * order of their bitmask, then each exclusive option.
 *
 * @param {Pick<Question, "options" | "alone" | "max_ticks">} question
 * @returns {number[][]}
 */
export function patterns({ options, alone, max_ticks: max }) {
  const together = options.length - alone;
  return [...sets(together, max), ...options.slice(together).map((_, i) => [together + i])];
}

/**
 * Return the sets of 1 to `max` numbers below n, ordered by their largest number.
 *
 * @param {number} n
 * @param {number} max
 * @returns {number[][]}
 */
function sets(n, max) {
  if (max === 0) return [];
  return Array.from({ length: n }, (_, largest) => [[], ...sets(largest, max - 1)]).flatMap(
    (smaller, largest) => smaller.map((set) => [...set, largest]),
  );
}

export const CHOICES = ["yes_no", "single_choice", "scale", "multiple_choice"];

/** The type whose answer is an order of all options. */
export const RANKING = "ranking";

export const TYPES = [...CHOICES, "number", "date", "ranking"];
