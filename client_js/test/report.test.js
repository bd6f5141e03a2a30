import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isOpen,
  patterns,
  questionGroups,
  questions,
  sampledCounts,
  shownPages,
  stoppingGaps,
  UnansweredError,
} from "../src/answers.js";
import { perturb } from "../src/mechanism.js";
import {
  bounds,
  frequencies,
  groupBounds,
  leastProtected,
  oddsFactor,
  posteriorBounds,
  provesNothing,
  questionStrength,
  ratio,
  reportStrength,
  totalRatio,
} from "../src/privacy-loss.js";
import { createUniformBelow } from "../src/random.js";
import {
  checkRoom,
  drawQuestions,
  makeReport,
  ReportTooLongError,
  readCode,
  reportCodes,
  saysAnswers,
} from "../src/report.js";
import {
  amount,
  bits,
  channel,
  definitionWithId,
  everyRun,
  halfSpace,
  itemQuestions,
  jointQuestions,
  pickSome,
  question,
  replay,
  table,
} from "./support.js";

/** Return the factor of a whole report. @param {Parameters<typeof totalRatio>[0]} survey */
const totalFactor = (survey) => oddsFactor(totalRatio(survey));

/** Return the id of the least protected question; of a matrix, that of its first row. */
const weakestOf = (list) => leastProtected(groupBounds(questionGroups(list))).question.id;

const ID = Uint8Array.from({ length: 16 }, (_, i) => i);
const TWO = definitionWithId([question("a", channel(2, 3, 1)), question("b", channel(3, 3, 2))]);
const uniformBelow = createUniformBelow((array) => crypto.getRandomValues(array));

