/**
 * The network: fetches the definition, posts a report until it is answered; tells nothing more.
 */

/**
 * @typedef {{status: number, name: string, detail: string, opens?: string}} Refusal  `name`: which
 *   of the server's refusals it is, "" when that is not said; `opens`: the day when it will not be
 * @typedef {{outcome: "accepted"}
 *   | {outcome: "refused"} & Refusal
 *   | {outcome: "later", seconds: number, reason: "network" | "busy" | "many"}} Outcome
 * @typedef {typeof globalThis.fetch} Fetch
 * @typedef {Extract<Outcome, {outcome: "later"}>} Later
 */

const GIVE_UP_SECONDS = 30;
const LONGEST_WAIT_SECONDS = 600;
const BACKOFF_SECONDS = [2, 5, 10, 20, 30];
const LONGEST_DETAIL = 500;
const TOO_MANY = 429;
/** Refusals of the moment, not of the report: timeout, too early, too many requests. */
const PASSING = [408, 425, TOO_MANY];
const DAY = /^\d{4}-\d\d-\d\d$/;
const NAMED = /^urn:survey:([a-z-]{1,40})$/;

/** @type {Later} */
const NO_ANSWER = { outcome: "later", seconds: 0, reason: "network" };

/** @type {RequestInit} */
const QUIET = {
  credentials: "omit",
  referrerPolicy: "no-referrer",
  cache: "no-store",
  redirect: "error",
};

/** The definition did not come; the refusal's `status` is 0 when nothing answered. */
export class UnavailableError extends Error {
  /** @param {Refusal} refusal */
  constructor(refusal) {
    super(`the definition could not be loaded (${refusal.status || "no answer"})`);
    this.name = "UnavailableError";
    this.refusal = refusal;
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
  /** @type {Refusal | Uint8Array<ArrayBuffer>} */
  const answer = await withinLimit(async (signal) => {
    const response = await fetch(url, { ...QUIET, signal });
    if (response.status !== 200) return readRefusal(response);
    return new Uint8Array(await response.arrayBuffer());
  }).catch(() => ({ status: 0, name: "", detail: "" }));
  if (answer instanceof Uint8Array) return answer;
  throw new UnavailableError(answer);
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
 * Ask that the browser forgets the page's files: it takes that word only in answer to a request
 * that could carry cookies, which the one with the report never may.
 *
 * @param {Fetch} fetch
 * @param {string} url
 */
export async function forgetFiles(fetch, url) {
  /** @type {RequestInit} */
  const asked = { ...QUIET, credentials: "same-origin" };
  await withinLimit((signal) => fetch(url, { ...asked, signal })).catch(() => {});
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
    return { outcome: "refused", ...(await readRefusal(response)) };
  }
  // Any other answer, a hotel's 200 page for instance, is not the survey's: the report must wait.
  const reason = status === TOO_MANY ? "many" : "busy";
  return { outcome: "later", seconds: retryAfter(response), reason };
}

/**
 * What the server says of a refusal, as problem+json (RFC 9457).
 *
 * @param {Response} response
 * @returns {Promise<Refusal>}
 */
async function readRefusal(response) {
  const { status } = response;
  try {
    const { type, detail, opens } = await response.json();
    const [, name = ""] = NAMED.exec(String(type)) ?? [];
    return {
      status,
      name,
      detail: typeof detail === "string" ? detail.slice(0, LONGEST_DETAIL) : "",
      ...(DAY.test(opens) ? { opens } : {}),
    };
  } catch {
    return { status, name: "", detail: "" };
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
