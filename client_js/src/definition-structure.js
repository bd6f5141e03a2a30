/**
 * The structure of a definition: pages, questions, conditions, sampling and translations.
 */

import { CHOICES, TYPES } from "./answers.js";
import {
  checkChannel,
  checkSize,
  MAX_ALONE,
  MAX_GRID,
  MAX_NO_ANSWERS,
  MAX_OPTIONS,
} from "./definition-channels.js";
import { ensure, ensureDistinct, ensureTexts, isInteger } from "./definition-error.js";
import { tickWeights } from "./half-space.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Option} Option
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./definition.js").TranslatedQuestion} TranslatedQuestion
 * @typedef {import("./mechanism.js").Channel} Channel
 */

/** Keys of the survey's own texts. */
export const TEXTS = /** @type {const} */ ([
  ...["title", "introduction", "consent", "ethics", "helpline", "contact", "thanks"],
]);

/** Known keys. An unknown key is refused, because this page could not tell people what it changes. */
const KEYS = {
  definition: [
    ...["access", "allow_skip_logic", "bucket", "exit", "format", "kiosk", "language", "pages"],
    ...["report_bytes", "sampling", "slug", "theme", "translations", "version", ...TEXTS],
  ],
  page: ["questions", "title"],
  question: [
    ...["alone", "ask_if", "channel", "grid", "help", "id", "joint", "max_ticks", "mechanism"],
    ...["not_applicable", "opt_out", "options", "shuffled", "stated", "text", "topic", "type"],
  ],
};

/** Days since 1970 from the year 1 to the year 9999, the range of date fields. */
const DAYS = { first: -719_162, last: 2_932_896 };

/**
 * Most questions of a joint response over combinations of options, and most combinations; most
 * questions of one in a half-space.
 */
const MAX_JOINT = 3;
const MAX_ITEMS = 20;
const MAX_COMBINATIONS = 256;

const THEMES = ["", "blue", "plum", "slate"];

const LANGUAGE = /^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$/;

/** @param {any} definition */
export function checkStructure(definition) {
  ensureTexts(definition, ["slug", "language", ...TEXTS], "it");
  const { report_bytes: room, allow_skip_logic: skips, sampling, pages, bucket } = definition;
  ensure(isInteger(room, 1, 8192), `report_bytes is ${room}`);
  ensure(typeof skips === "boolean", "allow_skip_logic must be true or false");
  ensure([undefined, "day", "week"].includes(bucket), `bucket is ${bucket}`);
  ensure(Array.isArray(pages) && pages.length > 0, "the definition has no pages");
  pages.forEach(checkPage);
  const questions = pages.flatMap((/** @type {Page} */ page) => page.questions);
  ensureDistinct(questions, "questions");
  pages.forEach((_, at) => {
    checkConditions(definition, at);
  });
  for (const question of questions) if (question.joint) checkJoint(question, questions);
  if (sampling !== null) checkSampling(sampling, questions);
  checkManner(definition);
  for (const [language, translation] of Object.entries(definition.translations)) {
    ensure(LANGUAGE.test(language), `${language} is not a language tag`);
    checkTranslation(translation, definition);
  }
}

/** Check how the survey is opened, shown and left. @param {any} definition */
function checkManner({ access, kiosk, theme, exit, translations }) {
  ensure(["open", "invitation"].includes(access), `access is ${access}`);
  ensure(typeof kiosk === "boolean", "kiosk must be true or false");
  ensure(THEMES.includes(theme), `theme is ${theme}`);
  const isAddress = exit === "" || (typeof exit === "string" && exit.startsWith("https://"));
  ensure(isAddress, "exit must be an https address");
  const isTable = typeof translations === "object" && !Array.isArray(translations);
  ensure(translations !== null && isTable, "translations must be an object");
}

/** @param {any} page @param {number} at */
function checkPage(page, at) {
  ensure(Array.isArray(page?.questions) && page.questions.length > 0, `page ${at + 1} is empty`);
  ensureKnownKeys(page, "page");
  ensureTexts(page, ["title"], `page ${at + 1}`);
  page.questions.forEach(checkQuestion);
}

