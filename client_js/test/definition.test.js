import assert from "node:assert/strict";
import { test } from "node:test";
import { questionGroups } from "../src/answers.js";
import { loadDefinition, readDefinition } from "../src/definition.js";
import { DefinitionError } from "../src/definition-error.js";
import { translateDefinition } from "../src/definition-structure.js";
import { parseAddress, parseLink, withoutInvitation } from "../src/link.js";
import { NoRandomnessError } from "../src/random.js";
import { ReportTooLongError } from "../src/report.js";
import {
  CryptoMissingError,
  obstacleOf,
  requestDefinition,
  UnavailableError,
} from "../src/transport.js";
import {
  amount,
  bits,
  bytesOf,
  channel,
  definitionOf,
  digest,
  halfSpace,
  itemQuestions,
  jointQuestions,
  matrixRows,
  pickSome,
  question,
  sha256,
  table,
} from "./support.js";

const GOOD = definitionOf([question("a", channel(2, 3, 1)), question("b", channel(5, 3, 1, 2))]);

function read(definition, expectedPrefix) {
  return readDefinition(bytesOf(definition), { digest, expectedPrefix });
}

/** Reads a definition with one question changed. */
function readQuestion(changes) {
  return read(definitionOf([{ ...question("a", channel(3, 3, 1)), ...changes }]));
}

/** Reads a definition whose questions have these channels, named x0, x1, ... */
function readChannels(...channels) {
  return read(definitionOf(channels.map((design, i) => question(`x${i}`, design))));
}

const refused = (reason) => (error) => error instanceof DefinitionError && error.reason === reason;

test("a definition's id is the hash of its bytes, and it is frozen", async () => {
  const definition = await read(GOOD);
  assert.equal(definition.id, sha256(bytesOf(GOOD)));
  assert.ok(Object.isFrozen(definition.pages[0].questions[0].channel));
  assert.throws(() => {
    definition.pages[0].questions[0].channel.T = 9;
  }, TypeError);
});

test("the hash's prefix in the link must match", async () => {
  const id = sha256(bytesOf(GOOD));
  for (const prefix of [id, id.slice(0, 16), id.slice(0, 20).toUpperCase(), "", undefined]) {
    assert.equal((await read(GOOD, prefix)).id, id);
  }
});

for (const prefix of ["0".repeat(16), "g".repeat(16), "ab", "x"]) {
  test(`a link that names ${prefix} is refused as another definition`, async () => {
    await assert.rejects(read(GOOD, prefix), refused("other_definition"));
  });
}

test("a matching prefix that is too short is refused", async () => {
  const id = sha256(bytesOf(GOOD));
  await assert.rejects(read(GOOD, id.slice(0, 15)), refused("other_definition"));
  await assert.rejects(read(GOOD, `${id}0`), refused("other_definition"));
});

test("one changed byte is another definition", async () => {
  const id = sha256(bytesOf(GOOD));
  await assert.rejects(read({ ...GOOD, version: 2 }, id), refused("other_definition"));
});

test("p = .99 is exactly the limit", async () => {
  await readChannels(channel(2, 99, 1));
  await readChannels(channel(2, 99 * 10 ** 7, 10 ** 7));
  await assert.rejects(readChannels(channel(2, 99 * 10 ** 7 + 1, 10 ** 7)), refused("too_weak"));
  await assert.rejects(readChannels(channel(3, 199, 1)), refused("too_weak"));
});

test("p of a set counts all sets that contain the truth", async () => {
  await readChannels(channel(4, 33, 1, 3));
  await assert.rejects(readChannels(channel(4, 34, 1, 3)), refused("too_weak"));
});

test("epsilon 12 of one question is exactly the limit", async () => {
  // e^12 = 162,754.7914190...
  await readChannels(channel(2000, 162_754_791, 1000));
  await assert.rejects(readChannels(channel(2000, 162_754_792, 1000)), refused("too_weak"));
});

test("bits just below epsilon 12 are accepted, and bits just above are not", async () => {
  // e^3 = 20.0855369231...: four bits may differ, and its fourth power is e^12.
  const ticks = (T) => bits(5, T, 10_000_000, { s: 3, alone: 1 });
  await readChannels(ticks(200_855_200));
  await readChannels(ticks(200_855_369));
  await assert.rejects(readChannels(ticks(200_855_370)), refused("too_weak"));
});

test("a half-space has p .99 and epsilon 12 at most", async () => {
  // p = (393 + 7 * 3/7) / 400; e^12 = 162,754.79...
  await readChannels(halfSpace(3, 3, 393, 7, { alone: 1 }));
  await assert.rejects(readChannels(halfSpace(3, 3, 394, 7, { alone: 1 })), refused("too_weak"));
  await readChannels(halfSpace(32, 27, 46_011, 5000, { alone: 1 }));
  const above = halfSpace(32, 27, 46_012, 5000, { alone: 1 });
  await assert.rejects(readChannels(above), refused("too_weak"));
});

test("epsilon 20 of all questions is exactly the limit", async () => {
  // e^20 = 485,165,195.4097902...
  const together = (T) => [channel(2000, T, 10_000), channel(60, 5000, 1)];
  await readChannels(...together(970_330_390));
  await assert.rejects(readChannels(...together(970_330_391)), refused("too_weak"));
  await assert.rejects(
    readChannels(...together(970_330_390), channel(2, 1_000_001, 1_000_000)),
    refused("too_weak"),
  );
});

test("four questions of epsilon 5, to the last digit of their weights, are accepted", async () => {
  // e^5 = 148.4131591025...
  const five = (T) => Array(4).fill(channel(9, T, 1_000_000));
  await readChannels(...five(148_413_159));
  await readChannels(...five(148_412_900));
  await assert.rejects(readChannels(...five(148_413_160)), refused("too_weak"));
});

test("many modest questions reach the total limit too", async () => {
  await readChannels(...Array(18).fill(channel(2, 3, 1)));
  await assert.rejects(readChannels(...Array(19).fill(channel(2, 3, 1))), refused("too_weak"));
});