test("the body follows the protocol byte for byte", () => {
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

test("over all draws, a joint response is exactly its channel over all combinations", () => {
  const survey = definitionWithId([...jointQuestions([2, 3], 9, 2), TWO.pages[0].questions[0]]);
  for (const [j0, j1] of [0, 1].flatMap((a) => [0, 1, 2].map((b) => [a, b]))) {
    const table = new Map();
    for (const { result } of everyRun((draw) => makeReport(survey, { j0, j1, a: 1 }, draw, ID))) {
      const codes = reportCodes(result).slice(0, 2).join();
      table.set(codes, (table.get(codes) ?? 0) + 1);
    }
    assert.equal(table.size, 6);
    // The other question multiplies every count by its total, 3 + 1.
    for (const [codes, count] of table) {
      assert.equal(count, 4 * (codes === `${j0},${j1}` ? 9 : 2));
    }
  }
});

test("over all draws, yes/no questions in a half-space are exactly its channel", () => {
  // Of the 8 vectors, 4 agree with the truth in two or three bits: T/L = (3*4)/(1*4) = 3.
  const survey = definitionWithId(itemQuestions(halfSpace(3, 2, 3, 1), 5, 3));
  for (const number of Array(8).keys()) {
    const truth = [number >> 2, (number >> 1) & 1, number & 1];
    const answers = Object.fromEntries(truth.map((bit, i) => [`j${i}`, bit]));
    const table = new Map();
    for (const { result } of everyRun((draw) => makeReport(survey, answers, draw, ID))) {
      const codes = reportCodes(result).join();
      table.set(codes, (table.get(codes) ?? 0) + 1);
    }
    assert.equal(table.size, 8);
    for (const [codes, count] of table) {
      const right = codes.split(",").filter((code, i) => Number(code) === truth[i]).length;
      // One of the three draws chooses near or far; the two others choose one vector of each.
      assert.equal(count, 4 * (right >= 2 ? 3 : 1));
    }
  }
  const whole = { numerator: 12n, denominator: 4n, linked: true, joint: true };
  assert.deepEqual(bounds(survey.pages.flatMap((page) => page.questions)).get("j1"), whole);
});

test("the bound of each question of a joint response is that of the whole response", () => {
  const of = bounds(jointQuestions([2, 3], 9, 2));
  const whole = { numerator: 9n, denominator: 2n, linked: true, joint: true };
  for (const id of ["j0", "j1"]) assert.deepEqual(of.get(id), whole);
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

test("the draws do not depend on the answers", () => {
  const survey = definitionWithId([
    question("a", channel(2, 3, 1)),
    question("b", channel(5, 3, 1, 2)),
    question("c", channel(4, 7, 2)),
  ]);
  const sequences = new Set();
  for (const answers of [{}, { a: 0 }, { a: 1, b: 0, c: 3 }, { b: 4 }, { a: 0, b: 2, c: 0 }]) {
    const draws = replay([0, 0, 0, 0, 0]);
    makeReport(survey, answers, draws, ID);
    sequences.add(draws.ranges.join());
  }
  assert.deepEqual([...sequences], ["4,4,3,9,13"]);
});

test("every pattern of answers and gaps makes a report of one length", () => {
  const survey = definitionWithId([
    question("a", channel(12, 3, 1)),
    question("b", channel(101, 3, 1)),
  ]);
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
  const link = { stratum: "Göteborg ✓", invitation: "", drawn: null };
  const body = makeReport(TWO, { a: 0, b: 0 }, uniformBelow, ID, link);
  assert.equal(Buffer.byteLength(body), 512);
  assert.equal(JSON.parse(body).stratum, "Göteborg ✓");
});

test("an empty question counts as its opt-out", () => {
  const survey = definitionWithId([question("a", channel(4, 3, 1), { optOut: "o2" })]);
  assert.deepEqual(reportCodes(makeReport(survey, {}, replay([0]), ID)), [2]);
});

test("a required question without an answer is refused before any draw", () => {
  const survey = definitionWithId([
    question("a", channel(2, 3, 1)),
    question("b", channel(2, 3, 1), { optOut: "" }),
  ]);
  const draws = replay([0, 0]);
  assert.throws(() => makeReport(survey, { a: 1 }, draws, ID), UnansweredError);
  assert.deepEqual(draws.ranges, []);
});

test("inherited names of objects are not answers", () => {
  const survey = definitionWithId([question("constructor", channel(2, 3, 1))]);
  assert.deepEqual(reportCodes(makeReport(survey, {}, replay([0]), ID)), [1]);
});

test("each question has its own draws", () => {
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

test("a survey whose longest report does not fit is refused at the start", () => {
  const questionList = [question("a", channel(101, 3, 1)), question("b", channel(20, 3, 1, 4))];
  const needed = JSON.stringify({
    definition: "ab".repeat(32),
    report_id: "A".repeat(22),
    stratum: "",
    codes: [100, "AAAA"],
    invitation: "",
    pad: "",
  }).length;
  checkRoom(definitionWithId(questionList, { report_bytes: needed }));
  assert.throws(
    () => checkRoom(definitionWithId(questionList, { report_bytes: needed - 1 })),
    ReportTooLongError,
  );
});

test("a report is shown by its labels, an unreadable code by none", () => {
  const [one, set] = [question("a", channel(3, 3, 1)), question("b", channel(5, 3, 1, 2))];
  assert.deepEqual(readCode(one, 2).named, ["Option 2"]);
  assert.deepEqual(readCode(set, "wA").named, ["Option 0", "Option 1"]);
  for (const code of [3, -1, "wA", null, undefined, {}]) assert.equal(readCode(one, code), null);
  for (const code of [0, "", "w!", "_A", null, undefined]) assert.equal(readCode(set, code), null);
});

test("ticks are shown by their labels, with the options that they cover", () => {
  const all = question("a", bits(5, 3, 1, { alone: 1 }));
  const some = question("b", bits(4, 3, 1, { sampled: 2, alone: 1 }));
  const patternQuestion = pickSome("c", channel(8, 3, 1), 4);
  assert.deepEqual(readCode(all, "oA").named, ["Option 0", "Option 2"]);
  assert.deepEqual(readCode(all, "AA"), { covered: [], named: [], place: null });
  assert.deepEqual(readCode(some, "MQ").covered, ["Option 2", "Option 3"]);
  assert.deepEqual(readCode(some, "MQ").named, ["Option 3"]);
  assert.deepEqual(readCode(patternQuestion, 2).named, ["Option 0", "Option 1"]);
  assert.deepEqual(readCode(patternQuestion, 7).named, ["Option 3"]);
  assert.equal(readCode(patternQuestion, 8), null);
});

test("a table's report is an option or a number", () => {
  const scale = question("a", table({ name: "by_distance", weights: [8, 4, 2, 1] }, 1));
  const hours = amount("b", table({ name: "window", k: 5, width: 3, stride: 1, T: 3, L: 1 }, 2));
  assert.deepEqual(readCode(scale, 3).named, ["Option 3"]);
  assert.deepEqual(readCode(scale, 4).named, ["Option 4"]);
  assert.deepEqual(readCode(hours, 6), { covered: [], named: [], place: { at: 6, of: 7 } });
  assert.deepEqual(readCode(hours, 7).named, ["Option 0"]);
  assert.deepEqual(readCode(hours, 8).named, ["Option 1"]);
  assert.equal(readCode(hours, 9), null);
});

test("patterns follow the order of their bitmask, then come the exclusive options", () => {
  const shape = (options, alone, ticks) =>
    pickSome("a", channel(8, 3, 1), options, { alone, ticks });
  assert.deepEqual(patterns(shape(4, 1, 3)), [
    [0],
    [1],
    [0, 1],
    [2],
    [0, 2],
    [1, 2],
    [0, 1, 2],
    [3],
  ]);
  assert.deepEqual(patterns(shape(5, 2, 2)), [[0], [1], [0, 1], [2], [0, 2], [1, 2], [3], [4]]);
  const masks = patterns(shape(11, 1, 10)).slice(0, -1);
  assert.deepEqual(
    masks.map((pattern) => pattern.reduce((mask, option) => mask + 2 ** option, 0)),
    Array.from({ length: 1023 }, (_, i) => i + 1),
  );
});

/** Return the code of a one-question report whose draws all keep the truth. */
function truthIn(candidate, answers) {
  const draws = (n) => (candidate.channel.kind === "weight_table" ? n - 1 : 0);
  return reportCodes(makeReport(definitionWithId([candidate]), answers, draws, ID))[0];
}

test("ticks become bits, or the index of their pattern", () => {
  const vector = question("a", bits(5, 3, 1, { alone: 2 }));
  const patternQuestion = pickSome("a", channel(8, 3, 1), 4);
  assert.equal(truthIn(vector, { a: [0, 2] }), "oA");
  assert.equal(truthIn(vector, { a: [3] }), "EA");
  assert.equal(truthIn(vector, {}), "CA");
  assert.equal(truthIn(vector, { a: [] }), "CA");
  assert.deepEqual(
    [[0], [0, 1], [0, 1, 2], [3], []].map((a) => truthIn(patternQuestion, { a })),
    [0, 2, 6, 7, 7],
  );
});

test("impossible ticks are refused before any draw", () => {
  const vector = question("a", bits(5, 3, 1, { s: 2, alone: 2 }));
  const patternQuestion = pickSome("a", channel(8, 3, 1), 4);
  for (const a of [
    [0, 1, 2],
    [3, 4],
    [0, 3],
  ]) {
    assert.throws(() => makeReport(definitionWithId([vector]), { a }, replay([]), ID), RangeError);
  }
  for (const a of [[0, 3], [1, 0], [9]]) {
    assert.throws(
      () => makeReport(definitionWithId([patternQuestion]), { a }, replay([]), ID),
      RangeError,
    );
  }
});

test("a number is its grid point, and no answer is an index after the grid", () => {
  const hours = amount("a", table({ name: "by_distance", weights: [90, 2, 1] }, 2));
  const top = (a) => truthIn(hours, a === undefined ? {} : { a });
  // The last draw of each row is the last report: "prefer not to say".
  assert.deepEqual([0, 2, 3, 4, undefined].map(top), [4, 4, 4, 4, 4]);
  const draws = [];
  for (const answers of [{ a: 0 }, { a: 2 }, { a: 4 }, {}])
    makeReport(definitionWithId([hours]), answers, (n) => draws.push(n) && 0, ID);
  assert.equal(new Set(draws).size, 1);
  assert.throws(() => makeReport(definitionWithId([hours]), { a: 5 }, replay([]), ID), RangeError);
});

const YES_NO = question("work", channel(3, 3, 1), { optOut: "o2" });
const HIDDEN = question("night", channel(4, 3, 1), {
  optOut: "o3",
  not_applicable: "o2",
  ask_if: { question: "work", options: ["o0"] },
});
const DEEPER = question("often", channel(4, 3, 1), {
  optOut: "o3",
  not_applicable: "o2",
  ask_if: { question: "night", options: ["o0", "o3"] },
});
const SKIPS = definitionWithId([YES_NO, HIDDEN, DEEPER], { allow_skip_logic: true });
/** Draws of 0 keep every truth. */
const codesWithoutRandomization = (definition, answers, circumstances) =>
  reportCodes(makeReport(definition, answers, () => 0, ID, circumstances));
const shownIds = (...of) => shownPages(...of).map((page) => page.questions.map(({ id }) => id));

test("a hidden question counts as 'does not apply'", () => {
  assert.deepEqual(codesWithoutRandomization(SKIPS, { work: 0, night: 1, often: 0 }), [0, 1, 2]);
  assert.deepEqual(codesWithoutRandomization(SKIPS, { work: 1, night: 0, often: 0 }), [1, 2, 2]);
  assert.deepEqual(codesWithoutRandomization(SKIPS, { work: 0, night: 0, often: 1 }), [0, 0, 1]);
  assert.deepEqual(codesWithoutRandomization(SKIPS, {}), [2, 2, 2]);
});

test("an untouched question counts as its opt-out for those that depend on it", () => {
  assert.deepEqual(codesWithoutRandomization(SKIPS, { work: 0 }), [0, 3, 3]);
});

test("pages with the questions to show follow the answers; pages without stay, empty", () => {
  assert.deepEqual(shownIds(SKIPS, {}, null), [["work"], [], []]);
  assert.deepEqual(shownIds(SKIPS, { work: 0 }, null), [["work"], ["night"], ["often"]]);
  assert.deepEqual(shownIds(SKIPS, { work: 0, night: 1 }, null), [["work"], ["night"], []]);
  assert.deepEqual(shownIds(SKIPS, { work: 1, night: 0 }, null), [["work"], [], []]);
});

test("a question can depend on a tick", () => {
  const ticks = question("work", bits(4, 3, 1, { alone: 1 }));
  const survey = definitionWithId([ticks, HIDDEN], { allow_skip_logic: true });
  assert.deepEqual(shownIds(survey, { work: [0, 2] }, null), [["work"], ["night"]]);
  assert.deepEqual(shownIds(survey, { work: [1, 2] }, null), [["work"], []]);
});

test("a required question without an answer hides the questions that depend on it", () => {
  const survey = definitionWithId([{ ...YES_NO, opt_out: "" }, HIDDEN], { allow_skip_logic: true });
  assert.deepEqual(shownIds(survey, {}, null), [["work"], []]);
  assert.throws(() => codesWithoutRandomization(survey, {}), UnansweredError);
});

test("every path makes the same draws and a report of the same length", () => {
  const traces = new Set();
  for (const work of [undefined, 0, 1, 2]) {
    for (const night of [undefined, 0, 1, 2, 3]) {
      const draws = replay([0, 0, 0]);
      const answers = Object.entries({ work, night }).filter(([, answer]) => answer !== undefined);
      const body = makeReport(SKIPS, Object.fromEntries(answers), draws, ID);
      traces.add(`${draws.ranges} ${body.length} ${Object.keys(JSON.parse(body))}`);
    }
  }
  assert.equal(traces.size, 1);
});

const SAMPLED = definitionWithId(
  ["a", "b", "c", "d"].map((id) => question(id, channel(3, 3, 1))),
  { sampling: { draw: 2, groups: [["a"], ["b", "c"], ["d"]] } },
);

test("whole groups of questions are drawn, each set equally often", () => {
  const counts = new Map();
  for (const { result, ranges } of everyRun((draw) => drawQuestions(SAMPLED, draw))) {
    assert.deepEqual(ranges, [3, 2]);
    const drawn = [...result].sort().join("");
    counts.set(drawn, (counts.get(drawn) ?? 0) + 1);
  }
  assert.deepEqual(Object.fromEntries(counts), { abc: 2, ad: 2, bcd: 2 });
  assert.equal(drawQuestions(TWO, replay([])), null);
});

test("a question that was not drawn is hidden, has code null and needs no draw", () => {
  const circumstances = { stratum: "", invitation: "", drawn: ["d", "b", "c"] };
  const draws = replay([0, 0, 0]);
  const body = makeReport(SAMPLED, { a: 0, b: 1, c: 2, d: 0 }, draws, ID, circumstances);
  assert.deepEqual(reportCodes(body), [null, 1, 2, 0]);
  assert.equal(draws.ranges.length, 3);
  assert.deepEqual(shownIds(SAMPLED, {}, circumstances.drawn), [["b"], ["c"], ["d"]]);
});

for (const drawn of [null, [], ["a"], ["a", "b"], ["a", "b", "d"], ["a", "b", "c", "d"]]) {
  test(`questions drawn as ${JSON.stringify(drawn)} are refused`, () => {
    const circumstances = { stratum: "", invitation: "", drawn };
    const all = { a: 0, b: 0, c: 0, d: 0 };
    assert.throws(() => makeReport(SAMPLED, all, replay([]), ID, circumstances), RangeError);
  });
}

test("a survey without sampling refuses drawn questions", () => {
  const circumstances = { stratum: "", invitation: "", drawn: ["a"] };
  assert.throws(() => makeReport(TWO, { a: 0, b: 0 }, replay([]), ID, circumstances), RangeError);
});

test("the longest code of every kind must fit", () => {
  const questionList = [
    question("a", bits(17, 3, 1)),
    question("b", bits(9, 3, 1, { sampled: 3 })),
    question("c", table({ name: "window", k: 80, width: 30, stride: 1, T: 3, L: 1 }, 1)),
    question("d", channel(3, 3, 1)),
  ];
  const bytes = (codes) =>
    JSON.stringify({
      definition: "ab".repeat(32),
      report_id: "A".repeat(22),
      stratum: "",
      codes,
      invitation: "",
      pad: "",
    }).length;
  const all = bytes(["AAAA", "AAAA", 109, 2]);
  checkRoom(definitionWithId(questionList, { report_bytes: all }));
  assert.throws(
    () => checkRoom(definitionWithId(questionList, { report_bytes: all - 1 })),
    ReportTooLongError,
  );
  const sampling = {
    draw: 1,
    groups: [
      ["a", "b"],
      ["c", "d"],
    ],
  };
  const some = bytes(["AAAA", "AAAA", null, null]);
  checkRoom(definitionWithId(questionList, { sampling, report_bytes: some }));
  assert.throws(
    () => checkRoom(definitionWithId(questionList, { sampling, report_bytes: some - 1 })),
    ReportTooLongError,
  );
});

const one = (design) => question("x", design);
const ask = (...channels) =>
  definitionWithId(channels.map((design, i) => question(`x${i}`, design)));

test("the label gives the numbers of the design's example", () => {
  assert.deepEqual(frequencies(one(channel(2, 3, 1))), { ownShare: "75", otherShare: "25" });
  assert.deepEqual(frequencies(one(channel(3, 6, 1))), { ownShare: "75", otherShare: "12.5" });
  assert.equal(oddsFactor(ratio(channel(2, 3, 1))), "3");
  assert.deepEqual(posteriorBounds(ratio(channel(2, 3, 1))), { from10: 25, from50: 75 });
});

test("tenths are rounded half up", () => {
  assert.deepEqual(frequencies(one(channel(5, 12, 1))), { ownShare: "75", otherShare: "6.3" });
});

test("factors and suspicions are rounded up", () => {
  assert.equal(oddsFactor(ratio(channel(5, 27_182, 10_000))), "2.8");
  assert.equal(oddsFactor(ratio(channel(5, 28, 10))), "2.8");
  assert.equal(oddsFactor(ratio(channel(5, 28_001, 10_000))), "2.9");
  assert.equal(oddsFactor(ratio(channel(5, 99_001, 10_000))), "10");
  assert.equal(oddsFactor(ratio(channel(5, 1001, 100))), "11");
  assert.deepEqual(posteriorBounds(ratio(channel(3, 6, 1))), { from10: 40, from50: 86 });
});

test("the factor of all questions is the product, rounded up, its digits in groups", () => {
  assert.equal(totalFactor(ask(channel(2, 3, 1), channel(2, 3, 1))), "9");
  assert.equal(totalFactor(ask(channel(2, 3, 2), channel(2, 3, 2))), "2.3");
  assert.equal(totalFactor(ask(...Array(18).fill(channel(2, 3, 1)))), "387,420,489");
});

test("the factor stays exact where a float would not", () => {
  const many = ask(...Array(12).fill(channel(2, 99_999_999, 1)));
  assert.equal(totalFactor(many).replaceAll(",", ""), String(99_999_999n ** 12n));
});

test("seven rewordings at p = 3/4 have the factor of the whole report, 2,187", () => {
  const reworded = ask(...Array(7).fill(channel(2, 3, 1)));
  assert.equal(totalFactor(reworded), "2,187");
  assert.deepEqual(posteriorBounds(totalRatio(reworded)), { from10: 100, from50: 100 });
  assert.equal(reportStrength(reworded), "weak");
  assert.equal(provesNothing(reworded), false);
});

test("a question is weak exactly above 9, and no line is then called proof of nothing", () => {
  assert.equal(provesNothing(ask(channel(2, 9, 1))), true);
  assert.equal(provesNothing(ask(channel(2, 90_001, 10_000))), false);
});

test("protection is strong up to 3, and weak above 9 for a question and above 20 for a report", () => {
  const grades = (strength) =>
    [30, 31, 90, 91, 200, 201].map((tenths) => strength(ratio(channel(2, tenths, 10))));
  assert.deepEqual(grades(questionStrength), [
    "strong",
    "moderate",
    "moderate",
    "weak",
    "weak",
    "weak",
  ]);
  const gradeOfTotal = (total) => reportStrength(ask(channel(2, 3, 1)), total);
  assert.deepEqual(grades(gradeOfTotal), [
    "strong",
    "moderate",
    "moderate",
    "moderate",
    "moderate",
    "weak",
  ]);
});

test("a report is weak if a question or a topic is, and after earlier surveys too", () => {
  const twice = (topic) =>
    definitionWithId(["a", "b"].map((id) => question(id, channel(2, 39, 11), { topic })));
  assert.equal(reportStrength(twice()), "moderate");
  assert.equal(reportStrength(twice("nights")), "weak");
  assert.equal(provesNothing(twice("nights")), false);
  const weakQuestion = ask(channel(2, 12, 1));
  assert.equal(reportStrength(weakQuestion), "weak");
  assert.equal(reportStrength(weakQuestion, { numerator: 20n, denominator: 1n }), "weak");
});

test("the least protected question has the greatest T/L, the first of equals", () => {
  const questionList = [
    channel(2, 3, 1),
    channel(3, 6, 1),
    channel(9, 12, 2),
    channel(4, 5, 1),
  ].map((design, i) => question(`x${i}`, design));
  assert.equal(weakestOf(questionList), "x1");
});

/** Questions that are asked after others, as [id, channel, the one it depends on]. */
const linked = (...of) =>
  of.map(([id, design, on]) =>
    question(id, design, { ask_if: on ? { question: on, options: ["o0"] } : null }),
  );

test("the bound of a question includes all linked questions", () => {
  const questionList = linked(
    ["parent", channel(3, 3, 1)],
    ["apart", channel(3, 5, 1)],
    ["child", channel(3, 2, 1), "parent"],
    ["grandchild", channel(3, 7, 2), "child"],
    ["sibling", channel(3, 3, 1), "parent"],
  );
  const of = bounds(questionList);
  for (const id of ["parent", "child", "grandchild", "sibling"]) {
    assert.deepEqual(of.get(id), { numerator: 126n, denominator: 2n, linked: true }, id);
    assert.equal(oddsFactor(of.get(id)), "63");
  }
  assert.deepEqual(of.get("apart"), { numerator: 5n, denominator: 1n, linked: false });
  assert.deepEqual(posteriorBounds(of.get("child")), { from10: 88, from50: 99 });
});

test("no report reveals more about an answer than its question's bound", () => {
  // "No" (1) to the first makes the others "does not apply" (2): all truths, all codes.
  const design = channel(3, 3, 1);
  const survey = definitionWithId(
    [
      question("a", design, { optOut: "" }),
      ...["b", "c"].map((id) =>
        question(id, design, {
          optOut: "",
          not_applicable: "o2",
          ask_if: { question: "a", options: ["o0"] },
        }),
      ),
    ],
    { allow_skip_logic: true },
  );
  const weights = (answers) => {
    const counts = new Map();
    for (const { result } of everyRun((draw) => makeReport(survey, answers, draw, ID))) {
      counts.set(result, (counts.get(result) ?? 0) + 1);
    }
    return counts;
  };
  const [no, yes] = [weights({ a: 1 }), weights({ a: 0, b: 0, c: 1 })];
  const most = Math.max(...[...no].map(([code, n]) => n / yes.get(code)));
  const { numerator: above, denominator } = bounds(
    survey.pages.flatMap(({ questions }) => questions),
  ).get("a");
  assert.equal(most, 27);
  assert.equal(Number(above / denominator), 27);
});

test("the least protected question counts linked questions", () => {
  const questionList = linked(
    ["bold", channel(3, 8, 1)],
    ["parent", channel(3, 3, 1)],
    ["child", channel(3, 3, 1), "parent"],
  );
  assert.equal(weakestOf(questionList), "parent");
  assert.equal(weakestOf(questionList.slice(0, 2)), "bold");
});

test("the rows of a matrix count together, and what they depend on once", () => {
  const matrix = { id: "m", text: "How much?", row: "Pay" };
  const [alone, row] = [question("alone", channel(2, 5, 1)), channel(2, 3, 1)];
  const rows = [question("m_a", row, { matrix }), question("m_b", row, { matrix })];
  assert.equal(weakestOf([alone, ...rows]), "m_a");
  const factorOf = (...list) =>
    oddsFactor(
      groupBounds(questionGroups(list)).find(({ question: { id } }) => id === "m_a").bound,
    );
  assert.equal(factorOf(alone, ...rows), "9");
  const afterAlone = { ask_if: { question: "alone", options: ["x"] } };
  assert.equal(factorOf(alone, ...rows.map((one) => ({ ...one, ...afterAlone }))), "45");
});

test("only generalized randomized response counts as a random answer", () => {
  const says = (design) => saysAnswers(question("a", design));
  assert.equal(says(channel(3, 3, 1)), true);
  assert.equal(says(channel(5, 3, 1, 2)), false);
  assert.equal(says(bits(5, 3, 1)), false);
  assert.equal(says(table({ name: "one_bit", R: 9, T: 5, L: 2 })), false);
});

test("the total of a survey with sampling counts the groups that reveal most", () => {
  const survey = ask(channel(2, 3, 1), channel(2, 5, 1), channel(2, 2, 1), channel(2, 7, 2));
  const sampling = { draw: 2, groups: [["x0", "x2"], ["x1"], ["x3"]] };
  assert.equal(totalFactor({ ...survey, sampling }), "30");
  assert.equal(totalFactor(survey), "105");
  assert.deepEqual(sampledCounts({ ...survey, sampling }), { fewest: 2, most: 3, rows: 3 });
});

test("a matrix counts as one question, and takes the time of its rows", () => {
  const survey = ask(channel(2, 3, 1), channel(2, 5, 1), channel(2, 2, 1), channel(2, 7, 2));
  for (const row of questions(survey).slice(1)) row.matrix = { id: "m" };
  assert.deepEqual(sampledCounts({ ...survey, sampling: null }), { fewest: 2, most: 2, rows: 4 });
});

test("the label of ticks says how often a report contains an option, chosen or not", () => {
  assert.deepEqual(frequencies(one(bits(5, 3, 1))), { ownShare: "75", otherShare: "25" });
  assert.deepEqual(frequencies(one(bits(5, 3, 1, { sampled: 2 }))), {
    ownShare: "75",
    otherShare: "25",
  });
  // 6 vectors with at least 4 of 5 bits right, on average 5/6 of them; of the 26 others 11/26.
  assert.deepEqual(frequencies(one(halfSpace(5, 4, 3, 1))), {
    ownShare: "73.1",
    otherShare: "26.9",
  });
  // Of the 8 patterns of 3 options and one alone 4 hold the first: (12 + 3)/19, 4/19.
  assert.deepEqual(frequencies(pickSome("a", channel(8, 12, 1), 4)), {
    ownShare: "78.9",
    otherShare: "21.1",
  });
});

test("the label of a table uses the first option's column", () => {
  // Rows 8 4 2 1 with their tails: 15 ways of 22 to stay at the end, 1 of 22 from the other end.
  const scale = one(table({ name: "by_distance", weights: [8, 4, 2, 1] }));
  assert.deepEqual(frequencies(scale), { ownShare: "68.2", otherShare: "4.5" });
  const hours = amount("a", table({ name: "one_bit", R: 9, T: 3, L: 1 }));
  assert.deepEqual(frequencies(hours), { ownShare: "", otherShare: "" });
});

test("odds and suspicions cover the whole report for every kind of channel", () => {
  const ticks = bits(5, 3, 1, { s: 2, alone: 1 });
  assert.equal(oddsFactor(ratio(ticks)), "81");
  assert.equal(oddsFactor(ratio({ ...ticks, sampled: 2 })), "9");
  assert.deepEqual(posteriorBounds(ratio({ ...ticks, sampled: 2 })), { from10: 50, from50: 90 });
  assert.equal(oddsFactor(ratio(table({ name: "one_bit", R: 9, T: 5, L: 2 }, 1))), "2.5");
});

const OPTIONAL = question("a", channel(3, 3, 1));
const REQUIRED = question("b", channel(2, 3, 1), { optOut: "" });
const ids = (gaps) => gaps.map((gap) => gap.question.id);

test("an empty question with an opt-out stops the page once", () => {
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

test("all gaps are listed in the page's order", () => {
  assert.deepEqual(ids(stoppingGaps([OPTIONAL, REQUIRED], {}, new Set())), ["a", "b"]);
});

test("the first option counts as an answer", () => {
  assert.deepEqual(stoppingGaps([OPTIONAL], { a: 0 }, new Set()), []);
});

test("a multiple choice without a tick is empty", () => {
  assert.deepEqual(ids(stoppingGaps([OPTIONAL], { a: [] }, new Set())), ["a"]);
  assert.deepEqual(stoppingGaps([OPTIONAL], { a: [0] }, new Set()), []);
});

test("an invalid entry always stops the page and does not count as empty", () => {
  const nudged = new Set();
  const wrong = new Set(["a"]);
  for (let i = 0; i < 2; i += 1) {
    assert.deepEqual(stoppingGaps([OPTIONAL], {}, nudged, wrong), [
      { question: OPTIONAL, optOut: "" },
    ]);
  }
  assert.equal(isOpen(OPTIONAL, {}, nudged), true);
  assert.equal(isOpen(OPTIONAL, {}, new Set(["a"])), false);
  assert.equal(isOpen(REQUIRED, {}, new Set(["b"])), true);
});
