"""Imports from XLSForm: what can be randomized arrives, and every other cell is named."""

from __future__ import annotations

from contextlib import closing
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook

from survey.errors import DefinitionError
from survey.questionnaire.imports import import_questionnaire, xlsform
from survey.questionnaire.imports.workbook import cell_text
from survey.questionnaire.imports.xlsform_sheets import parse_header
from survey.settings import Caps
from tests.conftest import REFERENCE_DATA
from tests.questionnaire.test_surveyjs import outcomes, questions
from tests.questionnaire.xlsforms import CHOICES, form, workbook

YES_NO = {"type": "select_one yn", "name": "kept", "label": "Kept?"}


def imported(*rows, skip_logic=False, choices=None, **settings):
    content = form(*rows, choices=choices, **settings)
    return import_questionnaire(content, "form.xlsx", skip_logic=skip_logic)


def report(questionnaire):
    return {
        (element.name, element.kind): element.how
        for element in questionnaire.elements
        if element.how
    }


OPTIONS = [{"id": "a", "label": "Office"}, {"id": "b", "label": "Site"}]
JOBS = [*OPTIONS, {"id": "c", "label": "Home"}]
NONE = "not(selected(., 'none') and count-selected(.) > 1)"
ADULTS = ". >= 18 and . <= 99"
TYPES = [
    ({"type": "select_one yn"}, {"type": "yes_no"}),
    ({"type": "Select One  yn"}, {"type": "yes_no"}),
    ({"type": "select_one job"}, {"type": "single_choice", "options": JOBS}),
    ({"type": "add select one prompt using job"}, {"type": "single_choice"}),
    ({"type": "select1 codes"}, {"type": "single_choice"}),
    ({"type": "select_one agree"}, {"type": "single_choice"}),
    ({"type": "select_one agree", "appearance": "likert"}, {"type": "scale"}),
    ({"type": "select_one points"}, {"type": "scale", "low": 0, "high": 5}),
    (
        {"type": "select_one ends"},
        {"type": "scale", "low": -1, "high": 1, "low_label": "bad", "high_label": "good"},
    ),
    (
        {"type": "select_one job", "parameters": "randomize=true"},
        {"type": "single_choice", "shuffle_options": True},
    ),
    ({"type": "select_one silent"}, {"options": OPTIONS, "prefer_not_to_say": "No comment"}),
    ({"type": "select_multiple job"}, {"type": "multiple_choice", "options": JOBS}),
    ({"type": "select all that apply from job"}, {"type": "multiple_choice"}),
    (
        {"type": "select_multiple job", "constraint": "count-selected(.) < 3"},
        {"type": "multiple_choice", "max_ticks": 2},
    ),
    ({"type": "rank job"}, {"type": "ranking", "options": JOBS}),
    ({"type": "integer", "constraint": ADULTS}, {"low": "18", "high": "99", "step": "1"}),
    ({"type": "int", "constraint": "(.>0) and (9>=.)"}, {"low": "1", "high": "9"}),
    ({"type": "range", "parameters": "start=0 end=5 step=0.5"}, {"slider": True, "step": "0.5"}),
    ({"type": "percentage"}, {"low": "0", "high": "100"}),
    (
        {"type": "date", "constraint": ". >= date('2020-01-01') and . < '2020-03-01'"},
        {"type": "date", "low": "2020-01-01", "high": "2020-02-29"},
    ),
]


@pytest.mark.parametrize(("row", "expected"), TYPES, ids=str)
def test_an_element_that_can_be_randomized_arrives_whole(row, expected):
    questionnaire = imported({"name": "my_q", "label": "What?", "hint": "Think.", **row})
    (question,) = questions(questionnaire)
    assert expected.items() <= question.items()
    assert [question[key] for key in ("id", "text", "help")] == ["my_q", "What?", "Think."]
    assert report(questionnaire).keys() <= {
        (name, "list of options") for name in {choice[0] for choice in CHOICES}
    }