const WRONG_CHANNELS = {
  "T = L": channel(3, 1, 1),
  "T < L": channel(3, 1, 2),
  "L = 0": channel(3, 3, 0),
  "a fraction": channel(3, 3.5, 1),
  "a text": channel(3, "3", 1),
  "d = 0": channel(3, 3, 1, 0),
  "d = k": channel(3, 3, 1, 3),
  "another k than options": channel(4, 3, 1),
  "weights above 2^32": channel(3, 2 ** 32 - 2 ** 31 + 2, 2 ** 30),
  "another kind": { ...channel(3, 3, 1), kind: "weight_table" },
  "an unknown kind": { ...channel(3, 3, 1), kind: "toString" },
  "bits for one choice": bits(3, 3, 1),
  "a table of another size": table({ name: "by_distance", weights: [4, 2, 1] }, 1),
  "no channel": undefined,
};
for (const [name, wrong] of Object.entries(WRONG_CHANNELS)) {
  test(`a channel with ${name} is refused`, async () => {
    await assert.rejects(readQuestion({ channel: wrong }), refused("malformed"));
  });
}

const WINDOW = { name: "window", k: 5, width: 3, stride: 1, T: 3, L: 1 };
const ONE_BIT = { name: "one_bit", R: 4, T: 3, L: 1 };
const MIXTURE = { name: "mixture", a: 2, first: ONE_BIT, b: 3, second: WINDOW };
const BY_DISTANCE = { name: "by_distance", weights: [9, 4, 2, 1, 1] };
const square = (...rows) => ({ name: "explicit", table: rows });
const HOURS = amount("hours", table(WINDOW, 2), { not_applicable: "o0" });
const TICKS = question("ticks", bits(5, 2, 1, { s: 2, alone: 2 }), { not_applicable: "o3" });
const PATTERNS = pickSome("patterns", channel(8, 3, 1), 4);

const GOOD_QUESTIONS = {
  "a scale on a table": question("a", table(BY_DISTANCE, 1), { type: "scale" }),
  "a scale of years, beyond the calendar of days": question("a", table(BY_DISTANCE, 1), {
    type: "scale",
    grid: { low: 3_000_000, step: 1, points: 5, decimals: 0, unit: "" },
  }),
  "a scale as far as scales go": question("a", table(BY_DISTANCE, 1), {
    type: "scale",
    grid: { low: -(10 ** 12), step: 1, points: 5, decimals: 0, unit: "" },
  }),
  "a scale that stands for numbers": question("a", table(BY_DISTANCE, 1), {
    type: "scale",
    grid: { low: 1, step: 1, points: 5, decimals: 0, unit: "" },
  }),
  "a yes/no of coins": question("a", table(square([4, 2], [1, 5]), 1), { type: "yes_no" }),
  "a number": HOURS,
  "a number that must be given": amount("a", table(MIXTURE)),
  "a choice with a picture": (() => {
    const form = question("a", channel(3, 3, 1));
    const picture = { sha256: "ab".repeat(32), type: "image/webp", alt: "A cat" };
    return { ...form, options: form.options.map((option) => ({ ...option, picture })) };
  })(),
  "a number on a slider": { ...HOURS, slider: { low: "None", high: "" } },
  "a date": amount("a", table(BY_DISTANCE, 1), { type: "date", grid: { low: 18_262, unit: "" } }),
  "ticks as bits": TICKS,
  "sampled ticks": question("a", bits(5, 2, 1, { alone: 1, sampled: 2 })),
  "ticks in one report": question("a", halfSpace(5, 4, 3, 1, { s: 2, alone: 2 })),
  "32 ticks in one report": question("a", halfSpace(32, 27, 46_011, 5000, { alone: 1 })),
  "ticks as patterns": PATTERNS,
  "1,024 patterns": pickSome("a", channel(1024, 3, 1), 11),
};
for (const [name, candidate] of Object.entries(GOOD_QUESTIONS)) {
  test(`${name} is accepted`, async () => {
    await read(definitionOf([candidate]));
  });
}

const together = (changes) =>
  question("a", { ...halfSpace(5, 4, 3, 1, { s: 2, alone: 2 }), ...changes });
