/**
 * A page of questions as native fieldsets, with notices about missing answers.
 */

import { optOutLabel, questions } from "./answers.js";
import {
  button,
  disclosure,
  element,
  heading,
  listed,
  passage,
  quoted,
  surveyElement,
  surveyText,
} from "./dom.js";
import { answerTexts, createField } from "./field.js";
import {
  boundSentence,
  frequencyParagraph,
  questionWarning,
  totalProtection,
  wholeReport,
} from "./privacy-label.js";
import { boundIn, bounds, totalRatio } from "./privacy-loss.js";
import { pieces, say } from "./texts.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./answers.js").Gap} Gap
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./dom.js").Attributes} Attributes
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./dom.js").View} View
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./privacy-loss.js").Bound} Bound
 * @typedef {object} PageContext
 * @property {Definition} definition
 * @property {Page[]} pages  this person's pages with the questions to show now
 * @property {number} at  index of the page
 * @property {string | null} focusOn  id of the question to focus, after "Change"
 * @property {boolean} fromReview
 * @property {(question: string) => string} nameOf  name of a question's inputs, made for this load
 * @property {(question: string) => readonly number[] | undefined} orderOf  the order of a
 *   question's options, if they are shuffled
 * @property {(question: string) => Answer | undefined} answerTo
 * @property {(question: string, answer: Answer | undefined, rounded?: boolean) => void} onAnswer
 * @property {(wrong: Set<string>) => Gap[]} onContinue  continues, or returns the gaps that
 *   stop it; `wrong`: ids of questions with an invalid entry
 * @property {() => void} onBack
 * @typedef {object} Fieldset
 * @property {Question} question
 * @property {HTMLElement} group
 * @property {HTMLElement} heading
 * @property {Field} field
 * @property {(text: Child[], isWrong: boolean) => void} showError  an empty text removes the error
 */

/**
 * Create a page of questions.
 *
 * @param {PageContext} context
 * @returns {View}
 */
export function questionView(context) {
  const { definition, pages, at, focusOn } = context;
  const allBounds = bounds(questions(definition));
  const fieldsets = pages[at].questions.map((question) =>
    fieldset(context, question, boundIn(allBounds, question.id)),
  );
  const content = element("div", { class: "view questions" });
  content.append(
    top(context),
    ...pageHeading(context),
    ...fieldsets.map((part) => part.group),
    button(say(context.fromReview ? "question.toReview" : "question.next"), () => {
      const wrong = fieldsets.filter(({ field }) => field.problem() !== "");
      const gaps = context.onContinue(new Set(wrong.map(({ question }) => question.id)));
      showGaps(definition, content, fieldsets, gaps);
    }),
    ...passage(definition, "helpline"),
  );
  const changed = fieldsets.find(({ question }) => question.id === focusOn);
  // Browsers store titles in their history, where the page would reveal answers that led to it.
  const { title } = definition;
  return { content, title, ...(changed ? { focus: changed.heading } : {}) };
}

/** @param {PageContext} context */
function top({ pages, at, onBack }) {
  const n = pages.length;
  const text = say("question.page", { at: at + 1, of: n });
  return element(
    "div",
    { class: "top" },
    button(say("question.back"), onBack, { class: "link back" }),
    element("p", { class: "quiet" }, text),
    element("progress", { max: String(n), value: String(at + 1), "aria-label": text }),
  );
}

/**
 * Create the page's heading; a page with one question and no title uses the question itself.
 *
 * @param {PageContext} context
 */
function pageHeading(context) {
  const { definition, pages, at } = context;
  const { title, questions: pageQuestions } = pages[at];
  if (title !== "") return [heading(title, surveyText(definition, title))];
  if (isHeadedByQuestion(context)) return [];
  const before = pages.slice(0, at).reduce((n, page) => n + page.questions.length, 0);
  const [first, last] = [before + 1, before + pageQuestions.length];
  return [heading(say(first === last ? "question.number" : "question.numbers", { first, last }))];
}

/** @param {PageContext} context */
function isHeadedByQuestion({ pages, at }) {
  return pages[at].title === "" && pages[at].questions.length === 1;
}

/**
 * @param {PageContext} context
 * @param {Question} question
 * @param {Bound} bound
 * @returns {Fieldset}
 */
function fieldset(context, question, bound) {
  const { definition } = context;
  const name = context.nameOf(question.id);
  const level = isHeadedByQuestion(context) ? "h1" : "h2";
  const attributes = { id: `${name}-q`, tabindex: "-1" };
  const legend = surveyElement(level, definition, question.text, attributes);
  const error = element("p", { class: "error", role: "alert", hidden: "" });
  const field = filledField(context, question, (text) =>
    showError(text ? [text] : [], text !== ""),
  );
  const hints = [
    ...hint(question.help ? [question.help] : [], surveyText(definition, question.help)),
    // The interface's hint follows the researcher's help text.
    ...hint(field.hint, {}),
  ];
  const group = element(
    "fieldset",
    { class: "question", "data-question": question.id },
    element("legend", {}, legend),
    ...hints,
    error,
    ...field.content,
    protection(definition, question, bound),
  );
  const showError = errorShower(group, error, field.entry);
  describe([group, ...(field.entry ? [field.entry] : [])], [...hints, error], name);
  return { question, group, heading: legend, field, showError };
}

