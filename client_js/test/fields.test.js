import assert from "node:assert/strict";
import { test } from "node:test";
import { answerTexts, dayText, locateDay } from "../src/field.js";
import { decimalAt, locate } from "../src/typed-number.js";
import { amount, bits, question, table } from "./support.js";

const grid = (low, step, points, decimals = 0) => ({ low, step, points, decimals, unit: "" });
const nearestPoint = (numberGrid, text) => locate(numberGrid, text)?.index ?? null;
const nearestDay = (days, milliseconds) => locateDay(days, milliseconds)?.index ?? null;
const HALVES = grid(-10, 5, 41, 1);
const FIVES = grid(0, 5, 17);

for (const [text, index] of [
  ["0", 0],
  ["80", 16],
  ["35", 7],
  ["37.4", 7],
  ["37,4", 7],
  ["37.5", 8],
  ["37.49999999999999999", 7],
  [" 35 ", 7],
  ["+35", 7],
  ["035", 7],
  ["35.", 7],
  ["35.0", 7],
  ["٣٥", 7],
  ["۳۵", 7],
  ["٣٧٫٦", 8],
  ["３７．６", 8],
  ["\u200b35\ufeff", 7],
  ["\u202a35\u202c", 7],
  ["-0", 0],
]) {
  test(`"${text}" on steps of 5 up to 80 is point ${index}`, () => {
    assert.equal(nearestPoint(FIVES, text), index);
  });
}

for (const text of [
  "80.01",
  "-1",
  "-0.001",
  "81",
  "1e1",
  "0x10",
  "Infinity",
  "NaN",
  "3 hours",
  "1.2.3",
  "1,2.3",
  "--1",
  "- ",
  ".",
  ",",
  "",
  " ",
  "1-",
  "²",
  "3²",
  "½",
  "③",
  "3 5",
  "3'5",
  "1 0",
  "3 . 5",
  "3–5",
  "9".repeat(21),
]) {
  test(`"${text}" is not a number from 0 to 80`, () => {
    assert.equal(nearestPoint(FIVES, text), null);
  });
}

test("a minus sign is accepted as keyboards write it and as printers do", () => {
  for (const text of [
    "-0.5",
    "\u22120.5",
    "-,5",
    "\u2212.5",
    "\u200e-0.5",
    "–0.5",
    "－0.5",
    "- 0.5",
  ]) {
    assert.equal(nearestPoint(HALVES, text), 1);
  }
  assert.equal(nearestPoint(HALVES, "-0.75"), 1);
  assert.equal(nearestPoint(HALVES, "-0.76"), 0);
});

test("a text that could be a thousand or one is not a number", () => {
  const wide = grid(0, 1000, 1000);
  for (const text of ["1,000", "1.000", "12.500", "999,000", "+1,000"]) {
    assert.equal(nearestPoint(wide, text), null, text);
  }
  assert.equal(nearestPoint(grid(-2000, 1, 1000), "-1,500"), null);
  for (const text of ["0.125", "0,125", "1.0", "1.0000", "1234,500"]) {
    assert.notEqual(nearestPoint(wide, text), null, text);
  }
});

test("a thousand beyond the grid does not count as one", () => {
  assert.equal(nearestPoint(grid(0, 1, 1000), "1,000"), null);
  assert.equal(nearestPoint(grid(0, 5, 200, 1), "37.125"), null);
});

test("three decimals are accepted if the grid has them", () => {
  assert.equal(nearestPoint(grid(0, 125, 17, 3), "1.125"), 9);
  assert.equal(nearestPoint(grid(1000, 5, 500, 3), "3,495"), 499);
  assert.equal(nearestPoint(grid(0, 1_000, 1_000, 3), "999.000"), 999);
});

test("three decimals are rejected if the grid reaches a thousand", () => {
  const wide = grid(125, 100_000, 100, 3);
  for (const numberGrid of [wide, grid(-1_000_000, 1_000, 1_000, 3), grid(0, 1_000, 1_001, 3)]) {
    for (const text of ["1,000", "1.000", "9,900", "-1,000", "999.125"]) {
      assert.equal(nearestPoint(numberGrid, text), null, text);
    }
  }
  for (const [text, index] of [
    ["1000", 10],
    ["1 000", 10],
    ["0.125", 0],
    ["100,1250", 1],
    ["9900.125", 99],
  ]) {
    assert.equal(nearestPoint(wide, text), index, text);
  }
  assert.equal(decimalAt(wide, 1), "100.1250");
});

test("digits may be grouped only in threes", () => {
  const wide = grid(0, 1000, 1000);
  for (const text of ["12 000", "12'000", "12’000", "12\u00a0000", "12\u202f000", "١٢٬٠٠٠"]) {
    assert.equal(nearestPoint(wide, text), 12, text);
  }
  assert.equal(nearestPoint(wide, "12 000,4"), 12);
  for (const text of ["1 2000", "12 00", "120 00", "12  000", "1200 000", "12 '000", " 12,000,"]) {
    assert.equal(nearestPoint(wide, text), null, text);
  }
});

