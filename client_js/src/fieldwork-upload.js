/**
 * Field mode's sealing and uploads: the uploads of all tablets look alike.
 */

import { countUsed, drawUpload, slotsOf } from "./fieldwork-queue.js";
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

/** Return the bytes of a definition's hash. @param {string} id */
function hashBytes(id) {
  const pairs = id.match(/../g) ?? [];
  return Uint8Array.from(pairs, (pair) => Number.parseInt(pair, 16));
}

/**
 * Upload all reports in the queue, in portions. After an interruption, at most one portion is uploaded
 * again, and the server recognizes it.
 *
 * @param {object} parts
 * @param {typeof globalThis.fetch} parts.fetch
 * @param {FieldStorage} parts.storage
 * @param {Installed} parts.installed
 * @param {Definition} parts.definition
 * @param {Sealer} parts.sealer
 * @param {GetRandomValues} parts.getRandomValues
 * @returns {Promise<{outcome: Outcome, status: number}>}
 */
export async function uploadQueue(parts) {
  const { fetch, storage, installed, definition, sealer, getRandomValues } = parts;
  const uniformBelow = createUniformBelow(getRandomValues);
  for (;;) {
    const { queue } = await storage.read();
    if (!queue) return { outcome: "uploaded", status: 0 };
    if (countUsed(queue) === 0) {
      const answer = await lookForChanges(fetch, installed);
      if (answer.outcome === "late") await storage.setLate(uniformBelow);
      return answer;
    }
    const boxes = drawUpload(queue, UPLOADED_SLOTS);
    const url = `${installed.server}/field`;
    const answer = await post(fetch, url, join(hashBytes(definition.id), ...boxes));
    const stored = answer.outcome === "late" ? answer.stored.map((at) => boxes[at]) : boxes;
    if (answer.outcome === "uploaded" || answer.outcome === "late") {
      await storage.replace(stored, await sealer.dummies(stored.length), uniformBelow);
    }
    if (answer.outcome === "late") await storage.setLate(uniformBelow);
    if (answer.outcome !== "uploaded") return answer;
  }
}

/**
 * @param {typeof globalThis.fetch} fetch
 * @param {string} url
 * @param {Bytes} body
 * @returns {Promise<{outcome: Outcome, status: number, stored: number[]}>}  `stored`: the positions
 *   of the boxes that were stored in time, if the upload is late
 */
async function post(fetch, url, body) {
  const headers = { "Content-Type": "application/octet-stream" };
  const response = await request(fetch, url, { method: "POST", headers, body });
  const { status } = response;
  if (status === 201) return { outcome: "uploaded", status, stored: [] };
  if (status === 0) return { outcome: "offline", status, stored: [] };
  if (status === 410) return { outcome: "late", status, stored: await readStored(response) };
  const isFinal = status >= 400 && status < 500 && !TEMPORARY_STATUSES.includes(status);
  return { outcome: isFinal ? "refused" : "busy", status, stored: [] };
}

/** @param {Response} response @returns {Promise<number[]>} */
async function readStored(response) {
  try {
    const { stored } = await response.json();
    return stored.filter((/** @type {unknown} */ at) => Number.isInteger(at));
  } catch {
    return [];
  }
}

/**
 * Ask the server whether a tablet with an empty queue may start more interviews.
 *
 * @param {typeof globalThis.fetch} fetch
 * @param {Installed} installed
 * @returns {Promise<{outcome: Outcome, status: number}>}
 */
async function lookForChanges(fetch, { server, bytes }) {
  const response = await request(fetch, `${server}/definition.json`, {});
  const { status } = response;
  if (status === 0) return { outcome: "offline", status };
  if (status === 410) return { outcome: (await isClosed(response)) ? "late" : "uploaded", status };
  if (status !== 200) return { outcome: "busy", status };
  const now = new Uint8Array(await response.arrayBuffer());
  const isSame = now.length === bytes.length && now.every((octet, i) => octet === bytes[i]);
  return { outcome: isSame ? "uploaded" : "newer", status };
}

/** Whether a survey is closed; one that is full still accepts uploads. @param {Response} response */
async function isClosed(response) {
  try {
    return (await response.json()).type === "urn:survey:closed";
  } catch {
    return false;
  }
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