const number = (shape, changes) => amount("a", table(shape), changes);
const dated = (grid) => ({ ...number(WINDOW), type: "date", grid: { ...HOURS.grid, ...grid } });
const ENDS = { low: "None", high: "" };
const manyPoints = table({ ...WINDOW, k: 102, width: 3, stride: 1 });
const PICTURE = { sha256: "ab".repeat(32), type: "image/webp", alt: "A cat" };
const pictured = (changes, type = "single_choice") => {
  const form = question("a", channel(3, 3, 1), { type });
  const [first, ...others] = form.options;
  return { ...form, options: [{ ...first, picture: { ...PICTURE, ...changes } }, ...others] };
};
const WRONG_OF_THEIR_TYPE = {
  "a picture without a description": pictured({ alt: "" }),
  "a picture with a short hash": pictured({ sha256: "ab" }),
  "a picture with an address as its hash": pictured({ sha256: "https://example.org/cat.webp" }),
  "a picture of another type": pictured({ type: "image/svg+xml" }),
  "a picture with an unknown key": pictured({ onload: "x" }),
  "a picture on a scale": { ...pictured({}, "scale"), grid: null },
  "a slider without labels": { ...HOURS, slider: {} },
  "a slider with an unknown key": { ...HOURS, slider: { ...ENDS, start: 3 } },
  "a slider that is null": { ...HOURS, slider: null },
  "a slider for a date": { ...dated({}), slider: ENDS },
  "a slider for a choice": { ...question("a", channel(2, 3, 1)), slider: ENDS },
  "a slider of 102 points": amount("a", manyPoints, { slider: ENDS }),
  "a number without a grid": { ...HOURS, grid: null },
  "a grid of another size": { ...HOURS, grid: { ...HOURS.grid, points: 6 } },
  "a grid with a step of 0": { ...HOURS, grid: { ...HOURS.grid, step: 0 } },
  "a grid in fractions": { ...HOURS, grid: { ...HOURS.grid, low: 0.5 } },
  "a grid too far to count": { ...HOURS, grid: { ...HOURS.grid, low: Number.MAX_SAFE_INTEGER } },
  "a grid without a unit": { ...HOURS, grid: { ...HOURS.grid, unit: undefined } },
  "a number with three more options": {
    ...HOURS,
    options: ["x", "y", "z"].map((id) => ({ id, label: id })),
  },
  "a number with ticks": { ...HOURS, max_ticks: 1 },
  "a number of bits": { ...HOURS, channel: bits(5, 3, 1) },
  "a number of options": { ...HOURS, channel: channel(7, 3, 1) },
  "a date with decimals": dated({ decimals: 1 }),
  "a date before the calendar": dated({ low: -719_163 }),
  "a date after the calendar": dated({ low: 2_932_893 }),
  "a choice with a grid": question("a", channel(3, 3, 1), { grid: HOURS.grid }),
  "a choice with ticks": question("a", channel(3, 3, 1), { max_ticks: 2 }),
  "a choice of options that stand alone": question("a", channel(3, 3, 1), { alone: 1 }),
  "a scale with more points than options": question("a", channel(3, 3, 1), {
    type: "scale",
    grid: { ...HOURS.grid, points: 4 },
  }),
  "one report of too many ticks": question("a", halfSpace(33, 17, 3, 1, { alone: 1 })),
  "one report of ticks with half of them right": together({ agreements: 2 }),
  "one report of ticks with more right than there are": together({ agreements: 6 }),
  "one report of ticks without weight for others": together({ far: 0 }),
  "one report of ticks that favours others": together({ far: 14 }),
  "one report of ticks with weights above 2^32": together({ near: 2 ** 32 }),
  "one report of other ticks": { ...together({}), max_ticks: 3 },
  "ticks of which none stands alone": { ...TICKS, alone: 0 },
  "ticks of which four stand alone": { ...TICKS, alone: 4 },
  "ticks of another limit than their bits": { ...TICKS, max_ticks: 3 },
  "other options alone than in the bits": { ...TICKS, alone: 1 },
  "ticks whose opt-out goes together with others": { ...TICKS, opt_out: "o0" },
  "ticks without a limit": { ...TICKS, max_ticks: 0 },
  "ticks with bits for other options": { ...TICKS, channel: bits(6, 2, 1, { s: 2, alone: 2 }) },
  "ticks on a table": { ...TICKS, channel: table(BY_DISTANCE) },
  "patterns of another number": { ...PATTERNS, channel: channel(9, 3, 1) },
  "sets of patterns": { ...PATTERNS, channel: channel(8, 3, 1, 2) },
  "2,048 patterns": pickSome("a", channel(2048, 3, 1), 12),
  "more patterns than can be counted": pickSome("a", channel(1024, 3, 1), 1000),
};
for (const [name, candidate] of Object.entries(WRONG_OF_THEIR_TYPE)) {
  test(`${name}: refused`, async () => {
    await assert.rejects(read(definitionOf([candidate])), refused("malformed"));
  });
}

const WRONG_BITS = {
  "no bits": { m: 0 },
  "1,001 bits": { m: 1001 },
  "no ticks": { s: 0 },
  "more ticks than options": { s: 4 },
  "half a tick": { s: 1.5 },
  "all alone": { alone: 5 },
  "four alone": { alone: 4 },
  "none sampled": { sampled: 0 },
  "more sampled than bits": { sampled: 6 },
  "a missing number": { sampled: undefined },
  "weights above 2^32": { T: 2 ** 32, L: 1 },
  "T = L": { T: 1, L: 1 },
};
for (const [name, changes] of Object.entries(WRONG_BITS)) {
  test(`a bit vector with ${name} is refused`, async () => {
    const candidate = { ...TICKS, channel: { ...TICKS.channel, ...changes } };
    await assert.rejects(read(definitionOf([candidate])), refused("malformed"));
  });
}

const WRONG_TABLES = {
  "an unknown name": { name: "toString" },
  "no table": undefined,
  "a window without width": { ...WINDOW, width: 0 },
  "a window without stride": { ...WINDOW, stride: 0 },
  "a window of 4,097 reports": { ...WINDOW, width: 4093 },
  "a window with T = L": { ...WINDOW, T: 1 },
  "a window of fractions": { ...WINDOW, T: 2.5 },
  "a window above 2^32": { ...WINDOW, T: 2 ** 31 },
  "one bit of no numbers": { ...ONE_BIT, R: 0 },
  "one bit above 2^32": { ...ONE_BIT, T: 2 ** 31 },
  "a grid of 1,001 points": { ...ONE_BIT, R: 1000 },
  "a weight of 0": { ...BY_DISTANCE, weights: [9, 4, 2, 1, 0] },
  "no weights": { ...BY_DISTANCE, weights: [] },
  "weights that are no list": { ...BY_DISTANCE, weights: "94211" },
  "rows of different sums": square([3, 1], [1, 4]),
  "rows of different lengths": square([3, 1], [1, 2, 1]),
  "rows that are alike": square([2, 2], [2, 2]),
  "a negative weight": square([5, -1], [1, 3]),
  "no rows": square(),
  "a row that is no list": square(7, [1, 3]),
  "65 reports": square(Array(65).fill(1), Array(65).fill(1)),
  "65 rows": square(...Array(65).fill([2, 1])),
  "a mixture without weight": { ...MIXTURE, a: 0 },
  "a mixture of different grids": { ...MIXTURE, first: { ...ONE_BIT, R: 5 } },
  "a mixture of mixtures": { ...MIXTURE, second: MIXTURE },
  "a mixture above 2^32": { ...MIXTURE, a: 2 ** 30 },
  "a mixture of 4,097 reports": { ...MIXTURE, second: { ...WINDOW, width: 4091 } },
};
for (const [name, shape] of Object.entries(WRONG_TABLES)) {
  test(`a table with ${name} is refused`, async () => {
    const candidate = { ...HOURS, channel: table(shape, 2) };
    await assert.rejects(read(definitionOf([candidate])), refused("malformed"));
  });
}

test("no report of a table is more likely than .99 under any truth", async () => {
  const coins = (...rows) => definitionOf([question("a", table(square(...rows)))]);
  await read(coins([99, 1], [1, 99]));
  await assert.rejects(read(coins([199, 1], [1, 199])), refused("too_weak"));
  await assert.rejects(read(coins([100, 100], [199, 1])), refused("too_weak"));
});

