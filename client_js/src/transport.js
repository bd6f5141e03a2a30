/**
 * The network: requests the definition and texts, and sends the report until the server answers.
 */

import { DefinitionError, ensure } from "./definition-error.js";
import { checkLink } from "./link.js";
import { drawBytes, NoRandomnessError } from "./random.js";

/**
 * @typedef {{title: string, contact: string, language: string}} Names  of a survey that cannot start
 * @typedef {{status: number, name: string, detail: string, opens?: string, survey?: Names}} Refusal
 *   `name`: the server's name for the refusal, or ""; `opens`: the day on which the survey opens
 * @typedef {{outcome: "accepted"}
 *   | {outcome: "refused"} & Refusal
 *   | {outcome: "later", seconds: number, reason: "network" | "busy" | "many"}} Outcome
 * @typedef {typeof globalThis.fetch} Fetch
 * @typedef {"randomness" | "crypto" | "missing" | "closed" | "not_open" | "full" | "unavailable"
 *   | "unexpected" | import("./definition-error.js").Reason} Obstacle
 * @typedef {Extract<Outcome, {outcome: "later"}>} Later
 */

const TIMEOUT_SECONDS = 30;
const MAX_WAIT_SECONDS = 600;
const BACKOFF_SECONDS = [2, 5, 10, 20, 30];
const MAX_DETAIL = 500;
const TOO_MANY = 429;
/** Temporary refusals: timeout, too early, too many requests. */
export const TEMPORARY_STATUSES = [408, 425, TOO_MANY];
const ISO_DAY = /^\d{4}-\d\d-\d\d$/;
const REFUSAL_TYPE = /^urn:survey:([a-z-]{1,40})$/;

/** @type {Later} */
const NO_ANSWER = { outcome: "later", seconds: 0, reason: "network" };

/** @type {RequestInit} */
export const PRIVATE_OPTIONS = {
  credentials: "omit",
  referrerPolicy: "no-referrer",
  cache: "no-store",
  redirect: "error",
};

/** The definition did not load; the refusal's `status` is 0 if there was no answer. */
export class UnavailableError extends Error {
  /** @param {Refusal} refusal */
  constructor(refusal) {
    super();
    this.refusal = refusal;
  }
}

/** WebCrypto is missing because the browser is old or the address lacks https. */
export class CryptoMissingError extends Error {}

/**
 * Request the definition if the link is complete and this device can protect the answers.
 *
 * @param {Pick<typeof globalThis, "crypto" | "fetch">} window
 * @param {import("./link.js").Address} address
 * @param {import("./link.js").Link} link
 */
export async function requestDefinition({ crypto, fetch }, { slug, server }, link) {
  drawBytes((array) => crypto.getRandomValues(array), 1);
  if (!crypto.subtle) throw new CryptoMissingError();
  checkLink(link);
  ensure(slug !== "");
  return fetchDefinition(fetch, `${server}/definition.json`);
}

/**
 * Fetch the bytes of the definition, exactly as received.
 *
 * @param {Fetch} fetch
 * @param {string} url
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function fetchDefinition(fetch, url) {
  /** @type {Refusal | Uint8Array<ArrayBuffer>} */
  const answer = await withTimeout(async (signal) => {
    const response = await fetch(url, { ...PRIVATE_OPTIONS, signal });
    if (response.status !== 200) return readRefusal(response);
    return new Uint8Array(await response.arrayBuffer());
  }).catch(() => ({ status: 0, name: "", detail: "" }));
  if (answer instanceof Uint8Array) return answer;
  throw new UnavailableError(answer);
}

/**
 * Fetch the texts of a language; the browser compares them with the hash in the page.
 *
 * @param {Fetch} fetch
 * @param {import("./words.js").WordsFile} file
 */
export function fetchWords(fetch, { path, integrity }) {
  // The cache may answer, because the hash identifies the bytes.
  const options = { ...PRIVATE_OPTIONS, cache: /** @type {const} */ ("default"), integrity };
  return withTimeout(async (signal) => (await fetch(path, { ...options, signal })).json());
}

/**
 * Fetch the bytes of a picture; the browser compares them with their hash, whatever the status.
 *
 * @param {Fetch} fetch
 * @param {string} url
 * @param {string} integrity
 */
export function fetchPicture(fetch, url, integrity) {
  const options = { ...PRIVATE_OPTIONS, cache: /** @type {const} */ ("default"), integrity };
  return withTimeout(
    async (signal) =>
      new Uint8Array(await (await fetch(url, { ...options, signal })).arrayBuffer()),
  );
}

