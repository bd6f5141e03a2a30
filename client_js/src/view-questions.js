/**
 * A page of questions as native fieldsets, with notices about missing answers.
 */

import { headOf, optOutLabel, questionGroups, questions, showsOneQuestion } from "./answers.js";
import {
  button,
  disclosure,
  element,
  heading,
  listed,
  paragraph,
  passage,
  quoted,
  surveyElement,
  surveyText,
} from "./dom.js";
import { answerTexts, createField, errorShower } from "./field.js";
import { createMatrix } from "./field-matrix.js";
import { filledText, filledWords } from "./piped-text.js";
import { partProtection, questionWarning, totalProtection, wholeReport } from "./privacy-label.js";
import { boundIn, bounds, groupBounds, totalRatio } from "./privacy-loss.js";
import { readAloud } from "./read-aloud.js";
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
 * @typedef {import("./field.js").FieldContext} FieldContext
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
 * @property {(question: string) => Answer | undefined} begunOf  an answer that is not complete
 * @property {(question: string, ...of: Parameters<FieldContext["onAnswer"]>) => void} onAnswer
 * @property {(wrong: Set<string>) => Gap[]} onContinue  continues, or returns the gaps that
 *   stop it; `wrong`: ids of questions with an invalid entry
 * @property {() => void} onBack
 * @typedef {object} Fieldset
 * @property {Question} question
 * @property {HTMLElement} group
 * @property {HTMLElement} heading
 * @property {Field} field
 * @property {(text: Child[], isWrong: boolean) => void} showError  an empty text removes the error
 * @property {HTMLElement} [gapItem]  the question in the list of gaps at the top of the page
 */

/**
 * Create a page of questions.
 *
 * @param {PageContext} context
 * @returns {View}
 */
export function questionView(context) {
  const { definition, pages, at, focusOn } = context;
  const parts = questionGroups(pages[at].questions).map((group) => questionPart(context, group));
  const fieldsets = parts.flatMap((part) => part.rows);
  const content = element("div", { class: "view questions" });
  const onContinue = () => {
    const wrong = fieldsets.filter(({ field }) => field.problem() !== "");
    const gaps = context.onContinue(new Set(wrong.map(({ question }) => question.id)));
    showGaps(context, content, fieldsets, gaps);
  };
  for (const { field } of fieldsets) {
    field.entry?.addEventListener("keydown", ({ key }) => {
      if (key === "Enter") onContinue();
    });
  }
  content.append(
    top(context),
    ...pageHeading(context),
    ...readAloud(context),
    ...parts.map((part) => part.group),
    button(say(context.fromReview ? "question.toReview" : "question.next"), onContinue),
    protection(definition, pages[at].questions),
    ...passage(definition, "helpline"),
  );
  const changed = fieldsets.find(({ question }) => question.id === focusOn);
  // Browsers store titles in their history, where the page would reveal answers that led to it.
  const { title } = definition;
  return { content, title, ...(changed ? { focus: changed.heading } : {}) };
}

/** @param {PageContext} context */
function top({ definition, pages, at, onBack }) {
  const place = { at: at + 1, of: pages.length };
  const isSingle = showsOneQuestion(definition);
  const label = say(isSingle ? "question.ofLabel" : "question.page", place);
  const text = isSingle ? say("question.of", place) : label;
  return element(
    "div",
    { class: "top" },
    button(say("question.back"), onBack, { class: "link back" }),
    element("p", { class: "quiet", "aria-hidden": "true" }, text),
    element("progress", { max: `${place.of}`, value: `${place.at}`, "aria-label": label }),
  );
}

/**
 * Create the page's heading. If the page has one question, the question is the heading, below the title.
 *
 * @param {PageContext} context
 */
function pageHeading(context) {
  const { definition, pages, at } = context;
  const { title, questions: pageQuestions } = pages[at];
  if (isHeadedByQuestion(context)) {
    return title === "" ? [] : [surveyElement("p", definition, title, { class: "section" })];
  }
  if (title !== "") return [heading(title, surveyText(definition, title))];
  const count = (/** @type {Question[]} */ list) => questionGroups(list).length;
  const before = pages.slice(0, at).reduce((n, page) => n + count(page.questions), 0);
  const [first, last] = [before + 1, before + count(pageQuestions)];
  return [heading(say(first === last ? "question.number" : "question.numbers", { first, last }))];
}

/** @param {PageContext} context */
function isHeadedByQuestion({ definition, pages, at }) {
  const { title, questions: pageQuestions } = pages[at];
  const isOne = questionGroups(pageQuestions).length === 1;
  return isOne && (title === "" || showsOneQuestion(definition));
}

/** Create a question, or a matrix of several. @param {PageContext} context @param {Question[]} group */
function questionPart(context, group) {
  if (group[0].matrix)
    return createMatrix(context, group, isHeadedByQuestion(context) ? "h1" : "h2");
  const part = fieldset(context, group[0]);
  return { group: part.group, rows: [part] };
}

/**
 * @param {PageContext} context
 * @param {Question} question
 * @returns {Fieldset}
 */
function fieldset(context, question) {
  const { definition } = context;
  const name = context.nameOf(question.id);
  const level = isHeadedByQuestion(context) ? "h1" : "h2";
  const attributes = { id: `${name}-q`, tabindex: "-1" };
  const legend = element(
    level,
    { ...attributes, ...surveyText(definition, question.text) },
    ...filledText(context, question, "text"),
  );
  const error = element("p", { class: "error", role: "alert", hidden: "" });
  const field = filledField(context, question, (text) => {
    showError(text ? [text] : [], text !== "");
    if (text === "") removeGap(part);
  });
  const hints = [
    ...hint(filledText(context, question, "help"), surveyText(definition, question.help)),
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
  );
  const showError = errorShower(group, error, field.entry);
  describe([group, ...(field.entry ? [field.entry] : [])], [...hints, error], name);
  /** @type {Fieldset} */
  const part = { question, group, heading: legend, field, showError };
  return part;
}

