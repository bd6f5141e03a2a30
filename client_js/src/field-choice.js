/**
 * Yes or no, one option of several, a scale: radio buttons.
 */

import { element, quoted } from "./dom.js";
import { say } from "./words.js";

/**
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./field.js").Filled} Filled
 * @typedef {{row: HTMLElement, input: HTMLInputElement, option: number}} Choice
 */

/** @param {Filled} filled @returns {Field} */
export function radios(filled) {
  const { order, answer, onAnswer } = filled;
  const choices = order.map((option) => choice(filled, option, "radio"));
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
 * The whole row is the label, so the whole row can be tapped.
 *
 * @param {Filled} filled
 * @param {number} option
 * @param {"radio" | "checkbox"} type
 * @returns {Choice}
 */
export function choice({ definition, question, name }, option, type) {
  const input = element("input", { type, name, autocomplete: "off" });
  // The row runs as the page does, its mark on that side; within it the text runs as it must.
  const label = element("span", {}, quoted(definition, question.options[option].label));
  return { row: element("label", { class: "choice" }, input, label), input, option };
}
