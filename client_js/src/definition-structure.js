/**
 * The structure of a definition: pages, questions, conditions, sampling and translations.
 */

import { CHOICES, questionGroups, RANKING, TYPES } from "./answers.js";
import {
  checkChannel,
  fitsQuestion,
  MAX_ALONE,
  MAX_GRID,
  MAX_NO_ANSWERS,
  MAX_OPTIONS,
  MIN_RANKED,
} from "./definition-channels.js";
import { ensure, ensureDistinct, ensureTexts, isInteger } from "./definition-error.js";
import { checkPiping, checkTranslatedPiping } from "./definition-piping.js";
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
  ...[
    "title",
    "introduction",
    "consent",
    "ethics",
    "helpline",
    "contact",
    "organization",
    "thanks",
  ],
]);

/** Known keys. An unknown key is refused, because this page could not tell people what it changes. */
const KNOWN_KEYS = {
  definition: [
    ...["access", "allow_skip_logic", "bucket", "exit", "field", "format", "kiosk", "language"],
    ...["layout", "pages", "report_bytes", "sampling", "slug", "theme", "translations", "version"],
    ...TEXTS,
  ],
  page: ["questions", "title"],
  question: [
    ...["alone", "ask_if", "channel", "grid", "help", "id", "joint", "matrix", "max_ticks"],
    ...["mechanism", "not_applicable", "opt_out", "options", "piped", "shuffled", "slider"],
    ...["stated", "text", "topic", "type"],
  ],
  slider: ["high", "low"],
  picture: ["alt", "sha256", "type"],
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

/** Maximum number of pictures in a survey: the device loads all of them. */
const MAX_PICTURES = 24;

/** Maximum number of points on a slider. */
const MAX_SLIDER = 101;

const THEMES = ["", "blue", "plum", "slate"];

const LAYOUTS = ["", "questions", "pages"];

const LANGUAGE = /^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$/;

/** @param {any} definition */
export function checkStructure(definition) {
  ensureTexts(definition, ["slug", "language", ...TEXTS]);
  const { report_bytes: room, allow_skip_logic: skips, sampling, pages, bucket } = definition;
  ensure(isInteger(room, 1, 8192));
  ensure(typeof skips === "boolean");
  ensure([undefined, "day", "week"].includes(bucket));
  ensure(Array.isArray(pages) && pages.length > 0);
  for (const page of pages) checkPage(page);
  const questions = pages.flatMap((/** @type {Page} */ page) => page.questions);
  ensureDistinct(questions);
  checkMatrices(pages);
  const options = questions.flatMap((/** @type {Question} */ question) => question.options);
  const pictures = options.map((/** @type {Option} */ option) => option.picture?.sha256);
  const n = new Set(pictures.filter((/** @type {unknown} */ hash) => hash !== undefined)).size;
  ensure(n <= MAX_PICTURES);
  pages.forEach((_, at) => {
    checkConditions(definition, at);
    checkPiping(definition, at);
  });
  for (const question of questions) if (question.joint) checkJoint(question, questions);
  if (sampling !== null) checkSampling(sampling, questions);
  checkManner(definition);
  for (const [language, translation] of Object.entries(definition.translations)) {
    ensure(LANGUAGE.test(language));
    checkTranslation(translation, definition);
  }
}

/** Check how the survey is opened, shown and left. @param {any} definition */
function checkManner({ access, kiosk, theme, layout, exit, translations }) {
  ensure(["open", "invitation"].includes(access));
  ensure(typeof kiosk === "boolean");
  ensure(THEMES.includes(theme));
  ensure(LAYOUTS.includes(layout));
  const isAddress = exit === "" || (typeof exit === "string" && exit.startsWith("https://"));
  ensure(isAddress);
  const isTable = typeof translations === "object" && !Array.isArray(translations);
  ensure(translations !== null && isTable);
}

/** @param {any} page */
function checkPage(page) {
  ensure(Array.isArray(page?.questions) && page.questions.length > 0);
  ensureKnownKeys(page, "page");
  ensureTexts(page, ["title"]);
  page.questions.forEach(checkQuestion);
}

/** @param {any} question */
function checkQuestion(question) {
  const texts = ["id", "type", "text", "help", "opt_out", "not_applicable", "mechanism"];
  ensureTexts(question ?? {}, texts);
  ensureKnownKeys(question, "question");
  const { type } = question;
  ensure(TYPES.includes(type));
  ensure([undefined, true].includes(question.shuffled));
  if (question.matrix !== undefined) ensureTexts(question.matrix ?? {}, ["id", "text", "row"]);
  const isTopic = typeof question.topic === "string" && question.topic !== "";
  ensure(question.topic === undefined || isTopic);
  checkOptions(question);
  // Only the options of a scale may stand for numbers.
  const hasOptions = CHOICES.includes(type) || type === RANKING;
  const isPlain = hasOptions && (type !== "scale" || question.grid === null);
  if (isPlain) ensure(question.grid === null);
  else checkGrid(question);
  if (question.slider !== undefined) checkSlider(question);
  checkTicks(question);
  checkChannel(question.channel);
  ensure(fitsQuestion(question));
}

/** @param {any} question */
function checkOptions({ type, options, opt_out: optOut, not_applicable: notApplicable }) {
  const min = CHOICES.includes(type) ? 2 : type === RANKING ? MIN_RANKED : 0;
  const max = min === 0 ? MAX_NO_ANSWERS : MAX_OPTIONS;
  ensure(Array.isArray(options));
  ensure(isInteger(options.length, min, max));
  for (const option of options) ensureTexts(option ?? {}, ["id", "label"]);
  for (const { picture } of options) if (picture !== undefined) checkPicture(picture, type);
  ensureDistinct(options);
  const ids = ["", ...options.map((/** @type {Option} */ option) => option.id)];
  ensure(ids.includes(optOut));
  ensure(ids.includes(notApplicable));
}

/** @param {any} picture @param {string} type */
function checkPicture(picture, type) {
  ensure(CHOICES.includes(type) && type !== "scale");
  ensureTexts(picture ?? {}, KNOWN_KEYS.picture);
  ensureKnownKeys(picture, "picture");
  ensure(/^[0-9a-f]{64}$/.test(picture.sha256));
  ensure(picture.type === "image/webp");
  ensure(picture.alt !== "");
}

/** @param {any} question */
function checkGrid({ type, options, grid }) {
  const { low, step, points, decimals, unit } = grid ?? {};
  const maximum = Number.MAX_SAFE_INTEGER;
  ensure(isInteger(low, -maximum) && isInteger(step, 1));
  ensure(isInteger(points, 2, MAX_GRID));
  const fitsOptions = type !== "scale" || points <= options.length;
  ensure(fitsOptions);
  ensure(isInteger(low + step * (points - 1), -maximum));
  ensure(isInteger(decimals, 0, type === "date" ? 0 : 15));
  ensure(typeof unit === "string");
  const isReal = low >= DAYS.first && low + step * (points - 1) <= DAYS.last;
  ensure(type !== "date" || isReal);
}

/** @param {any} question */
function checkSlider({ type, grid, slider }) {
  ensure(type === "number");
  ensureTexts(slider ?? {}, ["low", "high"]);
  ensureKnownKeys(slider, "slider");
  ensure(grid.points <= MAX_SLIDER);
}

/** @param {any} question */
function checkTicks({ type, options, max_ticks: ticks, alone, ...question }) {
  const isMultiple = type === "multiple_choice";
  const max = isMultiple ? Math.min(MAX_ALONE, options.length - 1) : 0;
  ensure(isInteger(alone, isMultiple ? 1 : 0, max));
  const together = options.slice(0, options.length - alone);
  const mostTicks = isMultiple ? together.length : 0;
  ensure(isInteger(ticks, isMultiple ? 1 : 0, mostTicks));
  const hasNoAnswer = together.some((/** @type {Option} */ option) =>
    [question.opt_out, question.not_applicable].includes(option.id),
  );
  ensure(!isMultiple || !hasNoAnswer);
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
    ensure(skips);
    checkCondition(question, earlier);
  }
}

