/**
 * The form of a definition: its pages, questions, conditions and sampling.
 */

import {
  checkChannel,
  checkSize,
  MAX_ALONE,
  MAX_GRID,
  MAX_NO_ANSWERS,
  MAX_OPTIONS,
} from "./channel-schema.js";
import { demand, demandDistinct, demandTexts, isInteger } from "./demand.js";
import { checkTranslation, TEXTS } from "./translation.js";
import { CHOICES, TYPES } from "./truth.js";

/**
 * @typedef {import("./definition.js").Option} Option
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./definition.js").Question} Question
 */

/** A key that is not known here may change what is kept or asked: nobody could be told of it. */
const KEYS = {
  definition: [
    ...["access", "allow_skip_logic", "bucket", "exit", "format", "kiosk", "language", "pages"],
    ...["report_bytes", "sampling", "slug", "theme", "translations", "version", ...TEXTS],
  ],
  page: ["questions", "title"],
  question: [
    ...["alone", "ask_if", "channel", "grid", "help", "id", "max_ticks", "mechanism"],
    ...["not_applicable", "opt_out", "options", "shuffled", "stated", "text", "type"],
  ],
};

/** Days since 1970 from the year 1 to the year 9999, which is as far as date fields go. */
const DAYS = { first: -719_162, last: 2_932_896 };

const THEMES = ["", "blue", "plum", "slate"];

const LANGUAGE = /^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$/;

/** @param {any} definition */
export function checkStructure(definition) {
  demandTexts(definition, ["slug", "language", ...TEXTS], "it");
  const { report_bytes: room, allow_skip_logic: skips, sampling, pages, bucket } = definition;
  demand(isInteger(room, 1, 8192), `report_bytes is ${room}`);
  demand(typeof skips === "boolean", "allow_skip_logic is neither true nor false");
  demand([undefined, "day", "week"].includes(bucket), `bucket is ${bucket}`);
  demand(Array.isArray(pages) && pages.length > 0, "it has no pages");
  pages.forEach(checkPage);
  const asked = pages.flatMap((/** @type {Page} */ page) => page.questions);
  demandDistinct(asked, "questions");
  pages.forEach((_, at) => {
    checkConditions(definition, at);
  });
  if (sampling !== null) checkSampling(sampling, asked);
  checkManner(definition);
  for (const [language, translation] of Object.entries(definition.translations)) {
    demand(LANGUAGE.test(language), `${language} is no language`);
    checkTranslation(translation, definition);
  }
}

/** How the survey is shown and entered. @param {any} definition */
function checkManner({ access, kiosk, theme, exit, translations }) {
  demand(["open", "invitation"].includes(access), `access is ${access}`);
  demand(typeof kiosk === "boolean", "kiosk is neither true nor false");
  demand(THEMES.includes(theme), `theme is ${theme}`);
  const isAddress = exit === "" || (typeof exit === "string" && exit.startsWith("https://"));
  demand(isAddress, "exit is no https address");
  const isTable = typeof translations === "object" && !Array.isArray(translations);
  demand(translations !== null && isTable, "its translations are no table");
}

/** @param {any} page @param {number} at */
function checkPage(page, at) {
  demand(Array.isArray(page?.questions) && page.questions.length > 0, `page ${at + 1} is empty`);
  demandKnown(page, "page");
  demandTexts(page, ["title"], `page ${at + 1}`);
  page.questions.forEach(checkQuestion);
}

/** @param {any} question */
function checkQuestion(question) {
  const texts = ["id", "type", "text", "help", "opt_out", "not_applicable", "mechanism"];
  demandTexts(question ?? {}, texts, "question");
  demandKnown(question, "question");
  const { id, type } = question;
  demand(TYPES.includes(type), `${id}: unknown type ${type}`);
  demand([undefined, true].includes(question.shuffled), `${id}: shuffled is ${question.shuffled}`);
  checkOptions(question);
  // The points of a scale may stand for numbers; other options never do.
  const isPlain = CHOICES.includes(type) && (type !== "scale" || question.grid === null);
  if (isPlain) demand(question.grid === null, `${id}: these options have no grid`);
  else checkGrid(question);
  checkTicks(question);
  checkChannel(question.channel, id);
  checkSize(question);
}

