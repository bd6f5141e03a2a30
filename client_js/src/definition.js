/**
 * The survey as this device accepts it: at its one address, known by its hash, never below the ceilings.
 */

import { columnMaxima, ratio, tableReports, tableRow, tableTruths } from "./mechanism.js";
import { drawBytes, NoRandomnessError } from "./random.js";
import { checkRoom, isEntered, totalRatio } from "./report.js";
import { fetchDefinition, UnavailableError } from "./transport.js";

/**
 * @typedef {import("./mechanism.js").Channel} Channel
 * @typedef {import("./mechanism.js").Ratio} Ratio
 * @typedef {import("./mechanism.js").Table} Table
 * @typedef {{id: string, label: string}} Option
 * @typedef {{low: number, step: number, points: number, decimals: number, unit: string}} Grid
 *   value i is (low + i step) / 10^decimals; for dates, days since 1970-01-01
 * @typedef {{question: string, options: string[]}} Condition
 * @typedef {{id: string, type: string, text: string, help: string, options: Option[],
 *   grid: Grid | null, max_ticks: number, alone: number, opt_out: string, not_applicable: string,
 *   ask_if: Condition | null, mechanism: string, channel: Channel, shuffled?: true}} Question
 *   `shuffled`: the device shows its options in an order of its own
 * @typedef {{title: string, questions: Question[]}} Page
 * @typedef {{draw: number, groups: string[][]}} Sampling
 * @typedef {{text: string, help: string, unit: string, options: string[]}} TranslatedQuestion
 * @typedef {{title: string, questions: TranslatedQuestion[]}} TranslatedPage
 * @typedef {Record<typeof TEXTS[number], string> & {pages: TranslatedPage[]}} Translation  the
 *   texts of a definition in another language, "" for each that is not translated
 * @typedef {Record<typeof TEXTS[number], string> & {id: string, format: number, slug: string,
 *   version: number, language: string, report_bytes: number, allow_skip_logic: boolean,
 *   sampling: Sampling | null, pages: Page[], bucket?: "day" | "week", access: "open" | "invitation",
 *   kiosk: boolean, theme: string, exit: string, translations: Record<string, Translation>,
 *   untranslated: ReadonlyMap<string, string>}} Definition  `id` is the SHA-256 of its bytes, in
 *   hex; `bucket` is what is kept of the date on which a report is released, nothing when it is
 *   missing; `untranslated`: texts that are in another language than the rest, and in which
 * @typedef {{prefix: string, invitation: string, stratum: string, isTaken: boolean}} Link  what a
 *   link carries behind its "#", each part empty when it does not; `isTaken`: the page has taken
 *   the invitation out before
 * @typedef {"malformed" | "other_definition" | "too_weak" | "damaged_link" | "invitation_needed"
 *   } Reason
 * @typedef {"randomness" | "crypto" | "missing" | "closed" | "not_open" | "full" | "unavailable"
 *   | "unexpected" | Reason} Obstacle
 */

/** The texts of a whole survey. */
const TEXTS = /** @type {const} */ ([
  ...["title", "introduction", "consent", "ethics", "helpline", "contact", "thanks"],
]);

/** What a definition that says nothing of it means. */
const UNSAID = {
  ...{ consent: "", ethics: "", helpline: "", exit: "", theme: "" },
  ...{ access: "open", kiosk: false, translations: {} },
};

/**
 * Ceilings no definition can lift: p <= .99; e^epsilon <= e^12 per question, e^20 together.
 *
 * e^12 and e^20 have 60 digits, rounded down: no fraction of weights that fit a word lies between.
 */
const CEILINGS = {
  percent: 99n,
  ratio: {
    most: 162754_791419003920808005204898486783170209284478720770443556n,
    least: 10n ** 54n,
  },
  totalRatio: {
    most: 485165195_409790277969106830541540558684638988944847254353610n,
    least: 10n ** 51n,
  },
};
const WORD_VALUES = 2n ** 32n;
const MAX_OPTIONS = 10_000;
const MAX_BITS = 1000;
const MAX_ALONE = 3;
const MAX_PATTERNS = 1024n;
const MAX_GRID = 1000;
const MAX_REPORTS = 4096;
const MAX_EXPLICIT = 64;
const MAX_NO_ANSWERS = 2;
/** Days since 1970 from the year 1 to the year 9999, which is as far as date fields go. */
const DAYS = { first: -719_162, last: 2_932_896 };

