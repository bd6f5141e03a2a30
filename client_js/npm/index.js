/**
 * The npm package: a survey in a form of one's own. SurveyJS forms need only `./surveyjs.js` besides.
 */

export { questions, UnansweredError } from "../src/answers.js";
export { loadDefinition, readDefinition } from "../src/definition.js";
export { DefinitionError } from "../src/definition-error.js";
export { perturb } from "../src/mechanism.js";
export { createOutbox } from "../src/outbox.js";
export { oddsFactor, totalRatio } from "../src/privacy-loss.js";
export { createUniformBelow, drawBytes, NoRandomnessError } from "../src/random.js";
export { makeReport } from "../src/report.js";
export { sendReport, sendUntilAnswered } from "../src/transport.js";
export { OpeningError, openSurvey, thisDevice } from "./survey.js";

/**
 * @typedef {import("../src/answers.js").Answer} Answer
 * @typedef {import("../src/answers.js").Answers} Answers
 * @typedef {import("../src/definition.js").Definition} Definition
 * @typedef {import("../src/definition.js").Question} Question
 * @typedef {import("../src/mechanism.js").Channel} Channel
 * @typedef {import("../src/outbox.js").Entry} Entry
 * @typedef {import("../src/outbox.js").Outbox} Outbox
 * @typedef {import("../src/random.js").UniformBelow} UniformBelow
 * @typedef {import("./survey.js").Device} Device
 * @typedef {import("./survey.js").OnWaiting} OnWaiting
 * @typedef {import("./survey.js").OpenSurvey} OpenSurvey
 */
