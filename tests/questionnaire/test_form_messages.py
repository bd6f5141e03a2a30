"""Messages about a draft use the words of its forms, not the keys of a file."""

from __future__ import annotations

import re
from itertools import product

import pytest

from survey.questionnaire.designs import DESIGNS, PRIVACY
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.draft import EMPTY_QUESTION, EMPTY_SURVEY, DraftContent
from survey.questionnaire.drafts.form_messages import MECHANISM_NAMES, WAY_NAMES, form_message
from survey.questionnaire.kinds import KINDS
from survey.settings import Caps
from tests.cases import each_case

KEYS = {name for name in (*EMPTY_QUESTION, *EMPTY_SURVEY, *PRIVACY) if "_" in name}
KEYS |= {name for name in DESIGNS if "_" in name}
WRITTEN_IN_A_FILE = re.compile(rf"\b({'|'.join(sorted(KEYS))})\b|= (true|false)|parameters\.|\^|\\")

ABC = tuple({"key": 10 + i, "id": name, "label": {"en": name}} for i, name in enumerate("abc"))


def messages_of(kind: str, survey: dict | None = None, **changed) -> list[str]:
    """Return the messages about a draft with a valid question and a changed one."""
    content = DraftContent.new("Nights", "nights")
    content, first = edits.add_question(content, 1, "yes_no")
    good = {**content.question(first), "text": {"en": "Do you?"}, "id": "first"}
    content = edits.add_page(content.with_question(first, good))
    content, key = edits.add_question(content, content.pages[-1].key, kind)
    text = {"en": "How?"}
    options = {"options": ABC} if kind in ("single_choice", "multiple_choice") else {}
    question = {**content.question(key), "text": text, "id": "second", **options, **changed}
    content = content.with_question(key, question)
    content = DraftContent(
        {**content.survey, **(survey or {})}, (), content.pages, content.plan, content.last_key
    )
    return [mistake.text for mistake in check_draft(content, Caps()).mistakes]


MECHANISMS = [(kind.type, name) for kind in KINDS.values() for name in kind.mechanisms]

WRONG = [
    ("yes_no", {"ask_question": "first", "ask_options": ("yes",)}),
    ("yes_no", {"ask_question": "first", "ask_options": ()}),
    ("single_choice", {"options": ()}),
    ("single_choice", {"options": ABC[:1]}),
    ("single_choice", {"id": "A b"}),
    ("multiple_choice", {"max_ticks": "9"}),
    ("multiple_choice", {"max_ticks": "many"}),
    ("scale", {"low": "1", "high": ""}),
    ("scale", {"low": "1", "high": "900"}),
    ("scale", {"low": "1", "high": "many"}),
    ("scale", {"low": "1", "high": "9" * 15}),
    ("scale", {"options": ABC, "low_label": {"en": "little"}}),
    ("number", {"low": "5", "high": "1"}),
    ("number", {"low": "0", "high": "10", "step": "0"}),
    ("number", {"low": "0", "high": "10", "step": "3"}),
    ("number", {"low": "many", "high": "10"}),
    ("date", {"low": "2020-01-01", "high": "2019-01-01"}),
    ("date", {"low": "yesterday", "high": ""}),
    ("number", {"low": "0", "high": "9", "way": "truth_probability", "value": "0.9"}),
    ("yes_no", {"way": "truth_probability", "value": "0.2"}),
    ("yes_no", {"way": "keep_probability", "value": "2"}),
    ("yes_no", {"way": "epsilon", "value": "much"}),
    ("yes_no", {"parameters": "p = 0.7"}),
    ("yes_no", {"mechanism": "warner", "parameters": "p = 1.7"}),
    ("yes_no", {"mechanism": "two_coins", "parameters": "truth = 0.5"}),
    ("yes_no", {"mechanism": "square_wave"}),
    ("scale", {"low": "1", "high": "5", "mechanism": "square_wave"}),
    ("single_choice", {"mechanism": "exponential", "parameters": "utility = [[1, 0]]"}),
    ("single_choice", {"mechanism": "exponential", "parameters": "utility = [1, 2, 3]"}),
    ("single_choice", {"mechanism": "forced_response", "parameters": "truth = 1\nforced = [1]"}),
    ("number", {"low": "0", "high": "9", "mechanism": "gaussian", "parameters": "sigma = 0"}),
]


def test_no_message_about_a_draft_has_a_key_of_a_file():
    for kind, changes in WRONG:
        messages = messages_of(kind, **changes)
        assert messages, (kind, changes)
        for text in messages:
            assert not WRITTEN_IN_A_FILE.search(text), (kind, changes, text)


@pytest.mark.slow
def test_no_message_about_a_mechanism_has_a_key_of_a_file():
    ends = {"number": ("0", "9"), "scale": ("1", "9"), "date": ("2020-01-01", "2020-02-01")}
    for (kind, mechanism), way, parameters in product(MECHANISMS, ["", *PRIVACY], ["", "p = 0.7"]):
        low, high = ends.get(kind, ("", ""))
        fields = {
            "low": low,
            "high": high,
            "mechanism": mechanism,
            "parameters": parameters,
            "way": way,
            "value": {"": "", "epsilon": "1"}.get(way, "0.6"),
        }
        for text in messages_of(kind, **fields):
            assert not WRITTEN_IN_A_FILE.search(text), (kind, fields, text)


@each_case(
    "changed",
    [
        {"slug": "A b"},
        {"slug": "trial-1"},
        {"questions_per_person": "9"},
        {"questions_per_person": "x"},
        {"quick_exit": "http://example.org"},
        {"quick_exit": "é"},
    ],
)
def test_no_message_about_survey_settings_has_a_key_of_a_file(changed):
    messages = messages_of("yes_no", changed)
    assert messages
    for text in messages:
        assert not WRITTEN_IN_A_FILE.search(text), text


def test_forbidden_skip_logic_names_the_checkbox_that_allows_it():
    (message,) = messages_of(
        "yes_no", ask_question="first", ask_options=("yes",), does_not_apply=True
    )
    assert "“Ask questions only after certain answers (skip logic)” to be ticked" in message


def test_a_mechanism_without_parameters_names_the_missing_lines():
    (message,) = messages_of("yes_no", mechanism="two_coins", parameters="truth = 0.5")
    assert message == (
        "“Two coins” needs the lines “truth = …” and “yes = …” under “Parameters of the "
        "mechanism”, and no others"
    )


def test_unsupported_privacy_settings_name_the_supported_one():
    (message,) = messages_of(
        "number", low="0", high="9", way="truth_probability", value="0.8", mechanism="laplace"
    )
    assert message.startswith("choose “By epsilon” under “Privacy level”")


def test_the_message_about_a_default_answer_names_its_checkbox():
    twice = {"key": 20, "id": "prefer_not_to_say", "label": {"en": "No comment"}}
    messages = messages_of("single_choice", options=(*ABC, twice))
    assert any("untick “Offer “Prefer not to say”” to leave it out" in text for text in messages)


def test_every_mechanism_and_way_has_a_name_in_the_forms():
    assert set(MECHANISM_NAMES) == set(DESIGNS)
    assert set(WAY_NAMES) == set(PRIVACY)


def test_messages_that_are_sentences_stay_unchanged():
    assert form_message("lacks the text in the survey's own language") == (
        "lacks the text in the survey's own language"
    )