const CHOICES = ["yes_no", "single_choice", "scale", "multiple_choice"];
const TYPES = [...CHOICES, "number", "date"];

/** A key that is not known here may change what is kept or asked: nobody could be told of it. */
const KEYS = {
  definition: [
    ...["access", "allow_skip_logic", "bucket", "exit", "format", "kiosk", "language", "pages"],
    ...["report_bytes", "sampling", "slug", "theme", "translations", "version", ...TEXTS],
  ],
  page: ["questions", "title"],
  question: [
    ...["alone", "ask_if", "channel", "grid", "help", "id", "max_ticks", "mechanism"],
    ...["not_applicable", "opt_out", "options", "shuffled", "stated", "text", "type"],
  ],
};
const THEMES = ["", "blue", "plum", "slate"];
/** 32 bytes in base64url: the last character carries two zero bits. */
const TOKEN = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;
const MOST_STRATUM = 60;
const LANGUAGE = /^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$/;
/** As much of a definition's hash as every link carries, or more. */
const PREFIX = /^([0-9a-f]{16,64})?$/;

/** Of all ways to write an address that reach one survey, the only one that is taken. */
const ADDRESS = /^\/s\/([a-z0-9]+(?:-[a-z0-9]+)*)\/?$/;

/** A definition this device will not ask; `reason` says of which kind the refusal is. */
export class DefinitionError extends Error {
  /** @param {Reason} reason @param {string} message */
  constructor(reason, message) {
    super(message);
    this.name = "DefinitionError";
    this.reason = reason;
  }
}

/** WebCrypto is missing: an old browser, or an address without https. */
export class CryptoMissingError extends Error {
  constructor() {
    super("this browser does not offer WebCrypto here");
    this.name = "CryptoMissingError";
  }
}

/**
 * The slug an address names, "" when it is not written in the one way that counts.
 *
 * What is kept on the device is found by the slug. A second spelling, /s/work%70lace, would reach
 * the same survey past the mark of the first report: two reports would average the randomness away.
 *
 * @param {string} pathname  as the address bar has it, not decoded
 */
export function slugOf(pathname) {
  return ADDRESS.exec(pathname)?.[1] ?? "";
}

/**
 * What a link carries; a stratum only ever comes with the invitation that is good for it.
 *
 * @param {string} hash  from the "#" on
 * @returns {Link}
 */
export function readLink(hash) {
  const parts = new URLSearchParams(hash.slice(1));
  const [prefix, invitation, stratum] = ["d", "i", "s"].map((name) => parts.get(name) ?? "");
  return { prefix, invitation, stratum, isTaken: parts.get("i") === "" && stratum === "" };
}

/** @param {Link} link */
function checkLink({ prefix, invitation, stratum, isTaken }) {
  if (isTaken)
    throw new DefinitionError("invitation_needed", "the link's invitation was taken out");
  const isInvited = TOKEN.test(invitation) && prefix !== "";
  const isWhole = PREFIX.test(prefix) && (invitation ? isInvited : stratum === "");
  if (isWhole && stratum.length <= MOST_STRATUM && !stratum.includes("\0")) return;
  throw new DefinitionError("damaged_link", "the link's invitation is not whole");
}

/**
 * The definition, once it is certain that this device could keep its promise.
 *
 * @param {Window & typeof globalThis} window
 * @param {string} slug  from the address
 * @param {Link} link
 * @param {import("./random.js").GetRandomValues} getRandomValues
 */
