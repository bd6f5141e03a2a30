/**
 * The files with the interface's texts: which of them a survey needs, and their contents.
 */

/**
 * @typedef {import("./texts.js").Text} Text
 * @typedef {{language: string, path: string, integrity: string}} WordsFile  the file with the texts
 *   of a language, in the order of `KEYS`
 */

/** The texts of each loaded language; the survey's own language is first. @type {Map<string, Text[]>} */
let loaded = new Map();

/**
 * Return the files of texts that the page lists; the source language is first.
 *
 * @param {Pick<Document, "querySelectorAll">} document
 * @returns {WordsFile[]}
 */
export function availableWords(document) {
  return [...document.querySelectorAll('meta[name="words"]')].map((meta) => {
    const [language, path, integrity] = (meta.getAttribute("content") ?? "").split(" ");
    return { language, path, integrity };
  });
}

/**
 * Return the files for a survey in these languages: the source language's file for languages without
 * a file, and all files if the survey's languages are unknown.
 *
 * @param {readonly WordsFile[]} files
 * @param {readonly string[]} languages
 */
export function chooseWords(files, languages) {
  if (languages.length === 0) return [...files];
  const available = files.map(({ language }) => language);
  const chosen = languages.map((tag) => available.indexOf(preferredLanguage(available, [tag])));
  return [...new Set(chosen)].map((at) => files[at]);
}

/** Store the texts of each language, the survey's own language first. @param {[string, Text[]][]} words */
export function storeWords(words) {
  loaded = new Map(words);
}

/** Return the texts of a language, in the order of `KEYS`. @param {string} language */
export function textsIn(language) {
  return loaded.get(language) ?? [];
}

/** Return the languages whose texts are loaded; the survey's own language is first. */
export function loadedLanguages() {
  return [...loaded.keys()];
}

/**
 * Return the first preferred language that is available in any region, otherwise the first language.
 *
 * @param {readonly string[]} languages
 * @param {readonly string[]} preferences
 */
export function preferredLanguage(languages, preferences) {
  // Readers of traditional Chinese may not know the simplified characters.
  const base = (/** @type {string} */ tag) =>
    /^zh-(hant|tw|hk|mo)/i.test(tag) ? "zh-hant" : tag.split("-")[0].toLowerCase();
  const matches = preferences.map(
    (tag) =>
      languages.find((language) => language === tag) ??
      languages.find((language) => base(language) === base(tag)),
  );
  return matches.find((match) => match !== undefined) ?? languages[0];
}
