import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createPause,
  fetchDefinition,
  sendReport,
  sendUntilAnswered,
  UnavailableError,
} from "../src/transport.js";

const answering =
  (status, { body = null, headers = {} } = {}) =>
  async () =>
    new Response(body, { status, headers });
const failing = async () => {
  throw new TypeError("network");
};
const post = (fetch) => sendReport(fetch, "/s/workplace/reports", "{}");

test("a report is posted as JSON without credentials, referrer, cache or redirects", async () => {
  let seen;
  await sendReport(
    async (...request) => {
      seen = request;
      return new Response(null, { status: 201 });
    },
    "/s/workplace/reports",
    "{}",
  );
  const [url, { signal, ...options }] = seen;
  assert.equal(url, "/s/workplace/reports");
  assert.ok(signal instanceof AbortSignal);
  assert.deepEqual(options, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: "{}",
    credentials: "omit",
    referrerPolicy: "no-referrer",
    cache: "no-store",
    redirect: "error",
    keepalive: true,
  });
});

test("only status 201 means acceptance", async () => {
  assert.deepEqual(await post(answering(201)), { outcome: "accepted" });
  for (const status of [200, 202, 204]) {
    assert.deepEqual(await post(answering(status)), {
      outcome: "later",
      seconds: 0,
      reason: "busy",
    });
  }
});

for (const status of [400, 403, 404, 409, 410, 413, 415, 422]) {
  test(`${status} is a refusal with the server's message`, async () => {
    const body = JSON.stringify({ status, detail: "codes[1] is 9" });
    const refused = { outcome: "refused", status, name: "", detail: "codes[1] is 9" };
    assert.deepEqual(await post(answering(status, { body })), refused);
  });
}

for (const body of ["<html>", "null", '{"detail":7}', ""]) {
  test(`a refusal that says ${JSON.stringify(body)} has no message`, async () => {
    assert.deepEqual(await post(answering(422, { body })), {
      outcome: "refused",
      status: 422,
      name: "",
      detail: "",
    });
  });
}

test("long messages are shortened", async () => {
  const body = JSON.stringify({ detail: "x".repeat(9999) });
  assert.equal((await post(answering(422, { body }))).detail.length, 500);
});

for (const status of [408, 425, 429, 500, 502, 503, 504]) {
  test(`${status} means later`, async () => {
    assert.deepEqual(await post(answering(status)), {
      outcome: "later",
      seconds: 0,
      reason: status === 429 ? "many" : "busy",
    });
  });
}

test("a refusal has the name that the server gives it", async () => {
  const named = async (type) =>
    (await post(answering(410, { body: JSON.stringify({ type }) }))).name;
  assert.equal(await named("urn:survey:full"), "full");
  assert.equal(await named("urn:survey:<b>"), "");
  assert.equal(await named("https://example.org/full"), "");
  assert.equal(await named(undefined), "");
});

test("no answer means later", async () => {
  assert.deepEqual(await post(failing), { outcome: "later", seconds: 0, reason: "network" });
});

const WAITS = [
  ["7", 7],
  ["0", 0],
  ["99999", 600],
  ["-3", 0],
  ["soon", 0],
  ["1e9", 0],
  ["Wed, 21 Oct 2026 07:28:00 GMT", 0],
];
for (const [text, seconds] of WAITS) {
  test(`Retry-After: ${text} waits ${seconds} seconds`, async () => {
    const later = await post(answering(503, { headers: { "Retry-After": text } }));
    assert.equal(later.seconds, seconds);
  });
}

test("waits grow to 30 seconds and never fall below what the server asks", async () => {
  const waits = [];
  const requestedSeconds = [0, 0, 0, 0, 0, 0, 0, 45, 3, 0];
  let sends = 0;
  const outcome = await sendUntilAnswered(
    async () => {
      sends += 1;
      const seconds = requestedSeconds[sends - 1];
      return sends > requestedSeconds.length
        ? { outcome: "accepted" }
        : { outcome: "later", seconds, reason: "busy" };
    },
    async (seconds, later) => void waits.push([seconds, later.reason]),
  );
  assert.deepEqual(outcome, { outcome: "accepted" });
  assert.deepEqual(
    waits,
    [2, 5, 10, 20, 30, 30, 30, 45, 30, 30].map((seconds) => [seconds, "busy"]),
  );
});

test("a refusal ends the tries", async () => {
  const refusal = { outcome: "refused", status: 422, name: "", detail: "" };
  const outcome = await sendUntilAnswered(
    async () => refusal,
    () => assert.fail("waited"),
  );
  assert.equal(outcome, refusal);
});

test("the definition's bytes are unchanged", async () => {
  const body = '{"title":"Über\\n"}';
  const bytes = await fetchDefinition(answering(200, { body }), "/s/workplace/definition.json");
  assert.equal(new TextDecoder().decode(bytes), body);
});

for (const [name, fetch, status] of [
  ["404", answering(404), 404],
  ["410", answering(410), 410],
  ["500", answering(500), 500],
  ["no answer", failing, 0],
]) {
  test(`a definition that meets ${name} is unavailable, by name`, async () => {
    await assert.rejects(
      fetchDefinition(fetch, "/x"),
      (error) => error instanceof UnavailableError && error.refusal.status === status,
    );
  });
}

/** A window whose clock moves only when a test moves it. */
function stoppedWindow() {
  const timers = new Map();
  const listeners = {};
  return {
    timers,
    listeners,
    setTimeout: (run, milliseconds) => {
      timers.set(timers.size + 1, { run, milliseconds });
      return timers.size;
    },
    clearTimeout: (id) => void timers.delete(id),
    addEventListener: (name, listener) => {
      listeners[name] = listener;
    },
  };
}

const ENDINGS = {
  "its time is over": ({ timers }) => timers.get(1).run(),
  "the network is back": ({ listeners }) => listeners.online(),
  "someone says now": (_window, pause) => pause.end(),
};
for (const [name, end] of Object.entries(ENDINGS)) {
  test(`a pause ends when ${name}`, async () => {
    const window = stoppedWindow();
    const pause = createPause(window);
    const waited = pause.begin(5);
    assert.equal(window.timers.get(1).milliseconds, 5000);
    end(window, pause);
    await waited;
    assert.equal(window.timers.size, 0);
  });
}

test("ending a pause that has not begun does nothing", () => {
  createPause(stoppedWindow()).end();
});