/** @param {any} question @param {Question[]} earlier */
function checkCondition({ ask_if: condition, not_applicable: notApplicable }, earlier) {
  ensure(notApplicable !== "");
  const parent = earlier.find((question) => question.id === condition?.question);
  ensure(parent && CHOICES.includes(parent.type));
  const ids = parent.options.map((option) => option.id);
  const { options } = condition;
  ensure(Array.isArray(options) && options.length > 0);
  const areKnown = options.every((option) => ids.includes(option));
  ensure(areKnown);
}

/** Keys that must be equal in all rows of a matrix, which are shown as one question with one scale. */
const SHARED_BY_ROWS = /** @type {const} */ ([
  ...["type", "help", "options", "grid", "opt_out", "not_applicable", "ask_if"],
  ...["mechanism", "channel", "topic", "joint", "shuffled"],
]);

/** Maximum number of rows in a matrix. */
const MAX_ROWS = 12;

/**
 * Check that the rows of each matrix are consecutive on one page, differ only in their texts, and have
 * a topic, so that the page states the protection of all rows together.
 *
 * @param {Page[]} pages
 */
function checkMatrices(pages) {
  const groups = pages.flatMap((page) => questionGroups(page.questions));
  const matrices = groups.flatMap((rows) => (rows[0].matrix ? [rows] : []));
  const ids = matrices.map(([{ matrix }]) => ({ id: matrix?.id ?? "" }));
  // A second group with the same id means that the rows are not consecutive.
  if (matrices.length > 0) ensureDistinct(ids);
  for (const rows of matrices) checkRows(rows);
}

