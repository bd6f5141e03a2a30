/**
 * The field of a number on a slider. It shows no number until the person selects one, because people
 * tend to stay near the first number that they see.
 */

import { button, element, surveyElement } from "./dom.js";
import { figure, say } from "./texts.js";
import { decimalAt } from "./typed-number.js";

/**
 * @typedef {import("./definition.js").Grid} Grid
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").SliderLabels} SliderLabels
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./field.js").Choice} Choice
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./field.js").FieldContext} FieldContext
 */

/** The direction in which a key moves a slider. */
const DIRECTIONS = /** @type {Readonly<Record<string, number>>} */ ({
  ...{ ArrowUp: 1, PageUp: 1, ArrowRight: 1 },
  ...{ ArrowDown: -1, PageDown: -1, ArrowLeft: -1 },
});

/**
 * Create a slider with buttons for exact steps. Options for no answer clear it and are cleared by it.
 *
 * @param {FieldContext} context
 * @param {Grid} grid
 * @param {SliderLabels} labels
 * @param {Choice[]} optOuts
 * @returns {Pick<Field, "content" | "first">}
 */
export function slider({ definition, name, answer, onAnswer }, grid, labels, optOuts) {
  const last = grid.points - 1;
  // Not an end, where the first step of a screen reader might change nothing.
  const middle = Math.floor(last / 2);
  /** @type {number | null} */
  let chosen = typeof answer === "number" && answer <= last ? answer : null;
  const range = element("input", { type: "range", name, autocomplete: "off", max: String(last) });
  const output = element("output", { class: "chosen", "aria-live": "off" });

  function show() {
    range.value = String(chosen ?? middle);
    range.setAttribute("class", chosen === null ? "range unset" : "range");
    range.setAttribute("aria-valuetext", spoken(grid, labels, chosen));
    output.replaceChildren(
      ...(chosen === null ? [say("slider.unset")] : numberWithUnit(definition, grid, chosen)),
    );
  }

  const choose = (/** @type {number} */ index) => {
    for (const { input } of optOuts) input.checked = false;
    chosen = index;
    show();
    onAnswer(index);
  };
  // The first step starts at the opposite end, so that no number in between is suggested.
  const step = (/** @type {number} */ by) => {
    const first = by > 0 ? 0 : last;
    choose(chosen === null ? first : Math.min(Math.max(chosen + by, 0), last));
  };

  range.addEventListener("input", () => choose(Number(range.value)));
  // A tap on the middle, where the hidden thumb is, does not change the value. Touch causes no click
  // here, and assistive technology causes nothing but a click.
  for (const tap of ["pointerup", "click"])
    range.addEventListener(tap, () => chosen ?? choose(Number(range.value)));
  range.addEventListener("keydown", (event) => {
    const by = DIRECTIONS[event.key] ?? 0;
    if (chosen !== null || by === 0) return;
    event.preventDefault();
    const isAcross = event.key === "ArrowLeft" || event.key === "ArrowRight";
    step(isAcross && say("language.direction") === "rtl" ? -by : by);
  });
  for (const { input, option } of optOuts) {
    input.checked = answer === grid.points + option;
    input.addEventListener("click", () => {
      chosen = null;
      show();
      onAnswer(grid.points + option);
    });
  }
  show();

  const stepButton = (/** @type {number} */ by, /** @type {string} */ label) =>
    button(
      by > 0 ? "+" : "\u2212",
      () => {
        // Screen readers announce a new value of the slider, but not one that a button sets.
        output.setAttribute("aria-live", "polite");
        step(by);
        output.setAttribute("aria-live", "off");
      },
      { class: "step", "aria-label": label },
    );
  const row = element(
    "div",
    { class: "slider-row" },
    stepButton(-1, say("slider.lower")),
    range,
    stepButton(1, say("slider.higher")),
  );
  const content = element("div", { class: "slider" }, output, row, ends(definition, grid, labels));
  return { content: [content], first: range };
}

/** @param {Grid} grid @param {number} index */
function numberAt(grid, index) {
  return figure(decimalAt(grid, index));
}

/**
 * Return a number and its unit, in the order of the text that contains them.
 *
 * @param {Definition} definition
 * @param {Grid} grid
 * @param {number} index
 * @returns {Child[]}
 */
export function numberWithUnit(definition, grid, index) {
  const unit = grid.unit === "" ? [] : [" ", surveyElement("span", definition, grid.unit)];
  return [element("bdi", {}, numberAt(grid, index)), ...unit];
}

/**
 * Return the text for screen readers: the number with its unit, and the label of an end.
 *
 * @param {Grid} grid
 * @param {SliderLabels} labels
 * @param {number | null} index
 */
function spoken(grid, labels, index) {
  const last = grid.points - 1;
  const named = (/** @type {number} */ at) => {
    const label = at === 0 ? labels.low : at === last ? labels.high : "";
    const number = `${numberAt(grid, at)} ${grid.unit}`.trim();
    return label === "" ? number : `${number}${say("language.comma")}${label}`;
  };
  return index === null
    ? say("slider.unsetFrom", { low: named(0), high: named(last) })
    : named(index);
}

/** @param {Definition} definition @param {Grid} grid @param {SliderLabels} labels */
function ends(definition, grid, labels) {
  const end = (/** @type {number} */ index, /** @type {string} */ label) => {
    const text = label === "" ? [] : [element("div", {}, surveyElement("span", definition, label))];
    return element(
      "div",
      {},
      element("div", {}, element("bdi", {}, numberAt(grid, index))),
      ...text,
    );
  };
  return element("div", { class: "ends" }, end(0, labels.low), end(grid.points - 1, labels.high));
}
