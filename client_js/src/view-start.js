/**
 * The start page: what the survey is, and what anyone could learn from the report.
 */

import { questions, sampledCounts } from "./answers.js";
import {
  button,
  disclosure,
  element,
  heading,
  paragraphs,
  passage,
  surveyText,
  svgElement,
} from "./dom.js";
import {
  leastProtectedExample,
  noProof,
  protectionTable,
  totalProtection,
  unprotectedList,
  wholeReport,
} from "./privacy-label.js";
import { productOf, provesNothing, totalRatio } from "./privacy-loss.js";
import { saysAnswers } from "./report.js";
import { count, say } from "./texts.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./dom.js").View} View
 * @typedef {import("./link.js").Link} Link
 * @typedef {import("./outbox.js").Earlier} Earlier
 */

/**
 * Create the start page.
 *
 * @param {object} of
 * @param {Definition} of.definition
 * @param {Link} of.link
 * @param {boolean} of.durable  whether this browser stores anything for the page
 * @param {() => void} of.onStart
 * @returns {View}
 */
export function startView({ definition, link, durable, onStart }) {
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
    privacyLabel(definition),
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

/** @param {Definition} definition */
function privacyLabel(definition) {
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
    disclosure(say("start.inNumbers"), protectionTable(definition), unprotectedList()),
  );
}

/**
 * Explain and draw the random step: the answer is replaced or kept, or chance decides the report.
 *
 * @param {Definition} definition
 */
export function randomStep(definition) {
  const isReplaced = questions(definition).every(saysAnswers);
  // Weak protection does not make every true answer harmless.
  const truthfully = provesNothing(definition) ? [say("start.truthfully"), " "] : [];
  return [
    element("p", {}, ...truthfully, isReplaced ? say("start.steps") : say("start.stepsByChance")),
    isReplaced
      ? randomStepDrawing(say("start.drawing"), replacementStrokes())
      : randomStepDrawing(say("start.drawingByChance"), chanceStrokes()),
  ];
}

/**
 * Draw the figure: lines in SVG, words in HTML so that they can grow and be translated.
 *
 * @param {string} alternative
 * @param {SVGElement[]} between  what lies between the answer and the report
 */
function randomStepDrawing(alternative, between) {
  return element(
    "figure",
    { class: "random-step" },
    strokes(alternative, between),
    element(
      "figcaption",
      { "aria-hidden": "true" },
      caption(say("start.drawingTruth"), say("start.drawingDevice")),
      caption(say("start.drawingStep"), say("start.drawingDevice")),
      caption(say("start.drawingReport"), say("start.drawingSent")),
    ),
  );
}

/** @param {string} title @param {string} place */
function caption(title, place) {
  return element("span", {}, element("b", {}, title), " ", element("span", {}, place));
}

/** @param {string} alternative @param {SVGElement[]} between */
function strokes(alternative, between) {
  return svgElement(
    "svg",
    { viewBox: "0 0 360 112", role: "img", "aria-label": alternative, focusable: "false" },
    shape("rect", "device", { x: "4", y: "4", width: "236", height: "104", rx: "14" }),
    shape("circle", "truth", { cx: "60", cy: "56", r: "15" }),
    shape("path", "tick", { d: "M53 56.5l5 5 9.5-10" }),
    ...between,
    shape("path", "route", { d: "M264 49l8 7-8 7" }),
    ...sheet(),
  );
}

/** Draw two branches: the answer itself, and a random one below; they meet in the report. */
function replacementStrokes() {
  return [
    shape("path", "route", { d: "M82 56H100C118 56 116 32 134 32H186C204 32 202 56 220 56H270" }),
    shape("path", "route random", { d: "M100 56C118 56 116 82 134 82H142" }),
    shape("path", "route random", { d: "M178 82H186C204 82 202 56 220 56" }),
    ...die(82),
  ];
}

/** Draw one path that leads through the die. */
function chanceStrokes() {
  return [
    shape("path", "route", { d: "M82 56H142" }),
    shape("path", "route random", { d: "M178 56H260" }),
    ...die(56),
  ];
}

/** @param {number} y  of its middle */
function die(y) {
  const dots = [
    [154, y - 6],
    [166, y - 6],
    [160, y],
    [154, y + 6],
    [166, y + 6],
  ];
  return [
    shape("rect", "die", { x: "146", y: `${y - 14}`, width: "28", height: "28", rx: "6" }),
    ...dots.map(([cx, cy]) => shape("circle", "dot", { cx: `${cx}`, cy: `${cy}`, r: "2.2" })),
  ];
}

function sheet() {
  return [
    shape("path", "sheet", { d: "M284 30h28l12 12v40h-40z" }),
    shape("path", "sheet", { d: "M312 30v12h12" }),
    shape("path", "line", { d: "M293 54h22M293 62h22M293 70h14" }),
  ];
}

/** @param {string} tag @param {string} name @param {Record<string, string>} attributes */
function shape(tag, name, attributes) {
  return svgElement(tag, { class: name, ...attributes });
}
