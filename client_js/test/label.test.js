import assert from "node:assert/strict";
import { test } from "node:test";
import {
  frequencies,
  isProtectedLittle,
  leastProtected,
  oddsFactor,
  posteriorBounds,
  totalOddsFactor,
} from "../src/label.js";
import { channel, question } from "./support.js";

const ask = (...channels) => channels.map((one, i) => question(`x${i}`, one));

test("the design's own example comes out", () => {
  assert.deepEqual(frequencies(channel(2, 3, 1)), { own: "75", other: "25" });
  assert.deepEqual(frequencies(channel(3, 6, 1)), { own: "75", other: "12.5" });
  assert.equal(oddsFactor(channel(2, 3, 1)), "3");
  assert.deepEqual(posteriorBounds(channel(2, 3, 1)), { from10: 25, from50: 75 });
});

test("tenths are rounded half up", () => {
  assert.deepEqual(frequencies(channel(5, 12, 1)), { own: "75", other: "6.3" });
});

test("factors and suspicions are rounded up, against us", () => {
  assert.equal(oddsFactor(channel(5, 27_182, 10_000)), "2.8");
  assert.equal(oddsFactor(channel(5, 28, 10)), "2.8");
  assert.equal(oddsFactor(channel(5, 28_001, 10_000)), "2.9");
  assert.deepEqual(posteriorBounds(channel(3, 6, 1)), { from10: 40, from50: 86 });
});

test("the factor of all questions is the product, rounded up, its digits in groups", () => {
  assert.equal(totalOddsFactor(ask(channel(2, 3, 1), channel(2, 3, 1))), "9");
  assert.equal(totalOddsFactor(ask(channel(2, 3, 2), channel(2, 3, 2))), "3");
  assert.equal(totalOddsFactor(Array(18).fill(question("x", channel(2, 3, 1)))), "387,420,489");
});

test("the factor stays exact where a float would not", () => {
  const many = Array(12).fill(question("x", channel(2, 99_999_999, 1)));
  assert.equal(totalOddsFactor(many).replaceAll(",", ""), String(99_999_999n ** 12n));
});

test("little protection begins above 2980, exactly", () => {
  assert.equal(isProtectedLittle(ask(channel(2, 2980, 1))), false);
  assert.equal(isProtectedLittle(ask(channel(2, 29_800_001, 10_000))), true);
});

test("the least protected question has the greatest T/L, the first of equals", () => {
  const asked = ask(channel(2, 3, 1), channel(3, 6, 1), channel(9, 12, 2), channel(4, 5, 1));
  assert.equal(leastProtected(asked).id, "x1");
});
