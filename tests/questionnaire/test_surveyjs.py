"""Imports from SurveyJS: what can be randomized arrives, and the rest is named with its reason."""

from __future__ import annotations

import json
import random

import pytest

from survey.errors import DefinitionError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.imports import import_questionnaire, is_definition
from survey.questionnaire.imports.surveyjs import IMPORTED
from survey.questionnaire.validation import check
from survey.settings import Caps
from tests.conftest import REFERENCE_DATA


def imported(*elements, skip_logic=False, **survey):
    form = {"title": "Work", "elements": elements, **survey}
    return import_questionnaire(json.dumps(form).encode(), "s.json", skip_logic=skip_logic)


def questions(questionnaire):
    """Return the questions of the definition, which must have no mistakes."""
    assert questionnaire.check(Caps()).mistakes == ()
    definition = questionnaire.definition(Caps())
    assert freeze(check(definition, Caps()), 1).questions
    return [question for page in definition["pages"] for question in page["questions"]]


def outcomes(questionnaire):
    return {(element.name, element.outcome): element.how for element in questionnaire.elements}


CHOICES = ["item1", {"value": 2, "text": "Two"}, {"value": "item 3", "text": "Three"}]
TYPES = {
    "boolean": ({"type": "boolean"}, {"type": "yes_no"}),
    "radiogroup": ({"type": "radiogroup", "choices": CHOICES}, {"type": "single_choice"}),
    "dropdown": (
        {"type": "dropdown", "choices": CHOICES, "choicesOrder": "random"},
        {"type": "single_choice", "shuffle_options": True},
    ),
    "checkbox": (
        {"type": "checkbox", "choices": CHOICES, "maxSelectedChoices": 2},
        {"type": "multiple_choice", "max_ticks": 2},
    ),
    "tagbox": (
        {
            "type": "tagbox",
            "choices": CHOICES,
            "validators": [{"type": "answercount", "maxCount": 1, "text": "No."}],
        },
        {"type": "multiple_choice", "max_ticks": 1},
    ),
    "rating": (
        {"type": "rating", "rateMin": 0, "rateMax": 10, "minRateDescription": "No"},
        {"type": "scale", "low": 0, "high": 10, "low_label": "No"},
    ),
    "rating of seven points": (
        {"type": "rating", "rateCount": 7},
        {"type": "scale", "low": 1, "high": 7},
    ),
    "rating from 0": ({"type": "rating", "rateMin": 0}, {"type": "scale", "low": 0, "high": 5}),
    "ranking": ({"type": "ranking", "choices": CHOICES}, {"type": "ranking"}),
    "number": (
        {"type": "text", "inputType": "number", "min": 0, "max": 80, "step": 0.5},
        {"type": "number", "low": "0", "high": "80", "step": "0.5"},
    ),
    "range": (
        {"type": "text", "inputType": "range", "min": 0, "max": 10},
        {"type": "number", "slider": True},
    ),
    "slider": (
        {"type": "slider", "min": 0, "max": 10, "step": 2},
        {"type": "number", "slider": True, "low": "0", "high": "10", "step": "2"},
    ),
    "slider with the usual ends": (
        {"type": "slider", "sliderType": "single"},
        {"type": "number", "slider": True, "low": "0", "high": "100"},
    ),
    "date": (
        {"type": "text", "inputType": "date", "min": "2020-01-01", "max": "2020-03-01"},
        {"type": "date", "low": "2020-01-01", "high": "2020-03-01"},
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_an_element_that_can_be_randomized_arrives_whole(name):
    element, expected = TYPES[name]
    questionnaire = imported({"name": "My question", "title": "What?", **element})
    (question,) = questions(questionnaire)
    assert expected.items() <= question.items()
    assert (question["id"], question["text"]) == ("my_question", "What?")
    assert outcomes(questionnaire) == {("My question", "kept"): ""}
    if "choices" in element:
        labels = [option["label"] for option in question["options"]]
        assert labels == ["item1", "Two", "Three"]
        assert [option["id"] for option in question["options"]] == ["item1", "o2", "item_3"]


def test_a_matrix_is_divided_at_its_maximum_of_rows():
    rows = [f"Row {i}" for i in range(25)]
    element = {"type": "matrix", "name": "m", "title": "How?", "columns": ["Bad", "Good"]}
    questionnaire = imported({**element, "rows": rows})
    parts = questions(questionnaire)
    assert [len(part["rows"]) for part in parts] == [12, 11, 2]
    assert [row["text"] for part in parts for row in part["rows"]] == rows
    assert all("divided into 3" in how for how in outcomes(questionnaire).values())
    (single,) = questions(imported({**element, "rows": ["Pay"]}))
    assert (single["type"], single["text"]) == ("scale", "How? Pay")


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ({"type": "comment"}, "free text"),
        ({"type": "text"}, "free text"),
        ({"type": "text", "inputType": "email"}, "free text"),
        ({"type": "text", "inputType": "number", "min": 0}, "lowest and highest"),
        ({"type": "file"}, "files"),
        ({"type": "expression"}, "calculated"),
        ({"type": "paneldynamic"}, "has no questions"),
        ({"type": "something"}, "no counterpart"),
        ({"type": "radiogroup", "choicesByUrl": {"url": "https://x.org"}}, "elsewhere"),
        ({"type": "radiogroup", "choices": ["one"]}, "fewer than two"),
        ({"type": "ranking", "choices": list("abcdefg")}, "3 to 6"),
        ({"type": "rating", "rateMax": 5000}, "points"),
        ({"type": "rating", "rateMin": -(10**30)}, "whole numbers"),
        ({"type": "rating", "rateMin": "1", "rateCount": 3}, "whole numbers"),
        ({"type": "matrix", "columns": ["a"], "rows": ["b"]}, "columns"),
    ],
    ids=str,
)
def test_an_element_that_cannot_be_randomized_is_dropped_with_its_reason(element, words):
    questionnaire = imported({"type": "boolean", "name": "kept"}, {"name": "gone", **element})
    assert len(questions(questionnaire)) == 1
    assert words in outcomes(questionnaire)["gone", "dropped"]


