/**
 * The tablet's queue in field mode: a fixed number of slots of one length, all of them always full.
 *
 * A slot contains a report or a dummy, sealed for the researchers' server. Each change rewrites all
 * slots in a new random order and in one transaction: either everything is stored or nothing. Nothing
 * else about a report is stored, neither its time nor its order.
 *
 * An upload is drawn once, marked in the same transaction and sent unchanged until the server confirms
 * it. If its dummies were drawn again, the slots that two attempts share would be the reports.
 */

/**
 * @typedef {import("./random.js").UniformBelow} UniformBelow
 * @typedef {Uint8Array<ArrayBuffer>} Bytes
 * @typedef {{slug: string, server: string, bytes: Bytes, pictures: Map<string, Bytes>}} Installed  the
 *   survey of the tablet, with the bytes of its definition, and its pictures by their hashes
 * @typedef {{boxes: Bytes, used: Bytes, drawn: Bytes, late: boolean}} Queue  `boxes`: all slots, one
 *   after another; `used`: for each slot 1 if it contains a report; `drawn`: for each slot its place,
 *   from 1, in the upload that the server has not confirmed, or 0; `late`: the survey accepts no more
 *   uploads
 * @typedef {Awaited<ReturnType<typeof openStorage>>} FieldStorage
 */

/** The number of slots; no interview can start if fewer than `RESERVE` are free. */
export const SLOTS = 600;

/** Slots for interviews that may have started in other windows. */
export const RESERVE = 10;

const DATABASE = "survey-field";
const STORE = "field";

/** The survey is no longer on the tablet: another window removed it. */
export class RemovedError extends Error {
  constructor() {
    super("the survey was removed from the tablet");
    this.name = "RemovedError";
  }
}

/** All slots are full; the page checks this before an interview starts. */
export class QueueFullError extends Error {
  constructor() {
    super("the tablet cannot store more reports");
    this.name = "QueueFullError";
  }
}

/**
 * Open the tablet's storage; rejects if the browser denies it.
 *
 * @param {IDBFactory} factory
 */
