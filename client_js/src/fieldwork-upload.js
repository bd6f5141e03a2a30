/**
 * Field mode's sealing and uploads: the uploads of all tablets look alike.
 */

import { countUsed, isSame, isUnconfirmed, slotsOf } from "./fieldwork-queue.js";
import { decodeBase64url } from "./mechanism.js";
import { createUniformBelow } from "./random.js";
import { ascii, join, sealBox } from "./seal.js";
import { PRIVATE_OPTIONS, TEMPORARY_STATUSES } from "./transport.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./fieldwork-queue.js").FieldStorage} FieldStorage
 * @typedef {import("./fieldwork-queue.js").Installed} Installed
 * @typedef {import("./fieldwork-queue.js").Bytes} Bytes
 * @typedef {import("./random.js").GetRandomValues} GetRandomValues
 * @typedef {"uploaded" | "offline" | "busy" | "late" | "newer" | "refused"} Outcome  "newer": everything
 *   is uploaded, and the survey has a newer version
 * @typedef {ReturnType<typeof createSealer>} Sealer
 */

/** Fixed number of slots in an upload, so that the number of reports remains secret. */
export const UPLOADED_SLOTS = 25;

const UPLOAD_SECONDS = 60;

/**
 * Create the sealer of a survey: each box is bound to the survey's definition.
 *
 * @param {SubtleCrypto} subtle
 * @param {Definition} definition  of a survey with field mode
 */
export function createSealer(subtle, { id, field, report_bytes: length }) {
  const publicKey = new Uint8Array(decodeBase64url(field?.key ?? ""));
  const info = ascii(`survey field report ${id}`);
  const seal = (/** @type {Bytes} */ content) => sealBox(subtle, publicKey, info, content);
  return {
    /** Seal the body of a report. @param {string} body */
    report: (body) => seal(new Uint8Array(new TextEncoder().encode(body))),

    /** Create dummies, which only the holder of the key can tell from reports. @param {number} n */
    dummies: (n) => Promise.all(Array.from({ length: n }, () => seal(new Uint8Array(length)))),
  };
}

/** Return the bytes of a hash in hexadecimal digits. @param {string} id */
export function hashBytes(id) {
  const pairs = id.match(/../g) ?? [];
  return Uint8Array.from(pairs, (pair) => Number.parseInt(pair, 16));
}

/**
 * @typedef {object} Parts
 * @property {typeof globalThis.fetch} fetch
 * @property {FieldStorage} storage
 * @property {Installed} installed
 * @property {Definition} definition
 * @property {Sealer} sealer
 * @property {GetRandomValues} getRandomValues
 * @typedef {Pick<Parts, "fetch" | "definition"> & {installed: Pick<Installed, "server">}} Asked
 */

/**
 * Upload all reports of the queue, in portions. A portion is drawn once and sent again unchanged until
 * the server confirms it; the server recognizes what it has stored before.
 *
 * @param {Parts} parts
 * @returns {Promise<{outcome: Outcome, status: number}>}
 */
export async function uploadQueue(parts) {
  const { fetch, storage, installed, sealer, getRandomValues } = parts;
  const uniformBelow = createUniformBelow(getRandomValues);
  let isReached = false;
  for (;;) {
    const { queue } = await storage.read();
    if (!queue) return { outcome: "uploaded", status: 0 };
    const isPending = isUnconfirmed(queue);
    if (queue.late) return isPending ? settle(parts) : { outcome: "late", status: 0 };
    const isEmpty = countUsed(queue) === 0;
    // Without a network nothing is drawn: the first report of a day would stay alone in its upload.
    if (isEmpty || !(isReached || isPending)) {
      const answer = await lookForChanges(fetch, installed);
      if (isEmpty && isFinal(answer.status) && (await hasEnded(parts))) {
        await storage.setLate(installed, uniformBelow);
        return { outcome: "late", status: 0 };
      }
      if (isEmpty || !isFinal(answer.status)) return answer;
    }
    const boxes = await storage.draw(installed, UPLOADED_SLOTS, uniformBelow);
    const answer = await post(parts, boxes);
    if (answer.outcome === "late") await storage.setLate(installed, uniformBelow);
    else if (answer.outcome !== "uploaded") return answer;
    else await storage.replace(installed, boxes, await sealer.dummies(boxes.length), uniformBelow);
    isReached = true;
  }
}

