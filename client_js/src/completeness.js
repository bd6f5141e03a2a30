/**
 * Which questions of a page still want an answer before it can be left: asked once, never twice.
 */

/**
 * @typedef {import("./definition.js").Question} Question
 * @typedef {{question: Question, optOut: string}} Gap  an unanswered question; `optOut` is the label
 *   of the option it will count as, "" when it must be answered
 */

/**
 * The gaps that stop "Continue" now. A question with an opt-out stops it the first time only.
 *
 * @param {readonly Question[]} asked  the page's questions
 * @param {import("./report.js").Answers} answers
 * @param {Set<string>} nudged  ids of questions already asked for; grows
 * @returns {Gap[]}
 */
export function stoppingGaps(asked, answers, nudged) {
  const gaps = asked
    .filter(({ id }) => !Object.keys(answers).includes(id))
    .map((question) => ({ question, optOut: optOutLabel(question) }))
    .filter(({ question, optOut }) => optOut === "" || !nudged.has(question.id));
  for (const { question } of gaps) nudged.add(question.id);
  return gaps;
}

/**
 * The label of the option an untouched question becomes, "" when it has none.
 *
 * @param {Question} question
 */
export function optOutLabel(question) {
  return question.options.find((option) => option.id === question.opt_out)?.label ?? "";
}
