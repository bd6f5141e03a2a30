/** Complete a SurveyJS form many times without a browser, and print the body of every report. */

import { readFileSync } from "node:fs";
import { Model } from "survey-core";

const [client, input] = process.argv.slice(2);
const { openSurvey } = await import(`${client}/npm/index.js`);
const { privatize } = await import(`${client}/npm/surveyjs.js`);
const { link, definition, form, people } = JSON.parse(readFileSync(input, "utf8"));

/** Complete the form on a device of one's own; return the body of the report. */
async function complete(answers) {
  const bodies = [];
  const fetch = async (_, { body } = {}) => {
    if (body === undefined) return new Response(definition);
    bodies.push(body);
    return new Response("", { status: 201 });
  };
  const wait = () => Promise.reject(new Error("no report waits here"));
  const device = { crypto, fetch, storage: null, locks: undefined, wait };
  const survey = await openSurvey(link, device);
  const model = new Model(form);
  const settled = new Promise((resolve) => privatize(model, survey, { onSettled: resolve }));
  for (const [name, value] of Object.entries(answers)) model.setValue(name, value);
  if (!model.doComplete()) throw new Error("the form was not completed");
  const { state } = await settled;
  if (state !== "sent" || bodies.length !== 1) throw new Error(`${state}, ${bodies.length} bodies`);
  return bodies[0];
}

console.log(JSON.stringify(await Promise.all(people.map(complete))));