export async function loadDefinition({ crypto, fetch }, slug, link, getRandomValues) {
  drawBytes(getRandomValues, 1);
  if (!crypto.subtle) throw new CryptoMissingError();
  checkLink(link);
  const bytes = await fetchDefinition(fetch, `/s/${slug}/definition.json`);
  const definition = await readDefinition(bytes, {
    digest: (content) => crypto.subtle.digest("SHA-256", content),
    expectedPrefix: link.prefix,
  });
  // Served under a second name, one survey could get two reports from this device.
  demand(definition.slug === slug, `it is the survey ${definition.slug}, not ${slug}`);
  if (definition.access === "invitation" && link.invitation === "") {
    throw new DefinitionError("invitation_needed", "the survey is for people who were invited");
  }
  checkRoom(definition, { ...link, drawn: null });
  return definition;
}

/**
 * The definition with its texts in another of its languages, as far as they are translated.
 *
 * @param {Readonly<Definition>} definition  in its own language
 * @param {string} language
 * @returns {Readonly<Definition>}
 */
export function inLanguage(definition, language) {
  const translation = definition.translations[language];
  if (!translation) return definition;
  /** @type {Map<string, string>} */
  const untranslated = new Map();
  const chosen = (/** @type {string} */ text, /** @type {string} */ translated) => {
    if (translated === "") untranslated.set(text, definition.language);
    return translated || text;
  };
  const texts = TEXTS.map((name) => [name, chosen(definition[name], translation[name])]);
  const pages = definition.pages.map((page, i) => ({
    title: chosen(page.title, translation.pages[i].title),
    questions: page.questions.map((question, j) =>
      translatedQuestion(question, translation.pages[i].questions[j], chosen),
    ),
  }));
  return { ...definition, ...Object.fromEntries(texts), pages, language, untranslated };
}

/**
 * @param {Question} question
 * @param {TranslatedQuestion} translated
 * @param {(text: string, translated: string) => string} chosen
 * @returns {Question}
 */
function translatedQuestion(question, translated, chosen) {
  const { text, help, options, grid } = question;
  return {
    ...question,
    text: chosen(text, translated.text),
    help: chosen(help, translated.help),
    options: options.map(({ id, label }, i) => ({
      id,
      label: chosen(label, translated.options[i]),
    })),
    grid: grid && { ...grid, unit: chosen(grid.unit, translated.unit) },
  };
}

/**
 * @param {unknown} error
 * @returns {Obstacle}
 */
export function reasonFor(error) {
  if (error instanceof NoRandomnessError) return "randomness";
  if (error instanceof CryptoMissingError) return "crypto";
  if (error instanceof DefinitionError) return error.reason;
  if (!(error instanceof UnavailableError)) return "unexpected";
  const { status, name } = error.refusal;
  if (name === "not-open") return "not_open";
  if (status === 404) return "missing";
  if (status !== 410) return "unavailable";
  return name === "full" ? "full" : "closed";
}

/**
 * Hash, parse and check the bytes of a definition.
 *
 * @param {Uint8Array<ArrayBuffer>} bytes  exactly as served
 * @param {object} against
 * @param {(bytes: Uint8Array<ArrayBuffer>) => Promise<ArrayBuffer>} against.digest  SHA-256
 * @param {string} [against.expectedPrefix]  start of the hash, from the link; "" when it has none
 * @returns {Promise<Readonly<Definition>>}
 */
export async function readDefinition(bytes, { digest, expectedPrefix = "" }) {
  const id = hex(new Uint8Array(await digest(bytes)));
  checkPrefix(id, expectedPrefix);
  const written = parse(bytes);
  demand(written?.format === 1, "the definition is not of format 1");
  demandKnown(written, "definition");
  const definition = { ...UNSAID, ...written, id, untranslated: new Map() };
  checkStructure(definition);
  checkCeilings(definition);
  return freeze(definition);
}

/** @param {Uint8Array} octets */
function hex(octets) {
  return Array.from(octets, (octet) => octet.toString(16).padStart(2, "0")).join("");
}

/** @param {string} id @param {string} prefix */
function checkPrefix(id, prefix) {
  if (prefix === "") return;
  // A prefix too short to bind anything is a link that was tampered with.
  if (!/^[0-9a-f]{16,64}$/i.test(prefix) || !id.startsWith(prefix.toLowerCase())) {
    throw new DefinitionError("other_definition", `definition ${id} is not the link's ${prefix}`);
  }
}