/** @param {PageContext} context @param {Question} question @param {(text: string) => void} onProblem */
function filledField({ definition, nameOf, orderOf, answerTo, onAnswer }, question, onProblem) {
  const { id } = question;
  return createField({
    definition,
    question,
    name: nameOf(id),
    order: orderOf(id) ?? question.options.map((_, option) => option),
    answer: answerTo(id),
    onAnswer: (answer, rounded) => onAnswer(id, answer, rounded),
    onProblem,
  });
}

/** @param {Child[]} text @param {Attributes} spoken */
function hint(text, spoken) {
  return text.length === 0 ? [] : [element("p", { class: "hint", ...spoken }, ...text)];
}

/**
 * Return a function that shows an error beside a field. Only a wrong entry is marked as invalid.
 *
 * @param {HTMLElement} group
 * @param {HTMLElement} error
 * @param {HTMLElement | null} entry
 */
function errorShower(group, error, entry) {
  return (/** @type {Child[]} */ text, /** @type {boolean} */ isWrong) => {
    error.replaceChildren(...text);
    error.hidden = text.length === 0;
    group.classList.toggle("has-error", !error.hidden);
    entry?.setAttribute("aria-invalid", String(isWrong));
  };
}

/**
 * @param {HTMLElement[]} parts  the group, and an input to type in when there is one
 * @param {HTMLElement[]} texts
 * @param {string} name
 */
function describe([group, entry], texts, name) {
  texts.forEach((text, i) => {
    text.id = `${name}-${i}`;
  });
  const ids = texts.map((text) => text.id).join(" ");
  group.setAttribute("aria-describedby", ids);
  entry?.setAttribute("aria-describedby", ids);
  entry?.setAttribute("aria-labelledby", `${name}-q`);
}

/** @param {Definition} definition @param {Question} question @param {Bound} bound */
function protection(definition, question, bound) {
  return disclosure(
    say("question.protection"),
    // The figure of one question would say too little about several on the same matter.
    ...totalProtection(definition, totalRatio(definition)),
    frequencyParagraph(definition, question),
    element("p", {}, boundSentence(bound)),
    ...questionWarning(question, bound),
  );
}

/**
 * Show what is missing, at the top of the page and beside each field; the list at the top gets focus.
 *
 * @param {Definition} definition
 * @param {HTMLElement} content
 * @param {Fieldset[]} fieldsets
 * @param {Gap[]} gaps
 */
function showGaps(definition, content, fieldsets, gaps) {
  if (!content.isConnected) return;
  content.querySelector(".error-summary")?.remove();
  const results = fieldsets.map((part) => ({
    part,
    gap: gaps.find(({ question }) => question === part.question),
  }));
  for (const { part, gap } of results) {
    part.showError(gap ? besideField(definition, part, gap) : [], gap?.optOut === "");
  }
  const items = results.flatMap(({ part, gap }) =>
    gap ? [summaryItem(definition, part, gap)] : [],
  );
  const summary = errorSummary(gaps, items);
  content.querySelector(".top")?.after(summary);
  summary.focus({ preventScroll: true });
  // Show the beginning of a list that is longer than the screen.
  summary.scrollIntoView();
}

/** @param {Definition} definition @param {Fieldset} part @param {Gap} gap */
function besideField(definition, { field }, { optOut }) {
  if (field.problem() !== "") return [field.problem()];
  if (optOut !== "") return pieces("question.nudgeHere", { optOut: quoted(definition, optOut) });
  return [say(field.entry ? "question.missingEntryHere" : "question.missingHere")];
}

/** @param {Definition} definition @param {Fieldset} part @param {Gap} gap */
function inSummary(definition, { field }, { question: { text }, optOut }) {
  const question = quoted(definition, text);
  const problem = field.problem();
  if (problem !== "") return pieces("question.wrong", { question, problem });
  if (optOut === "") {
    return pieces(field.entry ? "question.missingEntry" : "question.missing", { question });
  }
  return pieces("question.nudge", { question, optOut: quoted(definition, optOut) });
}

/** @param {Definition} definition @param {Fieldset} part @param {Gap} gap */
function summaryItem(definition, part, gap) {
  // A button, because a link to "#..." would overwrite the definition's hash in the address.
  return element(
    "li",
    {},
    button(inSummary(definition, part, gap), () => part.field.first.focus(), { class: "link" }),
  );
}

/** @param {Gap[]} gaps @param {HTMLElement[]} items */
function errorSummary(gaps, items) {
  const isWrong = gaps.some(({ optOut }) => optOut === "");
  const title = say(isWrong ? "question.errorHeading" : "question.nudgeHeading");
  return element(
    "div",
    { class: "error-summary", role: "group", tabindex: "-1", "aria-labelledby": "error-title" },
    element("h2", { id: "error-title" }, title),
    element("ul", {}, ...items),
  );
}

/**
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
