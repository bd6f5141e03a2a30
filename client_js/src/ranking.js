/**
 * Rankings in lexicographic order, as the server numbers them.
 */

/** @type {Map<string, number[][]>} */
const ordersOf = new Map();

/** @param {number} n */
export function factorial(n) {
  let product = 1;
  for (let factor = 2; factor <= n; factor += 1) product *= factor;
  return product;
}

/**
 * Return the orders of `size` of m options, in lexicographic order.
 *
 * @param {number} m
 * @param {number} size
 * @returns {readonly number[][]}
 */
export function orders(m, size) {
  const key = `${m} ${size}`;
  const cached = ordersOf.get(key) ?? listOrders(m, size);
  ordersOf.set(key, cached);
  return cached;
}

/** @param {number} m @param {number} size @returns {number[][]} */
function listOrders(m, size) {
  if (size === 0) return [[]];
  const options = Array.from({ length: m }, (_, option) => option);
  return listOrders(m, size - 1).flatMap((order) =>
    options.filter((option) => !order.includes(option)).map((option) => [...order, option]),
  );
}

/**
 * Return the ranking with this number; the option in the first place comes first.
 *
 * @param {number} m
 * @param {number} index
 * @returns {number[]}
 */
export function rankingAt(m, index) {
  const left = Array.from({ length: m }, (_, option) => option);
  let rest = index;
  return left
    .map((_, place) => place)
    .map((place) => {
      const later = factorial(m - 1 - place);
      const at = Math.floor(rest / later);
      rest -= at * later;
      return left.splice(at, 1)[0];
    });
}

/**
 * Return the number of a ranking of all its options.
 *
 * @param {readonly number[]} ranking
 */
export function rankingIndex(ranking) {
  return ranking.reduce((index, option, place) => {
    const smaller = ranking.slice(place + 1).filter((later) => later < option).length;
    return index + smaller * factorial(ranking.length - 1 - place);
  }, 0);
}
