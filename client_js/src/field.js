/**
 * The field of each question type, and answers as text.
 */

import { isEntered } from "./answers.js";
import { element, quoted, surveyElement } from "./dom.js";
import { count, figure, pieces, say } from "./texts.js";
import { decimalAt, locate } from "./typed-number.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Grid} Grid
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./typed-number.js").Located} Located
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
 * @typedef {{row: HTMLElement, input: HTMLInputElement, option: number}} Choice
 * @typedef {object} Entry
 * @property {Record<string, string>} attributes
 * @property {Child[]} hint
 * @property {(index: number) => string} write  a grid point as the input takes it
 * @property {(input: HTMLInputElement) => Located | null} read
 * @property {(input: HTMLInputElement) => boolean} isEmpty
 * @property {string} problem
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

/** Create one radio button per option: yes or no, one of several, a scale. @param {FieldContext} context @returns {Field} */
function radios(context) {
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

function divider() {
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
function choiceRow({ definition, question, name }, option, type) {
  const input = element("input", { type, name, autocomplete: "off" });
  // The row follows the page's direction, and the text follows its own.
  const label = element("span", {}, quoted(definition, question.options[option].label));
  return { row: element("label", { class: "choice" }, input, label), input, option };
}

/**
 * Create checkboxes for multiple choice. An exclusive option clears all others and is cleared by them.
 *
 * @param {FieldContext} context
 * @returns {Field}
 */
function checkboxes(context) {
  const { options, alone, max_ticks: max } = context.question;
  const together = options.length - alone;
  const choices = context.order.map((option) => choiceRow(context, option, "checkbox"));
  const ticked = () =>
    options.flatMap((_, option) =>
      choices.some((choice) => choice.option === option && choice.input.checked) ? [option] : [],
    );
  const problem = () => (ticked().length > max ? say("field.tooMany", { most: max }) : "");
  for (const { input, option } of choices) {
    input.checked = Array.isArray(context.answer) && context.answer.includes(option);
    input.addEventListener("change", () => {
      if (input.checked) clearOthers(choices, option, together);
      context.onProblem(problem());
      const answer = ticked();
      context.onAnswer(answer.length === 0 || problem() !== "" ? undefined : answer);
    });
  }
  return {
    content: [tickList(choices, together)],
    hint: [max < together ? say("field.upTo", { most: max }) : say("field.allThatApply")],
    first: choices[0].input,
    entry: null,
    problem,
  };
}

/** @param {Choice[]} choices @param {number} ticked @param {number} together */
function clearOthers(choices, ticked, together) {
  for (const { input, option } of choices) {
    const isApart = ticked >= together || option >= together;
    if (isApart && option !== ticked) input.checked = false;
  }
}

/** @param {Choice[]} choices @param {number} together */
function tickList(choices, together) {
  const rows = choices.map(({ row }) => row);
  const divided = [...rows.slice(0, together), divider(), ...rows.slice(together)];
  return element("div", { class: "choices" }, ...divided);
}

/**
 * Create a text or date field and the options for no answer. Each clears the other.
 *
 * @param {FieldContext} context
 * @param {Grid} grid
 * @param {Entry} entry
 * @returns {Field}
 */
function entryField(context, grid, entry) {
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

/** Create a field for a number, typed as text. @param {FieldContext} context @param {Grid} grid @returns {Field} */
function numberField(context, grid) {
  const { definition } = context;
  const at = (/** @type {number} */ index) => figure(decimalAt(grid, index));
  const [low, high] = [at(0), at(grid.points - 1)];
  const step = decimalAt({ ...grid, low: 0 }, 1);
  const isWhole = step === "1" && !decimalAt(grid, 0).includes(".");
  // Number pads of phones have no minus sign, and some have no decimal mark.
  const whole = grid.decimals === 0 ? "numeric" : "decimal";
  const attributes = {
    type: "text",
    inputmode: grid.low < 0 ? "text" : whole,
    spellcheck: "false",
  };
  const withUnit = element("bdi", {}, high, " ", quoted(definition, grid.unit));
  const hint = [
    ...pieces(isWhole ? "field.wholeNumber" : "field.number", {
      low,
      high: grid.unit ? withUnit : high,
    }),
    ...(step === "1" ? [] : [" ", say("field.rounded", { step: figure(step) })]),
    ...([low, high].some((bound) => /^\D?\d{4}/.test(bound)) ? [" ", say("field.thousands")] : []),
  ];
  return entryField(context, grid, {
    attributes: { ...attributes, class: "entry" },
    hint,
    write: at,
    read: (input) => locate(grid, input.value),
    isEmpty: (input) => input.value.trim() === "",
    problem: say("field.numberWrong", { low, high }),
  });
}

/** Create a browser's date field. @param {FieldContext} context @param {Grid} grid @returns {Field} */
function dateField(context, grid) {
  const { language } = context.definition;
  const [first, last] = [0, grid.points - 1].map((index) => dayText(grid, index, language));
  const hint = say("field.date", { first, last });
  const step = count("count.days", grid.step);
  const steps = grid.step === 1 ? "" : ` ${say("field.rounded", { step })}`;
  const [min, max] = [isoDay(grid, 0), isoDay(grid, grid.points - 1)];
  return entryField(context, grid, {
    attributes: { type: "date", min, max, class: "entry day" },
    hint: [`${hint}${steps}`],
    write: (index) => isoDay(grid, index),
    read: (input) => locateDay(grid, input.valueAsNumber),
    // Half a date has no value, but the field is not empty.
    isEmpty: (input) => input.value === "" && !input.validity.badInput,
    problem: say("field.dateWrong", { first, last }),
  });
}

const DAY = 86_400_000;

/**
 * Return the grid point nearest to a day in milliseconds since 1970, as date fields give it.
 *
 * @param {Grid} grid
 * @param {number} milliseconds
 * @returns {number | null}  null if it is not a day within the grid
 */
export function nearestDay(grid, milliseconds) {
  return locateDay(grid, milliseconds)?.index ?? null;
}

/** @param {Grid} grid @param {number} milliseconds @returns {Located | null} */
function locateDay({ low, step, points }, milliseconds) {
  const above = milliseconds / DAY - low;
  const isInside = Number.isInteger(above) && above >= 0 && above <= step * (points - 1);
  if (!isInside) return null;
  const index = Math.floor((2 * above + step) / (2 * step));
  return { index, rounded: index * step !== above };
}

/**
 * Write a grid point as a day of the Gregorian calendar, which date fields use.
 *
 * @param {Pick<Grid, "low" | "step">} grid
 * @param {number} index
 * @param {string} language
 */
export function dayText({ low, step }, index, language) {
  const options = /** @type {const} */ ({
    day: "numeric",
    month: "long",
    year: "numeric",
    calendar: "gregory",
    timeZone: "UTC",
  });
  return new Intl.DateTimeFormat(localeOf(language), options).format((low + index * step) * DAY);
}

/**
 * Return the locale for dates: British English puts the day first, and unknown tags fall back to it.
 *
 * @param {string} language
 */
function localeOf(language) {
  try {
    return language === "en" ? "en-GB" : Intl.getCanonicalLocales(language)[0];
  } catch {
    return "en-GB";
  }
}

/**
 * Write an ISO date in words.
 *
 * @param {string} iso
 * @param {string} language
 */
export function isoDayText(iso, language) {
  const low = element("input", { type: "date", value: iso }).valueAsNumber / DAY;
  return dayText({ low, step: 1 }, 0, language);
}

/** Write a grid point as an ISO date, with the help of a date field. @param {Grid} grid @param {number} index */
function isoDay({ low, step }, index) {
  const field = element("input", { type: "date" });
  field.valueAsNumber = (low + index * step) * DAY;
  return field.value;
}
