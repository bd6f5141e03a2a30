import assert from "node:assert/strict";
import { test } from "node:test";
import { stoppingGaps } from "../src/completeness.js";
import { channel, question } from "./support.js";

const OPTIONAL = question("a", channel(3, 3, 1));
const REQUIRED = question("b", channel(2, 3, 1), { optOut: "" });
const ids = (gaps) => gaps.map((gap) => gap.question.id);

test("an untouched question with an opt-out stops the page once", () => {
  const nudged = new Set();
  assert.deepEqual(stoppingGaps([OPTIONAL], {}, nudged), [
    { question: OPTIONAL, optOut: "Option 2" },
  ]);
  assert.deepEqual(stoppingGaps([OPTIONAL], {}, nudged), []);
});

test("a question without opt-out stops the page until it is answered", () => {
  const nudged = new Set();
  for (let i = 0; i < 3; i += 1) assert.deepEqual(ids(stoppingGaps([REQUIRED], {}, nudged)), ["b"]);
  assert.deepEqual(stoppingGaps([REQUIRED], { b: 0 }, nudged), []);
});

test("both are listed together, in the page's order", () => {
  assert.deepEqual(ids(stoppingGaps([OPTIONAL, REQUIRED], {}, new Set())), ["a", "b"]);
});

test("the first option counts as an answer", () => {
  assert.deepEqual(stoppingGaps([OPTIONAL], { a: 0 }, new Set()), []);
});