test("reports that are likeliest under the same truth count together", async () => {
  const wide = (T) =>
    question("a", table({ name: "window", k: 2, width: 1000, stride: 1000, T, L: 1 }));
  await read(definitionOf([wide(99)]));
  await assert.rejects(read(definitionOf([wide(100)])), refused("too_weak"));
  const many = (T) => {
    const rows = [Array(32).fill(T), Array(32).fill(1)];
    return question("a", table(square(rows.flat(), rows.reverse().flat())));
  };
  await read(definitionOf([many(99)]));
  await assert.rejects(read(definitionOf([many(100)])), refused("too_weak"));
});

test("the limit includes the rows for no answer", async () => {
  const silent = (T) => {
    const shape = { name: "window", k: 2, width: 400, stride: 400, T, L: 1 };
    return question("a", table(shape, 1));
  };
  await read(definitionOf([silent(50)]));
  await assert.rejects(read(definitionOf([silent(2000)])), refused("too_weak"));
});

test("two hundred equal questions share one channel, which is checked once", async () => {
  const shape = { name: "window", k: 1000, width: 500, stride: 1, T: 21, L: 20 };
  const fine = amount("a", table(shape, 2));
  const candidates = Array.from({ length: 200 }, (_, i) => ({ ...fine, id: `x${i}` }));
  const { pages } = await read(definitionOf([...candidates, HOURS]));
  assert.equal(new Set(pages.map(({ questions }) => questions[0].channel)).size, 2);
  const other = { ...fine, channel: { ...fine.channel, no_answers: 1 } };
  await assert.rejects(read(definitionOf([fine, { ...other, id: "b" }])), refused("malformed"));
});

test("the truth probability of a bit is at most .99, and epsilon of a report at most 12", async () => {
  const ticks = (...of) => definitionOf([question("a", bits(...of))]);
  await read(ticks(3, 99, 1, { s: 1, alone: 1 }));
  await assert.rejects(read(ticks(3, 100, 1, { s: 1, alone: 1 })), refused("too_weak"));
  // 3^10 = 59,049 and 3^11 = 177,147, on the two sides of e^12.
  await read(ticks(10, 3, 1, { alone: 1 }));
  await assert.rejects(read(ticks(11, 3, 1, { alone: 1 })), refused("too_weak"));
  await read(ticks(11, 3, 1, { alone: 1, sampled: 10 }));
});

test("the total of a survey with sampling counts the groups that reveal most", async () => {
  const candidates = Array.from({ length: 30 }, (_, i) => question(`x${i}`, channel(2, 3, 1)));
  const survey = (draw) =>
    definitionOf(candidates, { sampling: { draw, groups: candidates.map(({ id }) => [id]) } });
  await read(survey(18));
  await assert.rejects(read(survey(19)), refused("too_weak"));
});

const PARENT = question("a", channel(3, 3, 1));
const CHILD = question("b", channel(3, 3, 1), {
  not_applicable: "o1",
  ask_if: { question: "a", options: ["o0"] },
});
const SKIPS = definitionOf([PARENT, CHILD], { allow_skip_logic: true });
const child = (changes) => ({
  ...SKIPS,
  pages: [SKIPS.pages[0], { title: "", questions: [{ ...CHILD, ...changes }] }],
});
const onlyIf = (question, options) => child({ ask_if: { question, options } });
const WRONG_CONDITIONS = {
  "skip logic that is not allowed": { ...SKIPS, allow_skip_logic: false },
  "skip logic neither allowed nor not": { ...SKIPS, allow_skip_logic: undefined },
  "a condition that is left out": child({ ask_if: undefined }),
  "no option for when it is not asked": child({ not_applicable: "" }),
  "an unknown option for when it is not asked": child({ not_applicable: "never" }),
  "a condition on nothing": onlyIf("x", ["o0"]),
  "a condition on itself": onlyIf("b", ["o0"]),
  "a condition on no options": onlyIf("a", []),
  "a condition on unknown options": onlyIf("a", ["o0", "o9"]),
  "a condition on the same page": {
    ...SKIPS,
    pages: [{ title: "", questions: [PARENT, CHILD] }],
  },
  "a condition on a later page": { ...SKIPS, pages: [SKIPS.pages[1], SKIPS.pages[0]] },
  "a condition on a number": definitionOf(
    [HOURS, { ...CHILD, ask_if: { question: "hours", options: ["o0"] } }],
    { allow_skip_logic: true },
  ),
};
test("allowed skip logic is accepted", async () => {
  await read(SKIPS);
  await read({
    ...SKIPS,
    sampling: { draw: 1, groups: [["a", "b"], ["c"]] },
    pages: [...SKIPS.pages, { title: "", questions: [question("c", channel(3, 3, 1))] }],
  });
});
for (const [name, wrong] of Object.entries(WRONG_CONDITIONS)) {
  test(`a definition with ${name} is refused`, async () => {
    await assert.rejects(read(wrong), refused("malformed"));
  });
}

const JOINT = jointQuestions([2, 3], 9, 1);
const joined = (changes, at = 0) =>
  definitionOf(
    JOINT.map((member, i) => {
      const { joint, ...others } = typeof changes === "function" ? changes(member) : changes;
      if (at !== "all" && at !== i) return member;
      return { ...member, ...others, ...(joint ? { joint: { ...member.joint, ...joint } } : {}) };
    }),
  );