/** @param {Uint8Array} bytes @returns {Definition} */
function parse(bytes) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes), shareChannels());
  } catch {
    throw new DefinitionError("malformed", "the definition is not JSON in UTF-8");
  }
}

/**
 * Equal channels become one object: what was found of one is known of all, however many there are.
 *
 * @returns {(key: string, value: unknown) => unknown}
 */
function shareChannels() {
  /** @type {Map<string, unknown>} */
  const shared = new Map();
  return (key, value) => {
    if (key !== "channel") return value;
    const text = JSON.stringify(value);
    if (!shared.has(text)) shared.set(text, value);
    return shared.get(text);
  };
}

/** @param {unknown} holds @param {string} message @returns {asserts holds} */
function demand(holds, message) {
  if (!holds) throw new DefinitionError("malformed", message);
}

/** @param {Record<string, any>} value @param {string[]} names @param {string} place */
function demandTexts(value, names, place) {
  for (const name of names) demand(typeof value[name] === "string", `${place}.${name} is no text`);
}

/** @param {object} value @param {keyof typeof KEYS} kind */
function demandKnown(value, kind) {
  const unknown = Object.keys(value).find((key) => !KEYS[kind].includes(key));
  demand(unknown === undefined, `a ${kind} with an unknown key, ${unknown}`);
}

/** @param {any} value @param {number} [least] @param {number} [most] */
function isInteger(value, least = 0, most = Number.MAX_SAFE_INTEGER) {
  return Number.isSafeInteger(value) && value >= least && value <= most;
}

/** @param {any} definition */
function checkStructure(definition) {
  demandTexts(definition, ["slug", "language", ...TEXTS], "it");
  const { report_bytes: room, allow_skip_logic: skips, sampling, pages, bucket } = definition;
  demand(isInteger(room, 1, 8192), `report_bytes is ${room}`);
  demand(typeof skips === "boolean", "allow_skip_logic is neither true nor false");
  demand([undefined, "day", "week"].includes(bucket), `bucket is ${bucket}`);
  demand(Array.isArray(pages) && pages.length > 0, "it has no pages");
  pages.forEach(checkPage);
  const asked = pages.flatMap((/** @type {Page} */ page) => page.questions);
  demandDistinct(asked, "questions");
  pages.forEach((_, at) => {
    checkConditions(definition, at);
  });
  if (sampling !== null) checkSampling(sampling, asked);
  checkManner(definition);
  for (const [language, translation] of Object.entries(definition.translations)) {
    demand(LANGUAGE.test(language), `${language} is no language`);
    checkTranslation(translation, definition);
  }
}

/** How the survey is shown and entered. @param {any} definition */
function checkManner({ access, kiosk, theme, exit, translations }) {
  demand(["open", "invitation"].includes(access), `access is ${access}`);
  demand(typeof kiosk === "boolean", "kiosk is neither true nor false");
  demand(THEMES.includes(theme), `theme is ${theme}`);
  const isAddress = exit === "" || (typeof exit === "string" && exit.startsWith("https://"));
  demand(isAddress, "exit is no https address");
  const isTable = typeof translations === "object" && !Array.isArray(translations);
  demand(translations !== null && isTable, "its translations are no table");
}

/**
 * A translation has the shape of what it translates, or it would name one option by another's label.
 *
 * @param {any} translation
 * @param {Definition} definition
 */
function checkTranslation(translation, definition) {
  demandTexts(translation ?? {}, [...TEXTS], "a translation");
  demandAsMany(translation.pages, definition.pages, (page, { questions: asked }) => {
    demandTexts(page ?? {}, ["title"], "a translated page");
    demandAsMany(page.questions, asked, (question, { options }) => {
      demandTexts(question ?? {}, ["text", "help", "unit"], "a translated question");
      demandAsMany(question.options, options, (label) => {
        demand(typeof label === "string", "a translated label is no text");
      });
    });
  });
}

/**
 * @template T
 * @param {any} list
 * @param {readonly T[]} like
 * @param {(value: any, like: T) => void} check
 */