/** @param {Question[]} rows */
function checkRows(rows) {
  const [first] = rows;
  ensure(isInteger(rows.length, 2, MAX_ROWS));
  const isScale = first.type === "scale" && first.topic !== undefined && !first.joint;
  ensure(isScale && first.shuffled === undefined);
  const shared = (/** @type {Question} */ row) =>
    JSON.stringify([row.matrix?.text, ...SHARED_BY_ROWS.map((key) => row[key] ?? null)]);
  ensure(rows.every((row) => shared(row) === shared(first)));
  for (const { text, matrix } of rows) ensure(matrix && isTextOfRow(text, matrix));
}

/** @param {string} text @param {import("./definition.js").MatrixTexts} matrix */
function isTextOfRow(text, { text: stem, row }) {
  return text === `${stem}: ${row}` || text === `${stem} ${row}`;
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
  ensure(isNamed && isInteger(ids.length, 2, whole?.kind === "half_space" ? MAX_ITEMS : MAX_JOINT));
  const agree = (/** @type {any} */ member) =>
    JSON.stringify(member.joint) === JSON.stringify(joint);
  ensure(ids.includes(id) && members.every(agree));
  checkChannel(whole);
  const isOne = (/** @type {Channel} */ one) => one.kind === "subset_selection" && one.d === 1;
  const areSingle = members.every(
    ({ type }) => CHOICES.includes(type) && type !== "multiple_choice",
  );
  const isWhole = whole.kind === "half_space" || isOne(whole);
  ensure(isWhole && isOne(channel) && areSingle);
  if (whole.kind === "half_space") checkItems(whole, members);
  else checkCombinations(whole, members);
  const { ownWeight, otherWeight } = partWeights(whole, channel.k);
  const isPart = BigInt(channel.T) * otherWeight === BigInt(channel.L) * ownWeight;
  ensure(isPart);
  const isLinked = questions.some(
    ({ id: other, ask_if: condition }) =>
      condition && (ids.includes(other) || ids.includes(condition.question)),
  );
  ensure(!isLinked);
}

/**
 * @param {import("./mechanism.js").HalfSpace} whole
 * @param {Question[]} members
 */
function checkItems({ m, s, alone }, members) {
  const fits = m === members.length && s === m && alone === 0;
  ensure(fits && members.every(({ options }) => options.length === 2));
}

/**
 * @param {import("./mechanism.js").SubsetSelection} whole
 * @param {Question[]} members
 */
function checkCombinations(whole, members) {
  const K = members.reduce((product, { options }) => product * options.length, 1);
  ensure(whole.k === K && K <= MAX_COMBINATIONS);
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
  ensure(isList(groups) && groups.every(isList));
  ensure(isInteger(draw, 1, groups.length - 1));
  const grouped = [...groups.flat()].sort();
  const ids = questions.map(({ id }) => id).sort();
  const isPartition = grouped.length === ids.length && ids.every((id, i) => id === grouped[i]);
  ensure(isPartition);
  for (const { id, ask_if: condition, joint, matrix } of questions) {
    const group = groups.find((/** @type {string[]} */ members) => members.includes(id));
    const rows = questions.filter((row) => matrix && row.matrix?.id === matrix.id);
    const needed = [
      ...(condition ? [condition.question] : []),
      ...(joint?.questions ?? []),
      ...rows.map((row) => row.id),
    ];
    const together = needed.every((other) => group.includes(other));
    ensure(together);
  }
}

