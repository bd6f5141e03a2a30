/**
 * The interface's texts in the language that the respondent has chosen.
 */

import { loadedLanguages, preferredLanguage, textsIn } from "./words.js";

/**
 * @typedef {string | string[]} Text  one text, or one for each plural form, in gettext's order
 * @typedef {{texts: Map<string, Text>, plurals: Intl.PluralRules, rtl: boolean, group: string,
 *   mark: string}} Language  a language; `group` and `mark` are its thousands and decimal marks
 */

/** Intl's categories for all of gettext's plural forms but the last, which has all others. */
const FORMS = /** @type {Readonly<Record<number, string[]>>} */ ({
  1: [],
  2: ["one"],
  3: ["one", "few"],
  6: ["zero", "one", "two", "few", "many"],
});

/** A letter of a right-to-left script. */
export const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** @type {Language} */
let current;

/**
 * Switch the interface to the first preferred language with loaded texts, or to the survey's own.
 *
 * @param {Document} document
 * @param {readonly string[]} preferences
 */
export function selectLanguage(document, preferences) {
  const language = preferredLanguage(loadedLanguages(), preferences);
  setTexts(language, textsIn(language));
  Object.assign(document.documentElement, { lang: language, dir: current.rtl ? "rtl" : "ltr" });
}

/**
 * Set the texts of the interface and their language.
 *
 * @param {string} language
 * @param {readonly Text[]} texts  in the order of `KEYS`
 */
