/**
 * Multiple choice: checkboxes, some of which exclude all others.
 */

import { element } from "./dom.js";
import { choiceRow, divider } from "./field-choice.js";
import { say } from "./texts.js";

/**
 * @typedef {import("./field-choice.js").Choice} Choice
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./field.js").FieldContext} FieldContext
 */

/**
 * Create checkboxes. An exclusive option clears all others and is cleared by them.
 *
 * @param {FieldContext} context
 * @returns {Field}
 */
export function checkboxes(context) {
  const { options, alone, max_ticks: max } = context.question;
  const together = options.length - alone;
  const choices = context.order.map((option) => choiceRow(context, option, "checkbox"));
  const ticked = () =>
    options.flatMap((_, option) =>
      choices.some((choice) => choice.option === option && choice.input.checked) ? [option] : [],
    );
  const problem = () => (ticked().length > max ? say("field.tooMany", { most: max }) : "");
  for (const { input, option } of choices) {
    input.checked = Array.isArray(context.answer) && context.answer.includes(option);
    input.addEventListener("change", () => {
      if (input.checked) clearOthers(choices, option, together);
      context.onProblem(problem());
      const answer = ticked();
      context.onAnswer(answer.length === 0 || problem() !== "" ? undefined : answer);
    });
  }
  return {
    content: [tickList(choices, together)],
    hint: [max < together ? say("field.upTo", { most: max }) : say("field.allThatApply")],
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
