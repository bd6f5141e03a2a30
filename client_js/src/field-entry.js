/**
 * A field to type in, beside options that are no answer.
 */

import { element, surveyElement } from "./dom.js";
import { choice, divider } from "./field-choice.js";

/**
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./field-choice.js").Choice} Choice
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./field.js").Filled} Filled
 * @typedef {import("./definition.js").Grid} Grid
 * @typedef {import("./decimal.js").Located} Located
 * @typedef {object} Entry
 * @property {Record<string, string>} attributes
 * @property {Child[]} hint
 * @property {(index: number) => string} write  a grid point as the input takes it
 * @property {(input: HTMLInputElement) => Located | null} read
 * @property {(input: HTMLInputElement) => boolean} isEmpty
 * @property {string} problem
 */

/**
 * A field to type in, and beside it the options that are no answer: either clears the other.
 *
 * @param {Filled} filled
 * @param {Grid} grid
 * @param {Entry} entry
 * @returns {Field}
 */
export function entryField(filled, grid, entry) {
  const input = entryInput(filled, grid, entry);
  const silent = filled.question.options.map((_, option) => choice(filled, option, "radio"));
  for (const one of silent) offerInstead(filled, grid, input, one);
  const isSilent = () => silent.some((one) => one.input.checked);
  const takeEntry = () => {
    for (const one of silent) one.input.checked = false;
    const located = entry.read(input);
    filled.onAnswer(located?.index, located?.rounded);
  };
  input.addEventListener("input", takeEntry);
  // Half a date is no input yet, but what was chosen instead of a date is not meant any more.
  input.addEventListener("keyup", () => {
    if (isSilent() && !entry.isEmpty(input)) takeEntry();
  });
  const rows = [divider(), ...silent.map(({ row }) => row)];
  const others = silent.length === 0 ? [] : [element("div", { class: "choices" }, ...rows)];
  return {
    content: [entryRow(input, grid.unit, filled.definition), ...others],
    hint: entry.hint,
    first: input,
    entry: input,
    problem: () =>
      isSilent() || entry.isEmpty(input) || entry.read(input) !== null ? "" : entry.problem,
  };
}

/** @param {Filled} filled @param {Grid} grid @param {Entry} entry */
function entryInput({ name, answer }, grid, { attributes, write }) {
  const input = element("input", { ...attributes, name, autocomplete: "off" });
  if (typeof answer === "number" && answer < grid.points) input.value = write(answer);
  return input;
}

/**
 * An option that is no answer, beside the field that it clears.
 *
 * @param {Filled} filled
 * @param {Grid} grid
 * @param {HTMLInputElement} entry
 * @param {Choice} beside
 */
function offerInstead({ answer, onAnswer, onProblem }, grid, entry, { input, option }) {
  input.checked = answer === grid.points + option;
  // Not "change": who chooses what is checked already means it too.
  input.addEventListener("click", () => {
    entry.value = "";
    onProblem("");
    onAnswer(grid.points + option);
  });
}

/**
 * The unit stands in the hint too, which is read aloud.
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
