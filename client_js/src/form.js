/**
 * One page of questions as native fieldsets: it shows, asks again for what is missing, keeps nothing.
 */

import { button, disclosure, element, heading, surveyText } from "./dom.js";
import { showGaps } from "./gaps.js";
import { boundSentence, frequencySentence } from "./privacy.js";
import { words } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./completeness.js").Gap} Gap
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
 * @param {Asked} asked
 * @returns {import("./stage.js").View}
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
