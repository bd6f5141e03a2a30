/**
 * The first downloads of a visit: the definition, then the texts of each of its languages.
 *
 * The page runs this module first, so that these downloads start before the other modules arrive.
 */

import { parseAddress, parseLink } from "./link.js";
import { fetchWords, requestDefinition } from "./transport.js";
import { availableWords, chooseWords, storeWords } from "./words.js";

export const address = parseAddress(document, location);
export const link = parseLink(location.hash);

/** The bytes of the definition, exactly as received. */
export const definitionBytes = requestDefinition(window, address, link);

/** Resolves when the texts of all languages of the definition are loaded. */
export const words = definitionBytes.then(languagesOf, () => []).then(loadWords);

/**
 * Return the languages of an unchecked definition, or an empty array if it is not valid JSON.
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
 * Load the texts of all these languages, because loading only one would reveal which language the
 * respondent reads.
 *
 * @param {string[]} languages
 */
async function loadWords(languages) {
  const files = chooseWords(availableWords(document), languages);
  const contents = await Promise.all(files.map((file) => fetchWords(fetch, file)));
  storeWords(files.map(({ language }, i) => [language, contents[i]]));
}