def test_no_property_is_lost_silently():
    element = {"type": "boolean", "name": "q", "isRequired": True, "newThing": [1], "width": "9px"}
    questionnaire = imported(element, triggers=[{"type": "complete"}], newSetting="x")
    dropped = {element.kind: element.how for element in questionnaire.elements if element.how}
    assert dropped == {
        "triggers": "actions would need the true answers",
        "newSetting": "has no counterpart",
        "isRequired": "no question can be required: everybody may decline to answer",
        "newThing": "has no counterpart",
    }


def test_texts_of_panels_and_pages_and_properties_of_options_are_not_lost_silently():
    choices = [{"value": "a", "visibleIf": "{x} = 1"}, {"value": "b", "imageLink": "b.png"}]
    question = {"type": "radiogroup", "name": "q", "choices": choices}
    panel = {"type": "panel", "name": "p", "title": "T", "description": "D", "elements": [question]}
    page = {"name": "first", "title": "Kept", "description": "D", "elements": [panel]}
    questionnaire = import_questionnaire(json.dumps({"pages": [page]}).encode(), "s.json")
    assert questionnaire.definition(Caps())["pages"][0]["title"] == "Kept"
    lost = sorted((element.name, element.kind) for element in questionnaire.elements if element.how)
    panel_texts = [("p", "description"), ("p", "title")]
    assert lost == [("first", "description"), *panel_texts, ("q", "radiogroup")]
    changed = outcomes(questionnaire)["q", "changed"]
    assert "visibleIf" in changed
    assert "pictures" in changed


def test_a_text_that_lacks_the_own_language_is_shown_in_it_and_reported():
    questionnaire = imported({"type": "boolean", "name": "q", "title": {"fr": "Ça va ?"}})
    assert questions(questionnaire)[0]["text"] == {"en": "Ça va ?", "fr": "Ça va ?"}
    assert "lacks English (en)" in outcomes(questionnaire)["q", "changed"]


