/**
 * The start page: what the survey is, and what anyone could learn from the report.
 */

import { optOutLabel, questions, sampledCounts } from "./answers.js";
import { diceDemonstration } from "./dice.js";
import {
  button,
  disclosure,
  element,
  heading,
  paragraph,
  paragraphs,
  passage,
  quoted,
  surveyText,
} from "./dom.js";
import {
  leastProtectedExample,
  noProof,
  protectionTable,
  totalProtection,
  unprotectedList,
  wholeReport,
} from "./privacy-label.js";
import { posteriorBounds, productOf, provesNothing, totalRatio } from "./privacy-loss.js";
import { saysAnswers } from "./report.js";
import { count, gap, pieces, say } from "./texts.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./dom.js").View} View
 * @typedef {import("./link.js").Link} Link
 * @typedef {import("./outbox.js").Earlier} Earlier
 * @typedef {import("./random.js").GetRandomValues} GetRandomValues
 */

/** Average number of seconds per question. */
const SECONDS_PER_QUESTION = 30;

/**
 * Create the start page, with everything that a frightened person needs to know before "Start".
 *
 * @param {object} of
 * @param {Definition} of.definition
 * @param {Link} of.link
 * @param {boolean} of.durable  whether this browser stores anything for the page
 * @param {GetRandomValues} of.getRandomValues  for the demonstration of the dice
 * @param {() => void} of.onStart
 * @returns {View}
 */
export function startView({ definition, link, durable, getRandomValues, onStart }) {
  const { title, introduction } = definition;
  const content = element(
    "div",
    { class: "view start" },
    heading(title, surveyText(definition, title)),
    element("p", {}, ...extentAndAsker(definition)),
    element(
      "div",
      { class: "lead" },
      ...paragraphs(introduction, surveyText(definition, introduction)),
    ),
    card(definition, link, durable, getRandomValues),
    ...storageNotice(definition, durable),
    ...invitationNotice(link),
    ...passage(definition, "helpline"),
    ...passage(definition, "consent"),
    button(say(definition.consent ? "start.agree" : "start.button"), onStart),
    ...passage(definition, "ethics"),
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

/**
 * Say how long the survey is, who is asking, and that nobody has to answer.
 *
 * @param {Definition} definition
 * @returns {Child[]}
 */
function extentAndAsker(definition) {
  const { organization } = definition;
  const canSkip = questions(definition).every((question) => optOutLabel(question) !== "");
  const askedBy = { organization: quoted(definition, organization) };
  return [
    extent(definition),
    ...(organization ? [gap(), ...pieces("start.askedBy", askedBy)] : []),
    gap(),
    say(canSkip ? "start.skipAny" : "start.leaveAny"),
  ];
}

/** @param {Definition} definition */
function extent(definition) {
  const { fewest, most, rows } = sampledCounts(definition);
  const values = {
    fewest,
    questions: count("count.questions", most),
    minutes: count("count.minutes", Math.ceil((rows * SECONDS_PER_QUESTION) / 60)),
  };
  if (skips(definition)) return say("start.extentUpTo", values);
  return say(fewest === most ? "start.extent" : "start.extentRange", values);
}

/** Whether some questions depend on earlier answers. @param {Definition} definition */
function skips(definition) {
  return questions(definition).some((question) => question.ask_if !== null);
}

/**
 * Create the card: how the dice protect an answer, what they do not protect, and more on request.
 *
 * @param {Definition} definition
 * @param {Link} link
 * @param {boolean} durable
 * @param {GetRandomValues} getRandomValues
 */
function card(definition, link, durable, getRandomValues) {
  const isWeak = !provesNothing(definition);
  return element(
    "section",
    { class: isWeak ? "privacy weak" : "privacy", "aria-labelledby": "privacy-heading" },
    element("h2", { id: "privacy-heading" }, say(isWeak ? "start.headingWeak" : "start.heading")),
    steps(definition),
    ...wholeReportNote(definition),
    ...(isWeak ? [leastProtectedExample(definition)] : []),
    unprotected(),
    ...diceDemonstration(definition, getRandomValues),
    disclosure(say("start.more"), ...more(definition, link, durable)),
  );
}

/** Explain the dice in three steps. @param {Definition} definition */
export function steps(definition) {
  const isReplaced = questions(definition).every(saysAnswers);
  // With weak protection, not every true answer is harmless.
  const isStrong = provesNothing(definition);
  return element(
    "ol",
    { class: "steps" },
    element("li", {}, say(isStrong ? "start.truthfully" : "start.answer")),
    element("li", {}, say(isReplaced ? "start.steps" : "start.stepsByChance")),
    element("li", {}, [say("start.sum"), ...noProof(definition)].join(gap())),
  );
}

/**
 * Say how much all lines together can change a suspicion; the figure for the whole report comes first.
 * If the protection is weak, show all figures and a warning.
 *
 * @param {Definition} definition
 */
function wholeReportNote(definition) {
  if (!provesNothing(definition)) return wholeReport(definition);
  const { from10 } = posteriorBounds(totalRatio(definition));
  return [
    element("p", {}, element("b", {}, say("start.note")), gap(), say("start.hint", { from10 })),
  ];
}

/** List in three short lines what the dice do not hide. */
function unprotected() {
  return element(
    "div",
    { class: "unprotected" },
    element("p", {}, element("b", {}, say("start.open"))),
    element(
      "ul",
      {},
      element("li", {}, say("start.openPart")),
      element("li", {}, say("start.openAddress")),
      element("li", {}, say("start.openScreen")),
    ),
  );
}

/**
 * @param {Definition} definition
 * @param {Link} link
 * @param {boolean} durable
 */
function more(definition, { invitation }, durable) {
  const { kiosk, sampling, bucket } = definition;
  const isStrong = provesNothing(definition);
  return [
    ...(isStrong ? [...wholeReport(definition), leastProtectedExample(definition)] : []),
    protectionTable(definition),
    unprotectedList(),
    element("h3", {}, say("start.keptHeading")),
    ...(sampling ? [paragraph(say("start.sampled"))] : []),
    ...(skips(definition) ? [paragraph(say("start.skips"))] : []),
    paragraph(say("start.sendOnce")),
    ...(bucket ? [paragraph(say(bucket === "day" ? "start.bucketDay" : "start.bucketWeek"))] : []),
    paragraph(say("start.forgotten")),
    ...(kiosk || !durable ? [] : [paragraph(say("start.mark"))]),
    ...(invitation ? [] : [paragraph(say("start.openLink"))]),
    element("h3", {}, say("exit.button")),
    paragraph(say("exit.hint")),
  ];
}

/** Say, visibly on the page, what a personal link reveals. @param {Link} link */
function invitationNotice({ invitation, stratum }) {
  if (!invitation) return [];
  const group = stratum ? gap() + say("start.stratum", { stratum }) : "";
  return [paragraph(say("start.invited") + group, "notice")];
}

/** @param {Definition} definition @param {boolean} durable */
function storageNotice({ kiosk }, durable) {
  if (kiosk) return [paragraph(say("start.kiosk"), "notice")];
  return durable ? [] : [paragraph(say("start.keepsNothing"), "notice")];
}
