/**
 * The network: fetches the definition, posts a report until it is answered; tells nothing more.
 */

/**
 * @typedef {{outcome: "accepted"}
 *   | {outcome: "refused", status: number, detail: string}
 *   | {outcome: "later", seconds: number, reason: "network" | "busy"}} Outcome
 * @typedef {typeof globalThis.fetch} Fetch
 * @typedef {Extract<Outcome, {outcome: "later"}>} Later
 */

const GIVE_UP_SECONDS = 30;
const LONGEST_WAIT_SECONDS = 600;
const BACKOFF_SECONDS = [2, 5, 10, 20, 30];
const LONGEST_DETAIL = 500;
/** Refusals of the moment, not of the report: timeout, too early, too many requests. */
const PASSING = [408, 425, 429];

/** @type {Later} */
const NO_ANSWER = { outcome: "later", seconds: 0, reason: "network" };

/** @type {RequestInit} */
const QUIET = {
  credentials: "omit",
  referrerPolicy: "no-referrer",
  cache: "no-store",
  redirect: "error",
};

/** The definition did not come; `status` is 0 when nothing answered. */
export class UnavailableError extends Error {
  /** @param {number} status */
  constructor(status) {
    super(`the definition could not be loaded (${status || "no answer"})`);
    this.name = "UnavailableError";
    this.status = status;
  }
}

/**
 * The definition's bytes, exactly as served.
 *
 * @param {Fetch} fetch
 * @param {string} url
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function fetchDefinition(fetch, url) {
  const { status, bytes } = await withinLimit(async (signal) => {
    const response = await fetch(url, { ...QUIET, signal });
    return { status: response.status, bytes: new Uint8Array(await response.arrayBuffer()) };
  }).catch(() => ({ status: 0, bytes: new Uint8Array() }));
  if (status !== 200) throw new UnavailableError(status);
  return bytes;
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
    ...QUIET,
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body,
    // Lets the request outlive a page that is closed; browsers allow it below 64 KiB.
    keepalive: body.length < 60_000,
  };
  return withinLimit(async (signal) => readOutcome(await fetch(url, { ...post, signal }))).catch(
    () => NO_ANSWER,
  );
}

/**
 * Send until the report is accepted or refused, waiting longer each time.
 *
 * @param {() => Promise<Outcome>} send
 * @param {(seconds: number, later: Later) => Promise<void>} wait  may end early: "online", "Try now"
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
  if (status >= 400 && status < 500 && !PASSING.includes(status)) {
    return { outcome: "refused", status, detail: await readDetail(response) };
  }
  // Any other answer, a hotel's 200 page for instance, is not the survey's: the report must wait.
  return { outcome: "later", seconds: retryAfter(response), reason: "busy" };
}

/** @param {Response} response */
async function readDetail(response) {
  try {
    const { detail } = await response.json();
    return typeof detail === "string" ? detail.slice(0, LONGEST_DETAIL) : "";
  } catch {
    return "";
  }
}

/** @param {Response} response */
function retryAfter(response) {
  const text = response.headers.get("Retry-After") ?? "";
  return /^\d{1,9}$/.test(text) ? Math.min(Number(text), LONGEST_WAIT_SECONDS) : 0;
}

/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} request
 * @returns {Promise<T>}
 */
async function withinLimit(request) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), GIVE_UP_SECONDS * 1000);
  try {
    return await request(limit.signal);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Waits between two tries: for some seconds, until the network is back, or until someone says "now".
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