PARTS = [
    *("", "a", "{q} = 'a'", "<b>é</b>", "x" * 400, "random", "number", "2020-01-01", "\u202e"),
    *(0, 1, -1, 5, 10**30, 0.5, True, False, None, [], {}, ["a", "b", "c"], [{"value": 1}]),
    *({"default": "A", "de": "B"}, [[1]], {"text": {"x": 2}}),
]
KEYS = sorted(IMPORTED | {"isRequired", "validators", "unknown"})


@pytest.mark.web
def test_random_files_are_imported_or_refused_with_a_reason():
    rng = random.Random(7)
    types = [element["type"] for element, _ in TYPES.values()] + ["matrix", "panel", "comment"]
    types += ["multipletext", "paneldynamic", "matrixdynamic"]
    for _ in range(1_500):
        elements = [
            {
                **{key: rng.choice(PARTS) for key in rng.sample(KEYS, 8)},
                "type": rng.choice(types),
            }
            for _ in range(3)
        ]
        try:
            questionnaire = imported(*elements, skip_logic=True)
        except DefinitionError:
            continue
        assert questionnaire.check(Caps()).mistakes or questions(questionnaire)


def test_texts_arrive_in_all_languages_without_markup_and_placeholders():
    title = {"default": "How is <b>{job}</b>?", "pt-br": "Como é?", "zz-top": "?"}
    questionnaire = imported(
        {"type": "boolean", "name": "q", "title": title, "labelTrue": "Good", "labelFalse": "Bad"},
        locale="de",
    )
    (question,) = questions(questionnaire)
    assert question["text"] == {"de": "How is …?", "pt-BR": "Como é?"}
    assert outcomes(questionnaire)["zz-top", "dropped"] == "is no language tag"
    labels = [option["label"] for option in question["options"]]
    assert [label.get("de", label) if isinstance(label, dict) else label for label in labels] == [
        "Good",
        "Bad",
    ]


def test_texts_show_earlier_answers_with_skip_logic_only():
    parts = {"name": "a", "inputType": "number", "min": 0, "max": 9}
    then = {"type": "boolean", "name": "then", "title": "{ job } with {parts.a}, {panel.x}?"}
    elements = [
        {"type": "boolean", "name": "job"},
        {"type": "multipletext", "name": "parts", "items": [parts]},
        {"type": "boolean", "name": "later", "visibleIf": "{job} = true"},
        {**then, "description": "{job} or {later}"},
    ]
    questionnaire = imported(*elements, skip_logic=True)
    question = questions(questionnaire)[-1]
    assert question["text"] == "{job|…} with {parts_a|…}, …?"
    assert question["help"] == "{job|…} or {later|…}"
    changes = [element.how for element in questionnaire.elements if element.name == "then"]
    assert changes == [
        "shows “…” where an earlier answer is missing; {panel.x} is left out of its texts",
        "was moved to a page after the question whose answer it shows",
    ]
    plain = questions(imported(*elements))[-1]
    assert (plain["text"], plain["help"]) == ("… with …, …?", "… or …")


@pytest.mark.reference
def test_what_is_no_tag_of_html_stays_in_a_text():
    title = "If <b class='x'>a<b and c>d</b>; x <s or y> z, <i = 5>, <a&amp;b> <u data-x>"
    (question,) = questions(imported({"type": "boolean", "name": "q", "title": title}))
    assert question["text"] == "If a<b and c>d; x <s or y> z, <i = 5>, <a&b> <u data-x>"


def test_hidden_pages_panels_and_questions_are_dropped_with_all_that_is_in_them():
    yes, hidden = {"type": "boolean", "name": "q"}, {"visible": False}
    questionnaire = imported(
        yes,
        {**yes, "name": "a", **hidden},
        {"type": "panel", "name": "p", **hidden, "elements": [{**yes, "name": "b"}]},
        pages=[{"name": "page", **hidden, "elements": [{**yes, "name": "c"}]}],
    )
    assert [question["id"] for question in questions(questionnaire)] == ["q"]
    dropped = {name: how for (name, outcome), how in outcomes(questionnaire).items() if how}
    assert dropped.keys() == {"a", "p", "b", "page", "c"}
    assert all("is hidden" in how for how in dropped.values())


