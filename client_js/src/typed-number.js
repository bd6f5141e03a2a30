/**
 * Typed numbers and grid points, in integers throughout.
 */

/**
 * @typedef {import("./definition.js").Grid} Grid
 * @typedef {{index: number, rounded: boolean}} Located  the grid point nearest to an entry
 */

/**
 * Return the grid point nearest to a typed number, and whether it was rounded; halves round up.
 *
 * "1,000" means a thousand in some languages and one in others. It is rejected unless the grid has
 * three decimals and stays below a thousand, so that a thousand never counts as one.
 *
 * @param {Grid} grid
 * @param {string} text
 * @returns {Located | null}  null if the text is not a number within the grid
 */
export function locate(grid, text) {
  const parsed = parseDecimal(text);
  if (parsed === null) return null;
  const { units, scale, mayBeThousands } = parsed;
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

/** Arabic, Persian and Devanagari digits, each from 0 to 9. */
const OTHER_DIGITS = "٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹०१२३४५६७८९";

/**
 * Parse digits with at most one comma or point, and spaces or apostrophes only between thousands.
 * Full-width, Arabic, Persian and Devanagari digits and typographic minus signs are accepted.
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
 * Normalize a text: one character per meaning, no invisible ones; superscript digits are rejected.
 *
 * @param {string} text
 */
export function plainText(text) {
  return text
    .replace(/\p{No}/gu, "?")
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .replace(/[٠-٩۰-۹०-९]/g, (digit) => String(OTHER_DIGITS.indexOf(digit) % 10))
    .trim();
}

/**
 * Write a grid point as an exact decimal without trailing zeros. A zero is added where three
 * decimals could be read as thousands.
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
