/**
 * The interface's texts, which the page contains in each language of its survey.
 */

import { KEYS } from "./text-keys.js";

/**
 * @typedef {import("./text-keys.js").Key} Key
 * @typedef {string | string[]} Text  one text, or one for each plural form, in gettext's order
 * @typedef {{texts: Map<string, Text>, plurals: Intl.PluralRules, rtl: boolean, group: string,
 *   mark: string}} Language  a language; `group` and `mark` are its thousands and decimal marks
 */

/** Intl's names of gettext's plural forms, for languages with two and with six forms. */
const FORMS = /** @type {Readonly<Record<number, string[]>>} */ ({
  2: ["one", "other"],
  6: ["zero", "one", "two", "few", "many", "other"],
});

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** @type {Language} */
let current;

/**
 * Return the languages whose texts the page contains.
 *
 * @param {Document} document
 */
export function pageLanguages(document) {
  const scripts = [...document.querySelectorAll("script[data-texts]")];
  return scripts.map((script) => script.getAttribute("data-texts") ?? "");
}

/**
 * Return the first preferred language that is available, whatever its region, or else the first one.
 *
 * @param {readonly string[]} languages
 * @param {readonly string[]} preferences
 */
export function preferredLanguage(languages, preferences) {
  const base = (/** @type {string} */ tag) => tag.split("-")[0].toLowerCase();
  const matches = preferences.map(
    (tag) =>
      languages.find((language) => language === tag) ??
      languages.find((language) => base(language) === base(tag)),
  );
  return matches.find((match) => match !== undefined) ?? languages[0];
}

/**
 * Use this language from now on, or the first one whose texts the page contains.
 *
 * @param {Document} document
 * @param {string} preferences
 */
export function sayIn(document, preferences) {
  const language = preferredLanguage(pageLanguages(document), [preferences]);
  const words = document.querySelector(`script[data-texts="${language}"]`)?.textContent ?? "[]";
  speak(language, JSON.parse(words));
  Object.assign(document.documentElement, { lang: language, dir: current.rtl ? "rtl" : "ltr" });
}

/**
 * Use the texts of a language.
 *
 * @param {string} language
 * @param {readonly Text[]} texts  in the order of `KEYS`
 */
export function speak(language, texts) {
  if (texts.length !== KEYS.length)
    throw new RangeError("the texts belong to another version of the page");
  const byKey = new Map(KEYS.map((key, i) => [/** @type {string} */ (key), texts[i]]));
  const parts = new Intl.NumberFormat(`${language}-u-nu-latn`).formatToParts(1234567.8);
  const part = (/** @type {string} */ type) =>
    parts.find((part) => part.type === type)?.value ?? "";
  current = {
    texts: byKey,
    plurals: new Intl.PluralRules(language),
    rtl: byKey.get("language.direction") === "rtl",
    group: part("group"),
    mark: part("decimal"),
  };
}

/**
 * Return a text with its values; values in the other writing direction are isolated.
 *
 * @param {Key} key
 * @param {Record<string, string | number>} [values]
 */
export function say(key, values = {}) {
  return pieces(key, values).join("");
}

/**
 * Return the pieces of a text; a value can be an element with its own language and direction.
 *
 * @param {Key} key
 * @param {Record<string, string | number | Node>} values
 */
export function pieces(key, values) {
  const text = current.texts.get(key);
  if (typeof text !== "string") throw new RangeError(`there is no text ${key}`);
  return fill(text, values);
}

/**
 * Return the text of a name in a group of texts, or null.
 *
 * @param {string} group
 * @param {string} name
 */
export function sayOf(group, name) {
  const key = /** @type {Key} */ (`${group}.${name}`);
  return typeof current.texts.get(key) === "string" ? say(key) : null;
}

/**
 * Return a count with its noun in the right plural form.
 *
 * @param {Key} key
 * @param {number} n
 */
export function count(key, n) {
  const forms = current.texts.get(key);
  if (!Array.isArray(forms)) throw new RangeError(`${key} has no plural forms`);
  const form = FORMS[forms.length].indexOf(current.plurals.select(n));
  return fill(forms[form] ?? forms[forms.length - 1], { n: figure(String(n)) }).join("");
}

/**
 * Write a number with the language's marks.
 *
 * @param {string} text  digits, with commas between thousands and a decimal point
 */
export function figure(text) {
  return text.replace(/[,.]/g, (sign) => (sign === "," ? current.group : current.mark));
}

/** @param {string} text @param {Record<string, string | number | Node>} values */
function fill(text, values) {
  return text.split(/\{(\w+)\}/).map((piece, i) => {
    if (i % 2 === 0) return piece;
    const value = values[piece];
    return typeof value === "object" ? value.cloneNode(true) : isolated(String(value));
  });
}

/** @param {string} value */
function isolated(value) {
  return RIGHT_TO_LEFT.test(value) === current.rtl ? value : `\u2068${value}\u2069`;
}
