/**
 * The start page: what the survey is and, before any question, who could learn what.
 */

import { button, disclosure, element, heading, paragraphs, surveyText } from "./dom.js";
import { randomStepDrawing } from "./drawing.js";
import {
  leastProtectedExample,
  littleWarning,
  openSides,
  protectionTable,
  togetherNote,
} from "./privacy.js";
import { questions } from "./report.js";
import { words } from "./words.js";

/**
 * @param {object} of
 * @param {import("./definition.js").Definition} of.definition
 * @param {string} of.clientHash
 * @param {() => void} of.onStart
 * @returns {import("./stage.js").View}
 */
export function startView({ definition, clientHash, onStart }) {
  const spoken = surveyText(definition);
  const content = element(
    "div",
    { class: "view start" },
    heading(definition.title, spoken),
    element("div", { class: "lead" }, ...paragraphs(definition.introduction, spoken)),
    element("p", { class: "quiet" }, extent(definition)),
    privacyLabel(definition, clientHash),
    element("p", {}, words.start.sendOnce),
    element("p", {}, words.start.forgotten),
    button(words.start.button, onStart),
    ...contact(definition),
  );
  return { content, title: definition.title };
}

/** @param {import("./definition.js").Definition} definition */
function extent(definition) {
  return words.start.extent(questions(definition).length, definition.pages.length);
}

/** @param {import("./definition.js").Definition} definition @param {string} clientHash */
function privacyLabel(definition, clientHash) {
  const { start } = words;
  return element(
    "section",
    { class: "privacy", "aria-labelledby": "privacy-heading" },
    element("h2", { id: "privacy-heading" }, start.heading),
    element("p", {}, start.steps),
    randomStepDrawing(),
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

/** @param {import("./definition.js").Definition} definition */
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