/** @param {any} question */
function checkQuestion(question) {
  const texts = ["id", "type", "text", "help", "opt_out", "not_applicable", "mechanism"];
  ensureTexts(question ?? {}, texts, "question");
  ensureKnownKeys(question, "question");
  const { id, type } = question;
  ensure(TYPES.includes(type), `${id}: unknown type ${type}`);
  ensure([undefined, true].includes(question.shuffled), `${id}: shuffled is ${question.shuffled}`);
  const isTopic = typeof question.topic === "string" && question.topic !== "";
  ensure(question.topic === undefined || isTopic, `${id}: its topic is not a text`);
  checkOptions(question);
  // Only the options of a scale may stand for numbers.
  const isPlain = CHOICES.includes(type) && (type !== "scale" || question.grid === null);
  if (isPlain) ensure(question.grid === null, `${id}: options of this type cannot have a grid`);
  else checkGrid(question);
  checkTicks(question);
  checkChannel(question.channel, id);
  checkSize(question);
}

/** @param {any} question */
function checkOptions({ id, type, options, opt_out: optOut, not_applicable: notApplicable }) {
  const min = CHOICES.includes(type) ? 2 : 0;
  const max = min === 0 ? MAX_NO_ANSWERS : MAX_OPTIONS;
  ensure(Array.isArray(options), `${id}: no options`);
  ensure(isInteger(options.length, min, max), `${id}: ${options.length} options`);
  for (const option of options) ensureTexts(option ?? {}, ["id", "label"], `${id}.options`);
  ensureDistinct(options, `${id}: options`);
  const ids = ["", ...options.map((/** @type {Option} */ option) => option.id)];
  ensure(ids.includes(optOut), `${id}: its opt_out is not an option`);
  ensure(ids.includes(notApplicable), `${id}: its not_applicable is not an option`);
}

/** @param {any} question */
function checkGrid({ id, type, options, grid }) {
  const { low, step, points, decimals, unit } = grid ?? {};
  const maximum = Number.MAX_SAFE_INTEGER;
  ensure(isInteger(low, -maximum) && isInteger(step, 1), `${id}: low and step must be integers`);
  ensure(isInteger(points, 2, MAX_GRID), `${id}: ${points} grid points`);
  const fitsOptions = type !== "scale" || points <= options.length;
  ensure(fitsOptions, `${id}: ${points} grid points for ${options.length} options`);
  ensure(
    isInteger(low + step * (points - 1), -maximum),
    `${id}: the grid exceeds the safe integers`,
  );
  ensure(isInteger(decimals, 0, type === "date" ? 0 : 15), `${id}: ${decimals} decimals`);
  ensure(typeof unit === "string", `${id}: its unit is not a text`);
  const isReal = low >= DAYS.first && low + step * (points - 1) <= DAYS.last;
  ensure(type !== "date" || isReal, `${id}: its dates exceed the years 1 to 9999`);
}

/** @param {any} question */
function checkTicks({ id, type, options, max_ticks: ticks, alone, ...question }) {
  const isMultiple = type === "multiple_choice";
  const max = isMultiple ? Math.min(MAX_ALONE, options.length - 1) : 0;
  ensure(isInteger(alone, isMultiple ? 1 : 0, max), `${id}: ${alone} options stand alone`);
  const together = options.slice(0, options.length - alone);
  const mostTicks = isMultiple ? together.length : 0;
  ensure(isInteger(ticks, isMultiple ? 1 : 0, mostTicks), `${id}: at most ${ticks} ticks`);
  const hasNoAnswer = together.some((/** @type {Option} */ option) =>
    [question.opt_out, question.not_applicable].includes(option.id),
  );
  ensure(!isMultiple || !hasNoAnswer, `${id}: an option for no answer must stand alone`);
}

/**
 * Check that each question depends only on questions of earlier pages.
 *
 * @param {any} definition
 * @param {number} at
 */
function checkConditions({ pages, allow_skip_logic: skips }, at) {
  const earlier = pages.slice(0, at).flatMap((/** @type {Page} */ page) => page.questions);
  for (const question of pages[at].questions) {
    if (question.ask_if === null) continue;
    ensure(skips, `${question.id}: it depends on another question, but allow_skip_logic is false`);
    checkCondition(question, earlier);
  }
}

