/**
 * Pictures of answers. Every device loads all pictures of a survey before the first question, so
 * that no request depends on an answer, a draw or a language.
 */

import { questions } from "./answers.js";
import { element, surveyText } from "./dom.js";
import { encodeBase64url } from "./mechanism.js";
import { fetchPicture } from "./transport.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Option} Option
 * @typedef {import("./definition.js").Picture} Picture
 */

/** The content of each picture as a data URL, "" if it did not load. @type {Map<string, Promise<string>>} */
const contents = new Map();

/**
 * Start loading all pictures of a survey, each once.
 *
 * @param {import("./transport.js").Fetch} fetch
 * @param {string} collector  the origin that serves the pictures, "" if it is the page's own
 * @param {Definition} definition
 */
export function loadPictures(fetch, collector, definition) {
  const options = questions(definition).flatMap((question) => question.options);
  for (const { picture } of options)
    if (picture && !contents.has(picture.sha256))
      contents.set(picture.sha256, load(fetch, collector, picture));
}

/**
 * Load a picture; the browser compares it with the hash in the definition.
 *
 * @param {import("./transport.js").Fetch} fetch
 * @param {string} collector
 * @param {Picture} picture
 */
async function load(fetch, collector, { sha256, type }) {
  const pairs = sha256.match(/../g) ?? [];
  const hash = Uint8Array.from(pairs, (pair) => Number(`0x${pair}`));
  try {
    const url = `${collector}/pictures/${sha256}`;
    const bytes = await fetchPicture(fetch, url, `sha256-${base64(hash)}=`);
    return `data:${type};base64,${base64(bytes)}`;
  } catch {
    return "";
  }
}

/** Encode bytes in base64 without padding. @param {Uint8Array} bytes */
function base64(bytes) {
  return encodeBase64url(bytes).replace(/-/g, "+").replace(/_/g, "/");
}

/**
 * Create the picture of an option; [] if it has none. If the picture does not load, the description
 * replaces it.
 *
 * @param {Definition} definition
 * @param {Option} option
 * @returns {HTMLElement[]}
 */
export function pictureOf(definition, { label, picture }) {
  if (!picture) return [];
  // Screen readers would read a description that repeats the label twice.
  const alt = picture.alt === label ? "" : picture.alt;
  const attributes = { class: "picture", alt, ...surveyText(definition, picture.alt) };
  const image = element("img", attributes);
  contents.get(picture.sha256)?.then((url) => {
    if (url !== "") image.setAttribute("src", url);
  });
  return [image];
}
