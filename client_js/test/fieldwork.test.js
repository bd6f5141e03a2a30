import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnSlots, drawUpload } from "../src/fieldwork-queue.js";
import { uploadQueue } from "../src/fieldwork-upload.js";
import { createUniformBelow } from "../src/random.js";

const SLOTS = 600;
const UPLOADED = 25;
const uniformBelow = createUniformBelow((array) => crypto.getRandomValues(array));

/** A queue whose slots contain their places, in two bytes. */
function queueOf(places) {
  const boxes = new Uint8Array(2 * SLOTS);
  for (let i = 0; i < SLOTS; i += 1) boxes.set([i >> 8, i & 255], 2 * i);
  const used = new Uint8Array(SLOTS);
  for (const place of places) used[place] = 1;
  return { boxes, used, drawn: new Uint8Array(SLOTS), late: false };
}

test("the order of an upload does not show which of its slots contain reports", () => {
  const seen = new Uint32Array(UPLOADED);
  const n = 2_000;
  for (let i = 0; i < n; i += 1) {
    const place = uniformBelow(SLOTS);
    const queue = queueOf([place]);
    drawUpload(queue, UPLOADED, uniformBelow);
    const places = drawnSlots(queue).map(([high, low]) => 256 * high + low);
    assert.equal(new Set(places).size, UPLOADED);
    seen[places.indexOf(place)] += 1;
  }
  // Chi-square with 24 degrees of freedom exceeds 67.3 about once in 180,000 runs.
  const expected = n / UPLOADED;
  const fit = seen.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  assert.ok(fit < 67.3, `${fit}`);
});

test("an upload contains as many reports as it can", () => {
  const queue = queueOf(Array.from({ length: 40 }, (_, i) => 7 * i));
  drawUpload(queue, UPLOADED, uniformBelow);
  assert.equal(queue.used.filter((isUsed, i) => isUsed && queue.drawn[i]).length, UPLOADED);
});

/** Upload from a tablet that contains no report; return its queue and the answer. */
async function uploadNothing(fetch) {
  const queue = queueOf([]);
  const setLate = async () => {
    queue.late = true;
  };
  const installed = { server: "/s/small", bytes: Uint8Array.of(1) };
  const parts = { storage: { read: async () => ({ queue }), setLate }, fetch, installed };
  const getRandomValues = (array) => crypto.getRandomValues(array);
  const answer = await uploadQueue({ ...parts, definition: { id: "ab" }, getRandomValues });
  return { queue, outcome: answer.outcome };
}

for (const [name, field, definition, outcome] of [
  ["open", [201], [200], "uploaded"],
  ["full", [201], [410, '{"type":"urn:survey:full"}'], "uploaded"],
  ["closed and its end out of reach", [503], [410], "uploaded"],
  ["at an end", [410, '{"type":"urn:survey:late-boxes","stored":[]}'], [200], "late"],
]) {
  test(`a tablet without reports finds that the survey is ${name}`, async () => {
    const bodies = [];
    const { queue, outcome: found } = await uploadNothing(async (url, { body }) => {
      if (body) bodies.push([...body]);
      const [status, text] = url.endsWith("/field") ? field : definition;
      return new Response(text ?? (status === 200 ? Uint8Array.of(1) : null), { status });
    });
    assert.deepEqual([found, queue.late], [outcome, outcome === "late"]);
    // Only the definition's hash, and no slot.
    assert.deepEqual(bodies, [[0xab]]);
  });
}

for (const body of ["<h1>Gone</h1>", '{"type":"about:blank","stored":[0]}', '"gone"', "null"]) {
  test(`a proxy that answers 410 with ${body} does not end the survey`, async () => {
    const queue = queueOf([7]);
    queue.drawn[7] = 1;
    const storage = { read: async () => ({ queue }), draw: async () => drawnSlots(queue) };
    const fetch = async () => new Response(body, { status: 410 });
    const parts = { storage, fetch, installed: { server: "" }, definition: { id: "00" } };
    const getRandomValues = (array) => crypto.getRandomValues(array);
    const answer = await uploadQueue({ ...parts, getRandomValues });
    assert.deepEqual(answer, { outcome: "refused", status: 410, stored: [] });
  });
}
