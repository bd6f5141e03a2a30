// Answers a survey for many people with the shipped client: node respond_many.mjs URL < people.json
// people.json: [{question id: answer, ...}, ...]; prints how many reports were accepted.
import { readFileSync } from "node:fs";
import { webcrypto } from "node:crypto";
import { readDefinition } from "../../client_js/src/definition.js";
import { createUniformBelow, drawBytes } from "../../client_js/src/random.js";
import { drawQuestions, makeReport } from "../../client_js/src/report.js";
import { sendReport } from "../../client_js/src/transport.js";

const AT_ONCE = 16;
const [url] = process.argv.slice(2);
const people = JSON.parse(readFileSync(0, "utf8"));
const getRandomValues = (array) => webcrypto.getRandomValues(array);
const digest = (bytes) => webcrypto.subtle.digest("SHA-256", bytes);

const bytes = new Uint8Array(await (await fetch(`${url}/definition.json`)).arrayBuffer());
const definition = await readDefinition(bytes, { digest });
const uniformBelow = createUniformBelow(getRandomValues);

let next = 0;
let accepted = 0;

async function answerInTurn() {
  while (next < people.length) {
    const answers = people[next++];
    const circumstances = {
      stratum: "",
      invitation: "",
      drawn: drawQuestions(definition, uniformBelow),
    };
    const id = drawBytes(getRandomValues, 16);
    const body = makeReport(definition, answers, uniformBelow, id, circumstances);
    const outcome = await sendReport(fetch, `${url}/reports`, body);
    if (outcome.outcome !== "accepted") throw new Error(JSON.stringify(outcome));
    accepted += 1;
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, answerInTurn));
console.log(accepted);
