"""Surveys in several languages: one file, one definition and a fallback for each text."""

from __future__ import annotations

import json

import pytest

from survey.errors import DefinitionError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.cases import each_case

NIGHTS = """
slug = "small"
language = "en"
title = { en = "Nights", es = "Noches", ar = "ليالٍ" }
introduction = { en = "About your nights.", es = "Sobre sus noches." }
helpline = "Call 112."
epsilon = 1

[[pages]]
title = { en = "Sleep", es = "Sueño" }
[[pages.questions]]
id = "slept"
type = "yes_no"
text = { en = "Did you fall asleep at work?", es = "¿Se durmió en el trabajo?" }

[[pages.questions]]
id = "hours"
type = "number"
text = { en = "How long?", es = "¿Cuánto?" }
low = 0
high = 12
unit = { en = "hours", es = "horas" }

[[pages.questions]]
id = "where"
type = "multiple_choice"
text = "Where?"
options = [{ id = "here", label = { en = "Here", es = "Aquí" } }, { id = "there", label = "There" }]
"""


def survey(text: str = NIGHTS):
    return load(text.encode(), "s.toml", Caps())


def mistakes(text: str) -> list[tuple[str, str]]:
    with pytest.raises(DefinitionError) as refused:
        survey(text)
    return refused.value.mistakes


def test_each_language_has_its_own_texts():
    definition = json.loads(freeze(survey(), 1).canonical)
    assert definition["title"] == "Nights"
    assert list(definition["translations"]) == ["ar", "es"]
    spanish = definition["translations"]["es"]
    assert spanish["title"] == "Noches"
    assert spanish["introduction"] == "Sobre sus noches."
    assert spanish["helpline"] == ""  # uses the fallback language
    (page,) = spanish["pages"]
    assert page["title"] == "Sueño"
    assert [question["text"] for question in page["questions"]] == [
        "¿Se durmió en el trabajo?",
        "¿Cuánto?",
        "",
    ]
    assert page["questions"][1]["unit"] == "horas"
    assert page["questions"][2]["options"][:2] == ["Aquí", ""]


def test_a_topic_is_translated_and_costs_no_byte_in_surveys_without_topics():
    plain = freeze(survey(), 1).canonical
    assert b"topic" not in plain
    topic = 'topic = { en = "Sleep", es = "Sueño" }\ntype = "yes_no"'
    definition = json.loads(freeze(survey(NIGHTS.replace('type = "yes_no"', topic)), 1).canonical)
    assert definition["pages"][0]["questions"][0]["topic"] == "Sleep"
    translations = definition["translations"]
    assert translations["es"]["pages"][0]["questions"][0]["topic"] == "Sueño"
    assert translations["ar"]["pages"][0]["questions"][0]["topic"] == ""
    assert "topic" not in translations["es"]["pages"][0]["questions"][1]


def test_default_options_have_the_labels_of_the_language():
    translations = json.loads(freeze(survey(), 1).canonical)["translations"]
    questions = {
        name: translation["pages"][0]["questions"] for name, translation in translations.items()
    }
    assert questions["es"][0]["options"] == ["Sí", "", "Prefiero no decirlo"]  # "No" is "No"
    assert questions["ar"][0]["options"] == ["نعم", "لا", "أفضّل عدم الإجابة"]
    assert questions["es"][2]["options"][2:] == ["Ninguna de estas", "Prefiero no decirlo"]


def test_a_survey_in_one_other_language_has_its_usual_labels():
    spanish = NIGHTS.replace('language = "en"', 'language = "es"')
    for question in json.loads(freeze(survey(spanish), 1).canonical)["pages"][0]["questions"]:
        labels = [option["label"] for option in question["options"]]
        assert labels[-1] == "Prefiero no decirlo"


