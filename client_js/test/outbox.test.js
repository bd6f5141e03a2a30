import assert from "node:assert/strict";
import { test } from "node:test";
import { createOutbox, OutboxError } from "../src/outbox.js";
import { sendReport, sendUntilAnswered } from "../src/transport.js";
import { deviceStorage } from "./support.js";

const BODY = '{"codes":[1],"pad":"..."}';
const KEY = "survey-report:workplace";
const never = () => assert.fail("a second report was drawn");

test("a new outbox is empty", () => {
  assert.deepEqual(createOutbox(deviceStorage(), "workplace").read(), { state: "empty" });
});

test("a report is made once and frozen", () => {
  const outbox = createOutbox(deviceStorage(), "workplace");
  const entry = { state: "pending", body: BODY };
  assert.deepEqual(
    outbox.freeze(() => BODY),
    { entry, made: true },
  );
  assert.deepEqual(outbox.freeze(never), { entry, made: false });
  assert.equal(outbox.durable, true);
});

test("after a reload the same bytes are waiting", () => {
  const storage = deviceStorage();
  createOutbox(storage, "workplace").freeze(() => BODY);
  const reloaded = createOutbox(storage, "workplace");
  assert.deepEqual(reloaded.read(), { state: "pending", body: BODY });
  assert.deepEqual(reloaded.freeze(never).entry.body, BODY);
});

test("a second tab opened before finds the first tab's report", () => {
  const storage = deviceStorage();
  const [first, second] = [createOutbox(storage, "workplace"), createOutbox(storage, "workplace")];
  assert.equal(second.read().state, "empty");
  first.freeze(() => BODY);
  assert.deepEqual(second.freeze(never), { entry: { state: "pending", body: BODY }, made: false });
  first.accepted();
  assert.deepEqual(second.freeze(never).entry, { state: "sent" });
});

test("two surveys have two outboxes", () => {
  const storage = deviceStorage();
  createOutbox(storage, "workplace").freeze(() => BODY);
  assert.equal(createOutbox(storage, "school").read().state, "empty");
});

test("after acceptance one mark is left, without body or id", () => {
  const storage = deviceStorage();
  const outbox = createOutbox(storage, "workplace");
  outbox.freeze(() => BODY);
  outbox.accepted();
  assert.deepEqual([...storage.kept], [[KEY, '{"state":"sent"}']]);
  assert.deepEqual(outbox.freeze(never).entry, { state: "sent" });
});

test("the mark can be removed, a report that may still be sent cannot", () => {
  const storage = deviceStorage();
  const outbox = createOutbox(storage, "workplace");
  assert.throws(() => outbox.removeTrace(), OutboxError);
  outbox.freeze(() => BODY);
  assert.throws(() => outbox.removeTrace(), OutboxError);
  outbox.refused(422, "");
  assert.throws(() => outbox.removeTrace(), OutboxError);
  outbox.accepted();
  outbox.removeTrace();
  assert.equal(storage.kept.size, 0);
  assert.equal(outbox.read().state, "empty");
});

test("a refused report is kept with its reason, and tried again as it is", () => {
  const storage = deviceStorage();
  const outbox = createOutbox(storage, "workplace");
  outbox.freeze(() => BODY);
  const refused = { state: "refused", body: BODY, status: 410, detail: "closed" };
  assert.deepEqual(outbox.refused(410, "closed"), refused);
  assert.deepEqual(createOutbox(storage, "workplace").read(), refused);
  assert.deepEqual(outbox.freeze(never).entry, refused);
  assert.deepEqual(outbox.retry(), { state: "pending", body: BODY });
});

test("a refusal that comes after another tab's acceptance changes nothing", () => {
  const storage = deviceStorage();
  const [first, second] = [createOutbox(storage, "workplace"), createOutbox(storage, "workplace")];
  first.freeze(() => BODY);
  second.accepted();
  assert.deepEqual(first.refused(410, ""), { state: "sent" });
});

test("nothing to refuse or to retry is a named error", () => {
  const outbox = createOutbox(deviceStorage(), "workplace");
  assert.throws(() => outbox.refused(422, ""), OutboxError);
  assert.throws(() => outbox.retry(), OutboxError);
});

