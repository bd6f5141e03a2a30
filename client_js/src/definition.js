/**
 * The survey as this device accepts it: at its one address, known by its hash, never below the ceilings.
 */

import { drawBytes, NoRandomnessError } from "./random.js";
import { checkRoom } from "./report.js";
import { fetchDefinition, UnavailableError } from "./transport.js";

/**
 * @typedef {import("./mechanism.js").SubsetSelection} Channel
 * @typedef {{id: string, label: string}} Option
 * @typedef {{id: string, type: string, text: string, help: string, options: Option[],
 *   opt_out: string, channel: Channel}} Question
 * @typedef {{title: string, questions: Question[]}} Page
 * @typedef {{id: string, format: number, slug: string, version: number, language: string,
 *   title: string, introduction: string, contact: string, thanks: string, report_bytes: number,
 *   pages: Page[]}} Definition  `id` is the SHA-256 of its bytes, in hex
 * @typedef {"malformed" | "other_definition" | "too_weak"} Reason
 * @typedef {"randomness" | "crypto" | "missing" | "closed" | "unavailable" | "unexpected"
 *   | Reason} Obstacle
 */

/** Ceilings no definition can lift: p <= .99; e^epsilon <= e^12 per question, e^20 together. */
const CEILINGS = { percent: 99n, ratio: 162_754n, totalRatio: 485_165_195n };
const WORD_VALUES = 2n ** 32n;
const MAX_OPTIONS = 10_000;
const TYPES = ["yes_no", "single_choice"];

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
 * The definition, once it is certain that this device could keep its promise.
 *
 * @param {Window & typeof globalThis} window
 * @param {string} slug  from the address
 * @param {import("./random.js").GetRandomValues} getRandomValues
 */
export async function loadDefinition({ crypto, fetch, location }, slug, getRandomValues) {
  drawBytes(getRandomValues, 1);
  if (!crypto.subtle) throw new CryptoMissingError();
  const bytes = await fetchDefinition(fetch, `/s/${slug}/definition.json`);
  const definition = await readDefinition(bytes, {
    digest: (content) => crypto.subtle.digest("SHA-256", content),
    expectedPrefix: new URLSearchParams(location.hash.slice(1)).get("d") ?? "",
  });
  // Served under a second name, one survey could get two reports from this device.
  demand(definition.slug === slug, `it is the survey ${definition.slug}, not ${slug}`);
  checkRoom(definition);
  return definition;
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
  if (error.status === 404) return "missing";
  return error.status === 410 ? "closed" : "unavailable";
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
  const definition = parse(bytes);
  checkStructure(definition);
  checkCeilings(definition.pages.flatMap((page) => page.questions));
  return freeze({ ...definition, id });
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
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new DefinitionError("malformed", "the definition is not JSON in UTF-8");
  }
}

/** @param {boolean} holds @param {string} message @returns {asserts holds} */
function demand(holds, message) {
  if (!holds) throw new DefinitionError("malformed", message);
}

/** @param {Record<string, any>} value @param {string[]} names @param {string} place */
function demandTexts(value, names, place) {
  for (const name of names) demand(typeof value[name] === "string", `${place}.${name} is no text`);
}

/** @param {any} definition */
function checkStructure(definition) {
  demand(definition?.format === 1, "the definition is not of format 1");
  demandTexts(definition, ["slug", "language", "title", "introduction", "contact", "thanks"], "it");
  const room = definition.report_bytes;
  demand(Number.isInteger(room) && room >= 1 && room <= 8192, `report_bytes is ${room}`);
  demand(Array.isArray(definition.pages) && definition.pages.length > 0, "it has no pages");
  definition.pages.forEach(checkPage);
  const asked = definition.pages.flatMap((/** @type {Page} */ page) => page.questions);
  demandDistinct(asked, "questions");
}

/** @param {any} page @param {number} at */
function checkPage(page, at) {
  demand(Array.isArray(page?.questions) && page.questions.length > 0, `page ${at + 1} is empty`);
  demandTexts(page, ["title"], `page ${at + 1}`);
  page.questions.forEach(checkQuestion);
}

/** @param {any} question */
function checkQuestion(question) {
  demandTexts(question ?? {}, ["id", "type", "text", "help", "opt_out"], "question");
  const { id, type, options, opt_out: optOut, channel } = question;
  demand(TYPES.includes(type), `${id}: unknown type ${type}`);
  demand(Array.isArray(options), `${id}: no options`);
  for (const option of options) demandTexts(option ?? {}, ["id", "label"], `${id}.options`);
  demandDistinct(options, `${id}: options`);
  const known = options.some((/** @type {Option} */ option) => option.id === optOut);
  demand(optOut === "" || known, `${id}: its opt_out is no option`);
  checkChannel(channel, options.length, id);
}

/** @param {{id: string}[]} parts @param {string} place */
function demandDistinct(parts, place) {
  const ids = parts.map((part) => part.id);
  demand(!ids.includes("") && new Set(ids).size === ids.length, `${place} share or lack an id`);
}

/** @param {any} channel @param {number} options @param {string} id */
function checkChannel(channel, options, id) {
  demand(channel?.kind === "subset_selection", `${id}: unknown kind of channel`);
  const { k, d, T, L } = channel;
  demand([k, d, T, L].every(Number.isSafeInteger), `${id}: a channel is made of integers`);
  demand(k >= 2 && k <= MAX_OPTIONS && k === options, `${id}: k = ${k} for ${options} options`);
  demand(d >= 1 && d < k, `${id}: d = ${d} is not from 1 to k - 1`);
  demand(T > L && L >= 1, `${id}: T = ${T}, L = ${L} is not T > L >= 1`);
  demand(total(channel) <= WORD_VALUES, `${id}: the weights add up to more than 2^32`);
}

/** @param {Channel} channel */
function total({ k, d, T, L }) {
  return BigInt(d) * BigInt(T) + BigInt(k - d) * BigInt(L);
}

/** @param {Question[]} asked */
function checkCeilings(asked) {
  let [product, base] = [1n, 1n];
  for (const { id, channel } of asked) {
    const [d, T, L] = [BigInt(channel.d), BigInt(channel.T), BigInt(channel.L)];
    refuseAbove(100n * d * T, CEILINGS.percent * total(channel), `${id}: p is above .99`);
    refuseAbove(T, CEILINGS.ratio * L, `${id}: epsilon is above 12`);
    product *= T;
    base *= L;
  }
  refuseAbove(product, CEILINGS.totalRatio * base, "all questions together: epsilon above 20");
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
  if (typeof value === "object" && value !== null) Object.values(value).forEach(freeze);
  return Object.freeze(value);
}
