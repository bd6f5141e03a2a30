import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeBase64url,
  encodeBase64url,
  longestCode,
  perturb,
  reportedOptions,
  sampledBits,
} from "../src/mechanism.js";
import { ratio } from "../src/privacy-loss.js";
import { tableReports, tableRow, tableTruths } from "../src/weight-table.js";
import { bits, channel, everyRun, halfSpace, replay, table } from "./support.js";

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

for (const design of GRR) {
  const { k, T, L } = design;
  test(`all draws of k=${k} T=${T} L=${L} give the truth T times and each other L times`, () => {
    for (let truth = 0; truth < k; truth += 1) {
      const table = Array(k).fill(0);
      for (const { result, ranges } of everyRun((uniformBelow) =>
        perturb(design, truth, uniformBelow),
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
function setsDrawn(design, truth) {
  const table = new Map();
  for (const { result } of everyRun((uniformBelow) => perturb(design, truth, uniformBelow))) {
    const set = reportedOptions(design, result).join(" ");
    table.set(set, (table.get(set) ?? 0) + 1);
  }
  return table;
}

for (const design of SUBSETS) {
  const { k, d, T, L } = design;
  test(`sets of ${d} of ${k} that contain the truth have weight ${T} times to ${L}`, () => {
    for (let truth = 0; truth < k; truth += 1) {
      const table = setsDrawn(design, truth);
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

test("the ranges of the draws depend only on the channel", () => {
  for (const design of [...SUBSETS, ...GRR.slice(0, 6)]) {
    const seen = new Set();
    for (let truth = 0; truth < design.k; truth += 1) {
      for (const { ranges } of everyRun((uniformBelow) => perturb(design, truth, uniformBelow))) {
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
  assert.deepEqual(uniformBelow.ranges, [4, 3, 15]);
  assert.deepEqual(reportedOptions(channel(5, 6, 1, 2), code), [0, 1]);
});

test("a set is written as bits, option 0 first, at constant length", () => {
  const design = channel(12, 3, 1, 3);
  // Offsets 1, 2, 3; the last yields to 0: the set {9, 10, 11} is 00000000 01110000.
  assert.equal(perturb(design, 9, replay([0, 0, 0, 0])), "AHA");
  assert.deepEqual(reportedOptions(design, "AHA"), [9, 10, 11]);
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

const VECTORS = [
  bits(1, 3, 1),
  bits(3, 3, 1, { s: 1 }),
  bits(3, 2, 1, { s: 2, alone: 1 }),
  bits(4, 2, 1, { s: 1, alone: 2 }),
  bits(4, 2, 1, { s: 1, alone: 3 }),
  bits(2, 3, 1, { sampled: 1 }),
  bits(3, 2, 1, { sampled: 2 }),
  bits(4, 2, 1, { s: 1, alone: 2, sampled: 2 }),
  bits(4, 3, 1, { s: 3, alone: 1, sampled: 1 }),
];

/** Every truth that a bit vector takes. */
function tickPatterns(design) {
  const all = Array.from({ length: 2 ** design.m }, (_, mask) =>
    Array.from({ length: design.m }, (_, bit) => (mask >> bit) & 1),
  );
  const together = (ticks) =>
    ticks.slice(0, design.m - design.alone).reduce((n, tick) => n + tick, 0);
  const apart = (ticks) => ticks.slice(design.m - design.alone).reduce((n, tick) => n + tick, 0);
  return all.filter((ticks) =>
    apart(ticks) === 0 ? together(ticks) <= design.s : apart(ticks) === 1 && together(ticks) === 0,
  );
}

/** How often each code comes out, over all sequences of draws; all ask the same. */
function codesDrawn(design, truth) {
  const counts = new Map();
  const rangeLists = new Set();
  for (const { result, ranges } of everyRun((draw) => perturb(design, truth, draw))) {
    counts.set(result, (counts.get(result) ?? 0) + 1);
    rangeLists.add(ranges.join());
  }
  assert.equal(rangeLists.size, 1);
  return { counts, ranges: [...rangeLists][0] };
}

/** n (n-1) ... (n-r+1) */
const falling = (n, r) => (r === 0 ? 1 : n * falling(n - 1, r - 1));
const choose = (n, r) => falling(n, r) / falling(r, r);

for (const design of VECTORS) {
  const { m, s, alone, sampled, T, L } = design;
  test(`all draws of ${sampled} of ${m} bits, s=${s}, alone=${alone} are the exact probabilities`, () => {
    const runs = (sampled < m ? falling(m, sampled) : 1) * (T + L) ** sampled;
    for (const truth of tickPatterns(design)) {
      const { counts } = codesDrawn(design, truth);
      assert.equal(counts.size, choose(m, sampled) * 2 ** sampled);
      for (const [code, count] of counts) {
        const [covered, ones] = [sampledBits(design, code), reportedOptions(design, code)];
        const weights = covered.map((bit) => (Number(ones.includes(bit)) === truth[bit] ? T : L));
        const kept = weights.reduce((product, weight) => product * weight, 1);
        assert.equal(count * choose(m, sampled) * (T + L) ** sampled, runs * kept);
      }
    }
  });

  test(`the ratio of ${sampled} of ${m} bits, s=${s}, alone=${alone} is the largest possible`, () => {
    const tables = tickPatterns(design).map((truth) => codesDrawn(design, truth).counts);
    const worst = [...tables[0].keys()].map((code) => {
      const seen = tables.map((counts) => counts.get(code));
      return Math.max(...seen) / Math.min(...seen);
    });
    const { numerator, denominator } = ratio(design);
    assert.equal(Math.max(...worst), Number(numerator) / Number(denominator));
  });

  test(`the draws of ${sampled} of ${m} bits, s=${s}, alone=${alone} never depend on the ticks`, () => {
    const rangeLists = tickPatterns(design).map((truth) => codesDrawn(design, truth).ranges);
    assert.equal(new Set(rangeLists).size, 1);
  });
}

const HALF_SPACES = [
  halfSpace(1, 1, 3, 1),
  halfSpace(2, 2, 2, 3),
  halfSpace(3, 2, 3, 2),
  halfSpace(4, 3, 2, 1, { s: 2, alone: 1 }),
  halfSpace(5, 4, 1, 2, { s: 3, alone: 2 }),
];

for (const design of HALF_SPACES) {
  const { m, alone, agreements, near, far } = design;
  test(`all draws of ${m} bits, ${agreements} right with weight ${near}, are the exact probabilities`, () => {
    const size = tickPatterns({ m, s: m, alone: 0 }).filter(
      (right) => right.reduce((n, bit) => n + bit, 0) >= agreements,
    ).length;
    const others = 2 ** m - size;
    for (const truth of tickPatterns(design)) {
      const { counts, ranges } = codesDrawn(design, truth);
      assert.equal(ranges, [near + far, size, others].join());
      assert.equal(counts.size, 2 ** m);
      for (const [code, count] of counts) {
        const ones = reportedOptions(design, code);
        const right = truth.filter((tick, bit) => tick === Number(ones.includes(bit))).length;
        assert.equal(count, right >= agreements ? near * others : far * size);
      }
    }
    const { numerator, denominator } = ratio(design);
    assert.equal(numerator * BigInt(far * size), denominator * BigInt(near * others));
  });

  test(`${m} bits with ${alone} alone, written as bits, have the length of the longest code`, () => {
    const code = perturb(design, Array(m).fill(0), () => 0);
    assert.equal(code.length, longestCode(design).length);
  });
}

for (const change of [{ near: 1, far: 4 }, { far: 0 }, { near: 0 }, { s: 1.5 }, { alone: "1" }]) {
  test(`a half-space with ${JSON.stringify(change)} is never run`, () => {
    const broken = { ...halfSpace(3, 2, 3, 1), ...change };
    assert.throws(() => perturb(broken, [0, 0, 0], () => 0), RangeError);
  });
}

for (const code of ["", "A", "_w", "AAA", "AA==", 0, null, ["AA"], undefined]) {
  test(`${JSON.stringify(code)} is no report of 5 bits together`, () => {
    assert.throws(() => reportedOptions(halfSpace(5, 4, 2, 1), code), RangeError);
  });
}

test("with 2 of 4 bits, the drawn bits come first, in the draws and in the code", () => {
  const design = bits(4, 3, 1, { sampled: 2 });
  // deck 0123: 0 <-> 2 -> 2103; 1 <-> 3 -> 2301: bits 2 and 3 are asked. Bit 2 kept, bit 3 flipped.
  const draws = replay([2, 2, 2, 3]);
  assert.equal(
    perturb(design, [0, 0, 1, 0], draws),
    Buffer.from([0b00110011]).toString("base64url"),
  );
  assert.deepEqual(draws.ranges, [4, 3, 4, 4]);
});

const LIMITED = bits(5, 3, 1, { s: 2, alone: 2 });
for (const [why, ticks] of [
  ["more than s ticks", [1, 1, 1, 0, 0]],
  ["two that stand alone", [0, 0, 0, 1, 1]],
  ["one that stands alone beside another", [0, 1, 0, 1, 0]],
  ["too few ticks", [0, 0, 0, 0]],
  ["a tick of 2", [2, 0, 0, 0, 0]],
  ["a tick of true", [true, false, false, false, false]],
  ["no ticks", 1],
  ["nothing", undefined],
]) {
  test(`a truth of ${why} is refused before any draw`, () => {
    assert.throws(() => perturb(LIMITED, ticks, replay([])), RangeError);
  });
}

for (const change of [{ sampled: 0 }, { sampled: 6 }, { sampled: undefined }, { alone: "1" }]) {
  test(`bits with ${JSON.stringify(change)} are not a channel`, () => {
    const broken = { ...LIMITED, ...change };
    assert.throws(() => perturb(broken, [0, 0, 0, 0, 0], () => 0), RangeError);
  });
}

const SAMPLED = bits(4, 3, 1, { sampled: 2 });
for (const [design, codes] of [
  [bits(5, 3, 1), ["", "A", "_w", "AAA", "AA==", "A+", 0, null, ["AA"], undefined, {}]],
  [SAMPLED, ["", "cA", "EQ", "PA", "AA", "MMA", "MP", "MA==", 3, null]],
]) {
  for (const code of codes) {
    test(`${JSON.stringify(code)} is no report of ${design.sampled} of ${design.m} bits`, () => {
      assert.throws(() => reportedOptions(design, code), RangeError);
    });
  }
}

test("a report of sampled bits names the bits it covers and their values", () => {
  assert.deepEqual(sampledBits(SAMPLED, "MQ"), [2, 3]);
  assert.deepEqual(reportedOptions(SAMPLED, "MQ"), [3]);
  assert.deepEqual(reportedOptions(SAMPLED, "MA"), []);
});

const TABLES = [
  table({ name: "window", k: 5, width: 3, stride: 1, T: 3, L: 1 }),
  table({ name: "window", k: 4, width: 2, stride: 3, T: 5, L: 2 }, 2),
  table({ name: "one_bit", R: 6, T: 3, L: 1 }, 1),
  table({ name: "by_distance", weights: [8, 4, 2, 1] }, 2),
  table(
    {
      name: "explicit",
      table: [
        [4, 3, 1],
        [1, 3, 4],
      ],
    },
    1,
  ),
  table(
    {
      name: "mixture",
      a: 2,
      first: { name: "one_bit", R: 3, T: 2, L: 1 },
      b: 3,
      second: { name: "window", k: 4, width: 2, stride: 2, T: 4, L: 1 },
    },
    1,
  ),
];
for (const design of TABLES) {
  const truths = tableTruths(design.table) + design.no_answers;
  const rows = Array.from({ length: truths }, (_, truth) => tableRow(design, truth));

  test(`all draws of the table ${design.table.name}, ${design.no_answers} are its weights`, () => {
    for (const [truth, row] of rows.entries()) {
      const drawn = row.map(() => 0);
      for (const { result } of everyRun((draw) => perturb(design, truth, draw))) drawn[result] += 1;
      assert.deepEqual(drawn, row);
    }
  });

  test(`the ratio of the table ${design.table.name}, ${design.no_answers} is the largest in a column`, () => {
    const worst = rows[0].map((_, j) => {
      const column = rows.map((row) => row[j]);
      return Math.max(...column) / Math.min(...column);
    });
    const { numerator, denominator } = ratio(design);
    assert.equal(Math.max(...worst), Number(numerator) / Number(denominator));
    assert.equal(tableReports(design.table) + design.no_answers, rows[0].length);
    assert.equal(longestCode(design), rows[0].length - 1);
  });

  test(`a report of the table ${design.table.name}, ${design.no_answers} is one of its columns`, () => {
    assert.deepEqual(reportedOptions(design, 1), [1]);
    for (const code of [rows[0].length, -1, 0.5, "1", null, undefined]) {
      assert.throws(() => reportedOptions(design, code), RangeError);
    }
  });
}

test("the ratio of a set is that of its weights", () => {
  assert.deepEqual(ratio(channel(12, 7, 2, 3)), { numerator: 7n, denominator: 2n });
});

test("no report is longer than the longest code", () => {
  const length = (code) => JSON.stringify(code).length;
  for (const design of [...VECTORS, bits(9, 3, 1), bits(9, 3, 1, { sampled: 4 })]) {
    const { counts } =
      design.m < 5 ? codesDrawn(design, Array(design.m).fill(0)) : { counts: new Map() };
    for (const code of counts.keys()) assert.equal(length(code), length(longestCode(design)));
  }
  assert.equal(longestCode(channel(12, 3, 1)), 11);
  assert.equal(longestCode(channel(12, 3, 1, 3)), "AAA");
  assert.equal(longestCode(bits(9, 3, 1)), "AAA");
  assert.equal(longestCode(bits(9, 3, 1, { sampled: 4 })), "AAAA");
});

for (const kind of ["bit_vector", "constructor", "", undefined]) {
  test(`a channel of kind ${kind} is refused`, () => {
    assert.throws(() => perturb({ ...channel(2, 3, 1), kind }, 0, replay([])), RangeError);
  });
}

for (const [design, codes] of [
  [channel(3, 6, 1), [3, -1, 0.5, 1e300, null, "AQ", "1", [1], {}, { toString: 1 }, undefined]],
  [channel(12, 3, 1, 3), [7, "", "A", "AH", "AA", "__8", "A+A", "AHAA!", null, ["AHA"], undefined]],
]) {
  for (const code of codes) {
    test(`${JSON.stringify(code)} is no report of ${design.d} of ${design.k}`, () => {
      assert.throws(() => reportedOptions(design, code), RangeError);
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
