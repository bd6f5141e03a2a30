import assert from "node:assert/strict";
import { test } from "node:test";
import { createUniformBelow, drawBytes, NoRandomnessError } from "../src/random.js";

const WORDS = 2 ** 32;

/** A generator that gives these words first, then zeros, and remembers the arrays it filled. */
function feeding(words) {
  const pools = [];
  let at = 0;
  const fill = (array) => {
    pools.push(array);
    for (let i = 0; i < array.length; i += 1) array[i] = words[at++] ?? 0;
  };
  return { fill, pools };
}

for (const n of [1, 2, 3, 4, 5, 7, 10, 1000, 210_000, 2 ** 31, 2 ** 31 + 1, WORDS - 1, WORDS]) {
  test(`below ${n}, words from the limit on are rejected and all others taken modulo n`, () => {
    const limit = WORDS - (WORDS % n);
    const acceptedWords = [0, 1, n - 1, n, n + 1, limit - 1].filter((word) => word < limit);
    const rejected = [limit, limit + 1, WORDS - 1].filter((word) => word >= limit && word < WORDS);
    for (const word of acceptedWords) {
      const uniformBelow = createUniformBelow(feeding([...rejected, word]).fill);
      assert.equal(uniformBelow(n), word % n);
    }
  });
}

/** Ranges with different limits, drawn in turn: every draw must use the limit of its n. */
const IN_TURN = [1000, 4, 2 ** 31 + 1, 3, 210_000, WORDS, 7, 1];
for (const order of [IN_TURN, [...IN_TURN].reverse()]) {
  test(`one generator applies the limit of every n, drawn in turn from ${order[0]}`, () => {
    const draws = [0, 1, 2].flatMap((turn) => order.map((n) => ({ n, turn })));
    const words = draws.flatMap(({ n, turn }) => {
      const limit = WORDS - (WORDS % n);
      return limit === WORDS ? [turn] : [limit, limit - 1 - turn];
    });
    const uniformBelow = createUniformBelow(feeding(words).fill);
    for (const { n, turn } of draws) {
      const limit = WORDS - (WORDS % n);
      assert.equal(uniformBelow(n), (limit === WORDS ? turn : limit - 1 - turn) % n);
    }
  });
}

test("every residue is hit by equally many accepted words", () => {
  for (let n = 1; n <= 300; n += 1) assert.equal((WORDS - (WORDS % n)) % n, 0);
});

test("a draw below 1 consumes a word like any other", () => {
  const uniformBelow = createUniformBelow(feeding([9, 5]).fill);
  assert.equal(uniformBelow(1), 0);
  assert.equal(uniformBelow(10), 5);
});

test("the pool has 1,024 words, one per draw, each wiped after use", () => {
  const { fill, pools } = feeding(Array.from({ length: 3000 }, (_, i) => i + 1));
  const uniformBelow = createUniformBelow(fill);
  for (let i = 0; i < 1023; i += 1) uniformBelow(WORDS);
  assert.deepEqual([pools.length, pools[0].length], [1, 1024]);
  assert.deepEqual([...pools[0]].slice(0, 1023), Array(1023).fill(0));
  assert.equal(uniformBelow(WORDS), 1024);
  assert.equal(uniformBelow(WORDS), 1025);
  assert.equal(pools.length, 2);
});

test("wipe clears what is left, and the next draw uses fresh words", () => {
  const { fill, pools } = feeding(Array.from({ length: 3000 }, (_, i) => i + 1));
  const uniformBelow = createUniformBelow(fill);
  uniformBelow(WORDS);
  uniformBelow.wipe();
  assert.ok(pools[0].every((word) => word === 0));
  assert.equal(uniformBelow(WORDS), 1025);
});

for (const n of [0, -1, 1.5, Number.NaN, WORDS + 1, Number.POSITIVE_INFINITY, "2"]) {
  test(`a range of ${JSON.stringify(n)} is refused`, () => {
    assert.throws(() => createUniformBelow(feeding([]).fill)(n), RangeError);
  });
}

test("without a generator there is a named error, never another source", () => {
  assert.throws(() => createUniformBelow(undefined), NoRandomnessError);
  assert.throws(() => drawBytes(undefined, 16), NoRandomnessError);
});

test("a generator that throws gives a named error at every draw", () => {
  const uniformBelow = createUniformBelow(() => {
    throw new Error("out of entropy");
  });
  assert.throws(() => uniformBelow(2), NoRandomnessError);
  assert.throws(() => uniformBelow(2), NoRandomnessError);
});

test("drawn bytes are the generator's, all of them", () => {
  for (const first of [0, 1, 128, 240]) {
    const bytes = Array.from({ length: 16 }, (_, i) => first + i);
    assert.deepEqual([...drawBytes(feeding(bytes).fill, 16)], bytes);
  }
});