test("every point's text leads back to that point", () => {
  for (const decimals of [0, 1, 2, 3, 4, 6, 12, 15]) {
    for (const low of [0, 1, -1, 999, -1000, 1000, 12_345_678, -(10 ** 12), 10 ** 12]) {
      for (const step of [1, 5, 7, 125, 1000, 12_345]) {
        const numberGrid = grid(low, step, 200, decimals);
        for (let index = 0; index < numberGrid.points; index += 1) {
          const text = decimalAt(numberGrid, index);
          assert.deepEqual(locate(numberGrid, text), { index, rounded: false }, text);
        }
      }
    }
  }
});

test("a located number says whether it was rounded", () => {
  assert.deepEqual(locate(FIVES, "35.0"), { index: 7, rounded: false });
  assert.deepEqual(locate(FIVES, "35.1"), { index: 7, rounded: true });
  assert.deepEqual(locate(FIVES, "33"), { index: 7, rounded: true });
});

test("every point is its own nearest point", () => {
  for (const numberGrid of [FIVES, HALVES, grid(999_999_999_000, 1, 1000), grid(-3, 1, 1000, 6)]) {
    for (let index = 0; index < numberGrid.points; index += 1) {
      assert.equal(nearestPoint(numberGrid, decimalAt(numberGrid, index)), index);
    }
  }
});

test("rounding is exact where floats would err", () => {
  // 1.005 is 1.00499999999999989... as a float.
  assert.equal(nearestPoint(grid(0, 1, 1000, 2), "1.0050"), 101);
  assert.equal(nearestPoint(grid(0, 1, 1000, 2), "1.00499999999999989"), 100);
});

test("decimals are written exactly, without trailing zeros", () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((i) => decimalAt(HALVES, i)),
    ["\u22121", "\u22120.5", "0", "0.5"],
  );
  assert.equal(decimalAt(grid(5, 1, 2, 3), 0), "0.005");
  assert.equal(decimalAt(grid(100, 1, 2, 0), 0), "100");
  assert.equal(decimalAt(grid(0.1 * 10, 1, 3, 1), 2), "0.3");
});

const DAY = 86_400_000;
const WEEKS = grid(10_287, 7, 53);

test("a day goes to the nearest day of the grid", () => {
  assert.equal(nearestDay(WEEKS, 10_287 * DAY), 0);
  assert.equal(nearestDay(WEEKS, 10_290 * DAY), 0);
  assert.equal(nearestDay(WEEKS, 10_291 * DAY), 1);
  assert.equal(nearestDay(WEEKS, (10_287 + 52 * 7) * DAY), 52);
});

for (const wrong of [10_286 * DAY, (10_288 + 52 * 7) * DAY, Number.NaN, 10_287 * DAY + 1]) {
  test(`${wrong} ms is not a day of the grid`, () => {
    assert.equal(nearestDay(WEEKS, wrong), null);
  });
}

test("a day is written in the survey's language and the Gregorian calendar", () => {
  assert.equal(dayText(WEEKS, 0, "en"), "2 March 1998");
  assert.equal(dayText(WEEKS, 0, "en-US"), "March 2, 1998");
  assert.equal(dayText(WEEKS, 0, "es"), "2 de marzo de 1998");
  assert.match(dayText(WEEKS, 0, "ar-SA"), /١٩٩٨|1998/);
  assert.equal(dayText(grid(-719_162, 1, 2), 0, "en"), "1 January 1");
});

test("an unknown language does not stop the survey", () => {
  for (const language of ["en-12", "x", ""]) {
    assert.equal(dayText(WEEKS, 0, language), "2 March 1998");
  }
});

test("every kind of answer can be shown as text", () => {
  const hours = amount("a", table({ name: "one_bit", R: 16, T: 3, L: 1 }, 2), { grid: FIVES });
  const withUnit = { ...hours, grid: { ...FIVES, unit: "hours" } };
  assert.deepEqual(answerTexts(withUnit, 7, "en"), ["35 hours"]);
  assert.deepEqual(answerTexts(hours, 7, "en"), ["35"]);
  assert.deepEqual(answerTexts(withUnit, 18, "en"), ["Option 1"]);
  const since = { ...hours, type: "date", grid: { ...WEEKS, points: 17 } };
  assert.deepEqual(answerTexts(since, 0, "en"), ["2 March 1998"]);
  assert.deepEqual(answerTexts(since, 17, "en"), ["Option 0"]);
  const ticks = question("b", bits(5, 3, 1, { alone: 1 }));
  assert.deepEqual(answerTexts(ticks, [0, 2], "en"), ["Option 0", "Option 2"]);
  const scale = question("c", table({ name: "by_distance", weights: [4, 2, 1] }, 1), {
    type: "scale",
    grid: grid(0, 1, 3),
  });
  assert.deepEqual(answerTexts(scale, 3, "en"), ["Option 3"]);
});
