/**
 * The review of all answers before the report is made.
 */

import { optOutLabel } from "./answers.js";
import { button, element, heading, listed, surveyElement } from "./dom.js";
import { answerTexts } from "./field.js";
import { questionWarning, wholeReport } from "./privacy-label.js";
import { boundIn, bounds } from "./privacy-loss.js";
import { say } from "./texts.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./privacy-loss.js").Bound} Bound
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./dom.js").View} View
 * @typedef {object} ReviewContext
 * @property {Definition} definition
 * @property {Page[]} pages  this person's pages with the questions shown
 * @property {(question: string) => Answer | undefined} answerTo
 * @property {(question: string) => boolean} isRounded  whether its answer differs from what was typed
 * @property {(question: string) => void} onChange
 * @property {() => void} onBack
 * @property {() => void} onSend
 */

/**
 * Show all answers, each with a button to change it.
 *
 * @param {ReviewContext} context
 * @returns {View}
 */
export function reviewView(context) {
  const { definition, pages, onBack, onSend } = context;
  const questions = pages.flatMap((page) => page.questions);
  const allBounds = bounds(definition.pages.flatMap((page) => page.questions));
  const content = element(
    "div",
    { class: "view review" },
    element("div", { class: "top" }, button(say("question.back"), onBack, { class: "link back" })),
    heading(say("review.heading")),
    element("p", {}, say("review.intro")),
    ...wholeReport(definition),
    element(
      "dl",
      { class: "answers" },
      ...questions.map((question) => row(context, question, allBounds)),
    ),
    element("p", {}, say("review.once")),
    button(say("review.send"), onSend),
  );
  return { content, title: definition.title };
}

/** @param {ReviewContext} context @param {Question} question @param {Map<string, Bound>} allBounds */
function row(context, question, allBounds) {
  const { definition, onChange } = context;
  return element(
    "div",
    { "data-question": question.id },
    surveyElement("dt", definition, question.text),
    element("dd", {}, ...answer(context, question)),
    ...questionWarning(question, boundIn(allBounds, question.id)).map((warning) =>
      element("dd", { class: "warning" }, warning),
    ),
    element(
      "dd",
      { class: "change" },
      button(say("review.change"), () => onChange(question.id), {
        class: "link",
        "aria-label": say("review.changeOf", { question: question.text }),
      }),
    ),
  );
}

/** @param {ReviewContext} context @param {Question} question */
function answer({ definition, answerTo, isRounded }, question) {
  const value = answerTo(question.id);
  if (value !== undefined) {
    const texts = answerTexts(question, value, definition.language);
    const rounded = isRounded(question.id) ? [`${say("review.rounded")} `] : [];
    return [...rounded, ...listed(definition, texts)];
  }
  return [
    surveyElement("b", definition, optOutLabel(question)),
    element("span", { class: "quiet" }, ` ${say("review.notAnswered")}`),
  ];
}
