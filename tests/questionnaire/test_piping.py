"""Earlier answers in later texts: what is published, and what is refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from survey.errors import DefinitionError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.drafts.conversion import definition_from, draft_from
from survey.questionnaire.loading import parse, source_of
from survey.questionnaire.validation import check
from survey.settings import Caps
from tests.surveys import PIPED


@pytest.fixture
def raw() -> dict[str, Any]:
    return parse(PIPED.encode(), "piped.toml")


def published(raw: dict[str, Any]) -> Definition:
    return freeze(check(raw, Caps()), 1)


def mistakes(raw: dict[str, Any], text: Any, **changes: Any) -> list[tuple[Any, str]]:
    changed = copy.deepcopy({**raw, **changes})
    changed["pages"][1]["questions"][0]["text"] = text
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
        ("At {travel|it}?", {}, '"travel" is not a question with one answer on an earlier page'),
        ("At {tools|it}?", {}, "available: job, hours"),
        ("At {nothing|it}?", {}, '"nothing" is not a question with one answer'),
        ("At {job|it}?", {"allow_skip_logic": False}, "needs allow_skip_logic = true"),
        ("At {job}?", {}, "write {job|other words}"),
        ("At {job| }?", {}, "write {job|other words}"),
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
