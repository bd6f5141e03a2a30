/**
 * The drawing of the dice between the answer and the line that is sent.
 */

import { element, svgElement } from "./dom.js";
import { provesNothing } from "./privacy-loss.js";
import { saysAnswers } from "./report-reader.js";
import { questions } from "./sampling.js";
import { say } from "./texts.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 */

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
