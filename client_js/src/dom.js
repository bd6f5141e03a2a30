/**
 * Makes elements and nothing else: all text is set as text, so no survey can smuggle in markup.
 */

/**
 * @typedef {Record<string, string>} Attributes
 * @typedef {Node | string} Child
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
 * @param {string} text  says what the button does
 * @param {() => void} onPress
 * @param {Attributes} [attributes]
 */
export function button(text, onPress, attributes = {}) {
  const made = element("button", { type: "button", class: "button", ...attributes }, text);
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
 * The attributes of texts the researcher wrote: their language, their own direction.
 *
 * @param {{language: string} | null} definition
 * @returns {Attributes}
 */
export function surveyText(definition) {
  return definition ? { lang: definition.language, dir: "auto" } : {};
}
