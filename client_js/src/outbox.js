/**
 * The outbox: stores a survey's only report unchanged until the server acknowledges it.
 */

import { productOf } from "./privacy-loss.js";

/**
 * @typedef {import("./mechanism.js").Ratio} Ratio
 * @typedef {import("./transport.js").Refusal} Refusal
 * @typedef {{state: "empty"}
 *   | {state: "pending", body: string}
 *   | {state: "refused", body: string} & Refusal
 *   | {state: "sent"}} Entry  a refused entry without a body could not be read
 * @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} DeviceStorage
 * @typedef {ReturnType<typeof createOutbox>} Outbox
 */

/** @type {Entry} */
const EMPTY = { state: "empty" };

/** The stored entry is unreadable and may be a report, so no new report is made. */
const UNREADABLE = Object.freeze({ state: "refused", body: "", status: 0, name: "", detail: "" });

/**
 * Create the outbox of a survey on this device. All versions of the survey share it, because a
 * second randomization of the same answers would weaken their protection.
 *
 * @param {DeviceStorage | null} storage  null if the browser denies it, and on shared devices
 * @param {string} slug
 * @param {number} [room]  characters of a report that must fit
 */
export function createOutbox(storage, slug, room = 0) {
  const slot = createSlot(storage, `survey-report:${slug}`, room);

  /** @param {Entry} entry */
  function keep(entry) {
    slot.write(entry);
    return entry;
  }

  /**
   * Store what became of a report, unless another tab has stored a different report.
   *
   * @param {string} body  this tab's report
   * @param {Entry} entry  what became of it
   */
  function settle(body, entry) {
    const stored = slot.read();
    const isOurs = stored.state === "empty" || ("body" in stored && stored.body === body);
    return isOurs ? keep(entry) : stored;
  }

  return {
    /** Return the entry stored by this tab or another. */
    read: slot.read,

    /** Whether the entry outlives this page. */
    get durable() {
      return slot.durable;
    },

    /**
     * Store a new report, unless this survey already has one; then the new one is never sent.
     *
     * @param {string} body
     * @returns {Entry}
     */
    store(body) {
      const stored = slot.read();
      return stored.state === "empty" ? keep({ state: "pending", body }) : stored;
    },

    /**
     * The server accepted the report: keep only a mark without codes and id.
     *
     * @param {string} body
     * @returns {Entry}  what is kept now, here and below
     */
    accepted: (body) => settle(body, { state: "sent" }),

    /**
     * The server refused the report: keep it with the reason, unless another tab sent it.
     *
     * @param {string} body
     * @param {Refusal} refusal
     * @returns {Entry}
     */
    refused: (body, { status, name, detail }) =>
      settle(body, { state: "refused", body, status, name, detail }),

    /**
     * Remove a report that the server is sure never to store, unless another tab stored another.
     *
     * @param {string} body
     * @returns {Entry}
     */
    discard(body) {
      const stored = slot.read();
      if (stored.state !== "pending" || stored.body !== body) return stored;
      slot.clear();
      return EMPTY;
    },

    /**
     * Mark a refused report to be sent again, byte for byte, unless another tab sent it.
     *
     * @returns {Entry}
     */
    retry() {
      const stored = slot.read();
      const canRetry = stored.state === "refused" && stored.body !== "";
      return canRetry ? keep({ state: "pending", body: stored.body }) : stored;
    },

    /**
     * Remove a refused report but keep the mark, because a server may store what it refuses.
     *
     * @returns {Entry}
     */
    giveUp() {
      const stored = slot.read();
      return stored.state === "refused" ? keep({ state: "sent" }) : stored;
    },

    /**
     * Remove the mark or an unreadable entry; never a report that can still be sent.
     *
     * @returns {Entry}
     */
    removeTrace() {
      const stored = slot.read();
      const isMark = stored.state === "sent" || (stored.state === "refused" && stored.body === "");
      if (!isMark) return stored;
      slot.clear();
      return EMPTY;
    },
  };
}

/**
 * Create a slot for one entry, in storage (shared by all tabs) and in memory (if storage is empty).
 *
 * @param {DeviceStorage | null} storage
 * @param {string} key
 * @param {number} room
 */