function demandAsMany(list, like, check) {
  demand(Array.isArray(list) && list.length === like.length, "a translation has another shape");
  list.forEach((/** @type {any} */ value, /** @type {number} */ i) => {
    check(value, like[i]);
  });
}

/** @param {any} page @param {number} at */
function checkPage(page, at) {
  demand(Array.isArray(page?.questions) && page.questions.length > 0, `page ${at + 1} is empty`);
  demandKnown(page, "page");
  demandTexts(page, ["title"], `page ${at + 1}`);
  page.questions.forEach(checkQuestion);
}

/** @param {any} question */
function checkQuestion(question) {
  const texts = ["id", "type", "text", "help", "opt_out", "not_applicable", "mechanism"];
  demandTexts(question ?? {}, texts, "question");
  demandKnown(question, "question");
  const { id, type } = question;
  demand(TYPES.includes(type), `${id}: unknown type ${type}`);
  demand([undefined, true].includes(question.shuffled), `${id}: shuffled is ${question.shuffled}`);
  checkOptions(question);
  // The points of a scale may stand for numbers; other options never do.
  const isPlain = CHOICES.includes(type) && (type !== "scale" || question.grid === null);
  if (isPlain) demand(question.grid === null, `${id}: these options have no grid`);
  else checkGrid(question);
  checkTicks(question);
  checkChannel(question.channel, id);
  checkSize(question);
}

/** @param {any} question */
function checkOptions({ id, type, options, opt_out: optOut, not_applicable: notApplicable }) {
  const least = CHOICES.includes(type) ? 2 : 0;
  const most = least === 0 ? MAX_NO_ANSWERS : MAX_OPTIONS;
  demand(Array.isArray(options), `${id}: no options`);
  demand(isInteger(options.length, least, most), `${id}: ${options.length} options`);
  for (const option of options) demandTexts(option ?? {}, ["id", "label"], `${id}.options`);
  demandDistinct(options, `${id}: options`);
  const known = ["", ...options.map((/** @type {Option} */ option) => option.id)];
  demand(known.includes(optOut), `${id}: its opt_out is no option`);
  demand(known.includes(notApplicable), `${id}: its not_applicable is no option`);
}

/** @param {any} question */
function checkGrid({ id, type, options, grid }) {
  const { low, step, points, decimals, unit } = grid ?? {};
  const furthest = Number.MAX_SAFE_INTEGER;
  demand(isInteger(low, -furthest) && isInteger(step, 1), `${id}: low or step is no integer`);
  demand(isInteger(points, 2, MAX_GRID), `${id}: ${points} grid points`);
  const fits = type !== "scale" || points <= options.length;
  demand(fits, `${id}: ${points} grid points for ${options.length} options`);
  demand(isInteger(low + step * (points - 1), -furthest), `${id}: the grid goes too far`);
  demand(isInteger(decimals, 0, type === "date" ? 0 : 15), `${id}: ${decimals} decimals`);
  demand(typeof unit === "string", `${id}: its unit is no text`);
  const isReal = low >= DAYS.first && low + step * (points - 1) <= DAYS.last;
  demand(type !== "date" || isReal, `${id}: its dates are beyond the calendar`);
}

/** @param {any} question */
function checkTicks({ id, type, options, max_ticks: ticks, alone, ...question }) {
  const several = type === "multiple_choice";
  const most = several ? Math.min(MAX_ALONE, options.length - 1) : 0;
  demand(isInteger(alone, several ? 1 : 0, most), `${id}: ${alone} options stand alone`);
  const together = options.slice(0, options.length - alone);
  const mostTicks = several ? together.length : 0;
  demand(isInteger(ticks, several ? 1 : 0, mostTicks), `${id}: at most ${ticks} ticks`);
  const beside = together.some((/** @type {Option} */ option) =>
    [question.opt_out, question.not_applicable].includes(option.id),
  );
  demand(!several || !beside, `${id}: an option that is no answer does not stand alone`);
}

/** @param {{id: string}[]} parts @param {string} place */
function demandDistinct(parts, place) {
  const ids = parts.map((part) => part.id);
  demand(!ids.includes("") && new Set(ids).size === ids.length, `${place} share or lack an id`);
}