/**
 * Return the name of the obstacle that prevents the survey from starting on this device.
 *
 * @param {unknown} error
 * @returns {Obstacle}
 */
export function obstacleOf(error) {
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
 * Post a report once.
 *
 * @param {Fetch} fetch
 * @param {string} url
 * @param {string} body
 * @returns {Promise<Outcome>}
 */
export function sendReport(fetch, url, body) {
  /** @type {RequestInit} */
  const post = {
    ...PRIVATE_OPTIONS,
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body,
    // The request survives closing the page; browsers allow this below 64 KiB.
    keepalive: body.length < 60_000,
  };
  return withTimeout(async (signal) => readOutcome(await fetch(url, { ...post, signal }))).catch(
    () => NO_ANSWER,
  );
}

/**
 * Request a response that clears the browser's cache. Browsers clear it only after requests that may
 * send cookies, which the request with the report must not do.
 *
 * @param {Fetch} fetch
 * @param {string} url
 */
export async function forgetFiles(fetch, url) {
  /** @type {RequestInit} */
  const options = { ...PRIVATE_OPTIONS, credentials: "same-origin" };
  await withTimeout((signal) => fetch(url, { ...options, signal })).catch(() => {});
}

/**
 * Send the report until the server accepts or refuses it, with longer pauses after each attempt.
 *
 * @param {() => Promise<Outcome>} send
 * @param {(seconds: number, later: Later) => Promise<void>} wait  may end early, on "online" or "Try now"
 * @returns {Promise<Exclude<Outcome, Later>>}
 */
export async function sendUntilAnswered(send, wait) {
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await send();
    if (outcome.outcome !== "later") return outcome;
    const backoff = BACKOFF_SECONDS[Math.min(attempt, BACKOFF_SECONDS.length - 1)];
    await wait(Math.max(backoff, outcome.seconds), outcome);
  }
}

/** @param {Response} response @returns {Promise<Outcome>} */
async function readOutcome(response) {
  const { status } = response;
  if (status === 201) return { outcome: "accepted" };
  if (status >= 400 && status < 500 && !TEMPORARY_STATUSES.includes(status)) {
    return { outcome: "refused", ...(await readRefusal(response)) };
  }
  // Any other answer, such as the login page of a hotel, is not final.
  const reason = status === TOO_MANY ? "many" : "busy";
  return { outcome: "later", seconds: retryAfter(response), reason };
}

/**
 * Read the server's refusal, in problem+json (RFC 9457).
 *
 * @param {Response} response
 * @returns {Promise<Refusal>}
 */
async function readRefusal(response) {
  const { status } = response;
  try {
    const { type, detail, opens, survey, contact, language } = await response.json();
    const [, name = ""] = REFUSAL_TYPE.exec(String(type)) ?? [];
    return {
      status,
      name,
      detail: typeof detail === "string" ? detail.slice(0, MAX_DETAIL) : "",
      ...(ISO_DAY.test(opens) ? { opens } : {}),
      ...(typeof survey === "string"
        ? { survey: { title: survey, contact: String(contact), language: String(language) } }
        : {}),
    };
  } catch {
    return { status, name: "", detail: "" };
  }
}

/** @param {Response} response */
function retryAfter(response) {
  const text = response.headers.get("Retry-After") ?? "";
  return /^\d{1,9}$/.test(text) ? Math.min(Number(text), MAX_WAIT_SECONDS) : 0;
}

/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} request
 * @returns {Promise<T>}
 */
async function withTimeout(request) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), TIMEOUT_SECONDS * 1000);
  try {
    return await request(limit.signal);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Create a pause between attempts. It ends after some seconds, when the network returns, or by `end`.
 *
 * @param {Pick<Window, "setTimeout" | "clearTimeout" | "addEventListener">} window
 */
export function createPause(window) {
  let end = () => {};
  window.addEventListener("online", () => end());
  return {
    /**
     * @param {number} seconds
     * @returns {Promise<void>}
     */
    begin(seconds) {
      return new Promise((resolve) => {
        const timer = window.setTimeout(() => end(), seconds * 1000);
        end = () => {
          window.clearTimeout(timer);
          resolve();
        };
      });
    },
    end: () => end(),
  };
}

/** @typedef {ReturnType<typeof createPause>} Pause */
