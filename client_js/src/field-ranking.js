/**
 * The field of a ranking: buttons that place the options one by one and move them.
 */

import { rankedCount } from "./answers.js";
import { button, element, quoted } from "./dom.js";
import { rankingAt } from "./ranking.js";
import { pieces, say } from "./texts.js";

/**
 * @typedef {import("./field.js").Choice} Choice
 * @typedef {import("./field.js").Field} Field
 * @typedef {import("./field.js").FieldContext} FieldContext
 * @typedef {{context: FieldContext, ranked: number, state: HTMLInputElement, list: HTMLElement,
 *   left: HTMLElement, status: HTMLElement, noAnswers: Choice[]}} Parts
 *   `state` contains the options placed so far, so that they survive a change of language
 */

/**
 * Create the field. `choiceRow` creates the rows of the options for no answer.
 *
 * @param {FieldContext} context
 * @param {(context: FieldContext, option: number, type: "radio") => Choice} choiceRow
 * @param {() => HTMLElement} divider
 * @returns {Field}
 */
export function rankingField(context, choiceRow, divider) {
  const { question, answer, onAnswer, onProblem } = context;
  const ranked = rankedCount(question);
  const parts = {
    context,
    ranked,
    state: element("input", { type: "hidden", autocomplete: "off" }),
    list: element("ol", { class: "ranked", tabindex: "-1", "aria-label": say("field.ranked") }),
    left: element("div", { class: "choices" }),
    status: element("p", { class: "rank-status", role: "status" }),
    noAnswers: question.options
      .map((_, option) => option)
      .slice(ranked)
      .map((option) => choiceRow(context, option, "radio")),
  };
  for (const { input, option } of parts.noAnswers) {
    input.checked = answer === option;
    input.addEventListener("change", () => {
      place(parts, []);
      onProblem("");
      onAnswer(option);
    });
  }
  parts.state.addEventListener("input", () => draw(parts));
  place(parts, Array.isArray(answer) ? answer : []);
  const rows = parts.noAnswers.map(({ row }) => row);
  const instead = rows.length > 0 ? [element("div", { class: "choices" }, divider(), ...rows)] : [];
  return {
    content: [parts.state, parts.list, parts.left, parts.status, ...instead],
    hint: [say("field.ranking")],
    get first() {
      return nextFocus(parts);
    },
    entry: null,
    problem: () => {
      const placed = placedOptions(parts).length;
      const isPart = placed > 0 && placed < ranked;
      return isPart ? say("field.rankingLeft", { left: ranked - placed }) : "";
    },
  };
}

/**
 * Return the next option to place, or the list: one press too many must not remove the last option.
 *
 * @param {Parts} parts
 */
function nextFocus({ left, list }) {
  return left.querySelector("button") ?? list;
}

/** Return the options placed so far, from the first place on. @param {Parts} parts */
function placedOptions({ state }) {
  return state.value === "" ? [] : state.value.split(" ").map(Number);
}

/** Store and show the placed options. @param {Parts} parts @param {readonly number[]} options */
function place(parts, options) {
  parts.state.value = options.join(" ");
  draw(parts);
}

/** Store, show and report the placed options. @param {Parts} parts @param {number[]} options */
function change(parts, options) {
  for (const { input } of parts.noAnswers) input.checked = false;
  place(parts, options);
  parts.context.onProblem("");
  parts.context.onAnswer(options.length === parts.ranked ? options : undefined, false, options);
}

/** @param {Parts} parts */
function draw(parts) {
  const placed = placedOptions(parts);
  parts.list.replaceChildren(...placed.map((option, at) => placedRow(parts, option, at)));
  parts.list.hidden = placed.length === 0;
  const left = parts.context.order.filter(
    (option) => option < parts.ranked && !placed.includes(option),
  );
  parts.left.replaceChildren(...left.map((option) => optionButton(parts, option)));
  parts.left.hidden = left.length === 0;
}

/** Create the button that gives an option the next place. @param {Parts} parts @param {number} option */
function optionButton(parts, option) {
  const { definition } = parts.context;
  const press = () => {
    const before = placedOptions(parts);
    const placed = [...before, option];
    const left = rankingAt(parts.ranked, 0).filter((other) => !placed.includes(other));
    // The only option left gets the last place.
    const last = left.length === 1 ? left : [];
    change(parts, [...placed, ...last]);
    announce(parts, [option, ...last], before.length);
    nextFocus(parts).focus();
  };
  const label = quoted(definition, labelOf(parts, option));
  return button(label, press, { class: "rank-option", "data-option": String(option) });
}

/** @param {Parts} parts @param {number} option @param {number} at */
function placedRow(parts, option, at) {
  const { definition } = parts.context;
  const row = element(
    "li",
    { class: "placed" },
    element("span", {}, quoted(definition, labelOf(parts, option))),
    element(
      "div",
      { class: "rank-acts" },
      actButton(parts, option, "field.rankUp", "↑", () => move(parts, option, at, at - 1)),
      actButton(parts, option, "field.rankDown", "↓", () => move(parts, option, at, at + 1)),
      actButton(parts, option, "field.rankRemove", "×", () => remove(parts, option)),
    ),
  );
  const count = placedOptions(parts).length;
  if (at === 0) row.querySelector("button")?.setAttribute("aria-disabled", "true");
  if (at === count - 1) row.querySelectorAll("button")[1].setAttribute("aria-disabled", "true");
  return row;
}

/**
 * @param {Parts} parts
 * @param {number} option
 * @param {"field.rankUp" | "field.rankDown" | "field.rankRemove"} act
 * @param {string} sign
 * @param {() => void} onPress
 */
function actButton(parts, option, act, sign, onPress) {
  const name = say("field.rankAct", { act: say(act), option: labelOf(parts, option) });
  const attributes = { class: "rank-act", "aria-label": name, title: say(act) };
  return button(element("span", { "aria-hidden": "true" }, sign), onPress, attributes);
}

/** @param {Parts} parts @param {number} option @param {number} from @param {number} to */
function move(parts, option, from, to) {
  const placed = placedOptions(parts);
  if (to < 0 || to >= placed.length) return;
  placed.splice(to, 0, ...placed.splice(from, 1));
  change(parts, placed);
  announce(parts, [option], to);
  // The pressed button moved with its row.
  const buttons = parts.list.children[to].querySelectorAll("button");
  buttons[to < from ? 0 : 1].focus();
}

/** @param {Parts} parts @param {number} option */
function remove(parts, option) {
  change(
    parts,
    placedOptions(parts).filter((other) => other !== option),
  );
  parts.status.replaceChildren(say("field.rankRemoved", { option: labelOf(parts, option) }));
  /** @type {HTMLElement | null} */
  const returned = parts.left.querySelector(`[data-option="${option}"]`);
  returned?.focus();
}

/** Tell screen readers the new places of options, the first at `at`. @param {Parts} parts @param {number[]} options @param {number} at */
function announce(parts, options, at) {
  const texts = options.flatMap((of, i) => {
    const option = quoted(parts.context.definition, labelOf(parts, of));
    return [...pieces("field.rankPlaced", { option, place: at + i + 1, of: parts.ranked }), " "];
  });
  parts.status.replaceChildren(...texts);
}

/** @param {Parts} parts @param {number} option */
function labelOf({ context }, option) {
  return context.question.options[option].label;
}
