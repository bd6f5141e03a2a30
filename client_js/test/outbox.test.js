import assert from "node:assert/strict";
import { test } from "node:test";
import { createEarlierSurveys, createOutbox } from "../src/outbox.js";
import { sendReport, sendUntilAnswered } from "../src/transport.js";
import { deviceStorage } from "./support.js";

const BODY = '{"codes":[1],"pad":"..."}';
const KEY = "survey-report:workplace";
const refusal = (status, detail) => ({ status, name: "", detail });
/** What a second draw would give: it must never take the place of the first. */
const OTHER = '{"codes":[2],"pad":"..."}';

test("a new outbox is empty", () => {
  assert.deepEqual(createOutbox(deviceStorage(), "workplace").read(), { state: "empty" });
});

test("a report is stored once and never changes", () => {
  const outbox = createOutbox(deviceStorage(), "workplace");
  const entry = { state: "pending", body: BODY };
  assert.deepEqual(outbox.store(BODY), entry);
  assert.deepEqual(outbox.store(OTHER), entry);
  assert.equal(outbox.durable, true);
});

test("the same bytes wait after a reload", () => {
  const storage = deviceStorage();
  createOutbox(storage, "workplace").store(BODY);
  const reloaded = createOutbox(storage, "workplace");
  assert.deepEqual(reloaded.read(), { state: "pending", body: BODY });
  assert.deepEqual(reloaded.store(OTHER).body, BODY);
});

test("a second tab finds the first tab's report", () => {
  const storage = deviceStorage();
  const [first, second] = [createOutbox(storage, "workplace"), createOutbox(storage, "workplace")];
  assert.equal(second.read().state, "empty");
  first.store(BODY);
  assert.deepEqual(second.store(OTHER), { state: "pending", body: BODY });
  first.accepted(BODY);
  assert.deepEqual(second.store(OTHER), { state: "sent" });
});

test("a report to a test run is discarded, but never a report that another tab sent or stored", () => {
  const storage = deviceStorage();
  const outbox = createOutbox(storage, "trial-1");
  outbox.store(BODY);
  assert.deepEqual(outbox.discard(OTHER), { state: "pending", body: BODY });
  assert.deepEqual(outbox.discard(BODY), { state: "empty" });
  assert.deepEqual([...storage.entries], []);
  outbox.store(BODY);
  outbox.accepted(BODY);
  assert.deepEqual(outbox.discard(BODY), { state: "sent" });
});

test("two surveys have two outboxes", () => {
  const storage = deviceStorage();
  createOutbox(storage, "workplace").store(BODY);
  assert.equal(createOutbox(storage, "school").read().state, "empty");
});

test("acceptance leaves one mark without body and id", () => {
  const storage = deviceStorage();
  const outbox = createOutbox(storage, "workplace");
  outbox.store(BODY);
  outbox.accepted(BODY);
  assert.deepEqual([...storage.entries], [[KEY, '{"state":"sent"}']]);
  assert.deepEqual(outbox.store(OTHER), { state: "sent" });
});

test("the mark can be removed, but not a report that can still be sent", () => {
  const storage = deviceStorage();
  const outbox = createOutbox(storage, "workplace");
  assert.deepEqual(outbox.removeTrace(), { state: "empty" });
  const entry = outbox.store(BODY);
  assert.deepEqual(outbox.removeTrace(), entry);
  const refused = outbox.refused(BODY, refusal(422, ""));
  assert.deepEqual(outbox.removeTrace(), refused);
  assert.deepEqual(outbox.read(), refused);
  outbox.accepted(BODY);
  assert.deepEqual(outbox.removeTrace(), { state: "empty" });
  assert.equal(storage.entries.size, 0);
  assert.equal(outbox.read().state, "empty");
});

test("a refused report stays with its reason and is sent again unchanged", () => {
  const storage = deviceStorage();
  const outbox = createOutbox(storage, "workplace");
  outbox.store(BODY);
  const refused = { state: "refused", body: BODY, ...refusal(410, "closed") };
  assert.deepEqual(outbox.refused(BODY, refusal(410, "closed")), refused);
  assert.deepEqual(createOutbox(storage, "workplace").read(), refused);
  assert.deepEqual(outbox.store(OTHER), refused);
  assert.deepEqual(outbox.retry(), { state: "pending", body: BODY });
});

test("a refusal that comes after another tab's acceptance changes nothing", () => {
  const storage = deviceStorage();
  const [first, second] = [createOutbox(storage, "workplace"), createOutbox(storage, "workplace")];
  first.store(BODY);
  second.accepted(BODY);
  assert.deepEqual(first.refused(BODY, refusal(410, "")), { state: "sent" });
});

/** Two tabs that both see a refused report. */
function twoTabs() {
  const storage = deviceStorage();
  const [first, second] = [createOutbox(storage, "workplace"), createOutbox(storage, "workplace")];
  first.store(BODY);
  first.refused(BODY, refusal(410, ""));
  assert.equal(second.read().state, "refused");
  return { storage, first, second };
}

test("trying again after another tab sent the report finds the mark", () => {
  const { storage, first, second } = twoTabs();
  second.retry();
  second.accepted(BODY);
  assert.deepEqual(first.retry(), { state: "sent" });
  assert.deepEqual([...storage.entries], [[KEY, '{"state":"sent"}']]);
});

test("a sent report stays sent whatever answer another tab gets", () => {
  const { storage, first, second } = twoTabs();
  second.accepted(BODY);
  assert.deepEqual(first.refused(BODY, refusal(422, "x")), { state: "sent" });
  assert.deepEqual(first.accepted(BODY), { state: "sent" });
  assert.deepEqual([...storage.entries], [[KEY, '{"state":"sent"}']]);
});

