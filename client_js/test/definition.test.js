import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CryptoMissingError,
  DefinitionError,
  loadDefinition,
  readDefinition,
  reasonFor,
  slugOf,
} from "../src/definition.js";
import { NoRandomnessError } from "../src/random.js";
import { ReportTooLongError } from "../src/report.js";
import { UnavailableError } from "../src/transport.js";
import { bytesOf, channel, definitionOf, digest, question, sha256 } from "./support.js";

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
  return read(definitionOf(channels.map((one, i) => question(`x${i}`, one))));
}

const refused = (reason) => (error) => error instanceof DefinitionError && error.reason === reason;

test("a definition is known by the hash of its bytes and frozen throughout", async () => {
  const definition = await read(GOOD);
  assert.equal(definition.id, sha256(bytesOf(GOOD)));
  assert.ok(Object.isFrozen(definition.pages[0].questions[0].channel));
  assert.throws(() => {
    definition.pages[0].questions[0].channel.T = 9;
  }, TypeError);
});

test("the start of the hash in the link must fit", async () => {
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

test("a prefix that fits but is too short to bind is refused", async () => {
  const id = sha256(bytesOf(GOOD));
  await assert.rejects(read(GOOD, id.slice(0, 15)), refused("other_definition"));
  await assert.rejects(read(GOOD, `${id}0`), refused("other_definition"));
});

test("one changed byte is another definition", async () => {
  const id = sha256(bytesOf(GOOD));
  await assert.rejects(read({ ...GOOD, version: 2 }, id), refused("other_definition"));
});

test("p = .99 is the ceiling, exactly", async () => {
  await readChannels(channel(2, 99, 1));
  await readChannels(channel(2, 99 * 10 ** 7, 10 ** 7));
  await assert.rejects(readChannels(channel(2, 99 * 10 ** 7 + 1, 10 ** 7)), refused("too_weak"));
  await assert.rejects(readChannels(channel(3, 199, 1)), refused("too_weak"));
});

test("p of a set counts all sets that hold the truth", async () => {
  await readChannels(channel(4, 33, 1, 3));
  await assert.rejects(readChannels(channel(4, 34, 1, 3)), refused("too_weak"));
});

test("epsilon 12 of one question is the ceiling, exactly", async () => {
  await readChannels(channel(2000, 162_754, 1));
  await assert.rejects(readChannels(channel(2000, 162_755, 1)), refused("too_weak"));
});

test("epsilon 20 of all questions is the ceiling, exactly", async () => {
  // 485,165,195 = 5 * 97,033,039: two questions of 97,033,039/1000 and 5000/1 meet it.
  const parts = [channel(2000, 97_033_039, 1000), channel(60, 5000, 1)];
  await readChannels(...parts);
  await assert.rejects(
    readChannels(channel(2000, 97_033_040, 1000), channel(60, 5000, 1)),
    refused("too_weak"),
  );
  await assert.rejects(readChannels(...parts, channel(2, 2, 1)), refused("too_weak"));
});

test("many modest questions reach the total as surely as one bold one", async () => {
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
  "no channel": undefined,
};
for (const [name, wrong] of Object.entries(WRONG_CHANNELS)) {
  test(`a channel with ${name} is refused`, async () => {
    await assert.rejects(readQuestion({ channel: wrong }), refused("malformed"));
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
};
for (const [name, changes] of Object.entries(WRONG_QUESTIONS)) {
  test(`a question with ${name} is refused`, async () => {
    await assert.rejects(readQuestion(changes), refused("malformed"));
  });
}

const WRONG_DEFINITIONS = {
  "another format": { ...GOOD, format: 2 },
  "no pages": { ...GOOD, pages: [] },
  "an empty page": { ...GOOD, pages: [{ title: "", questions: [] }] },
  "two questions of one id": definitionOf([
    question("a", channel(2, 3, 1)),
    question("a", channel(2, 3, 1)),
  ]),
  "no title": { ...GOOD, title: undefined },
  "no size of reports": { ...GOOD, report_bytes: undefined },
  "reports above 8 KB": { ...GOOD, report_bytes: 8193 },
  nothing: null,
};
for (const [name, wrong] of Object.entries(WRONG_DEFINITIONS)) {
  test(`a definition with ${name} is refused`, async () => {
    await assert.rejects(read(wrong), refused("malformed"));
  });
}

test("bytes that are no JSON in UTF-8 are refused", async () => {
  for (const bytes of [new Uint8Array([0xff, 0xfe]), new TextEncoder().encode("{")]) {
    await assert.rejects(readDefinition(bytes, { digest }), refused("malformed"));
  }
});

const BYTES = bytesOf(definitionOf([question("a", channel(2, 3, 1))]));
const fill = (array) => crypto.getRandomValues(array);

function browser(changes = {}) {
  return {
    crypto,
    fetch: async () => new Response(BYTES),
    location: { hash: `#d=${sha256(BYTES).slice(0, 16)}` },
    ...changes,
  };
}

test("a definition that fits its link is loaded", async () => {
  const definition = await loadDefinition(browser(), "workplace", fill);
  assert.equal(definition.id, sha256(BYTES));
});

test("a link without a hash is served too", async () => {
  await loadDefinition(browser({ location: { hash: "" } }), "workplace", fill);
});

test("without randomness or WebCrypto nothing is even requested", async () => {
  const fetch = () => assert.fail("requested");
  const broken = () => {
    throw new Error("no entropy");
  };
  await assert.rejects(loadDefinition(browser({ fetch }), "workplace", broken), NoRandomnessError);
  const insecure = browser({ fetch, crypto: {} });
  await assert.rejects(loadDefinition(insecure, "workplace", fill), CryptoMissingError);
});

test("another definition than the link's is refused", async () => {
  const window = browser({ location: { hash: `#d=${"0".repeat(16)}` } });
  await assert.rejects(loadDefinition(window, "workplace", fill), DefinitionError);
});

test("a definition served under another name is refused: it would get a second report", async () => {
  await assert.rejects(
    loadDefinition(browser(), "school", fill),
    (error) => error instanceof DefinitionError && error.reason === "malformed",
  );
});

test("only the one spelling of an address names a survey", () => {
  for (const pathname of ["/s/workplace", "/s/workplace/"]) {
    assert.equal(slugOf(pathname), "workplace");
  }
  assert.equal(slugOf("/s/a-1-b"), "a-1-b");
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
    assert.equal(slugOf(pathname), "");
  });
}

const REASONS = [
  [new NoRandomnessError(""), "randomness"],
  [new CryptoMissingError(), "crypto"],
  [new DefinitionError("too_weak", ""), "too_weak"],
  [new UnavailableError(404), "missing"],
  [new UnavailableError(410), "closed"],
  [new UnavailableError(0), "unavailable"],
  [new ReportTooLongError(2, 1), "unexpected"],
];
for (const [error, reason] of REASONS) {
  test(`${error.name} ${error.status ?? ""} is explained as ${reason}`, () => {
    assert.equal(reasonFor(error), reason);
  });
}
