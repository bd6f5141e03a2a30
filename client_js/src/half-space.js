/**
 * Half-spaces: which bits of a report differ from the truth, drawn without looking at the truth.
 *
 * No DOM, no network, no floats: all numbers are integers up to 2^32, which doubles hold exactly.
 */

/**
 * @typedef {import("./mechanism.js").HalfSpace} HalfSpace
 * @typedef {import("./mechanism.js").Ratio} Ratio
 * @typedef {import("./random.js").UniformBelow} UniformBelow
 */

/**
 * Return how many vectors of n bits have at least `least` ones: sums of binomial coefficients.
 *
 * @param {number} n
 * @param {number} least
 */
function countVectors(n, least) {
  let [ofOnes, count] = [1, 0];
  for (let ones = 0; ones <= n; ones += 1) {
    if (ones >= least) count += ofOnes;
    ofOnes = (ofOnes * (n - ones)) / (ones + 1);
  }
  return count;
}

/**
 * Return the numbers of near vectors, G, and of all others, 2^m - G.
 *
 * @param {HalfSpace} channel
 */
function vectorCounts({ m, agreements }) {
  const nearCount = countVectors(m, agreements);
  return { nearCount, farCount: 2 ** m - nearCount };
}

/**
 * Return e^epsilon = near (2^m - G) / (far G), the ratio of a near report's probability to another's.
 *
 * @param {HalfSpace} channel
 * @returns {Ratio}
 */
export function halfSpaceRatio(channel) {
  const { nearCount, farCount } = vectorCounts(channel);
  return {
    numerator: BigInt(channel.near) * BigInt(farCount),
    denominator: BigInt(channel.far) * BigInt(nearCount),
  };
}

/**
 * Return how likely a bit is to be 1 if its option is ticked, and if it is not.
 *
 *     own = (near A/G + far (2^(m-1) - A)/(2^m - G))/(near + far),  other = 1 - own
 *
 * A of the G near vectors agree in the first bit: those with t - 1 agreements in the other m - 1.
 *
 * @param {HalfSpace} channel
 * @returns {import("./privacy-loss.js").Weights}
 */
export function tickWeights(channel) {
  const { m, agreements } = channel;
  const { nearCount, farCount } = vectorCounts(channel);
  const agreeing = countVectors(m - 1, agreements - 1);
  const [A, B] = [BigInt(agreeing), BigInt(2 ** (m - 1) - agreeing)];
  const [G, H] = [BigInt(nearCount), BigInt(farCount)];
  const [near, far] = [BigInt(channel.near), BigInt(channel.far)];
  const ownWeight = near * A * H + far * B * G;
  const totalWeight = (near + far) * G * H;
  return { ownWeight, otherWeight: totalWeight - ownWeight, totalWeight };
}

/**
 * Draw for each bit whether it is flipped, 0 or 1.
 *
 * Of a near report at least `agreements` bits are right, of another at least m - agreements + 1 are
 * wrong. Both are drawn every time, or the time taken would reveal which of them is reported.
 *
 * @param {HalfSpace} channel
 * @param {UniformBelow} uniformBelow
 * @returns {number[]}
 */
export function drawFlips(channel, uniformBelow) {
  const { m, agreements, near, far } = channel;
  const { nearCount, farCount } = vectorCounts(channel);
  const isNear = Number(uniformBelow(near + far) < near);
  const right = vectorOf(uniformBelow(nearCount), m, agreements);
  const wrong = vectorOf(uniformBelow(farCount), m, m - agreements + 1);
  return right.map((bit, i) => isNear * (1 - bit) + (1 - isNear) * wrong[i]);
}

/**
 * Return the vector with number `rank` among those of m bits with at least `least` ones; vectors with
 * a one in front come first.
 *
 * @param {number} rank
 * @param {number} m
 * @param {number} least
 * @returns {number[]}
 */
function vectorOf(rank, m, least) {
  const bits = [];
  for (let rest = m - 1; rest >= 0; rest -= 1) {
    const withOne = countVectors(rest, least - 1);
    const bit = Number(rank < withOne);
    bits.push(bit);
    rank -= (1 - bit) * withOne;
    least -= bit;
  }
  return bits;
}
