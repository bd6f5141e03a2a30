/**
 * A survey's definition: parsed, identified by its hash, and checked against fixed limits.
 */

import { ensureAtMost } from "./definition-channels.js";
import { DefinitionError, ensure } from "./definition-error.js";
import { checkStructure, ensureKnownKeys } from "./definition-structure.js";
import { ratio, totalRatio } from "./privacy-loss.js";
import { checkRoom } from "./report.js";

/**
 * @typedef {import("./mechanism.js").Channel} Channel
 * @typedef {import("./link.js").Link} Link
 * @typedef {import("./mechanism.js").Ratio} Ratio
 * @typedef {{sha256: string, type: string, alt: string}} Picture  `alt` describes it
 * @typedef {{id: string, label: string, picture?: Picture}} Option
 * @typedef {{low: number, step: number, points: number, decimals: number, unit: string}} Grid
 *   value i is (low + i step) / 10^decimals; in dates, days since 1970-01-01
 * @typedef {{low: string, high: string}} SliderLabels  labels of the ends of a slider, or ""
 * @typedef {{question: string, options: string[]}} Condition
 * @typedef {import("./mechanism.js").SubsetSelection | import("./mechanism.js").HalfSpace} JointChannel
 * @typedef {{questions: string[], channel: JointChannel}} Joint
 * @typedef {{id: string, type: string, text: string, help: string, options: Option[],
 *   grid: Grid | null, max_ticks: number, alone: number, opt_out: string, not_applicable: string,
 *   ask_if: Condition | null, mechanism: string, channel: Channel, shuffled?: true,
 *   topic?: string, joint?: Joint, matrix?: MatrixRow, slider?: SliderLabels, piped?: PipedTexts}} Question
 *   `joint`: the questions with which it is randomized as one; `channel` is then its part;
 *   `shuffled`: each device shows the options in a random order; `topic`: what the question reveals
 *   something about, together with the others of this topic; `matrix`: the matrix of which it is a
 *   row; `slider`: the labels if it has a slider; `piped`: its texts with placeholders for earlier answers
 * @typedef {{text?: string | undefined, help?: string | undefined}} PipedTexts
 * @typedef {{id: string, text: string, row: string}} MatrixRow  the matrix's id, the text that its
 *   rows share, and the row's own; the question's text joins both
 * @typedef {{title: string, questions: Question[]}} Page
 * @typedef {{draw: number, groups: string[][]}} Sampling
 * @typedef {{text: string, help: string, unit: string, topic?: string, matrix?: MatrixTexts, piped?: PipedTexts,
 *   options: string[], slider?: SliderLabels, pictures?: string[]}} TranslatedQuestion  `pictures`:
 *   the description of each option's picture
 * @typedef {{text: string, row: string}} MatrixTexts
 * @typedef {{title: string, questions: TranslatedQuestion[]}} TranslatedPage
 * @typedef {Record<typeof import("./definition-structure.js").TEXTS[number], string> & {pages: TranslatedPage[]}} Translation  the
 *   texts of a definition in another language, "" where it is not translated
 * @typedef {Record<typeof import("./definition-structure.js").TEXTS[number], string> & {id: string, format: number, slug: string,
 *   version: number, language: string, report_bytes: number, allow_skip_logic: boolean,
 *   sampling: Sampling | null, pages: Page[], bucket?: "day" | "week", access: "open" | "invitation",
 *   kiosk: boolean, theme: string, exit: string, layout: "" | "questions" | "pages",
 *   translations: Record<string, Translation>, field?: {key: string, until: string},
 *   untranslated: ReadonlyMap<string, string>}} Definition  `id` is the SHA-256 of its bytes, in
 *   hex; `bucket`: how precisely the server stores the date of release (not at all if it is missing);
 *   `field`: the public key of field mode, and its last day for uploads;
 *   `untranslated`: the language of each text that is not translated
 */

/** Values of keys that a definition may omit. */
const DEFAULTS = {
  ...{ consent: "", ethics: "", helpline: "", organization: "", exit: "", layout: "", theme: "" },
  ...{ access: "open", kiosk: false, translations: {} },
};

