"""Exports to SurveyJS: what it can express arrives and returns; the notes name the rest."""

from __future__ import annotations

import json
import re

import pytest

from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Survey
from survey.questionnaire.exports import export_questionnaire
from survey.questionnaire.imports import import_questionnaire
from survey.questionnaire.kinds import kind_of
from survey.questionnaire.loading import load, source_of
from survey.questionnaire.placeholders import is_piped, parse_piped
from survey.questionnaire.validation import check
from survey.settings import Caps
from tests import surveys

MORE = """
slug = "more"
language = "de"
layout = "questions"
title = {de = "Arbeit & Zeit", en = "Work & time", pt-BR = "Trabalho"}
introduction = "Erste Zeile: 3 < 4.\\n\\nZweite Zeile."
thanks = "Danke <sehr>.\\nEnde."
allow_skip_logic = true
epsilon = 1

[[pages]]
title = {de = "Seite", en = "Page"}
[[pages.questions]]
id = "job"
type = "single_choice"
text = {de = "Wo?", en = "Where?"}
shuffle_options = true
prefer_not_to_say = "Keine Angabe"
does_not_apply = {de = "Trifft nicht zu", en = "Not for me"}
options = [{id = "a", label = {de = "Hier", en = "Here"}}, {id = "b", label = "Dort"},
           {id = "c", label = "Anderswo"}]
[[pages.questions]]
id = "tools"
type = "multiple_choice"
text = "Womit?"
none_of_these = "Mit nichts"
options = [{id = "a", label = "Stift"}, {id = "b", label = "Rechner"}]

[[pages]]
[[pages.questions]]
id = "silent"
type = "yes_no"
text = "Still?"
options = [{id = "yes", label = "Jawohl"}, {id = "no", label = "Nein"}]
ask_if = {question = "job", options = ["b", "prefer_not_to_say", "does_not_apply"]}
[[pages.questions]]
id = "empty"
type = "scale"
text = "Leer?"
options = [{id = "low", label = "Wenig"}, {id = "mid", label = "2"}, {id = "high", label = "Viel"}]
ask_if = {question = "tools", options = ["none_of_these"]}
[[pages.questions]]
id = "steps"
type = "scale"
text = "Wie viele?"
low = 0
high = 30
high_label = {de = "sehr viele", en = "very many"}
[[pages.questions]]
id = "mood"
type = "matrix"
text = {de = "Wie?", en = "How?"}
low = -1
high = 1
high_label = {de = "gut", en = "good"}
rows = [{id = "day", text = {de = "Tag", en = "Day"}}, {id = "night", text = "Nacht"}]

[[pages]]
[[pages.questions]]
id = "why"
type = "yes_no"
text = "Warum?"
options = [{id = "yes", label = "Jawohl"}, {id = "no", label = "Nein"}]
ask_if = {question = "empty", options = ["low", "high"]}
"""

WITHOUT_COUNTERPART = (
    *("topic", "mechanism", "parameters", "epsilon", "truth_probability", "keep_probability"),
    *("unit", "prefer_not_to_say"),
)
"""Keys that neither format shares, or that an import always fills in."""


def all_surveys() -> dict[str, Survey]:
    """Return every survey of `tests.surveys`, and one with what they lack, by name."""
    texts = {name: text for name, text in vars(surveys).items() if name.isupper()}
    sources = {name: text for name, text in texts.items() if isinstance(text, str | bytes)}
    sources = {name: text for name, text in sources.items() if not name.startswith("_")}
    sources = {**sources, "MORE": MORE}
    return {
        name: load(text.encode() if isinstance(text, str) else text, "s.toml", Caps())
        for name, text in sources.items()
    }


def reduced(survey: Survey) -> dict:
    """Return what both formats can express of a survey."""
    source = source_of(freeze(survey, 1))
    keys = ("language", "title", "introduction", "thanks", "layout")
    return {key: source[key] for key in keys if source.get(key)} | {
        "pages": [
            {
                "title": page["title"],
                "questions": [reduced_question(question) for question in page["questions"]],
            }
            for page in source["pages"]
        ]
    }


def reduced_question(question: dict) -> dict:
    kind = kind_of(question)
    dropped = set(WITHOUT_COUNTERPART)
    is_list = (kind.is_single and not kind.is_ordered and not kind.is_binary) or kind.is_multiple
    if not is_list or question.get("ask_if"):
        dropped.add("does_not_apply")  # stands for a skipped question, or has no option
    if kind.is_numeric:
        dropped |= {"low_label", "high_label"}
    form = {key: value for key, value in question.items() if key not in dropped}
    if "options" in form:
        form["options"] = [
            {"id": option["id"], "label": option["label"]} for option in form["options"]
        ]
    return {
        key: without_fallback(form[key]) if key in ("text", "help") else form[key] for key in form
    }


def without_fallback(text):
    if isinstance(text, dict):
        return {tag: without_fallback(own) for tag, own in text.items()}
    if not is_piped(text):
        return text
    return "".join(
        re.sub(r"\{[^{}]*\}", "…", part) if isinstance(part, str) else f"{{{part.question}|…}}"
        for part in parse_piped(text)
    )


def returned(survey: Survey) -> Survey:
    """Return a survey after an export to SurveyJS and an import."""
    content = export_questionnaire(survey, "surveyjs").content
    result = import_questionnaire(content, "s.json", skip_logic=survey.allow_skip_logic)
    assert result.check(Caps()).mistakes == ()
    return check(result.definition(Caps()), Caps())


@pytest.mark.slow
def test_every_survey_returns_with_all_that_surveyjs_can_express():
    for name, survey in all_surveys().items():
        assert reduced(returned(survey)) == reduced(survey), name


def test_the_notes_name_what_has_no_counterpart():
    notes = {
        name: "\n".join(export_questionnaire(survey, "surveyjs").notes)
        for name, survey in all_surveys().items()
    }
    assert all("randomization" in text for text in notes.values())
    for name, word in (
        ("EVERY_TYPE", "contact"),
        ("EVERY_TYPE", "hours: the unit"),
        ("CHOICES", "pictures"),
        ("SLIDER", "labels of the slider"),
        ("JOINT", "together"),
        ("SAMPLED", "questions_per_person"),
        ("PIPED", "missing answer to job"),
        ("PIPED", "words in braces"),
        ("DATES", "“Does not apply”"),
        ("WORKPLACE", "helpline"),
    ):
        assert word in notes[name], (name, word)


def test_texts_are_escaped_only_where_surveyjs_reads_html():
    form = json.loads(export_questionnaire(all_surveys()["MORE"], "surveyjs").content)
    assert form["completedHtml"] == "Danke &lt;sehr&gt;.<br>Ende."
    assert form["title"] == {
        "de": "Arbeit & Zeit",
        "default": "Work & time",
        "pt-br": "Trabalho",
    }


def test_texts_that_an_import_takes_for_html_are_named():
    questions = [
        {"id": id_, "type": "yes_no", "text": text}
        for id_, text in (("a", "A &amp; B?"), ("b", "<b>?"), ("c", "A & B < C?"))
    ]
    definition = {"slug": "x", "title": "T", "epsilon": 1, "questions": questions}
    notes = export_questionnaire(check(definition, Caps()), "surveyjs").notes
    assert [note[:2] for note in notes if "HTML" in note] == ["a:", "b:"]