/** Whether a server has answered, and a second try would not change its answer. @param {number} status */
function isFinal(status) {
  return status >= 200 && status < 500 && !TEMPORARY_STATUSES.includes(status);
}

/**
 * Learn after the end which slots arrived in time, by an upload or in a file, and replace them. All
 * slots are sent, so nothing shows which of them contain reports.
 *
 * @param {Parts} parts
 * @returns {Promise<{outcome: Outcome, status: number}>}
 */
async function settle(parts) {
  const { storage, installed, sealer, getRandomValues } = parts;
  const { queue } = await storage.read();
  const slots = queue ? slotsOf(queue) : [];
  const arrived = [];
  for (let start = 0; start < slots.length; start += UPLOADED_SLOTS) {
    const boxes = slots.slice(start, start + UPLOADED_SLOTS);
    const answer = await post(parts, boxes);
    if (answer.outcome !== "uploaded" && answer.outcome !== "late") return answer;
    arrived.push(...boxes.filter((_, at) => answer.stored.includes(at)));
  }
  const dummies = await sealer.dummies(arrived.length);
  await storage.settle(installed, arrived, dummies, createUniformBelow(getRandomValues));
  return { outcome: "late", status: 0 };
}

/**
 * Whether the server says that the survey accepts no more uploads.
 *
 * @param {Asked} parts
 */
export async function hasEnded(parts) {
  return (await post(parts, [])).outcome === "late";
}

/**
 * @param {Asked} parts
 * @param {readonly Bytes[]} boxes  none to ask only whether the survey accepts uploads
 * @returns {Promise<{outcome: Outcome, status: number, stored: number[]}>}  `stored`: the places of
 *   the boxes that the server has
 */
async function post({ fetch, installed, definition }, boxes) {
  const response = await request(fetch, `${installed.server}/field`, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream" },
    body: join(hashBytes(definition.id), ...boxes),
  });
  const { status } = response;
  if (status === 201) return { outcome: "uploaded", status, stored: [...boxes.keys()] };
  if (status === 0) return { outcome: "offline", status, stored: [] };
  const reason = await readReason(response);
  if (reason.type === "urn:survey:late-boxes") {
    return { outcome: "late", status, stored: reason.stored };
  }
  const outcome = status >= 400 && isFinal(status) ? "refused" : "busy";
  return { outcome, status, stored: [] };
}

/**
 * Read why the server refused; a proxy between may answer with the same status and other content.
 *
 * @param {Response} response
 * @returns {Promise<{type: unknown, stored: number[]}>}
 */
async function readReason(response) {
  try {
    const { type, stored = [] } = await response.json();
    return { type, stored: stored.filter(Number.isInteger) };
  } catch {
    return { type: "", stored: [] };
  }
}

/**
 * Learn whether the server can be reached, and whether it has a newer version of the survey.
 *
 * @param {typeof globalThis.fetch} fetch
 * @param {Installed} installed
 * @returns {Promise<{outcome: Outcome, status: number}>}
 */
async function lookForChanges(fetch, { server, bytes }) {
  const response = await request(fetch, `${server}/definition.json`, {});
  const { status } = response;
  if (status === 0) return { outcome: "offline", status };
  // A survey that is full still accepts uploads.
  if (status === 410) return { outcome: "uploaded", status };
  if (status !== 200) return { outcome: "busy", status };
  const now = new Uint8Array(await response.arrayBuffer());
  return { outcome: isSame(now, bytes) ? "uploaded" : "newer", status };
}

/**
 * Send a request; if there is no response, return one with the status 0.
 *
 * @param {typeof globalThis.fetch} fetch
 * @param {string} url
 * @param {RequestInit} options
 */
async function request(fetch, url, options) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), UPLOAD_SECONDS * 1000);
  try {
    return await fetch(url, { ...PRIVATE_OPTIONS, ...options, signal: limit.signal });
  } catch {
    return Response.error();
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Return the queue as a file with all slots, which only the researchers' server can open.
 *
 * @param {import("./fieldwork-queue.js").Queue} queue
 * @param {Installed} installed
 * @param {Definition} definition
 */
export function queueFile(queue, { slug }, { id }) {
  const head = ascii(`survey-field 1 ${slug} ${id}`);
  const lineEnd = Uint8Array.of(10);
  return new Blob([head, lineEnd, ...slotsOf(queue)], { type: "application/octet-stream" });
}
