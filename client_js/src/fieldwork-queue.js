/**
 * The tablet's queue in field mode: a fixed number of slots of one length, all of them always full.
 *
 * A slot contains a report or a dummy, sealed for the researchers' server. Each change rewrites all
 * slots in a new random order and in one transaction: either everything is stored or nothing. Nothing
 * else about a report is stored, neither its time nor its order.
 */

/**
 * @typedef {import("./random.js").UniformBelow} UniformBelow
 * @typedef {Uint8Array<ArrayBuffer>} Bytes
 * @typedef {{slug: string, server: string, bytes: Bytes}} Installed  the survey of the tablet, with
 *   the bytes of its definition
 * @typedef {{boxes: Bytes, used: Bytes, late: boolean}} Queue  `boxes`: all slots, one after another;
 *   `used`: for each slot 1 if it contains a report; `late`: the survey accepts no more uploads
 * @typedef {Awaited<ReturnType<typeof openStorage>>} FieldStorage
 */

/** The number of slots; no interview can start if fewer than `RESERVE` are free. */
export const SLOTS = 600;

/** Slots for interviews that may have started in other windows. */
export const RESERVE = 10;

const DATABASE = "survey-field";
const STORE = "field";

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
  const database = await openDatabase(factory);

  /**
   * Run one transaction; resolves with the result of `act` when the changes are on the disk.
   *
   * @template T
   * @param {IDBTransactionMode} mode
   * @param {(store: IDBObjectStore, finish: (result: T) => void) => void} act
   * @returns {Promise<T>}
   */
  function inTransaction(mode, act) {
    return new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode, { durability: "strict" });
      /** @type {any} */
      let result;
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(transaction.error);
      act(transaction.objectStore(STORE), (value) => {
        result = value;
      });
    });
  }

  /**
   * Change the queue in one transaction and shuffle it.
   *
   * @param {(queue: Queue) => void} change
   * @param {UniformBelow} uniformBelow
   */
  async function changeQueue(change, uniformBelow) {
    /** @type {unknown} */
    let failure;
    const isChanged = await inTransaction("readwrite", (store, finish) => {
      const request = store.get("queue");
      request.onsuccess = () => {
        try {
          change(request.result);
          shuffle(request.result, uniformBelow);
          store.put(request.result, "queue");
          finish(true);
        } catch (error) {
          failure = error;
        }
      };
    });
    if (!isChanged) throw failure;
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
     * @param {Bytes} box
     * @param {UniformBelow} uniformBelow
     */
    add: (box, uniformBelow) =>
      changeQueue((queue) => {
        if (slotsOf(queue).some((slot) => isSame(slot, box))) return;
        const free = queue.used.indexOf(0);
        if (free < 0) throw new QueueFullError();
        setSlot(queue, free, box, 1);
      }, uniformBelow),

    /**
     * Replace uploaded slots with fresh dummies, so that no two uploads contain the same bytes.
     *
     * @param {readonly Bytes[]} uploaded
     * @param {readonly Bytes[]} dummies  as many
     * @param {UniformBelow} uniformBelow
     */
    replace: (uploaded, dummies, uniformBelow) =>
      changeQueue((queue) => {
        uploaded.forEach((box, i) => {
          const at = slotsOf(queue).findIndex((slot) => isSame(slot, box));
          if (at >= 0) setSlot(queue, at, dummies[i], 0);
        });
      }, uniformBelow),

    /** Remember that the survey accepts no more uploads. @param {UniformBelow} uniformBelow */
    setLate: (uniformBelow) =>
      changeQueue((queue) => {
        queue.late = true;
      }, uniformBelow),

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
  return { boxes, used: new Uint8Array(dummies.length), late: false };
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

/**
 * Return the slots of an upload: up to `n` reports, and dummies up to a total of `n`, in the order of
 * the queue, which is random.
 *
 * @param {Queue} queue
 * @param {number} n
 */
export function drawUpload(queue, n) {
  const slots = slotsOf(queue);
  const places = slots.map((_, i) => i);
  const reports = places.filter((i) => queue.used[i] === 1).slice(0, n);
  const dummies = places.filter((i) => queue.used[i] === 0).slice(0, n - reports.length);
  return places
    .filter((i) => reports.includes(i) || dummies.includes(i))
    .map((i) => new Uint8Array(slots[i]));
}

/** @param {Queue} queue @param {number} at @param {Bytes} box @param {0 | 1} isUsed */
function setSlot({ boxes, used }, at, box, isUsed) {
  boxes.set(box, at * box.length);
  used[at] = isUsed;
}

/** @param {Bytes} first @param {Bytes} second */
function isSame(first, second) {
  return first.length === second.length && first.every((octet, i) => octet === second[i]);
}

/**
 * Shuffle the slots uniformly (Fisher and Yates; Knuth, Algorithm P).
 *
 * @param {Queue} queue
 * @param {UniformBelow} uniformBelow
 */
function shuffle({ boxes, used }, uniformBelow) {
  const slots = slotsOf({ boxes, used, late: false });
  for (let last = used.length - 1; last > 0; last -= 1) {
    const other = uniformBelow(last + 1);
    const kept = slots[last].slice();
    slots[last].set(slots[other]);
    slots[other].set(kept);
    [used[last], used[other]] = [used[other], used[last]];
  }
}
