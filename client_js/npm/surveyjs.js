/**
 * The adapter for SurveyJS: a form whose answers are randomized before anything is sent.
 */

import { isDrawn, isOpen, shownPages } from "../src/answers.js";
import { dataWith, matchForm, readAnswer } from "./surveyjs-fields.js";
import { refusedSettings } from "./surveyjs-settings.js";

/**
 * @typedef {import("../src/answers.js").Answer} Answer
 * @typedef {import("../src/definition.js").Definition} Definition
 * @typedef {import("../src/outbox.js").Entry} Entry
 * @typedef {import("./survey.js").OnWaiting} OnWaiting
 * @typedef {import("./survey.js").OpenSurvey} OpenSurvey
 * @typedef {import("./surveyjs-fields.js").Field} Field
 * @typedef {{isEmpty: boolean, add: (handler: (sender: any, options: any) => void) => void}} FormEvent
 * @typedef {object} SurveyModel  what the adapter uses of a `Model` of survey-core, which is not imported
 * @property {any} data  the answers
 * @property {() => any} toJSON
 * @property {() => any[]} getAllQuestions
 * @property {(name: string) => any} getQuestionByName
 * @property {(name: string) => unknown} focusQuestion
 * @property {boolean} autoFocusFirstError
 * @property {FormEvent} onCompleting
 * @property {FormEvent} onComplete
 * @property {FormEvent} onPartialSend
 * @property {FormEvent} onServerValidateQuestions
 * @typedef {{onWaiting?: OnWaiting, onSettled?: (entry: Entry) => void}} Reactions  `onWaiting` is
 *   called before each pause between two attempts to send, `onSettled` when the server has accepted
 *   or refused the report
 */

/** The form does not fit the definition, or would send or store answers; `mistakes` lists why. */
export class UnsuitableFormError extends Error {
  /** @param {readonly string[]} mistakes */
  constructor(mistakes) {
    super(`the form does not fit the survey:\n${mistakes.map((one) => `- ${one}`).join("\n")}`);
    this.mistakes = mistakes;
  }
}

/** This device already has a report of the survey; `resume` of the survey sends it if it waits. */
export class AlreadyAnsweredError extends Error {
  /** @param {Entry["state"]} state */
  constructor(state) {
    super(`this device already has a report of the survey (${state})`);
    this.state = state;
  }
}

/**
 * Randomize the answers of a form when it is completed, and send only the report. Call this before
 * the form is rendered.
 *
 * Throws an UnsuitableFormError if the form does not fit the definition, and an AlreadyAnsweredError
 * if this device has answered. The form's data are cleared before SurveyJS completes it, so handlers
 * of its `onComplete` find no answers.
 *
 * @param {SurveyModel} model  a `Model` of survey-core
 * @param {OpenSurvey} survey
 * @param {Reactions} [reactions]
 */
export function privatize(model, survey, { onWaiting, onSettled = () => {} } = {}) {
  const fields = suitableFields(model, survey.definition);
  const { state } = survey.outbox.read();
  if (state !== "empty") throw new AlreadyAnsweredError(state);
  prepare(fields, survey);
  /** @type {Promise<Entry> | undefined} */
  let delivery;

  model.onCompleting.add((_, options) => {
    const { answers, wrong } = readAnswers(fields, model.data, survey);
    for (const { element } of wrong) element.addError("This answer is missing or not allowed.");
    if (wrong.length > 0) {
      options.allow = false;
      if (model.autoFocusFirstError) model.focusQuestion(wrong[0].element.name);
      return;
    }
    try {
      delivery = survey.submit(answers, onWaiting);
      delivery.then(onSettled);
    } finally {
      for (const id of Object.keys(answers)) delete answers[id];
      model.data = {};
    }
  });
  model.onComplete.add((_, options) => {
    options.showSaveInProgress();
    delivery?.then((entry) => {
      if (entry.state === "sent") options.showSaveSuccess();
      else options.showSaveError();
    });
  });
}

