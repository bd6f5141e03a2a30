/**
 * A page of questions: native fieldsets, and what is missing on them.
 */

import {
  button,
  disclosure,
  element,
  heading,
  passage,
  quoted,
  surveyElement,
  surveyText,
} from "./dom.js";
import { createField } from "./field.js";
import { boundSentence, frequencyParagraph } from "./label.js";
import { boundIn, bounds } from "./privacy-loss.js";
import { questions } from "./sampling.js";
import { pieces, say } from "./words.js";

/**
 * @typedef {import("./answers.js").Answer} Answer
 * @typedef {import("./dom.js").Attributes} Attributes
 * @typedef {import("./privacy-loss.js").Bound} Bound
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./answers.js").Gap} Gap
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./dom.js").View} View
 * @typedef {object} Asked
 * @property {Definition} definition
 * @property {Page[]} pages  of this person, with the questions that are asked now
 * @property {number} at  index of the page
 * @property {string | null} focusOn  id of the question to go to, for "Change"
 * @property {boolean} fromReview
 * @property {(question: string) => string} nameOf  name of a question's inputs, made for this load
 * @property {(question: string) => readonly number[] | undefined} orderOf  in which to show the
 *   options of a question, where the device has shuffled them
 * @property {(question: string) => Answer | undefined} answerTo
 * @property {(question: string, answer: Answer | undefined, rounded?: boolean) => void} onAnswer
 * @property {(wrong: Set<string>) => Gap[]} onContinue  goes on, or says which gaps stop it; `wrong`:
 *   ids of questions whose entry is no answer
 * @property {() => void} onBack
 * @typedef {object} Fieldset
 * @property {Question} question
 * @property {HTMLElement} group
 * @property {HTMLElement} heading
 * @property {Field} field
 * @property {(text: Child[], isWrong: boolean) => void} showError  none removes it
 */

/**
 * One page of questions as native fieldsets.
 *
 * @param {Asked} asked
 * @returns {View}
 */
export function questionView(asked) {
  const { definition, pages, at, focusOn } = asked;
  const of = bounds(questions(definition));
  const fieldsets = pages[at].questions.map((question) =>
    fieldset(asked, question, boundIn(of, question.id)),
  );
  const content = element("div", { class: "view questions" });
  content.append(
    top(asked),
    ...pageHeading(asked),
    ...fieldsets.map((one) => one.group),
    button(say(asked.fromReview ? "question.toReview" : "question.next"), () => {
      const wrong = fieldsets.filter(({ field }) => field.problem() !== "");
      const gaps = asked.onContinue(new Set(wrong.map(({ question }) => question.id)));
      showGaps(definition, content, fieldsets, gaps);
    }),
    ...passage(definition, "helpline"),
  );
  const changed = fieldsets.find(({ question }) => question.id === focusOn);
  // Browsers keep titles in their history: one that told the page would tell an answer that led there.
  const { title } = definition;
  return { content, title, ...(changed ? { focus: changed.heading } : {}) };
}

/** @param {Asked} asked */
function top({ pages, at, onBack }) {
  const of = pages.length;
  const text = say("question.page", { at: at + 1, of });
  return element(
    "div",
    { class: "top" },
    button(say("question.back"), onBack, { class: "link back" }),
    element("p", { class: "quiet" }, text),
    element("progress", { max: String(of), value: String(at + 1), "aria-label": text }),
  );
}

/**
 * A page with one question and no title is headed by its question; others have their own heading.
 *
 * @param {Asked} asked
 */
function pageHeading(asked) {
  const { definition, pages, at } = asked;
  const { title, questions: shown } = pages[at];
  if (title !== "") return [heading(title, surveyText(definition, title))];
  if (isHeadedByQuestion(asked)) return [];
  const before = pages.slice(0, at).reduce((n, page) => n + page.questions.length, 0);
  const [first, last] = [before + 1, before + shown.length];
  return [heading(say(first === last ? "question.number" : "question.numbers", { first, last }))];
}

/** @param {Asked} asked */
function isHeadedByQuestion({ pages, at }) {
  return pages[at].title === "" && pages[at].questions.length === 1;
}

/**
 * @param {Asked} asked
 * @param {Question} question
 * @param {Bound} bound
 * @returns {Fieldset}
 */
function fieldset(asked, question, bound) {
  const { definition } = asked;
  const name = asked.nameOf(question.id);
  const level = isHeadedByQuestion(asked) ? "h1" : "h2";
  const attributes = { id: `${name}-q`, tabindex: "-1" };
  const legend = surveyElement(level, definition, question.text, attributes);
  const error = element("p", { class: "error", role: "alert", hidden: "" });
  const field = filledField(asked, question, (text) => showError(text ? [text] : [], text !== ""));
  const hints = [
    ...hint(question.help ? [question.help] : [], surveyText(definition, question.help)),
    // The interface's own words follow the researcher's: they say how, not what.
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

/** @param {Asked} asked @param {Question} question @param {(text: string) => void} onProblem */
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
 * What is said beside a field. What was left out is not wrong: only a wrong entry is called invalid.
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
    frequencyParagraph(definition, question),
    element("p", {}, boundSentence(bound)),
  );
}

/**
 * Say what is missing on a page, on top and beside each field; the list on top takes focus.
 *
 * @param {Definition} definition
 * @param {HTMLElement} content
 * @param {Fieldset[]} fieldsets
 * @param {Gap[]} gaps
 */
function showGaps(definition, content, fieldsets, gaps) {
  if (!content.isConnected) return;
  content.querySelector(".error-summary")?.remove();
  const found = fieldsets.map((one) => ({
    one,
    gap: gaps.find(({ question }) => question === one.question),
  }));
  for (const { one, gap } of found) {
    one.showError(gap ? besideField(definition, one, gap) : [], gap?.optOut === "");
  }
  const items = found.flatMap(({ one, gap }) => (gap ? [summaryItem(definition, one, gap)] : []));
  const summary = errorSummary(gaps, items);
  content.querySelector(".top")?.after(summary);
  summary.focus({ preventScroll: true });
  // Of a list longer than the screen, its beginning.
  summary.scrollIntoView();
}

/** @param {Definition} definition @param {Fieldset} one @param {Gap} gap */
function besideField(definition, { field }, { optOut }) {
  if (field.problem() !== "") return [field.problem()];
  if (optOut !== "") return pieces("question.nudgeHere", { optOut: quoted(definition, optOut) });
  return [say(field.entry ? "question.missingEntryHere" : "question.missingHere")];
}

/** @param {Definition} definition @param {Fieldset} one @param {Gap} gap */
function inSummary(definition, { field }, { question: { text }, optOut }) {
  const question = quoted(definition, text);
  const problem = field.problem();
  if (problem !== "") return pieces("question.wrong", { question, problem });
  if (optOut === "") {
    return pieces(field.entry ? "question.missingEntry" : "question.missing", { question });
  }
  return pieces("question.nudge", { question, optOut: quoted(definition, optOut) });
}

/** @param {Definition} definition @param {Fieldset} one @param {Gap} gap */
function summaryItem(definition, one, gap) {
  // A button, not a link: following "#..." would overwrite the fragment that names the definition.
  return element(
    "li",
    {},
    button(inSummary(definition, one, gap), () => one.field.first.focus(), { class: "link" }),
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
