"""Imports from LimeSurvey: what can be randomized arrives; the rest is named with its reason."""

from __future__ import annotations

import random
import time

import pytest

from survey.errors import DefinitionError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.error_messages import shortened
from survey.questionnaire.imports import import_questionnaire
from survey.questionnaire.validation import check
from survey.settings import Caps
from tests.questionnaire.limesurvey_files import Item, every_format, tab_separated, tables, xml

ANSWERS = (("A1", "Bad"), ("A2", "Fair"), ("A3", "Good"))
ROWS = (("SQ001", "Pay"), ("SQ002", "Hours"))
BOUNDS = {"min_num_value_n": "0", "max_num_value_n": "80", "num_value_int_only": "1"}

TYPES = {
    "L": (Item("q", "L", answers=ANSWERS), [{"type": "single_choice"}]),
    "!": (Item("q", "!", answers=ANSWERS), [{"type": "single_choice"}]),
    "O": (Item("q", "O", answers=ANSWERS), [{"type": "single_choice"}]),
    "Y": (Item("q", "Y"), [{"type": "yes_no"}]),
    "G": (Item("q", "G"), [{"type": "single_choice"}]),
    "I": (Item("q", "I"), [{"type": "single_choice"}]),
    "5": (Item("q", "5"), [{"type": "scale", "low": 1, "high": 5}]),
    "A": (Item("q", "A", parts=ROWS), [{"type": "matrix", "low": 1, "high": 5}]),
    "B": (Item("q", "B", parts=ROWS), [{"type": "matrix", "low": 1, "high": 10}]),
    "C": (Item("q", "C", parts=ROWS), [{"type": "matrix"}]),
    "E": (Item("q", "E", parts=ROWS), [{"type": "matrix"}]),
    "F": (Item("q", "F", parts=ROWS, answers=ANSWERS), [{"type": "matrix"}]),
    "H": (Item("q", "H", parts=ROWS[:1], answers=ANSWERS), [{"type": "scale"}]),
    "1": (
        Item("q", "1", parts=ROWS, answers=(*ANSWERS, ("B1", "No", "1"), ("B2", "Yes", "1"))),
        [{"id": "q_1", "type": "matrix"}, {"id": "q_2", "type": "matrix"}],
    ),
    "M": (
        Item("q", "M", parts=(*ROWS, ("x", "Else")), attributes={"max_answers": "2"}),
        [{"type": "multiple_choice", "max_ticks": 2}],
    ),
    "P": (Item("q", "P", parts=ROWS), [{"type": "multiple_choice"}]),
    "M with one exclusive option": (
        Item("q", "M", parts=(*ROWS, ("no", "Neither")), attributes={"exclude_all_others": "no"}),
        [{"type": "multiple_choice", "none_of_these": "Neither"}],
    ),
    "N": (
        Item("q", "N", attributes={**BOUNDS, "suffix": "hours"}),
        [{"type": "number", "low": "0", "high": "80", "unit": "hours"}],
    ),
    "K": (
        Item("q", "K", parts=ROWS, attributes=BOUNDS),
        [{"id": "q_sq001", "text": "What? Pay", "high": "80"}, {"id": "q_sq002"}],
    ),
    "K with sliders": (
        Item(
            "q",
            "K",
            parts=ROWS[:1],
            attributes={"slider_layout": "1", "slider_min": "0"}
            | {"slider_max": "10", "slider_accuracy": "2"},
        ),
        [{"type": "number", "slider": True, "step": "2"}],
    ),
    "D": (
        Item("q", "D", attributes={"date_min": "2020", "date_max": "2021-06-30 00:00"}),
        [{"type": "date", "low": "2020-01-01", "high": "2021-06-30"}],
    ),
    "R": (
        Item("q", "R", answers=ANSWERS, attributes={"random_order": "1"}),
        [{"type": "ranking", "shuffle_options": True}],
    ),
    ":": (
        Item("q", ":", parts=(*ROWS, ("X1", "Now", "1"), ("X2", "Then", "1"))),
        [{"id": "q_x1", "type": "matrix", "low": 1, "high": 10}, {"text": "What? Then"}],
    ),
    ": with ticks": (
        Item(
            "q",
            ":",
            parts=(*ROWS, ("X1", "Now", "1"), ("X2", "Then", "1")),
            attributes={"multiflexible_checkbox": "1"},
        ),
        [{"id": "q_sq001", "type": "multiple_choice"}, {"id": "q_sq002"}],
    ),
}


