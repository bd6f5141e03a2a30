/**
 * A date, entered in the browser's date field and stored as a grid point.
 */

import { element } from "./dom.js";
import { entryField } from "./field-entry.js";
import { count, say } from "./texts.js";

/**
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./field.js").FieldContext} FieldContext
 * @typedef {import("./definition.js").Grid} Grid
 * @typedef {import("./typed-number.js").Located} Located
 */

/** @param {FieldContext} context @param {Grid} grid @returns {Field} */
export function dateField(context, grid) {
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