/** Formats differ only in the part of the hash that a link must have: from 2 on 32 digits. */
const FORMATS = [1, 2];

/**
 * Limits that no definition can raise: e^epsilon <= e^12 per question and e^20 in total.
 *
 * e^12 and e^20 have 60 digits, rounded down: no fraction of weights that fit a word lies between.
 */
const LIMITS = {
  ratio: {
    numerator: 162754_791419003920808005204898486783170209284478720770443556n,
    denominator: 10n ** 54n,
  },
  totalRatio: {
    numerator: 485165195_409790277969106830541540558684638988944847254353610n,
    denominator: 10n ** 51n,
  },
};

/**
 * Hash, parse and check a definition.
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
  const content = parse(bytes);
  ensure(FORMATS.includes(content?.format));
  checkPrefixLength(content.format, expectedPrefix);
  ensureKnownKeys(content, "definition");
  const definition = { ...DEFAULTS, ...content, id, untranslated: new Map() };
  checkStructure(definition);
  checkLimits(definition);
  return freeze(definition);
}

/**
 * Return the definition of the survey at an address after checking it against the link. If an open
 * link may belong to an earlier version, the error contains the id of the current version.
 *
 * @param {Uint8Array<ArrayBuffer>} bytes  exactly as served
 * @param {string} slug
 * @param {Link} link
 * @param {SubtleCrypto} subtle
 */
export async function loadDefinition(bytes, slug, link, subtle) {
  const digest = (/** @type {Uint8Array<ArrayBuffer>} */ content) =>
    subtle.digest("SHA-256", content);
  const definition = await readDefinition(bytes, { digest, expectedPrefix: link.prefix }).catch(
    async (error) => {
      const isOther = error instanceof DefinitionError && error.reason === "other_definition";
      const current =
        isOther && link.invitation === "" && (await readDefinition(bytes, { digest }));
      if (!current || current.version === 1) throw error;
      throw new DefinitionError("other_version", current.id);
    },
  );
  // Under a second name, the same survey could get two reports from this device.
  ensure(definition.slug === slug);
  if (definition.access === "invitation" && link.invitation === "") {
    throw new DefinitionError("invitation_needed");
  }
  checkRoom(definition, { ...link, drawn: null });
  return definition;
}

/** @param {Uint8Array} octets */
function hex(octets) {
  return Array.from(octets, (octet) => octet.toString(16).padStart(2, "0")).join("");
}

/** @param {string} id @param {string} prefix */
function checkPrefix(id, prefix) {
  if (prefix === "") return;
  // A prefix that is too short to identify a definition comes from a changed link.
  if (!/^[0-9a-f]{16,64}$/i.test(prefix) || !id.startsWith(prefix.toLowerCase())) {
    throw new DefinitionError("other_definition");
  }
}

/** @param {number} format @param {string} prefix */
function checkPrefixLength(format, prefix) {
  // 16 digits allow a person who writes two definitions to give both the same start of the hash.
  if (format > 1 && prefix !== "" && prefix.length < 32) throw new DefinitionError("damaged_link");
}

/** @param {Uint8Array} bytes @returns {Definition} */
function parse(bytes) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes), shareChannels());
  } catch {
    throw new DefinitionError("malformed");
  }
}

/**
 * Return a JSON reviver that makes equal channels one object, so that each is checked only once.
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

/** @param {Definition} definition */
function checkLimits(definition) {
  for (const { channel, joint } of definition.pages.flatMap((page) => page.questions)) {
    checkRatio(ratio(joint?.channel ?? channel), LIMITS.ratio);
  }
  checkRatio(totalRatio(definition), LIMITS.totalRatio);
}

/** @param {Ratio} ratio @param {Ratio} limit */
function checkRatio({ numerator, denominator }, limit) {
  ensureAtMost(numerator * limit.denominator, limit.numerator * denominator);
}

/**
 * @template T
 * @param {T} value
 * @returns {Readonly<T>}
 */
function freeze(value) {
  if (typeof value === "object" && value !== null)
    for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
