/**
 * Yes or no, one option of several, a scale: radio buttons.
 */

import { element, quoted } from "./dom.js";
import { say } from "./texts.js";

/**
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./field.js").FieldContext} FieldContext
 * @typedef {{row: HTMLElement, input: HTMLInputElement, option: number}} Choice
 */

/** Create one radio button per option. @param {FieldContext} context @returns {Field} */
export function radios(context) {
  const { order, answer, onAnswer } = context;
  const choices = order.map((option) => choiceRow(context, option, "radio"));
  for (const { input, option } of choices) {
    input.checked = answer === option;
    input.addEventListener("change", () => onAnswer(option));
  }
  return {
    content: [element("div", { class: "choices" }, ...choices.map(({ row }) => row))],
    hint: [],
    first: choices[0].input,
    entry: null,
    problem: () => "",
  };
}

export function divider() {
  return element("p", { class: "or" }, say("field.or"));
}

/**
 * Create an option's row. The whole row is the label, so people can tap anywhere on it.
 *
 * @param {FieldContext} context
 * @param {number} option
 * @param {"radio" | "checkbox"} type
 * @returns {Choice}
 */
export function choiceRow({ definition, question, name }, option, type) {
  const input = element("input", { type, name, autocomplete: "off" });
  // The row follows the page's direction, and the text follows its own.
  const label = element("span", {}, quoted(definition, question.options[option].label));
  return { row: element("label", { class: "choice" }, input, label), input, option };
}
