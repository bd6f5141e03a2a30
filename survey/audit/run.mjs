// Runs the shipped client for `survey audit`: JSON requests on stdin, JSON answers on stdout.
// `definition` is the survey's canonical text, which the client reads as a device does; requests
// that name a question or a respondent use the objects that result from this reading.
// Every other key is a list of requests, which the function of the same name answers one by one.
import { createHash, webcrypto } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { loaderFor } from "./realm.mjs";
import { createBareRealm, makeVisit } from "./visit.mjs";

const { client, definition, ...requestsByName } = JSON.parse(readFileSync(0, "utf8"));
const names = readdirSync(client).filter((name) => name.endsWith(".js"));
const sources = new Map(names.map((name) => [name, readFileSync(`${client}/${name}`, "utf8")]));
const bare = createBareRealm();
const load = loaderFor(bare.context, sources);
const { perturb } = await load("mechanism.js");
const { tableRow } = await load("weight-table.js");
const { createUniformBelow, drawBytes } = await load("random.js");
const { readDefinition } = await load("definition.js");
const { drawQuestions, makeReport } = await load("report.js");
const loss = await load("privacy-loss.js");
const { frequencies } = loss;

const digest = (bytes) => webcrypto.subtle.digest("SHA-256", bytes);
const read = (canonical, expectedPrefix = "") =>
  readDefinition(new TextEncoder().encode(canonical), { digest, expectedPrefix });
const survey = definition === undefined ? null : await read(definition);
const allQuestions = survey?.pages.flatMap((page) => page.questions) ?? [];

/** Return the channel that the device runs for a question, or the channel in the request. */
function channelOf({ question: id, channel }) {
  if (id === undefined) return channel;
  const question = allQuestions.find((item) => item.id === id);
  return question.joint?.channel ?? question.channel;
}

/** Return a source of the given draws, then of zeros; `ranges` records each n. */
function replay(draws, ranges) {
  return (n) => {
    ranges.push(n);
    return draws[ranges.length - 1] ?? 0;
  };
}

const realGenerator = (array) => webcrypto.getRandomValues(array);

/** Count each outcome over all sequences of draws, whose ranges must be constant. */
function everySequence(run) {
  const outcomes = new Map();
  const draws = [];
  let firstRanges = null;
  for (;;) {
    const ranges = [];
    const outcome = run(replay(draws, ranges));
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    firstRanges ??= ranges;
    if (ranges.length !== firstRanges.length || ranges.some((n, i) => n !== firstRanges[i])) {
      return { outcomes, ranges: null };
    }
    let at = ranges.length - 1;
    while (at >= 0 && (draws[at] ?? 0) + 1 === ranges[at]) draws[at--] = 0;
    if (at < 0) return { outcomes, ranges: firstRanges };
    draws[at] = (draws[at] ?? 0) + 1;
  }
}

/** {channel, truths} -> for each truth, how often each report occurs. */
function enumerate({ truths, ...named }) {
  const channel = channelOf(named);
  return truths.map((truth) => {
    const { outcomes, ranges } = everySequence((below) => perturb(channel, truth, below));
    return { reports: Object.fromEntries(outcomes), ranges };
  });
}

/**
 * {channel, truth, draws, at, values} -> the report for each value of draw number `at`, with the
 * other draws unchanged. If `values` is a number n: all values below n, as the first value of each
 * run of equal reports.
 */
function sweeps({ truth, draws, at, values, ...named }) {
  const channel = channelOf(named);
  const changedDraws = [...draws];
  const allRanges = new Set();
  const reportOf = (value) => {
    const ranges = [];
    changedDraws[at] = value;
    const code = perturb(channel, truth, replay(changedDraws, ranges));
    allRanges.add(String(ranges));
    return code;
  };
  const reports = [];
  if (Array.isArray(values)) for (const value of values) reports.push([value, reportOf(value)]);
  else {
    for (let value = 0; value < values; value += 1) {
      const code = reportOf(value);
      if (reports.at(-1)?.[1] !== code) reports.push([value, code]);
    }
  }
  return { reports, ranges: [...allRanges] };
}

/** {channel} -> e^epsilon as the pages show it and the client's limits apply to it. */
function ratios(named) {
  const { numerator, denominator } = loss.ratio(channelOf(named));
  return [String(numerator), String(denominator)];
}

