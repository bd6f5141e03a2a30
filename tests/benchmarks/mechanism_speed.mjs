// GRR by the shipped client against one word per answer: node mechanism_speed.mjs SOURCE ROUNDS N
// Prints JSON: per second and per round, what the client makes and what a bare loop makes.
import { webcrypto } from "node:crypto";
import { pathToFileURL } from "node:url";

const [source, rounds, n] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${source}/${name}`).href);
const { perturb } = await load("mechanism.js");
const { createUniformBelow } = await load("random.js");
const POOL_WORDS = 1024;
const channel = { kind: "subset_selection", k: 5, d: 1, T: 12, L: 1 };
let kept = 0;

/** What no client can do without: a word of the generator for every answer, from a pool. */
function bareWords(count) {
  const pool = new Uint32Array(POOL_WORDS);
  let used = POOL_WORDS;
  let sum = 0;
  for (let i = 0; i < count; i += 1) {
    if (used === POOL_WORDS) {
      webcrypto.getRandomValues(pool);
      used = 0;
    }
    sum = (sum + pool[used]) | 0;
    used += 1;
  }
  return sum;
}

function shippedClient(count) {
  const uniformBelow = createUniformBelow((array) => webcrypto.getRandomValues(array));
  let sum = 0;
  for (let i = 0; i < count; i += 1) sum += perturb(channel, i % 5, uniformBelow);
  return sum;
}

/** Sums are kept, so that no loop is thrown away as useless. */
function perSecond(work) {
  const begin = performance.now();
  kept += work(Number(n));
  return (1000 * Number(n)) / (performance.now() - begin);
}

perSecond(bareWords);
perSecond(shippedClient);
const measured = Array.from({ length: Number(rounds) }, () => ({
  bare: perSecond(bareWords),
  client: perSecond(shippedClient),
}));
console.log(JSON.stringify({ rounds: measured, kept }));
