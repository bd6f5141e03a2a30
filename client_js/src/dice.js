/**
 * "Try the dice": a harmless question that shows what randomization does to one answer and to many.
 *
 * The demonstration draws with the survey's own channel. It stores and sends nothing.
 */

import { isNoAnswer, questions } from "./answers.js";
import { button, disclosure, element, paragraph, quoted } from "./dom.js";
import { perturb } from "./mechanism.js";
import { groupBounds, leastProtected, provesNothing } from "./privacy-loss.js";
import { createUniformBelow } from "./random.js";
import { saysAnswers } from "./report.js";
import { gap, pieces, say } from "./texts.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./dom.js").Child} Child
 * @typedef {import("./mechanism.js").Channel} Channel
 * @typedef {import("./mechanism.js").SubsetSelection} SubsetSelection
 * @typedef {import("./random.js").GetRandomValues} GetRandomValues
 */

const YES = 0;
const PEOPLE = 100;

/**
 * Return the demonstration; [] if no question of the survey sends answers or ticks.
 *
 * @param {Definition} definition
 * @param {GetRandomValues} getRandomValues
 * @returns {HTMLElement[]}
 */
export function diceDemonstration(definition, getRandomValues) {
  const source = demonstrationSource(definition);
  if (source === null) return [];
  const { channel, labels } = source;
  const draw = (/** @type {number} */ answer, /** @type {number} */ people) => {
    const uniformBelow = createUniformBelow(getRandomValues);
    const reports = Array.from({ length: people }, () => perturb(channel, answer, uniformBelow));
    uniformBelow.wipe();
    return reports.map(Number);
  };
  return [
    disclosure(say("dice.heading"), ...demonstration(draw, labels, provesNothing(definition))),
  ];
}

/**
 * Return the channel of the least protected question with two answers, with the labels of the
 * demonstration's two answers and of the options for no answer. Without such a question, return a
 * yes/no channel with the weights of the least protected question that sends answers or ticks.
 *
 * @param {Definition} definition
 * @returns {{channel: SubsetSelection, labels: Child[]} | null}
 */
function demonstrationSource(definition) {
  const all = questions(definition).filter((one) => saysAnswers(one) || isTicks(one.channel));
  const binary = all.filter((question) => saysAnswers(question) && isBinary(question));
  const candidates = binary.length > 0 ? binary : all;
  if (candidates.length === 0) return null;
  const { question: weakest } = leastProtected(groupBounds(candidates.map((one) => [one])));
  const channel = /** @type {SubsetSelection} */ (weakest.channel);
  const labels = [say("dice.yes"), say("dice.no")];
  const optOuts = weakest.options
    .slice(labels.length)
    .map(({ label }) => quoted(definition, label));
  if (binary.length > 0) return { channel, labels: [...labels, ...optOuts] };
  const { T, L } = channel;
  return { channel: { kind: "subset_selection", k: labels.length, d: 1, T, L }, labels };
}

/** Whether a question has two answers, apart from options for no answer. @param {Question} question */
function isBinary(question) {
  return question.options.filter((_, option) => !isNoAnswer(question, option)).length === 2;
}

/** @param {Channel} channel */
function isTicks(channel) {
  return channel.kind === "bit_vector";
}

/**
 * @param {(answer: number, people: number) => number[]} draw  the lines of people with one answer
 * @param {Child[]} labels  the two answers and options for no answer
 * @param {boolean} isStrong
 */
function demonstration(draw, labels, isStrong) {
  /** For each answer, how many of 100 people send "Yes". @type {(number | null)[]} */
  const counts = [null, null];
  let chosen = YES;
  const status = element("div", { role: "status" });
  const hundred = button(say("dice.hundred"), showHundred, { class: "button second", hidden: "" });
  const choices = labels
    .slice(0, counts.length)
    .map((label, answer) =>
      button(label, () => choose(answer), { class: "button second", "aria-pressed": "false" }),
    );

  function choose(/** @type {number} */ answer) {
    chosen = answer;
    for (const [i, choice] of choices.entries()) {
      choice.setAttribute("aria-pressed", String(i === answer));
    }
    const [sent] = draw(answer, 1);
    status.replaceChildren(
      element("p", {}, ...pieces("dice.said", { own: labels[answer], sent: labels[sent] })),
      paragraph(say("dice.once"), "quiet"),
    );
    hundred.hidden = false;
  }

  function showHundred() {
    const reports = draw(chosen, PEOPLE);
    const nYes = reports.filter((report) => report === YES).length;
    counts[chosen] = nYes;
    status.replaceChildren(...counts.flatMap(lines), ...comparison());
  }

  /** Count the lines of people with one answer, in words and as dots. @param {number | null} nYes @param {number} answer */
  function lines(nYes, answer) {
    if (nYes === null) return [];
    const values = { own: labels[answer], yes: nYes, answer: labels[YES] };
    const dots = Array.from({ length: PEOPLE }, (_, person) =>
      element("i", person < nYes ? { class: "yes" } : {}),
    );
    return [
      element("p", {}, ...pieces("dice.lines", values)),
      element("div", { class: "dots", "aria-hidden": "true" }, ...dots),
    ];
  }

  function comparison() {
    const [yes, no] = counts;
    if (yes === null || no === null) return [paragraph(say("dice.other"))];
    const who = pieces("dice.who", { answer: labels[YES], yes, no });
    const promise = isStrong ? [gap(), say("start.noProof")] : [];
    return [element("p", {}, ...who, ...promise)];
  }

  return [
    element("p", {}, element("b", {}, say("dice.question"))),
    paragraph(say("dice.kept"), "quiet"),
    element("div", { class: "pair" }, ...choices),
    status,
    hundred,
  ];
}