export function setTexts(language, texts) {
  // The texts belong to another version of the page.
  if (texts.length !== KEYS.length) throw new RangeError();
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
 * Return a text with its values filled in, isolating values in the other writing direction.
 *
 * @param {Key} key
 * @param {Record<string, string | number>} [values]
 */
export function say(key, values = {}) {
  return pieces(key, values).join("");
}

/**
 * Return the pieces of a text with its values, which may be elements with their own language.
 *
 * @param {Key} key
 * @param {Record<string, string | number | Node>} values
 */
export function pieces(key, values) {
  const text = current.texts.get(key);
  if (typeof text !== "string") throw new RangeError();
  return fill(text, values);
}

/**
 * Return the text with a name in a group, or null if there is none.
 *
 * @param {string} group
 * @param {string} name
 */
export function sayOf(group, name) {
  const key = /** @type {Key} */ (`${group}.${name}`);
  return typeof current.texts.get(key) === "string" ? say(key) : null;
}

/** Return the separator of two sentences: in Chinese, no space follows a period or a comma. */
export const gap = () => say("language.comma").slice(1);

/**
 * Return a count with its noun in the right plural form.
 *
 * @param {Key} key
 * @param {number} n
 */
export function count(key, n) {
  const forms = current.texts.get(key);
  if (!Array.isArray(forms)) throw new RangeError();
  const form = FORMS[forms.length].indexOf(current.plurals.select(n));
  return fill(forms[form] ?? forms[forms.length - 1], { n: figure(String(n)) }).join("");
}

/**
 * Format a number with the marks of the language.
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

/**
 * @typedef {typeof KEYS[number]} Key
 */

/** The keys of all texts, in the order of the files of texts. */
export const KEYS = /** @type {const} */ ([
  "cannot.closed",
  "cannot.crypto",
  "cannot.current",
  "cannot.damaged_link",
  "cannot.full",
  "cannot.heading",
  "cannot.headingClosed",
  "cannot.invitation_needed",
  "cannot.malformed",
  "cannot.missing",
  "cannot.not_open",
  "cannot.nothing",
  "cannot.nothingSent",
  "cannot.other_definition",
  "cannot.other_version",
  "cannot.randomness",
  "cannot.too_weak",
  "cannot.unavailable",
  "cannot.unexpected",
  "count.days",
  "count.minutes",
  "count.questions",
  "count.seconds",
  "count.surveys",
  "damaged.heading",
  "damaged.text",
  "dice.heading",
  "dice.hundred",
  "dice.kept",
  "dice.lines",
  "dice.no",
  "dice.once",
  "dice.other",
  "dice.question",
  "dice.said",
  "dice.who",
  "dice.yes",
  "earlier",
  "exit.button",
  "exit.hint",
  "field.allThatApply",
  "field.date",
  "field.dateWrong",
  "field.month",
  "field.monthWrong",
  "field.number",
  "field.numberWrong",
  "field.or",
  "field.rankAct",
  "field.rankDown",
  "field.rankPlaced",
  "field.rankRemove",
  "field.rankRemoved",
  "field.rankUp",
  "field.ranked",
  "field.ranking",
  "field.rankingLeft",
  "field.rounded",
  "field.search",
  "field.thousands",
  "field.tooMany",
  "field.upTo",
  "field.wholeNumber",
  "field.year",
  "field.yearWrong",
  "footer.machine",
  "footer.version",
  "idle.button",
  "idle.heading",
  "idle.text",
  "label.about",
  "label.becomes",
  "label.becomesNearly",
  "label.bounds",
  "label.caption",
  "label.careful",
  "label.columnFrom10",
  "label.columnFrom50",
  "label.columnOdds",
  "label.columnOther",
  "label.columnOwn",
  "label.columnQuestion",
  "label.everyReport",
  "label.fewer",
  "label.frequencyOfMany",
  "label.frequencyOfRarest",
  "label.frequencyOfSampledTick",
  "label.frequencyOfTick",
  "label.frequencyOfTwo",
  "label.jointBounds",
  "label.linkedBounds",
  "label.littleMeans",
  "label.littleMeansInPart",
  "label.matrixBounds",
  "label.moderate",
  "label.noShare",
  "label.notProof",
  "label.ofAsked",
  "label.ofJoint",
  "label.ofLinked",
  "label.ofSampled",
  "label.openAddress",
  "label.openCode",
  "label.openDevice",
  "label.openHeading",
  "label.openPart",
  "label.percent",
  "label.percentNearly",
  "label.severalNamed",
  "label.shareFewer",
  "label.strong",
  "label.together",
  "label.togetherBounds",
  "label.topic",
  "label.topicTogether",
  "label.weak",
  "label.weakAnswer",
  "label.weakQuestion",
  "language.choose",
  "language.comma",
  "language.direction",
  "mark.heading",
  "mark.keepsNothing",
  "mark.kiosk",
  "mark.remove",
  "mark.removed",
  "mark.removedHeading",
  "mark.text",
  "memory.before",
  "memory.forget",
  "memory.forgotten",
  "memory.heading",
  "memory.offer",
  "memory.remember",
  "memory.stored",
  "memory.stores",
  "memory.warning",
  "question.again",
  "question.back",
  "question.errorHeading",
  "question.missing",
  "question.missingEntry",
  "question.missingEntryHere",
  "question.missingHere",
  "question.next",
  "question.nudge",
  "question.nudgeHeading",
  "question.nudgeHere",
  "question.number",
  "question.numbers",
  "question.of",
  "question.ofLabel",
  "question.page",
  "question.protection",
  "question.protections",
  "question.toReview",
  "question.wrong",
  "read.start",
  "read.stop",
  "refusal.closed",
  "refusal.conflict",
  "refusal.cross-site",
  "refusal.full",
  "refusal.invitation",
  "refusal.invitation-needed",
  "refusal.malformed-report",
  "refusal.not-found",
  "refusal.not-open",
  "refusal.other",
  "refusal.outdated",
  "refusal.report",
  "refusal.report-too-large",
  "refusal.unsupported-media",
  "refused.again",
  "refused.heading",
  "refused.kept",
  "refused.keptHere",
  "refused.warning",
  "refused.warningByChance",
  "refused.what",
  "review.change",
  "review.changeOf",
  "review.heading",
  "review.intro",
  "review.notAnswered",
  "review.once",
  "review.print",
  "review.rounded",
  "review.send",
  "sending.heading",
  "sending.text",
  "sent.about",
  "sent.bytes",
  "sent.fromAnyAnswer",
  "sent.heading",
  "sent.mayBeRandom",
  "sent.next",
  "sent.nextText",
  "sent.noneTicked",
  "sent.notAsked",
  "sent.one",
  "sent.place",
  "sent.placeOfTwo",
  "sent.rankedBefore",
  "sent.rankedFirst",
  "sent.several",
  "sent.thanks",
  "sent.ticked",
  "sent.unknown",
  "sent.unreadable",
  "sent.warning",
  "sent.what",
  "sent.whatMeans",
  "sent.whatMeansByChance",
  "sent.whatMeansWeak",
  "slider.higher",
  "slider.hint",
  "slider.lower",
  "slider.unset",
  "slider.unsetFrom",
  "start.agree",
  "start.answer",
  "start.askedBy",
  "start.bucketDay",
  "start.bucketWeek",
  "start.button",
  "start.consent",
  "start.contact",
  "start.ethics",
  "start.example",
  "start.extent",
  "start.extentRange",
  "start.extentUpTo",
  "start.forgotten",
  "start.heading",
  "start.headingWeak",
  "start.helpline",
  "start.hint",
  "start.invited",
  "start.keepsNothing",
  "start.keptHeading",
  "start.kiosk",
  "start.least",
  "start.leaveAny",
  "start.mark",
  "start.more",
  "start.noProof",
  "start.note",
  "start.open",
  "start.openAddress",
  "start.openLink",
  "start.openPart",
  "start.openScreen",
  "start.sampled",
  "start.sendOnce",
  "start.skipAny",
  "start.skips",
  "start.steps",
  "start.stepsByChance",
  "start.stratum",
  "start.sum",
  "start.truthfully",
  "test.heading",
  "test.text",
  "waiting.busy",
  "waiting.heading",
  "waiting.keepOpen",
  "waiting.keepOpenKiosk",
  "waiting.many",
  "waiting.network",
  "waiting.next",
  "waiting.now",
  "waiting.safe",
  "waiting.same",
  "waiting.trying",
]);
