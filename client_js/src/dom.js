/**
 * What all views are made of: elements whose texts are only ever text.
 *
 * Nothing here parses markup, so no survey can smuggle any in.
 */

import { say } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {Record<string, string>} Attributes
 * @typedef {Node | string} Child
 * @typedef {{content: HTMLElement, title: string, focus?: HTMLElement}} View
 *   `focus` is where reading goes on; without it, the view's heading
 */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * @param {string} tag
 * @param {Attributes} attributes
 * @param {...Node} children
 */
export function svgElement(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * The heading of a view; it takes focus when the view is shown.
 *
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function heading(text, attributes = {}) {
  return element("h1", { tabindex: "-1", ...attributes }, text);
}

/** A paragraph. @param {string} text @param {string} [name] */
export function paragraph(text, name) {
  return element("p", name ? { class: name } : {}, text);
}

/**
 * A text with blank lines as paragraphs.
 *
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function paragraphs(text, attributes = {}) {
  return text
    .split(/\n[^\S\n]*\n/)
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => element("p", attributes, part));
}

/**
 * @param {Child | Child[]} text  says what the button does
 * @param {(event: MouseEvent) => void} onPress
 * @param {Attributes} [attributes]
 */
export function button(text, onPress, attributes = {}) {
  const said = Array.isArray(text) ? text : [text];
  const made = element("button", { type: "button", class: "button", ...attributes }, ...said);
  made.addEventListener("click", onPress);
  return made;
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
 * The attributes of a text the researcher wrote: its language, its own direction.
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
 * A text the researcher wrote, as an element.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Definition} definition
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function surveyElement(tag, definition, text, attributes = {}) {
  return element(tag, { ...attributes, ...surveyText(definition, text) }, text);
}

/**
 * A text the researcher wrote, to stand within a sentence of ours.
 *
 * @param {Definition} definition
 * @param {string} text
 */
export function quoted(definition, text) {
  return surveyElement("bdi", definition, text);
}

/**
 * Texts the researcher wrote, one after the other, each in its own language and direction.
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
 * A text of the researcher's under a heading of ours; nothing when there is none.
 *
 * @param {Definition} definition
 * @param {"consent" | "ethics" | "helpline" | "contact"} name
 */
export function passage(definition, name) {
  const text = definition[name];
  if (text.trim() === "") return [];
  return [
    element(
      "section",
      { class: `passage ${name}` },
      element("h2", {}, say(`start.${name}`)),
      ...paragraphs(text, surveyText(definition, text)),
    ),
  ];
}