const APART = definitionOf([...JOINT, question("c", channel(3, 3, 1))]);
const WRONG_JOINTS = {
  "a member that disagrees": joined({ joint: { channel: channel(6, 8, 1) } }),
  "another joint channel than its parts": joined({ joint: { channel: channel(6, 8, 1) } }, "all"),
  "a joint channel of another size": joined({ joint: { channel: channel(5, 9, 1) } }, "all"),
  "a joint channel of sets": joined({ joint: { channel: channel(6, 9, 1, 2) } }, "all"),
  "a joint channel of another kind": joined({ joint: { channel: bits(6, 9, 1) } }, "all"),
  "a joint channel with T < L": joined({ joint: { channel: channel(6, 1, 9) } }, "all"),
  "a joint response to one question": joined({ joint: { questions: ["j0"] } }),
  "a joint response to no list": joined({ joint: { questions: "j0" } }, "all"),
  "a joint response of others": joined({ joint: { questions: ["j1", "x"] } }, "all"),
  "a joint response in another order": joined({ joint: { questions: ["j1", "j0"] } }, "all"),
  "a question twice in a joint response": joined({ joint: { questions: ["j0", "j0"] } }, "all"),
  "a member that says nothing of it": joined({ joint: undefined, channel: channel(2, 3, 1) }, 1),
  "a part with more weight": joined({ channel: channel(2, 12, 3) }),
  "a joint response of four": definitionOf(jointQuestions([2, 2, 2, 2], 9, 1)),
  "more than 256 combinations": definitionOf(jointQuestions([16, 17], 9, 1)),
  "a joint response that is drawn in parts": {
    ...APART,
    sampling: { draw: 1, groups: [["j0"], ["j1", "c"]] },
  },
  "a joint response with a condition": definitionOf(
    [JOINT[0], { ...JOINT[1], not_applicable: "o1", ask_if: { question: "j0", options: ["o0"] } }],
    { allow_skip_logic: true },
  ),
};
const SPACE = halfSpace(3, 2, 3, 1);
const ITEMS = itemQuestions(SPACE, 5, 3);
const items = (changes) => definitionOf(ITEMS.map((item) => ({ ...item, ...changes })));
const WRONG_ITEMS = {
  "a half-space of other parts": items({ channel: channel(2, 5, 2) }),
  "a half-space with fewer bits": definitionOf(ITEMS.slice(0, 2)),
  "a half-space of more bits than questions": items({
    joint: { ...ITEMS[0].joint, channel: halfSpace(4, 3, 3, 1) },
  }),
  "a half-space of few ticks": items({
    joint: { ...ITEMS[0].joint, channel: halfSpace(3, 2, 3, 1, { s: 2 }) },
  }),
  "a half-space with an exclusive bit": items({
    joint: { ...ITEMS[0].joint, channel: halfSpace(3, 2, 3, 1, { alone: 1 }) },
  }),
  "a half-space with a question of three options": definitionOf(
    ITEMS.map((item, i) => (i ? item : question("j0", channel(3, 5, 3), { joint: item.joint }))),
  ),
};
for (const [name, wrong] of Object.entries(WRONG_ITEMS)) {
  test(`a definition with ${name} is refused`, async () => {
    await assert.rejects(read(wrong), refused("malformed"));
  });
}
test("2 to 20 yes/no questions in a half-space are accepted, up to epsilon 12", async () => {
  await read(definitionOf(ITEMS));
  // All bits right with weight a, any other report with weight 1: p = (a + 2^19 - 1)/(a + 2^20 - 1).
  const twenty = (a) => {
    const space = halfSpace(20, 20, a, 2 ** 20 - 1);
    return definitionOf(itemQuestions(space, a + 2 ** 19 - 1, 2 ** 19));
  };
  await read(twenty(162_754));
  await assert.rejects(read(twenty(162_755)), refused("too_weak"));
});
test("a joint response is accepted, and drawn whole", async () => {
  await read(definitionOf(JOINT));
  await read(definitionOf(jointQuestions([2, 2, 2], 9, 1)));
  await read({ ...APART, sampling: { draw: 1, groups: [["j0", "j1"], ["c"]] } });
});
for (const [name, wrong] of Object.entries(WRONG_JOINTS)) {
  test(`a definition with ${name} is refused`, async () => {
    await assert.rejects(read(wrong), refused("malformed"));
  });
}
test("p = .99 is exactly the limit of the parts of a joint response", async () => {
  await read(definitionOf(jointQuestions([2, 2], 197, 1)));
  await assert.rejects(read(definitionOf(jointQuestions([2, 2], 198, 1))), refused("too_weak"));
});

/** Return a definition with all questions on one page. */
function onOnePage(list) {
  return definitionOf([], { pages: [{ title: "", questions: list }] });
}

test("rows of a matrix are accepted where they stand together and differ only in their texts", async () => {
  const [a, b] = matrixRows();
  const other = question("x", channel(2, 3, 1));
  const { pages } = await read(onOnePage([other, a, b]));
  assert.deepEqual(
    questionGroups(pages[0].questions).map((group) => group.map(({ id }) => id)),
    [["x"], ["m_a", "m_b"]],
  );
  const text = { text: "Satisfied with?: row b" };
  const wrong = {
    "a row alone": [a, other],
    "a row elsewhere": [a, b, other, { ...b, id: "m_c" }],
    "thirteen rows": matrixRows([..."abcdefghijklm"]),
    "no topic": [a, { ...b, topic: undefined }],
    "no topic at all": matrixRows(["a", "b"], { topic: undefined }),
    "another topic": [a, { ...b, topic: "Other" }],
    "another channel": [a, { ...b, channel: channel(4, 2, 1) }],
    "another label": [a, { ...b, options: [...b.options].reverse() }],
    "another stem": [a, { ...b, ...text, matrix: { ...b.matrix, text: "Satisfied with?" } }],
    "another text": [a, { ...b, text: "Are you ill?" }],
    "a choice": matrixRows(["a", "b"], { type: "single_choice", grid: null }),
    "no row": [a, { ...b, matrix: { id: "m", text: "Satisfied with" } }],
    "no matrix": [a, { ...b, matrix: null }],
  };
  for (const [name, rows] of Object.entries(wrong))
    await assert.rejects(read(onOnePage(rows)), refused("malformed"), name);
});

test("a matrix is drawn whole", async () => {
  const rows = [...matrixRows(), question("x", channel(2, 3, 1))];
  const draw = (groups) => read({ ...onOnePage(rows), sampling: { draw: 1, groups } });
  await draw([["m_a", "m_b"], ["x"]]);
  await assert.rejects(draw([["m_a"], ["m_b"], ["x"]]), refused("malformed"));
});