/**
 * What a question depends on was asked on an earlier page.
 *
 * @param {any} definition
 * @param {number} at
 */
function checkConditions({ pages, allow_skip_logic: skips }, at) {
  const earlier = pages.slice(0, at).flatMap((/** @type {Page} */ page) => page.questions);
  for (const question of pages[at].questions) {
    if (question.ask_if === null) continue;
    demand(skips, `${question.id}: it depends on another, and the survey allows no skip logic`);
    checkCondition(question, earlier);
  }
}

/** @param {any} question @param {Question[]} earlier */
function checkCondition({ id, ask_if: condition, not_applicable: notApplicable }, earlier) {
  demand(notApplicable !== "", `${id}: it has no option for when it is not asked`);
  const on = earlier.find((one) => one.id === condition?.question);
  demand(on && CHOICES.includes(on.type), `${id}: what it depends on is no choice before it`);
  const known = on.options.map((option) => option.id);
  const { options } = condition;
  demand(Array.isArray(options) && options.length > 0, `${id}: it depends on no options`);
  const areKnown = options.every((option) => known.includes(option));
  demand(areKnown, `${id}: it depends on unknown options`);
}

/** @param {any} sampling @param {Question[]} asked */
function checkSampling(sampling, asked) {
  const { draw, groups } = sampling ?? {};
  const isList = (/** @type {any} */ list) => Array.isArray(list) && list.length > 0;
  demand(isList(groups) && groups.every(isList), "sampling has no groups of questions");
  demand(isInteger(draw, 1, groups.length - 1), `sampling draws ${draw} of ${groups.length}`);
  const grouped = [...groups.flat()].sort();
  const ids = asked.map(({ id }) => id).sort();
  const isPartition = grouped.length === ids.length && ids.every((id, i) => id === grouped[i]);
  demand(isPartition, "a question is in no group of the sampling, or in two");
  for (const { id, ask_if: condition } of asked) {
    const group = groups.find((/** @type {string[]} */ one) => one.includes(id));
    const together = condition === null || group.includes(condition.question);
    demand(together, `${id}: it is drawn without the question it depends on`);
  }
}

/** Channels that were looked at already. @type {WeakSet<Channel>} */
const sound = new WeakSet();

/**
 * A channel is one of the three kinds and made of integers that fit in a draw.
 *
 * @param {any} channel
 * @param {string} id
 */
function checkChannel(channel, id) {
  if (sound.has(channel)) return;
  const check = { subset_selection: checkSet, bit_vector: checkBits, weight_table: checkTable };
  const kind = /** @type {keyof typeof check} */ (String(channel?.kind));
  demand(Object.keys(check).includes(kind), `${id}: unknown kind of channel`);
  check[kind](channel, id);
  sound.add(channel);
}

/** @param {any} channel @param {string} id */
function checkSet({ k, d, T, L }, id) {
  demand(isInteger(k, 2, MAX_OPTIONS), `${id}: k = ${k}`);
  demand(isInteger(d, 1, k - 1), `${id}: d = ${d} is not from 1 to k - 1`);
  checkWeights(T, L, id);
  demandDrawable(BigInt(d) * BigInt(T) + BigInt(k - d) * BigInt(L), id);
}

/** @param {any} channel @param {string} id */
function checkBits({ m, s, alone, sampled, T, L }, id) {
  demand(isInteger(m, 1, MAX_BITS), `${id}: m = ${m} bits`);
  demand(isInteger(alone, 0, Math.min(MAX_ALONE, m - 1)), `${id}: ${alone} bits stand alone`);
  demand(isInteger(s, 1, m - alone), `${id}: s = ${s} ticks`);
  demand(isInteger(sampled, 1, m), `${id}: ${sampled} of ${m} bits are reported`);
  checkWeights(T, L, id);
  demandDrawable(BigInt(T) + BigInt(L), id);
}

