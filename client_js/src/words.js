/**
 * Every word the interface says: texts come with the page, in each language that its survey speaks.
 */

/** The places of all texts, in the order in which a page lists them. */
const KEYS = /** @type {const} */ ([
  "cannot.closed",
  "cannot.crypto",
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
  "cannot.randomness",
  "cannot.too_weak",
  "cannot.unavailable",
  "cannot.unexpected",
  "check.all",
  "check.heading",
  "check.kept",
  "check.nothing",
  "check.question",
  "check.right",
  "check.wrong",
  "count.days",
  "count.minutes",
  "count.pages",
  "count.questions",
  "count.seconds",
  "damaged.heading",
  "damaged.text",
  "earlier",
  "exit.button",
  "exit.hint",
  "field.allThatApply",
  "field.date",
  "field.dateWrong",
  "field.number",
  "field.numberWrong",
  "field.or",
  "field.rounded",
  "field.thousands",
  "field.tooMany",
  "field.upTo",
  "field.wholeNumber",
  "footer.code",
  "footer.definition",
  "idle.button",
  "idle.heading",
  "idle.text",
  "label.about",
  "label.becomes",
  "label.becomesNearly",
  "label.bounds",
  "label.caption",
  "label.code",
  "label.columnFrom10",
  "label.columnFrom50",
  "label.columnOdds",
  "label.columnOther",
  "label.columnOwn",
  "label.columnQuestion",
  "label.definition",
  "label.everyReport",
  "label.fewer",
  "label.frequencyOfMany",
  "label.frequencyOfRarest",
  "label.frequencyOfSampledTick",
  "label.frequencyOfTick",
  "label.frequencyOfTwo",
  "label.linkedBounds",
  "label.little",
  "label.littleMeans",
  "label.noShare",
  "label.ofAsked",
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
  "label.together",
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
  "question.page",
  "question.protection",
  "question.toReview",
  "question.wrong",
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
  "refused.detail",
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
  "review.rounded",
  "review.send",
  "sending.heading",
  "sending.text",
  "sent.askedAbout",
  "sent.bytes",
  "sent.fromAnyAnswer",
  "sent.heading",
  "sent.mayBeRandom",
  "sent.next",
  "sent.nextText",
  "sent.noneNamed",
  "sent.notAsked",
  "sent.place",
  "sent.placeOfTwo",
  "sent.reported",
  "sent.thanks",
  "sent.unknown",
  "sent.unreadable",
  "sent.warning",
  "sent.what",
  "sent.whatMeans",
  "sent.whatMeansByChance",
  "start.agree",
  "start.bucketDay",
  "start.bucketWeek",
  "start.button",
  "start.consent",
  "start.contact",
  "start.drawing",
  "start.drawingByChance",
  "start.drawingDevice",
  "start.drawingReport",
  "start.drawingSent",
  "start.drawingStep",
  "start.drawingTruth",
  "start.ethics",
  "start.example",
  "start.extent",
  "start.extentUpTo",
  "start.forgotten",
  "start.heading",
  "start.helpline",
  "start.inNumbers",
  "start.invited",
  "start.keepsNothing",
  "start.kiosk",
  "start.least",
  "start.openLink",
  "start.range",
  "start.sampled",
  "start.sendOnce",
  "start.skips",
  "start.steps",
  "start.stepsByChance",
  "start.stratum",
  "start.upTo",
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

/**
 * @typedef {typeof KEYS[number]} Key
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
export function preferred(languages, wanted) {
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
  const language = preferred(pageLanguages(document), [wanted]);
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