def test_elements_beside_pages_and_questions_beside_elements_arrive():
    a, b, c = ({"type": "boolean", "name": name} for name in "abc")
    questionnaire = imported(c, pages=[{"elements": [a], "questions": [b]}])
    assert [question["id"] for question in questions(questionnaire)] == ["a", "b", "c"]


def test_an_old_file_that_lists_questions_is_no_definition():
    old = {"pages": [{"questions": [{"type": "boolean", "name": "q"}]}]}
    own = {"pages": [{"questions": [{"type": "yes_no", "id": "q"}]}]}
    assert [is_definition(json.dumps(form).encode(), "a.json") for form in (old, own)] == [
        False,
        True,
    ]


def test_a_long_title_is_not_repeated_in_many_items():
    items = [{"inputType": "number", "min": 0, "max": 9}] * 900
    many = {"type": "multipletext", "name": "m", "title": "t" * 300_000, "items": items}
    questionnaire = imported({"type": "boolean", "name": "q"}, many)
    assert [question["id"] for question in questions(questionnaire)] == ["q"]
    assert "too long" in outcomes(questionnaire)["m", "dropped"]


def test_a_numeric_validator_bounds_a_number_whatever_the_type_of_its_field():
    age = {"type": "numeric", "minValue": 0, "maxValue": 120}
    questionnaire = imported(
        {"type": "text", "name": "a", "validators": [age]},
        {"type": "text", "name": "b", "inputType": "number", "min": 18, "validators": [age]},
        {"type": "text", "name": "c", "inputType": "email", "validators": [age]},
    )
    ends = [(q["type"], q["low"], q["high"]) for q in questions(questionnaire)]
    assert ends == [("number", "0", "120"), ("number", "18", "120")]
    assert outcomes(questionnaire)["a", "changed"] == "asks for whole numbers"
    assert ("b", "kept") in outcomes(questionnaire)
    assert "free text" in outcomes(questionnaire)["c", "dropped"]


def test_questions_within_other_elements_arrive_or_are_named():
    day = {"inputType": "date", "min": "2026-01-01", "max": "2026-12-31"}
    questionnaire = imported(
        {
            "type": "paneldynamic",
            "name": "p",
            "templateElements": [{"type": "boolean", "name": "q"}],
        },
        {
            "type": "multipletext",
            "name": "m",
            "title": "Your work",
            "items": [
                {"name": "n", "inputType": "number", "min": 0, "max": 9, "title": "Hours"},
                {"name": "d", **day},
                {"name": "t"},
            ],
        },
        {"type": "matrixdynamic", "name": "x", "columns": [{"name": "y", "cellType": "text"}, "z"]},
        {"type": "unknown", "name": "u", "elements": [{"type": "boolean", "name": "v"}]},
        {"type": "multipletext", "name": "h", "visible": False, "items": [{"name": "i"}]},
    )
    arrived = {question["id"]: question["type"] for question in questions(questionnaire)}
    assert arrived == {"q": "yes_no", "m_n": "number", "m_d": "date"}
    assert questions(questionnaire)[1]["text"] == "Your work: Hours"
    assert outcomes(questionnaire)["p", "changed"] == "is asked once"
    dropped = {name for name, outcome in outcomes(questionnaire) if outcome == "dropped"}
    assert dropped == {"m.t", "x", "x.y", "x.z", "u", "v", "h", "h.i"}


def test_a_published_example_arrives_except_its_free_texts():
    content = (REFERENCE_DATA / "forms" / "surveyjs_frameworks.json").read_bytes()
    questionnaire = import_questionnaire(content, "surveyjs_frameworks.json", skip_logic=True)
    types = [question["type"] for question in questions(questionnaire)]
    assert types == ["scale", "multiple_choice", "yes_no", "single_choice"]
    dropped = {name for name, outcome in outcomes(questionnaire) if outcome == "dropped"}
    assert {"disappointing-experience", "improvements-required", "email"} <= dropped
    assert all(set(question["text"]) == {"en", "fr"} for question in questions(questionnaire))