test("the texts of a matrix are translated together, or the translation is refused", async () => {
  const rows = matrixRows();
  const options = rows[0].options.map(() => "");
  const translated = (matrix, text) => {
    const part = { text, help: "", unit: "", topic: "Contento con", options, matrix };
    const own = { text: "", help: "", unit: "", topic: "", options, matrix: { text: "", row: "" } };
    const texts = Object.fromEntries(TEXTS.map((name) => [name, ""]));
    const pages = [{ title: "", questions: [part, { ...own, text: "Contento con: row b" }] }];
    pages[0].questions[1].matrix = { text: "Contento con", row: "" };
    return { ...onOnePage(rows), translations: { es: { ...texts, pages } } };
  };
  const matrix = { text: "Contento con", row: "fila a" };
  const definition = await read(translated(matrix, "Contento con: fila a"));
  const [a, b] = translateDefinition(definition, "es").pages[0].questions;
  assert.deepEqual(a.matrix, { id: "m", ...matrix });
  assert.deepEqual(b.matrix, { id: "m", text: "Contento con", row: "row b" });
  await assert.rejects(read(translated(matrix, "Triste con: fila a")), refused("malformed"));
  await assert.rejects(read(translated(undefined, "Contento con: fila a")), refused("malformed"));
});

/** Return a definition whose second page shows the answers to the questions of the first. */
function withPiping(changes = {}, { multiple = false, ...settings } = {}) {
  const source = multiple
    ? question("a", bits(3, 3, 1, { alone: 1 }))
    : question("a", channel(2, 3, 1));
  const text = "At it {now}, it?";
  const piped = { text: "At {a|it} {{now}}, {a|it}?" };
  const list = [source, question("b", channel(2, 3, 1), { text, piped, ...changes })];
  return definitionOf(list, { allow_skip_logic: true, ...settings });
}

test("earlier answers in a text are accepted only where this device can show them", async () => {
  await read(withPiping());
  await read(withPiping({ help: "it", piped: { help: "{a|it}" } }));
  const rest = question("c", channel(2, 3, 1));
  const drawn = { sampling: { draw: 1, groups: [["a", "b"], ["c"]] } };
  const whole = withPiping({}, drawn);
  await read({ ...whole, pages: [...whole.pages, { title: "", questions: [rest] }] });
  const apart = { sampling: { draw: 1, groups: [["a"], ["b"]] } };
  const wrong = {
    "no skip logic": withPiping({}, { allow_skip_logic: false }),
    "several answers": withPiping({}, { multiple: true }),
    "another plain text": withPiping({ text: "At work?" }),
    "a later question": withPiping({ text: "At it?", piped: { text: "At {b|it}?" } }),
    "an unknown question": withPiping({ text: "At it?", piped: { text: "At {x|it}?" } }),
    "an unknown text": withPiping({ piped: { title: "{a|it}" } }),
    "no text": withPiping({ piped: {} }),
    nothing: withPiping({ piped: null }),
    "another draw": withPiping({}, apart),
  };
  for (const [name, definition] of Object.entries(wrong))
    await assert.rejects(read(definition), refused("malformed"), name);
});

test("a translated text has the same earlier answers, in another order if need be", async () => {
  const definition = withPiping();
  const inSpanish = (text, piped) => {
    const texts = Object.fromEntries(TEXTS.map((name) => [name, ""]));
    const empty = { text: "", help: "", unit: "", options: ["", ""] };
    const pages = [empty, { ...empty, text, piped }].map((part) => ({
      title: "",
      questions: [part],
    }));
    return { ...definition, translations: { es: { ...texts, pages } } };
  };
  const text = "¿En {a|su trabajo}?";
  const checked = await read(inSpanish("¿En su trabajo?", { text }));
  const [, { questions: list }] = translateDefinition(checked, "es").pages;
  assert.equal(list[0].piped.text, text);
  await read(inSpanish("", { text: "" }));
  for (const [plain, piped] of [
    ["¿En su trabajo?", { text: "¿En su trabajo?" }],
    ["¿En su casa?", { text }],
    ["¿En su trabajo?", undefined],
    ["¿En x?", { text: "¿En {b|x}?" }],
  ])
    await assert.rejects(read(inSpanish(plain, piped)), refused("malformed"), plain);
});

test("a survey may store the day or the week of a release, and nothing else of its date", async () => {
  for (const bucket of ["day", "week"]) {
    assert.equal((await read({ ...GOOD, bucket })).bucket, bucket);
  }
  for (const bucket of ["none", "hour", "", null, 1]) {
    await assert.rejects(read({ ...GOOD, bucket }), refused("malformed"));
  }
});

const sampled = (draw, ...groups) => ({ ...GOOD, sampling: { draw, groups } });
const WRONG_SAMPLINGS = {
  "no draw": sampled(0, ["a"], ["b"]),
  "a draw of all groups": sampled(2, ["a"], ["b"]),
  "half a draw": sampled(0.5, ["a"], ["b"]),
  "an empty group": sampled(1, ["a", "b"], []),
  "a question in no group": sampled(1, ["a"], ["a"]),
  "a question in two groups": sampled(1, ["a", "b"], ["b"]),
  "an unknown question": sampled(1, ["a"], ["b", "x"]),
  "groups that are no lists": sampled(1, "a", "b"),
  "no groups": { ...GOOD, sampling: { draw: 1 } },
  "no word on sampling": { ...GOOD, sampling: undefined },
  "a question drawn without the one it depends on": {
    ...SKIPS,
    sampling: { draw: 1, groups: [["a"], ["b"]] },
  },
};
for (const [name, wrong] of Object.entries(WRONG_SAMPLINGS)) {
  test(`a sampling with ${name} is refused`, async () => {
    await assert.rejects(read(wrong), refused("malformed"));
  });
}

const OPTION = { id: "o0", label: "Option" };
const WRONG_QUESTIONS = {
  "an unknown type": { type: "text" },
  "no text": { text: undefined },
  "an unknown opt-out": { opt_out: "maybe" },
  "no options": { options: undefined },
  "two options of one id": { options: [OPTION, OPTION, { ...OPTION, id: "o2" }] },
  "an option without label": { options: [{ id: "o0" }, OPTION, OPTION] },
  "an empty id": { id: "" },
  "no answer for when it is hidden": { not_applicable: undefined },
  "no mechanism": { mechanism: undefined },
  "one option": { options: [OPTION], channel: channel(1, 3, 1) },
};
for (const [name, changes] of Object.entries(WRONG_QUESTIONS)) {
  test(`a question with ${name} is refused`, async () => {
    await assert.rejects(readQuestion(changes), refused("malformed"));
  });
}

