/**
 * The questions that a person gets, and the order of their options.
 */

import { drawSome } from "./mechanism.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./random.js").UniformBelow} UniformBelow
 * @typedef {readonly string[] | null} Drawn  ids of the questions asked of this person; null: all
 */

/**
 * Draw the order of the options of shuffled questions; options for no answer stay last.
 *
 * @param {Definition} definition
 * @param {UniformBelow} uniformBelow
 * @returns {Map<string, number[]>}  question id -> indices of its options
 */
export function shuffleOptions(definition, uniformBelow) {
  const shuffled = questions(definition).filter(({ shuffled }) => shuffled);
  return new Map(shuffled.map((question) => [question.id, shuffledOrder(question, uniformBelow)]));
}

/** @param {Question} question @param {UniformBelow} uniformBelow */
function shuffledOrder({ options, alone, ...question }, uniformBelow) {
  const noAnswers = [question.opt_out, question.not_applicable];
  const all = options.map((_, i) => i);
  const movable = all.filter(
    (i) => i < options.length - alone && !noAnswers.includes(options[i].id),
  );
  const fixed = all.filter((i) => !movable.includes(i));
  return [...drawSome(movable, movable.length, uniformBelow), ...fixed];
}

/**
 * Check the drawn questions: more groups than the survey promises would reveal more than it promises.
 *
 * @param {Definition} definition
 * @param {Drawn} drawn
 */
export function checkDrawn({ sampling }, drawn) {
  const groups = sampling?.groups.filter((group) => group.every((id) => drawn?.includes(id)));
  const isWhole = groups?.length === sampling?.draw && groups?.flat().length === drawn?.length;
  if (sampling === null ? drawn !== null : !isWhole) {
    throw new RangeError("the drawn questions are not a draw of this survey");
  }
}

/**
 * Return all questions in the order of their codes.
 *
 * @param {Definition} definition
 */
export function questions(definition) {
  return definition.pages.flatMap((page) => page.questions);
}

/**
 * Return the questions that this person gets.
 *
 * @param {Definition} definition
 * @param {Drawn} drawn
 */
export function drawnQuestions(definition, drawn) {
  return questions(definition).filter(isDrawn(drawn));
}

/** @param {Drawn} drawn */
export function isDrawn(drawn) {
  return (/** @type {Question} */ { id }) => drawn === null || drawn.includes(id);
}

/**
 * Return how few and how many questions one person gets, and the number of all questions.
 *
 * @param {Definition} definition
 */
export function sampledCounts(definition) {
  const all = questions(definition).length;
  const { draw, groups } = definition.sampling ?? { draw: 1, groups: [questions(definition)] };
  const sizes = groups.map((group) => group.length).sort((a, b) => a - b);
  const total = (/** @type {number[]} */ drawn) => drawn.reduce((sum, size) => sum + size, 0);
  return { fewest: total(sizes.slice(0, draw)), most: total(sizes.slice(-draw)), all };
}
