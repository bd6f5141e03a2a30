/**
 * Typed numbers and grid points: text in, integers throughout.
 */

/**
 * @typedef {import("./definition.js").Grid} Grid
 * @typedef {{index: number, rounded: boolean}} Located  the grid point nearest to an entry
 */

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
