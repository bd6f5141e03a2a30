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
  randomStep,
  surveyText,
  togetherNote,
} from "./dom.js";
import { answerTexts, createField } from "./fields.js";
import { boundIn, bounds, optOutLabel, questions, sampledCounts } from "./report.js";
import { words } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./dom.js").View} View
 * @typedef {import("./definition.js").Page} Page
 * @typedef {import("./report.js").Answer} Answer
 * @typedef {import("./report.js").Bound} Bound
 * @typedef {import("./report.js").Gap} Gap
 * @typedef {object} Asked
 * @property {Definition} definition
 * @property {Page[]} pages  of this person, with the questions that are asked now
 * @property {number} at  index of the page
 * @property {string | null} focusOn  id of the question to go to, for "Change"
 * @property {boolean} fromReview
 * @property {(question: string) => string} nameOf  name of a question's inputs, made for this load
 * @property {(question: string) => Answer | undefined} answerTo
 * @property {(question: string, answer: Answer | undefined, rounded?: boolean) => void} onAnswer
 * @property {(wrong: Set<string>) => Gap[]} onContinue  goes on, or says which gaps stop it; `wrong`:
 *   ids of questions whose entry is no answer
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
    ...(skips(definition) ? [element("p", { class: "quiet" }, words.start.skips)] : []),
    privacyLabel(definition, clientHash),
    element("p", {}, words.start.sendOnce),
    ...(definition.bucket ? [element("p", {}, words.start.bucket[definition.bucket])] : []),
    element("p", {}, words.start.forgotten),
    ...(durable ? [] : [element("p", { class: "notice" }, words.start.keepsNothing)]),
    button(words.start.button, onStart),
    ...contact(definition),
  );
  return { content, title: definition.title };
}

/** @param {Definition} definition */
function extent(definition) {
  const { extent: all, sampled } = words.start;
  if (definition.sampling) return sampled(sampledCounts(definition), skips(definition));
  return all(questions(definition).length, definition.pages.length, skips(definition));
}

/** Whether answers decide what is asked. @param {Definition} definition */
function skips(definition) {
  return questions(definition).some((question) => question.ask_if !== null);
}

/** @param {Definition} definition @param {string} clientHash */
function privacyLabel(definition, clientHash) {
  const { start } = words;
  return element(
    "section",
    { class: "privacy", "aria-labelledby": "privacy-heading" },
    element("h2", { id: "privacy-heading" }, start.heading),
    ...randomStep(definition),
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
    button(asked.fromReview ? words.question.toReview : words.question.next, () => {
      const wrong = fieldsets.filter(({ field }) => field.problem() !== "");
      const gaps = asked.onContinue(new Set(wrong.map(({ question }) => question.id)));
      showGaps(content, fieldsets, gaps);
    }),
  );
  const changed = fieldsets.find(({ question }) => question.id === focusOn);
  // Browsers keep titles in their history: one that told the page would tell an answer that led there.
  const { title } = definition;
  return { content, title, ...(changed ? { focus: changed.heading } : {}) };
}

