// Make reports with the shipped client and a seeded generator: node seeded_reports.mjs < surveys.json
// surveys.json: [{definition: text, answers: [{question id: answer, ...}, ...]}, ...]
// Print one SHA-256 per survey, over the bodies of its reports.
import { readFileSync } from "node:fs";
import { createHash, webcrypto } from "node:crypto";
import { readDefinition } from "../../client_js/src/definition.js";
import { createUniformBelow, drawBytes } from "../../client_js/src/random.js";
import { drawQuestions, makeReport } from "../../client_js/src/report.js";

// xorshift32, so that every machine draws the same numbers.
function createSeeded(seed) {
  let state = seed;
  return (array) => {
    for (let i = 0; i < array.length; i++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      array[i] = state >>> 0;
    }
    return array;
  };
}

const digest = (bytes) => webcrypto.subtle.digest("SHA-256", bytes);
const hashes = [];
for (const { definition: text, answers } of JSON.parse(readFileSync(0, "utf8"))) {
  const getRandomValues = createSeeded(20261123);
  const uniformBelow = createUniformBelow(getRandomValues);
  const definition = await readDefinition(new TextEncoder().encode(text), { digest });
  const hash = createHash("sha256");
  for (const respondent of answers) {
    const drawn = drawQuestions(definition, uniformBelow);
    const id = drawBytes(getRandomValues, 16);
    const circumstances = { stratum: "", invitation: "", drawn };
    hash.update(makeReport(definition, respondent, uniformBelow, id, circumstances));
  }
  hashes.push(hash.digest("hex"));
}
console.log(JSON.stringify(hashes));
