/**
 * The questions of a definition in a SurveyJS form: found by names and values, and read as answers.
 */

import { isEntered, questions, RANKING, rankedCount } from "../src/answers.js";
import { locate } from "../src/typed-number.js";

/**
 * @typedef {import("../src/answers.js").Answer} Answer
 * @typedef {import("../src/definition.js").Definition} Definition
 * @typedef {import("../src/definition.js").Question} Question
 * @typedef {import("./surveyjs.js").SurveyModel} SurveyModel
 * @typedef {{value: unknown, ids: string[], isExclusive: boolean}} Item  an option of an element;
 *   `ids`: the ids that may belong to it in the definition
 * @typedef {{name: string, ids: string[], path: string[], items: Item[], element: any}} Place  where
 *   the form stores one answer: an element, or a row of a matrix
 * @typedef {Place & {question: Question, options: Map<string, number>}} Field  a place and its
 *   question; `options`: the index of the option of each value
 */

/** Elements that only show something. */
const SHOWN_ONLY = ["html", "image", "empty"];

const FREE_TEXT = "free text cannot be randomized";

/** Why elements of these types are refused. @type {Record<string, string>} */
const REFUSED_TYPES = {
  comment: FREE_TEXT,
  text: FREE_TEXT,
  multipletext: FREE_TEXT,
  file: "files cannot be randomized",
  signaturepad: "signatures cannot be randomized",
  expression: "calculated values would need the true answers",
};

const LISTS = ["radiogroup", "dropdown", "buttongroup", "imagepicker"];

/** The elements that can ask a question of each type. @type {Record<string, string[]>} */
const ELEMENTS = {
  yes_no: ["boolean", ...LISTS],
  single_choice: LISTS,
  scale: ["rating", "matrix", ...LISTS],
  multiple_choice: ["checkbox", "tagbox", "imagepicker, multiSelect"],
  ranking: ["ranking"],
  // Leaving an untouched "text, range" counts as an answer, so it is not among these.
  number: ["text, number", "slider, single"],
  date: ["text, date"],
};

/**
 * Match the elements of a form with the questions of the definition.
 *
 * @param {SurveyModel} model
 * @param {Definition} definition
 * @returns {{fields: Field[], mistakes: string[]}}
 */
export function matchForm(model, definition) {
  const rest = new Map(questions(definition).map((question) => [question.id, question]));
  /** @type {Field[]} */
  const fields = [];
  /** @type {string[]} */
  const mistakes = [];
  for (const place of model.getAllQuestions().flatMap(placesOf)) {
    const type = variantOf(place.element);
    const question = place.ids.flatMap((/** @type {string} */ id) => rest.get(id) ?? [])[0];
    if (!question) {
      const reason =
        REFUSED_TYPES[type.split(",")[0]] ?? "the definition has no question of this name";
      mistakes.push(`${place.name}: ${reason}`);
      continue;
    }
    rest.delete(question.id);
    const { options, problems } = matchQuestion(question, place, type);
    mistakes.push(...problems.map((problem) => `${place.name}: ${problem}`));
    fields.push({ ...place, question, options });
  }
  const missing = [...rest.keys()].map((id) => `the form lacks the question "${id}"`);
  return { fields, mistakes: [...mistakes, ...missing] };
}

/** @param {any} element @returns {Place[]} */
function placesOf(element) {
  const type = element.getType();
  if (SHOWN_ONLY.includes(type)) return [];
  const { name } = element;
  if (type !== "matrix") {
    return [{ name, ids: idsOf(name), path: [name], items: itemsOf(element), element }];
  }
  const items = element.columns.map(itemOf);
  return element.rows.map((/** @type {any} */ { value }) => ({
    name: `${name}.${value}`,
    ids: idsOf(name).flatMap((id) => idsOf(value).map((row) => `${id}_${row}`)),
    path: [name, String(value)],
    items,
    element,
  }));
}

/** Return the type of an element, and what else decides about its answers. @param {any} element */
function variantOf(element) {
  const type = element.getType();
  if (type === "text") return `text, ${element.inputType}`;
  if (type === "slider") return `slider, ${element.sliderType}`;
  if (type === "imagepicker" && element.multiSelect) return "imagepicker, multiSelect";
  return type === "matrix" && element.cellType === "checkbox" ? "matrix, checkbox" : type;
}

/** @param {any} element @returns {Item[]} */
function itemsOf(element) {
  const type = element.getType();
  if (type === "boolean") {
    return [
      { value: element.valueTrue ?? true, ids: ["yes"], isExclusive: false },
      { value: element.valueFalse ?? false, ids: ["no"], isExclusive: false },
    ];
  }
  if (type === "rating") return element.visibleRateValues.map(itemOf);
  const special = [
    ...(element.showNoneItem ? [{ item: element.noneItem, ids: ["none_of_these", "none"] }] : []),
    ...(element.showRefuseItem ? [{ item: element.refuseItem, ids: ["prefer_not_to_say"] }] : []),
    ...(element.showDontKnowItem ? [{ item: element.dontKnowItem, ids: ["dontknow"] }] : []),
  ];
  return [
    ...(element.choices ?? []).map(itemOf),
    ...special.map(({ item, ids }) => ({ value: item.value, ids, isExclusive: true })),
  ];
}

/** @param {any} item @returns {Item} */
function itemOf({ value, isExclusive }) {
  return { value, ids: idsOf(value), isExclusive: isExclusive === true };
}

/** Maximum length of an id that an import makes from a name or a value. */
const MAX_ID = 40;

/**
 * Return the ids that may belong to a name or a value: itself, and what the import of SurveyJS forms
 * makes of it.
 *
 * @param {unknown} value
 */
