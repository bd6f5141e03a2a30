/**
 * Placeholders for earlier answers in the texts of a definition: "{job|your work}" means the answer to
 * the question `job`, or "your work" if there is none.
 */

import { ensure } from "./definition-error.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {{source: string, fallback: string}} Placeholder
 */

const PLACEHOLDER = /\{\{|\}\}|\{([a-z][a-z0-9_]*)\|([^{}|]+)\}|[^{}]+/g;

/**
 * Return the parts of a text with placeholders, in which "{{" and "}}" are braces.
 *
 * @param {string} text
 * @returns {(string | Placeholder)[]}
 */
export function parsePiped(text) {
  return [...text.matchAll(PLACEHOLDER)].map(([token, source, fallback]) => {
    if (source !== undefined) return { source, fallback: fallback.trim() };
    return token === "{{" || token === "}}" ? token[0] : token;
  });
}

/** @param {string} text */
function fallbackText(text) {
  return parsePiped(text)
    .map((part) => (typeof part === "string" ? part : part.fallback))
    .join("");
}

/**
 * Check the earlier answers in the texts of a page. Each must come from a question with one answer on an
 * earlier page that is drawn together with this one; the plain text must have the words for no answer.
 *
 * @param {Definition} definition
 * @param {number} at  index of the page
 */
export function checkPiping({ pages, allow_skip_logic: skips, sampling }, at) {
  const earlier = pages.slice(0, at).flatMap((page) => page.questions);
  for (const question of pages[at].questions) {
    const { id, piped } = question;
    if (piped === undefined) continue;
    const names = Object.keys(piped ?? {});
    const isKnown = names.length > 0 && names.every((name) => name === "text" || name === "help");
    ensure(isKnown && skips && !question.matrix);
    for (const source of names.flatMap((name) => sourcesOf(question, name))) {
      const isEarlier = earlier.some((other) => other.id === source && other.max_ticks === 0);
      ensure(isEarlier);
      const groups = sampling?.groups ?? [[id, source]];
      const isDrawn = groups.some((group) => group.includes(id) && group.includes(source));
      ensure(isDrawn);
    }
  }
}

/**
 * Return the questions whose answers a text contains, after checking it.
 *
 * @param {Pick<Question, "text" | "help" | "piped">} texts  of the question, or of its translation
 * @param {string} name
 */
function sourcesOf(texts, name) {
  const [text, template] = [texts, texts.piped].map((of) => /** @type {any} */ (of)?.[name]);
  ensure(typeof template === "string" && fallbackText(template) === text);
  return parsePiped(template).flatMap((part) => (typeof part === "string" ? [] : [part.source]));
}

/**
 * Check that a translated question contains the same earlier answers.
 *
 * @param {any} translated
 * @param {Question} original
 */
export function checkTranslatedPiping({ text, help, piped }, original) {
  const own = original.piped ?? {};
  const texts = {
    text: text || original.text,
    help: help || original.help,
    piped: { text: piped?.text || own.text, help: piped?.help || own.help },
  };
  for (const name of Object.keys(own)) {
    ensure(typeof piped?.[name] === "string");
    const sources = (/** @type {any} */ of) => [...new Set(sourcesOf(of, name))].sort();
    const areSame = sources(texts).join() === sources(original).join();
    ensure(areSame);
  }
}
