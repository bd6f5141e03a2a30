/**
 * A matrix: rows that share a text and a scale, as one table on wide screens and as one card per row
 * on narrow ones. Each row is a group of native radio buttons, so arrow keys move within a row and Tab
 * moves between rows.
 */

import { isNoAnswer } from "./answers.js";
import { element, surveyElement, surveyText } from "./dom.js";
import { errorShower } from "./field.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").MatrixRow} MatrixRow
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./view-questions.js").Fieldset} Fieldset
 * @typedef {object} MatrixContext
 * @property {Definition} definition
 * @property {(question: string) => string} nameOf  name of a question's inputs, made for this load
 * @property {(question: string) => Answer | undefined} answerTo
 * @property {(question: string, answer: Answer | undefined) => void} onAnswer
 */

/** Maximum number of columns of a table; longer scales have cards on wide screens too. */
const MAX_COLUMNS = 8;

/**
 * Create a matrix.
 *
 * @param {MatrixContext} context
 * @param {readonly Question[]} rows
 * @param {"h1" | "h2"} level
 * @returns {{group: HTMLElement, rows: Fieldset[]}}
 */
export function createMatrix(context, rows, level) {
  const { definition, nameOf } = context;
  const [{ id, help, options }] = rows;
  const ids = { text: `${nameOf(id)}-m`, help: `${nameOf(id)}-mh` };
  const heading = surveyElement(level, definition, rowOf(rows[0]).text, {
    id: ids.text,
    tabindex: "-1",
  });
  const hint = surveyElement("p", definition, help, { class: "hint", id: ids.help });
  const parts = rows.map((question) => createRow(context, question, heading));
  const group = element(
    "div",
    {
      class: options.length > MAX_COLUMNS ? "question matrix" : "question matrix columns",
      role: "group",
      "aria-labelledby": ids.text,
      ...(help === "" ? {} : { "aria-describedby": ids.help }),
    },
    heading,
    ...(help === "" ? [] : [hint]),
    columnHeads(definition, rows[0]),
    ...parts.map((part) => part.group),
  );
  return { group, rows: parts };
}

/**
 * Create the row of column headings. Screen readers read each option's own label instead.
 *
 * @param {Definition} definition
 * @param {Question} question
 */
function columnHeads(definition, { options }) {
  const heads = options.map(({ label }) => surveyElement("span", definition, label));
  const points = element("div", { class: "points" }, ...heads);
  return element(
    "div",
    { class: "matrix-heads", "aria-hidden": "true" },
    element("span", {}),
    points,
  );
}

/**
 * @param {MatrixContext} context
 * @param {Question} question
 * @param {HTMLElement} heading  of the matrix
 * @returns {Fieldset}
 */
function createRow({ definition, nameOf, answerTo, onAnswer }, question, heading) {
  const { id, options } = question;
  const name = nameOf(id);
  const ids = { text: `${name}-q`, error: `${name}-e` };
  const inputs = options.map((_, option) => {
    const labels = `${ids.text} ${name}-o${option}`;
    const input = element("input", {
      ...{ type: "radio", name, autocomplete: "off", "aria-labelledby": labels },
    });
    input.checked = answerTo(id) === option;
    input.addEventListener("change", () => onAnswer(id, option));
    return input;
  });
  const points = inputs.map((input, option) => point(definition, question, input, option, name));
  const error = element("p", { class: "error", role: "alert", hidden: "", id: ids.error });
  const group = element(
    "div",
    {
      ...{ class: "matrix-row", role: "radiogroup", "data-question": id },
      ...{ "aria-labelledby": ids.text, "aria-describedby": ids.error },
    },
    surveyElement("p", definition, rowOf(question).row, { class: "row-text", id: ids.text }),
    element("div", { class: "points" }, ...points),
    error,
  );
  return {
    question,
    group,
    heading,
    field: { content: [], hint: [], first: inputs[0], entry: null, problem: () => "" },
    showError: errorShower(group, error),
  };
}

/**
 * @param {Definition} definition
 * @param {Question} question
 * @param {HTMLInputElement} input
 * @param {number} option
 * @param {string} name
 */
function point(definition, question, input, option, name) {
  const { label } = question.options[option];
  return element(
    "label",
    { class: isNoAnswer(question, option) ? "point apart" : "point" },
    input,
    element("span", { id: `${name}-o${option}`, ...surveyText(definition, label) }, label),
  );
}

/** @param {Question} question @returns {MatrixRow} */
function rowOf({ matrix }) {
  if (!matrix) throw new RangeError();
  return matrix;
}
