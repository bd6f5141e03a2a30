/**
 * Uniform integers from the system's generator, exact by rejection. There is no weaker fallback.
 */

const POOL_WORDS = 1024;
const WORD_VALUES = 2 ** 32;

/** The device has no cryptographic random generator, or the generator failed. */
export class NoRandomnessError extends Error {}

/**
 * @typedef {Uint32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>} Words
 * @typedef {(array: Words) => unknown} GetRandomValues
 *   fills the array with random bits, as `crypto.getRandomValues` does
 * @typedef {(n: number) => number} UniformBelow  an integer uniform in [0, n), 1 <= n <= 2^32
 */

/**
 * Create a uniform sampler over a pool of words; one call of the generator per value is 45 times slower.
 *
 * A word v is rejected when v >= 2^32 - (2^32 mod n), else the result is v mod n: equally many
 * words lead to every residue. Each word is wiped after its draw, so that memory cannot reveal how a
 * report was drawn; `wipe` clears the rest.
 *
 * @param {GetRandomValues | undefined} getRandomValues
 * @returns {UniformBelow & {wipe: () => void}}
 */
export function createUniformBelow(getRandomValues) {
  const pool = new Uint32Array(POOL_WORDS);
  let used = POOL_WORDS;
  let limited = 1;
  let limit = WORD_VALUES;

  function nextWord() {
    if (used === POOL_WORDS) {
      fillRandomly(getRandomValues, pool);
      used = 0;
    }
    const word = pool[used];
    pool[used] = 0;
    used += 1;
    return word;
  }

  /** @param {number} n */
  function uniformBelow(n) {
    // Remember the limit of the last n, because surveys use few different n.
    if (n !== limited) [limit, limited] = [limitBelow(n), n];
    let word = nextWord();
    while (word >= limit) word = nextWord();
    return word % n;
  }

  function wipe() {
    pool.fill(0);
    used = POOL_WORDS;
  }

  checkGenerator(getRandomValues);
  return Object.assign(uniformBelow, { wipe });
}

/**
 * Return the smallest word that is rejected for n.
 *
 * @param {number} n
 */
function limitBelow(n) {
  if (!(n >= 1 && n <= WORD_VALUES && Number.isInteger(n))) {
    throw new RangeError();
  }
  return WORD_VALUES - (WORD_VALUES % n);
}

/**
 * Draw random bytes for report ids and names of inputs, which must be unguessable.
 *
 * @param {GetRandomValues | undefined} getRandomValues
 * @param {number} count
 */
export function drawBytes(getRandomValues, count) {
  const bytes = new Uint8Array(count);
  fillRandomly(getRandomValues, bytes);
  return bytes;
}

/**
 * @param {GetRandomValues | undefined} getRandomValues
 * @returns {asserts getRandomValues is GetRandomValues}
 */
function checkGenerator(getRandomValues) {
  if (typeof getRandomValues !== "function") {
    throw new NoRandomnessError();
  }
}

/**
 * @param {GetRandomValues | undefined} getRandomValues
 * @param {Words} array
 */
function fillRandomly(getRandomValues, array) {
  checkGenerator(getRandomValues);
  try {
    getRandomValues(array);
  } catch {
    throw new NoRandomnessError();
  }
}
