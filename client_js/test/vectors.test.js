/** Python and JavaScript agree: the same channel, truth and draws give the same report. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readDefinition } from "../src/definition.js";
import { perturb } from "../src/mechanism.js";
import {
  bounds,
  frequencies,
  oddsFactor,
  posteriorBounds,
  topicRatios,
} from "../src/privacy-loss.js";
import { makeReport } from "../src/report.js";
import { digest, replay } from "./support.js";

/** The vectors of one file; a missing or empty file fails, it is never skipped. */
function vectors(name) {
  const list = JSON.parse(
    readFileSync(new URL(`../../tests/vectors/${name}`, import.meta.url), "utf8"),
  );
  assert.ok(Array.isArray(list) && list.length > 0, `${name} holds no vectors`);
  return list;
}

/** Replays draws, and checks that they were asked for with the n of the vector. */
function replaying(draws, compute) {
  const uniformBelow = replay(draws.map(([, value]) => value));
  const result = compute(uniformBelow);
  assert.deepEqual(
    uniformBelow.ranges,
    draws.map(([n]) => n),
  );
  return result;
}

test("perturb gives the report of every vector", () => {
  for (const { channel, truth, draws, report } of vectors("mechanism.json")) {
    const actual = replaying(draws, (uniformBelow) => perturb(channel, truth, uniformBelow));
    assert.equal(actual, report, JSON.stringify({ channel, truth, draws }));
  }
});

test("makeReport gives the body of every vector, from the canonical bytes", async () => {
  for (const vector of vectors("report.json")) {
    const { canonical, id, answers, drawn, draws, id_bytes, body } = vector;
    const circumstances = { stratum: "", invitation: "", drawn };
    const definition = await readDefinition(new TextEncoder().encode(canonical), { digest });
    assert.equal(definition.id, id);
    const report = replaying(draws, (uniformBelow) =>
      makeReport(definition, answers, uniformBelow, Uint8Array.from(id_bytes), circumstances),
    );
    assert.equal(report, body);
    assert.equal(Buffer.byteLength(report), definition.report_bytes);
  }
});

test("the label's numbers are those of every vector", () => {
  for (const { questions, labels, sampling, topics } of vectors("label.json")) {
    const ratios = topicRatios({ pages: [{ title: "", questions }], sampling });
    const figures = [...ratios].map(([topic, ratio]) => [
      topic,
      { odds: oddsFactor(ratio), ...posteriorBounds(ratio) },
    ]);
    assert.deepEqual(Object.fromEntries(figures), topics);
    assert.deepEqual(Object.keys(labels).sort(), questions.map(({ id }) => id).sort());
    const boundsById = bounds(questions);
    for (const question of questions) {
      const bound = boundsById.get(question.id);
      const { ownShare, otherShare } = frequencies(question);
      const label = {
        own: ownShare,
        other: otherShare,
        odds: oddsFactor(bound),
        ...posteriorBounds(bound),
      };
      assert.deepEqual(label, labels[question.id], question.id);
    }
  }
});