/** @param {object} value @param {keyof typeof KNOWN_KEYS} kind */
export function ensureKnownKeys(value, kind) {
  const unknown = Object.keys(value).find((key) => !KNOWN_KEYS[kind].includes(key));
  ensure(unknown === undefined);
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
  const texts = TEXTS.map((name) => [name, pick(definition[name], translation[name] ?? "")]);
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
  const { text, help, options, grid, topic, matrix, slider, piped } = question;
  const ends = (/** @type {"low" | "high"} */ end) =>
    pick(slider?.[end] ?? "", translated.slider?.[end] ?? "");
  return {
    ...question,
    ...(piped ? { piped: translatedPiping(piped, translated.piped) } : {}),
    ...(matrix ? { matrix: translatedRow(matrix, translated.matrix, pick) } : {}),
    ...(slider === undefined ? {} : { slider: { low: ends("low"), high: ends("high") } }),
    ...(topic === undefined ? {} : { topic: topics.get(topic) ?? topic }),
    text: pick(text, translated.text),
    help: pick(help, translated.help),
    options: options.map(({ picture, ...option }, i) => ({
      ...option,
      label: pick(option.label, translated.options[i]),
      ...(picture && {
        picture: { ...picture, alt: pick(picture.alt, translated.pictures?.[i] ?? "") },
      }),
    })),
    grid: grid && { ...grid, unit: pick(grid.unit, translated.unit) },
  };
}

/**
 * @param {import("./definition.js").PipedTexts} piped
 * @param {import("./definition.js").PipedTexts | undefined} translated
 */
function translatedPiping({ text, help }, translated) {
  return { text: translated?.text || text, help: translated?.help || help };
}

/**
 * @param {import("./definition.js").MatrixRow} matrix
 * @param {import("./definition.js").MatrixTexts | undefined} translated
 * @param {(text: string, translated: string) => string} pick
 */
function translatedRow({ id, text, row }, translated, pick) {
  return { id, text: pick(text, translated?.text ?? ""), row: pick(row, translated?.row ?? "") };
}

/**
 * Check that a translation has the shape of its original, so that no option gets another's label.
 *
 * @param {any} translation
 * @param {Definition} definition
 */
function checkTranslation(translation, definition) {
  const { organization } = definition;
  const texts = TEXTS.filter((name) => name !== "organization" || organization !== "");
  ensureTexts(translation ?? {}, texts);
  ensureSameLength(translation.pages, definition.pages, (page, { questions: originals }) => {
    ensureTexts(page ?? {}, ["title"]);
    ensureSameLength(page.questions, originals, (question, original) => {
      const { options, topic, matrix, slider } = original;
      const texts = ["text", "help", "unit", ...(topic === undefined ? [] : ["topic"])];
      ensureTexts(question ?? {}, texts);
      if (matrix) checkTranslatedRow(question, original);
      if (slider) ensureTexts(question.slider ?? {}, ["low", "high"]);
      checkTranslatedPiping(question, original);
      const ensureLabel = (/** @type {any} */ label) => ensure(typeof label === "string");
      ensureSameLength(question.options, options, ensureLabel);
      if (options.some(({ picture }) => picture))
        ensureSameLength(question.pictures, options, ensureLabel);
    });
  });
}

/** @param {any} translated @param {Question} original */
function checkTranslatedRow({ text, matrix }, original) {
  ensureTexts(matrix ?? {}, ["text", "row"]);
  const own = original.matrix ?? { text: "", row: "" };
  const texts = { text: matrix.text || own.text, row: matrix.row || own.row };
  ensure(isTextOfRow(text || original.text, texts));
}

/**
 * @template T
 * @param {any} list
 * @param {readonly T[]} like
 * @param {(value: any, like: T) => void} check
 */
function ensureSameLength(list, like, check) {
  ensure(Array.isArray(list) && list.length === like.length);
  list.forEach((/** @type {any} */ value, /** @type {number} */ i) => {
    check(value, like[i]);
  });
}
