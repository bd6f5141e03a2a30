/**
 * What a SurveyJS form may not contain, because it would send, store or add answers without the adapter.
 */

/** Why these properties are refused, wherever they are set. @type {Record<string, string>} */
const REFUSED = {
  cookieName: "a cookie would show that this person has answered",
  surveyId: "the form would come from a service",
  surveyPostId: "a service would get the true answers",
  partialSendEnabled: "the true answers of each page would be sent",
  navigateToUrl: "the page must stay open until the server has the report",
  navigateToUrlOnCondition: "the address would depend on the true answers",
  completedHtmlOnCondition: "the page after the last question would depend on the true answers",
  triggers: "triggers change answers or end the form early",
  calculatedValues: "calculated values would keep the true answers",
  bindings: "an answer would change another question",
  defaultValue: "an answer that is given in advance would be reported",
  defaultValueExpression: "an answer that is given in advance would be reported",
  showOtherItem: "free text cannot be randomized",
  showCommentArea: "free text cannot be randomized",
  allowCustomChoices: "free text cannot be randomized",
  choicesByUrl: "its options come from elsewhere",
  choicesFromQuestion: "its options come from elsewhere",
  choicesLazyLoadEnabled: "its options come from elsewhere",
  choicesVisibleIf: "the definition always has all options",
  rowsVisibleIf: "the definition always has all rows",
  columnsVisibleIf: "the definition always has all columns",
  selectToRankEnabled: "all options must be ranked",
  valueName: "answers are stored under the names of the questions",
  valuePropertyName: "answers are stored as plain values",
};

/** Expressions that neither change answers nor hide what the definition asks of everybody. */
const EXPRESSIONS = ["visibleIf", "requiredIf"];

/** Properties that hold markup or addresses; with a placeholder, a request could contain an answer. */
const MARKUP = ["html", "completedHtml", "loadingHtml", "imageLink", "logo", "backgroundImage"];

/** Properties of forms whose parts are options, rows or columns. */
const ITEMS = ["choices", "rows", "columns", "rateValues"];

/** Why a form whose host listens to these events is refused. */
const EVENTS = /** @type {const} */ ([
  ["onCompleting", "gets the true answers before they are randomized"],
  ["onPartialSend", "gets the true answers of each page"],
  ["onServerValidateQuestions", "sends the true answers to a server"],
]);

/**
 * Return what a form may not contain, as "element: property: reason".
 *
 * @param {import("./surveyjs.js").SurveyModel} model
 * @returns {string[]}
 */
export function refusedSettings(model) {
  const events = EVENTS.filter(([name]) => !model[name].isEmpty).map(
    ([name, reason]) => `survey: a handler of ${name} ${reason}`,
  );
  const hasAnswers = Object.keys(model.data).length > 0;
  const data = hasAnswers ? ["survey: the form has answers before anybody has seen it"] : [];
  return [...events, ...data, ...refusedProperties(model.toJSON(), "survey", "")];
}

/**
 * @param {any} part  of the form as JSON
 * @param {string} place  the name of the nearest element
 * @param {string} within  the property that contains the part
 * @returns {string[]}
 */
function refusedProperties(part, place, within) {
  if (typeof part !== "object" || part === null) return [];
  if (Array.isArray(part)) return part.flatMap((one) => refusedProperties(one, place, within));
  const name = typeof part.name === "string" ? part.name : place;
  return Object.entries(part).flatMap(([key, value]) => [
    ...reasons(key, value, within).map((reason) => `${name}: ${key}: ${reason}`),
    ...refusedProperties(value, name, key),
  ]);
}

/** @param {string} key @param {unknown} value @param {string} within */
function reasons(key, value, within) {
  if (Object.keys(REFUSED).includes(key)) return [REFUSED[key]];
  const isOfItem = ITEMS.includes(within);
  if (isOfItem && key === "elements") return ["an option cannot contain questions"];
  if (isOfItem && key === "visibleIf") return ["the definition always has all options"];
  if (/(If|Expression)$/.test(key) && !EXPRESSIONS.includes(key)) {
    return ["the form itself would change answers, or who can give them"];
  }
  const hasPlaceholder = MARKUP.includes(key) && texts(value).some((text) => text.includes("{"));
  return hasPlaceholder ? ["a placeholder could put an answer into a request"] : [];
}

/** Return the texts of a property in all languages. @param {unknown} value @returns {string[]} */
function texts(value) {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(texts) : [];
}