/** @param {any} channel @param {string} id */
function checkTable(channel, id) {
  const { table, no_answers: silent } = channel;
  demand(isInteger(silent, 0, MAX_NO_ANSWERS), `${id}: ${silent} rows of no answer`);
  demandDrawable(shapeTotal(table, id), id);
  const { most, least } = ratio(channel);
  demand(most > least, `${id}: all rows of its table are alike`);
  const truths = tableTruths(table) + silent;
  const sum = listTotal(tableRow(channel, 0));
  demandDrawable(sum, id);
  const maxima = columnMaxima(channel);
  // One pass over what may be four million weights.
  for (let truth = 0; truth < truths; truth += 1) {
    checkRow(tableRow(channel, truth), maxima, sum, id);
  }
}

/**
 * Many reports that say the same are worth one: p is the chance of all reports that are likeliest
 * under this truth, the chance that the best guess is right.
 *
 * @param {number[]} row
 * @param {number[]} maxima  of all columns
 * @param {bigint} sum
 * @param {string} id
 */
function checkRow(row, maxima, sum, id) {
  let [least, total, likeliest] = [row[0], 0, 0];
  for (let report = 0; report < row.length; report += 1) {
    const weight = row[report];
    total += weight;
    if (weight < least) least = weight;
    if (weight === maxima[report]) likeliest += weight;
  }
  demand(least >= 1, `${id}: a weight of its table is below 1`);
  demand(BigInt(total) === sum, `${id}: the rows of its table have different sums`);
  refuseAbove(100n * BigInt(likeliest), CEILINGS.percent * sum, `${id}: p is above .99`);
}

/**
 * The sum of a shape's rows, once its integers are known to be integers: nothing is built before.
 *
 * @param {any} table
 * @param {string} id
 * @returns {bigint}
 */
function shapeTotal(table, id) {
  switch (table?.name) {
    case "window":
      return windowTotal(table, id);
    case "one_bit":
      demand(isInteger(table.R, 1, MAX_GRID - 1), `${id}: R = ${table.R}`);
      checkWeights(table.T, table.L, id);
      return BigInt(table.R) * BigInt(table.T + table.L);
    case "by_distance":
      checkList(table.weights, MAX_GRID, id);
      return 2n * listTotal(table.weights) - BigInt(table.weights[0]);
    case "explicit":
      return explicitTotal(table.table, id);
    case "mixture":
      return mixtureTotal(table, id);
    default:
      throw new DefinitionError("malformed", `${id}: unknown table`);
  }
}

/** @param {any} table @param {string} id */
function windowTotal({ k, width, stride, T, L }, id) {
  demand(isInteger(k, 2, MAX_GRID), `${id}: a window over ${k} grid points`);
  demand(isInteger(width, 1) && isInteger(stride, 1), `${id}: a window without width or stride`);
  const reports = (k - 1) * stride + width;
  demand(reports <= MAX_REPORTS, `${id}: a window with ${reports} reports`);
  checkWeights(T, L, id);
  return BigInt(width) * BigInt(T) + BigInt(reports - width) * BigInt(L);
}

/** @param {any} rows @param {string} id */
function explicitTotal(rows, id) {
  const isTable = Array.isArray(rows) && isInteger(rows.length, 2, MAX_EXPLICIT);
  demand(isTable, `${id}: a table has 2 to ${MAX_EXPLICIT} rows`);
  for (const row of rows) {
    checkList(row, MAX_EXPLICIT, id);
    demand(row.length === rows[0].length, `${id}: the rows of its table differ in length`);
    demandDrawable(listTotal(row), id);
  }
  return listTotal(rows[0]);
}

/** @param {any} table @param {string} id */
function mixtureTotal({ a, first, b, second }, id) {
  demand(isInteger(a, 1) && isInteger(b, 1), `${id}: a mixture without weights`);
  for (const part of [first, second]) {
    demand(["window", "one_bit"].includes(part?.name), `${id}: a mixture of other tables`);
  }
  const total = BigInt(a) * shapeTotal(first, id) + BigInt(b) * shapeTotal(second, id);
  demand(tableTruths(first) === tableTruths(second), `${id}: the parts of a mixture differ`);
  const reports = tableReports(first) + tableReports(second);
  demand(reports <= MAX_REPORTS, `${id}: a mixture with ${reports} reports`);
  return total;
}

