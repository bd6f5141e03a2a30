/**
 * The field of each question type, and answers as text.
 */

import { isEntered } from "./answers.js";
import { radios } from "./field-choice.js";
import { dateField, dayText } from "./field-date.js";
import { checkboxes } from "./field-multiple-choice.js";
import { numberField } from "./field-number.js";
import { figure } from "./texts.js";
import { decimalAt } from "./typed-number.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {object} FieldContext
 * @property {Definition} definition
 * @property {Question} question
 * @property {string} name  of its inputs, made for this load
 * @property {readonly number[]} order  in which its options are shown
 * @property {Answer | undefined} answer
 * @property {(answer: Answer | undefined, rounded?: boolean) => void} onAnswer  undefined: the question is empty;
 *   `rounded`: the answer differs from what was typed
 * @property {(text: string) => void} onProblem  the current problem, "" if there is none
 * @typedef {object} Field
 * @property {HTMLElement[]} content
 * @property {Child[]} hint  how to fill it in; empty if no hint is needed
 * @property {HTMLElement} first
 * @property {HTMLElement | null} entry  an input that its question must label
 * @property {() => string} problem  why the entry is not an answer; "" if it is one, or empty
 */

/**
 * Create the field of a question.
 *
 * @param {FieldContext} context
 * @returns {Field}
 */
export function createField(context) {
  const { type, grid } = context.question;
  if (type === "multiple_choice") return checkboxes(context);
  if (grid === null || !isEntered(type)) return radios(context);
  return type === "date" ? dateField(context, grid) : numberField(context, grid);
}

/**
 * Return an answer as text, one text per option.
 *
 * @param {Question} question
 * @param {Answer} answer
 * @param {string} language
 * @returns {string[]}
 */
export function answerTexts({ type, options, grid }, answer, language) {
  if (typeof answer !== "number") return answer.map((option) => options[option].label);
  if (grid === null || !isEntered(type)) return [options[answer].label];
  if (answer >= grid.points) return [options[answer - grid.points].label];
  if (type === "date") return [dayText(grid, answer, language)];
  return [`${figure(decimalAt(grid, answer))} ${grid.unit}`.trim()];
}