/** @param {SurveyModel} model @param {Definition} definition */
function suitableFields(model, definition) {
  const { fields, mistakes } = matchForm(model, definition);
  const all = [...refusedSettings(model), ...mistakes];
  // Conditions can only be tried in a form whose questions and options are all known.
  if (all.length === 0) all.push(...conditionMistakes(model, fields));
  if (all.length > 0) throw new UnsuitableFormError(all);
  return fields;
}

/**
 * Compare when the form shows each question with the condition of the definition. Conditions are tried
 * on a copy of the form, which has none of its handlers.
 *
 * @param {SurveyModel} model
 * @param {Field[]} fields
 */
function conditionMistakes(model, fields) {
  const isConditional = fields.some(({ question }) => question.ask_if);
  const Model = /** @type {new (form: unknown) => SurveyModel} */ (model.constructor);
  const copy = isConditional ? new Model(model.toJSON()) : null;
  return fields.flatMap((field) => {
    const { ask_if: condition } = field.question;
    const source = fields.find(({ question }) => question.id === condition?.question);
    if (condition && source && copy) return trialMistakes(copy, field, source, condition.options);
    const { element, name } = field;
    const isForAll = element.isVisibleInSurvey && !hasCondition(element);
    return isForAll ? [] : [`${name}: the definition asks everybody this question`];
  });
}

/**
 * @param {SurveyModel} copy
 * @param {Field} field
 * @param {Field} source  the question on which it depends
 * @param {readonly string[]} accepted  ids of the options after which it is asked
 */
function trialMistakes(copy, field, source, accepted) {
  const { id: name, options, opt_out: optOut } = source.question;
  return options.flatMap(({ id }, option) => {
    // A question without an answer counts as the option for no answer.
    const data = dataWith(source, option) ?? (id === optOut ? {} : null);
    const expected = accepted.includes(id);
    if (data === null || isShown(copy, field, data) === expected) return [];
    const verb = expected ? "asks" : "does not ask";
    return [`${field.name}: the definition ${verb} this if the answer to "${name}" is "${id}"`];
  });
}

/** Whether an element, or a panel or page around it, has a condition. @param {any} element */
function hasCondition(element) {
  for (let part = element; part; part = part.parent) if (part.visibleIf) return true;
  return false;
}

/** @param {SurveyModel} copy @param {Field} field @param {Record<string, unknown>} data */
function isShown(copy, { element }, data) {
  copy.data = data;
  return copy.getQuestionByName(element.name).isVisibleInSurvey;
}

/**
 * Hide the questions that this person is not asked, and require answers to those that nobody can
 * decline.
 *
 * @param {Field[]} fields
 * @param {OpenSurvey} survey
 */
function prepare(fields, { drawn }) {
  for (const { element, question, path } of fields) {
    if (!isDrawn(drawn)(question)) {
      element.visibleIf = "";
      element.visible = false;
    } else if (question.opt_out === "") {
      element[path.length > 1 ? "eachRowRequired" : "isRequired"] = true;
    }
  }
}

/**
 * Return the answers of a form, and the fields whose answer is not allowed, or missing although the
 * definition has no "prefer not to say".
 *
 * @param {Field[]} fields
 * @param {Record<string, unknown>} data
 * @param {OpenSurvey} survey
 */
function readAnswers(fields, data, { definition, drawn }) {
  /** @type {Record<string, Answer>} */
  const answers = {};
  /** @type {Set<string>} */
  const refused = new Set();
  for (const field of fields) {
    const { id } = field.question;
    const answer = readAnswer(field, data);
    if (answer === null) refused.add(id);
    else if (answer !== undefined) answers[id] = answer;
  }
  const all = new Set(fields.map(({ question }) => question.id));
  const wrong = shownPages(definition, answers, drawn)
    .flatMap((page) => page.questions)
    .filter((question) => refused.has(question.id) || isOpen(question, answers, all));
  return { answers, wrong: fields.filter(({ question }) => wrong.includes(question)) };
}
