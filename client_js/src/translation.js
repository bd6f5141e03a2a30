/**
 * The texts of a definition in another of its languages.
 */

import { demand, demandTexts } from "./demand.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./definition.js").TranslatedQuestion} TranslatedQuestion
 */

/** The texts of a whole survey. */
export const TEXTS = /** @type {const} */ ([
  ...["title", "introduction", "consent", "ethics", "helpline", "contact", "thanks"],
]);

/**
 * The definition with its texts in another of its languages, as far as they are translated.
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
  const chosen = (/** @type {string} */ text, /** @type {string} */ translated) => {
    if (translated === "") untranslated.set(text, definition.language);
    return translated || text;
  };
  const texts = TEXTS.map((name) => [name, chosen(definition[name], translation[name])]);
  const pages = definition.pages.map((page, i) => ({
    title: chosen(page.title, translation.pages[i].title),
    questions: page.questions.map((question, j) =>
      translatedQuestion(question, translation.pages[i].questions[j], chosen),
    ),
  }));
  return { ...definition, ...Object.fromEntries(texts), pages, language, untranslated };
}

/**
 * @param {Question} question
 * @param {TranslatedQuestion} translated
 * @param {(text: string, translated: string) => string} chosen
 * @returns {Question}
 */
function translatedQuestion(question, translated, chosen) {
  const { text, help, options, grid } = question;
  return {
    ...question,
    text: chosen(text, translated.text),
    help: chosen(help, translated.help),
    options: options.map(({ id, label }, i) => ({
      id,
      label: chosen(label, translated.options[i]),
    })),
    grid: grid && { ...grid, unit: chosen(grid.unit, translated.unit) },
  };
}

/**
 * A translation has the shape of what it translates, or it would name one option by another's label.
 *
 * @param {any} translation
 * @param {Definition} definition
 */
export function checkTranslation(translation, definition) {
  demandTexts(translation ?? {}, [...TEXTS], "a translation");
  demandAsMany(translation.pages, definition.pages, (page, { questions: asked }) => {
    demandTexts(page ?? {}, ["title"], "a translated page");
    demandAsMany(page.questions, asked, (question, { options }) => {
      demandTexts(question ?? {}, ["text", "help", "unit"], "a translated question");
      demandAsMany(question.options, options, (label) => {
        demand(typeof label === "string", "a translated label is no text");
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
function demandAsMany(list, like, check) {
  demand(Array.isArray(list) && list.length === like.length, "a translation has another shape");
  list.forEach((/** @type {any} */ value, /** @type {number} */ i) => {
    check(value, like[i]);
  });
}
