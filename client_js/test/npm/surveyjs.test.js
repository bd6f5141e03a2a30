/** The adapter with the real survey-core: which forms it refuses, and the answers that it reads. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Model } from "survey-core";
import { AlreadyAnsweredError, privatize, UnsuitableFormError } from "../../npm/surveyjs.js";
import { createOutbox } from "../../src/outbox.js";
import {
  amount,
  bits,
  channel,
  definitionWithId,
  matrixRows,
  question,
  table,
} from "../support.js";

const labelled = (...ids) => ids.map((id) => ({ id, label: id }));
const GRID = table({ name: "window", k: 5, width: 1, stride: 1, T: 3, L: 1 }, 1);

/** Every type, each with an option for no answer but `area`. */
const DEFINITION = definitionWithId([
  question("hurt", channel(3, 3, 1), {
    type: "yes_no",
    options: labelled("yes", "no", "none"),
    optOut: "none",
  }),
  question("area", channel(2, 3, 1), { options: labelled("north_west", "o2"), optOut: "" }),
  question("ticks", bits(5, 3, 1, { alone: 2, s: 2 }), {
    options: labelled("a", "b", "c", "none_of_these", "prefer_not_to_say"),
    optOut: "prefer_not_to_say",
  }),
  ...matrixRows(["a", "b"], {
    options: labelled("value_1", "value_2", "value_3", "prefer_not_to_say"),
    opt_out: "prefer_not_to_say",
  }),
  amount("hours", GRID, { grid: { step: 5, decimals: 1 } }),
  amount("day", GRID, { type: "date", grid: { low: 19_723, unit: "" } }),
  question("why", channel(4, 3, 1), {
    options: labelled("pay", "time", "does_not_apply", "prefer_not_to_say"),
    optOut: "prefer_not_to_say",
    not_applicable: "does_not_apply",
    ask_if: { question: "hurt", options: ["yes"] },
  }),
]);

const ELEMENTS = {
  hurt: { type: "boolean" },
  area: { type: "dropdown", choices: ["North-West", 2] },
  ticks: { type: "checkbox", choices: ["a", "b", "c"], showNoneItem: true, maxSelectedChoices: 2 },
  m: { type: "matrix", columns: [1, 2, 3], rows: ["a", "b"] },
  hours: { type: "text", inputType: "number", min: 0, max: 2, step: 0.5 },
  day: { type: "text", inputType: "date", min: "2024-01-01", max: "2024-01-05" },
  why: { type: "radiogroup", choices: ["pay", "time"], visibleIf: "{hurt} = true" },
};

/** A form with some elements changed, or removed by null. */
function formWith(changes = {}, settings = {}) {
  const elements = Object.entries({ ...ELEMENTS, ...changes })
    .filter(([, element]) => element !== null)
    .map(([name, element]) => ({ name, ...element }));
  return new Model({ autoFocusFirstError: false, ...settings, elements });
}

function surveyWith(changes = {}) {
  const submitted = [];
  const submit = (answers) => {
    submitted.push({ ...answers });
    return Promise.resolve({ state: "sent" });
  };
  const outbox = createOutbox(null, "slug");
  return { definition: DEFINITION, drawn: null, outbox, submit, submitted, ...changes };
}

function mistakesOf(model) {
  try {
    privatize(model, surveyWith());
    return [];
  } catch (error) {
    assert.ok(error instanceof UnsuitableFormError, error);
    return error.mistakes;
  }
}

/** Complete a form with these data; return the answers that were submitted, if any. */
function answersTo(data) {
  const model = formWith();
  const survey = surveyWith();
  privatize(model, survey);
  for (const [name, value] of Object.entries(data)) model.setValue(name, value);
  const isCompleted = model.doComplete();
  assert.equal(isCompleted, survey.submitted.length === 1);
  assert.deepEqual(isCompleted ? model.data : {}, {});
  return survey.submitted[0];
}

test("a form that matches is accepted", () => {
  assert.deepEqual(mistakesOf(formWith()), []);
});

