// Compare the client's GRR with a bare loop: node mechanism_speed.mjs SOURCE ROUNDS N
// Print JSON: the answers per second of both in each round.
import { webcrypto } from "node:crypto";
import { pathToFileURL } from "node:url";

const [source, rounds, n] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${source}/${name}`).href);
const { perturb } = await load("mechanism.js");
const { createUniformBelow } = await load("random.js");
const POOL_WORDS = 1024;
const channel = { kind: "subset_selection", k: 5, d: 1, T: 12, L: 1 };
let checksum = 0;

/** Take one random word per answer from a pool: the minimum work of any client. */
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

/** Return calls per second. The checksum keeps the compiler from removing the loop. */
function perSecond(work) {
  const start = performance.now();
  checksum += work(Number(n));
  return (1000 * Number(n)) / (performance.now() - start);
}

perSecond(bareWords);
perSecond(shippedClient);
const figures = Array.from({ length: Number(rounds) }, () => ({
  bare: perSecond(bareWords),
  client: perSecond(shippedClient),
}));
console.log(JSON.stringify({ rounds: figures, checksum }));
