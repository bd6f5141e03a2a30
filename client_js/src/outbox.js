/**
 * A report is made once per survey, kept until it is acknowledged, and resent identical.
 */

/**
 * @typedef {import("./transport.js").Refusal} Refusal
 * @typedef {{state: "empty"}
 *   | {state: "pending", body: string}
 *   | {state: "refused", body: string} & Refusal
 *   | {state: "sent"}} Entry  a refused entry without a body is one that could not be read
 * @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem">} KeptOnDevice
 * @typedef {ReturnType<typeof createOutbox>} Outbox
 */

/** @type {Entry} */
const EMPTY = { state: "empty" };

/** Something is kept here that this page cannot read: perhaps a report, so none is drawn again. */
const UNREADABLE = Object.freeze({ state: "refused", body: "", status: 0, name: "", detail: "" });

/**
 * The outbox of one survey on this device, whatever the survey's version: fresh draws for the same
 * questions would average the randomness away.
 *
 * @param {KeptOnDevice | null} storage  null where the browser denies it, and on shared devices
 * @param {string} slug
 * @param {number} [room]  characters of a report, for which there must be place
 */
export function createOutbox(storage, slug, room = 0) {
  const shelf = createShelf(storage, `survey-report:${slug}`, room);

  /** @param {Entry} entry */
  function keep(entry) {
    shelf.write(entry);
    return entry;
  }

  /**
   * Another tab may have gone further meanwhile, or keep another report: what it keeps stays.
   *
   * @param {string} body  the report this tab knows about
   * @param {Entry} entry  what became of it
   */
  function settle(body, entry) {
    const kept = shelf.read();
    const isOurs = kept.state === "empty" || ("body" in kept && kept.body === body);
    return isOurs ? keep(entry) : kept;
  }

  return {
    /** What is kept now, by this tab or another. */
    read: shelf.read,

    /** Whether what is kept, or would be, outlives this page. */
    get durable() {
      return shelf.durable;
    },

    /**
     * Keep the report that was made, unless this survey already has one: then this one is never
     * sent.
     *
     * @param {string} body
     * @returns {Entry}
     */
    store(body) {
      const kept = shelf.read();
      return kept.state === "empty" ? keep({ state: "pending", body }) : kept;
    },

    /**
     * The server has the report: keep a mark, without answers, body or id.
     *
     * @param {string} body
     * @returns {Entry}  what is kept now, here and below
     */
    accepted: (body) => settle(body, { state: "sent" }),

    /**
     * The server refused the report: keep it and the reason, unless another tab got it through.
     *
     * @param {string} body
     * @param {Refusal} refusal
     * @returns {Entry}
     */
    refused: (body, { status, name, detail }) =>
      settle(body, { state: "refused", body, status, name, detail }),

    /**
     * Send a refused report again, the same bytes, unless another tab got it through.
     *
     * @returns {Entry}
     */
    retry() {
      const kept = shelf.read();
      const canRetry = kept.state === "refused" && kept.body !== "";
      return canRetry ? keep({ state: "pending", body: kept.body }) : kept;
    },

    /**
     * Whoever wants no refused report here any more has it removed: the mark stays in its place,
     * because a server may have kept what it refused.
     *
     * @returns {Entry}
     */
    giveUp() {
      const kept = shelf.read();
      return kept.state === "refused" ? keep({ state: "sent" }) : kept;
    },

    /**
     * Remove the mark, or what cannot be read; a report that may be sent again is never removed.
     *
     * @returns {Entry}
     */
    removeTrace() {
      const kept = shelf.read();
      const isMark = kept.state === "sent" || (kept.state === "refused" && kept.body === "");
      if (!isMark) return kept;
      shelf.clear();
      return EMPTY;
    },
  };
}

/**
 * One entry in storage and in memory: storage speaks for all tabs, memory where it says nothing.
 *
 * @param {KeptOnDevice | null} storage
 * @param {string} key
 * @param {number} room
 */
function createShelf(storage, key, room) {
  /** @type {Entry} */
  let held = EMPTY;
  let durable = canKeep(storage, room);

  return {
    get durable() {
      return durable;
    },
    /** @returns {Entry} */
    read() {
      const text = attempt(() => storage?.getItem(key)) ?? null;
      if (text === null) return held;
      durable = true;
      held = parseEntry(text);
      return held;
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
 * Try it with something that says nothing and is gone at once, as long as an entry can be.
 *
 * @param {KeptOnDevice | null} storage
 * @param {number} room
 */
function canKeep(storage, room) {
  const probe = "survey-probe";
  const filling = probe.padEnd(2 * room, "x");
  attempt(() => storage?.setItem(probe, filling));
  const isKept = attempt(() => storage?.getItem(probe)) === filling;
  attempt(() => storage?.removeItem(probe));
  return isKept;
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
  const { body, status, name, detail } = entry;
  const written = (/** @type {unknown} */ value) => String(value ?? "");
  return {
    state: "refused",
    body,
    status: Number(status) || 0,
    name: written(name),
    detail: written(detail),
  };
}

/** @param {unknown} body */
function isReport(body) {
  const report = attempt(() => JSON.parse(String(body)));
  return typeof body === "string" && Array.isArray(report?.codes);
}