const WRONG_DEFINITIONS = {
  "another format": { ...GOOD, format: 3 },
  "no pages": { ...GOOD, pages: [] },
  "an empty page": { ...GOOD, pages: [{ title: "", questions: [] }] },
  "two questions of one id": definitionOf([
    question("a", channel(2, 3, 1)),
    question("a", channel(2, 3, 1)),
  ]),
  "no title": { ...GOOD, title: undefined },
  "no size of reports": { ...GOOD, report_bytes: undefined },
  "an unknown key": { ...GOOD, trace: true },
  "an unknown key of a page": { ...GOOD, pages: [{ ...GOOD.pages[0], trace: true }] },
  "an unknown key of a question": definitionOf([
    { ...question("a", channel(2, 3, 1)), trace: true },
  ]),
  "reports above 8 KB": { ...GOOD, report_bytes: 8193 },
  nothing: null,
};
for (const [name, wrong] of Object.entries(WRONG_DEFINITIONS)) {
  test(`a definition with ${name} is refused`, async () => {
    await assert.rejects(read(wrong), refused("malformed"));
  });
}

test("bytes that are not JSON in UTF-8 are refused", async () => {
  for (const bytes of [new Uint8Array([0xff, 0xfe]), new TextEncoder().encode("{")]) {
    await assert.rejects(readDefinition(bytes, { digest }), refused("malformed"));
  }
});

const BYTES = bytesOf(definitionOf([question("a", channel(2, 3, 1))]));

/** Open a link to a survey as the page does. */
async function open(link, { slug = "workplace", bytes = BYTES, ...changes } = {}) {
  const window = { crypto, fetch: async () => new Response(bytes), ...changes };
  const content = await requestDefinition(window, { slug, server: `/s/${slug}` }, link);
  return loadDefinition(content, slug, link, crypto.subtle);
}

const LINK = parseLink(`#d=${sha256(BYTES).slice(0, 16)}`);
const TOKEN = "A".repeat(43);

test("a definition that matches its link is loaded", async () => {
  const definition = await open(LINK);
  assert.equal(definition.id, sha256(BYTES));
});

test("a link without a hash opens the survey too", async () => {
  await open(parseLink(""));
});

test("without randomness or WebCrypto nothing is requested", async () => {
  const fetch = () => assert.fail("requested");
  const broken = () => {
    throw new Error("no entropy");
  };
  const silent = { subtle: crypto.subtle, getRandomValues: broken };
  await assert.rejects(open(LINK, { fetch, crypto: silent }), NoRandomnessError);
  for (const nothing of [{}, undefined])
    await assert.rejects(open(LINK, { fetch, crypto: nothing }), NoRandomnessError);
  const insecure = { getRandomValues: (array) => crypto.getRandomValues(array) };
  await assert.rejects(open(LINK, { fetch, crypto: insecure }), CryptoMissingError);
});

test("another definition than the link's is refused", async () => {
  const link = parseLink(`#d=${"0".repeat(16)}`);
  await assert.rejects(open(link), DefinitionError);
});

test("a definition served under another name is refused, because it would get a second report", async () => {
  await assert.rejects(
    open(LINK, { slug: "school" }),
    (error) => error instanceof DefinitionError && error.reason === "malformed",
  );
});

test("a link contains the definition's hash, an invitation and its stratum", () => {
  const link = parseLink(`#d=ab&s=K%C3%B6ln%20%26%20Bonn&i=${TOKEN}`);
  const expected = {
    prefix: "ab",
    invitation: TOKEN,
    stratum: "Köln & Bonn",
    hadInvitation: false,
  };
  assert.deepEqual(link, expected);
  const none = { prefix: "", invitation: "", stratum: "", hadInvitation: false };
  assert.deepEqual(parseLink(""), none);
  assert.deepEqual(parseLink("#i="), { ...none, hadInvitation: true });
});

for (const hash of [
  `i=${TOKEN.slice(1)}`,
  `i=${TOKEN}A`,
  `i=${"A".repeat(42)}B`,
  "i=<script>alert(1)</script>",
  "s=north",
  `i=${TOKEN}&s=${"n".repeat(61)}`,
  `i=${TOKEN}&s=a%00b`,
  "d=0123456789abcde",
  "d=0123456789abcdef.",
  `d=0123456789ABCDEF&i=${TOKEN}`,
]) {
  test(`a damaged link is reported and nothing is requested: ${hash}`, async () => {
    const fetch = () => assert.fail("requested");
    await assert.rejects(open(parseLink(`#${hash}`), { fetch }), refused("damaged_link"));
  });
}

test("a personal link cut anywhere is never valid", async () => {
  const link = `#s=Night%20shift&i=${TOKEN}&d=${"0".repeat(16)}`;
  const fetch = () => assert.fail("requested");
  for (let end = "#s=N".length; end < link.length; end += 1) {
    const loaded = open(parseLink(link.slice(0, end)), { fetch });
    await assert.rejects(loaded, (error) => error instanceof DefinitionError, `${end}`);
  }
});

test("a reload after the invitation was removed asks for the link again", async () => {
  const fetch = () => assert.fail("requested");
  const loaded = open(parseLink(`#d=${"0".repeat(16)}&i=`), { fetch });
  await assert.rejects(loaded, refused("invitation_needed"));
});

test("a survey by invitation asks nothing without an invitation", async () => {
  const bytes = bytesOf({ ...GOOD, access: "invitation" });
  await assert.rejects(open(parseLink(""), { bytes }), refused("invitation_needed"));
  const invited = parseLink(`#i=${TOKEN}&d=${sha256(bytes).slice(0, 16)}`);
  assert.equal((await open(invited, { bytes })).access, "invitation");
});

const QUESTION = { text: "¿Le presionaron?", help: "", unit: "", options: ["Nunca", "", "", ""] };
const PAGE = { title: "", questions: [QUESTION] };
const TEXTS = ["title", "introduction", "consent", "ethics", "helpline", "contact", "thanks"];
const SPANISH = {
  ...Object.fromEntries(TEXTS.map((name) => [name, ""])),
  title: "Trabajo",
  pages: [PAGE],
};
const TRANSLATED = {
  ...definitionOf([question("a", channel(4, 3, 1))]),
  translations: { es: SPANISH },
};

