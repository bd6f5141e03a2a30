import assert from "node:assert/strict";
import { test } from "node:test";
import { perturb } from "../src/mechanism.js";
import { createUniformBelow } from "../src/random.js";
import {
  checkRoom,
  frequencies,
  isProtectedLittle,
  leastProtected,
  makeReport,
  oddsFactor,
  posteriorBounds,
  ReportTooLongError,
  reportCodes,
  reportedLabels,
  stoppingGaps,
  totalOddsFactor,
  UnansweredError,
} from "../src/report.js";
import { channel, everyRun, known, question, replay } from "./support.js";

const ID = Uint8Array.from({ length: 16 }, (_, i) => i);
const TWO = known([question("a", channel(2, 3, 1)), question("b", channel(3, 3, 2))]);
const uniformBelow = createUniformBelow((array) => crypto.getRandomValues(array));

test("the body is the contract's, to the byte", () => {
  const body = makeReport(TWO, { a: 0, b: 1 }, replay([0, 3]), ID);
  const open =
    `{"definition":"${TWO.id}","report_id":"AAECAwQFBgcICQoLDA0ODw","stratum":"",` +
    `"codes":[0,2],"invitation":"","pad":"`;
  assert.equal(body, `${open}${".".repeat(512 - open.length - 2)}"}`);
  assert.deepEqual(reportCodes(body), [0, 2]);
});

test("over all draws, whole reports of two questions are the product of the two channels", () => {
  for (const a of [0, 1]) {
    for (const b of [0, 1, 2]) {
      const table = new Map();
      const bodies = new Map();
      for (const { result } of everyRun((draw) => makeReport(TWO, { a, b }, draw, ID))) {
        const codes = reportCodes(result).join();
        table.set(codes, (table.get(codes) ?? 0) + 1);
        bodies.set(codes, (bodies.get(codes) ?? new Set()).add(result));
      }
      for (const [codes, count] of table) {
        const [x, y] = codes.split(",").map(Number);
        assert.equal(count, (x === a ? 3 : 1) * (y === b ? 3 : 2));
        // Same codes, same bytes: id, padding and order have nothing left to tell.
        assert.equal(bodies.get(codes).size, 1);
      }
      assert.equal(table.size, 6);
    }
  }
});

test("the same codes make the same bytes, whatever the answers were", () => {
  const bodies = new Map();
  for (const a of [0, 1]) {
    for (const b of [0, 1, 2]) {
      for (const { result } of everyRun((draw) => makeReport(TWO, { a, b }, draw, ID))) {
        const codes = reportCodes(result).join();
        assert.equal(bodies.get(codes) ?? result, result);
        bodies.set(codes, result);
      }
    }
  }
  assert.equal(bodies.size, 6);
});

test("the draws asked for do not depend on the answers", () => {
  const survey = known([
    question("a", channel(2, 3, 1)),
    question("b", channel(5, 3, 1, 2)),
    question("c", channel(4, 7, 2)),
  ]);
  const seen = new Set();
  for (const answers of [{}, { a: 0 }, { a: 1, b: 0, c: 3 }, { b: 4 }, { a: 0, b: 2, c: 0 }]) {
    const draws = replay([0, 0, 0, 0, 0]);
    makeReport(survey, answers, draws, ID);
    seen.add(draws.asked.join());
  }
  assert.deepEqual([...seen], ["4,4,3,9,13"]);
});

test("every pattern of answers and gaps makes a report of one length", () => {
  const survey = known([question("a", channel(12, 3, 1)), question("b", channel(101, 3, 1))]);
  for (const a of [undefined, 0, 9, 10, 11]) {
    for (const b of [undefined, 0, 9, 10, 99, 100]) {
      const answers = Object.fromEntries(
        Object.entries({ a, b }).filter(([, answer]) => answer !== undefined),
      );
      for (let run = 0; run < 20; run += 1) {
        assert.equal(Buffer.byteLength(makeReport(survey, answers, uniformBelow, ID)), 512);
      }
    }
  }
});

test("a survey's bytes, not its characters, are counted", () => {
  const link = { stratum: "Göteborg ✓", invitation: "" };
  const body = makeReport(TWO, { a: 0, b: 0 }, uniformBelow, ID, link);
  assert.equal(Buffer.byteLength(body), 512);
  assert.equal(JSON.parse(body).stratum, "Göteborg ✓");
});

test("an untouched question takes its opt-out", () => {
  const survey = known([question("a", channel(4, 3, 1), { optOut: "o2" })]);
  assert.deepEqual(reportCodes(makeReport(survey, {}, replay([0]), ID)), [2]);
});

test("an untouched question without opt-out is refused before any draw", () => {
  const survey = known([
    question("a", channel(2, 3, 1)),
    question("b", channel(2, 3, 1), { optOut: "" }),
  ]);
  const draws = replay([0, 0]);
  assert.throws(() => makeReport(survey, { a: 1 }, draws, ID), UnansweredError);
  assert.deepEqual(draws.asked, []);
});

test("names that every object has are no answers", () => {
  const survey = known([question("constructor", channel(2, 3, 1))]);
  assert.deepEqual(reportCodes(makeReport(survey, {}, replay([0]), ID)), [1]);
});

test("each question has draws of its own", () => {
  const draws = replay([1, 2]);
  const codes = reportCodes(makeReport(TWO, { a: 1, b: 2 }, draws, ID));
  assert.deepEqual(codes, [
    perturb(channel(2, 3, 1), 1, () => 1),
    perturb(channel(3, 3, 2), 2, () => 2),
  ]);
});

test("an id of other than 16 bytes is refused", () => {
  assert.throws(() => makeReport(TWO, {}, uniformBelow, ID.slice(1)), RangeError);
});

test("a survey whose longest report has no room is refused before it is asked", () => {
  const asked = [question("a", channel(101, 3, 1)), question("b", channel(20, 3, 1, 4))];
  const needed = JSON.stringify({
    definition: "ab".repeat(32),
    report_id: "A".repeat(22),
    stratum: "",
    codes: [100, "AAAA"],
    invitation: "",
    pad: "",
  }).length;
  checkRoom(known(asked, { report_bytes: needed }));
  assert.throws(() => checkRoom(known(asked, { report_bytes: needed - 1 })), ReportTooLongError);
});

test("what was sent is shown by its labels, and what cannot be read by none", () => {
  const [one, set] = [question("a", channel(3, 3, 1)), question("b", channel(5, 3, 1, 2))];
  assert.deepEqual(reportedLabels(one, 2), ["Option 2"]);
  assert.deepEqual(reportedLabels(set, "wA"), ["Option 0", "Option 1"]);
  for (const code of [3, -1, "wA", null, undefined, {}]) {
    assert.deepEqual(reportedLabels(one, code), []);
  }
  for (const code of [0, "", "w!", "_A", null, undefined]) {
    assert.deepEqual(reportedLabels(set, code), []);
  }
});

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