/** {channel, truths} -> SHA-256 of each truth's row of weights. */
function rows({ truths, ...named }) {
  const channel = channelOf(named);
  const hashed = (row) => createHash("sha256").update(row.join(",")).digest("hex");
  return truths.map((truth) => hashed(tableRow(channel, truth)));
}

/** {canonical, answers, idBytes, circumstances} -> each different body and how often it occurs. */
async function reports({ canonical, answers, idBytes, circumstances }) {
  const small = await read(canonical);
  const bodies = new Map();
  const id = Uint8Array.from(idBytes);
  const tables = answers.map((answersToBoth) => {
    const { outcomes, ranges } = everySequence((below) =>
      makeReport(small, answersToBoth, below, id, circumstances),
    );
    const counts = [...outcomes].map(([body, count]) => {
      if (!bodies.has(body)) bodies.set(body, bodies.size);
      return [bodies.get(body), count];
    });
    return { counts, ranges };
  });
  return { bodies: [...bodies.keys()], tables };
}

/** {answers, draws, idBytes, circumstances} -> a respondent's body, or the name of the error. */
function respondents({ answers, draws, idBytes, circumstances }) {
  const ranges = [];
  const id = Uint8Array.from(idBytes);
  try {
    return { body: makeReport(survey, answers, replay(draws, ranges), id, circumstances), ranges };
  } catch (error) {
    return { refused: error.constructor.name };
  }
}

/** {} -> how often each set of questions is sampled, over all sequences of draws. */
function questionSamples() {
  const { outcomes, ranges } = everySequence((below) =>
    JSON.stringify(drawQuestions(survey, below)),
  );
  return { outcomes: Object.fromEntries(outcomes), ranges };
}

/** {draws} -> the sampled questions and the ranges of the draws. */
function questionSample({ draws }) {
  const ranges = [];
  return { questions: drawQuestions(survey, replay(draws, ranges)), ranges };
}

/**
 * {below, words} -> draws below each n from one generator that receives these words, the rest of
 * its pool, and the number of words that remain in memory at the end.
 */
function words({ below, words: supply }) {
  const pools = [];
  let at = 0;
  const uniformBelow = createUniformBelow((array) => {
    pools.push(array);
    for (let i = 0; i < array.length; i += 1) array[i] = supply[at++] ?? 1;
  });
  const values = below.map((n) => uniformBelow(n));
  const lastPool = [...(pools.at(-1) ?? [])];
  uniformBelow.wipe();
  const unwiped = pools.reduce((sum, pool) => sum + pool.filter((word) => word !== 0).length, 0);
  return { values, lastPool, fills: pools.length, unwiped };
}

/** bytes -> the id that the device makes from them. */
function ids(bytes) {
  return [...drawBytes((array) => array.set(bytes), bytes.length)];
}

/** {channel, truths, n, bits} -> counts of n reports with the real generator, by code or bit. */
function sample({ truths, n, bits, ...named }) {
  const channel = channelOf(named);
  const uniformBelow = createUniformBelow(realGenerator);
  return truths.map((truth) => {
    const tally = bits ? tallyOfBits(bits) : tallyOfCodes();
    for (let i = 0; i < n; i += 1) tally.add(perturb(channel, truth, uniformBelow));
    return tally.counts();
  });
}

/** {answers, n, bits} -> for n whole reports: how often each question was asked, and counts. */
function sampleReports({ answers, n, bits }) {
  const uniformBelow = createUniformBelow(realGenerator);
  const tallies = bits.map((width) => (width ? tallyOfBits(width) : tallyOfCodes()));
  const times = bits.map(() => 0);
  const reportIds = new Set();
  for (let i = 0; i < n; i += 1) {
    const circumstances = {
      stratum: "",
      invitation: "",
      drawn: drawQuestions(survey, uniformBelow),
    };
    const id = drawBytes(realGenerator, 16);
    const body = JSON.parse(makeReport(survey, answers, uniformBelow, id, circumstances));
    reportIds.add(body.report_id);
    for (const [at, code] of body.codes.entries()) {
      if (code === null) continue;
      times[at] += 1;
      tallies[at].add(code);
    }
  }
  return { ids: reportIds.size, asked: times, counts: tallies.map((tally) => tally.counts()) };
}

