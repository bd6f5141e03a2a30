import assert from "node:assert/strict";
import { test } from "node:test";
import { DefinitionError } from "../src/definition.js";
import { CryptoMissingError, loadDefinition, reasonFor } from "../src/opening.js";
import { NoRandomnessError } from "../src/random.js";
import { ReportTooLongError } from "../src/report.js";
import { UnavailableError } from "../src/transport.js";
import { bytesOf, channel, definitionOf, question, sha256 } from "./support.js";

const BYTES = bytesOf(definitionOf([question("a", channel(2, 3, 1))]));
const fill = (array) => crypto.getRandomValues(array);

function browser(changes = {}) {
  return {
    crypto,
    fetch: async () => new Response(BYTES),
    location: { hash: `#d=${sha256(BYTES).slice(0, 16)}` },
    ...changes,
  };
}

test("a definition that fits its link is loaded", async () => {
  const definition = await loadDefinition(browser(), "/s/workplace", fill);
  assert.equal(definition.id, sha256(BYTES));
});

test("a link without a hash is served too", async () => {
  await loadDefinition(browser({ location: { hash: "" } }), "/s/workplace", fill);
});

test("without randomness or WebCrypto nothing is even requested", async () => {
  const fetch = () => assert.fail("requested");
  const broken = () => {
    throw new Error("no entropy");
  };
  await assert.rejects(loadDefinition(browser({ fetch }), "/s/x", broken), NoRandomnessError);
  const insecure = browser({ fetch, crypto: {} });
  await assert.rejects(loadDefinition(insecure, "/s/x", fill), CryptoMissingError);
});

test("another definition than the link's is refused", async () => {
  const window = browser({ location: { hash: `#d=${"0".repeat(16)}` } });
  await assert.rejects(loadDefinition(window, "/s/x", fill), DefinitionError);
});

const REASONS = [
  [new NoRandomnessError(""), "randomness"],
  [new CryptoMissingError(), "crypto"],
  [new DefinitionError("too_weak", ""), "too_weak"],
  [new UnavailableError(404), "missing"],
  [new UnavailableError(410), "closed"],
  [new UnavailableError(0), "unavailable"],
  [new ReportTooLongError(2, 1), "unexpected"],
];
for (const [error, reason] of REASONS) {
  test(`${error.name} ${error.status ?? ""} is explained as ${reason}`, () => {
    assert.equal(reasonFor(error), reason);
  });
}
