/**
 * A text field beside the options for no answer.
 */

import { element, surveyElement } from "./dom.js";
import { choiceRow, divider } from "./field-choice.js";

/**
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./field-choice.js").Choice} Choice
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./field.js").FieldContext} FieldContext
 * @typedef {import("./definition.js").Grid} Grid
 * @typedef {import("./typed-number.js").Located} Located
 * @typedef {object} Entry
 * @property {Record<string, string>} attributes
 * @property {Child[]} hint
 * @property {(index: number) => string} write  a grid point as the input takes it
 * @property {(input: HTMLInputElement) => Located | null} read
 * @property {(input: HTMLInputElement) => boolean} isEmpty
 * @property {string} problem
 */

/**
 * Create a text field and the options for no answer. Each clears the other.
 *
 * @param {FieldContext} context
 * @param {Grid} grid
 * @param {Entry} entry
 * @returns {Field}
 */
export function entryField(context, grid, entry) {
  const input = entryInput(context, grid, entry);
  const alternatives = context.question.options.map((_, option) =>
    choiceRow(context, option, "radio"),
  );
  for (const alternative of alternatives) offerInstead(context, grid, input, alternative);
  const hasAlternative = () => alternatives.some((alternative) => alternative.input.checked);
  const takeEntry = () => {
    for (const alternative of alternatives) alternative.input.checked = false;
    const located = entry.read(input);
    context.onAnswer(located?.index, located?.rounded);
  };
  input.addEventListener("input", takeEntry);
  // Half a date fires no input event, but typing it withdraws the chosen option.
  input.addEventListener("keyup", () => {
    if (hasAlternative() && !entry.isEmpty(input)) takeEntry();
  });
  const rows = [divider(), ...alternatives.map(({ row }) => row)];
  const alternativeRows =
    alternatives.length === 0 ? [] : [element("div", { class: "choices" }, ...rows)];
  return {
    content: [entryRow(input, grid.unit, context.definition), ...alternativeRows],
    hint: entry.hint,
    first: input,
    entry: input,
    problem: () =>
      hasAlternative() || entry.isEmpty(input) || entry.read(input) !== null ? "" : entry.problem,
  };
}

/** @param {FieldContext} context @param {Grid} grid @param {Entry} entry */
function entryInput({ name, answer }, grid, { attributes, write }) {
  const input = element("input", { ...attributes, name, autocomplete: "off" });
  if (typeof answer === "number" && answer < grid.points) input.value = write(answer);
  return input;
}

/**
 * Connect an option for no answer with the text field that it clears.
 *
 * @param {FieldContext} context
 * @param {Grid} grid
 * @param {HTMLInputElement} entry
 * @param {Choice} beside
 */
function offerInstead({ answer, onAnswer, onProblem }, grid, entry, { input, option }) {
  input.checked = answer === grid.points + option;
  // A click, not a change: choosing the checked option again also clears the field.
  input.addEventListener("click", () => {
    entry.value = "";
    onProblem("");
    onAnswer(grid.points + option);
  });
}

/**
 * Create the row of a text field. Screen readers read the unit in the hint instead.
 *
 * @param {HTMLElement} input
 * @param {string} unit
 * @param {Definition} definition
 */
function entryRow(input, unit, definition) {
  const attributes = { class: "unit", "aria-hidden": "true" };
  const suffix = unit === "" ? [] : [surveyElement("span", definition, unit, attributes)];
  return element("div", { class: "entry-row" }, input, ...suffix);
}
