/**
 * A report is made once per survey, kept until it is acknowledged, and resent identical.
 */

/**
 * @typedef {{state: "empty"}
 *   | {state: "pending", body: string}
 *   | {state: "refused", body: string, status: number, detail: string}
 *   | {state: "sent"}} Entry  a refused entry without a body is one that could not be read
 * @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} KeptOnDevice
 */

/** @type {Entry} */
const EMPTY = { state: "empty" };
/** Something is kept here that this page cannot read: perhaps a report, so none is drawn again. */
const UNREADABLE = Object.freeze({ state: "refused", body: "", status: 0, detail: "" });

/** The transition asked for does not start from the state the outbox is in. */
export class OutboxError extends Error {
  /** @param {string} asked @param {string} state */
  constructor(asked, state) {
    super(`${asked} is not possible in state ${state}`);
    this.name = "OutboxError";
  }
}

/**
 * The outbox of one survey on this device, whatever the survey's version: fresh draws for the same
 * questions would average the randomness away.
 *
 * @param {KeptOnDevice | null} storage  null where the browser denies it
 * @param {string} slug
 */
export function createOutbox(storage, slug) {
  const shelf = createShelf(storage, `survey-report:${slug}`);

  /** @param {Entry} entry */
  function keep(entry) {
    shelf.write(entry);
    return entry;
  }

  /** @param {string} asked */
  function bodyFor(asked) {
    const entry = shelf.read();
    if ((entry.state === "pending" || entry.state === "refused") && entry.body) return entry.body;
    throw new OutboxError(asked, entry.state);
  }

  return {
    /** What is kept now, by this tab or another. */
    read: shelf.read,

    /** Whether what is kept outlives this page. */
    get durable() {
      return shelf.durable;
    },

    /**
     * Make the report and keep it, unless this survey already has one: then `makeBody` is not
     * called, nothing is drawn, and what is kept is returned with `made: false`.
     *
     * @param {() => string} makeBody
     * @returns {{entry: Entry, made: boolean}}
     */
    freeze(makeBody) {
      const kept = shelf.read();
      if (kept.state !== "empty") return { entry: kept, made: false };
      return { entry: keep({ state: "pending", body: makeBody() }), made: true };
    },

    /** The server has the report: keep a mark, without answers, body or id. */
    accepted: () => keep({ state: "sent" }),

    /**
     * The server refused the report: keep it and the reason, unless another tab got it through.
     *
     * @param {number} status
     * @param {string} detail
     * @returns {Entry}
     */
    refused(status, detail) {
      const kept = shelf.read();
      if (kept.state === "sent") return kept;
      return keep({ state: "refused", body: bodyFor("refusing"), status, detail });
    },

    /** Send a refused report again: the same bytes. */
    retry: () => keep({ state: "pending", body: bodyFor("retrying") }),

    /** Remove the mark, or what cannot be read; a report that may be sent again is never removed. */
    removeTrace() {
      const entry = shelf.read();
      const isMark = entry.state === "sent" || (entry.state === "refused" && !entry.body);
      if (!isMark) throw new OutboxError("removing the trace", entry.state);
      shelf.clear();
    },
  };
}

/** @typedef {ReturnType<typeof createOutbox>} Outbox */

/**
 * One entry in storage and in memory: storage speaks for all tabs, memory when it is denied.
 *
 * @param {KeptOnDevice | null} storage
 * @param {string} key
 */
function createShelf(storage, key) {
  /** @type {Entry} */
  let held = EMPTY;
  let durable = storage !== null;

  return {
    get durable() {
      return durable;
    },
    /** @returns {Entry} */
    read() {
      const text = attempt(() => storage?.getItem(key)) ?? null;
      return text === null ? held : parseEntry(text);
    },
    /** @param {Entry} entry */
    write(entry) {
      held = entry;
      const text = JSON.stringify(entry);
      attempt(() => storage?.setItem(key, text));
      durable = attempt(() => storage?.getItem(key)) === text;
    },
    clear() {
      held = EMPTY;
      attempt(() => storage?.removeItem(key));
    },
  };
}

/**
 * A browser may deny storage at any call.
 *
 * @template T
 * @param {() => T} action
 * @returns {T | undefined}
 */
function attempt(action) {
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
  const { body, status, detail } = entry;
  return { state: "refused", body, status: Number(status) || 0, detail: String(detail ?? "") };
}

/** @param {unknown} body */
function isReport(body) {
  const report = attempt(() => JSON.parse(String(body)));
  return typeof body === "string" && Array.isArray(report?.codes);
}
