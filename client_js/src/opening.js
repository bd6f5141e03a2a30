/**
 * Starts the downloads of every visit: the definition, then the words of each of its languages.
 *
 * The page runs this module first, so that both are under way while the other modules arrive.
 */

import { parseAddress, parseLink } from "./link.js";
import { availableWords, chooseWords, useWords } from "./texts.js";
import { fetchWords, requestDefinition } from "./transport.js";

export const address = parseAddress(document, location);
export const link = parseLink(location.hash);

/** The bytes of the definition, exactly as served. */
export const definitionBytes = requestDefinition(window, address, link);

/** Settled once the words of all languages of the definition can be shown. */
export const words = definitionBytes.then(languagesOf, () => []).then(loadWords);

/**
 * Return the languages of a definition that is not checked yet, or none if it has no valid form.
 *
 * @param {Uint8Array} bytes
 * @returns {string[]}
 */
function languagesOf(bytes) {
  try {
    const { language, translations } = JSON.parse(
      new TextDecoder("utf-8", { fatal: true }).decode(bytes),
    );
    return [String(language), ...Object.keys(translations ?? {})];
  } catch {
    return [];
  }
}

/**
 * Load the words of all these languages: a device that loaded only the language that its user reads
 * would reveal it.
 *
 * @param {string[]} languages
 */
async function loadWords(languages) {
  const files = chooseWords(availableWords(document), languages);
  const contents = await Promise.all(files.map((file) => fetchWords(fetch, file)));
  useWords(files.map(({ language }, i) => [language, contents[i]]));
}