def imported(*items, name="new.lss", skip_logic=False):
    content = every_format({"Group": items})[name]
    return import_questionnaire(content, name, skip_logic=skip_logic)


def questions(result):
    """Return the questions of the definition, which must have no mistakes."""
    assert result.check(Caps()).mistakes == ()
    definition = result.definition(Caps())
    assert freeze(check(definition, Caps()), 1).questions
    return [question for page in definition["pages"] for question in page["questions"]]


def outcomes(result):
    return {
        (element.name, element.outcome, element.kind): element.how for element in result.elements
    }


def dropped(result):
    return {
        element.kind: element.how for element in result.elements if element.outcome == "dropped"
    }


@pytest.mark.slow
def test_each_type_that_can_be_randomized_arrives_from_every_format():
    for label, (item, expected) in TYPES.items():
        for name in every_format({"Group": [item]}):
            result = imported(item, name=name)
            asked = questions(result)
            assert len(asked) == len(expected), (label, name)
            for question, form in zip(asked, expected, strict=True):
                assert form.items() <= question.items(), (label, name, question)
            assert not dropped(result), (label, name)
            if item.answers or item.parts:
                texts = [text for _, text, *_ in (*item.answers, *item.parts)]
                assert all(text in repr(asked) for text in texts), (label, name)


MIXED = {
    "First": [
        Item("intro", "X", {"en": "<p>Hello &amp; welcome</p>", "de": "Hallo"}),
        Item("job", "L", {"en": "Work?", "de": "Arbeit?"}, "Think.", answers=ANSWERS),
    ],
    "Second": [Item("pay", "M", {"en": "Why?", "de": "Warum?"}, parts=ROWS)],
}


def test_all_formats_of_one_survey_give_the_same_definition_in_all_languages():
    definitions = [
        import_questionnaire(content, name).definition(Caps())
        for name, content in every_format(MIXED, ["en", "de"]).items()
    ]
    assert definitions[0] == definitions[1] == definitions[2]
    disordered = {name: rows[::-1] for name, rows in tables(MIXED, is_old=False).items()}
    ordered = import_questionnaire(xml(tables(MIXED, is_old=False)), "s.lss")
    assert import_questionnaire(xml(disordered), "s.lss").definition(Caps()) == ordered.definition(
        Caps()
    )
    definition = definitions[0]
    assert definition["title"] == {"en": "Work", "de": "Arbeit"}
    assert definition["introduction"] == {"en": "Hello & welcome", "de": "Hallo"}
    assert definition["thanks"] == {"en": "Thanks", "de": "Thanks"}
    assert [page["title"]["en"] for page in definition["pages"]] == ["First", "Second"]
    assert definition["pages"][0]["questions"][0]["text"] == {"en": "Work?", "de": "Arbeit?"}


def test_a_variant_of_a_language_arrives_under_its_tag_and_a_second_one_is_named():
    made = tables({"Group": [Item("q", "Y", "Arbeiten Sie?")]}, is_old=False)
    made["surveys"][0]["language"] = "de-informal"
    for table in ("group_l10ns", "question_l10ns"):
        rows = made[table]
        made[table] = [
            {**row, "language": tag, **({"question": tag} if tag != "de-informal" else {})}
            for row in rows
            for tag in ("de-informal", "de", "nl-informal", "x1")
        ]
    result = import_questionnaire(xml(made), "s.lss")
    definition = result.definition(Caps())
    assert definition["language"] == "de"
    (question,) = questions(result)
    assert question["text"] == {"de": "Arbeiten Sie?", "nl": "nl-informal"}
    languages = {e.name: e.outcome for e in result.elements if e.kind == "language"}
    assert languages == {
        "de-informal": "changed",
        "nl-informal": "changed",
        "de": "dropped",
        "x1": "dropped",
    }


