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
 * @typedef {import("./navigation.js").Navigation} Navigation
 * @typedef {{definition: Definition}} Survey  the definition in the language that the person reads
 * @typedef {ReturnType<typeof createVisit>} Visit
 */

/**
 * Create a visit.
 *
 * @param {object} parts
 * @param {Survey} parts.survey
 * @param {Display} parts.display
 * @param {Navigation} parts.navigation
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
  navigation,
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
  /** Answers that are not complete, for every question that the person has touched. @type {Map<string, Answer | undefined>} */
  let begun = new Map();
  /** @type {Drawn | undefined} */
  let drawn;
  /** @type {Map<string, number[]>} */
  let orders = new Map();
  let isWarned = false;
  let isEnded = false;

  function forget() {
    for (const question of Object.keys(answers)) delete answers[question];
    answers = Object.create(null);
    nudged = new Set();
    rounded = new Set();
    begun = new Map();
    drawn = undefined;
  }

  function begin() {
    // All pages and the review: pages without questions to show count as well.
    navigation.begin(showStart, () => pages().length + 1);
  }

  function showStart() {
    display.show(() => startView({ ...survey, ...start, getRandomValues, onStart: warnOrStart }));
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
    navigation.forward(() =>
      display.show(() => addUpView({ ...survey, earlier, onContinue, onForget })),
    );
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
    goTo(0);
  }

  /** Return this person's pages with the questions that follow from the answers so far. */
  function pages() {
    return shownPages(survey.definition, answers, drawn ?? null);
  }

  /**
   * @param {string} question
   * @param {Answer | undefined} answer
   * @param {boolean} [isRounded]
   * @param {Answer} [begunAnswer]
   */
  function setAnswer(question, answer, isRounded = false, begunAnswer = undefined) {
    begun.set(question, begunAnswer);
    if (answer === undefined) delete answers[question];
    else answers[question] = answer;
    if (isRounded) rounded.add(question);
    else rounded.delete(question);
  }

  /**
   * Show a page of questions.
   *
   * @param {number} at
   * @param {string | null} [changed]  the question to change, or "" for one that a change made visible;
   *   the review follows
   */
  function showPage(at, changed = null) {
    display.show(() =>
      questionView({
        ...survey,
        pages: pages(),
        at,
        focusOn: changed,
        nameOf,
        orderOf: (question) => orders.get(question),
        fromReview: changed !== null,
        answerTo: (question) => answers[question],
        begunOf: (question) => begun.get(question),
        onAnswer: setAnswer,
        onContinue: (wrong) => leavePage(at, changed, wrong),
        onBack: navigation.back,
      }),
    );
  }

  /** @param {number} at @param {string | null} changed @param {Set<string>} wrong */
  function leavePage(at, changed, wrong) {
    const gaps = stoppingGaps(pages()[at].questions, answers, nudged, wrong);
    if (gaps.length > 0) return gaps;
    if (changed === null) goTo(at + 1);
    else navigation.forward(review);
    return gaps;
  }

  /** Show a page, or the next one with questions, or the review after the last one. @param {number} at */
  function goTo(at) {
    const all = pages();
    let page = at;
    while (all[page]?.questions.length === 0) page += 1;
    navigation.forward(page < all.length ? () => showPage(page) : review);
  }

  /** Show the review, but first any page with a question that a change has made visible. */
  function review() {
    const open = pages().findIndex((page) =>
      page.questions.some((question) => isOpen(question, answers, nudged)),
    );
    if (open >= 0) return showPage(open, "");
    display.show(() =>
      reviewView({
        ...survey,
        pages: pages(),
        answerTo: (question) => answers[question],
        isRounded: (question) => rounded.has(question),
        onChange: (question) =>
          navigation.forward(() => showPage(pageOf(pages(), question), question)),
        onBack: navigation.back,
        onSend: send,
      }),
    );
  }

  /** Send once, and clear the true answers even if creating the report fails. */
  function send() {
    if (isEnded) return;
    isEnded = true;
    navigation.unwind(() => {});
    try {
      onSend(answers, drawn ?? null);
    } finally {
      forget();
    }
  }

  /** Whether the person has entered anything, complete or not, that leaving the page would lose. */
  function hasAnswers() {
    return begun.size > 0;
  }

  /** End the visit without a report; its answers are gone. */
  function close() {
    isEnded = true;
    forget();
    navigation.unwind(() => {});
  }

  return { begin, close, forget, hasAnswers, isEnded: () => isEnded };
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