/** @param {any} question @param {Question[]} earlier */
function checkCondition({ id, ask_if: condition, not_applicable: notApplicable }, earlier) {
  ensure(notApplicable !== "", `${id}: it needs a not_applicable option for when it is hidden`);
  const parent = earlier.find((question) => question.id === condition?.question);
  ensure(
    parent && CHOICES.includes(parent.type),
    `${id}: it depends on a question that is not an earlier choice`,
  );
  const ids = parent.options.map((option) => option.id);
  const { options } = condition;
  ensure(Array.isArray(options) && options.length > 0, `${id}: its condition has no options`);
  const areKnown = options.every((option) => ids.includes(option));
  ensure(areKnown, `${id}: its condition has unknown options`);
}

/**
 * Check that a joint response covers the combinations of its questions' options, or has one bit for
 * each of its yes/no questions, that all of them agree about it, and that each question's channel is
 * its part:
 *
 *     T' = T + (K/k - 1)L,  L' = (K/k)L;  in a half-space T'/L' = own/other (see `tickWeights`)
 *
 * @param {any} question
 * @param {Question[]} questions
 */
function checkJoint({ id, joint, channel }, questions) {
  const { questions: ids, channel: whole } = joint;
  const members = questions.filter((question) => ids?.includes(question.id));
  const isNamed = JSON.stringify(members.map((member) => member.id)) === JSON.stringify(ids);
  ensure(
    isNamed && isInteger(ids.length, 2, whole?.kind === "half_space" ? MAX_ITEMS : MAX_JOINT),
    `${id}: wrong questions of a joint response`,
  );
  const agree = (/** @type {any} */ member) =>
    JSON.stringify(member.joint) === JSON.stringify(joint);
  ensure(ids.includes(id) && members.every(agree), `${id}: its joint response differs`);
  checkChannel(whole, id);
  const isOne = (/** @type {Channel} */ one) => one.kind === "subset_selection" && one.d === 1;
  const areSingle = members.every(
    ({ type }) => CHOICES.includes(type) && type !== "multiple_choice",
  );
  const isWhole = whole.kind === "half_space" || isOne(whole);
  ensure(isWhole && isOne(channel) && areSingle, `${id}: it cannot be randomized jointly`);
  if (whole.kind === "half_space") checkItems(whole, members, id);
  else checkCombinations(whole, members, id);
  const { ownWeight, otherWeight } = partWeights(whole, channel.k);
  const isPart = BigInt(channel.T) * otherWeight === BigInt(channel.L) * ownWeight;
  ensure(isPart, `${id}: its channel is no part of its joint response`);
  const isLinked = questions.some(
    ({ id: other, ask_if: condition }) =>
      condition && (ids.includes(other) || ids.includes(condition.question)),
  );
  ensure(!isLinked, `${id}: a joint response with a condition`);
}

/**
 * @param {import("./mechanism.js").HalfSpace} whole
 * @param {Question[]} members
 * @param {string} id
 */
function checkItems({ m, s, alone }, members, id) {
  const fits = m === members.length && s === m && alone === 0;
  ensure(
    fits && members.every(({ options }) => options.length === 2),
    `${id}: its joint response has ${m} bits`,
  );
}

/**
 * @param {import("./mechanism.js").SubsetSelection} whole
 * @param {Question[]} members
 * @param {string} id
 */
function checkCombinations(whole, members, id) {
  const K = members.reduce((product, { options }) => product * options.length, 1);
  ensure(
    whole.k === K && K <= MAX_COMBINATIONS,
    `${id}: its joint response has ${whole.k} options`,
  );
}

/**
 * Return in which ratio a question with k options reports the true one and another one.
 *
 * @param {import("./definition.js").JointChannel} whole
 * @param {number} k
 * @returns {{ownWeight: bigint, otherWeight: bigint}}
 */
function partWeights(whole, k) {
  if (whole.kind === "half_space") return tickWeights(whole);
  const [parts, T, L] = [whole.k / k, whole.T, whole.L].map(BigInt);
  return { ownWeight: T + (parts - 1n) * L, otherWeight: parts * L };
}

/** @param {any} sampling @param {Question[]} questions */
function checkSampling(sampling, questions) {
  const { draw, groups } = sampling ?? {};
  const isList = (/** @type {any} */ list) => Array.isArray(list) && list.length > 0;
  ensure(isList(groups) && groups.every(isList), "sampling has no groups of questions");
  ensure(isInteger(draw, 1, groups.length - 1), `sampling draws ${draw} of ${groups.length}`);
  const grouped = [...groups.flat()].sort();
  const ids = questions.map(({ id }) => id).sort();
  const isPartition = grouped.length === ids.length && ids.every((id, i) => id === grouped[i]);
  ensure(isPartition, "each question must be in exactly one sampling group");
  for (const { id, ask_if: condition, joint } of questions) {
    const group = groups.find((/** @type {string[]} */ members) => members.includes(id));
    const needed = [...(condition ? [condition.question] : []), ...(joint?.questions ?? [])];
    const together = needed.every((other) => group.includes(other));
    ensure(together, `${id}: it can be drawn without the question that it depends on`);
  }
}

