// Runs the shipped client for `survey audit`: a question on stdin, the answer on stdout, as JSON.
// Every key of the question is a list; each of its parts is answered by the function of that name.
import { createHash, webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { client, ...question } = JSON.parse(readFileSync(0, "utf8"));
const load = (name) => import(pathToFileURL(`${client}/${name}`).href);
const { perturb, ratio, tableRow } = await load("mechanism.js");
const { createUniformBelow } = await load("random.js");
const { readDefinition } = await load("definition.js");
const { makeReport, drawQuestions } = await load("report.js");

/** A source of given draws, 0 where none is given; `asked` gathers the ranges. */
function replay(draws, asked) {
  return (n) => {
    asked.push(n);
    return draws[asked.length - 1] ?? 0;
  };
}

/** How often each outcome comes, over all sequences of draws; their ranges must be constant. */
function everySequence(run) {
  const outcomes = new Map();
  const draws = [];
  let ranges = null;
  for (;;) {
    const asked = [];
    const outcome = run(replay(draws, asked));
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    ranges ??= asked;
    if (asked.length !== ranges.length || asked.some((n, i) => n !== ranges[i])) {
      return { outcomes, ranges: null };
    }
    let at = asked.length - 1;
    while (at >= 0 && (draws[at] ?? 0) + 1 === asked[at]) draws[at--] = 0;
    if (at < 0) return { outcomes, ranges };
    draws[at] = (draws[at] ?? 0) + 1;
  }
}

/** {channel, truths} -> for each truth how often each report comes. */
function enumerate({ channel, truths }) {
  return truths.map((truth) => {
    const { outcomes, ranges } = everySequence((below) => perturb(channel, truth, below));
    return { reports: Object.fromEntries(outcomes), ranges };
  });
}

/**
 * {channel, truth, draws, at, values} -> reports as draw number `at` takes these values, the others
 * staying as they are. `values` a number: all below it, answered by where each new report begins.
 */
function alone({ channel, truth, draws, at, values }) {
  const moving = [...draws];
  const ranges = new Set();
  const report = (value) => {
    const asked = [];
    moving[at] = value;
    const code = perturb(channel, truth, replay(moving, asked));
    ranges.add(String(asked));
    return code;
  };
  const reports = [];
  if (Array.isArray(values)) for (const value of values) reports.push([value, report(value)]);
  else {
    for (let value = 0; value < values; value += 1) {
      const code = report(value);
      if (reports.at(-1)?.[1] !== code) reports.push([value, code]);
    }
  }
  return { reports, ranges: [...ranges] };
}

/** channel -> e^epsilon as the pages show it and the ceilings check it. */
function ratios(channel) {
  const { most, least } = ratio(channel);
  return [String(most), String(least)];
}

/** {channel, truths} -> SHA-256 of each truth's row of weights. */
function rows({ channel, truths }) {
  const digest = (row) => createHash("sha256").update(row.join(",")).digest("hex");
  return truths.map((truth) => digest(tableRow(channel, truth)));
}

/** {definition, answers, idBytes, circumstances} -> each different body, and how often it came. */
function reports({ definition, answers, idBytes, circumstances }) {
  const bodies = new Map();
  const id = Uint8Array.from(idBytes);
  const tables = answers.map((given) => {
    const { outcomes, ranges } = everySequence((below) =>
      makeReport(definition, given, below, id, circumstances),
    );
    const counts = [...outcomes].map(([body, count]) => {
      if (!bodies.has(body)) bodies.set(body, bodies.size);
      return [bodies.get(body), count];
    });
    return { counts, ranges };
  });
  return { bodies: [...bodies.keys()], tables };
}

/** {definition, people: [{answers, draws, idBytes, circumstances}]} -> each one's body. */
function people({ definition, people: all }) {
  return all.map(({ answers, draws, idBytes, circumstances }) => {
    const asked = [];
    const id = Uint8Array.from(idBytes);
    const body = makeReport(definition, answers, replay(draws, asked), id, circumstances);
    return { body, ranges: asked };
  });
}

/** {definition} -> how often each set of questions is drawn. */
function drawn({ definition }) {
  const { outcomes, ranges } = everySequence((below) =>
    JSON.stringify(drawQuestions(definition, below)),
  );
  return { outcomes: Object.fromEntries(outcomes), ranges };
}

/** {n, word, next} -> uniformBelow(n) of one word, and of the next one when it rejects the first. */
function words({ n, word, next }) {
  let filled = 0;
  const uniformBelow = createUniformBelow((array) => {
    filled += 1;
    array.fill(next);
    array[0] = word;
  });
  const value = uniformBelow(n);
  // A pool of 2^10 words must serve this many draws before it is filled again.
  for (let i = 0; i < 500; i += 1) uniformBelow(1);
  return { value, filled };
}

/** {channel, truths, n, bits} -> counts of n reports of the real generator, by code or by bit. */
function sample({ channel, truths, n, bits }) {
  const uniformBelow = createUniformBelow((array) => webcrypto.getRandomValues(array));
  return truths.map((truth) => {
    const run = () => perturb(channel, truth, uniformBelow);
    return bits ? countBits(run, n, bits) : countCodes(run, n);
  });
}

/** Codes that are small integers are counted in an array, ten times as fast as by their names. */
function countCodes(run, n) {
  const small = new Float64Array(8192);
  const named = new Map();
  for (let i = 0; i < n; i += 1) {
    const code = run();
    if (code >= 0 && code < small.length && Number.isInteger(code)) small[code] += 1;
    else named.set(code, (named.get(code) ?? 0) + 1);
  }
  for (const [code, count] of small.entries()) if (count) named.set(code, count);
  return Object.fromEntries(named);
}

function countBits(run, n, bits) {
  const ones = new Float64Array(bits);
  for (let i = 0; i < n; i += 1) {
    const octets = Buffer.from(run(), "base64url");
    for (let bit = 0; bit < bits; bit += 1) ones[bit] += (octets[bit >> 3] >> (7 - (bit & 7))) & 1;
  }
  return Object.fromEntries(ones.entries());
}

/** Whether a device takes the survey at all: its form and the ceilings built in. */
async function accept(canonical) {
  const digest = (bytes) => webcrypto.subtle.digest("SHA-256", bytes);
  try {
    const { id } = await readDefinition(new TextEncoder().encode(canonical), { digest });
    return { id };
  } catch (error) {
    return { refused: error.message };
  }
}

const answers = { accept, enumerate, alone, ratios, rows, reports, people, drawn, words, sample };
const answered = [];
for (const [name, parts] of Object.entries(question)) {
  answered.push([name, await Promise.all(parts.map((part) => answers[name](part)))]);
}
console.log(JSON.stringify(Object.fromEntries(answered)));