/** Count small integer codes in an array, which is ten times as fast as a map. */
function tallyOfCodes() {
  const small = new Float64Array(8192);
  const named = new Map();
  return {
    add(code) {
      if (code >= 0 && code < small.length && Number.isInteger(code)) small[code] += 1;
      else named.set(code, (named.get(code) ?? 0) + 1);
    },
    counts() {
      for (const [code, count] of small.entries()) if (count) named.set(code, count);
      return Object.fromEntries(named);
    },
  };
}

function tallyOfBits(bits) {
  const ones = new Float64Array(bits);
  return {
    add(code) {
      const octets = Buffer.from(code, "base64url");
      for (let bit = 0; bit < bits; bit += 1) {
        ones[bit] += (octets[bit >> 3] >> (7 - (bit & 7))) & 1;
      }
    },
    counts: () => Object.fromEntries(ones.entries()),
  };
}

const DEFAULTS = {
  ...{ consent: "", ethics: "", helpline: "", organization: "", exit: "", layout: "", theme: "" },
  ...{ access: "open", kiosk: false, translations: {} },
};

/** {canonical, prefix} -> the survey on this device in canonical JSON, or the reason of rejection. */
async function accept({ canonical, prefix }) {
  try {
    const { id, untranslated, ...form } = await read(canonical, prefix);
    const written = JSON.parse(canonical);
    // A definition omits properties with their default value.
    for (const [name, standard] of Object.entries(DEFAULTS)) {
      if (!(name in written) && JSON.stringify(form[name]) === JSON.stringify(standard)) {
        delete form[name];
      }
    }
    if (untranslated.size > 0) form.untranslated = [...untranslated];
    return { id, canonical: JSON.stringify(form, sortedKeys) };
  } catch (error) {
    return { refused: error.reason ?? error.constructor.name };
  }
}

function sortedKeys(_, value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).sort(([first], [second]) => (first < second ? -1 : 1)),
  );
}

/** {odds} -> the figures of the label, the grades of the survey, and those of questions with odds. */
function label({ odds = [] }) {
  const bounds = loss.bounds(allQuestions);
  const figures = allQuestions.map((question) => {
    const { ownShare, otherShare } = frequencies(question);
    const bound = bounds.get(question.id);
    return [
      question.id,
      {
        ...{ own: ownShare, other: otherShare },
        ...{ odds: loss.oddsFactor(bound), ...loss.posteriorBounds(bound) },
      },
    ];
  });
  const { numerator, denominator } = loss.totalRatio(survey);
  const total = {
    odds: loss.oddsFactor(loss.totalRatio(survey)),
    ratio: [String(numerator), String(denominator)],
  };
  const topics = [...loss.topicRatios(survey)].map(([topic, ratio]) => [
    topic,
    { odds: loss.oddsFactor(ratio), ...loss.posteriorBounds(ratio) },
  ]);
  const grade = (bound) => loss.questionStrength(bound);
  const grades = {
    questions: Object.fromEntries([...bounds].map(([id, bound]) => [id, grade(bound)])),
    report: loss.reportStrength(survey),
    odds: odds.map((n) => grade({ numerator: BigInt(n), denominator: 1n })),
    together: odds.map((n) => loss.isWeakTogether({ numerator: BigInt(n), denominator: 1n })),
  };
  return {
    questions: Object.fromEntries(figures),
    topics: Object.fromEntries(topics),
    total,
    grades,
  };
}

/** {texts, visitors} -> the record of each visit. */
async function visits({ texts, visitors }) {
  const records = [];
  for (const visitor of visitors) records.push(await makeVisit(sources, { texts, ...visitor }));
  return records;
}

const functions = {
  ...{ accept, enumerate, ids, label, questionSample, questionSamples, ratios, reports },
  ...{ respondents, rows, sample, sampleReports, sweeps, visits, words },
};
const allAnswers = {};
for (const [name, requests] of Object.entries(requestsByName)) {
  allAnswers[name] = [];
  for (const request of requests) allAnswers[name].push(await functions[name](request));
}
const [violation] = bare.violations();
if (violation !== undefined) throw new Error(`Error: ${violation}`);
console.log(JSON.stringify(allAnswers));
