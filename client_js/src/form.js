/**
 * The views of a visit: start page, pages of questions, review; they show and ask, and keep nothing.
 */

import {
  boundSentence,
  button,
  contact,
  disclosure,
  element,
  frequencySentence,
  heading,
  leastProtectedExample,
  littleWarning,
  openSides,
  paragraphs,
  protectionTable,
  randomStepDrawing,
  surveyText,
  togetherNote,
} from "./dom.js";
import { optOutLabel, questions } from "./report.js";
import { words } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./dom.js").View} View
 * @typedef {import("./report.js").Gap} Gap
 * @typedef {object} Asked
 * @property {Definition} definition
 * @property {number} at  index of the page
 * @property {string | null} focusOn  id of the question to go to, for "Change"
 * @property {boolean} fromReview
 * @property {(question: string) => string} nameOf  name of a question's inputs, made for this load
 * @property {(question: string) => number | undefined} answerTo
 * @property {(question: string, option: number) => void} onAnswer
 * @property {() => Gap[]} onContinue  goes on, or says which gaps stop it
 * @property {() => void} onBack
 */

/**
 * What the survey is and, before any question, who could learn what.
 *
 * @param {object} of
 * @param {Definition} of.definition
 * @param {string} of.clientHash
 * @param {boolean} of.durable  whether this browser lets the page keep anything
 * @param {() => void} of.onStart
 * @returns {View}
 */
export function startView({ definition, clientHash, durable, onStart }) {
  const spoken = surveyText(definition);
  const content = element(
    "div",
    { class: "view start" },
    heading(definition.title, spoken),
    element("div", { class: "lead" }, ...paragraphs(definition.introduction, spoken)),
    element("p", { class: "quiet" }, extent(definition)),
    privacyLabel(definition, clientHash),
    element("p", {}, words.start.sendOnce),
    element("p", {}, words.start.forgotten),
    ...(durable ? [] : [element("p", { class: "notice" }, words.start.keepsNothing)]),
    button(words.start.button, onStart),
    ...contact(definition),
  );
  return { content, title: definition.title };
}

/** @param {Definition} definition */
function extent(definition) {
  return words.start.extent(questions(definition).length, definition.pages.length);
}

/** @param {Definition} definition @param {string} clientHash */
function privacyLabel(definition, clientHash) {
  const { start } = words;
  return element(
    "section",
    { class: "privacy", "aria-labelledby": "privacy-heading" },
    element("h2", { id: "privacy-heading" }, start.heading),
    element("p", {}, start.steps),
    randomStepDrawing(),
    leastProtectedExample(definition),
    ...littleWarning(definition),
    disclosure(
      start.inNumbers,
      protectionTable(definition),
      togetherNote(definition),
      openSides(definition, clientHash),
    ),
  );
}

/**
 * One page of questions as native fieldsets.
 *
 * @param {Asked} asked
 * @returns {View}
 */
export function questionView(asked) {
  const { definition, at, focusOn } = asked;
  const fieldsets = definition.pages[at].questions.map((question) => fieldset(asked, question));
  const content = element("div", { class: "view questions" });
  content.append(
    top(asked),
    ...pageHeading(asked),
    ...fieldsets.map((one) => one.group),
    button(asked.fromReview ? words.question.toReview : words.question.next, () => {
      showGaps(content, fieldsets, asked.onContinue());
      if (content.isConnected) document.title = `${words.question.error}: ${titleOf(asked)}`;
    }),
  );
  const changed = fieldsets.find(({ question }) => question.id === focusOn);
  return { content, title: titleOf(asked), ...(changed ? { focus: changed.heading } : {}) };
}

/** @param {Asked} asked */
function titleOf({ definition, at }) {
  return `${words.question.page(at + 1, definition.pages.length)} – ${definition.title}`;
}

/** @param {Asked} asked */
function top({ definition, at, onBack }) {
  const of = definition.pages.length;
  const text = words.question.page(at + 1, of);
  return element(
    "div",
    { class: "top" },
    button(words.question.back, onBack, { class: "link back" }),
    element("p", { class: "quiet" }, text),
    element("progress", { max: String(of), value: String(at + 1), "aria-label": text }),
  );
}

/**
 * A page with one question and no title is headed by its question; others have their own heading.
 *
 * @param {Asked} asked
 */
function pageHeading({ definition, at }) {
  const { title, questions } = definition.pages[at];
  if (title !== "") return [heading(title, surveyText(definition))];
  if (questions.length === 1) return [];
  const before = definition.pages.slice(0, at).reduce((n, page) => n + page.questions.length, 0);
  return [heading(words.question.numbers(before + 1, before + questions.length))];
}