CHANGED = [
    ({"type": "select_one job or_other"}, {"type": "single_choice"}, "no field for text"),
    ({"type": "select one from job or specify other"}, {"type": "single_choice"}, "no field"),
    ({"type": "select_multiple none", "constraint": NONE}, {"options": OPTIONS}, "none of these"),
    ({"type": "select_multiple job", "constraint": "${x} > 1"}, {"options": JOBS}, "${x} > 1"),
    ({"type": "acknowledge"}, {"type": "yes_no"}, "instead of an OK"),
    ({"type": "decimal", "constraint": ".>0 and .<2"}, {"step": "0.1"}, "lowest and highest"),
    ({"type": "integer", "constraint": ".>=0 and .<=50000"}, {"step": "100"}, "steps of 100"),
    ({"type": "integer", "constraint": f"{ADULTS} and . != 20"}, {"low": "18"}, ". != 20"),
    ({"type": "range", "parameters": "end=1000"}, {"high": "1000"}, "at most 101 points"),
    (
        {"type": "date", "constraint": ". >= '2000-01-01' and . <= '2026-01-01'"},
        {"low": "1999-12-29", "high": "2026-01-01", "step": 10},
        "rounded to 10 days",
    ),
]


@pytest.mark.parametrize(("row", "expected", "words"), CHANGED, ids=str)
def test_an_element_that_changes_is_reported_with_the_change(row, expected, words):
    questionnaire = imported({"name": "my_q", "label": "What?", **row})
    (question,) = questions(questionnaire)
    assert expected.items() <= question.items()
    assert words in report(questionnaire)["my_q", row["type"]]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"type": "text"}, "free text"),
        ({"type": "geopoint"}, "places"),
        ({"type": "image"}, "pictures"),
        ({"type": "add file prompt"}, "files"),
        ({"type": "calculate"}, "calculated"),
        ({"type": "deviceid"}, "about the device"),
        ({"type": "uri:email"}, "about the device"),
        ({"type": "dateTime"}, "times of day"),
        ({"type": "something"}, "no counterpart"),
        ({"type": "integer"}, "lowest and highest"),
        ({"type": "integer", "constraint": ". >= 0"}, ". >= 0"),
        ({"type": "date", "constraint": "."}, "lowest and highest"),
        ({"type": "date", "constraint": ". > '9999-12-31' and . < '9999-12-31'"}, "calendar"),
        ({"type": "range", "parameters": "step=0"}, "lowest and highest"),
        ({"type": "select_one nowhere"}, "no list nowhere"),
        ({"type": "select_one one"}, "1 options; 2 to 99"),
        ({"type": "rank seven"}, "3 to 6"),
        ({"type": "select_one_from_file a.csv"}, "elsewhere"),
        ({"type": "select_one job", "disabled": "yes"}, "disabled"),
    ],
    ids=str,
)
def test_an_element_that_cannot_be_randomized_is_dropped_with_its_reason(row, words):
    questionnaire = imported(YES_NO, {"name": "gone", "label": "Gone?", **row})
    assert len(questions(questionnaire)) == 1
    assert words in report(questionnaire)["gone", row["type"]]


def test_today_is_the_day_of_the_import():
    row = {"type": "date", "name": "d", "constraint": ". > today() - 30 and . < today()"}
    questionnaire = xlsform.read(form(row), "form.xlsx", today=date(2026, 3, 1))
    (question,) = questions(questionnaire)
    assert (question["low"], question["high"]) == ("2026-01-31", "2026-02-28")
    assert "day of the import" in report(questionnaire)["d", "date"]


def test_names_of_columns_languages_and_sheets_are_tolerant():
    rows = [
        (
            " Type ",
            "NAME",
            "Label : French",
            "caption::english",
            "Hint::English (en)",
            "label::Elvish",
        ),
        ("select_one  yn", "q", "Ça va ?", "How are you?", "Today.", "?"),
        ("text", "other", "", "", "", ""),
    ]
    choices = [("List Name", "Value", "label::Français", "label::en"), ("yn", "yes", "Oui", "Yes")]
    content = workbook(Survey=rows, CHOICES=[*choices, ("yn", "no", "Non", "No")])
    questionnaire = import_questionnaire(content, "FORM.XLSX")
    (question,) = questions(questionnaire)
    assert question["text"] == {"fr": "Ça va ?", "en": "How are you?"}
    assert question["help"] == {"fr": "Today.", "en": "Today."}
    assert questionnaire.content.own_language == "fr"
    assert "no known language" in report(questionnaire)["Elvish", "language"]


