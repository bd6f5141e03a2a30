/**
 * Elements of all views. Texts are only ever set as text.
 *
 * No function parses markup, so no survey can inject any.
 */

import { RIGHT_TO_LEFT, say } from "./texts.js";
import { plainText } from "./typed-number.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {Pick<Definition, "title" | "contact" | "language" | "untranslated">} Named  a survey of
 *   which only these texts are known
 * @typedef {Record<string, string>} Attributes
 * @typedef {Node | string} Child
 * @typedef {{content: HTMLElement, title: string, focus?: HTMLElement}} View
 *   `focus`: the element to focus; by default the view's heading
 */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/**
 * Create the heading of a view, which gets the focus when the view appears.
 *
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function heading(text, attributes = {}) {
  return element("h1", { tabindex: "-1", ...attributes }, text);
}

/** Create a paragraph. @param {string} text @param {string} [name] */
export function paragraph(text, name) {
  return element("p", name ? { class: name } : {}, text);
}

/**
 * Split a text at blank lines into paragraphs.
 *
 * @param {string} text
 * @param {Attributes} [attributes]
 * @param {(number: string) => HTMLElement} [wrap]  makes the element of a number
 */
export function paragraphs(text, attributes = {}, wrap = undefined) {
  return text
    .split(/\n[^\S\n]*\n/)
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => element("p", attributes, ...isolatedNumbers(part, wrap)));
}

/**
 * A negative number, or digits in any script, in groups separated by spaces and marks, as in phone
 * numbers. Hours after a phone number, such as "9-17", "24/7" or "(24 hours)", are not part of it.
 */
const DIGIT_GROUPS =
  /(−[\p{Nd}.,٫]*\p{Nd}|\+?\p{Nd}(?:(?!\s?\(\p{Nd}+[^\p{Nd})]|\s\p{Nd}{1,2}(?:[:\p{L}]|[-–/]\p{Nd}{1,2}(?![-/\p{Nd}])))[\s()./-]{0,3}\p{Nd})+)/u;

/**
 * Return a text whose numbers keep the order of their digit groups in right-to-left scripts.
 *
 * @param {string} text
 * @param {(number: string) => HTMLElement} [wrap]  makes the element of a number
 * @returns {Child[]}
 */
export function isolatedNumbers(text, wrap = undefined) {
  if (!wrap && !RIGHT_TO_LEFT.test(text)) return text === "" ? [] : [text];
  const isolate =
    wrap ?? ((/** @type {string} */ number) => element("bdi", { dir: "ltr" }, number));
  const parts = text.split(DIGIT_GROUPS);
  // Digits inside a word or a code are not a separate number.
  const isApart = (/** @type {number} */ i) =>
    !/[\p{L}&#=_]$/u.test(parts[i - 1]) && !/^[\p{L}&#=_;]/u.test(parts[i + 1]);
  return parts.map((part, i) => (i % 2 === 1 && isApart(i) ? isolate(part) : part));
}

/** Milliseconds within which a browser opens the phone; it announces that as if it left the page. */
const CALLING_TIME = 1000;

/** Whether the browser is opening the phone, so that nothing is lost. */
export let isCalling = false;

/** Minimum number of digits in a phone number; years have fewer. */
const PHONE_DIGITS = 6;

/**
 * Wrap a number in a help text. Phone numbers become links; years, hours and prices do not.
 *
 * @param {string} number
 */
function phoneLink(number) {
  const plain = plainText(number);
  // The zero of "+49 (0)30" is dialed within the country only.
  const digits = plain.replace(/\(0\)|[^\d+]/g, "");
  const isShort = digits === plain && /^\d{3,5}$/.test(digits) && !/^(19|20)\d\d$/.test(digits);
  const isDate = /^\d{1,4}([./-])\d{1,2}\1\d{1,4}$/.test(plain);
  const isPhone = isShort || (!isDate && digits.replace("+", "").length >= PHONE_DIGITS);
  if (!isPhone) return element("bdi", { dir: "ltr" }, number);
  const link = element("a", { dir: "ltr", href: `tel:${digits}` }, number);
  link.addEventListener("click", () => {
    isCalling = true;
    window.setTimeout(() => {
      isCalling = false;
    }, CALLING_TIME);
  });
  return link;
}

/**
 * @param {Child | Child[]} text  says what the button does
 * @param {(event: MouseEvent) => void} onPress
 * @param {Attributes} [attributes]
 */
export function button(text, onPress, attributes = {}) {
  const children = Array.isArray(text) ? text : [text];
  const node = element("button", { type: "button", class: "button", ...attributes }, ...children);
  node.addEventListener("click", onPress);
  return node;
}

/**
 * @param {Child} summary
 * @param {...Child} children
 */
export function disclosure(summary, ...children) {
  return element(
    "details",
    {},
    element("summary", {}, summary),
    element("div", { class: "details-body" }, ...children),
  );
}

/**
 * Return the attributes of a researcher's text: its language and direction.
 *
 * @param {Pick<Definition, "language" | "untranslated"> | null} definition
 * @param {string} text
 * @returns {Attributes}
 */
export function surveyText(definition, text) {
  if (!definition) return {};
  return { lang: definition.untranslated.get(text) ?? definition.language, dir: "auto" };
}

/**
 * Create an element with a researcher's text.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Pick<Definition, "language" | "untranslated">} definition
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function surveyElement(tag, definition, text, attributes = {}) {
  return element(tag, { ...attributes, ...surveyText(definition, text) }, ...isolatedNumbers(text));
}

/**
 * Quote a researcher's text within a sentence of the interface.
 *
 * @param {Definition} definition
 * @param {string} text
 */
export function quoted(definition, text) {
  return surveyElement("bdi", definition, text);
}

/**
 * List researchers' texts with commas, each in its own language and direction.
 *
 * @param {Definition} definition
 * @param {readonly string[]} texts
 * @returns {Child[]}
 */
export function listed(definition, texts) {
  const comma = say("language.comma");
  return texts.flatMap((text, i) => [...(i ? [comma] : []), surveyElement("b", definition, text)]);
}

/**
 * Show a researcher's text, if any, under a heading of the interface. Phone numbers in the help text
 * are links.
 *
 * @template {"consent" | "ethics" | "helpline" | "contact"} Name
 * @param {Pick<Definition, "language" | "untranslated" | Name>} definition
 * @param {Name} name
 */
export function passage(definition, name) {
  const text = String(definition[name]);
  if (text.trim() === "") return [];
  const wrap = name === "helpline" ? phoneLink : undefined;
  return [
    element(
      "section",
      { class: `passage ${name}` },
      element("h2", {}, say(`start.${name}`)),
      ...paragraphs(text, surveyText(definition, text), wrap),
    ),
  ];
}