/** @param {Asked} asked */
function top({ pages, at, onBack }) {
  const of = pages.length;
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
function pageHeading(asked) {
  const { definition, pages, at } = asked;
  const { title, questions: shown } = pages[at];
  if (title !== "") return [heading(title, surveyText(definition))];
  if (isHeadedByQuestion(asked)) return [];
  const before = pages.slice(0, at).reduce((n, page) => n + page.questions.length, 0);
  return [heading(words.question.numbers(before + 1, before + shown.length))];
}

/** @param {Asked} asked */
function isHeadedByQuestion({ pages, at }) {
  return pages[at].title === "" && pages[at].questions.length === 1;
}

/**
 * @typedef {object} Fieldset
 * @property {Question} question
 * @property {HTMLElement} group
 * @property {HTMLElement} heading
 * @property {import("./fields.js").Field} field
 * @property {(text: string, isWrong: boolean) => void} showError  "" removes it
 */

/**
 * @param {Asked} asked
 * @param {Question} question
 * @param {Bound} bound
 * @returns {Fieldset}
 */
function fieldset(asked, question, bound) {
  const spoken = surveyText(asked.definition);
  const name = asked.nameOf(question.id);
  const level = isHeadedByQuestion(asked) ? "h1" : "h2";
  const legend = element(level, { id: `${name}-q`, tabindex: "-1", ...spoken }, question.text);
  const error = element("p", { class: "error", role: "alert", hidden: "" });
  const field = filledField(asked, question, (text) => showError(text, text !== ""));
  const hints = [
    ...hint(question.help, spoken),
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
    protection(asked.definition, question, bound),
  );
  const showError = errorShower(group, error, field.entry);
  describe([group, ...(field.entry ? [field.entry] : [])], [...hints, error], name);
  return { question, group, heading: legend, field, showError };
}

/** @param {Asked} asked @param {Question} question @param {(text: string) => void} onProblem */
function filledField({ definition, nameOf, answerTo, onAnswer }, question, onProblem) {
  const { id } = question;
  return createField({
    definition,
    question,
    name: nameOf(id),
    answer: answerTo(id),
    onAnswer: (answer, rounded) => onAnswer(id, answer, rounded),
    onProblem,
  });
}

/** @param {string} text @param {import("./dom.js").Attributes} spoken */
function hint(text, spoken) {
  return text === "" ? [] : [element("p", { class: "hint", ...spoken }, text)];
}

/**
 * What is said beside a field. What was left out is not wrong: only a wrong entry is called invalid.
 *
 * @param {HTMLElement} group
 * @param {HTMLElement} error
 * @param {HTMLElement | null} entry
 */
function errorShower(group, error, entry) {
  return (/** @type {string} */ text, /** @type {boolean} */ isWrong) => {
    error.textContent = text;
    error.hidden = text === "";
    group.classList.toggle("has-error", text !== "");
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
    words.question.protection,
    element("p", {}, frequencySentence(definition, question)),
    element("p", {}, boundSentence(bound)),
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
  for (const { one, gap } of found) {
    one.showError(gap ? besideField(one, gap) : "", gap?.optOut === "");
  }
  const items = found.flatMap(({ one, gap }) => (gap ? [summaryItem(one, gap)] : []));
  const summary = errorSummary(gaps, items);
  content.querySelector(".top")?.after(summary);
  summary.focus();
}

/** @param {Fieldset} one @param {Gap} gap */
function besideField({ field }, { optOut }) {
  if (field.problem() !== "") return field.problem();
  const { missingHere, missingEntryHere, nudgeHere } = words.question;
  if (optOut !== "") return nudgeHere(optOut);
  return field.entry ? missingEntryHere : missingHere;
}

/** @param {Fieldset} one @param {Gap} gap */
function inSummary({ field }, { question, optOut }) {
  const { missing, missingEntry, nudge, wrong } = words.question;
  if (field.problem() !== "") return wrong(question.text, field.problem());
  if (optOut !== "") return nudge(question.text, optOut);
  return (field.entry ? missingEntry : missing)(question.text);
}

/** @param {Fieldset} one @param {Gap} gap */
function summaryItem(one, gap) {
  // A button, not a link: following "#..." would overwrite the fragment that names the definition.
  return element(
    "li",
    {},
    button(inSummary(one, gap), () => one.field.first.focus(), { class: "link" }),
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
  const { review } = words;
  const { definition, pages, onBack, onSend } = reviewed;
  const asked = pages.flatMap((page) => page.questions);
  const content = element(
    "div",
    { class: "view review" },
    element("div", { class: "top" }, button(words.question.back, onBack, { class: "link back" })),
    heading(review.heading),
    element("p", {}, review.intro),
    element("dl", { class: "answers" }, ...asked.map((one) => row(reviewed, one))),
    element("p", {}, review.once),
    button(review.send, onSend),
  );
  return { content, title: definition.title };
}

/** @param {Reviewed} reviewed @param {Question} question */
function row(reviewed, question) {
  const { definition, onChange } = reviewed;
  const spoken = surveyText(definition);
  const { change, changeOf } = words.review;
  return element(
    "div",
    { "data-question": question.id },
    element("dt", spoken, question.text),
    element("dd", {}, ...answer(reviewed, question)),
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

/** @param {Reviewed} reviewed @param {Question} question */
function answer({ definition, answerTo, isRounded }, question) {
  const spoken = surveyText(definition);
  const given = answerTo(question.id);
  if (given !== undefined) {
    const texts = answerTexts(question, given, definition.language);
    const rounded = isRounded(question.id) ? [`${words.review.rounded} `] : [];
    return [...rounded, element("b", spoken, texts.join(", "))];
  }
  return [
    element("b", spoken, optOutLabel(question)),
    element("span", { class: "quiet" }, ` ${words.review.notAnswered}`),
  ];
}