def test_an_element_that_cannot_be_randomized_is_dropped_with_its_reason():
    cases = {
        "free text": [Item("x", type_) for type_ in ("S", "T", "U", "Q", ";")],
        "files": [Item("x", "|")],
        "calculated": [Item("x", "*")],
        "introduction": [Item("x", "X", "Half way")],
        "lowest and highest": [
            Item("x", "N", attributes={"min_num_value_n": "0"}),
            Item("x", "D", attributes={"date_min": "{today}", "date_max": "2030"}),
        ],
        "3 to 6": [Item("x", "R", answers=ANSWERS[:2])],
        "hidden": [Item("x", "Y", attributes={"hidden": "1"})],
        "fewer than two": [Item("x", "L", answers=ANSWERS[:1]), Item("x", "F", parts=ROWS)],
        "whole numbers": [
            Item("x", ":", parts=(*ROWS, ("c", "C", "1")), attributes={"multiflexible_max": "5000"})
        ],
        "no counterpart": [Item("x", "~")],
    }
    for words, items in cases.items():
        for item in items:
            for name in every_format({}):
                result = imported(Item("kept", "Y"), item, name=name)
                assert [question["id"] for question in questions(result)] == ["kept"]
                why = [e.how for e in result.elements if e.outcome == "dropped"]
                assert any(words in reason for reason in why), (words, item.type, name, why)


def test_everything_that_a_question_loses_is_named():
    item = Item(
        "q",
        "M",
        "<img src='x.png'>Dear {TOKEN:FIRSTNAME}, <a href='y'>what</a>?",
        parts=(*ROWS, ("none", "None"), ("never", "Never")),
        attributes={
            "array_filter": "other",
            "exclude_all_others": "none;never",
            "min_answers": "1",
            "time_limit": "30",
            "em_validation_q": "count(q) > 1",
            "brand_new_attribute": "x",
            "display_columns": "3",
        },
        settings={"mandatory": "Y", "preg": "/a/", "other": "Y", "relevance": "age() > 3"},
    )
    for name in every_format({}):
        result = imported(item, name=name)
        (question,) = questions(result)
        assert question["text"] == "Dear …, what?"
        assert {
            *("array_filter", "exclude_all_others", "min_answers", "time_limit", "em_validation_q"),
            *("brand_new_attribute", "mandatory", "validation", "condition"),
        } == set(dropped(result)), name
        changed = outcomes(result)["q", "changed", "multiple choice"]
        for words in ("{TOKEN:FIRSTNAME}", "links", "pictures", "other answers"):
            assert words in changed


def test_tables_and_settings_without_a_counterpart_are_named():
    made = tables({"Group": [Item("q", "Y")]}, is_old=True)
    made["surveys"][0] |= {"ipaddr": "Y", "assessments": "Y", "admin": "Me", "format": "G"}
    made["surveys_languagesettings"][0]["surveyls_email_invite"] = "Come"
    made["quota"] = [{"id": "1"}, {"id": "2"}]
    made["new_table"] = [{"id": "1"}]
    made["defaultvalues"] = [{"qid": made["questions"][0]["qid"], "defaultvalue": "Y"}]
    result = import_questionnaire(xml(made), "s.lss")
    reasons = dropped(result)
    assert {"ipaddr", "assessments", "emails", "quota, 2 rows", "new_table, 1 rows"} <= set(reasons)
    assert "default answer" in reasons
    assert "admin, format" in reasons["settings"]


JOB = Item("job", "L", answers=ANSWERS)
SHOWN = "shows “…” where an earlier answer is missing"
PIPED_TEXTS = {
    "At {job.shown} {TOKEN:X}?": ("At {job|…} …?", {SHOWN, "{TOKEN:X} is left out of its texts"}),
    "At {INSERTANS:1X10X11}?": ("At {job|…}?", {SHOWN}),
    "For {hours.NAOK} of { 24 }?": ("For {hours|…} of {{ 24 }}?", {SHOWN}),
    "<b>{sums_SQ002}</b>?": ("{sums_sq002|…}?", {SHOWN}),
    "At { job }, {job}?": (
        "At {{ job }}, {job|…}?",
        {SHOWN, "shows the label of an answer where LimeSurvey shows its code"},
    ),
    "{ticks.shown} {rows_SQ001} {later}?": (
        "… … …?",
        {f"{{{name}}} is left out of its texts" for name in ("ticks.shown", "rows_SQ001", "later")},
    ),
}


