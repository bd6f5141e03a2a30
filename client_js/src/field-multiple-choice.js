/**
 * Multiple choice: checkboxes, some of which stand alone.
 */

import { element } from "./dom.js";
import { choice, divider } from "./field-choice.js";
import { say } from "./words.js";

/**
 * @typedef {import("./field-choice.js").Choice} Choice
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./field.js").Filled} Filled
 */

/**
 * Ticks; one that stands alone clears all others and is cleared by them.
 *
 * @param {Filled} filled
 * @returns {Field}
 */
export function checkboxes(filled) {
  const { options, alone, max_ticks: most } = filled.question;
  const together = options.length - alone;
  const choices = filled.order.map((option) => choice(filled, option, "checkbox"));
  const ticked = () =>
    options.flatMap((_, option) =>
      choices.some((one) => one.option === option && one.input.checked) ? [option] : [],
    );
  const problem = () => (ticked().length > most ? say("field.tooMany", { most }) : "");
  for (const { input, option } of choices) {
    input.checked = Array.isArray(filled.answer) && filled.answer.includes(option);
    input.addEventListener("change", () => {
      if (input.checked) clearOthers(choices, option, together);
      filled.onProblem(problem());
      const answer = ticked();
      filled.onAnswer(answer.length === 0 || problem() !== "" ? undefined : answer);
    });
  }
  return {
    content: [tickList(choices, together)],
    hint: [most < together ? say("field.upTo", { most }) : say("field.allThatApply")],
    first: choices[0].input,
    entry: null,
    problem,
  };
}

/** @param {Choice[]} choices @param {number} ticked @param {number} together */
function clearOthers(choices, ticked, together) {
  for (const { input, option } of choices) {
    const isApart = ticked >= together || option >= together;
    if (isApart && option !== ticked) input.checked = false;
  }
}

/** @param {Choice[]} choices @param {number} together */
function tickList(choices, together) {
  const rows = choices.map(({ row }) => row);
  const divided = [...rows.slice(0, together), divider(), ...rows.slice(together)];
  return element("div", { class: "choices" }, ...divided);
}