function idsOf(value) {
  const text = String(value);
  const words = text
    .normalize("NFKD")
    .replace(/[^\0-\x7f]/g, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_|_$/g, "")
    .slice(0, MAX_ID)
    .replace(/_$/, "");
  const point = typeof value === "number" ? [`value_${text.replace("-", "minus_")}`] : [];
  return [text, /^\d/.test(words) ? `o${words}` : words, ...point].filter((id) => id !== "");
}

/** @param {Question} question @param {Place} place @param {string} type */
function matchQuestion(question, place, type) {
  /** @type {{options: Map<string, number>, problems: string[]}} */
  const none = { options: new Map(), problems: [] };
  const suitable = ELEMENTS[question.type];
  if (!suitable.includes(type)) {
    const problem = `must be of the type ${suitable.join(" or ")} (found ${type})`;
    return { ...none, problems: [problem] };
  }
  if (isEntered(question.type))
    return { ...none, problems: rangeProblems(question, place.element) };
  const { options, problems } = matchOptions(question, place.items);
  const ticks = question.type === "multiple_choice" ? tickProblems(question, place, options) : [];
  return { options, problems: [...problems, ...ticks] };
}

/** @param {Question} question @param {Item[]} items */
function matchOptions({ options: defined, ...question }, items) {
  /** @type {Map<string, number>} */
  const options = new Map();
  /** @type {string[]} */
  const problems = [];
  for (const { value, ids } of items) {
    const id = ids.find((one) => defined.some((option) => option.id === one));
    const index = defined.findIndex((option) => option.id === id);
    if (index < 0) problems.push(`the definition has no option for the value "${value}"`);
    else if ([...options.values()].includes(index)) {
      problems.push(`two values belong to the option "${id}"`);
    } else options.set(String(value), index);
  }
  const optional = [question.opt_out, question.not_applicable];
  const missing = defined.filter(
    ({ id }, i) => !optional.includes(id) && ![...options.values()].includes(i),
  );
  problems.push(...missing.map(({ id }) => `the form lacks the option "${id}"`));
  return { options, problems };
}

/**
 * Check that people cannot tick more than the definition allows.
 *
 * @param {Question} question
 * @param {Place} place
 * @param {Map<string, number>} options
 */
function tickProblems(question, { items, element }, options) {
  const together = question.options.length - question.alone;
  const alone = items.filter(
    ({ value, isExclusive }) => (options.get(String(value)) ?? 0) >= together && !isExclusive,
  );
  const problems = alone.map(({ value }) => `the option "${value}" must exclude all others`);
  const limits = [element.maxSelectedChoices, ...element.validators.map(maxCountOf)];
  const most = Math.min(...limits.filter((limit) => limit > 0));
  if (question.max_ticks < together && most > question.max_ticks) {
    problems.push(`maxSelectedChoices must be ${question.max_ticks} or less (found ${most})`);
  }
  return problems;
}

/** @param {any} validator */
function maxCountOf(validator) {
  return validator.getType() === "answercountvalidator" ? validator.maxCount : 0;
}

/** Check that the range of an entry is that of the grid. @param {Question} question @param {any} element */
function rangeProblems(question, { min, max }) {
  const last = (question.grid?.points ?? 0) - 1;
  const isWhole = locateValue(question, min) === 0 && locateValue(question, max) === last;
  return isWhole ? [] : [`min and max must be those of the definition (found ${min} and ${max})`];
}

const DAY = 86_400_000;

/**
 * Return the grid point nearest to a value, or null.
 *
 * @param {Question} question
 * @param {unknown} value
 */
function locateValue({ type, grid }, value) {
  if (grid === null) return null;
  if (type === "date") {
    const isDay = /^\d{4}-\d\d-\d\d$/.test(String(value));
    return isDay ? (locate(grid, String(Date.parse(String(value)) / DAY))?.index ?? null) : null;
  }
  const text = String(value);
  // With a fourth decimal, 1.234 cannot be taken for a thousand, as it could where people type it.
  return locate(grid, text.includes(".") ? `${text}0` : text)?.index ?? null;
}

/**
 * Return the answer that the form holds: undefined if there is none, null if it is not allowed.
 *
 * @param {Field} field
 * @param {Record<string, any>} data  of the form
 * @returns {Answer | null | undefined}
 */
export function readAnswer({ path, question, options }, data) {
  const value = path.reduce((/** @type {any} */ part, key) => part?.[key], data);
  if (value === undefined || value === null || value === "") return undefined;
  if (Array.isArray(value) && value.length === 0) return undefined;
  if (isEntered(question.type)) return locateValue(question, value);
  const indices = [value].flat().map((one) => options.get(String(one)) ?? -1);
  if (indices.includes(-1)) return null;
  if (question.type === RANKING) return indices.length === rankedCount(question) ? indices : null;
  if (question.type !== "multiple_choice") return indices[0];
  return allowedTicks(
    question,
    indices.sort((a, b) => a - b),
  );
}

/** @param {Question} question @param {number[]} indices  ascending */
function allowedTicks({ options, alone, max_ticks: max }, indices) {
  const hasAlone = indices[indices.length - 1] >= options.length - alone;
  return indices.length <= (hasAlone ? 1 : max) ? indices : null;
}

/**
 * Return what the form holds if somebody chooses an option.
 *
 * @param {Field} field
 * @param {number} option
 * @returns {Record<string, any> | null}  null if the form does not have this option
 */
export function dataWith({ path: [name, row], question, options, items }, option) {
  const item = items.find(({ value }) => options.get(String(value)) === option);
  if (!item) return null;
  const value = question.type === "multiple_choice" ? [item.value] : item.value;
  return { [name]: row === undefined ? value : { [row]: value } };
}