export async function openStorage(factory) {
  (await openDatabase(factory)).close();

  /**
   * Run one transaction; resolves with the result of `act` when the changes are on the disk. Each has a
   * connection of its own, because browsers close old ones when they run out of memory or after an error.
   *
   * @template T
   * @param {IDBTransactionMode} mode
   * @param {(store: IDBObjectStore, finish: (result: T) => void) => void} act
   * @returns {Promise<T>}
   */
  async function inTransaction(mode, act) {
    const database = await openDatabase(factory);
    try {
      return await new Promise((resolve, reject) => {
        const transaction = database.transaction(STORE, mode, { durability: "strict" });
        /** @type {any} */
        let result;
        transaction.oncomplete = () => resolve(result);
        transaction.onabort = () => reject(transaction.error);
        act(transaction.objectStore(STORE), (value) => {
          result = value;
        });
      });
    } finally {
      database.close();
    }
  }

  /**
   * Change the queue of a survey in one transaction and shuffle it; resolves with the queue. Other
   * windows may have prepared the tablet for another survey, whose queue must stay as it is.
   *
   * @param {Installed} installed
   * @param {(queue: Queue) => boolean} change  returns whether it changed anything
   * @param {UniformBelow} uniformBelow
   * @returns {Promise<Queue>}
   */
  async function changeQueue({ bytes }, change, uniformBelow) {
    /** @type {unknown} */
    let failure;
    /** @type {Queue | undefined} */
    const queue = await inTransaction("readwrite", (store, finish) => {
      const survey = store.get("survey");
      const request = store.get("queue");
      request.onsuccess = () => {
        try {
          if (!survey.result || !isSame(survey.result.bytes, bytes)) throw new RemovedError();
          if (change(request.result)) {
            shuffle(request.result, uniformBelow);
            store.put(request.result, "queue");
          }
          finish(request.result);
        } catch (error) {
          failure = error;
        }
      };
    });
    if (!queue) throw failure;
    return queue;
  }

  return {
    /** Return the survey of the tablet and its queue; both undefined before it is prepared. */
    read() {
      return inTransaction(
        "readonly",
        (store, /** @type {(all: {installed?: Installed, queue?: Queue}) => void} */ finish) => {
          const survey = store.get("survey");
          const queue = store.get("queue");
          queue.onsuccess = () => finish({ installed: survey.result, queue: queue.result });
        },
      );
    },

    /**
     * Prepare the tablet for a survey, unless it is prepared already.
     *
     * @param {Installed} installed
     * @param {readonly Bytes[]} dummies  one for each slot
     */
    install(installed, dummies) {
      return inTransaction("readwrite", (store, finish) => {
        const before = store.get("survey");
        before.onsuccess = () => {
          finish(before.result === undefined);
          if (before.result !== undefined) return;
          store.put(installed, "survey");
          store.put(createQueue(dummies), "queue");
        };
      });
    },

    /**
     * Store a sealed report in a free slot. Resolves when it is on the disk.
     *
     * @param {Installed} installed
     * @param {Bytes} box
     * @param {UniformBelow} uniformBelow
     */
    add: (installed, box, uniformBelow) =>
      changeQueue(
        installed,
        (queue) => {
          if (slotsOf(queue).some((slot) => isSame(slot, box))) return false;
          const [free] = freePlaces(queue);
          if (free === undefined) throw new QueueFullError();
          setSlot(queue, free, box, 1);
          return true;
        },
        uniformBelow,
      ),

    /**
     * Return the slots of the upload that the server has not confirmed; draw one if there is none.
     *
     * @param {Installed} installed
     * @param {number} n
     * @param {UniformBelow} uniformBelow
     */
    async draw(installed, n, uniformBelow) {
      const change = (/** @type {Queue} */ queue) => {
        if (isUnconfirmed(queue)) return false;
        drawUpload(queue, n, uniformBelow);
        return true;
      };
      return drawnSlots(await changeQueue(installed, change, uniformBelow));
    },

    /**
     * Replace uploaded slots with fresh dummies, so that no two uploads contain the same bytes.
     *
     * @param {Installed} installed
     * @param {readonly Bytes[]} uploaded
     * @param {readonly Bytes[]} dummies  as many
     * @param {UniformBelow} uniformBelow
     */
    replace: (installed, uploaded, dummies, uniformBelow) =>
      changeQueue(installed, (queue) => replaceSlots(queue, uploaded, dummies), uniformBelow),

    /**
     * Remember that the survey accepts no more uploads.
     *
     * @param {Installed} installed
     * @param {UniformBelow} uniformBelow
     */
    setLate: (installed, uniformBelow) =>
      changeQueue(
        installed,
        (queue) => {
          queue.late = true;
          return true;
        },
        uniformBelow,
      ),

    /**
     * Replace the slots that arrived before the end, and end the upload that the server refused.
     *
     * @param {Installed} installed
     * @param {readonly Bytes[]} arrived
     * @param {readonly Bytes[]} dummies  as many
     * @param {UniformBelow} uniformBelow
     */
    settle: (installed, arrived, dummies, uniformBelow) =>
      changeQueue(
        installed,
        (queue) => {
          replaceSlots(queue, arrived, dummies);
          queue.drawn.fill(0);
          return true;
        },
        uniformBelow,
      ),

    /**
     * Remove the survey and all slots, unless there are now more than `n` reports because another
     * window has stored some. Resolves with whether they were removed.
     *
     * @param {number} n  the number of reports that the interviewer agreed to lose
     */
    remove(n) {
      return inTransaction("readwrite", (store, finish) => {
        const queue = store.get("queue");
        queue.onsuccess = () => {
          const isAgreed = queue.result === undefined || countUsed(queue.result) <= n;
          if (isAgreed) store.clear();
          finish(isAgreed);
        };
      });
    },
  };
}