def test_texts_show_earlier_answers_on_a_later_page_with_skip_logic_only():
    for text, (shown, changes) in PIPED_TEXTS.items():
        items = [
            Item("job", "L", answers=ANSWERS),
            Item("hours", "N", attributes=BOUNDS),
            Item("sums", "K", parts=ROWS, attributes=BOUNDS),
            Item("ticks", "M", parts=ROWS),
            Item("rows", "A", parts=ROWS),
            Item("then", "Y", text, help=text),
            Item("later", "Y"),
        ]
        result = imported(*items, skip_logic=True)
        then = questions(result)[-2]
        assert (then["text"], then["help"]) == (shown, shown)
        assert set(outcomes(result)["then", "changed", "yes or no"].split("; ")) == changes
        page = outcomes(result).get(("then", "changed", "text"), "")
        assert ("was moved to a page after the question" in page) == (SHOWN in changes), text
        without = imported(*items)
        assert "{" not in questions(without)[-2]["text"].replace("{ ", "")
        assert SHOWN not in outcomes(without)["then", "changed", "yes or no"]


def test_matrices_and_texts_that_differ_between_languages_show_no_earlier_answers():
    text = {"en": "At {job.shown}?", "de": "Dort?"}
    content = every_format(
        {"Group": [JOB, Item("q", "Y", text), Item("m", "A", text["en"], parts=ROWS)]},
        languages=("en", "de"),
    )
    for name, file in content.items():
        result = import_questionnaire(file, name, skip_logic=True)
        _, plain, matrix = questions(result)
        assert plain["text"] == {"en": "At …?", "de": "Dort?"}
        assert "At …?" in str(matrix["text"])
        lost = "{job.shown} is left out of its texts"
        assert outcomes(result)["q", "changed", "yes or no"] == lost
        assert outcomes(result)["m", "changed", "array, 5 points"] == lost


CONDITIONS = [
    (JOB, 'job.NAOK == "A1"', ["a1"]),
    (JOB, '((job.NAOK == "A1"))', ["a1"]),
    (JOB, "job != 'A1'", ["a2", "a3"]),
    (JOB, '((job.NAOK == "A1" or job.NAOK == "A3"))', ["a1", "a3"]),
    (JOB, "{job eq 'A2'}", ["a2"]),
    (Item("job", "5"), "job.NAOK >= 4", ["value_4", "value_5"]),
    (Item("job", "Y"), '((job.NAOK == "N"))', ["no"]),
    (Item("job", "M", parts=ROWS), '((job_SQ002.NAOK == "Y"))', ["sq002"]),
]


def test_an_equation_on_one_earlier_question_becomes_its_condition():
    for source, equation, options in CONDITIONS:
        item = Item("then", "Y", settings={"relevance": equation})
        for name in every_format({}):
            first, second = questions(imported(source, item, name=name, skip_logic=True))
            assert second["ask_if"] == {"question": first["id"], "options": options}, equation
        result = imported(source, item)
        assert "ask_if" not in questions(result)[1]
        assert "not switched on" in dropped(result)["condition"]


def test_rows_of_old_conditions_become_a_condition():
    made = tables({"Group": [JOB, Item("then", "Y")]}, is_old=True)
    ids = {row["title"]: row["qid"] for row in made["questions"]}
    field = f"1X10X{ids['job']}"
    made["conditions"] = [
        {"qid": ids["then"], "cqid": ids["job"], "cfieldname": field, "method": "==", "value": code}
        for code in ("A1", "A2")
    ]
    _, then = questions(import_questionnaire(xml(made), "s.lss", skip_logic=True))
    assert then["ask_if"] == {"question": "job", "options": ["a1", "a2"]}