test("a definition has its texts in another language where they are translated", async () => {
  const definition = await read(TRANSLATED);
  const spanish = translateDefinition(definition, "es");
  const [translated] = spanish.pages[0].questions;
  assert.equal(spanish.language, "es");
  assert.equal(spanish.title, "Trabajo");
  assert.equal(translated.text, "¿Le presionaron?");
  assert.deepEqual(
    translated.options.map(({ label }) => label),
    ["Nunca", "Option 1", "Option 2", "Option 3"],
  );
  assert.equal(spanish.untranslated.get("Option 1"), "en");
  assert.equal(spanish.untranslated.get("Nunca"), undefined);
  assert.equal(translated.channel, definition.pages[0].questions[0].channel);
  assert.equal(spanish.id, definition.id);
  assert.equal(translateDefinition(definition, "de"), definition);
});

for (const [what, spanish] of Object.entries({
  "fewer pages": { ...SPANISH, pages: [] },
  "no pages": { ...SPANISH, pages: undefined },
  "a question more": { ...SPANISH, pages: [{ ...PAGE, questions: [QUESTION, QUESTION] }] },
  "fewer labels": {
    ...SPANISH,
    pages: [{ ...PAGE, questions: [{ ...QUESTION, options: ["Nunca"] }] }],
  },
  "a label that is no text": {
    ...SPANISH,
    pages: [{ ...PAGE, questions: [{ ...QUESTION, options: ["Nunca", "", "", 3] }] }],
  },
  "no title": { ...SPANISH, title: undefined },
  nothing: null,
})) {
  test(`a translation of another shape is refused: ${what}`, async () => {
    await assert.rejects(
      read({ ...TRANSLATED, translations: { es: spanish } }),
      refused("malformed"),
    );
  });
}

for (const changes of [
  { translations: [] },
  { translations: null },
  { translations: { "<b>": SPANISH } },
  { access: "all" },
  { kiosk: "yes" },
  { theme: "neon" },
  { exit: "javascript:alert(1)" },
  { exit: "http://example.org" },
  { consent: 1 },
]) {
  test(`a definition with ${JSON.stringify(changes)} is refused`, async () => {
    await assert.rejects(read({ ...TRANSLATED, ...changes }), refused("malformed"));
  });
}

/** A page with the address of a collector, or with none. */
const pageOf = (collector) => ({
  querySelector: () => (collector ? { getAttribute: () => collector } : null),
});
const parseSlug = (pathname, hash = "") => parseAddress(pageOf(""), { pathname, hash }).slug;

test("only one spelling of a path names a survey", () => {
  for (const pathname of ["/s/workplace", "/s/workplace/"]) {
    assert.equal(parseSlug(pathname), "workplace");
  }
  assert.equal(parseSlug("/s/a-1-b"), "a-1-b");
  assert.equal(parseSlug("/", "#slug=workplace"), "", "only another host's page has it after #");
});

test("another host's page has the slug after the # and sends to its collector", () => {
  const collector = "https://collect.example";
  const parse = (hash) => parseAddress(pageOf(collector), { pathname: "/s/other", hash });
  const server = `${collector}/s/workplace`;
  assert.deepEqual(parse("#slug=workplace&d=00"), { slug: "workplace", collector, server });
  for (const hash of [
    "",
    "#d=00",
    "#slug=",
    "#slug=work%70lace/..",
    "#slug=/s/workplace",
    "#slug=A",
  ])
    assert.equal(parse(hash).slug, "", hash);
});

test("the address without its invitation still names the survey and its hash", () => {
  const kept = (collector, hash) =>
    withoutInvitation({ slug: "workplace", collector, server: "" }, parseLink(hash));
  assert.equal(kept("", `#s=north&i=${TOKEN}&d=ab`), "#d=ab&i=");
  assert.equal(kept("", `#i=${TOKEN}`), "#i=");
  const hash = `#slug=workplace&i=${TOKEN}&d=ab`;
  assert.equal(kept("https://collect.example", hash), "#slug=workplace&d=ab&i=");
});

test("a link to a definition of a later format has at least 32 digits of its hash", async () => {
  for (const [format, digits, isLongEnough] of [
    ...[
      [1, 16, true],
      [1, 64, true],
      [2, 16, false],
      [2, 31, false],
    ],
    ...[
      [2, 32, true],
      [2, 64, true],
      [2, 0, true],
    ],
  ]) {
    const bytes = bytesOf({ ...GOOD, format });
    const loaded = open(parseLink(`#d=${sha256(bytes).slice(0, digits)}`), { bytes });
    if (isLongEnough) assert.equal((await loaded).format, format);
    else await assert.rejects(loaded, refused("damaged_link"));
  }
});

for (const pathname of [
  "/s/work%70lace",
  "/%73/workplace",
  "/s/workplace%2F",
  "/s/workplace//",
  "//s/workplace",
  "/s//workplace",
  "/s/./workplace",
  "/s/Workplace",
  "/s/workplace;a",
  "/s/workplace%0A",
  "/s/workplace\n",
  "/s/work--place",
  "/s/-work",
  "/s/work-",
  "/s/",
  "/",
  "",
  "/x/s/workplace",
  "/s/workplace/reports",
]) {
  test(`${JSON.stringify(pathname)} is not an address`, () => {
    assert.equal(parseSlug(pathname), "");
  });
}

const REASONS = [
  [new NoRandomnessError(""), "randomness"],
  [new CryptoMissingError(), "crypto"],
  [new DefinitionError("too_weak", ""), "too_weak"],
  [new UnavailableError({ status: 404, name: "", detail: "" }), "missing"],
  [new UnavailableError({ status: 410, name: "", detail: "" }), "closed"],
  [new UnavailableError({ status: 410, name: "full", detail: "" }), "full"],
  [new UnavailableError({ status: 403, name: "not-open", detail: "" }), "not_open"],
  [new UnavailableError({ status: 0, name: "", detail: "" }), "unavailable"],
  [new ReportTooLongError(2, 1), "unexpected"],
];
for (const [error, reason] of REASONS) {
  test(`${error.name} ${error.status ?? ""} is explained as ${reason}`, () => {
    assert.equal(obstacleOf(error), reason);
  });
}
