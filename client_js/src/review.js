/**
 * All answers once more, each with a way to change it, before the one report is made.
 */

import { optOutLabel } from "./completeness.js";
import { button, element, heading, surveyText } from "./dom.js";
import { questions } from "./report.js";
import { words } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {object} Reviewed
 * @property {Definition} definition
 * @property {(question: string) => number | undefined} answerTo
 * @property {(question: string) => void} onChange
 * @property {() => void} onBack
 * @property {() => void} onSend
 */

/**
 * @param {Reviewed} reviewed
 * @returns {import("./stage.js").View}
 */
export function reviewView(reviewed) {
  const { review } = words;
  const { definition, onBack, onSend } = reviewed;
  const content = element(
    "div",
    { class: "view review" },
    element("div", { class: "top" }, button(words.question.back, onBack, { class: "link back" })),
    heading(review.heading),
    element("p", {}, review.intro),
    element("dl", { class: "answers" }, ...questions(definition).map((q) => row(reviewed, q))),
    element("p", {}, review.once),
    button(review.send, onSend),
  );
  return { content, title: `${review.heading} – ${definition.title}` };
}

/** @param {Reviewed} reviewed @param {Question} question */
function row({ definition, answerTo, onChange }, question) {
  const spoken = surveyText(definition);
  const { change, changeOf } = words.review;
  return element(
    "div",
    { "data-question": question.id },
    element("dt", spoken, question.text),
    element("dd", {}, ...answer(question, answerTo(question.id), spoken)),
    element(
      "dd",
      { class: "change" },
      button(change, () => onChange(question.id), {
        class: "link",
        "aria-label": changeOf(question.text),
      }),
    ),
  );
}

/**
 * @param {Question} question
 * @param {number | undefined} option
 * @param {import("./dom.js").Attributes} spoken
 */
function answer(question, option, spoken) {
  if (option !== undefined) return [element("b", spoken, question.options[option].label)];
  return [
    element("b", spoken, optOutLabel(question)),
    element("span", { class: "quiet" }, ` ${words.review.notAnswered}`),
  ];
}
