/**
 * The field of each question type, and answers as text.
 */

import { isEntered, isNoAnswer, RANKING } from "./answers.js";
import { element, quoted, surveyElement } from "./dom.js";
import { rankingField } from "./field-ranking.js";
import { pictureOf } from "./pictures.js";
import { numberWithUnit, slider } from "./slider.js";
import { count, figure, gap, pieces, say } from "./texts.js";
import { decimalAt, locate, plainText } from "./typed-number.js";

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
 * @property {Answer | undefined} answer  of a ranking also one that is not complete
 * @property {(answer: Answer | undefined, rounded?: boolean, begun?: Answer) => void} onAnswer
 *   undefined: the question is empty; `rounded`: the answer differs from what was typed; `begun`: what
 *   to show again of an answer that is not complete
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
  const { type, grid, slider: labels } = context.question;
  if (type === "multiple_choice") return checkboxes(context);
  if (type === RANKING) return rankingField(context, choiceRow, divider);
  if (grid === null || !isEntered(type)) return radios(context);
  if (labels) return sliderField(context, grid, labels);
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
    content: [
      ...searchBox(choices, context.question, context.name),
      choiceList(context, ...choices.map(({ row }) => row)),
    ],
    hint: [],
    first: choices[0].input,
    entry: null,
    problem: () => "",
  };
}

/** Limits for a horizontal scale: its number of options, and the length of words in its labels. */
const ACROSS = { points: 7, word: 6 };

/** Return the layout of a list of options: a short scale whose labels fit is horizontal. @param {Question} question */
function scaleClass(question) {
  const points = question.options.filter((_, option) => !isNoAnswer(question, option));
  const fits = points.every(({ label }) =>
    label.split(/\s/).every((word) => word.length <= ACROSS.word),
  );
  const isShort = points.length <= ACROSS.points && fits;
  return question.type === "scale" && isShort ? "choices across" : "choices";
}

/** Lists with more options than this can be searched. */
const MAX_UNSEARCHED = 20;

/**
 * Create a field that filters the options by a typed text, which is never sent.
 *
 * @param {Choice[]} choices
 * @param {Question} question
 * @param {string} name
 */
function searchBox(choices, question, name) {
  if (choices.length <= MAX_UNSEARCHED) return [];
  const { options } = question;
  const plain = (/** @type {string} */ text) => text.normalize("NFKC").toLowerCase();
  const attributes = {
    ...{ type: "search", class: "search", autocomplete: "off", spellcheck: "false" },
    ...{ name, "aria-label": say("field.search"), placeholder: say("field.search") },
  };
  const box = element("input", attributes);
  box.addEventListener("input", () => {
    for (const { row, input, option } of choices) {
      const isKept = input.checked || isNoAnswer(question, option);
      row.hidden = !isKept && !plain(options[option].label).includes(plain(box.value));
    }
  });
  return [box];
}

/**
 * Create a slider and the options for no answer.
 *
 * @param {FieldContext} context
 * @param {Grid} grid
 * @param {import("./definition.js").SliderLabels} labels
 * @returns {Field}
 */
function sliderField(context, grid, labels) {
  const optOuts = context.question.options.map((_, option) => choiceRow(context, option, "radio"));
  const { content, first } = slider(context, grid, labels, optOuts);
  return {
    content: [...content, ...alternativeRows(optOuts)],
    hint: [say("slider.hint")],
    first,
    entry: first,
    problem: () => "",
  };
}