/** @param {any} question */
function checkOptions({ id, type, options, opt_out: optOut, not_applicable: notApplicable }) {
  const least = CHOICES.includes(type) ? 2 : 0;
  const most = least === 0 ? MAX_NO_ANSWERS : MAX_OPTIONS;
  demand(Array.isArray(options), `${id}: no options`);
  demand(isInteger(options.length, least, most), `${id}: ${options.length} options`);
  for (const option of options) demandTexts(option ?? {}, ["id", "label"], `${id}.options`);
  demandDistinct(options, `${id}: options`);
  const known = ["", ...options.map((/** @type {Option} */ option) => option.id)];
  demand(known.includes(optOut), `${id}: its opt_out is no option`);
  demand(known.includes(notApplicable), `${id}: its not_applicable is no option`);
}

/** @param {any} question */
function checkGrid({ id, type, options, grid }) {
  const { low, step, points, decimals, unit } = grid ?? {};
  const furthest = Number.MAX_SAFE_INTEGER;
  demand(isInteger(low, -furthest) && isInteger(step, 1), `${id}: low or step is no integer`);
  demand(isInteger(points, 2, MAX_GRID), `${id}: ${points} grid points`);
  const fits = type !== "scale" || points <= options.length;
  demand(fits, `${id}: ${points} grid points for ${options.length} options`);
  demand(isInteger(low + step * (points - 1), -furthest), `${id}: the grid goes too far`);
  demand(isInteger(decimals, 0, type === "date" ? 0 : 15), `${id}: ${decimals} decimals`);
  demand(typeof unit === "string", `${id}: its unit is no text`);
  const isReal = low >= DAYS.first && low + step * (points - 1) <= DAYS.last;
  demand(type !== "date" || isReal, `${id}: its dates are beyond the calendar`);
}

/** @param {any} question */
function checkTicks({ id, type, options, max_ticks: ticks, alone, ...question }) {
  const several = type === "multiple_choice";
  const most = several ? Math.min(MAX_ALONE, options.length - 1) : 0;
  demand(isInteger(alone, several ? 1 : 0, most), `${id}: ${alone} options stand alone`);
  const together = options.slice(0, options.length - alone);
  const mostTicks = several ? together.length : 0;
  demand(isInteger(ticks, several ? 1 : 0, mostTicks), `${id}: at most ${ticks} ticks`);
  const beside = together.some((/** @type {Option} */ option) =>
    [question.opt_out, question.not_applicable].includes(option.id),
  );
  demand(!several || !beside, `${id}: an option that is no answer does not stand alone`);
}

/**
 * What a question depends on was asked on an earlier page.
 *
 * @param {any} definition
 * @param {number} at
 */
function checkConditions({ pages, allow_skip_logic: skips }, at) {
  const earlier = pages.slice(0, at).flatMap((/** @type {Page} */ page) => page.questions);
  for (const question of pages[at].questions) {
    if (question.ask_if === null) continue;
    demand(skips, `${question.id}: it depends on another, and the survey allows no skip logic`);
    checkCondition(question, earlier);
  }
}

/** @param {any} question @param {Question[]} earlier */
function checkCondition({ id, ask_if: condition, not_applicable: notApplicable }, earlier) {
  demand(notApplicable !== "", `${id}: it has no option for when it is not asked`);
  const on = earlier.find((one) => one.id === condition?.question);
  demand(on && CHOICES.includes(on.type), `${id}: what it depends on is no choice before it`);
  const known = on.options.map((option) => option.id);
  const { options } = condition;
  demand(Array.isArray(options) && options.length > 0, `${id}: it depends on no options`);
  const areKnown = options.every((option) => known.includes(option));
  demand(areKnown, `${id}: it depends on unknown options`);
}

/** @param {any} sampling @param {Question[]} asked */
function checkSampling(sampling, asked) {
  const { draw, groups } = sampling ?? {};
  const isList = (/** @type {any} */ list) => Array.isArray(list) && list.length > 0;
  demand(isList(groups) && groups.every(isList), "sampling has no groups of questions");
  demand(isInteger(draw, 1, groups.length - 1), `sampling draws ${draw} of ${groups.length}`);
  const grouped = [...groups.flat()].sort();
  const ids = asked.map(({ id }) => id).sort();
  const isPartition = grouped.length === ids.length && ids.every((id, i) => id === grouped[i]);
  demand(isPartition, "a question is in no group of the sampling, or in two");
  for (const { id, ask_if: condition } of asked) {
    const group = groups.find((/** @type {string[]} */ one) => one.includes(id));
    const together = condition === null || group.includes(condition.question);
    demand(together, `${id}: it is drawn without the question it depends on`);
  }
}

/** @param {object} value @param {keyof typeof KEYS} kind */
export function demandKnown(value, kind) {
  const unknown = Object.keys(value).find((key) => !KEYS[kind].includes(key));
  demand(unknown === undefined, `a ${kind} with an unknown key, ${unknown}`);
}
