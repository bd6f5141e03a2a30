/**
 * The texts of field mode, which only its page loads, in addition to those of the respondents' page.
 */

import { count, KEYS, say } from "./texts.js";
import { storeWords } from "./words.js";

/**
 * @typedef {import("./texts.js").Text} Text
 * @typedef {typeof FIELD_KEYS[number]} FieldKey
 */

/** The keys of field mode's texts, in the order of its text files. */
export const FIELD_KEYS = /** @type {const} */ ([
  "fieldwork.again",
  "fieldwork.busy",
  "fieldwork.deskButton",
  "fieldwork.deskHeading",
  "fieldwork.full",
  "fieldwork.late",
  "fieldwork.newer",
  "fieldwork.noField",
  "fieldwork.noRoom",
  "fieldwork.noStorage",
  "fieldwork.noneWaiting",
  "fieldwork.notKept",
  "fieldwork.notPrepared",
  "fieldwork.notStored",
  "fieldwork.notStoredHeading",
  "fieldwork.offline",
  "fieldwork.otherSurvey",
  "fieldwork.otherWindow",
  "fieldwork.prepare",
  "fieldwork.prepareFailed",
  "fieldwork.prepareHeading",
  "fieldwork.prepareText",
  "fieldwork.preparing",
  "fieldwork.ready",
  "fieldwork.refused",
  "fieldwork.remove",
  "fieldwork.removeHeading",
  "fieldwork.removeLost",
  "fieldwork.removeNo",
  "fieldwork.removeText",
  "fieldwork.removeYes",
  "fieldwork.removed",
  "fieldwork.save",
  "fieldwork.saveHint",
  "fieldwork.start",
  "fieldwork.startKiosk",
  "fieldwork.startOpen",
  "fieldwork.stored",
  "fieldwork.storedHeading",
  "fieldwork.storing",
  "fieldwork.storingHeading",
  "fieldwork.until",
  "fieldwork.upload",
  "fieldwork.uploaded",
  "fieldwork.uploading",
  "fieldwork.waiting",
  "fieldwork.what",
]);

/** Texts of the respondents' page that would be wrong here, and their replacements. */
const REPLACED = /** @type {Readonly<Record<string, FieldKey>>} */ ({
  "start.kiosk": "fieldwork.startKiosk",
  "start.openLink": "fieldwork.startOpen",
});

/**
 * Store the texts of each language: those of the respondents' page, then those of field mode.
 *
 * @param {readonly {language: string, texts: Text[], own: Text[]}[]} words
 */
export function storeFieldWords(words) {
  const keys = /** @type {string[]} */ (/** @type {unknown} */ (KEYS));
  // Extend the list here, so that the respondents' page does not load keys that it never uses.
  keys.push(...FIELD_KEYS);
  storeWords(
    words.map(({ language, texts, own }) => {
      const adapted = texts.map((text, i) => {
        const key = REPLACED[keys[i]];
        return key ? own[FIELD_KEYS.indexOf(key)] : text;
      });
      return [language, [...adapted, ...own]];
    }),
  );
}

/** @param {FieldKey} key @param {Record<string, string | number>} [values] */
export function sayField(key, values = {}) {
  return say(/** @type {any} */ (key), values);
}

/** @param {FieldKey} key @param {number} n */
export function countField(key, n) {
  return count(/** @type {any} */ (key), n);
}