function createSlot(storage, key, room) {
  /** @type {Entry} */
  let memory = EMPTY;
  let durable = canStore(storage, room);

  return {
    get durable() {
      return durable;
    },
    /** @returns {Entry} */
    read() {
      const text = attempt(() => storage?.getItem(key)) ?? null;
      if (text === null) return memory;
      durable = true;
      memory = parseEntry(text);
      return memory;
    },
    /** @param {Entry} entry */
    write(entry) {
      memory = entry;
      const text = JSON.stringify(entry);
      attempt(() => storage?.setItem(key, text));
      durable = attempt(() => storage?.getItem(key)) === text;
    },
    clear() {
      memory = EMPTY;
      attempt(() => storage?.removeItem(key));
    },
  };
}

/**
 * Whether storage accepts a meaningless text as long as an entry; the text is removed at once.
 *
 * @param {DeviceStorage | null} storage
 * @param {number} room
 */
function canStore(storage, room) {
  const probe = "survey-probe";
  const filling = probe.padEnd(2 * room, "x");
  attempt(() => storage?.setItem(probe, filling));
  const isStored = attempt(() => storage?.getItem(probe)) === filling;
  attempt(() => storage?.removeItem(probe));
  return isStored;
}

/**
 * Try an action; browsers may deny storage at any call.
 *
 * @template T
 * @param {() => T} action
 * @returns {T | undefined}
 */
export function attempt(action) {
  try {
    return action();
  } catch {
    return undefined;
  }
}

/** @param {string} text @returns {Entry} */
function parseEntry(text) {
  const entry = attempt(() => JSON.parse(text));
  const hasBody = isReport(entry?.body);
  if (entry?.state === "sent") return { state: "sent" };
  if (entry?.state === "pending" && hasBody) return { state: "pending", body: entry.body };
  if (entry?.state !== "refused" || !hasBody) return UNREADABLE;
  const { body, status, name, detail } = entry;
  const toText = (/** @type {unknown} */ value) => String(value ?? "");
  return {
    state: "refused",
    body,
    status: Number(status) || 0,
    name: toText(name),
    detail: toText(detail),
  };
}

/** @param {unknown} body */
function isReport(body) {
  const report = attempt(() => JSON.parse(String(body)));
  return typeof body === "string" && Array.isArray(report?.codes);
}

/**
 * @typedef {{surveys: number, total: Ratio}} Earlier  the number of surveys, and e^epsilon of them all
 * @typedef {ReturnType<typeof createEarlierSurveys>} EarlierSurveys
 */

const KEY = "survey-memory";
const MAX_SURVEYS = 9999;
/** A larger factor says no more than this one: a suspicion can become a certainty. */
const MAX_FACTOR = 10n ** 30n;
const FACTOR = /^[1-9]\d?0{0,30}$/;

/**
 * Create the memory of earlier surveys on this device.
 *
 * @param {DeviceStorage | null} storage  null on shared devices and if the browser denies it
 */
export function createEarlierSurveys(storage) {
  /** @returns {Earlier | null} */
  function read() {
    const stored = attempt(() => JSON.parse(storage?.getItem(KEY) ?? "null"));
    const { surveys, factor } = stored ?? {};
    const isCount = Number.isInteger(surveys) && surveys >= 1 && surveys <= MAX_SURVEYS;
    if (!isCount || typeof factor !== "string" || !FACTOR.test(factor)) return null;
    return { surveys, total: { numerator: BigInt(factor), denominator: 1n } };
  }

  /**
   * Add a survey that was answered.
   *
   * @param {Ratio} answered  e^epsilon of its whole report
   */
  function add(answered) {
    const earlier = read();
    const surveys = Math.min((earlier?.surveys ?? 0) + 1, MAX_SURVEYS);
    const factor = String(coarsened(earlier ? productOf([earlier.total, answered]) : answered));
    attempt(() => storage?.setItem(KEY, JSON.stringify({ surveys, factor })));
    return read();
  }

  function forget() {
    attempt(() => storage?.removeItem(KEY));
  }

  return { read, add, forget };
}

/**
 * Round up to 1, 3, 10, 30 and so on: a finer factor could identify the survey.
 *
 * @param {Ratio} ratio
 */
function coarsened({ numerator, denominator }) {
  let power = 1n;
  while (power * 10n * denominator < numerator) power *= 10n;
  const step = [1n, 3n, 10n].find((digit) => numerator <= digit * power * denominator) ?? 10n;
  const rounded = step * power;
  return rounded < MAX_FACTOR ? rounded : MAX_FACTOR;
}
