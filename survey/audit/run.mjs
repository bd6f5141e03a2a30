// Runs the shipped client for `survey audit`: the question on stdin, the answer on stdout, as JSON.
//   {client, enumerate: [{channel, truths}]}   every sequence of draws: {report: number of them}
//   {client, words: [{n, word, next}]}         uniformBelow(n) when the generator gives these words
//   {client, sample: [{channel, truths, n}]}   n draws of the real generator: {report: number}
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { client, enumerate = [], words = [], sample = [] } = JSON.parse(readFileSync(0, "utf8"));
const load = (name) => import(pathToFileURL(`${client}/${name}`).href);
const { perturb } = await load("mechanism.js");
const { createUniformBelow } = await load("random.js");

/** How often each report comes, over all sequences of draws; their number must be constant. */
function everySequence(channel, truth) {
  const reports = {};
  const draws = [];
  let shape = null;
  for (;;) {
    const asked = [];
    const uniformBelow = (n) => {
      asked.push(n);
      draws[asked.length - 1] ??= 0;
      return draws[asked.length - 1];
    };
    const report = perturb(channel, truth, uniformBelow);
    reports[report] = (reports[report] ?? 0) + 1;
    shape ??= String(asked);
    if (shape !== String(asked)) return { reports, draws: "not constant" };
    let at = asked.length - 1;
    while (at >= 0 && ++draws[at] === asked[at]) draws[at--] = 0;
    if (at < 0) return { reports, draws: shape };
  }
}

/** What uniformBelow(n) makes of one word, and of the next one when it rejects the first. */
function fromWords({ n, word, next }) {
  let filled = 0;
  const uniformBelow = createUniformBelow((array) => {
    filled += 1;
    array.fill(next);
    array[0] = word;
  });
  const drawn = uniformBelow(n);
  // A pool of 2^10 words must serve this many draws before it is filled again.
  for (let i = 0; i < 500; i += 1) uniformBelow(1);
  return { drawn, filled };
}

function manyTimes(channel, truth, n) {
  const uniformBelow = createUniformBelow((array) => webcrypto.getRandomValues(array));
  const reports = {};
  for (let i = 0; i < n; i += 1) {
    const report = perturb(channel, truth, uniformBelow);
    reports[report] = (reports[report] ?? 0) + 1;
  }
  return reports;
}

console.log(
  JSON.stringify({
    enumerated: enumerate.map(({ channel, truths }) =>
      truths.map((truth) => everySequence(channel, truth)),
    ),
    drawn: words.map(fromWords),
    sampled: sample.map(({ channel, truths, n }) =>
      truths.map((truth) => manyTimes(channel, truth, n)),
    ),
  }),
);