def test_a_text_that_lacks_the_own_language_is_shown_in_it_and_reported():
    row = {"type": "select_one yn", "name": "q", "label::English": "Hi?", "hint::Français": "Oui"}
    choices = [("list_name", "name", "label::en", "label::fr"), ("yn", "yes", "Yes", "Oui")]
    questionnaire = import_questionnaire(
        form(row, choices=[*choices, ("yn", "no", "", "Non")]), "f.xlsx"
    )
    assert questions(questionnaire)[0]["help"] == {"en": "Oui", "fr": "Oui"}
    how = "is shown in English (en), too, because there is no text in this language"
    assert outcomes(questionnaire)["q", "changed"] == how
    assert outcomes(questionnaire)["yn", "changed"] == f"{how} (options: 1)"


def test_the_default_language_is_the_survey_s_own():
    row = {"type": "select_one yn", "name": "q", "label::English": "Hi?", "label::German": "Na?"}
    questionnaire = imported(row, form_title="Work", form_id="Work_1", default_language="German")
    (question,) = questions(questionnaire)
    assert (questionnaire.content.own_language, question["text"]["en"]) == ("de", "Hi?")
    assert questionnaire.definition(Caps())["slug"] == "work-1"


def test_groups_are_pages_with_the_titles_of_all_groups_around_them():
    rows = [
        {"type": "begin group", "name": "home", "label": "Home"},
        {**YES_NO, "name": "q1"},
        {"type": "begin_repeat", "name": "child", "label": "Child"},
        {**YES_NO, "name": "q2"},
        {"type": "end repeat"},
        {**YES_NO, "name": "q3"},
        {"type": "end group", "name": "house"},
        {**YES_NO, "name": "q4"},
    ]
    questionnaire = imported(*rows)
    pages = questionnaire.definition(Caps())["pages"]
    titles = [(page.get("title", ""), page["questions"][0]["id"]) for page in pages]
    assert titles == [("Home", "q1"), ("Home: Child", "q2"), ("Home", "q3"), ("", "q4")]
    assert report(questionnaire)["child", "begin_repeat"] == "is asked once"
    assert ("house", "name") in report(questionnaire)


def test_a_group_whose_questions_share_a_list_is_a_matrix():
    matrix = {"type": "begin group", "name": "m", "label": "How?", "appearance": "table-list"}
    rows = [{"type": "select_one points", "name": f"m_{i}", "label": f"Row {i}"} for i in range(3)]
    (question,) = questions(imported(matrix, *rows, {"type": "end group"}))
    assert (question["type"], question["low"], question["high"]) == ("matrix", 0, 5)
    assert question["rows"][0] == {"id": "o0", "text": "Row 0"}

    plain = {**matrix, "appearance": ""}
    labelled = [{**row, "appearance": "list-nolabel"} for row in rows]
    head = {"type": "select_one points", "name": "head", "label": "Points", "appearance": "label"}
    questionnaire = imported(plain, head, *labelled, {"type": "end group"})
    (question,) = questions(questionnaire)
    assert len(question["rows"]) == 3
    assert "labels of the table" in report(questionnaire)["head", "select_one points"]

    after = {**YES_NO, "relevant": "${m_1} >= 4"}
    questionnaire = imported(matrix, *rows, {"type": "end group"}, after, skip_logic=True)
    condition = {"question": "m_o1", "options": ["value_4", "value_5"]}
    assert questions(questionnaire)[1]["ask_if"] == condition

    mixed = imported(matrix, rows[0], YES_NO, {"type": "end group"})
    assert [question["type"] for question in questions(mixed)] == ["scale", "yes_no"]
    assert ("m", "appearance") in report(mixed)


