/**
 * From an answer to the truth that the question's channel gets.
 */

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./definition.js").Question} Question
 */

/**
 * What the channel gets: an index, or ticks.
 *
 * @param {Question} question
 * @param {Answer} answer
 */
export function truthOf(question, answer) {
  if (typeof answer === "number") return answer;
  const { options, channel } = question;
  if (channel.kind === "bit_vector") return options.map((_, i) => Number(answer.includes(i)));
  // All of them are looked at: time must not tell which it is.
  return patterns(question).reduce(
    (found, pattern, i) => (pattern.join() === answer.join() ? i : found),
    -1,
  );
}

/**
 * An option as an answer; undefined for the id "".
 *
 * @param {Question} question
 * @param {string} option
 * @returns {Answer | undefined}
 */
export function optionAnswer({ type, options, grid }, option) {
  const index = options.findIndex(({ id }) => id === option);
  if (index < 0) return undefined;
  if (type === "multiple_choice") return [index];
  return isEntered(type) ? index + (grid?.points ?? 0) : index;
}

/** Whether an answer is typed, on a grid, and not chosen. @param {string} type */
export function isEntered(type) {
  return type === "number" || type === "date";
}

/**
 * All sets of ticks that can be reported as a whole: of the options that go together in ascending
 * order of their bitmask, then each that stands alone.
 *
 * @param {Pick<Question, "options" | "alone" | "max_ticks">} question
 * @returns {number[][]}
 */
export function patterns({ options, alone, max_ticks: most }) {
  const together = options.length - alone;
  return [...sets(together, most), ...options.slice(together).map((_, i) => [together + i])];
}

/**
 * Sets of 1 to `most` numbers below n: those whose largest is 0, then 1, ...
 *
 * @param {number} n
 * @param {number} most
 * @returns {number[][]}
 */
function sets(n, most) {
  if (most === 0) return [];
  return Array.from({ length: n }, (_, largest) => [[], ...sets(largest, most - 1)]).flatMap(
    (smaller, largest) => smaller.map((set) => [...set, largest]),
  );
}

export const CHOICES = ["yes_no", "single_choice", "scale", "multiple_choice"];

export const TYPES = [...CHOICES, "number", "date"];