def test_a_language_without_usual_labels_has_those_of_the_source():
    dutch = 'slug = "small"\nlanguage = "nl"\ntitle = "Nachten"\nepsilon = 1\n[[questions]]\n'
    dutch += 'id = "a"\ntype = "yes_no"\ntext = "Sliep u?"\n'
    labels = [option.label for option in next(survey(dutch).questions).all_options]
    assert labels == ["Yes", "No", "Prefer not to say"]


def test_the_channels_are_those_of_the_survey_in_one_language():
    alone = NIGHTS
    for table, text in (
        ('{ en = "Nights", es = "Noches", ar = "ليالٍ" }', '"Nights"'),
        ('{ en = "Sleep", es = "Sueño" }', '"Sleep"'),
    ):
        alone = alone.replace(table, text)
    first, second = [freeze(survey(text), 1) for text in (NIGHTS, alone)]
    assert [q.channel for q in first.questions] == [q.channel for q in second.questions]
    assert first.report_bytes == second.report_bytes


def test_a_definition_without_translations_has_its_original_form():
    text = 'slug = "small"\ntitle = "T"\nepsilon = 1\n[[questions]]\nid = "a"\ntype = "yes_no"\n'
    form = json.loads(freeze(survey(text + 'text = "Q?"\n'), 1).canonical)
    assert form.keys().isdisjoint(
        {"translations", "consent", "ethics", "helpline", "access", "kiosk", "theme", "exit"}
    )
    assert "shuffled" not in form["pages"][0]["questions"][0]


@each_case(
    ("old", "new", "place", "message"),
    [
        ('{ en = "Nights", es', '{ de = "Nächte", es', "title", 'own language, "en"'),
        ('es = "Noches"', 'es_ES = "Noches"', "title, es_ES", "is not a language tag"),
        ('es = "Noches"', 'es = ""', "title, es", "is empty"),
        ('es = "Sueño"', "es = 3", "page 1, title, es", "valid string"),
        (
            'label = "There"',
            'label = { en = "There", es = "aquí" }',
            "page 1, question 3 (where), option 2 (there), label, es",
            "label of another option",
        ),
        (
            'es = "¿Cuánto?"',
            f'es = "{"x" * 1001}"',
            "page 1, question 2 (hours), text, es",
            "has 1,001 characters",
        ),
    ],
)
def test_mistakes_in_a_translation_are_named_with_their_language(old, new, place, message):
    assert old in NIGHTS
    listed_mistakes = mistakes(NIGHTS.replace(old, new))
    assert [where for where, _ in listed_mistakes] == [place]
    assert message in listed_mistakes[0][1]


def test_too_many_languages_are_rejected():
    languages = ", ".join(f'a{chr(97 + i // 26)}{chr(97 + i % 26)} = "N"' for i in range(60))
    listed_mistakes = mistakes(NIGHTS.replace('ar = "ليالٍ"', languages))
    assert listed_mistakes == [("language", "62 languages; the nearest allowed number is 50")]


@each_case(
    ("changes", "place"),
    [
        ('theme = "neon"', "theme"),
        ('access = "everybody"', "access"),
        ('kiosk = "yes"', "kiosk"),
        ('quick_exit = "http://example.org"', "quick_exit"),
        ('quick_exit = "javascript:alert(1)"', "quick_exit"),
    ],
)
def test_invalid_page_settings_are_rejected_by_name(changes, place):
    assert [where for where, _ in mistakes(f"{changes}\n{NIGHTS}")] == [place]


def test_only_choices_without_an_order_are_shuffled():
    shuffled = NIGHTS.replace('text = "Where?"', 'text = "Where?"\nshuffle_options = true')
    form = json.loads(freeze(survey(shuffled), 1).canonical)
    assert [q.get("shuffled") for q in form["pages"][0]["questions"]] == [None, None, True]
    (mistake,) = mistakes(
        NIGHTS.replace('type = "yes_no"', 'type = "yes_no"\nshuffle_options = true')
    )
    assert "always shown in one order" in mistake[1]
