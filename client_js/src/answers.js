/**
 * What each question counts as: its answer, its opt-out, or "does not apply".
 */

import { optionAnswer, truthOf } from "./question-types.js";
import { drawnQuestions, isDrawn, questions } from "./sampling.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./sampling.js").Drawn} Drawn
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./definition.js").Question} Question
 * @typedef {number | readonly number[]} Answer  option index, or grid index, or grid points + option
 *   index; of a multiple choice the indices of the ticked options, ascending
 * @typedef {Readonly<Record<string, Answer>>} Answers  question id -> answer
 * @typedef {{question: Question, optOut: string}} Gap  a question that stops the page; `optOut` is
 *   the label of the option it will count as, "" when the question must be answered
 */

/** A required question has no answer. */
export class UnansweredError extends Error {
  /** @param {string} question */
  constructor(question) {
    super(`question ${JSON.stringify(question)} has no answer and no opt-out`);
    this.name = "UnansweredError";
  }
}

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
      if (answer === undefined) throw new UnansweredError(question.id);
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
  return definition.pages
    .map(({ title, questions: all }) => ({ title, questions: all.filter(isDrawn(drawn)) }))
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

/**
 * Return the label of the option that an empty question counts as, or "".
 *
 * @param {Question} question
 */
export function optOutLabel(question) {
  return question.options.find((option) => option.id === question.opt_out)?.label ?? "";
}
