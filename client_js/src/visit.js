/**
 * One visit from the start page to Send: the only place that holds raw answers, and forgets them.
 */

import { stoppingGaps } from "./completeness.js";
import { questionView } from "./form.js";
import { reviewView } from "./review.js";
import { startView } from "./start.js";

/**
 * @typedef {object} Parts
 * @property {import("./stage.js").Stage} stage
 * @property {import("./definition.js").Definition} definition
 * @property {string} clientHash
 * @property {(question: string) => string} nameOf
 * @property {(answers: import("./report.js").Answers) => void} onSend
 */

/**
 * @param {Parts} parts
 */
export function createVisit({ stage, definition, clientHash, nameOf, onSend }) {
  /** @type {Record<string, number>} */
  let answers = Object.create(null);
  /** @type {Set<string>} */
  let nudged = new Set();
  let reviewed = false;

  function forget() {
    for (const question of Object.keys(answers)) delete answers[question];
    answers = Object.create(null);
    nudged = new Set();
    reviewed = false;
  }

  function start() {
    stage.show(startView({ definition, clientHash, onStart: () => ask(0) }));
  }

  /** @param {number} at @param {string | null} [focusOn] */
  function ask(at, focusOn = null) {
    stage.show(
      questionView({
        definition,
        at,
        focusOn,
        nameOf,
        fromReview: reviewed,
        answerTo: (question) => answers[question],
        onAnswer: (question, option) => {
          answers[question] = option;
        },
        onContinue: () => leave(at),
        onBack: () => back(at),
      }),
    );
  }

  /** @param {number} at */
  function leave(at) {
    const gaps = stoppingGaps(definition.pages[at].questions, answers, nudged);
    if (gaps.length === 0) goTo(reviewed ? definition.pages.length : at + 1);
    return gaps;
  }

  /** @param {number} at */
  function back(at) {
    goTo(reviewed ? definition.pages.length : at - 1);
  }

  /** @param {number} at  -1 is the start page, one past the last is the review */
  function goTo(at) {
    if (at < 0) start();
    else if (at < definition.pages.length) ask(at);
    else review();
  }

  function review() {
    reviewed = true;
    stage.show(
      reviewView({
        definition,
        answerTo: (question) => answers[question],
        onChange: (question) => ask(pageOf(definition, question), question),
        onBack: () => {
          reviewed = false;
          ask(definition.pages.length - 1);
        },
        onSend: send,
      }),
    );
  }

  /** Whatever becomes of the report, the raw answers end here. */
  function send() {
    try {
      onSend(answers);
    } finally {
      forget();
    }
  }

  return { start, forget };
}

/** @param {import("./definition.js").Definition} definition @param {string} question */
function pageOf(definition, question) {
  return definition.pages.findIndex((page) => page.questions.some(({ id }) => id === question));
}
