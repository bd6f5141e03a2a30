/**
 * Base64url without padding (RFC 4648, section 5), both ways, in browsers and in Node alike.
 */

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