/** @param {IDBFactory} factory @returns {Promise<IDBDatabase>} */
function openDatabase(factory) {
  return new Promise((resolve, reject) => {
    const request = factory.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @param {readonly Bytes[]} dummies @returns {Queue} */
function createQueue(dummies) {
  const length = dummies[0].length;
  const boxes = new Uint8Array(dummies.length * length);
  dummies.forEach((box, i) => {
    boxes.set(box, i * length);
  });
  const marks = () => new Uint8Array(dummies.length);
  return { boxes, used: marks(), drawn: marks(), late: false };
}

/** Return the number of reports in the queue. @param {Queue} queue */
export function countUsed({ used }) {
  return used.reduce((n, isUsed) => n + isUsed, 0);
}

/**
 * Return all slots, each as a view of its bytes.
 *
 * @param {Queue} queue
 */
export function slotsOf({ boxes, used }) {
  const length = boxes.length / used.length;
  return Array.from(used, (_, i) => boxes.subarray(i * length, (i + 1) * length));
}

/** Return the places that a report can take. @param {Queue} queue */
export function freePlaces({ used, drawn }) {
  return Array.from(used.keys()).filter((i) => used[i] === 0 && drawn[i] === 0);
}

/** Whether an upload is not confirmed. @param {Queue} queue */
export function isUnconfirmed({ drawn }) {
  return drawn.some((place) => place > 0);
}

/**
 * Mark the slots of an upload in a random order: up to `n` reports, and dummies that fill it to `n`.
 *
 * @param {Queue} queue
 * @param {number} n
 * @param {UniformBelow} uniformBelow
 */
export function drawUpload({ used, drawn }, n, uniformBelow) {
  const places = Array.from(used.keys());
  const reports = places.filter((i) => used[i] === 1).slice(0, n);
  const dummies = places.filter((i) => used[i] === 0).slice(0, n - reports.length);
  // Not in the order of the queue: there, one report would usually lie behind the first dummies.
  const slots = [...reports, ...dummies];
  permutation(slots.length, uniformBelow).forEach((from, to) => {
    drawn[slots[from]] = to + 1;
  });
}

/** Return the slots of the upload that is drawn, in its order. @param {Queue} queue */
export function drawnSlots(queue) {
  const slots = slotsOf(queue);
  return Array.from(queue.drawn.keys())
    .filter((i) => queue.drawn[i] > 0)
    .sort((first, second) => queue.drawn[first] - queue.drawn[second])
    .map((i) => slots[i].slice());
}

/**
 * Replace slots by their content; returns whether the queue contained any of them.
 *
 * @param {Queue} queue
 * @param {readonly Bytes[]} uploaded
 * @param {readonly Bytes[]} dummies
 */
function replaceSlots(queue, uploaded, dummies) {
  const slots = slotsOf(queue);
  const places = uploaded.map((box) => slots.findIndex((slot) => isSame(slot, box)));
  places.forEach((at, i) => {
    if (at >= 0) setSlot(queue, at, dummies[i], 0);
  });
  return places.some((at) => at >= 0);
}

/** @param {Queue} queue @param {number} at @param {Bytes} box @param {0 | 1} isUsed */
function setSlot({ boxes, used, drawn }, at, box, isUsed) {
  boxes.set(box, at * box.length);
  used[at] = isUsed;
  drawn[at] = 0;
}

/** @param {Bytes} first @param {Bytes} second */
export function isSame(first, second) {
  return first.length === second.length && first.every((octet, i) => octet === second[i]);
}

/**
 * Bring the slots into a uniformly random order.
 *
 * @param {Queue} queue
 * @param {UniformBelow} uniformBelow
 */
function shuffle(queue, uniformBelow) {
  const before = { ...queue, boxes: queue.boxes.slice() };
  const slots = slotsOf(before);
  const order = permutation(slots.length, uniformBelow);
  order.forEach((from, to) => {
    queue.boxes.set(slots[from], to * slots[from].length);
  });
  queue.used = before.used.map((_, i) => before.used[order[i]]);
  queue.drawn = before.drawn.map((_, i) => before.drawn[order[i]]);
}

/**
 * Return the numbers below `n` in a uniformly random order (Fisher and Yates; Knuth, Algorithm P).
 *
 * @param {number} n
 * @param {UniformBelow} uniformBelow
 */
function permutation(n, uniformBelow) {
  const order = Array.from({ length: n }, (_, i) => i);
  for (let last = n - 1; last > 0; last -= 1) {
    const other = uniformBelow(last + 1);
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}
