import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeBase64url, encodeBase64url, perturb, reportedOptions } from "../src/mechanism.js";
import { channel, everyRun, replay } from "./support.js";

const GRR = [
  channel(2, 3, 1),
  channel(2, 2, 1),
  channel(2, 7510, 2490),
  channel(3, 6, 1),
  channel(3, 3, 1),
  channel(4, 14, 5),
  channel(5, 12, 1),
  channel(6, 19, 7),
  channel(7, 27182, 10000),
];

for (const one of GRR) {
  const { k, T, L } = one;
  test(`all draws of k=${k} T=${T} L=${L} give the truth T times and each other L times`, () => {
    for (let truth = 0; truth < k; truth += 1) {
      const table = Array(k).fill(0);
      for (const { result, ranges } of everyRun((uniformBelow) =>
        perturb(one, truth, uniformBelow),
      )) {
        assert.deepEqual(ranges, [T + (k - 1) * L]);
        table[result] += 1;
      }
      assert.deepEqual(
        table,
        table.map((_, option) => (option === truth ? T : L)),
      );
    }
  });
}

const SUBSETS = [
  channel(3, 2, 1, 2),
  channel(4, 3, 1, 2),
  channel(5, 3, 2, 3),
  channel(5, 4, 1, 4),
  channel(6, 7, 3, 2),
];

/** How often each set comes out, over all sequences of draws. */
function setsDrawn(one, truth) {
  const table = new Map();
  for (const { result } of everyRun((uniformBelow) => perturb(one, truth, uniformBelow))) {
    const set = reportedOptions(one, result).join(" ");
    table.set(set, (table.get(set) ?? 0) + 1);
  }
  return table;
}

for (const one of SUBSETS) {
  const { k, d, T, L } = one;
  test(`sets of ${d} of ${k} that hold the truth come out ${T} times to ${L}`, () => {
    for (let truth = 0; truth < k; truth += 1) {
      const table = setsDrawn(one, truth);
      const holds = (set) => set.split(" ").includes(String(truth));
      const [inside, outside] = [new Set(), new Set()];
      for (const [set, count] of table) {
        assert.equal(set.split(" ").length, d);
        (holds(set) ? inside : outside).add(count);
      }
      assert.deepEqual([inside.size, outside.size], [1, 1]);
      assert.equal([...inside][0] * L, [...outside][0] * T);
    }
  });
}

test("the draws asked for depend on the channel alone", () => {
  for (const one of [...SUBSETS, ...GRR.slice(0, 6)]) {
    const seen = new Set();
    for (let truth = 0; truth < one.k; truth += 1) {
      for (const { ranges } of everyRun((uniformBelow) => perturb(one, truth, uniformBelow))) {
        seen.add(ranges.join());
      }
    }
    assert.equal(seen.size, 1);
  }
});

test("the draws are those of the specification, in its order", () => {
  const uniformBelow = replay([1, 0, 12]);
  // a = [1,2,3,4]: swap 0 and 1 -> [2,1,3,4]; keep 1; u = 12 = dT, so offset 0 stays away.
  const code = perturb(channel(5, 6, 1, 2), 4, uniformBelow);
  assert.deepEqual(uniformBelow.asked, [4, 3, 15]);
  assert.deepEqual(reportedOptions(channel(5, 6, 1, 2), code), [0, 1]);
});

test("a set is written as bits, option 0 first, at constant length", () => {
  const one = channel(12, 3, 1, 3);
  // Offsets 1, 2, 3; the last yields to 0: the set {9, 10, 11} is 00000000 01110000.
  assert.equal(perturb(one, 9, replay([0, 0, 0, 0])), "AHA");
  assert.deepEqual(reportedOptions(one, "AHA"), [9, 10, 11]);
});

for (const truth of [-1, 2, 0.5, Number.NaN, undefined, "1"]) {
  test(`a truth of ${truth} is refused before any draw`, () => {
    assert.throws(() => perturb(channel(2, 3, 1), truth, replay([])), RangeError);
  });
}

for (const [T, L] of [
  [1, 1],
  [1, 3],
  [3, 0],
  [Number.NaN, 1],
]) {
  test(`a channel of T = ${T}, L = ${L} is never run`, () => {
    assert.throws(() => perturb(channel(2, T, L), 0, replay([])), RangeError);
  });
}

for (const kind of ["bit_vector", "constructor", "", undefined]) {
  test(`a channel of kind ${kind} is refused`, () => {
    assert.throws(() => perturb({ ...channel(2, 3, 1), kind }, 0, replay([])), RangeError);
  });
}

for (const [its, codes] of [
  [channel(3, 6, 1), [3, -1, 0.5, 1e300, null, "AQ", "1", [1], {}, { toString: 1 }, undefined]],
  [channel(12, 3, 1, 3), [7, "", "A", "AH", "AA", "__8", "A+A", "AHAA!", null, ["AHA"], undefined]],
]) {
  for (const code of codes) {
    test(`${JSON.stringify(code)} is no report of ${its.d} of ${its.k}`, () => {
      assert.throws(() => reportedOptions(its, code), RangeError);
    });
  }
}

test("bytes are written as Node writes them and read back", () => {
  for (let length = 0; length < 40; length += 1) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 89 + length * 37) & 255);
    const text = encodeBase64url(bytes);
    assert.equal(text, Buffer.from(bytes).toString("base64url"));
    assert.deepEqual(decodeBase64url(text), bytes);
  }
});

test("a character outside the alphabet is refused", () => {
  assert.throws(() => decodeBase64url("AA+A"), RangeError);
});
