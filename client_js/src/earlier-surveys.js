/**
 * The memory of earlier surveys of this site, which a person can switch on after sending.
 *
 * It is a count and a combined factor for all surveys, so that it names none of them.
 */

import { attempt } from "./outbox.js";
import { productOf } from "./privacy-loss.js";

/**
 * @typedef {import("./mechanism.js").Ratio} Ratio
 * @typedef {import("./outbox.js").DeviceStorage} DeviceStorage
 * @typedef {{surveys: number, total: Ratio}} Earlier  the number of surveys, and e^epsilon of them all
 * @typedef {ReturnType<typeof createEarlierSurveys>} EarlierSurveys
 */

const KEY = "survey-memory";
const MAX_SURVEYS = 9999;
/** A larger factor says no more than this one: a suspicion can become a certainty. */
const MAX_FACTOR = 10n ** 30n;
const FACTOR = /^[1-9]\d?0{0,30}$/;

/**
 * Create the memory of earlier surveys on this device.
 *
 * @param {DeviceStorage | null} storage  null on shared devices and if the browser denies it
 */
export function createEarlierSurveys(storage) {
  /** @returns {Earlier | null} */
  function read() {
    const stored = attempt(() => JSON.parse(storage?.getItem(KEY) ?? "null"));
    const { surveys, factor } = stored ?? {};
    const isCount = Number.isInteger(surveys) && surveys >= 1 && surveys <= MAX_SURVEYS;
    if (!isCount || typeof factor !== "string" || !FACTOR.test(factor)) return null;
    return { surveys, total: { numerator: BigInt(factor), denominator: 1n } };
  }

  /**
   * Add a survey that was answered.
   *
   * @param {Ratio} answered  e^epsilon of its whole report
   */
  function add(answered) {
    const earlier = read();
    const surveys = Math.min((earlier?.surveys ?? 0) + 1, MAX_SURVEYS);
    const factor = String(coarsened(earlier ? productOf([earlier.total, answered]) : answered));
    attempt(() => storage?.setItem(KEY, JSON.stringify({ surveys, factor })));
    return read();
  }

  function forget() {
    attempt(() => storage?.removeItem(KEY));
  }

  return { read, add, forget };
}

/**
 * Round up to 1, 3, 10, 30 and so on: a finer factor could identify the survey.
 *
 * @param {Ratio} ratio
 */
function coarsened({ numerator, denominator }) {
  let power = 1n;
  while (power * 10n * denominator < numerator) power *= 10n;
  const step = [1n, 3n, 10n].find((digit) => numerator <= digit * power * denominator) ?? 10n;
  const rounded = step * power;
  return rounded < MAX_FACTOR ? rounded : MAX_FACTOR;
}