FIRST = {"type": "radiogroup", "name": "job", "choices": ["yes", "no", "old"]}
RATING = {"type": "rating", "name": "score", "rateMax": 5}


@pytest.mark.parametrize(
    ("source", "condition", "options"),
    [
        (FIRST, "{job} = 'yes'", ["yes"]),
        (FIRST, "{job} <> 'yes'", ["no", "old"]),
        (FIRST, "{job} anyof ['yes', 'old']", ["yes", "old"]),
        (FIRST, "{job} = 'no' or {job} = 'old'", ["no", "old"]),
        (RATING, "{score} >= 4", ["value_4", "value_5"]),
        ({"type": "boolean", "name": "job"}, "{job} = true", ["yes"]),
    ],
    ids=str,
)
def test_a_condition_on_the_options_of_one_question_is_kept_on_a_later_page(
    source, condition, options
):
    asked = {"type": "boolean", "name": "then", "visibleIf": condition}
    questionnaire = imported(source, asked, skip_logic=True)
    first, second = questions(questionnaire)
    assert second["ask_if"] == {"question": first["id"], "options": options}
    assert len(questionnaire.definition(Caps())["pages"]) == 2
    without = questions(imported(source, asked))
    assert "ask_if" not in without[1]


@pytest.mark.parametrize(
    "condition",
    [
        "{job} = 'yes' and {x} = 1",
        "{later} = 'a'",
        "age({job}) > 3",
        "{job} > 'a'",
        f"{{job}} = 'yes'{' ' * 900_000}x",
    ],
    ids=lambda condition: condition[:30],
)
def test_a_condition_without_a_counterpart_is_dropped_and_everybody_is_asked(condition):
    asked = {"type": "boolean", "name": "then", "visibleIf": condition}
    questionnaire = imported(FIRST, asked, skip_logic=True)
    assert "ask_if" not in questions(questionnaire)[1]
    assert "everybody is asked this" in outcomes(questionnaire)["then", "dropped"]


@pytest.mark.parametrize(
    ("condition", "outcome"),
    [
        ("{job} = ['yes', 'no']", "changed"),
        ("{job} = 'yes'", "changed"),
        ("{job} contains ['yes', 'no']", "changed"),
        ("{job} contains 'yes'", None),
        ("{job} anyof ['yes', 'no']", None),
        ("{job} <> 'yes'", "dropped"),
    ],
)
def test_a_condition_on_several_ticks_that_changes_its_meaning_is_reported(condition, outcome):
    source = {**FIRST, "type": "checkbox"}
    asked = [{"type": "boolean", "name": "then", "visibleIf": condition}]
    pages = [{"elements": [source]}, {"elements": asked}]
    questionnaire = imported(pages=pages, skip_logic=True)
    assert [each.outcome for each in questionnaire.elements if each.kind == "condition"] == [
        *([outcome] if outcome else [])
    ]
    assert ("ask_if" in questions(questionnaire)[1]) == (outcome != "dropped")


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"{}",
        b'{"pages": 7}',
        b'{"pages": [{"elements": [7, {"type": "comment"}]}]}',
        b'{"elements": [{"type": "radiogroup", "choices": 7}]}',
        b'{"elements": [{"type": "rating", "rateMin": {}, "rateValues": 7}]}',
        b'{"elements": [{"type": ["a"], "name": {"x": 1}, "visibleIf": 7}]}',
        b'{"pages": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"elements": [' * 400 + b'{"type": "panel"}' + b"]}" * 400,
        b'{"type": "panel", "elements": [' * 450 + b"]}" * 450,
        b"x" * 1_000_001,
    ],
    ids=lambda content: str(content[:60]),
)
def test_a_file_without_a_questionnaire_is_refused(content):
    with pytest.raises(DefinitionError):
        import_questionnaire(content, "s.json")
