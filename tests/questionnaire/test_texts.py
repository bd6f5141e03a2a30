"""Texts of a survey are visible, unambiguous and distinct between options."""

from __future__ import annotations

import json

import pytest

from survey.errors import DefinitionError
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.cases import each_case


def form(labels=("A", "B"), title="S", text="Q?", page="", **fields):
    options = [{"id": f"o{i}", "label": label} for i, label in enumerate(labels)]
    question = {"id": "q", "type": "single_choice", "text": text, "options": options, **fields}
    return {
        "slug": "s",
        "title": title,
        "epsilon": 1,
        "pages": [{"title": page, "questions": [question]}],
    }


def accepted(content):
    return load(json.dumps(content).encode(), "x.json", Caps())


def mistakes(content):
    with pytest.raises(DefinitionError) as refused:
        accepted(content)
    return refused.value.mistakes


@each_case("second", ["Often", " often ", "OFTEN", "\u00a0Often"])
def test_two_options_with_one_label_are_a_mistake_at_the_second(second):
    ((place, text),) = mistakes(form(["Often", "Never", second]))
    assert place == "page 1, question 1 (q), option 3 (o2), label"
    assert "is already the label of another option" in text


def test_labels_that_differ_only_in_spaces_and_case_are_the_same():
    assert len(mistakes(form(["Very  often", "very\u2003OFTEN", "STRASSE", "straße"]))) == 2


@each_case(
    ("labels", "opt_out", "place"),
    [
        (["A", "prefer NOT to say"], True, "page 1, question 1 (q), option 2 (o1), label"),
        (["A", "No answer"], "no answer", "page 1, question 1 (q), prefer_not_to_say"),
    ],
)
def test_an_option_that_reads_like_prefer_not_to_say_is_a_mistake(labels, opt_out, place):
    assert [where for where, _ in mistakes(form(labels, prefer_not_to_say=opt_out))] == [place]


def test_default_labels_of_a_yes_no_question_count_as_duplicates():
    content = form(prefer_not_to_say="yes")
    question = content["pages"][0]["questions"][0]
    question["type"] = "yes_no"
    del question["options"]
    ((place, _),) = mistakes(content)
    assert place == "page 1, question 1 (q), prefer_not_to_say"


def test_prefer_not_to_say_may_be_an_ordinary_label_if_the_option_is_disabled():
    accepted(form(["A", "Prefer not to say"], prefer_not_to_say=False))


@each_case("control", [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))])
@each_case("where", ["title", "text", "help", "page", "prefer_not_to_say"])
def test_direction_control_characters_are_rejected_in_every_text(where, control):
    ((_, text),) = mistakes(form(**{where: f"a{control}b"}))
    assert "direction control characters" in text


def test_direction_control_characters_are_rejected_in_labels():
    ((place, text),) = mistakes(form(["A", "\u202eB"]))
    assert place.endswith("label")
    assert "direction control characters" in text


@each_case("text", ["שלום\u200f", "سلام\u200cها", "\U0001f468\u200d\U0001f469", "é"])
def test_marks_and_joiners_that_languages_need_are_kept(text):
    survey = accepted(form([text, "B"], title=text, text=text))
    assert (survey.title, next(survey.questions).options[0].label) == (text, text)


BLANK = [
    "",
    "   ",
    "\u200b",
    "\u200b \u2060",
    "\ufeff",
    "\u00ad",
    "\u00a0\u200e",
    "\u2800",
    "\u3164",
    "\u200d\ufe0f",
    "\U000e0041",
]


@each_case("blank", BLANK)
def test_a_title_question_or_label_without_a_visible_character_is_empty(blank):
    for content in (form(title=blank), form(text=blank), form(["A", blank])):
        ((_, text),) = mistakes(content)
        assert text == "is empty"


def test_a_page_title_without_a_visible_character_is_no_title():
    assert accepted(form(page="\u200b")).pages[0].title == ""


def test_a_single_control_character_is_rejected_and_does_not_count_as_empty():
    for text in ("\x00", "\u202e", "\x1b"):
        assert "control characters" in mistakes(form(help=text))[0][1]
