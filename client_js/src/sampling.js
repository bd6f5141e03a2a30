/**
 * Which questions a person is asked, and in which order options are shown.
 */

import { drawSome } from "./mechanism.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./random.js").UniformBelow} UniformBelow
 * @typedef {readonly string[] | null} Drawn  ids of the questions asked of this person; null: all
 */

/**
 * In which order this person sees the options of shuffled questions; what is no answer stays last.
 *
 * @param {Definition} definition
 * @param {UniformBelow} uniformBelow
 * @returns {Map<string, number[]>}  question id -> indices of its options
 */
export function shuffleOptions(definition, uniformBelow) {
  const asked = questions(definition).filter(({ shuffled }) => shuffled);
  return new Map(asked.map((question) => [question.id, shuffledOrder(question, uniformBelow)]));
}

/** @param {Question} question @param {UniformBelow} uniformBelow */
function shuffledOrder({ options, alone, ...question }, uniformBelow) {
  const silent = [question.opt_out, question.not_applicable];
  const all = options.map((_, i) => i);
  const moved = all.filter((i) => i < options.length - alone && !silent.includes(options[i].id));
  const last = all.filter((i) => !moved.includes(i));
  return [...drawSome(moved, moved.length, uniformBelow), ...last];
}

/**
 * More groups than were promised would give away more than was promised.
 *
 * @param {Definition} definition
 * @param {Drawn} drawn
 */
export function checkDrawn({ sampling }, drawn) {
  const groups = sampling?.groups.filter((group) => group.every((id) => drawn?.includes(id)));
  const isWhole = groups?.length === sampling?.draw && groups?.flat().length === drawn?.length;
  if (sampling === null ? drawn !== null : !isWhole) {
    throw new RangeError("the questions drawn are not the ones this survey draws");
  }
}

/**
 * All questions, in the order of their codes.
 *
 * @param {Definition} definition
 */
export function questions(definition) {
  return definition.pages.flatMap((page) => page.questions);
}

/**
 * The questions this person is asked.
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
 * Of how many questions each person is asked how many: fewest and most, when groups differ in size.
 *
 * @param {Definition} definition
 */
export function sampledCounts(definition) {
  const all = questions(definition).length;
  const { draw, groups } = definition.sampling ?? { draw: 1, groups: [questions(definition)] };
  const sizes = groups.map((group) => group.length).sort((one, other) => one - other);
  const total = (/** @type {number[]} */ drawn) => drawn.reduce((sum, size) => sum + size, 0);
  return { fewest: total(sizes.slice(0, draw)), most: total(sizes.slice(-draw)), all };
}