def test_notes_introduce_the_survey_explain_the_next_question_or_thank():
    def note(name, **cells):
        return {"type": "note", "name": name, "label": f"Text of {name}.", **cells}

    rows = [note("hello"), note("helpline"), YES_NO, note("middle"), {**YES_NO, "name": "q2"}]
    conditional = note("conditional", relevant="${kept} = 'yes'")
    calculated = note("calculated", hint="You are ${age}.")
    questionnaire = imported(*rows, conditional, calculated, note("bye"))
    definition = questionnaire.definition(Caps())
    assert definition["introduction"] == "Text of hello."
    assert definition["helpline"] == "Text of helpline."
    assert definition["thanks"] == "Text of bye."
    assert questions(questionnaire)[1]["help"] == "Text of middle."
    assert "reveal" in report(questionnaire)["conditional", "note"]
    assert "calculated" in report(questionnaire)["calculated", "note"]


@pytest.mark.parametrize(
    ("source", "condition", "options"),
    [
        ("select_one job", "${q} = 'a'", ["a"]),
        ("select_one job", "(${q}='a') or (${q} = \"c\")", ["a", "c"]),
        ("select_one job", "selected(${q}, 'a') or ${ q } = 'b'", ["a", "b"]),
        ("select_one job", "not(selected(${q}, 'a'))", ["b", "c"]),
        ("select_one job", "${q} != 'a'", ["b", "c"]),
        ("select_one job", "not(${q} = 'a')", ["b", "c"]),
        ("select_multiple job", "selected(${q}, 'b')", ["b"]),
        ("select_one points", "${q} >= 4", ["value_4", "value_5"]),
        ("select_one yn", "${q} = 'yes'", ["yes"]),
        ("acknowledge", "${q} = 'OK'", ["yes"]),
    ],
)
def test_a_condition_on_the_options_of_one_question_is_kept_on_a_later_page(
    source, condition, options
):
    rows = [{"type": source, "name": "q"}, {**YES_NO, "relevant": condition}]
    questionnaire = imported(*rows, skip_logic=True)
    assert questions(questionnaire)[1]["ask_if"] == {"question": "q", "options": options}
    assert len(questionnaire.definition(Caps())["pages"]) == 2
    without = imported(*rows)
    assert "ask_if" not in questions(without)[1]
    assert "everybody is asked" in report(without)["kept", "condition"]


@pytest.mark.parametrize(
    "condition",
    [
        "${q} = 'a' and ${q} = 'b'",
        "${q} = 'a' or ${x} = 'b'",
        "${nowhere} = 'a'",
        "${age} > 18",
        "not(selected(${ticks}, 'a'))",
        "${ticks} != 'a'",
        "count-selected(${ticks}) > 1",
        "${q} = 'a'" + " " * 30_000 + "x",
    ],
    ids=lambda condition: condition[:40],
)
def test_a_condition_without_a_counterpart_is_dropped_and_everybody_is_asked(condition):
    rows = [
        {"type": "select_one job", "name": "q"},
        {"type": "select_multiple job", "name": "ticks"},
        {"type": "integer", "name": "age", "constraint": ADULTS},
        {**YES_NO, "relevant": condition},
    ]
    questionnaire = imported(*rows, skip_logic=True)
    assert "ask_if" not in questions(questionnaire)[-1]
    assert "everybody is asked" in report(questionnaire)["kept", "condition"]


def test_equality_with_several_ticks_becomes_any_of_them_and_is_reported():
    rows = [
        {"type": "select_multiple job", "name": "q"},
        {"type": "begin group", "name": "g"},
        {**YES_NO, "relevant": "${q} = 'a'"},
        {"type": "end group"},
    ]
    questionnaire = imported(*rows, skip_logic=True)
    assert report(questionnaire)["kept", "condition"] == "is true if any of its options is ticked"