const ELSEWHERE = { url: "https://other.example/{hurt}" };
const REFUSED = {
  "free text": [{ more: { type: "comment" } }, "more: free text cannot be randomized"],
  "a text field": [{ more: { type: "text" } }, "more: free text cannot be randomized"],
  "a file": [{ more: { type: "file" } }, "more: files cannot be randomized"],
  "another question": [
    { more: { type: "boolean" } },
    "more: the definition has no question of this name",
  ],
  "a missing question": [{ area: null }, 'the form lacks the question "area"'],
  "a missing option": [
    { area: { type: "dropdown", choices: [2] } },
    'area: the form lacks the option "north_west"',
  ],
  "another option": [
    { area: { type: "dropdown", choices: ["North-West", 2, 3] } },
    'area: the definition has no option for the value "3"',
  ],
  "one option twice": [
    { area: { type: "dropdown", choices: ["North-West", "north west", 2] } },
    'area: two values belong to the option "north_west"',
  ],
  "another type": [
    { hours: { type: "rating" } },
    "hours: must be of the type text, number or slider, single (found rating)",
  ],
  "a range that people answer by passing it": [
    { hours: { ...ELEMENTS.hours, inputType: "range" } },
    "hours: must be of the type text, number or slider, single (found text, range)",
  ],
  "another range": [
    { hours: { ...ELEMENTS.hours, max: 3 } },
    "hours: min and max must be those of the definition (found 0 and 3)",
  ],
  "dates without an end": [
    { day: { type: "text", inputType: "date", min: "2024-01-01" } },
    "day: min and max must be those of the definition (found 2024-01-01 and undefined)",
  ],
  "more ticks": [
    { ticks: { ...ELEMENTS.ticks, maxSelectedChoices: 3 } },
    "ticks: maxSelectedChoices must be 2 or less (found 3)",
  ],
  "an option that does not exclude others": [
    {
      ticks: { ...ELEMENTS.ticks, showNoneItem: false, choices: ["a", "b", "c", "none_of_these"] },
    },
    'ticks: the option "none_of_these" must exclude all others',
  ],
  "another condition": [
    { why: { ...ELEMENTS.why, visibleIf: "{hurt} = false" } },
    'why: the definition asks this if the answer to "hurt" is "yes"',
  ],
  "no condition": [
    { why: { type: "radiogroup", choices: ["pay", "time"] } },
    'why: the definition does not ask this if the answer to "hurt" is "no"',
  ],
  "a condition that the definition lacks": [
    { area: { ...ELEMENTS.area, visibleIf: "{hurt} != true" } },
    "area: the definition asks everybody this question",
  ],
  "free text beside an option": [
    { area: { ...ELEMENTS.area, showOtherItem: true } },
    "area: showOtherItem: free text cannot be randomized",
  ],
  "a text below an option": [
    {
      ticks: {
        ...ELEMENTS.ticks,
        choices: [{ value: "a", elements: [{ type: "comment", name: "x" }] }, "b", "c"],
      },
    },
    "ticks: elements: an option cannot contain questions",
  ],
  "an answer in advance": [
    { hurt: { type: "boolean", defaultValue: true } },
    "hurt: defaultValue: an answer that is given in advance would be reported",
  ],
  "options from elsewhere": [
    { area: { type: "dropdown", choices: ["North-West", 2], choicesByUrl: ELSEWHERE } },
    "area: choicesByUrl: its options come from elsewhere",
  ],
  "a picture whose address has an answer": [
    { picture: { type: "image", imageLink: "https://other.example/{hurt}.png" } },
    "picture: imageLink: a placeholder could put an answer into a request",
  ],
};
for (const [what, [changes, mistake]] of Object.entries(REFUSED)) {
  test(`a form is refused for ${what}`, () => {
    const mistakes = mistakesOf(formWith(changes));
    assert.ok(mistakes.includes(mistake), JSON.stringify(mistakes));
  });
}

const LEAKS = {
  cookieName: "answered",
  surveyId: "1",
  surveyPostId: "1",
  sendResultOnPageNext: true,
  navigateToUrl: "https://other.example/{hurt}",
  navigateToUrlOnCondition: [{ expression: "{hurt} = true", url: "https://other.example" }],
  completedHtmlOnCondition: [{ expression: "{hurt} = true", html: "Oh" }],
  completedHtml: "<img src='https://other.example/{hurt}'>",
  triggers: [{ type: "setvalue", expression: "{hurt} = true", setToName: "area", setValue: 2 }],
  calculatedValues: [{ name: "copy", expression: "{hurt}" }],
};

