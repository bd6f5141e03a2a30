/**
 * The code of a report: bits in base64url, and the options a code names.
 */

import { indexBelow, numbersBelow } from "./mechanism.js";
import { tableReports } from "./weight-table.js";

/**
 * @typedef {import("./mechanism.js").BitVector} BitVector
 * @typedef {import("./mechanism.js").Channel} Channel
 * @typedef {import("./mechanism.js").Code} Code
 * @typedef {import("./mechanism.js").SubsetSelection} SubsetSelection
 */

/**
 * Return the indices that a code names: d options, the bits that are 1, or one column of a table.
 *
 * @param {Channel} channel
 * @param {unknown} code  a RangeError unless it is one of the channel's reports
 * @returns {number[]}
 */
export function reportedOptions(channel, code) {
  switch (channel.kind) {
    case "subset_selection":
      return channel.d === 1 ? [indexBelow(channel.k, code)] : readSet(channel, code);
    case "bit_vector":
      return readBits(channel, code).ones;
    case "half_space":
      return unpackBits(code, channel.m);
    default:
      return [indexBelow(tableReports(channel.table) + channel.no_answers, code)];
  }
}

/**
 * Return the bits that a code reports: all of them, or the ones that were drawn.
 *
 * @param {BitVector} channel
 * @param {unknown} code  a RangeError unless it is one of the channel's reports
 * @returns {number[]}
 */
export function sampledBits(channel, code) {
  return readBits(channel, code).reported;
}

/** @param {SubsetSelection} channel @param {unknown} code */
function readSet({ k, d }, code) {
  const members = unpackBits(code, k);
  if (members.length !== d) throw new RangeError(`${code} names no ${d} of ${k} options`);
  return members;
}

/** @param {BitVector} channel @param {unknown} code */
function readBits({ m, sampled }, code) {
  if (sampled === m) return { reported: numbersBelow(m), ones: unpackBits(code, m) };
  const bits = unpackBits(code, 2 * m);
  const reported = bits.filter((bit) => bit < m);
  const ones = bits.filter((bit) => bit >= m).map((bit) => bit - m);
  if (reported.length !== sampled || !ones.every((bit) => reported.includes(bit))) {
    throw new RangeError(`${code} is not a report of ${sampled} of ${m} bits`);
  }
  return { reported, ones };
}

/**
 * Return the longest code of a channel.
 *
 * @param {Channel} channel
 * @returns {Code}
 */
export function longestCode(channel) {
  if (channel.kind === "weight_table") return tableReports(channel.table) + channel.no_answers - 1;
  if (channel.kind === "bit_vector") {
    return packBits([], channel.sampled < channel.m ? 2 * channel.m : channel.m);
  }
  if (channel.kind === "half_space") return packBits([], channel.m);
  return channel.d === 1 ? channel.k - 1 : packBits([], channel.k);
}

/**
 * Write a set of options as k bits, option 0 first.
 *
 * @param {number[]} members
 * @param {number} k
 */
export function packBits(members, k) {
  const octets = new Uint8Array((k + 7) >> 3);
  for (const option of members) octets[option >> 3] |= 128 >> (option & 7);
  return encodeBase64url(octets);
}

/**
 * Return the numbers whose bits are 1; throw a RangeError unless the code is exactly n packed bits.
 *
 * @param {unknown} code
 * @param {number} n
 */
function unpackBits(code, n) {
  const octets = typeof code === "string" ? decodeBase64url(code) : new Uint8Array();
  const members = numbersBelow(n).filter((bit) => octets[bit >> 3] & (128 >> (bit & 7)));
  if (packBits(members, n) !== code) throw new RangeError(`${JSON.stringify(code)}: not ${n} bits`);
  return members;
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/**
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function encodeBase64url(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const group = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    const characters = Math.min(3, bytes.length - at) + 1;
    for (let i = 0; i < characters; i += 1) text += ALPHABET[(group >> (18 - 6 * i)) & 63];
  }
  return text;
}

/**
 * @param {string} text
 * @returns {Uint8Array}
 */
export function decodeBase64url(text) {
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let pending = 0;
  let bits = 0;
  let at = 0;
  for (const character of text) {
    const value = ALPHABET.indexOf(character);
    if (value < 0) throw new RangeError(`${JSON.stringify(character)} is not base64url`);
    pending = ((pending << 6) | value) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at] = (pending >> bits) & 255;
      at += 1;
    }
  }
  return bytes;
}
