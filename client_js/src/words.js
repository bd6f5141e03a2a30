/**
 * Every word the interface says: texts come with the page, in each language that its survey speaks.
 */

import { KEYS } from "./keys.js";

/**
 * @typedef {import("./keys.js").Key} Key
 * @typedef {string | string[]} Text  one text, or one for each plural form, in gettext's order
 * @typedef {{of: Map<string, Text>, plurals: Intl.PluralRules, rtl: boolean, group: string,
 *   mark: string}} Spoken  a language in use; `group` and `mark` stand in its numbers
 */

/** The names that Intl has for gettext's plural forms, of languages with two and with six. */
const FORMS = /** @type {Readonly<Record<number, string[]>>} */ ({
  2: ["one", "other"],
  6: ["zero", "one", "two", "few", "many", "other"],
});

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** @type {Spoken} */
let spoken;

/**
 * The languages whose words came with the page.
 *
 * @param {Document} document
 */
export function pageLanguages(document) {
  const found = [...document.querySelectorAll("script[data-words]")];
  return found.map((one) => one.getAttribute("data-words") ?? "");
}

/**
 * The first language wanted that there is, whatever its region; else the first there is.
 *
 * @param {readonly string[]} languages
 * @param {readonly string[]} wanted
 */
export function preferredLanguage(languages, wanted) {
  const base = (/** @type {string} */ tag) => tag.split("-")[0].toLowerCase();
  const found = wanted.map(
    (tag) =>
      languages.find((one) => one === tag) ?? languages.find((one) => base(one) === base(tag)),
  );
  return found.find((one) => one !== undefined) ?? languages[0];
}

/**
 * From now on, everything is said in this language, or in the first that the page has words of.
 *
 * @param {Document} document
 * @param {string} wanted
 */
export function sayIn(document, wanted) {
  const language = preferredLanguage(pageLanguages(document), [wanted]);
  const words = document.querySelector(`script[data-words="${language}"]`)?.textContent ?? "[]";
  speak(language, JSON.parse(words));
  Object.assign(document.documentElement, { lang: language, dir: spoken.rtl ? "rtl" : "ltr" });
}

/**
 * Use these texts, of this language.
 *
 * @param {string} language
 * @param {readonly Text[]} texts  in the order of `KEYS`
 */
export function speak(language, texts) {
  if (texts.length !== KEYS.length) throw new RangeError("these are the texts of another page");
  const of = new Map(KEYS.map((key, i) => [/** @type {string} */ (key), texts[i]]));
  const parts = new Intl.NumberFormat(`${language}-u-nu-latn`).formatToParts(1234567.8);
  const part = (/** @type {string} */ type) => parts.find((one) => one.type === type)?.value ?? "";
  spoken = {
    of,
    plurals: new Intl.PluralRules(language),
    rtl: of.get("language.direction") === "rtl",
    group: part("group"),
    mark: part("decimal"),
  };
}

/**
 * A text with its values filled in; what runs the other way does not disturb what is around it.
 *
 * @param {Key} key
 * @param {Record<string, string | number>} [values]
 */
export function say(key, values = {}) {
  return pieces(key, values).join("");
}

/**
 * The same, in pieces: a value that is an element brings its own language and direction.
 *
 * @param {Key} key
 * @param {Record<string, string | number | Node>} values
 */
export function pieces(key, values) {
  const text = spoken.of.get(key);
  if (typeof text !== "string") throw new RangeError(`no text ${key}`);
  return fill(text, values);
}

/**
 * The text of a name within a group of texts; none when the group has no such name.
 *
 * @param {string} group
 * @param {string} name
 */
export function sayOf(group, name) {
  const key = /** @type {Key} */ (`${group}.${name}`);
  return typeof spoken.of.get(key) === "string" ? say(key) : null;
}

/**
 * So many of something.
 *
 * @param {Key} key
 * @param {number} n
 */
export function count(key, n) {
  const forms = spoken.of.get(key);
  if (!Array.isArray(forms)) throw new RangeError(`no plural forms of ${key}`);
  const form = FORMS[forms.length].indexOf(spoken.plurals.select(n));
  return fill(forms[form] ?? forms[forms.length - 1], { n: figure(String(n)) }).join("");
}

/**
 * A number as the language writes it.
 *
 * @param {string} text  digits, with a comma between thousands and a point before decimals
 */
export function figure(text) {
  return text.replace(/[,.]/g, (sign) => (sign === "," ? spoken.group : spoken.mark));
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
  return RIGHT_TO_LEFT.test(value) === spoken.rtl ? value : `\u2068${value}\u2069`;
}
