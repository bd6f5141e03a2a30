/** A survey in a form of one's own: opening, randomizing once, and delivery. */

import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { test } from "node:test";
import { OpeningError, openSurvey, UnansweredError } from "../npm/index.js";
import { bytesOf, channel, definitionOf, deviceStorage, question, sha256 } from "./support.js";

const SERVER = "https://survey.example/s/workplace";

/** A device that answers with a definition, and to reports with these statuses in turn. */
function deviceWith(bytes, statuses = [201], storage = deviceStorage()) {
  const bodies = [];
  const pauses = [];
  const fetch = async (url, { body } = {}) => {
    if (body === undefined) return new Response(bytes, { status: bytes ? 200 : 404 });
    bodies.push([url, body]);
    const status = statuses.shift();
    if (status === 0) throw new TypeError("network");
    return new Response("{}", { status });
  };
  const wait = async (seconds) => void pauses.push(seconds);
  return { crypto: webcrypto, fetch, storage, locks: undefined, wait, bodies, pauses };
}

const linkTo = (bytes) => `${SERVER}#d=${sha256(bytes)}`;

const BYTES = bytesOf(
  definitionOf([question("a", channel(3, 3, 1)), question("b", channel(2, 3, 1))]),
);

test("a link without a complete hash, or with another one, opens nothing", async () => {
  const obstacles = {
    "not a link": "damaged_link",
    [SERVER]: "no_hash",
    [`${SERVER}#d=12`]: "damaged_link",
    [`${SERVER}#d=${"0".repeat(64)}`]: "other_definition",
    [linkTo(BYTES).replace("workplace", "another")]: "malformed",
    [linkTo(BYTES).replace("/s/", "/t/")]: "missing",
  };
  for (const [link, obstacle] of Object.entries(obstacles)) {
    await assert.rejects(openSurvey(link, deviceWith(BYTES)), (error) => {
      assert.ok(error instanceof OpeningError && error.message !== "");
      assert.equal(error.obstacle, obstacle, link);
      return true;
    });
  }
  const missing = openSurvey(linkTo(BYTES), deviceWith(null));
  await assert.rejects(missing, (error) => error.obstacle === "missing");
});

test("a report is frozen before it is sent, and every attempt sends its bytes", async () => {
  const device = deviceWith(BYTES, [0, 503, 201]);
  const survey = await openSurvey(linkTo(BYTES), device);
  const reasons = [];
  const entry = await survey.submit({ a: 1, b: 0 }, (_, reason) => reasons.push(reason));
  assert.deepEqual(entry, { state: "sent" });
  assert.deepEqual(reasons, ["network", "busy"]);
  assert.deepEqual(device.pauses, [2, 5]);
  assert.equal(device.bodies.length, 3);
  assert.equal(new Set(device.bodies.map(String)).size, 1);
  const [[url, body]] = device.bodies;
  assert.equal(url, `${SERVER}/reports`);
  assert.equal(body.length, survey.definition.report_bytes);
  assert.deepEqual([...device.storage.entries], [[`survey-report:${SERVER}`, '{"state":"sent"}']]);
});

test("a device sends the report that it has stored instead of a second one", async () => {
  const storage = deviceStorage();
  const first = deviceWith(BYTES, [409], storage);
  const survey = await openSurvey(linkTo(BYTES), first);
  assert.equal((await survey.submit({ a: 0, b: 0 })).state, "refused");
  survey.outbox.retry();
  const second = deviceWith(BYTES, [201], storage);
  const again = await openSurvey(linkTo(BYTES), second);
  assert.deepEqual(await again.submit({ a: 2, b: 1 }), { state: "sent" });
  assert.deepEqual(second.bodies, first.bodies);
  assert.deepEqual(await again.submit({ a: 2, b: 1 }), { state: "sent" });
  assert.equal(second.bodies.length, 1);
});

test("a report is sent where tabs can take turns, and where the browser denies that", async () => {
  for (const request of [(_, action) => action(), () => Promise.reject(new Error("denied"))]) {
    const device = { ...deviceWith(BYTES), locks: { request } };
    const survey = await openSurvey(linkTo(BYTES), device);
    assert.deepEqual(await survey.submit({ a: 1, b: 0 }), { state: "sent" });
    assert.equal(device.bodies.length, 1);
  }
});

test("a missing answer is an error before anything is drawn or stored", async () => {
  const bytes = bytesOf(definitionOf([question("a", channel(3, 3, 1), { optOut: "" })]));
  const device = deviceWith(bytes);
  const survey = await openSurvey(linkTo(bytes), device);
  assert.throws(() => survey.submit({}), UnansweredError);
  assert.equal(survey.outbox.read().state, "empty");
  assert.deepEqual(device.bodies, []);
});

test("an invitation and its group are part of the report", async () => {
  const invited = { access: "invitation", report_bytes: 600 };
  const bytes = bytesOf(definitionOf([question("a", channel(3, 3, 1))], invited));
  const device = deviceWith(bytes);
  const token = `${"A".repeat(42)}A`;
  const survey = await openSurvey(`${linkTo(bytes)}&i=${token}&s=night+shift`, device);
  await survey.submit({});
  const { invitation, stratum } = JSON.parse(device.bodies[0][1]);
  assert.deepEqual([invitation, stratum], [token, "night shift"]);
  await assert.rejects(openSurvey(linkTo(bytes), device), { obstacle: "invitation_needed" });
});

test("a shared device stores nothing", async () => {
  const bytes = bytesOf(definitionOf([question("a", channel(3, 3, 1))], { kiosk: true }));
  const device = deviceWith(bytes);
  const survey = await openSurvey(linkTo(bytes), device);
  assert.deepEqual(await survey.submit({ a: 1 }), { state: "sent" });
  assert.equal(device.storage.entries.size, 0);
});
