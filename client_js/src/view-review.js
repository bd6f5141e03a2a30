/**
 * The review: all answers once more before the one report is made.
 */

import { optOutLabel } from "./answers.js";
import { button, element, heading, listed, surveyElement } from "./dom.js";
import { answerTexts } from "./field.js";
import { say } from "./words.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./dom.js").View} View
 * @typedef {object} Reviewed
 * @property {Definition} definition
 * @property {Page[]} pages  of this person, with the questions that are asked
 * @property {(question: string) => Answer | undefined} answerTo
 * @property {(question: string) => boolean} isRounded  whether its answer is not what was typed
 * @property {(question: string) => void} onChange
 * @property {() => void} onBack
 * @property {() => void} onSend
 */

/**
 * All answers once more, each with a way to change it, before the one report is made.
 *
 * @param {Reviewed} reviewed
 * @returns {View}
 */
export function reviewView(reviewed) {
  const { definition, pages, onBack, onSend } = reviewed;
  const asked = pages.flatMap((page) => page.questions);
  const content = element(
    "div",
    { class: "view review" },
    element("div", { class: "top" }, button(say("question.back"), onBack, { class: "link back" })),
    heading(say("review.heading")),
    element("p", {}, say("review.intro")),
    element("dl", { class: "answers" }, ...asked.map((one) => row(reviewed, one))),
    element("p", {}, say("review.once")),
    button(say("review.send"), onSend),
  );
  return { content, title: definition.title };
}

/** @param {Reviewed} reviewed @param {Question} question */
function row(reviewed, question) {
  const { definition, onChange } = reviewed;
  return element(
    "div",
    { "data-question": question.id },
    surveyElement("dt", definition, question.text),
    element("dd", {}, ...answer(reviewed, question)),
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

/** @param {Reviewed} reviewed @param {Question} question */
function answer({ definition, answerTo, isRounded }, question) {
  const given = answerTo(question.id);
  if (given !== undefined) {
    const texts = answerTexts(question, given, definition.language);
    const rounded = isRounded(question.id) ? [`${say("review.rounded")} `] : [];
    return [...rounded, ...listed(definition, texts)];
  }
  return [
    surveyElement("b", definition, optOutLabel(question)),
    element("span", { class: "quiet" }, ` ${say("review.notAnswered")}`),
  ];
}
