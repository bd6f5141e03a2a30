"""A matrix is written once, and published as one scale question per row with one budget."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction
from typing import Any

import pytest

from survey.errors import DefinitionError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.conversion import definition_from, draft_from
from survey.questionnaire.drafts.edits import QuestionSheet
from survey.questionnaire.kinds.base import MatrixRow
from survey.questionnaire.ledger import ledger
from survey.questionnaire.loading import parse, source_of
from survey.questionnaire.validation import check
from survey.settings import Caps
from tests.surveys import MATRIX

CAPS = Caps()


@pytest.fixture
def raw() -> dict[str, Any]:
    return parse(MATRIX.encode(), "matrix.toml")


def published(raw: dict[str, Any]) -> Definition:
    return freeze(check(raw, CAPS), 1)


def mistakes(raw: dict[str, Any], **changes: Any) -> list[tuple[tuple[str | int, ...], str]]:
    changed = copy.deepcopy(raw)
    question = {**changed["pages"][0]["questions"][0], **changes}
    kept = {name: value for name, value in question.items() if value is not None}
    changed["pages"][0]["questions"][0] = kept
    with pytest.raises(DefinitionError) as error:
        check(changed, CAPS)
    return [
        (place, text)
        for place, (_, text) in zip(error.value.places, error.value.mistakes, strict=True)
    ]


def test_each_row_of_a_matrix_is_published_as_a_scale_with_an_equal_part_of_the_budget(raw):
    pay, hours, boss, other = published(raw).questions
    assert [q.id for q in (pay, hours, boss)] == ["work_pay", "work_hours", "work_boss"]
    assert (pay.type, pay.text) == ("scale", "How satisfied are you with each of these? Pay")
    assert pay.matrix == MatrixRow("work", "How satisfied are you with each of these?", "Pay")
    assert pay.stated == hours.stated == {"epsilon": "0.9"}
    assert pay.channel == hours.channel == boss.channel
    assert other.matrix is None


def test_the_rows_together_never_exceed_the_budget_of_their_matrix(raw):
    for budget, rows in ((Fraction("2.7"), 3), (Fraction("0.7"), 12), (Fraction(8), 5)):
        question = raw["pages"][0]["questions"][0]
        question["epsilon"] = budget
        question["rows"] = [{"id": f"r{i}", "text": f"Row {i}"} for i in range(rows)]
        definition = published(raw)
        (ratio,) = definition.topic_ratios.values()
        assert ratio == definition.questions[0].channel.ratio ** rows
        # Eleven digits: the exact ratio is rounded down, and nearly reaches the budget.
        assert 0.995 < math.log(ratio) / budget <= 1 + 1e-11, (budget, rows)


def test_the_ledger_adds_up_the_rows_of_a_matrix_as_one_topic(raw):
    (topic,) = ledger(published(raw)).topics
    assert topic.questions == ("work_pay", "work_hours", "work_boss")
    assert (topic.epsilon <= 2.7, topic.odds) == (True, "15")
    raw["pages"][0]["questions"][0]["topic"] = "Satisfaction"
    assert set(published(raw).topics) == {"Satisfaction"}


def test_a_matrix_is_drawn_whole_and_stands_for_its_rows_in_declarations(raw):
    raw["questions_per_person"] = 1
    assert published(raw).groups == (("work_pay", "work_hours", "work_boss"), ("old",))
    raw["pages"].append(
        {"questions": [{"id": "new", "type": "yes_no", "text": "New?", "epsilon": 1}]}
    )
    raw["together"] = [{"questions": ["old", "work"]}]
    groups = published(raw).groups
    assert groups == (("work_pay", "work_hours", "work_boss", "old"), ("new",))
    assert source_of(published(raw))["together"] == [{"questions": ["work", "old"]}]
    raw["together"] = [{"questions": ["old", "work_pay"], "joint": True}]
    assert "it is a row of a matrix" in mistakes(raw)[0][1]
    raw["together"] = [{"questions": ["old", "work"], "joint": True}]
    assert "it is a matrix" in mistakes(raw)[0][1]


def test_a_published_matrix_becomes_a_draft_and_the_same_definition_again(raw):
    definition = published(raw)
    content = draft_from(source_of(definition))
    matrix, _ = content.questions
    assert [row["id"] for row in matrix["rows"]] == ["pay", "hours", "boss"]
    assert matrix["rows"][0]["text"] == {"en": "Pay", "es": "El sueldo"}
    assert matrix["topic"] == {}, "the automatic topic must follow a changed text"
    assert published(definition_from(content)).canonical == definition.canonical


def test_a_translated_row_has_the_joined_text_of_its_language(raw):
    form = json.loads(published(raw).canonical)
    pay, hours, *_ = form["translations"]["es"]["pages"][0]["questions"]
    assert pay["text"] == "¿Qué tan satisfecho está con lo siguiente? El sueldo"
    assert hours["text"] == "¿Qué tan satisfecho está con lo siguiente? Working hours"
    assert hours["matrix"] == {"text": "¿Qué tan satisfecho está con lo siguiente?", "row": ""}


def test_mistakes_in_a_matrix_name_their_place_and_what_would_be_right(raw):
    place = ("pages", 0, "questions", 0)
    row = {"id": "a", "text": "A"}
    cases: list[tuple[dict[str, Any], tuple[str | int, ...], str]] = [
        ({"rows": None}, (*place, "rows"), "is missing"),
        ({"rows": [row]}, (*place, "rows"), "the nearest allowed number is 2"),
        ({"rows": [{"id": f"r{i}", "text": str(i)} for i in range(13)]}, (*place, "rows"), "is 12"),
        ({"rows": [row, {"id": "a", "text": "B"}]}, place, '"a" is the id of two rows'),
        ({"rows": [row, {"id": "b", "text": "a"}]}, place, '"a" is the text of two rows'),
        ({"rows": [row, {"id": "B", "text": "B"}]}, (*place, "rows", 1, "id"), "does not fit"),
        ({"text": "x" * 990}, place, "at most 1,000 fit"),
        ({"id": "x" * 56}, place, "more than 60 characters"),
        ({"epsilon": 9}, place, "the nearest allowed value is epsilon = 8"),
        ({"epsilon": None, "truth_probability": "1/2"}, place, "state epsilon, not truth_prob"),
        ({"mechanism": "forced_response"}, place, "does not exist for a matrix question"),
        (
            {"id": "work", "rows": [row, {"id": "b", "text": "B"}], "low": None},
            place,
            "low and high",
        ),
    ]
    for changes, expected_place, text in cases:
        found = mistakes(raw, **changes)
        assert any(at == expected_place and text in what for at, what in found), (changes, found)
    raw["pages"][0]["questions"][1]["id"] = "work_pay"
    assert any('"work_pay" is used twice' in text for _, text in mistakes(raw))


def test_a_condition_after_a_matrix_is_checked_at_its_own_place(raw):
    raw["pages"].append(
        {"questions": [{"id": "z", "type": "yes_no", "text": "Z?", "epsilon": 1, "ask_if": {}}]}
    )
    condition = {"question": "work_nothing", "options": ["value_1"]}
    raw |= {"allow_skip_logic": True}
    raw["pages"][1]["questions"][0]["ask_if"] = condition
    place, text = mistakes(raw)[0]
    assert place == ("pages", 1, "questions", 0, "ask_if", "question")
    assert "work_pay, work_hours, work_boss" in text
    condition["question"] = "work_boss"
    assert published(raw).questions[-1].ask_if is not None


def test_lines_of_a_drafts_matrix_keep_their_row_where_only_the_text_or_the_order_changes(raw):
    content = draft_from(raw)
    key = content.pages[0].questions[0]["key"]
    sheet = QuestionSheet(key, fixes_ids=True)

    def rows_after(text: str) -> list[tuple[str, str, str]]:
        values = {**sheet.values(content), "rows": text}
        rows = sheet.apply(content, values).question(key)["rows"]
        return [(r["id"], r["text"]["en"], r["text"].get("es", "")) for r in rows]

    assert sheet.values(content)["rows"] == "Pay\nWorking hours\nYour boss"
    assert rows_after("Your boss\n\nSalary\nWorking hours") == [
        ("boss", "Your boss", ""),
        ("salary", "Salary", ""),
        ("hours", "Working hours", ""),
    ]
    assert rows_after("Wages\nWorking hours\nYour boss")[0] == ("pay", "Wages", "El sueldo")
    assert rows_after("Pay\nHolidays\nWorking hours\nYour boss")[:3] == [
        ("pay", "Pay", "El sueldo"),
        ("holidays", "Holidays", ""),
        ("hours", "Working hours", ""),
    ]


def test_the_check_of_a_draft_counts_every_row_and_shows_one_figure_for_the_matrix(raw):
    content = draft_from(raw)
    key = content.pages[0].questions[0]["key"]
    result = check_draft(content, CAPS)
    assert list(result.published) == ["work_pay", "work_hours", "work_boss", "old"]
    assert result.own_epsilon(key) == pytest.approx(2.7, abs=1e-3)
    assert result.epsilon_shares[key] == pytest.approx(2.7 / 3.7, abs=1e-3)
    assert (result.strength_of(key), result.weak_keys) == ("weak", (key,))
    assert result.asked.n_groups == 2, "the rows are drawn together"
    broken = content.with_question(key, {**content.question(key), "rows": ()})
    (mistake,) = check_draft(broken, CAPS).of_question(key)
    assert mistake.field == "rows"
    assert mistake.text == "there are no rows yet; at least 2 are required"
