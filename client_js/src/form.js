/**
 * The views of a visit: start page, pages of questions, review; they show and ask, and keep nothing.
 */

import {
  boundSentence,
  button,
  disclosure,
  element,
  frequencyParagraph,
  heading,
  leastProtectedExample,
  listed,
  littleWarning,
  openSides,
  paragraphs,
  passage,
  protectionTable,
  quoted,
  randomStep,
  surveyElement,
  surveyText,
  togetherNote,
} from "./dom.js";
import { answerTexts, createField } from "./fields.js";
import { boundIn, bounds, optOutLabel, questions, sampledCounts } from "./report.js";
import { count, pieces, say } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./dom.js").Child} Child
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
 * @property {(question: string) => readonly number[] | undefined} orderOf  in which to show the
 *   options of a question, where the device has shuffled them
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
 * @param {import("./definition.js").Link} of.link
 * @param {boolean} of.durable  whether this browser lets the page keep anything
 * @param {() => void} of.onStart
 * @returns {View}
 */
export function startView({ definition, clientHash, link, durable, onStart }) {
  const { title, introduction } = definition;
  const content = element(
    "div",
    { class: "view start" },
    heading(title, surveyText(definition, title)),
    element(
      "div",
      { class: "lead" },
      ...paragraphs(introduction, surveyText(definition, introduction)),
    ),
    element("p", { class: "quiet" }, extent(definition)),
    ...(skips(definition) ? [element("p", { class: "quiet" }, say("start.skips"))] : []),
    privacyLabel(definition, clientHash),
    quickCheck(),
    element("p", {}, say("start.sendOnce")),
    ...(definition.bucket ? [element("p", {}, bucketSentence(definition.bucket))] : []),
    element("p", {}, say("start.forgotten")),
    element("p", {}, element("b", {}, say("exit.button")), ": ", say("exit.hint")),
    element("p", {}, ...admission(link)),
    ...keepingNotice(definition, durable),
    ...passage(definition, "ethics"),
    ...passage(definition, "helpline"),
    ...passage(definition, "consent"),
    button(say(definition.consent ? "start.agree" : "start.button"), onStart),
    ...passage(definition, "contact"),
  );
  return { content, title };
}

/** @param {Definition} definition */
function extent(definition) {
  const upTo = skips(definition);
  if (definition.sampling) return sampledExtent(sampledCounts(definition), upTo);
  return say(upTo ? "start.extentUpTo" : "start.extent", {
    questions: count("count.questions", questions(definition).length),
    pages: count("count.pages", definition.pages.length),
  });
}

/** @param {{fewest: number, most: number, all: number}} counts @param {boolean} upTo */
function sampledExtent({ fewest, most, all }, upTo) {
  const exactly = fewest === most ? `${most}` : say("start.range", { fewest, most });
  return say("start.sampled", {
    asked: upTo ? say("start.upTo", { most }) : exactly,
    questions: count("count.questions", all),
  });
}

/** @param {"day" | "week"} bucket */
function bucketSentence(bucket) {
  return say(bucket === "day" ? "start.bucketDay" : "start.bucketWeek");
}

/**
 * Who can answer how often by this link, and what else the link tells.
 *
 * @param {import("./definition.js").Link} link
 */
function admission({ invitation, stratum }) {
  const by = say(invitation ? "start.invited" : "start.openLink");
  return stratum ? [by, " ", say("start.stratum", { stratum })] : [by];
}

/** @param {Definition} definition @param {boolean} durable */
function keepingNotice({ kiosk }, durable) {
  if (kiosk) return [element("p", { class: "notice" }, say("start.kiosk"))];
  return durable ? [] : [element("p", { class: "notice" }, say("start.keepsNothing"))];
}

/** One question on what was read, with an answer to each answer; it opens and closes nothing. */
function quickCheck() {
  const feedback = element("p", { role: "status", class: "feedback" });
  const choices = /** @type {const} */ ([
    ["check.all", "check.wrong"],
    ["check.nothing", "check.right"],
  ]).map(([choice, answer]) =>
    button(
      say(choice),
      ({ currentTarget }) => {
        for (const one of choices) one.setAttribute("aria-pressed", String(one === currentTarget));
        feedback.textContent = say(answer);
      },
      { class: "button second", "aria-pressed": "false" },
    ),
  );
  return element(
    "section",
    { class: "check", "aria-labelledby": "check-heading" },
    element("h2", { id: "check-heading" }, say("check.heading")),
    element("p", {}, say("check.question")),
    element("div", { class: "pair" }, ...choices),
    feedback,
    element("p", { class: "quiet" }, say("check.kept")),
  );
}

/** Whether answers decide what is asked. @param {Definition} definition */
function skips(definition) {
  return questions(definition).some((question) => question.ask_if !== null);
}

/** @param {Definition} definition @param {string} clientHash */
function privacyLabel(definition, clientHash) {
  return element(
    "section",
    { class: "privacy", "aria-labelledby": "privacy-heading" },
    element("h2", { id: "privacy-heading" }, say("start.heading")),
    ...randomStep(definition),
    leastProtectedExample(definition),
    ...littleWarning(definition),
    disclosure(
      say("start.inNumbers"),
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
 * @typedef {object} Fieldset
 * @property {Question} question
 * @property {HTMLElement} group
 * @property {HTMLElement} heading
 * @property {import("./fields.js").Field} field
 * @property {(text: Child[], isWrong: boolean) => void} showError  none removes it
 */

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

/** @param {Child[]} text @param {import("./dom.js").Attributes} spoken */
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
