"""Exports as XLSForm: pyxform accepts them, and importing them loses nothing that fits."""

from __future__ import annotations

import io
import re

import pytest
from openpyxl import load_workbook
from pyxform.xls2xform import convert

from survey.questionnaire.exports import export_questionnaire
from survey.questionnaire.imports import import_questionnaire
from survey.questionnaire.kinds.base import OPT_OUT_ID
from survey.questionnaire.loading import load
from survey.questionnaire.texts import SURVEY_TEXTS
from survey.questionnaire.validation import check
from survey.settings import Caps
from tests import surveys

pytestmark = pytest.mark.slow

RARE = """
slug = "rare"
title = "What the other surveys lack"
language = "pt-BR"
allow_skip_logic = true
epsilon = 1
thanks = "Obrigado.\\n\\nAté logo!"
[[pages]]
title = {"pt-BR" = "Trabalho", qaa = "Work"}
[[pages.questions]]
id = "a_rather_long_id_of_more_than_forty_characters"
type = "single_choice"
text = "Where, if < 5 or > 9 or ${here}?"
shuffle_options = true
prefer_not_to_say = "Nada"
options = [{id = "a_", label = "=A"}, {id = "b__b", label = "B", picture = "AB", picture_alt = "A"}]
[[pages.questions]]
id = "m"
type = "matrix"
text = "How?"
topic = "Work"
options = [{id = "bad", label = "Bad"}, {id = "good", label = "Good"}]
rows = [{id = "x", text = "X"}, {id = "y", text = "Y"}]
[[pages]]
[[pages.questions]]
id = "contact"
type = "multiple_choice"
text = "Which?"
none_of_these = "Nenhum"
does_not_apply = "Só se…"
options = [{id = "a", label = "A"}, {id = "b", label = "B"}]
ask_if = {question = "m_y", options = ["bad", "prefer_not_to_say"]}
[[pages]]
[[pages.questions]]
id = "after"
type = "yes_no"
text = "After?"
ask_if = {question = "contact", options = ["none_of_these", "b"]}
""".replace("AB", "ab" * 32)


def every_survey():
    texts = {
        name: text
        for name, text in vars(surveys).items()
        if name.isupper() and isinstance(text, str | bytes) and not name.startswith("_")
    }
    for name, text in {**texts, **surveys.SAMPLING, **surveys.EVERY_CHANNEL, "RARE": RARE}.items():
        content = text if isinstance(text, bytes) else text.encode()
        yield name, load(content, "survey.toml", Caps())


def exported(survey):
    return export_questionnaire(survey, "xlsform")


def reimported(survey):
    return import_questionnaire(exported(survey).content, "s.xlsx", skip_logic=True)


def without_fallback(text):
    """Return a text without what XLSForm cannot express: words for a missing answer, and "${"."""
    text = text.replace("${", "$ {")
    return re.sub(r"\{(\w+)\|[^{}]*\}", r"{\1|…}", text)


def compatible(survey):
    """Return everything of a survey that XLSForm can express, in one language."""
    return [
        survey.slug,
        *(getattr(survey, name) for name in SURVEY_TEXTS),
        *((page.title, [compatible_question(q) for q in page.questions]) for page in survey.pages),
    ]


def compatible_question(question):
    return {
        "id": question.id,
        "type": question.type,
        "text": without_fallback(question.text),
        "help": without_fallback(question.help),
        "options": [(option.id, option.label) for option in question.ordinary],
        "grid": question.grid,
        "ticks": question.ticks,
        "shuffled": question.shuffled,
        "slider": question.slider_labels,
        "matrix": question.matrix,
        "ask_if": question.ask_if and (question.ask_if.question, sorted(question.ask_if.options)),
        # Every imported question can be declined.
        "automatic": [
            (option.id, option.label) for option in question.special if option.id != OPT_OUT_ID
        ]
        if question.kind.is_listed
        else [],
    }


@pytest.mark.web
def test_importing_an_export_loses_nothing_that_fits():
    for name, survey in every_survey():
        imported = reimported(survey)
        again = check(imported.definition(Caps()), Caps())
        assert compatible(again) == compatible(survey), name
        assert again.translations.keys() == survey.translations.keys(), name
        for tag, translation in survey.translations.items():
            assert compatible(again.translations[tag]) == compatible(translation), (name, tag)


PIPING = {
    "shows “…” where an earlier answer is missing",
    "shows the label of an answer where ODK shows its name",
}


def test_an_import_of_an_export_reports_nothing_but_how_earlier_answers_are_shown():
    for name, survey in every_survey():
        lost = {element.how for element in reimported(survey).elements if element.how}
        assert {note for how in lost for note in how.split("; ")} <= PIPING, name


@pytest.mark.web
def test_pyxform_accepts_every_export_and_warns_of_language_tags_with_regions_only():
    for name, survey in every_survey():
        questionnaire = convert(exported(survey).content, validate=False, file_type=".xlsx")
        warnings = [text for text in questionnaire.warnings if "pt-BR" not in text]
        assert warnings == [], name
        bound = set(re.findall(r'<bind nodeset="[^"]*/(\w+)"', questionnaire.xform))
        assert {question.id for question in survey.questions} <= bound, name


def test_the_notes_name_what_xlsform_cannot_express():
    notes = dict(
        note.partition(": ")[::2]
        for note in exported(load(surveys.EVERY_DESIGN, "s.toml", Caps())).notes
    )
    assert "true answers: nothing is randomized" in exported(next(every_survey())[1]).notes[0]
    assert notes["Automatic options are not offered as answers"] == "hours, since, order."
    drawn = exported(load(surveys.JOINT, "s.toml", Caps())).notes
    assert drawn[-1] == "Settings without a counterpart: questions_per_person, together."


def test_no_cell_of_an_export_is_a_formula_or_a_number():
    text = surveys.SKIPS.replace("Do you work at night?", "=1+1").replace("Nights", "=HYPERLINK(1)")
    content = exported(load(text.encode(), "s.toml", Caps())).content
    cells = [
        cell
        for sheet in load_workbook(io.BytesIO(content))
        for row in sheet.iter_rows()
        for cell in row
        if cell.value is not None
    ]
    assert {cell.data_type for cell in cells} == {"s"}
    assert "=1+1" in {cell.value for cell in cells}


def test_labels_that_look_like_markup_are_returned_unchanged_or_reported():
    labels = [
        "18 - 25 <years>",
        "# 1",
        "# Yes",
        "a *b* c",
        "**A** & B &amp; C",
        r"\*x\*",
        "2 * 3 * 4",
    ]
    options = [{"id": f"o{i}", "label": label} for i, label in enumerate(labels)]
    question = {"id": "q", "type": "single_choice", "text": "*What* if x<low or y>z?"}
    definition = {"slug": "x", "title": "A *title*", "epsilon": 1}

    def back(options):
        form = {**definition, "questions": [{**question, "options": options}]}
        exported = export_questionnaire(check(form, Caps()), "xlsform")
        questionnaire = import_questionnaire(exported.content, "x.xlsx").definition(Caps())
        return questionnaire, " ".join(exported.notes)

    questionnaire, notes = back(options)
    (arrived,) = questionnaire["pages"][0]["questions"]
    assert [option["label"] for option in arrived["options"]] == labels
    assert (arrived["text"], questionnaire["title"]) == (question["text"], definition["title"])
    assert "HTML" not in notes
    assert (
        "for HTML, and leave them out: tag." in back([*options, {"id": "tag", "label": "<b>"}])[1]
    )