def test_conditions_of_a_group_and_its_question_are_too_many():
    group = {"type": "begin group", "name": "g", "relevant": "${q} = 'a'"}
    source = {"type": "select_one job", "name": "q"}
    inner = {**YES_NO, "relevant": "${q} = 'b'"}
    questionnaire = imported(source, group, YES_NO, inner, {"type": "end group"}, skip_logic=True)
    assert [bool(question.get("ask_if")) for question in questions(questionnaire)] == [
        False,
        True,
        False,
    ]


def test_earlier_answers_are_shown_with_skip_logic_only_and_others_are_named():
    rows = [
        {"type": "select_one job", "name": "q"},
        {"type": "begin group", "name": "g"},
        {"type": "select_one yn", "name": "then", "label": "At ${q} {now}?", "hint": "${then}"},
        {"type": "end group"},
    ]
    questionnaire = imported(*rows, skip_logic=True)
    assert questions(questionnaire)[1]["text"] == "At {q|…} {{now}}?"
    assert questions(questionnaire)[1]["help"] == "…"
    kind = "select_one yn"
    lost = "${then} is left out of its texts"
    shown = "shows “…” where an earlier answer is missing"
    label = "shows the label of an answer where ODK shows its name"
    assert report(questionnaire)["then", kind] == f"{shown}; {lost}; {label}"
    without = imported(*rows)
    assert questions(without)[1]["text"] == "At … {now}?"
    assert report(without)["then", kind] == f"${{q}} is left out of its texts; {lost}"


LOST = {
    "required": "yes",
    "required_message": "!",
    "default": "yes",
    "readonly": "true",
    "calculation": "1",
    "choice_filter": "x=1",
    "constraint": ". = 1",
    "constraint_message::English": "!",
    "guidance_hint": "Read aloud.",
    "appearance": "minimal",
    "media::image": "a.png",
    "bind::odk:length": "3",
    "instance::x": "1",
    "body::accept": "x",
    "trigger": "${x}",
    "my column": "1",
    "parameters": "seed=3",
}


def test_only_tags_of_html_are_removed_from_texts_and_lost_media_are_named():
    text = "If score<low or score>high, <b>under</b> <X> km, <median>?<!-- no --> <img src='a'>"
    questionnaire = import_questionnaire(
        form({"type": "select_one yn", "name": "q", "label": text}), "f.xlsx"
    )
    assert (
        questions(questionnaire)[0]["text"] == "If score<low or score>high, under <X> km, <median>?"
    )
    assert outcomes(questionnaire)["q", "dropped"] == "its pictures are left out"


def test_every_cell_that_does_not_arrive_is_named():
    questionnaire = imported({**YES_NO, **LOST}, version="3", style="pages")
    lost = report(questionnaire)
    for header in LOST.keys() - {"parameters"}:
        assert ("kept", header) in lost, header
    assert "seed" in lost["kept", "select_one yn"]
    assert {("settings", "version"), ("settings", "style")} <= lost.keys()

    choices = [("list_name", "name", "label", "media::image", "f"), ("yn", "yes", "", "a.png", "")]
    rows = [*choices, ("yn", "no", "", "", "x"), ("", "y", "", "", ""), ("rest", "a", "", "", "")]
    questionnaire = imported({**YES_NO, "required": "no", "": "stray"}, choices=rows)
    assert report(questionnaire).keys() == {
        ("yn", "media::image of options"),
        ("yn", "f of options"),
        ("y", "choice"),
        ("rest", "list of options"),
        ("kept", "column 5"),
    }


FORMS = ("or_other", "specify_other", "xlsform_spec_test", "yes_or_no_question")
ARRIVING = {"type", "name", "label", "hint", "relevant"}
TRUE_ANYWAY = {"field-list", "no"}