test("trying again while another tab tries finds the same bytes waiting", () => {
  const { first, second } = twoTabs();
  const waiting = second.retry();
  assert.deepEqual(first.retry(), waiting);
});

test("the outcome of one report never overwrites another report", () => {
  const { storage, first } = twoTabs();
  const other = '{"state":"pending","body":"{\\"codes\\":[0]}"}';
  storage.setItem(KEY, other);
  first.accepted(BODY);
  first.refused(BODY, refusal(422, ""));
  assert.equal(storage.getItem(KEY), other);
});

test("an entry of a newer page is not overwritten", () => {
  const { storage, first } = twoTabs();
  storage.setItem(KEY, "{new");
  assert.equal(first.refused(BODY, refusal(422, "")).body, "");
  assert.equal(first.accepted(BODY).body, "");
  assert.equal(storage.getItem(KEY), "{new");
});

test("removing a trace that another tab removed does nothing", () => {
  const { storage, first, second } = twoTabs();
  second.accepted(BODY);
  assert.equal(first.read().state, "sent");
  second.removeTrace();
  assert.deepEqual(first.removeTrace(), { state: "empty" });
  assert.deepEqual(first.removeTrace(), { state: "empty" });
  assert.equal(storage.entries.size, 0);
});

test("an empty outbox has nothing to try again", () => {
  assert.deepEqual(createOutbox(deviceStorage(), "workplace").retry(), { state: "empty" });
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
  test(`with ${name} the report stays in memory, is not durable, and is never made again`, () => {
    const outbox = createOutbox(storage, "workplace");
    outbox.store(BODY);
    assert.equal(outbox.durable, false);
    assert.deepEqual(outbox.store(OTHER), { state: "pending", body: BODY });
    outbox.refused(BODY, refusal(422, "x"));
    assert.equal(outbox.retry().body, BODY);
    outbox.accepted(BODY);
    assert.deepEqual(outbox.store(OTHER), { state: "sent" });
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
    const unknown = { state: "refused", body: "", ...refusal(0, "") };
    assert.deepEqual(outbox.read(), unknown);
    assert.deepEqual(outbox.store(OTHER), unknown);
    assert.deepEqual(outbox.retry(), unknown);
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
  const entry = outbox.store(BODY);
  assert.deepEqual(await send(fetch, entry.body), { outcome: "accepted" });
  await send(fetch, createOutbox(storage, "workplace").store(OTHER).body);
  assert.equal(bodies.length, 28);
  assert.deepEqual(new Set(bodies), new Set([BODY]));
});

for (const status of [400, 403, 404, 409, 410, 413, 415, 422]) {
  test(`a server that records and answers ${status} never sees other bytes`, async () => {
    const storage = deviceStorage();
    const { fetch, bodies } = server(status);
    const outbox = createOutbox(storage, "workplace");
    outbox.store(BODY);
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const tab = createOutbox(storage, "workplace");
      const entry = tab.store(OTHER);
      const { outcome, detail } = await send(fetch, entry.body);
      assert.equal(outcome, "refused");
      tab.refused(BODY, refusal(status, detail));
    }
    assert.deepEqual(bodies, Array(5).fill(BODY));
  });
}

const odds = (numerator, denominator = 1n) => ({ numerator, denominator });

test("the memory of earlier surveys is a count and a factor that is rounded up to 1, 3, 10, 30 …", () => {
  const storage = deviceStorage();
  const earlierSurveys = createEarlierSurveys(storage);
  assert.equal(earlierSurveys.read(), null);
  earlierSurveys.add(odds(27n, 10n));
  assert.deepEqual([...storage.entries], [["survey-memory", '{"surveys":1,"factor":"3"}']]);
  assert.deepEqual(earlierSurveys.add(odds(2187n)), { surveys: 2, total: odds(10_000n) });
  assert.deepEqual([...storage.entries], [["survey-memory", '{"surveys":2,"factor":"10000"}']]);
  earlierSurveys.add(odds(3n ** 200n));
  assert.deepEqual(createEarlierSurveys(storage).read(), { surveys: 3, total: odds(10n ** 30n) });
  earlierSurveys.forget();
  assert.deepEqual([...storage.entries], []);
});

test("a remembered factor is an upper bound that many surveys share", () => {
  const remembered = (/** @type {bigint} */ tenths) =>
    createEarlierSurveys(deviceStorage()).add(odds(tenths, 10n))?.total.numerator;
  const tenths = [10n, 11n, 30n, 31n, 100n, 101n, 300n, 301n, 36_000n];
  assert.deepEqual(tenths.map(remembered), [1n, 3n, 3n, 10n, 10n, 30n, 30n, 100n, 10_000n]);
});

test("a damaged memory of earlier surveys, or none, is no memory", () => {
  for (const stored of [
    "",
    "{",
    "null",
    "[]",
    '{"surveys":0,"factor":"3"}',
    '{"surveys":1.5,"factor":"3"}',
    '{"surveys":1,"factor":3}',
    '{"surveys":1,"factor":"0"}',
    '{"surveys":1,"factor":"123"}',
    '{"surveys":1,"factor":"1e9"}',
  ]) {
    const storage = deviceStorage();
    storage.setItem("survey-memory", stored);
    assert.equal(createEarlierSurveys(storage).read(), null, stored);
  }
  assert.equal(createEarlierSurveys(null).add(odds(3n)), null);
});