test("a form is refused for every expression that changes answers or who can give them", () => {
  const area = { type: "dropdown", choices: ["North-West", 2] };
  for (const key of ["resetValueIf", "setValueIf", "setValueExpression", "enableIf"]) {
    const mistakes = mistakesOf(formWith({ area: { ...area, [key]: "{hurt} = true" } }));
    assert.deepEqual(mistakes, [
      `area: ${key}: the form itself would change answers, or who can give them`,
    ]);
  }
  assert.deepEqual(mistakesOf(formWith({ area: { ...area, requiredIf: "{hurt} = true" } })), []);
});

test("a form is refused for every setting that would send or keep answers", () => {
  for (const [key, value] of Object.entries(LEAKS)) {
    assert.equal(mistakesOf(formWith({}, { [key]: value })).length, 1, key);
  }
});

test("a form is refused if somebody else listens before the answers are randomized", () => {
  for (const event of ["onCompleting", "onPartialSend", "onServerValidateQuestions"]) {
    const model = formWith();
    model[event].add(() => {});
    assert.match(mistakesOf(model).join(), new RegExp(`a handler of ${event} `));
  }
  const answered = formWith();
  answered.data = { hurt: true };
  assert.match(mistakesOf(answered).join(), /has answers before anybody has seen it/);
});

test("the data of a form become the answers of the definition", () => {
  const data = {
    ...{ hurt: true, area: "North-West", ticks: ["c", "a"], m: { a: 3, b: 1 } },
    ...{ hours: 1.6, day: "2024-01-04", why: "time" },
  };
  assert.deepEqual(answersTo(data), {
    ...{ hurt: 0, area: 0, ticks: [0, 2], m_a: 2, m_b: 0, hours: 3, day: 3, why: 1 },
  });
  const few = { area: 2, ticks: ["none"], m: { b: 2 }, hours: 0.374 };
  assert.deepEqual(answersTo(few), { area: 1, ticks: [3], m_b: 1, hours: 1 });
});

test("a question that nobody can decline stops the form until it has an answer", () => {
  assert.equal(answersTo({ hurt: true }), undefined);
  const model = formWith();
  privatize(model, surveyWith());
  assert.ok(model.getQuestionByName("area").isRequired);
  assert.ok(!model.getQuestionByName("hurt").isRequired);
});

test("an answer that is not allowed stops the form, unless the question is hidden", () => {
  for (const wrong of [{ hours: 2.3 }, { hours: -1 }, { day: "2024-02-01" }, { day: "soon" }]) {
    assert.equal(answersTo({ area: 2, ...wrong }), undefined, JSON.stringify(wrong));
  }
  assert.equal(answersTo({ area: 2, ticks: ["a", "b", "c"] }), undefined);
  assert.equal(answersTo({ area: 2, hurt: true, why: "joy" }), undefined);
  assert.deepEqual(answersTo({ area: 2, hurt: false, why: "joy" }), { area: 1, hurt: 1 });
});

test("handlers of onComplete find no answers, and see the report delivered", async () => {
  const model = formWith();
  const seen = [];
  model.onComplete.add((sender) => seen.push(sender.data));
  const settled = new Promise((resolve) => privatize(model, surveyWith(), { onSettled: resolve }));
  model.setValue("area", 2);
  assert.ok(model.doComplete());
  assert.equal(model.completedState, "saving");
  assert.deepEqual(await settled, { state: "sent" });
  await Promise.resolve();
  assert.equal(model.completedState, "success");
  assert.deepEqual(seen, [{}]);
});

test("the answers are cleared even if no report can be made", () => {
  const model = formWith();
  const submit = () => {
    throw new RangeError();
  };
  privatize(model, surveyWith({ submit }));
  model.setValue("area", 2);
  assert.throws(() => model.doComplete(), RangeError);
  assert.deepEqual(model.data, {});
});

test("questions that this person was not drawn for are hidden", () => {
  const ids = DEFINITION.pages.map(({ questions: [{ id }] }) => id);
  const sampling = { draw: 1, groups: [["area"], ids.filter((id) => id !== "area")] };
  const model = formWith();
  const survey = surveyWith({ definition: { ...DEFINITION, sampling }, drawn: ["area"] });
  privatize(model, survey);
  const shown = model.getAllQuestions(true).map(({ name }) => name);
  assert.deepEqual(shown, ["area"]);
  model.setValue("area", 2);
  assert.ok(model.doComplete());
  assert.deepEqual(survey.submitted, [{ area: 1 }]);
});

test("a device that has answered does not show the form again", () => {
  const survey = surveyWith();
  survey.outbox.store('{"codes":[]}');
  assert.throws(() => privatize(formWith(), survey), AlreadyAnsweredError);
});
