/**
 * One small drawing of the random step: an answer goes through the device and becomes a report.
 */

import { element, svgElement } from "./dom.js";
import { words } from "./words.js";

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
