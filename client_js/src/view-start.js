/**
 * The start page: what the survey is, and what anyone could learn from the report.
 */

import { button, disclosure, element, heading, paragraphs, passage, surveyText } from "./dom.js";
import {
  leastProtectedExample,
  noProof,
  protectionTable,
  totalProtection,
  unprotectedList,
  wholeReport,
} from "./privacy-label.js";
import { productOf, provesNothing, totalRatio } from "./privacy-loss.js";
import { questions, sampledCounts } from "./sampling.js";
import { randomStep } from "./start-illustration.js";
import { count, say } from "./texts.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./earlier-surveys.js").Earlier} Earlier
 * @typedef {import("./link.js").Link} Link
 * @typedef {import("./dom.js").View} View
 */

/**
 * Create the start page.
 *
 * @param {object} of
 * @param {Definition} of.definition
 * @param {string} of.clientHash
 * @param {Link} of.link
 * @param {boolean} of.durable  whether this browser stores anything for the page
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
    ...(provesNothing(definition) ? [quickCheck()] : []),
    element("p", {}, say("start.sendOnce")),
    ...(definition.bucket ? [element("p", {}, bucketSentence(definition.bucket))] : []),
    element("p", {}, say("start.forgotten")),
    element("p", {}, element("b", {}, say("exit.button")), ": ", say("exit.hint")),
    element("p", {}, ...admission(link)),
    ...storageNotice(definition, durable),
    ...passage(definition, "ethics"),
    ...passage(definition, "helpline"),
    ...passage(definition, "consent"),
    button(say(definition.consent ? "start.agree" : "start.button"), onStart),
    ...passage(definition, "contact"),
  );
  return { content, title };
}

/**
 * Warn after Start that this survey adds to the ones that the device remembers. It comes after Start,
 * because the start page is open to everybody who opens the link on this device.
 *
 * @param {object} of
 * @param {Definition} of.definition
 * @param {Earlier} of.earlier
 * @param {() => void} of.onContinue
 * @param {() => void} of.onForget
 * @returns {View}
 */
export function addUpView({ definition, earlier, onContinue, onForget }) {
  const surveys = count("count.surveys", earlier.surveys);
  const content = element(
    "div",
    { class: "view add-up" },
    heading(say("memory.warning")),
    element("p", {}, say("memory.before", { surveys })),
    ...totalProtection(definition, productOf([earlier.total, totalRatio(definition)])),
    button(say("question.next"), onContinue),
    button(say("memory.forget"), onForget, { class: "button second" }),
  );
  return { content, title: definition.title };
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
 * Say who can answer with this link, and what the link reveals.
 *
 * @param {Link} link
 */
function admission({ invitation, stratum }) {
  const by = say(invitation ? "start.invited" : "start.openLink");
  return stratum ? [by, " ", say("start.stratum", { stratum })] : [by];
}

/** @param {Definition} definition @param {boolean} durable */
function storageNotice({ kiosk }, durable) {
  if (kiosk) return [element("p", { class: "notice" }, say("start.kiosk"))];
  return durable ? [] : [element("p", { class: "notice" }, say("start.keepsNothing"))];
}

/** Ask one question about the text above and comment on either answer; nothing depends on it. */
function quickCheck() {
  const feedback = element("p", { role: "status", class: "feedback" });
  const choices = /** @type {const} */ ([
    ["check.all", "check.wrong"],
    ["check.nothing", "check.right"],
  ]).map(([choice, answer]) =>
    button(
      say(choice),
      ({ currentTarget }) => {
        for (const other of choices)
          other.setAttribute("aria-pressed", String(other === currentTarget));
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

/** Whether some questions depend on earlier answers. @param {Definition} definition */
function skips(definition) {
  return questions(definition).some((question) => question.ask_if !== null);
}

/** @param {Definition} definition @param {string} clientHash */
function privacyLabel(definition, clientHash) {
  const isWeak = !provesNothing(definition);
  return element(
    "section",
    { class: isWeak ? "privacy weak" : "privacy", "aria-labelledby": "privacy-heading" },
    element(
      "h2",
      { id: "privacy-heading" },
      isWeak ? say("start.headingWeak") : say("start.heading"),
    ),
    ...wholeReport(definition),
    ...randomStep(definition),
    ...noProof(definition),
    leastProtectedExample(definition),
    disclosure(
      say("start.inNumbers"),
      protectionTable(definition),
      unprotectedList(definition, clientHash),
    ),
  );
}
