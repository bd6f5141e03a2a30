/**
 * A number, typed as text and stored as a grid point.
 */

import { element, quoted } from "./dom.js";
import { entryField } from "./field-entry.js";
import { figure, pieces, say } from "./texts.js";
import { decimalAt, locate } from "./typed-number.js";

/**
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./field.js").FieldContext} FieldContext
 * @typedef {import("./definition.js").Grid} Grid
 */

/** @param {FieldContext} context @param {Grid} grid @returns {Field} */
export function numberField(context, grid) {
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
