"""Earlier answers in later texts: the published form, and rejected placeholders."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from survey.errors import DefinitionError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.conversion import definition_from, draft_from
from survey.questionnaire.loading import parse, source_of
from survey.questionnaire.validation import check
from survey.settings import Caps
from tests.surveys import MATRIX, PIPED


@pytest.fixture
def raw() -> dict[str, Any]:
    return parse(PIPED.encode(), "piped.toml")


def published(raw: dict[str, Any]) -> Definition:
    return freeze(check(raw, Caps()), 1)


def mistakes(raw: dict[str, Any], text: Any, **changes: Any) -> list[tuple[Any, str]]:
    changed = copy.deepcopy({**raw, **changes})
    changed["pages"][1]["questions"][0]["text"] = text
    return mistakes_of(changed)


def mistakes_of(changed: dict[str, Any]) -> list[tuple[Any, str]]:
    with pytest.raises(DefinitionError) as error:
        check(changed, Caps())
    return [
        (place, text)
        for place, (_, text) in zip(error.value.places, error.value.mistakes, strict=True)
    ]


def test_a_published_text_has_the_words_for_no_answer_and_its_placeholders_apart(raw):
    definition = published(raw)
    travel = definition.questions[2]
    assert travel.text == "How long do you travel to your work {one way}?"
    form = json.loads(definition.canonical)
    question = form["pages"][1]["questions"][0]
    assert question["piped"] == {
        "text": "How long do you travel to {job|your work} {{one way}}?",
        "help": "You work {hours|some hours}.",
    }
    spanish, _ = form["translations"]["es"]["pages"][1]["questions"]
    assert spanish["text"] == "¿Cuánto tarda en llegar a su trabajo?"
    assert spanish["piped"] == {"text": "¿Cuánto tarda en llegar a {job|su trabajo}?", "help": ""}


def test_questions_without_placeholders_are_published_as_before_whatever_their_braces(raw):
    raw["pages"][1]["questions"][0] |= {"text": "Use {{braces}} {a} } or x|y?", "help": ""}
    question = json.loads(published(raw).canonical)["pages"][1]["questions"][0]
    assert question["text"] == "Use {{braces}} {a} } or x|y?"
    assert "piped" not in question


def test_a_published_survey_becomes_a_draft_and_the_same_definition_again(raw):
    definition = published(raw)
    content = draft_from(source_of(definition))
    assert published(definition_from(content)).canonical == definition.canonical


def test_earlier_answers_link_no_questions_in_the_accounting(raw):
    definition = published(raw)
    ratios = {question.id: question.channel.ratio for question in definition.questions}
    assert definition.linked_ratios == ratios


def test_placeholders_that_no_device_could_fill_in_are_refused_with_their_place(raw):
    place = ("pages", 1, "questions", 0, "text")
    cases = (
        ("At {travel|it}?", {}, '"travel" must be a question with one answer, on an earlier page'),
        ("At {tools|it}?", {}, "available: job, hours"),
        ("At {nothing|it}?", {}, '"nothing" must be a question with one answer'),
        ("At {job|it}?", {"allow_skip_logic": False}, "needs allow_skip_logic = true"),
        ("At {job}?", {}, "write {job|your words}"),
        ("At {job| }?", {}, "write {job|your words}"),
        ("At {job|it} {now?", {}, 'has a single "{"'),
        ("At {job|it}?", {"questions_per_person": 1}, "is not always asked with travel"),
        ({"en": "At {job|it}?", "es": "¿En {hours|él}?"}, {}, "the same earlier answers as in en"),
        ({"en": "At {job|it}?", "es": "¿En él?"}, {}, "the same earlier answers as in en: job"),
    )
    for text, changes, expected in cases:
        for question in raw["pages"][0]["questions"]:
            question.setdefault("epsilon", 1)
        found = mistakes(raw, text, **changes)
        at = (*place, "es") if isinstance(text, dict) else place
        assert any(at == where and expected in what for where, what in found), (text, found)
    together = [{"questions": ["job", "hours", "travel"]}]
    published({**raw, "questions_per_person": 1, "together": together})


def test_placeholders_in_texts_that_no_device_fills_in_are_refused_with_their_place(raw):
    matrix = parse(MATRIX.encode(), "matrix.toml")["pages"][0]["questions"][0]
    raw["pages"][1]["questions"][1] = matrix
    first, second = ("pages", 0, "questions"), ("pages", 1, "questions")
    places = (
        (*first, 0, "options", 1, "label"),
        (*first, 0, "prefer_not_to_say"),
        (*first, 0, "topic"),
        (*first, 1, "unit"),
        (*second, 1, "text"),
        (*second, 1, "help"),
        (*second, 1, "low_label"),
        (*second, 1, "rows", 2, "text"),
        ("pages", 1, "title"),
        ("introduction",),
    )
    own, other = "At {job|your work}", {"en": "At work", "es": "En {job|su trabajo}"}
    for place in places:
        for text in (own, other, "At {job}", "At {work_pay|it}"):
            changed = copy.deepcopy(raw)
            *steps, last = place
            part: Any = changed
            for step in steps:
                part = part[step]
            part[last] = text
            expected_place = place if isinstance(text, str) else (*place, "es")
            ((where, what),) = mistakes_of(changed)
            assert where == expected_place, (place, text, where, what)
            assert "only the text and the help of a question can" in what, (place, text, what)


def test_other_braces_stay_as_they_are_in_texts_that_no_device_fills_in(raw):
    braces = "{on|off} {{job|x}} {x|x > 0} { job } {name} {"
    matrix = parse(MATRIX.encode(), "matrix.toml")["pages"][0]["questions"][0]
    matrix |= {"help": braces, "text": f"{braces}?"}
    matrix["rows"][1]["text"] = braces
    raw["pages"][1]["questions"][1] = matrix
    raw["pages"][0]["questions"][0]["options"][0]["label"] = {"en": braces, "es": "{"}
    form = json.loads(published(raw).canonical)
    assert form["pages"][0]["questions"][0]["options"][0]["label"] == braces
    row = form["pages"][1]["questions"][2]
    assert (row["text"], row["help"]) == (f"{braces}? {braces}", braces)
    assert "piped" not in row


def test_the_builder_names_a_misplaced_placeholder_beside_its_field(raw):
    matrix = parse(MATRIX.encode(), "matrix.toml")["pages"][0]["questions"][0]
    matrix["rows"][1]["text"] = "At {job|work}"
    raw["pages"][1]["questions"][1] = matrix
    raw["pages"][0]["questions"][0]["options"][0]["label"] = "In {hours|some} hours"
    content = draft_from(raw)
    found = check_draft(content, Caps()).mistakes
    option_key = next(content.questions)["options"][0]["key"]
    assert [mistake.field for mistake in found] == [f"option-{option_key}", "rows"]
    assert found[0].text.startswith('cannot show an earlier answer (found "{hours|some}")')
