/**
 * What each question counts as: its answer, the opt-out, or "does not apply".
 */

import { drawnQuestions, isDrawn, questions } from "./sampling.js";
import { optionAnswer, truthOf } from "./truth.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./sampling.js").Drawn} Drawn
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./definition.js").Question} Question
 * @typedef {number | readonly number[]} Answer  option index, or grid index, or grid points + option
 *   index; of a multiple choice the indices of the ticked options, ascending
 * @typedef {Readonly<Record<string, Answer>>} Answers  question id -> answer
 * @typedef {{question: Question, optOut: string}} Gap  a question that stops the page; `optOut` is
 *   the label of the option it will count as, "" when it must be answered
 */

/** A question that cannot be left out was not answered. */
export class UnansweredError extends Error {
  /** @param {string} question */
  constructor(question) {
    super(`question ${JSON.stringify(question)} has no answer and no opt-out`);
    this.name = "UnansweredError";
  }
}

/**
 * The truth of every drawn question; one that is not shown does not apply, whatever was answered.
 *
 * @param {Definition} definition
 * @param {Answers} answers
 * @param {Drawn} drawn
 */
export function truthsOf(definition, answers, drawn) {
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