def test_an_old_name_of_an_option_is_found_by_the_id_of_its_question():
    for code in ("SQ002", "2"):
        job = Item("job", "M", parts=(("1", "Pay"), (code, "Hours")))
        made = tables({"Group": [job, Item("then", "Y")]}, is_old=True)
        qid = made["questions"][0]["qid"]
        made["questions"][1]["relevance"] = f'((1X10X{qid}{code}.NAOK == "Y"))'
        first, then = questions(import_questionnaire(xml(made), "s.lss", skip_logic=True))
        assert then["ask_if"]["options"] == [first["options"][1]["id"]], code


def test_a_condition_without_a_counterpart_is_dropped_and_everybody_is_asked():
    equations = [
        'job == "A1" and q2 == "A1"',
        'count(job) > 1 and job == "A1"',
        'later == "A1"',
        "!is_empty(job)",
        'job == "missing"',
        "job == " + " " * 900_000,
    ]
    for equation in equations:
        items = [JOB, Item("then", "Y", settings={"relevance": equation}), Item("later", "Y")]
        result = import_questionnaire(
            xml(tables({"G": items}, is_old=False)), "s.lss", skip_logic=True
        )
        assert "ask_if" not in questions(result)[1]
        assert "everybody is asked this" in dropped(result)["condition"], equation[:40]


def rows_of(number):
    return b"<document><questions><rows>" + b"<row/>" * number + b"</rows></questions></document>"


LAUGHS = (
    b"<!DOCTYPE d ["
    + b"".join(
        b'<!ENTITY e%d "%s">' % (i, b"&e%d;" % (i - 1) * 10 if i else b"ha" * 100)
        for i in range(12)
    )
    + b"]><document><questions>&e11;</questions></document>"
)
HOSTILE = {
    "laughs.lss": (LAUGHS, "document type"),
    "file.lss": (
        b'<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/passwd">]><document>&e;</document>',
        "document type",
    ),
    "dtd.lss": (b'<!DOCTYPE d SYSTEM "http://127.0.0.1:9/x.dtd"><document/>', "document type"),
    "rows.lss": (rows_of(140_000), "more than 50,000 rows"),
    "million.lss": (rows_of(1_000_000), "larger than"),
    "deep.lss": (b"<a>" * 200_000, "nested too deeply"),
    "cells.lss": (b"<a>" + b"<a/>" * 240_000, "cannot be parsed"),
    "encoding.lss": (b'<?xml version="1.0" encoding="nothing"?><document/>', "cannot be parsed"),
    "empty.lss": (b"", "cannot be parsed"),
    "other.lss": (b"<document><rows/></document>", "no questions"),
    "tags.lss": (b"<document><questions><rows><row>" + b"&lt;a" * 190_000, "cannot be parsed"),
    "empty.txt": (b"", "first row"),
    "other.txt": (b"a\tb\nc\td", "first row"),
    "latin.txt": (b"class\t\xff", "not UTF-8"),
    "rows.txt": (b"class\ttype/scale\tname\ttext\n" + b"Q\n" * 400_000, "more than 50,000 rows"),
    "quote.txt": (b'class\ttype/scale\tname\ttext\n"' + b"x" * 900_000, "field larger"),
    "unclosed.txt": (
        b'class\ttype/scale\tname\ttext\nQ\tY\ta\tA?\nQ\tY\tb\t"B?\nQ\tY\tc\tC?\n',
        "line 3, such as a quote without end",
    ),
}


@pytest.mark.slow
def test_a_hostile_file_is_refused_quickly_with_its_reason():
    for name, (content, words) in HOSTILE.items():
        start = time.process_time()
        with pytest.raises(DefinitionError, match=words):
            import_questionnaire(content, name)
        assert time.process_time() - start < 3, name


