/**
 * Translations of a definition.
 */

import { ensure, ensureTexts } from "./definition-error.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./definition.js").TranslatedQuestion} TranslatedQuestion
 */

/** Keys of the survey's own texts. */
export const TEXTS = /** @type {const} */ ([
  ...["title", "introduction", "consent", "ethics", "helpline", "contact", "thanks"],
]);

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