/** @param {any} list @param {number} most @param {string} id */
function checkList(list, most, id) {
  const isList = Array.isArray(list) && isInteger(list.length, 2, most);
  demand(isList, `${id}: its table has no 2 to ${most} weights`);
  demand(
    list.every((weight) => isInteger(weight, 1)),
    `${id}: a weight of its table is no integer from 1`,
  );
}

/** @param {number[]} list */
function listTotal(list) {
  return list.reduce((sum, weight) => sum + BigInt(weight), 0n);
}

/** @param {any} T @param {any} L @param {string} id */
function checkWeights(T, L, id) {
  demand([T, L].every(Number.isSafeInteger), `${id}: a channel is made of integers`);
  demand(T > L && L >= 1, `${id}: T = ${T}, L = ${L} is not T > L >= 1`);
}

/** @param {bigint} total @param {string} id */
function demandDrawable(total, id) {
  demand(total <= WORD_VALUES, `${id}: the weights add up to more than 2^32`);
}

/** @param {Question} question */
function checkSize(question) {
  const { id, type } = question;
  demand(fits(question), `${id}: its channel does not fit the type ${type} and its options`);
}

/** Whether the channel has a truth for every answer, and no other. @param {Question} question */
function fits({ type, options, grid, alone, max_ticks: s, channel }) {
  const several = type === "multiple_choice";
  if (channel.kind === "bit_vector") {
    return several && channel.m === options.length && channel.alone === alone && channel.s === s;
  }
  if (channel.kind === "weight_table") {
    const [truths, silent] = [tableTruths(channel.table), channel.no_answers];
    if (isEntered(type)) return truths === grid?.points && silent === options.length;
    return !several && truths + silent === options.length;
  }
  if (!several) return !isEntered(type) && channel.k === options.length;
  const count = patternCount(options.length - alone, s) + BigInt(alone);
  return channel.d === 1 && count <= MAX_PATTERNS && BigInt(channel.k) === count;
}

/**
 * How many sets of 1 to s of n options there are, counted no further than needed.
 *
 * @param {number} n
 * @param {number} s
 */
function patternCount(n, s) {
  let [ofSize, count] = [1n, 0n];
  for (let size = 1; size <= s && count <= MAX_PATTERNS; size += 1) {
    ofSize = (ofSize * BigInt(n - size + 1)) / BigInt(size);
    count += ofSize;
  }
  return count;
}

/** @param {Definition} definition */
function checkCeilings(definition) {
  for (const { id, channel } of definition.pages.flatMap((page) => page.questions)) {
    refuseCertain(channel, id);
    refuseRatio(ratio(channel), CEILINGS.ratio, `${id}: epsilon is above 12`);
  }
  const together = "all questions together: epsilon is above 20";
  refuseRatio(totalRatio(definition), CEILINGS.totalRatio, together);
}

/** @param {Ratio} ratio @param {Ratio} ceiling @param {string} message */
function refuseRatio({ most, least }, ceiling, message) {
  refuseAbove(most * ceiling.least, ceiling.most * least, message);
}

/**
 * No option and no bit is reported as it is more often than 99 times in 100; of tables, each row was
 * looked at above.
 *
 * @param {Channel} channel
 * @param {string} id
 */
function refuseCertain(channel, id) {
  if (channel.kind === "weight_table") return;
  const [T, L] = [BigInt(channel.T), BigInt(channel.L)];
  const isBits = channel.kind === "bit_vector";
  const [k, d] = isBits ? [2n, 1n] : [BigInt(channel.k), BigInt(channel.d)];
  const total = d * T + (k - d) * L;
  refuseAbove(100n * d * T, CEILINGS.percent * total, `${id}: p is above .99`);
}

/** @param {bigint} value @param {bigint} ceiling @param {string} message */
function refuseAbove(value, ceiling, message) {
  if (value > ceiling) throw new DefinitionError("too_weak", message);
}

/**
 * @template T
 * @param {T} value
 * @returns {Readonly<T>}
 */
function freeze(value) {
  if (typeof value === "object" && value !== null)
    for (const one of Object.values(value)) freeze(one);
  return Object.freeze(value);
}
