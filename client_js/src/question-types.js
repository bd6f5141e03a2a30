/**
 * The question types, and the truth that the channel of each type gets for an answer.
 */

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./definition.js").Question} Question
 */

/**
 * Return the truth of an answer: an index, or ticks.
 *
 * @param {Question} question
 * @param {Answer} answer
 */
export function truthOf(question, answer) {
  if (typeof answer === "number") return answer;
  const { options, channel } = question;
  if (channel.kind !== "subset_selection") {
    return options.map((_, i) => Number(answer.includes(i)));
  }
  // All patterns are compared, so that the time taken does not reveal the answer.
  return patterns(question).reduce(
    (index, pattern, i) => (pattern.join() === answer.join() ? i : index),
    -1,
  );
}

/**
 * Return an option as an answer, or undefined for the id "".
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

/** Whether people type the answer, which is then a grid point. @param {string} type */
export function isEntered(type) {
  return type === "number" || type === "date";
}

/**
 * Return all sets of ticks that can be reported as a whole: options that combine, in ascending
 * order of their bitmask, then each exclusive option.
 *
 * @param {Pick<Question, "options" | "alone" | "max_ticks">} question
 * @returns {number[][]}
 */
export function patterns({ options, alone, max_ticks: max }) {
  const together = options.length - alone;
  return [...sets(together, max), ...options.slice(together).map((_, i) => [together + i])];
}

/**
 * Return the sets of 1 to `max` numbers below n, ordered by their largest number.
 *
 * @param {number} n
 * @param {number} max
 * @returns {number[][]}
 */
function sets(n, max) {
  if (max === 0) return [];
  return Array.from({ length: n }, (_, largest) => [[], ...sets(largest, max - 1)]).flatMap(
    (smaller, largest) => smaller.map((set) => [...set, largest]),
  );
}

export const CHOICES = ["yes_no", "single_choice", "scale", "multiple_choice"];

export const TYPES = [...CHOICES, "number", "date"];
