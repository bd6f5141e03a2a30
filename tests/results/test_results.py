"""Rows, charts and CSV contain exactly the estimator's numbers."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.estimator import proportions
from survey.questionnaire.canonical import freeze
from survey.results.charts import chart_svg
from survey.results.crosstab.table import CrosstabRow
from survey.results.difference.table import DifferenceRow
from survey.results.estimates.chart import file_chart, shares_chart
from survey.results.estimates.compute import estimate_question
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import EstimateRow, describe_estimate
from survey.results.exports.csv import column_names, to_csv
from survey.results.exports.xlsx import CodebookRow
from survey.results.number_format import percent
from survey.results.regression.table import RegressionRow
from survey.results.weighting.table import WeightingRow
from survey.settings import Caps
from survey.store import Tally
from tests.results.hostile import STARTS, TEXTS, hostile_rows

WIDE = "＝＋－＠"
"""Full-width characters that some spreadsheets treat as the usual signs."""

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def result_of(small, counts):
    n = sum(counts[0])
    tally = Tally(release=1, n=n, n_asked=[n] * len(counts), counts=counts)
    return SurveyResult(small, tally, NOW)


def test_rows_contain_the_estimates(small):
    counts = [[900, 1300, 800], [1000, 1100, 900]]
    result = result_of(small, counts)
    expected = proportions(counts[0], small.definition.questions[0].channel)
    rows = result.questions[0].shares
    for name in ("estimate", "mle", "std_error", "conf_low", "conf_high", "n_effective"):
        np.testing.assert_array_equal([getattr(row, name) for row in rows], getattr(expected, name))
    assert {row.method for row in rows} == {expected.method}
    assert [row.report_count for row in rows] == counts[0]
    assert [row.report_share for row in rows] == [0.3, 1300 / 3000, 800 / 3000]


def test_suppression_is_per_question_and_hides_every_number(small):
    result = result_of(small, [[20, 10, 10], [20, 10, 10]])
    for question in result.questions:
        assert question.disclosure == "hide"
        assert question.parts["shares"].missing > 0
        for row in question.rows:
            assert (row.report_count, row.report_share, row.estimate, row.conf_low) == (None,) * 4
            assert row.flag == "suppressed"


def test_estimates_outside_0_and_1_stay_in_table_and_csv_and_are_marked_in_the_chart(small):
    counts = [[11600, 78000, 10400], [33000, 34000, 33000]]
    question = result_of(small, counts).questions[0]
    assert question.rows[0].estimate < 0
    values = shares_chart(question)["data"]["values"]
    assert values[0]["outside"] == "below"
    assert values[0]["dot"] == 0
    row = next(csv.DictReader(io.StringIO(to_csv(question.rows))))
    assert float(row["estimate"]) == question.rows[0].estimate


def test_a_chart_is_svg_without_script_or_style_on_an_axis_that_begins_at_0(small):
    question = result_of(small, [[900, 1300, 800], [1000, 1100, 900]]).questions[0]
    svg = chart_svg(file_chart(question, "shares"))
    assert svg.startswith("<svg")
    assert "<script" not in svg
    assert "style=" not in svg
    assert ">0%</text>" in svg
    assert ">25%</text>" in svg
    assert json.dumps(file_chart(question, "shares"))


def test_estimates_in_words_name_the_interval(small):
    row = result_of(small, [[900, 1300, 800], [1000, 1100, 900]]).rows[0]
    assert describe_estimate(row) == (
        f"estimated {percent(row.estimate)}, between "
        f"{percent(row.conf_low)[:-1]} and {percent(row.conf_high)}"
    )
    assert describe_estimate(replace(row, estimate=None)) == "not enough responses yet"


@pytest.mark.security
@given(
    st.text(max_size=20),
    st.sampled_from(["", "\ufeff", '"', " ", "'", ' "']),
    st.sampled_from(["", *STARTS, *WIDE]),
)
def test_csv_text_is_never_a_formula_and_numbers_stay_numbers(small_row, text, before, start):
    label = before + start + text
    row = replace(small_row, option_label=label, question_text=label)
    (parsed,) = csv.DictReader(io.StringIO(to_csv([row]), newline=""))
    assert tuple(parsed) == column_names()
    visible = parsed["option_label"].lstrip("\ufeff\" '")
    if parsed["option_label"] != label:
        assert parsed["option_label"] == "'" + label
    else:
        assert not visible.startswith((*STARTS, *WIDE))
    assert float(parsed["estimate"]) == -0.25
    assert parsed["wave"] == ""


@pytest.mark.security
def test_csv_texts_that_start_a_formula_get_an_apostrophe():
    text = to_csv(hostile_rows(), CodebookRow)
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    for column in ("question_text", "option_label"):
        assert [row[column] for row in rows] == [f"'{hostile}" for hostile in TEXTS]
    assert {row["epsilon"] for row in rows} == {"-1.0"}


@pytest.fixture(scope="module")
def small_row():
    from survey.questionnaire.loading import load
    from survey.store import PublishedSurvey
    from tests.conftest import SMALL, TODAY

    definition = freeze(load(SMALL.encode(), "small.toml", Caps()), 1)
    survey = PublishedSurvey(
        key=1,
        slug="small",
        version=1,
        sha256=definition.sha256,
        state="open",
        changed=TODAY,
        canonical=definition.canonical,
    )
    counts = [[900, 1300, 800], [1000, 1100, 900]]
    row = SurveyResult(survey, Tally(1, 3000, [3000, 3000], counts), NOW).rows[0]
    return replace(row, estimate=-0.25)


@pytest.mark.parametrize("kind", [CrosstabRow, DifferenceRow, WeightingRow, RegressionRow])
def test_every_csv_names_a_survey_a_question_and_an_answer_as_that_of_estimates_does(kind):
    before = ("first_", "second_", "against_", "predictor_", "reference_")
    names = [name for name in column_names(kind) if re.search("survey|question|option|level", name)]
    bare = {re.sub(f"^({'|'.join(before)})", "", name) for name in names}
    assert names[:2] == ["survey_id", "survey_version"]
    assert bare == {"survey_id", "survey_version", "question_id", "option_id", "option_label"} | {
        "conf_level"
    }
    assert bare <= set(column_names(EstimateRow))


def test_a_failing_question_shows_an_error_and_leaves_the_others_intact(small, monkeypatch, caplog):
    counts = [[900, 1300, 800], [1000, 1100, 900]]
    expected = result_of(small, counts).questions[1]

    def fail(question, *arguments):
        if question.id == "fell_asleep":
            raise ZeroDivisionError("float division by zero")
        return estimate_question(question, *arguments)

    monkeypatch.setattr("survey.results.estimates.result.estimate_question", fail)
    failed, intact = result_of(small, counts).questions
    assert intact.rows == expected.rows
    assert {(row.estimate, row.flag) for row in failed.rows} == {(None, "not_estimable")}
    assert [row.option_id for row in failed.rows] == [
        row.option_id for row in result_of(small, counts).questions[0].rows
    ]
    assert failed.caveats(closed=False) == [
        "This question could not be estimated because of an error in the software "
        "(ZeroDivisionError)."
    ]
    assert "small: question fell_asleep cannot be estimated" in caplog.text


def test_an_option_without_asked_respondents_is_suppressed_and_the_page_is_shown():
    """With 25 respondents and one of twelve options each, some options have no report."""
    from survey.questionnaire.loading import load
    from survey.store import PublishedSurvey
    from tests.conftest import TODAY

    options = ", ".join(f'{{id = "o{i}", label = "{i}"}}' for i in range(12))
    text = f"""
slug = "many"
title = "Many options"
[[pages]]
[[pages.questions]]
id = "many"
type = "multiple_choice"
mechanism = "sampled_options"
text = "Which of these?"
epsilon = 1
options = [{options}]
"""
    definition = freeze(load(text.encode(), "many.toml", Caps()), 1)
    survey = PublishedSurvey(1, "many", 1, definition.sha256, "open", TODAY, definition.canonical)
    channel = definition.questions[0].channel
    n_asked = [0, 0, *[2] * (channel.m - 2)]
    yes = [0, 0, *[1] * (channel.m - 2)]
    (question,) = SurveyResult(
        survey, Tally(1, sum(n_asked), [sum(n_asked)], [n_asked + yes]), NOW
    ).questions
    assert question.failure == ""
    assert question.disclosure == "hide"
    assert question.parts["shares"].missing > 0
    assert {row.estimate for row in question.rows} == {None}
