/**
 * What all views are made of: elements whose texts are only ever text, their stage, the privacy label.
 *
 * Nothing here parses markup, so no survey can smuggle any in.
 */

import {
  boundIn,
  bounds,
  frequencies,
  isProtectedLittle,
  leastProtected,
  namesOptions,
  oddsFactor,
  posteriorBounds,
  questions,
  saysAnswers,
  totalOddsFactor,
} from "./report.js";
import { words } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./report.js").Bound} Bound
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
 * @param {Definition} definition
 * @param {Question} question
 */
export function frequencySentence({ sampling }, question) {
  const { type, channel, options } = question;
  const drawn = sampling !== null;
  if (!namesOptions(question)) return words.label.everyReport;
  const of = frequencies(question);
  const [own, other] = options.map(({ label }) => label);
  if (type === "multiple_choice") return tickSentence(channel, own, of, drawn);
  if (options.length === 2) return words.label.frequencyOfTwo(own, other, of, drawn);
  if (channel.kind === "weight_table") return words.label.frequencyOfRarest(own, of, drawn);
  const several = channel.kind === "subset_selection" && channel.d > 1;
  const named = several ? `${words.label.severalNamed(channel.d)} ` : "";
  return `${named}${words.label.frequencyOfMany(own, of, drawn)}`;
}

/**
 * @param {import("./mechanism.js").Channel} channel
 * @param {string} own
 * @param {{own: string, other: string}} of
 * @param {boolean} drawn
 */
function tickSentence(channel, own, of, drawn) {
  const { frequencyOfTick, frequencyOfSampledTick } = words.label;
  return isSampled(channel)
    ? frequencyOfSampledTick(own, of, drawn, channel)
    : frequencyOfTick(own, of, drawn);
}

/**
 * Whether a report speaks of some of the options only.
 *
 * @param {import("./mechanism.js").Channel} channel
 * @returns {channel is import("./mechanism.js").BitVector}
 */
function isSampled(channel) {
  return channel.kind === "bit_vector" && channel.sampled < channel.m;
}

/**
 * What one report can at most do about an answer.
 *
 * @param {Bound} bound
 */
export function boundSentence(bound) {
  const say = bound.linked ? words.label.linkedBounds : words.label.bounds;
  return say(oddsFactor(bound), posteriorBounds(bound));
}

/**
 * The frequencies of the question that is protected least, introduced by its text.
 *
 * @param {Definition} definition
 */
export function leastProtectedExample(definition) {
  const asked = questions(definition);
  const least = leastProtected(asked);
  const of = bounds(asked);
  const bound = boundIn(of, least.id);
  const alike = [...of.values()].every((one) => oddsFactor(one) === oddsFactor(bound));
  return element(
    "div",
    { class: "example" },
    element("p", { class: "quiet" }, alike ? words.start.example : words.start.least),
    element("p", { class: "asked", ...surveyText(definition) }, least.text),
    element("p", {}, frequencySentence(definition, least)),
    ...(namesOptions(least) && !bound.linked
      ? []
      : [element("p", { class: "bound" }, boundSentence(bound))]),
  );
}

/**
 * A table with one row per question.
 *
 * @param {Definition} definition
 */
export function protectionTable(definition) {
  const { caption, columns } = words.label;
  const asked = questions(definition);
  const of = bounds(asked);
  // The roles are explicit: on narrow screens the rows are laid out as blocks, and browsers then
  // no longer call it a table.
  return element(
    "table",
    { role: "table", class: "protection" },
    element("caption", {}, caption, ...tableNotes(definition, of)),
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
      ...asked.map((question) => protectionRow(definition, question, boundIn(of, question.id))),
    ),
  );
}

/**
 * Under which conditions the numbers of the table hold.
 *
 * @param {Definition} definition
 * @param {Map<string, Bound>} of
 */
function tableNotes(definition, of) {
  const { ofAsked, ofSampled, ofLinked } = words.label;
  const conditions = [
    { note: ofAsked, holds: definition.sampling !== null },
    { note: ofSampled, holds: questions(definition).some(({ channel }) => isSampled(channel)) },
    { note: ofLinked, holds: [...of.values()].some(({ linked }) => linked) },
  ];
  return conditions
    .filter(({ holds }) => holds)
    .map(({ note }) => element("span", { class: "note" }, note));
}

/** @param {Definition} definition @param {Question} question @param {Bound} bound */
function protectionRow(definition, question, bound) {
  const { noShare, percent, columns } = words.label;
  const { own, other } = frequencies(question);
  const share = namesOptions(question) ? words.label.share : () => noShare;
  const { from10, from50 } = posteriorBounds(bound);
  const cells = [share(own), share(other), oddsFactor(bound), percent(from10), percent(from50)];
  return element(
    "tr",
    { role: "row" },
    element("th", { scope: "row", role: "rowheader", ...surveyText(definition) }, question.text),
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

/**
 * What happens to the answers: replaced or not where all reports say answers, else mixed with chance.
 *
 * @param {Definition} definition
 */
export function randomStep(definition) {
  const { start } = words;
  const isReplaced = questions(definition).every(saysAnswers);
  return [
    element("p", {}, isReplaced ? start.steps : start.stepsByChance),
    isReplaced
      ? randomStepDrawing(start.drawing, replacing())
      : randomStepDrawing(start.drawingByChance, mixing()),
  ];
}

/**
 * The figure: strokes in SVG, words in HTML so that they can grow and be translated.
 *
 * @param {string} alternative
 * @param {SVGElement[]} between  what lies between the answer and the report
 */
function randomStepDrawing(alternative, between) {
  const { start } = words;
  return element(
    "figure",
    { class: "random-step" },
    strokes(alternative, between),
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

/** Straight on, the answer itself; the branch below, a random one; then both are one report. */
function replacing() {
  return [
    shape("path", "route", { d: "M82 56H100C118 56 116 32 134 32H186C204 32 202 56 220 56H270" }),
    shape("path", "route random", { d: "M100 56C118 56 116 82 134 82H142" }),
    shape("path", "route random", { d: "M178 82H186C204 82 202 56 220 56" }),
    ...die(82),
  ];
}

/** One way only, and it leads through chance. */
function mixing() {
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
