/**
 * One kind of input per kind of question: options, ticks, a number, a date; and what they say.
 *
 * A number becomes a grid point here, in integers; what was typed is not kept anywhere.
 */

import { element, quoted, surveyElement } from "./dom.js";
import { isEntered } from "./report.js";
import { count, figure, pieces, say } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./definition.js").Grid} Grid
 * @typedef {import("./report.js").Answer} Answer
 * @typedef {object} Filled
 * @property {Definition} definition
 * @property {Question} question
 * @property {string} name  of its inputs, made for this load
 * @property {readonly number[]} order  in which its options are shown
 * @property {Answer | undefined} answer
 * @property {(answer: Answer | undefined, rounded?: boolean) => void} onAnswer  undefined: it has
 *   none any more; `rounded`: it is not quite what was typed
 * @property {(text: string) => void} onProblem  what is wrong at this moment, "" when nothing is
 * @typedef {object} Field
 * @property {HTMLElement[]} content
 * @property {import("./dom.js").Child[]} hint  how to fill it in, none when that needs no words
 * @property {HTMLElement} first
 * @property {HTMLElement | null} entry  an input that its question must label
 * @property {() => string} problem  why what stands there is no answer, "" when it is one or empty
 * @typedef {{row: HTMLElement, input: HTMLInputElement, option: number}} Choice
 */

/**
 * The field of a question.
 *
 * @param {Filled} filled
 * @returns {Field}
 */
export function createField(filled) {
  const { type, grid } = filled.question;
  if (type === "multiple_choice") return checkboxes(filled);
  if (grid === null || !isEntered(type)) return radios(filled);
  return type === "date" ? dateField(filled, grid) : numberField(filled, grid);
}