@pytest.mark.slow
@pytest.mark.reference
def test_a_published_form_without_a_usable_question_is_refused_with_a_reason_for_each_element():
    path = REFERENCE_DATA / "forms" / "group.xlsx"  # texts, and a number without bounds
    with pytest.raises(DefinitionError) as refused:
        import_questionnaire(path.read_bytes(), path.name)
    names = {place for place, _ in refused.value.mistakes}
    assert {row["name"] for row in survey_cells(path) if row["type"] != "end group"} <= names


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.parametrize("name", FORMS)
def test_published_forms_arrive_except_what_cannot_be_randomized(name):
    content = (REFERENCE_DATA / "forms" / f"{name}.xlsx").read_bytes()
    rows = survey_cells(REFERENCE_DATA / "forms" / f"{name}.xlsx")
    questionnaire = import_questionnaire(content, f"{name}.xlsx", skip_logic=True)
    outcome, reasons = {}, " ".join(element.how for element in questionnaire.elements)
    for element in questionnaire.elements:
        outcome.setdefault((element.name, element.kind), element.outcome)
    for row in rows:
        kind = " ".join(row["type"].split())
        if kind.startswith("end ") and kind != "end":
            continue
        assert (row["name"], kind) in outcome, row
        if outcome[row["name"], kind] != "dropped":
            for header in row.keys() - {"type", "name"}:
                arrives = parse_header(header).name in ARRIVING or row[header] in TRUE_ANYWAY
                is_named = (row["name"], header) in outcome or row[header] in reasons
                assert arrives or is_named, (row, header)
    selects = [row for row in rows if row["type"].startswith("select")]
    arrived = [row for row in selects if outcome[row["name"], row["type"]] != "dropped"]
    assert len(arrived) >= 0.95 * len(selects) > 0
    assert len(questions(questionnaire)) >= len(selects)


def survey_cells(path):
    """Return the nonempty cells of each row of the sheet survey, by header."""
    with closing(load_workbook(path, read_only=True, data_only=True)) as workbook:
        header, *rows = workbook["survey"].iter_rows(values_only=True)
    pairs = [zip(map(cell_text, header), map(cell_text, row), strict=True) for row in rows]
    cells = [{name: text for name, text in row if text} for row in pairs]
    return [{"name": f"row {i}", **row} for i, row in enumerate(cells, 2) if row]


TEXTS = st.one_of(
    st.sampled_from(
        [
            *("select_one l", "select_multiple l or_other", "rank l", "integer", "decimal", "date"),
            *("range", "note", "begin group", "end group", "begin repeat", "acknowledge", "yes"),
            *("table-list", "label", "list-nolabel", "likert", "${q}", "${q} = 'a'", ".>0 and .<9"),
            *(
                ". > '2020-02-30'",
                "today()",
                "start=1e9",
                "randomize=true",
                "l",
                "q",
                "a",
                "\u202e",
            ),
            *("not(selected(., 'a') and count-selected(.) > 1)", "x" * 2_000, "{q}", "-1", "=1"),
        ]
    ),
    st.text(max_size=12).filter(lambda text: text.isprintable()),
    st.integers(-5, 10**18),
    st.booleans(),
    st.none(),
)
HEADERS = st.sampled_from(
    [
        *("type", "name", "label", "label::French", "label::x", "hint", "relevant", "constraint"),
        *("parameters", "appearance", "required", "survey_step", "survey_unit", "list_name", "", 7),
        *("form_title", "form_id", "default_language", "survey_title::fr", "bind::a", "disabled"),
    ]
)
TABLES = st.lists(HEADERS, min_size=1, max_size=8, unique=True).flatmap(
    lambda headers: st.lists(
        st.lists(TEXTS, min_size=len(headers), max_size=len(headers)), max_size=8
    ).map(lambda rows: [headers, *rows])
)


@pytest.mark.web
@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(TABLES, TABLES, TABLES, st.booleans())
def test_arbitrary_cells_are_imported_or_refused_with_a_reason(survey, choices, values, skip_logic):
    survey = [["type", "name", *survey[0]], *([*row[:2], *row] for row in survey[1:])]
    choices = [["list_name", "name", *choices[0]], *(["l", *row[:1], *row] for row in choices[1:])]
    content = workbook(survey=survey, choices=choices, settings=values)
    try:
        questionnaire = import_questionnaire(content, "form.xlsx", skip_logic=skip_logic)
    except DefinitionError:
        return
    assert questionnaire.check(Caps()).mistakes or questions(questionnaire)
