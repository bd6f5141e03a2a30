/**
 * What all views are made of: elements whose texts are only ever text, their stage, the privacy label.
 *
 * Nothing here parses markup, so no survey can smuggle any in.
 */

import {
  frequencies,
  isProtectedLittle,
  leastProtected,
  namesOptions,
  oddsFactor,
  posteriorBounds,
  questions,
  totalOddsFactor,
} from "./report.js";
import { words } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {Record<string, string>} Attributes
 * @typedef {Node | string} Child
 * @typedef {{content: HTMLElement, title: string, focus?: HTMLElement}} View
 *   `focus` is where reading goes on; without it, the view's heading
 */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * @param {string} tag
 * @param {Attributes} attributes
 * @param {...Node} children
 */
export function svgElement(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * The heading of a view; it takes focus when the view is shown.
 *
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function heading(text, attributes = {}) {
  return element("h1", { tabindex: "-1", ...attributes }, text);
}

/**
 * A text with blank lines as paragraphs.
 *
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function paragraphs(text, attributes = {}) {
  return text
    .split(/\n[^\S\n]*\n/)
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => element("p", attributes, part));
}

/**
 * @param {string} text  says what the button does
 * @param {() => void} onPress
 * @param {Attributes} [attributes]
 */
export function button(text, onPress, attributes = {}) {
  const made = element("button", { type: "button", class: "button", ...attributes }, text);
  made.addEventListener("click", onPress);
  return made;
}

/**
 * @param {Child} summary
 * @param {...Child} children
 */
export function disclosure(summary, ...children) {
  return element(
    "details",
    {},
    element("summary", {}, summary),
    element("div", { class: "details-body" }, ...children),
  );
}

/**
 * The attributes of texts the researcher wrote: their language, their own direction.
 *
 * @param {{language: string} | null} definition
 * @returns {Attributes}
 */
export function surveyText(definition) {
  return definition ? { lang: definition.language, dir: "auto" } : {};
}

/**
 * The one place views appear: each replaces the last, names the document and takes focus.
 *
 * @param {HTMLElement} main
 */
export function createStage(main) {
  return {
    /** @param {View} view */
    show({ content, title, focus }) {
      main.replaceChildren(content);
      document.title = title;
      const target = focus ?? content.querySelector("h1");
      window.scrollTo(0, 0);
      target?.focus({ preventScroll: focus === undefined });
    },
    clear() {
      main.replaceChildren();
    },
  };
}

/** @typedef {ReturnType<typeof createStage>} Stage */

/**
 * Natural frequencies of one question, for its first option; reports that name none need other words.
 *
 * @param {Question} question
 */
export function frequencySentence(question) {
  const { type, channel, options } = question;
  if (!namesOptions(question)) return words.label.everyReport;
  const of = frequencies(question);
  const [own, other] = options.map(({ label }) => label);
  if (type === "multiple_choice") return tickSentence(channel, own, of);
  if (options.length === 2) return words.label.frequencyOfTwo(own, other, of);
  if (channel.kind === "weight_table") return words.label.frequencyOfRarest(own, of);
  const several = channel.kind === "subset_selection" && channel.d > 1;
  const named = several ? `${words.label.severalNamed(channel.d)} ` : "";
  return `${named}${words.label.frequencyOfMany(own, of)}`;
}

/**
 * @param {import("./mechanism.js").Channel} channel
 * @param {string} own
 * @param {{own: string, other: string}} of
 */
function tickSentence(channel, own, of) {
  const isSampled = channel.kind === "bit_vector" && channel.sampled < channel.m;
  const { frequencyOfTick, frequencyOfSampledTick } = words.label;
  return isSampled ? frequencyOfSampledTick(own, of, channel) : frequencyOfTick(own, of);
}

/**
 * What one report of a question can at most do.
 *
 * @param {Question} question
 */
export function boundSentence({ channel }) {
  return words.label.bounds(oddsFactor(channel), posteriorBounds(channel));
}

/**
 * The frequencies of the question that is protected least, introduced by its text.
 *
 * @param {Definition} definition
 */
export function leastProtectedExample(definition) {
  const asked = questions(definition);
  const least = leastProtected(asked);
  const alike = asked.every(({ channel }) => oddsFactor(channel) === oddsFactor(least.channel));
  return element(
    "div",
    { class: "example" },
    element("p", { class: "quiet" }, alike ? words.start.example : words.start.least),
    element("p", { class: "asked", ...surveyText(definition) }, least.text),
    element("p", {}, frequencySentence(least)),
    ...(namesOptions(least) ? [] : [element("p", {}, boundSentence(least))]),
  );
}

/**
 * A table with one row per question.
 *
 * @param {Definition} definition
 */
export function protectionTable(definition) {
  const { caption, columns } = words.label;
  // The roles are explicit: on narrow screens the rows are laid out as blocks, and browsers then
  // no longer call it a table.
  return element(
    "table",
    { role: "table", class: "protection" },
    element("caption", {}, caption),
    element(
      "thead",
      { role: "rowgroup" },
      element(
        "tr",
        { role: "row" },
        ...columns.map((text) => element("th", { scope: "col", role: "columnheader" }, text)),
      ),
    ),
    element(
      "tbody",
      { role: "rowgroup" },
      ...questions(definition).map((question) => protectionRow(definition, question)),
    ),
  );
}

/** @param {Definition} definition @param {Question} question */
function protectionRow(definition, question) {
  const { text, channel } = question;
  const { noShare, percent, columns } = words.label;
  const { own, other } = frequencies(question);
  const share = namesOptions(question) ? words.label.share : () => noShare;
  const { from10, from50 } = posteriorBounds(channel);
  const cells = [share(own), share(other), oddsFactor(channel), percent(from10), percent(from50)];
  return element(
    "tr",
    { role: "row" },
    element("th", { scope: "row", role: "rowheader", ...surveyText(definition) }, text),
    ...cells.map((cell, i) =>
      element(
        "td",
        {
          role: "cell",
          "data-label": columns[i + 1],
          ...(cell === noShare ? { class: "bare" } : {}),
        },
        element("span", {}, cell),
      ),
    ),
  );
}

/**
 * What all answers give away together, with a warning when that is much.
 *
 * @param {Definition} definition
 */
export function togetherNote(definition) {
  return element("p", {}, words.label.together(totalOddsFactor(definition)));
}

/**
 * The warning for surveys whose answers together are protected little; none for others.
 *
 * @param {Definition} definition
 * @returns {HTMLElement[]}
 */
export function littleWarning(definition) {
  if (!isProtectedLittle(definition)) return [];
  const { little, littleMeans } = words.label;
  return [element("p", { class: "notice" }, element("strong", {}, little), ` ${littleMeans}`)];
}

/**
 * What is not protected, and the two fingerprints by which to check the page.
 *
 * @param {Definition} definition
 * @param {string} clientHash
 */
export function openSides(definition, clientHash) {
  const { openHeading, open, definition: text, code } = words.label;
  return element(
    "section",
    {},
    element("h3", {}, openHeading),
    element("ul", {}, ...open.map((side) => element("li", {}, side))),
    element(
      "dl",
      { class: "fingerprints" },
      ...fingerprint(text, definition.id),
      ...fingerprint(code, clientHash),
    ),
  );
}

/** @param {string} name @param {string} hash */
function fingerprint(name, hash) {
  return [element("dt", {}, name), element("dd", {}, element("code", {}, hash))];
}

/** The figure: strokes in SVG, words in HTML so that they can grow and be translated. */
export function randomStepDrawing() {
  const { start } = words;
  return element(
    "figure",
    { class: "random-step" },
    strokes(start.drawing),
    element(
      "figcaption",
      { "aria-hidden": "true" },
      caption(start.drawingTruth, start.drawingDevice),
      caption(start.drawingStep, start.drawingDevice),
      caption(start.drawingReport, start.drawingSent),
    ),
  );
}

/** @param {string} what @param {string} where */
function caption(what, where) {
  return element("span", {}, element("b", {}, what), " ", element("span", {}, where));
}

/** @param {string} alternative */
function strokes(alternative) {
  return svgElement(
    "svg",
    { viewBox: "0 0 360 112", role: "img", "aria-label": alternative, focusable: "false" },
    shape("rect", "device", { x: "4", y: "4", width: "236", height: "104", rx: "14" }),
    shape("circle", "truth", { cx: "60", cy: "56", r: "15" }),
    shape("path", "tick", { d: "M53 56.5l5 5 9.5-10" }),
    ...routes(),
    ...die(),
    ...sheet(),
  );
}

/** Straight on, the answer itself; the branch below, a random one; then both are one report. */
function routes() {
  return [
    shape("path", "route", { d: "M82 56H100C118 56 116 32 134 32H186C204 32 202 56 220 56H270" }),
    shape("path", "route random", { d: "M100 56C118 56 116 82 134 82H142" }),
    shape("path", "route random", { d: "M178 82H186C204 82 202 56 220 56" }),
    shape("path", "route", { d: "M264 49l8 7-8 7" }),
  ];
}

function die() {
  const dots = [
    ["154", "76"],
    ["166", "76"],
    ["160", "82"],
    ["154", "88"],
    ["166", "88"],
  ];
  return [
    shape("rect", "die", { x: "146", y: "68", width: "28", height: "28", rx: "6" }),
    ...dots.map(([cx, cy]) => shape("circle", "dot", { cx, cy, r: "2.2" })),
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

/** Who asks, where the researcher says so. @param {Definition} definition */
export function contact(definition) {
  if (definition.contact.trim() === "") return [];
  return [
    element(
      "section",
      { class: "contact" },
      element("h2", {}, words.start.contact),
      ...paragraphs(definition.contact, surveyText(definition)),
    ),
  ];
}