/** @param {object} value @param {keyof typeof KEYS} kind */
export function ensureKnownKeys(value, kind) {
  const unknown = Object.keys(value).find((key) => !KEYS[kind].includes(key));
  ensure(unknown === undefined, `a ${kind} has an unknown key, ${unknown}`);
}

/**
 * Return the definition with its texts in another language, where they are translated.
 *
 * @param {Readonly<Definition>} definition  in its own language
 * @param {string} language
 * @returns {Readonly<Definition>}
 */
export function translateDefinition(definition, language) {
  const translation = definition.translations[language];
  if (!translation) return definition;
  /** @type {Map<string, string>} */
  const untranslated = new Map();
  const pick = (/** @type {string} */ text, /** @type {string} */ translated) => {
    if (translated === "") untranslated.set(text, definition.language);
    return translated || text;
  };
  const topics = translatedTopics(definition, translation, pick);
  const texts = TEXTS.map((name) => [name, pick(definition[name], translation[name])]);
  const pages = definition.pages.map((page, i) => ({
    title: pick(page.title, translation.pages[i].title),
    questions: page.questions.map((question, j) =>
      translatedQuestion(question, translation.pages[i].questions[j], pick, topics),
    ),
  }));
  return { ...definition, ...Object.fromEntries(texts), pages, language, untranslated };
}

/**
 * Return each topic in another language. A translation that one question has serves all questions
 * of the topic, so that they stay together.
 *
 * @param {Readonly<Definition>} definition
 * @param {import("./definition.js").Translation} translation
 * @param {(text: string, translated: string) => string} pick
 */
function translatedTopics(definition, translation, pick) {
  /** @type {Map<string, string>} */
  const topics = new Map();
  definition.pages.forEach((page, i) => {
    page.questions.forEach(({ topic }, j) => {
      const translated = translation.pages[i].questions[j].topic ?? "";
      if (topic !== undefined) topics.set(topic, topics.get(topic) || translated);
    });
  });
  return new Map([...topics].map(([topic, translated]) => [topic, pick(topic, translated)]));
}

/**
 * @param {Question} question
 * @param {TranslatedQuestion} translated
 * @param {(text: string, translated: string) => string} pick
 * @param {Map<string, string>} topics
 * @returns {Question}
 */
function translatedQuestion(question, translated, pick, topics) {
  const { text, help, options, grid, topic } = question;
  return {
    ...question,
    ...(topic === undefined ? {} : { topic: topics.get(topic) ?? topic }),
    text: pick(text, translated.text),
    help: pick(help, translated.help),
    options: options.map(({ id, label }, i) => ({
      id,
      label: pick(label, translated.options[i]),
    })),
    grid: grid && { ...grid, unit: pick(grid.unit, translated.unit) },
  };
}

/**
 * Check that a translation has the shape of its original, so that no option gets another's label.
 *
 * @param {any} translation
 * @param {Definition} definition
 */
export function checkTranslation(translation, definition) {
  ensureTexts(translation ?? {}, [...TEXTS], "a translation");
  ensureSameLength(translation.pages, definition.pages, (page, { questions: originals }) => {
    ensureTexts(page ?? {}, ["title"], "a translated page");
    ensureSameLength(page.questions, originals, (question, { options, topic }) => {
      const texts = ["text", "help", "unit", ...(topic === undefined ? [] : ["topic"])];
      ensureTexts(question ?? {}, texts, "a translated question");
      ensureSameLength(question.options, options, (label) => {
        ensure(typeof label === "string", "a translated label is not a text");
      });
    });
  });
}

/**
 * @template T
 * @param {any} list
 * @param {readonly T[]} like
 * @param {(value: any, like: T) => void} check
 */
function ensureSameLength(list, like, check) {
  ensure(
    Array.isArray(list) && list.length === like.length,
    "a translation has another shape than its original",
  );
  list.forEach((/** @type {any} */ value, /** @type {number} */ i) => {
    check(value, like[i]);
  });
}