/**
 * @typedef {object} Fieldset
 * @property {Question} question
 * @property {HTMLElement} group
 * @property {HTMLElement} heading
 * @property {HTMLElement} first  its first radio
 * @property {(error: string) => void} showError  "" removes it
 */

/**
 * @param {Asked} asked
 * @param {Question} question
 * @returns {Fieldset}
 */
function fieldset(asked, question) {
  const spoken = surveyText(asked.definition);
  const { title, questions } = asked.definition.pages[asked.at];
  const level = title === "" && questions.length === 1 ? "h1" : "h2";
  const legend = element(level, { tabindex: "-1", ...spoken }, question.text);
  const hint =
    question.help === "" ? [] : [element("p", { class: "hint", ...spoken }, question.help)];
  const error = element("p", { class: "error", hidden: "" });
  const choices = question.options.map((_, option) => choice(asked, question, option));
  const group = element(
    "fieldset",
    { class: "question", "data-question": question.id },
    element("legend", {}, legend),
    ...hint,
    error,
    element("div", { class: "choices" }, ...choices),
    protection(question),
  );
  const first = /** @type {HTMLElement} */ (choices[0].firstElementChild);
  describe(group, [...hint, error], asked.nameOf(question.id));
  return { question, group, heading: legend, first, showError: errorShower(group, error) };
}

/** @param {HTMLElement} group @param {HTMLElement} error */
function errorShower(group, error) {
  return (/** @type {string} */ text) => {
    error.textContent = text;
    error.hidden = text === "";
    group.classList.toggle("has-error", text !== "");
  };
}

/** @param {HTMLElement} group @param {HTMLElement[]} texts @param {string} name */
function describe(group, texts, name) {
  texts.forEach((text, i) => {
    text.id = `${name}-${i}`;
  });
  group.setAttribute("aria-describedby", texts.map((text) => text.id).join(" "));
}

/**
 * The whole row is the label, so the whole row can be tapped.
 *
 * @param {Asked} asked
 * @param {Question} question
 * @param {number} option
 */
function choice({ definition, nameOf, answerTo, onAnswer }, { id, options }, option) {
  const radio = element("input", { type: "radio", name: nameOf(id), autocomplete: "off" });
  radio.checked = answerTo(id) === option;
  radio.addEventListener("change", () => onAnswer(id, option));
  return element(
    "label",
    { class: "choice" },
    radio,
    element("span", surveyText(definition), options[option].label),
  );
}

/** @param {Question} question */
function protection(question) {
  return disclosure(
    words.question.protection,
    element("p", {}, frequencySentence(question)),
    element("p", {}, boundSentence(question)),
  );
}

/**
 * Say what is missing on a page, on top and beside each field; the list on top takes focus.
 *
 * @param {HTMLElement} content
 * @param {Fieldset[]} fieldsets
 * @param {Gap[]} gaps
 */
function showGaps(content, fieldsets, gaps) {
  if (!content.isConnected) return;
  content.querySelector(".error-summary")?.remove();
  const found = fieldsets.map((one) => ({
    one,
    gap: gaps.find(({ question }) => question === one.question),
  }));
  for (const { one, gap } of found) one.showError(gap ? besideField(gap) : "");
  const items = found.flatMap(({ one, gap }) => (gap ? [summaryItem(one, gap)] : []));
  const summary = errorSummary(gaps, items);
  content.querySelector(".top")?.after(summary);
  summary.focus();
}

/** @param {Gap} gap */
function besideField({ optOut }) {
  return optOut === "" ? words.question.missingHere : words.question.nudgeHere(optOut);
}

/** @param {Fieldset} one @param {Gap} gap */
function summaryItem(one, { question, optOut }) {
  const { missing, nudge } = words.question;
  const text = optOut === "" ? missing(question.text) : nudge(question.text, optOut);
  // A button, not a link: following "#..." would overwrite the fragment that names the definition.
  return element(
    "li",
    {},
    button(text, () => one.first.focus(), { class: "link" }),
  );
}

/** @param {Gap[]} gaps @param {HTMLElement[]} items */
function errorSummary(gaps, items) {
  const { errorHeading, nudgeHeading } = words.question;
  const title = gaps.some(({ optOut }) => optOut === "") ? errorHeading : nudgeHeading;
  return element(
    "div",
    { class: "error-summary", role: "group", tabindex: "-1", "aria-labelledby": "error-title" },
    element("h2", { id: "error-title" }, title),
    element("ul", {}, ...items),
  );
}

/**
 * @typedef {object} Reviewed
 * @property {Definition} definition
 * @property {(question: string) => number | undefined} answerTo
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