/** Return the rows of options for no answer, below another field. @param {Choice[]} alternatives */
function alternativeRows(alternatives) {
  const rows = [divider(), ...alternatives.map(({ row }) => row)];
  return alternatives.length === 0 ? [] : [element("div", { class: "choices" }, ...rows)];
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
  const picture = pictureOf(definition, question.options[option]);
  const label = quoted(definition, question.options[option].label);
  const rowClass = isNoAnswer(question, option) ? "choice apart" : "choice";
  if (picture.length === 0)
    return {
      row: element("label", { class: rowClass }, input, element("span", {}, label)),
      input,
      option,
    };
  const card = element("span", {}, ...picture, element("div", { class: "caption" }, label));
  return { row: element("label", { class: "choice card" }, input, card), input, option };
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
    content: [
      ...searchBox(choices, context.question, context.name),
      tickList(context, choices, together),
    ],
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

/** @param {FieldContext} context @param {Choice[]} choices @param {number} together */
function tickList(context, choices, together) {
  const rows = choices.map(({ row }) => row);
  const divided = [...rows.slice(0, together), divider(), ...rows.slice(together)];
  return choiceList(context, ...divided);
}

/** @param {FieldContext} context @param {...HTMLElement} rows */
function choiceList({ question }, ...rows) {
  const hasPictures = question.options.some(({ picture }) => picture);
  return element("div", { class: hasPictures ? "choices cards" : scaleClass(question) }, ...rows);
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
  return {
    content: [entryRow(input, grid.unit, context.definition), ...alternativeRows(alternatives)],
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
  const highest = element("span", {}, ...numberWithUnit(definition, grid, grid.points - 1));
  const hint = [
    ...pieces(isWhole ? "field.wholeNumber" : "field.number", {
      low,
      high: highest,
    }),
    ...(step === "1" ? [] : [gap(), say("field.rounded", { step: figure(step) })]),
    ...([low, high].some((bound) => /^\D?\d{4}/.test(bound))
      ? [gap(), say("field.thousands")]
      : []),
  ];
  return entryField(context, grid, {
    // A minus sign precedes its number in every script.
    attributes: { ...attributes, class: "entry", dir: "ltr" },
    hint,
    write: at,
    read: (input) => locate(grid, input.value),
    isEmpty: (input) => input.value.trim() === "",
    problem: say("field.numberWrong", { low, high }),
  });
}

/** Minimum days of a rounded date's step to keep only the month, or only the year. */
const KEPT = { month: 28, year: 365 };

/**
 * Create the field of a date. It asks only for the parts that the device keeps: if it rounds dates to
 * months, people type month and year.
 *
 * @param {FieldContext} context
 * @param {Grid} grid
 * @returns {Field}
 */
function dateField(context, grid) {
  const { language } = context.definition;
  const at = (/** @type {number} */ index) => dayText(grid, index, language);
  const [first, last] = [0, grid.points - 1].map(at);
  const [min, max] = [isoDay(grid, 0), isoDay(grid, grid.points - 1)];
  if (grid.step >= KEPT.month) return monthField(context, grid, { first, last, min, max });
  const step = count("count.days", grid.step);
  const steps = grid.step === 1 ? "" : ` ${say("field.rounded", { step })}`;
  return entryField(context, grid, {
    attributes: { type: "date", min, max, class: "entry day" },
    hint: [`${say("field.date", { first, last })}${steps}`],
    write: (index) => isoDay(grid, index),
    read: (input) => locateDay(grid, input.valueAsNumber),
    // Half a date has no value, but the field is not empty.
    isEmpty: (input) => input.value === "" && !input.validity.badInput,
    problem: say("field.dateWrong", { first, last }),
  });
}

/**
 * Create a field for a month and a year, or for a year alone, typed as digits: "5/2024" or "2024".
 *
 * @param {FieldContext} context
 * @param {Grid} grid
 * @param {{first: string, last: string, min: string, max: string}} range  as text and in ISO form
 * @returns {Field}
 */
function monthField(context, grid, { first, last, min, max }) {
  const isYear = grid.step >= KEPT.year;
  const example = isYear ? max.slice(0, 4) : `${Number(max.slice(5, 7))}/${max.slice(0, 4)}`;
  return entryField(context, grid, {
    attributes: { type: "text", inputmode: isYear ? "numeric" : "text", class: "entry" },
    hint: [say(isYear ? "field.year" : "field.month", { first, last, example })],
    write: (index) => {
      const [year, month] = isoDay(grid, index).split("-");
      return isYear ? year : `${Number(month)}/${year}`;
    },
    read: (input) => locateMonth(grid, plainText(input.value), isYear, { min, max }),
    isEmpty: (input) => input.value.trim() === "",
    problem: say(isYear ? "field.yearWrong" : "field.monthWrong", { first, last, example }),
  });
}

const DAY = 86_400_000;

const MONTH = /^(\d{1,2})\s*[/.\s-]\s*(\d{4})$/;

/**
 * Return the grid point of a month, or of a year: the one nearest to its middle. A point inside of it
 * comes first, or the review would show the month beside the one that was typed.
 *
 * @param {Grid} grid
 * @param {string} text
 * @param {boolean} isYear
 * @param {{min: string, max: string}} range  in ISO form
 * @returns {Located | null}
 */
function locateMonth(grid, text, isYear, { min, max }) {
  const [, month = "", year = ""] = (isYear ? /^()(\d{4})$/ : MONTH).exec(text) ?? [];
  const start = isYear ? year : `${year}-${month.padStart(2, "0")}`;
  const isInside = start >= min.slice(0, start.length) && start <= max.slice(0, start.length);
  if (year === "" || !isInside) return null;
  const middle = start + (isYear ? "-07-01" : "-15");
  const ends = [min, middle, max].sort();
  const day = element("input", { type: "date", value: ends[1] }).valueAsNumber;
  const nearest = locateDay(grid, day)?.index;
  if (nearest === undefined) return null;
  const around = [nearest, nearest - 1, nearest + 1];
  const index = around.find((i) => isoDay(grid, i).startsWith(start));
  return { index: index ?? nearest, rounded: index === undefined };
}

/**
 * Return the grid point nearest to a day in milliseconds since 1970, as date fields give it.
 *
 * @param {Grid} grid
 * @param {number} milliseconds
 * @returns {Located | null}  null if it is not a day within the grid
 */
export function locateDay({ low, step, points }, milliseconds) {
  const above = milliseconds / DAY - low;
  const isInside = Number.isInteger(above) && above >= 0 && above <= step * (points - 1);
  if (!isInside) return null;
  const index = Math.floor((2 * above + step) / (2 * step));
  return { index, rounded: index * step !== above };
}

/**
 * Write a grid point as a day of the Gregorian calendar, which date fields use, or as the month or
 * year that the device keeps.
 *
 * @param {Pick<Grid, "low" | "step">} grid
 * @param {number} index
 * @param {string} language
 */
export function dayText({ low, step }, index, language) {
  /** @type {Intl.DateTimeFormatOptions} */
  const options = {
    ...(step < KEPT.month ? { day: "numeric" } : {}),
    ...(step < KEPT.year ? { month: "long" } : {}),
    year: "numeric",
    calendar: "gregory",
    timeZone: "UTC",
  };
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

/**
 * Return a function that shows an error or a calm note beside a field. Only a wrong entry is marked
 * as invalid.
 *
 * @param {HTMLElement} group
 * @param {HTMLElement} error
 * @param {HTMLElement | null} [entry]
 */
export function errorShower(group, error, entry = null) {
  return (/** @type {Child[]} */ text, /** @type {boolean} */ isWrong) => {
    error.replaceChildren(...text);
    error.hidden = text.length === 0;
    group.classList.toggle("has-error", isWrong);
    // Calm, because an empty answer is no mistake.
    group.classList.toggle("has-note", !error.hidden && !isWrong);
    entry?.setAttribute("aria-invalid", String(isWrong));
  };
}