@pytest.mark.slow
def test_a_file_with_too_many_questions_or_options_is_read_in_time():
    head = b"class\ttype/scale\tname\ttext\nQ\tY\tfirst\tFine?\n"
    start = time.process_time()
    many = head + b"".join(b"Q\tY\tq%d\tWhat?\n" % i for i in range(5_000))
    with pytest.raises(DefinitionError, match="more than 1,000 questions"):
        import_questionnaire(many, "s.txt")
    options = head + b"Q\tL\tjob\tWhat?\n" + b"".join(b"A\t0\t%d\tx\n" % i for i in range(5_000))
    result = import_questionnaire(options, "s.txt")
    assert "5,000 options" in outcomes(result)["job", "dropped", "list, radio"]
    assert time.process_time() - start < 5


def test_long_texts_full_of_markup_are_read_in_time():
    for text in ("<a " * 120_000, "{x" * 300_000, "&lt;" * 90_000, "<script>" * 60_000):
        item = Item("q", "Y", "Fine?", help=text)
        start = time.process_time()
        content = tab_separated({"G": [item]})
        with pytest.raises(DefinitionError):  # a value of the file is too long
            import_questionnaire(content, "s.txt")
        import_questionnaire(xml(tables({"G": [item]}, is_old=False)), "s.lss")
        assert time.process_time() - start < 5


@pytest.mark.web
@pytest.mark.slow
def test_changed_bytes_and_random_values_raise_nothing_but_a_definition_error():
    rng = random.Random(5)
    items = [item for item, _ in TYPES.values()]
    items = [
        Item(
            f"q{i}",
            item.type,
            item.text,
            item.help,
            item.parts,
            item.answers,
            item.attributes,
            {"relevance": "((q0.NAOK == 'A1'))"},
        )
        for i, item in enumerate(items)
    ]
    files = list(every_format({"G": items}).items())
    values = [
        b"",
        b"-1",
        b"9" * 30,
        b"1e9",
        b"{q0}",
        b"<b>",
        b"\xe2\x80\xae",
        b"0",
        b"Y",
        b"A1",
        b"\t",
        b"\n",
    ]
    for _ in range(60):
        name, content = rng.choice(files)
        changed = content
        for _ in range(rng.randrange(1, 12)):
            place = rng.randrange(len(changed))
            changed = changed[:place] + rng.choice(values) + changed[place + rng.randrange(9) :]
        try:
            result = import_questionnaire(changed, name, skip_logic=rng.random() < 0.5)
        except DefinitionError:
            continue
        assert result.check(Caps()).mistakes or questions(result)


@pytest.mark.web
@pytest.mark.slow
def test_random_attributes_and_relations_are_imported_or_reported():
    rng = random.Random(6)
    parts = [
        "",
        "1",
        "0",
        "-5",
        "10",
        "99999999999999999999",
        "0.5",
        "abc",
        "{x}",
        "2020-01-01",
        "Y",
    ]
    keys = sorted(
        {key for item, _ in TYPES.values() for key in item.attributes}
        | {"hidden", "suffix", "slider_layout", "multiflexible_min", "multiflexible_step"}
    )
    kinds = [item.type for item, _ in TYPES.values()]
    for _ in range(80):
        items = [
            Item(
                rng.choice(["a", "b", "é", "1", "x" * 80]),
                rng.choice(kinds),
                rng.choice(["", "What?", "\u202e", "<br>"]),
                parts=rng.choices(
                    [*ROWS, ("", ""), ("SQ001", "Now", "1"), ("z", "Z", "7")], k=rng.randrange(5)
                ),
                answers=rng.choices([*ANSWERS, ("", ""), ("A1", "B", "1")], k=rng.randrange(5)),
                attributes={key: rng.choice(parts) for key in rng.sample(keys, 4)},
                settings={
                    "other": rng.choice(["Y", "N"]),
                    "relevance": rng.choice(["1", "a == 'A1'"]),
                },
            )
            for _ in range(3)
        ]
        for name, content in every_format({"G": items}).items():
            try:
                result = import_questionnaire(content, name, skip_logic=True)
            except DefinitionError:
                continue
            assert result.check(Caps()).mistakes or questions(result)
            reported = " ".join(element.name for element in result.elements)
            silent = [item for item in items if shortened(item.code) not in reported]
            assert silent == [], name