/** @param {Filled} filled @returns {Field} */
function radios(filled) {
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

/**
 * Ticks; one that stands alone clears all others and is cleared by them.
 *
 * @param {Filled} filled
 * @returns {Field}
 */
function checkboxes(filled) {
  const { options, alone, max_ticks: most } = filled.question;
  const together = options.length - alone;
  const choices = filled.order.map((option) => choice(filled, option, "checkbox"));
  const ticked = () =>
    options.flatMap((_, option) =>
      choices.some((one) => one.option === option && one.input.checked) ? [option] : [],
    );
  const problem = () => (ticked().length > most ? say("field.tooMany", { most }) : "");
  for (const { input, option } of choices) {
    input.checked = Array.isArray(filled.answer) && filled.answer.includes(option);
    input.addEventListener("change", () => {
      if (input.checked) clearOthers(choices, option, together);
      filled.onProblem(problem());
      const answer = ticked();
      filled.onAnswer(answer.length === 0 || problem() !== "" ? undefined : answer);
    });
  }
  return {
    content: [tickList(choices, together)],
    hint: [most < together ? say("field.upTo", { most }) : say("field.allThatApply")],
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

function divider() {
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
function choice({ definition, question, name }, option, type) {
  const input = element("input", { type, name, autocomplete: "off" });
  // The row runs as the page does, its mark on that side; within it the text runs as it must.
  const label = element("span", {}, quoted(definition, question.options[option].label));
  return { row: element("label", { class: "choice" }, input, label), input, option };
}

/** @param {Filled} filled @param {Grid} grid @returns {Field} */
function numberField(filled, grid) {
  const { definition } = filled;
  const at = (/** @type {number} */ index) => figure(decimalAt(grid, index));
  const [low, high] = [at(0), at(grid.points - 1)];
  const step = decimalAt({ ...grid, low: 0 }, 1);
  const isWhole = step === "1" && !decimalAt(grid, 0).includes(".");
  // Phones' number pads have no minus sign, and only some have a decimal mark.
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
  return entryField(filled, grid, {
    attributes: { ...attributes, class: "entry" },
    hint,
    write: at,
    read: (input) => locate(grid, input.value),
    isEmpty: (input) => input.value.trim() === "",
    problem: say("field.numberWrong", { low, high }),
  });
}

/** @param {Filled} filled @param {Grid} grid @returns {Field} */
function dateField(filled, grid) {
  const { language } = filled.definition;
  const [first, last] = [0, grid.points - 1].map((index) => dayText(grid, index, language));
  const hint = say("field.date", { first, last });
  const step = count("count.days", grid.step);
  const steps = grid.step === 1 ? "" : ` ${say("field.rounded", { step })}`;
  const [min, max] = [isoDay(grid, 0), isoDay(grid, grid.points - 1)];
  return entryField(filled, grid, {
    attributes: { type: "date", min, max, class: "entry day" },
    hint: [`${hint}${steps}`],
    write: (index) => isoDay(grid, index),
    read: (input) => locateDay(grid, input.valueAsNumber),
    // Half a date has no value, but it is not nothing.
    isEmpty: (input) => input.value === "" && !input.validity.badInput,
    problem: say("field.dateWrong", { first, last }),
  });
}

/**
 * @typedef {{index: number, rounded: boolean}} Located  the grid point nearest to an entry
 * @typedef {object} Entry
 * @property {Record<string, string>} attributes
 * @property {import("./dom.js").Child[]} hint
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
function entryField(filled, grid, entry) {
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

/**
 * An answer in words, one text per option.
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

/**
 * The grid point nearest to a number that was typed; halves go up. Text in, integers throughout.
 *
 * @param {Grid} grid
 * @param {string} text
 * @returns {number | null}  null for what is no number or outside the grid
 */
export function nearestPoint(grid, text) {
  return locate(grid, text)?.index ?? null;
}

/**
 * "1,000" is a thousand to some and one to others: no number here, unless the grid has as many
 * decimals itself and does not reach a thousand. Also where the grid has neither: who meant a
 * thousand must not count as one.
 *
 * @param {Grid} grid
 * @param {string} text
 * @returns {Located | null}
 */
export function locate(grid, text) {
  const written = parseDecimal(text);
  if (written === null) return null;
  const { units, scale, mayBeThousands } = written;
  const isClear = grid.decimals >= 3 && !reachesThousands(grid);
  return mayBeThousands && !isClear ? null : pointAt(grid, units, scale);
}

/** @param {Grid} grid */
function reachesThousands({ low, step, points, decimals }) {
  const high = low + step * (points - 1);
  return Math.max(Math.abs(low), Math.abs(high)) >= 1000 * 10 ** decimals;
}

/** @param {Grid} grid @param {bigint} units @param {bigint} scale @returns {Located | null} */
function pointAt({ low, step, points, decimals }, units, scale) {
  const [first, width] = [BigInt(low) * scale, BigInt(step) * scale];
  const above = units * 10n ** BigInt(decimals) - first;
  if (above < 0n || above > width * BigInt(points - 1)) return null;
  const index = (2n * above + width) / (2n * width);
  return { index: Number(index), rounded: index * width !== above };
}

const NUMBER =
  /^([-\u2212\u2013+]? ?)(\d{0,20}|\d{1,3}(?:[ '\u2019\u066c]\d{3}){1,6})(?:[.,\u066b](\d{0,20}))?$/;

/**
 * Digits with at most one comma or point, and spaces or apostrophes between thousands only. Wide,
 * Arabic and Persian digits count too, and the minus signs that printers use.
 *
 * @param {string} text
 * @returns {{units: bigint, scale: bigint, mayBeThousands: boolean} | null}  units/scale
 */
function parseDecimal(text) {
  const parts = NUMBER.exec(plainText(text));
  const [, sign = "", grouped = "", fraction = ""] = parts ?? [];
  const whole = grouped.replace(/\D/g, "");
  if (whole + fraction === "") return null;
  const units = BigInt(whole + fraction) * (/[^+ ]/.test(sign) ? -1n : 1n);
  const mayBeThousands = fraction.length === 3 && /^[1-9]\d{0,2}$/.test(grouped);
  return { units, scale: 10n ** BigInt(fraction.length), mayBeThousands };
}

/**
 * One character for each meaning, without what is not seen; raised and circled digits are none.
 *
 * @param {string} text
 */
function plainText(text) {
  return text
    .replace(/\p{No}/gu, "?")
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .replace(/[٠-٩۰-۹]/g, westernDigit)
    .trim();
}

/** @param {string} digit  Arabic or Persian */
function westernDigit(digit) {
  return String(digit.charCodeAt(0) & 15);
}

/**
 * A grid point as a decimal, exactly, without needless zeros; with one where three decimals could
 * be read as thousands.
 *
 * @param {Grid} grid
 * @param {number} index
 */
export function decimalAt(grid, index) {
  const { low, step, decimals } = grid;
  const value = BigInt(low) + BigInt(index) * BigInt(step);
  const digits = String(value < 0n ? -value : value).padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  const clear = fraction.length === 3 && reachesThousands(grid) ? `${fraction}0` : fraction;
  return `${value < 0n ? "\u2212" : ""}${whole}${clear === "" ? "" : `.${clear}`}`;
}

const DAY = 86_400_000;

/**
 * The grid point nearest to a day, given in milliseconds since 1970 as date fields give it.
 *
 * @param {Grid} grid
 * @param {number} milliseconds
 * @returns {number | null}  null for what is no day or outside the grid
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
 * A grid point as a day of the calendar that date fields use.
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
 * Plain English would put the month first; a language nobody knows must not stop the survey.
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
 * A day, as date fields write it, in words.
 *
 * @param {string} iso
 * @param {string} language
 */
export function isoDayText(iso, language) {
  const low = element("input", { type: "date", value: iso }).valueAsNumber / DAY;
  return dayText({ low, step: 1 }, 0, language);
}

/** As date fields write it, and written by one. @param {Grid} grid @param {number} index */
function isoDay({ low, step }, index) {
  const field = element("input", { type: "date" });
  field.valueAsNumber = (low + index * step) * DAY;
  return field.value;
}
