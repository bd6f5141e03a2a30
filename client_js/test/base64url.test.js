import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeBase64url, encodeBase64url } from "../src/base64url.js";

test("bytes are written as Node writes them and read back", () => {
  for (let length = 0; length < 40; length += 1) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 89 + length * 37) & 255);
    const text = encodeBase64url(bytes);
    assert.equal(text, Buffer.from(bytes).toString("base64url"));
    assert.deepEqual(decodeBase64url(text), bytes);
  }
});

test("a character outside the alphabet is refused", () => {
  assert.throws(() => decodeBase64url("AA+A"), RangeError);
});
