/**
 * Seals a report for the holder of a public key: HPKE in base mode (RFC 9180) with
 * DHKEM(P-256, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM, from the parts of WebCrypto.
 */

/**
 * @typedef {Uint8Array<ArrayBuffer>} Bytes
 */

/** Lengths in bytes: of a SHA-256, a key and a nonce, and the overhead of a box. */
const HASH = 32;
const KEY_BYTES = 16;
const NONCE = 12;
export const OVERHEAD = 65 + 16;

const CURVE = { name: "ECDH", namedCurve: "P-256" };
const HMAC = { name: "HMAC", hash: "SHA-256" };
const NO_BYTES = new Uint8Array(0);

/** The identifiers of the algorithms, as RFC 9180 writes them in its sections 4.1 and 5.1. */
const KEM_SUITE = join(ascii("KEM"), new Uint8Array([0, 0x10]));
const SUITE = join(ascii("HPKE"), new Uint8Array([0, 0x10, 0, 1, 0, 1]));

/**
 * Return a box: the ephemeral public key, then the encrypted content with its authenticator.
 *
 * @param {SubtleCrypto} subtle
 * @param {Bytes} publicKey  the recipient's, a point of P-256 in 65 bytes
 * @param {Bytes} info  what the box is for; the recipient must state the same
 * @param {Bytes} content
 * @param {object} [given]  for test vectors only
 * @param {CryptoKeyPair} [given.ephemeral]
 * @param {Bytes} [given.additional]  authenticated with the content; boxes have none
 */
export async function sealBox(subtle, publicKey, info, content, given = {}) {
  const recipient = await subtle.importKey("raw", publicKey, CURVE, false, []);
  const ephemeral = given.ephemeral ?? (await subtle.generateKey(CURVE, false, ["deriveBits"]));
  const shared = { name: "ECDH", public: recipient };
  const dh = new Uint8Array(await subtle.deriveBits(shared, ephemeral.privateKey, 8 * HASH));
  const enc = new Uint8Array(await subtle.exportKey("raw", ephemeral.publicKey));
  const { key, nonce } = await schedule(subtle, dh, join(enc, publicKey), info);
  const cipher = { name: "AES-GCM", iv: nonce, additionalData: given.additional ?? NO_BYTES };
  return join(enc, new Uint8Array(await subtle.encrypt(cipher, key, content)));
}

/**
 * Derive the key and the nonce of a box (RFC 9180, sections 4.1 and 5.1).
 *
 * @param {SubtleCrypto} subtle
 * @param {Bytes} dh  the Diffie-Hellman value
 * @param {Bytes} keys  both public keys
 * @param {Bytes} info
 */
async function schedule(subtle, dh, keys, info) {
  const eaePrk = await extract(subtle, KEM_SUITE, NO_BYTES, "eae_prk", dh);
  const sharedSecret = await expand(subtle, KEM_SUITE, eaePrk, "shared_secret", keys, HASH);
  const pskIdHash = await extract(subtle, SUITE, NO_BYTES, "psk_id_hash", NO_BYTES);
  const infoHash = await extract(subtle, SUITE, NO_BYTES, "info_hash", info);
  const context = join(new Uint8Array(1), pskIdHash, infoHash);
  const secret = await extract(subtle, SUITE, sharedSecret, "secret", NO_BYTES);
  const key = await expand(subtle, SUITE, secret, "key", context, KEY_BYTES);
  const nonce = await expand(subtle, SUITE, secret, "base_nonce", context, NONCE);
  return { key: await subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]), nonce };
}

/**
 * HKDF-Extract with the label of a purpose: HMAC(salt, "HPKE-v1" suite label material).
 *
 * @param {SubtleCrypto} subtle
 * @param {Bytes} suite
 * @param {Bytes} salt
 * @param {string} label
 * @param {Bytes} material
 */
function extract(subtle, suite, salt, label, material) {
  // HMAC pads its key with zeros, so an empty salt equals one of zeros, which WebCrypto accepts.
  const key = salt.length === 0 ? new Uint8Array(HASH) : salt;
  return hmac(subtle, key, join(ascii("HPKE-v1"), suite, ascii(label), material));
}

/**
 * HKDF-Expand with the label of a purpose, for at most 32 bytes, which are its first block:
 * HMAC(key, length "HPKE-v1" suite label info 1).
 *
 * @param {SubtleCrypto} subtle
 * @param {Bytes} suite
 * @param {Bytes} key
 * @param {string} label
 * @param {Bytes} info
 * @param {number} length
 */
async function expand(subtle, suite, key, label, info, length) {
  const start = join(new Uint8Array([0, length]), ascii("HPKE-v1"), suite, ascii(label));
  return (await hmac(subtle, key, join(start, info, new Uint8Array([1])))).slice(0, length);
}

/** @param {SubtleCrypto} subtle @param {Bytes} key @param {Bytes} message */
async function hmac(subtle, key, message) {
  const hmacKey = await subtle.importKey("raw", key, HMAC, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", hmacKey, message));
}

/** Return the bytes of a text in ASCII. @param {string} text */
export function ascii(text) {
  return new Uint8Array(new TextEncoder().encode(text));
}

/** Return several sequences of bytes as one. @param {...Bytes} parts */
export function join(...parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
