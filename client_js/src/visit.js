/**
 * One visit from the start page to Send: the only module that holds true answers, and clears them.
 */

import { isOpen, questions, shownPages, shuffleOptions, stoppingGaps } from "./answers.js";
import { encodeBase64url } from "./mechanism.js";
import { createUniformBelow, drawBytes } from "./random.js";
import { drawQuestions } from "./report.js";
import { questionView, reviewView } from "./view-questions.js";
import { addUpView, startView } from "./view-start.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./answers.js").Answers} Answers
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./outbox.js").EarlierSurveys} EarlierSurveys
 * @typedef {import("./link.js").Link} Link
 * @typedef {import("./random.js").GetRandomValues} GetRandomValues
 * @typedef {import("./answers.js").Drawn} Drawn
 * @typedef {import("./display.js").Display} Display
 * @typedef {{definition: Definition}} Survey  the definition in the language that the person reads
 * @typedef {ReturnType<typeof createVisit>} Visit
 */

/**
 * Create a visit.
 *
 * @param {object} parts
 * @param {Survey} parts.survey
 * @param {Display} parts.display
 * @param {GetRandomValues} parts.getRandomValues
 * @param {{link: Link, durable: boolean}} parts.start  what the start page says;
 *   `durable`: whether this browser stores anything for the page
 * @param {EarlierSurveys} parts.earlierSurveys
 * @param {(answers: Answers, drawn: Drawn) => void} parts.onSend
 * @param {(error: unknown) => void} parts.onError
 */
export function createVisit({
  survey,
  display,
  getRandomValues,
  start,
  earlierSurveys,
  onSend,
  onError,
}) {
  const nameOf = createNames(survey.definition, getRandomValues);
  /** @type {Record<string, Answer>} */
  let answers = Object.create(null);
  /** @type {Set<string>} */
  let nudged = new Set();
  /** Questions whose answer differs from what was typed. @type {Set<string>} */
  let rounded = new Set();
  /** @type {Drawn | undefined} */
  let drawn;
  /** @type {Map<string, number[]>} */
  let orders = new Map();
  let reviewed = false;
  let isWarned = false;

  function forget() {
    for (const question of Object.keys(answers)) delete answers[question];
    answers = Object.create(null);
    nudged = new Set();
    rounded = new Set();
    drawn = undefined;
    reviewed = false;
  }

  function begin() {
    display.show(() => startView({ ...survey, ...start, onStart: warnOrStart }));
  }

  /** Warn a person whose device remembers other surveys, until they have read it once. */
  function warnOrStart() {
    const earlier = isWarned ? null : earlierSurveys.read();
    if (earlier === null) return showFirstPage();
    const onContinue = () => {
      isWarned = true;
      showFirstPage();
    };
    const onForget = () => {
      earlierSurveys.forget();
      showFirstPage();
    };
    display.show(() => addUpView({ ...survey, earlier, onContinue, onForget }));
  }

  /** Draw the questions once; a person who could draw again could choose. */
  function showFirstPage() {
    try {
      if (drawn === undefined)
        ({ drawn, orders } = drawQuestionsAndOrders(survey.definition, getRandomValues));
    } catch (error) {
      onError(error);
      return;
    }
    goTo(0, 1);
  }

  /** Return this person's pages with the questions that follow from the answers so far. */
  function pages() {
    return shownPages(survey.definition, answers, drawn ?? null);
  }

  /** @param {string} question @param {Answer | undefined} answer @param {boolean} [isRounded] */
  function setAnswer(question, answer, isRounded = false) {
    if (answer === undefined) delete answers[question];
    else answers[question] = answer;
    if (isRounded) rounded.add(question);
    else rounded.delete(question);
  }

  /** @param {number} at @param {string | null} [focusOn] */
  function showPage(at, focusOn = null) {
    display.show(() =>
      questionView({
        ...survey,
        pages: pages(),
        at,
        focusOn,
        nameOf,
        orderOf: (question) => orders.get(question),
        fromReview: reviewed,
        answerTo: (question) => answers[question],
        onAnswer: setAnswer,
        onContinue: (wrong) => leavePage(at, wrong),
        onBack: () => goBack(at),
      }),
    );
  }

  /** @param {number} at @param {Set<string>} wrong */
  function leavePage(at, wrong) {
    const gaps = stoppingGaps(pages()[at].questions, answers, nudged, wrong);
    if (gaps.length === 0 && reviewed) goTo(firstOpenPage(), 1);
    else if (gaps.length === 0) goTo(at + 1, 1);
    return gaps;
  }

  /** Go back to the review after a change, or page by page if the change opened a question. */
  function goBack(/** @type {number} */ at) {
    reviewed = reviewed && firstOpenPage() === pages().length;
    if (reviewed) review();
    else goTo(at - 1, -1);
  }

  /** Return the first page with an open question, or the number of pages. */
  function firstOpenPage() {
    const at = pages().findIndex((page) =>
      page.questions.some((question) => isOpen(question, answers, nudged)),
    );
    return at < 0 ? pages().length : at;
  }

  /**
   * Show a page; pages without questions are skipped.
   *
   * @param {number} at  -1 is the start page, the number of pages is the review
   * @param {1 | -1} direction
   */
  function goTo(at, direction) {
    const all = pages();
    let page = at;
    while (all[page]?.questions.length === 0) page += direction;
    if (page < 0) begin();
    else if (page < all.length) showPage(page);
    else review();
  }

  function review() {
    reviewed = true;
    display.show(() =>
      reviewView({
        ...survey,
        pages: pages(),
        answerTo: (question) => answers[question],
        isRounded: (question) => rounded.has(question),
        onChange: (question) => showPage(pageOf(pages(), question), question),
        onBack: () => {
          reviewed = false;
          goTo(pages().length - 1, -1);
        },
        onSend: send,
      }),
    );
  }

  /** Clear the true answers whether or not the report could be made. */
  function send() {
    try {
      onSend(answers, drawn ?? null);
    } finally {
      forget();
    }
  }

  return { begin, forget };
}

/** @param {Definition} definition @param {GetRandomValues} getRandomValues */
function drawQuestionsAndOrders(definition, getRandomValues) {
  const uniformBelow = createUniformBelow(getRandomValues);
  try {
    const drawn = drawQuestions(definition, uniformBelow);
    return { drawn, orders: shuffleOptions(definition, uniformBelow) };
  } finally {
    uniformBelow.wipe();
  }
}

/** @param {Page[]} pages @param {string} question */
function pageOf(pages, question) {
  return pages.findIndex((page) => page.questions.some(({ id }) => id === question));
}

/**
 * Name the inputs of each question. Names made for this page load mean nothing to anyone else.
 *
 * @param {Definition} definition
 * @param {GetRandomValues} getRandomValues
 */
function createNames(definition, getRandomValues) {
  const names = new Map(
    questions(definition).map(({ id }) => [
      id,
      `n${encodeBase64url(drawBytes(getRandomValues, 12))}`,
    ]),
  );
  return (/** @type {string} */ question) => names.get(question) ?? "";
}
