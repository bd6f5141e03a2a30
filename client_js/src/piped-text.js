/**
 * Earlier answers in later texts. Only the page on the screen shows the answer: neither the report, nor
 * the document's title, nor the browser's history contains it.
 */

import { isEntered, isNoAnswer, questions } from "./answers.js";
import { parsePiped } from "./definition-piping.js";
import { isolatedNumbers, quoted } from "./dom.js";
import { answerTexts } from "./field.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./definition-piping.js").Placeholder} Placeholder
 * @typedef {import("./dom.js").Child} Child
 * @typedef {object} AnswersShown
 * @property {Definition} definition
 * @property {Page[]} pages  this person's pages with the questions to show now
 * @property {(question: string) => Answer | undefined} answerTo
 */

/**
 * Return a text of a question for the screen, with earlier answers in place of placeholders.
 *
 * @param {AnswersShown} context
 * @param {Question} question
 * @param {"text" | "help"} name
 * @param {(definition: Definition, answer: string) => Child} [quote]
 * @param {(text: string) => Child[]} [isolate]
 */
export function filledText(context, question, name, quote = quoted, isolate = isolatedNumbers) {
  const template = question.piped?.[name];
  const parts = template === undefined ? [question[name]] : parsePiped(template);
  return parts.flatMap((part) =>
    typeof part === "string" ? isolate(part) : [answerOr(context, part, quote)],
  );
}

/**
 * Return the same without elements, for what is read aloud and for names of buttons.
 *
 * @param {AnswersShown} context
 * @param {Question} question
 * @param {"text" | "help"} name
 */
export function filledWords(context, question, name) {
  const quote = (/** @type {Definition} */ _, /** @type {string} */ answer) => answer;
  return filledText(context, question, name, quote, (text) => [text]).join("");
}

/**
 * @param {AnswersShown} context
 * @param {Placeholder} placeholder
 * @param {(definition: Definition, answer: string) => Child} quote
 */
function answerOr({ definition, pages, answerTo }, { source, fallback }, quote) {
  // A question that is hidden or was not drawn is on no page.
  const question = questions({ pages }).find(({ id }) => id === source);
  const answer = question && answerTo(source);
  if (!question || answer === undefined || isEmptyAnswer(question, answer)) return fallback;
  return quote(definition, answerTexts(question, answer, definition.language).join(", "));
}

/** Whether an answer is an option for no answer. @param {Question} question @param {Answer} answer */
function isEmptyAnswer(question, answer) {
  const points = isEntered(question.type) ? (question.grid?.points ?? 0) : 0;
  const isOption = typeof answer === "number" && answer >= points;
  return isOption && isNoAnswer(question, answer - points);
}
