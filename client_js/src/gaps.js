/**
 * Says what is missing on a page, on top and beside each field; the list on top takes focus.
 */

import { button, element } from "./dom.js";
import { words } from "./words.js";

/**
 * @typedef {import("./completeness.js").Gap} Gap
 * @typedef {import("./form.js").Fieldset} Fieldset
 */

/**
 * @param {HTMLElement} content
 * @param {Fieldset[]} fieldsets
 * @param {Gap[]} gaps
 */
export function showGaps(content, fieldsets, gaps) {
  if (!content.isConnected) return;
  content.querySelector(".error-summary")?.remove();
  const found = fieldsets.map((one) => ({
    one,
    gap: gaps.find(({ question }) => question === one.question),
  }));
  for (const { one, gap } of found) one.showError(gap ? besideField(gap) : "");
  const items = found.flatMap(({ one, gap }) => (gap ? [summaryItem(one, gap)] : []));
  const summary = errorSummary(gaps, items);
  content.querySelector(".top")?.after(summary);
  summary.focus();
}

/** @param {Gap} gap */
function besideField({ optOut }) {
  return optOut === "" ? words.question.missingHere : words.question.nudgeHere(optOut);
}

/** @param {Fieldset} one @param {Gap} gap */
function summaryItem(one, { question, optOut }) {
  const { missing, nudge } = words.question;
  const text = optOut === "" ? missing(question.text) : nudge(question.text, optOut);
  // A button, not a link: following "#..." would overwrite the fragment that names the definition.
  return element(
    "li",
    {},
    button(text, () => one.first.focus(), { class: "link" }),
  );
}

/** @param {Gap[]} gaps @param {HTMLElement[]} items */
function errorSummary(gaps, items) {
  const { errorHeading, nudgeHeading } = words.question;
  const title = gaps.some(({ optOut }) => optOut === "") ? errorHeading : nudgeHeading;
  return element(
    "div",
    { class: "error-summary", role: "group", tabindex: "-1", "aria-labelledby": "error-title" },
    element("h2", { id: "error-title" }, title),
    element("ul", {}, ...items),
  );
}
