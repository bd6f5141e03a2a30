/** Boxes against the test vectors of RFC 9180, and what all boxes have in common. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ascii, join, OVERHEAD, sealBox } from "../src/seal.js";

const { subtle } = globalThis.crypto;
const bytes = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const hex = (octets) => Buffer.from(octets).toString("hex");

/** RFC 9180, appendix A.3.1: base mode, the first encryption. */
const VECTOR = {
  info: "4f6465206f6e2061204772656369616e2055726e",
  pkEm:
    "04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac98536d7b61a1af4b78e5b7f95" +
    "1c0900be863c403ce65c9bfcb9382657222d18c4",
  skEm: "4995788ef4b9d6132b249ce59a77281493eb39af373d236a1fe415cb0c2d7beb",
  pkRm:
    "04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a826a779b4cf969b8a0e539c7f6" +
    "2fb3d30ad6aa8f80e30f1d128aafd68a2ce72ea0",
  pt: "4265617574792069732074727574682c20747275746820626561757479",
  aad: "436f756e742d30",
  ct:
    "5ad590bb8baa577f8619db35a36311226a896e7342a6d836d8b7bcd2f20b6c7f9076ac232e3ab2523f3951343" +
    "4",
};

async function ephemeralPair() {
  const point = bytes(VECTOR.pkEm);
  const text = (octets) => Buffer.from(octets).toString("base64url");
  const jwk = {
    kty: "EC",
    crv: "P-256",
    d: text(bytes(VECTOR.skEm)),
    x: text(point.slice(1, 33)),
    y: text(point.slice(33)),
  };
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const publicKey = await subtle.importKey("raw", point, curve, true, []);
  const privateKey = await subtle.importKey("jwk", jwk, curve, false, ["deriveBits"]);
  return { publicKey, privateKey };
}

test("a box is the one of the standard's test vector", async () => {
  const given = { ephemeral: await ephemeralPair(), additional: bytes(VECTOR.aad) };
  const parts = [VECTOR.pkRm, VECTOR.info, VECTOR.pt].map(bytes);
  assert.equal(hex(await sealBox(subtle, ...parts, given)), VECTOR.pkEm + VECTOR.ct);
});

test("boxes of the same content differ everywhere and have the same length", async () => {
  const content = new Uint8Array(512);
  const box = () => sealBox(subtle, bytes(VECTOR.pkRm), ascii("info"), content);
  const [first, second] = [await box(), await box()];
  assert.deepEqual([first.length, second.length], [512 + OVERHEAD, 512 + OVERHEAD]);
  const same = first.filter((octet, i) => octet === second[i]).length;
  assert.ok(same < 20, `${same} of 593 bytes are equal`);
});

test("a key that is no point of the curve is refused", async () => {
  const wrong = join(new Uint8Array([4]), new Uint8Array(64).fill(1));
  await assert.rejects(sealBox(subtle, wrong, ascii(""), ascii("x")));
});