/** @param {PageContext} context @param {Question} question @param {(text: string) => void} onProblem */
function filledField(context, question, onProblem) {
  const { definition, nameOf, orderOf, answerTo, begunOf, onAnswer } = context;
  const { id } = question;
  return createField({
    definition,
    question,
    name: nameOf(id),
    order: orderOf(id) ?? question.options.map((_, option) => option),
    answer: answerTo(id) ?? begunOf(id),
    onAnswer: (...of) => onAnswer(id, ...of),
    onProblem,
  });
}

/** @param {Child[]} text @param {Attributes} spoken */
function hint(text, spoken) {
  return text.length === 0 ? [] : [element("p", { class: "hint", ...spoken }, ...text)];
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

/**
 * Explain once per page how its answers are protected.
 *
 * @param {Definition} definition
 * @param {readonly Question[]} pageQuestions
 */
function protection(definition, pageQuestions) {
  const parts = groupBounds(questionGroups(pageQuestions), questions(definition));
  return disclosure(
    say(parts.length === 1 ? "question.protection" : "question.protections"),
    // The figure of one question would say too little about several on the same matter.
    ...totalProtection(definition, totalRatio(definition)),
    ...parts.flatMap((part) => [
      ...(parts.length === 1 ? [] : [surveyElement("h3", definition, headOf(part.question))]),
      ...partProtection(definition, part),
    ]),
  );
}

/**
 * Show what is missing, at the top of the page and beside each field; the list at the top gets focus.
 *
 * @param {PageContext} context
 * @param {HTMLElement} content
 * @param {Fieldset[]} fieldsets
 * @param {Gap[]} gaps
 */
function showGaps(context, content, fieldsets, gaps) {
  if (!content.isConnected) return;
  content.querySelector(".error-summary")?.remove();
  const results = fieldsets.map((part) => ({
    part,
    gap: gaps.find(({ question }) => question === part.question),
  }));
  for (const { part, gap } of results) {
    part.showError(gap ? besideField(context.definition, part, gap) : [], gap?.optOut === "");
  }
  const found = results.flatMap(({ part, gap }) => (gap ? [{ part, gap }] : []));
  const summary = gapSummary(context, found);
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

/** @param {PageContext} context @param {Fieldset} part @param {Gap} gap */
function inSummary(context, { field }, { question: asked, optOut }) {
  const { definition } = context;
  const text = filledText(context, asked, "text");
  const question = element("bdi", surveyText(definition, asked.text), ...text);
  const problem = field.problem();
  if (problem !== "") return pieces("question.wrong", { question, problem });
  if (optOut === "") {
    return pieces(field.entry ? "question.missingEntry" : "question.missing", { question });
  }
  return pieces("question.nudge", { question, optOut: quoted(definition, optOut) });
}

/**
 * Create the summary of a page's gaps: an error, or a calm note if all of them may remain empty.
 *
 * @param {PageContext} context
 * @param {{part: Fieldset, gap: Gap}[]} gaps
 */
function gapSummary(context, gaps) {
  const isWrong = gaps.some(({ gap }) => gap.optOut === "");
  const name = isWrong ? "error-summary" : "error-summary calm";
  const items = gaps.map((of) => summaryItem(context, of.part, of.gap));
  const title = say(isWrong ? "question.errorHeading" : "question.nudgeHeading");
  return element(
    "div",
    { class: name, role: "group", tabindex: "-1", "aria-labelledby": "error-title" },
    element("h2", { id: "error-title" }, title),
    element("ul", {}, ...items),
    ...(isWrong ? [] : [paragraph(say("question.again"))]),
  );
}

/** @param {PageContext} context @param {Fieldset} part @param {Gap} gap */
function summaryItem(context, part, gap) {
  // A button, because a link to "#..." would overwrite the definition's hash in the address.
  part.gapItem = element(
    "li",
    {},
    button(inSummary(context, part, gap), () => part.field.first.focus(), { class: "link" }),
  );
  return part.gapItem;
}

/** Remove a question from the list of gaps, and an empty list with it. @param {Fieldset} part */
function removeGap({ gapItem }) {
  const summary = gapItem?.closest(".error-summary");
  gapItem?.remove();
  if (!summary?.querySelector("li")) summary?.remove();
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
  const { definition, onBack, onSend } = context;
  const allBounds = bounds(questions(definition));
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
      ...questions(context).map((question) => row(context, question, allBounds)),
    ),
    element("p", {}, say("review.once")),
    button(say("review.send"), onSend),
    element("p", { class: "print-only" }, say("review.print")),
  );
  return { content, title: definition.title };
}

/** @param {ReviewContext} context @param {Question} question @param {ReturnType<typeof bounds>} allBounds */
function row(context, question, allBounds) {
  const { definition, onChange } = context;
  return element(
    "div",
    { "data-question": question.id },
    element("dt", surveyText(definition, question.text), ...filledText(context, question, "text")),
    element("dd", {}, ...answer(context, question)),
    ...questionWarning(question, boundIn(allBounds, question.id)).map((warning) =>
      element("dd", { class: "warning" }, warning),
    ),
    element(
      "dd",
      { class: "change" },
      button(say("review.change"), () => onChange(question.id), {
        class: "link",
        "aria-label": say("review.changeOf", { question: filledWords(context, question, "text") }),
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