test("a maker that fails leaves the outbox empty", () => {
  const outbox = createOutbox(deviceStorage(), "workplace");
  const fail = () => {
    throw new Error("no randomness");
  };
  assert.throws(() => outbox.freeze(fail), /no randomness/);
  assert.equal(outbox.read().state, "empty");
});

const denied = () => {
  throw new Error("denied");
};
const DENIALS = {
  "no storage at all": null,
  "storage that throws": { getItem: denied, setItem: denied, removeItem: denied },
  "storage that is full": { ...deviceStorage(), setItem: denied },
  "storage that forgets": { ...deviceStorage(), setItem: () => {} },
};
for (const [name, storage] of Object.entries(DENIALS)) {
  test(`with ${name} the report is held in memory, said to be not durable, never redrawn`, () => {
    const outbox = createOutbox(storage, "workplace");
    outbox.freeze(() => BODY);
    assert.equal(outbox.durable, false);
    assert.deepEqual(outbox.freeze(never).entry, { state: "pending", body: BODY });
    outbox.refused(422, "x");
    assert.equal(outbox.retry().body, BODY);
    outbox.accepted();
    assert.deepEqual(outbox.freeze(never).entry, { state: "sent" });
    outbox.removeTrace();
    assert.equal(outbox.read().state, "empty");
  });
}

const DAMAGED = [
  "",
  "{oops",
  "null",
  "1",
  "{}",
  '{"state":"pending"}',
  '{"state":"pending","body":"x"}',
  '{"state":"refused","body":7}',
  '{"state":"later"}',
  '"sent"',
];
for (const text of DAMAGED) {
  test(`damaged storage ${JSON.stringify(text)} neither crashes nor leads to a new report`, () => {
    const storage = deviceStorage();
    storage.setItem(KEY, text);
    const outbox = createOutbox(storage, "workplace");
    const unknown = { state: "refused", body: "", status: 0, detail: "" };
    assert.deepEqual(outbox.read(), unknown);
    assert.deepEqual(outbox.freeze(never), { entry: unknown, made: false });
    assert.throws(() => outbox.retry(), OutboxError);
    outbox.removeTrace();
    assert.equal(outbox.read().state, "empty");
  });
}

/** A server that records every body and answers with these statuses, then with the last for ever. */
function server(...statuses) {
  const bodies = [];
  const fetch = async (_url, { body }) => {
    bodies.push(body);
    const status = statuses[Math.min(bodies.length, statuses.length) - 1];
    if (status === 0) throw new TypeError("network");
    return new Response(status === 201 ? null : "{}", { status });
  };
  return { fetch, bodies };
}

const send = (fetch, body) =>
  sendUntilAnswered(
    () => sendReport(fetch, "/r", body),
    async () => {},
  );

test("twenty failed sends, a reload and a second tab all carry the same bytes", async () => {
  const storage = deviceStorage();
  const failures = Array(20).fill(0);
  const { fetch, bodies } = server(...failures, 500, 503, 429, 408, 425, 200, 201);
  const outbox = createOutbox(storage, "workplace");
  const { entry } = outbox.freeze(() => BODY);
  assert.deepEqual(await send(fetch, entry.body), { outcome: "accepted" });
  await send(fetch, createOutbox(storage, "workplace").freeze(never).entry.body);
  assert.equal(bodies.length, 28);
  assert.deepEqual(new Set(bodies), new Set([BODY]));
});

for (const status of [400, 403, 404, 409, 410, 413, 415, 422]) {
  test(`a server that records and answers ${status} never sees other bytes`, async () => {
    const storage = deviceStorage();
    const { fetch, bodies } = server(status);
    const outbox = createOutbox(storage, "workplace");
    outbox.freeze(() => BODY);
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const tab = createOutbox(storage, "workplace");
      const { entry } = tab.freeze(never);
      const { outcome, detail } = await send(fetch, entry.body);
      assert.equal(outcome, "refused");
      tab.refused(status, detail);
    }
    assert.deepEqual(bodies, Array(5).fill(BODY));
  });
}
