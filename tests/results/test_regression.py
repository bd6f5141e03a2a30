"""Regressions of a question on others and on the group."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError, NotFoundError
from survey.estimator import Randomized, regression
from survey.results.joint_counts import count_combinations
from survey.results.regression.compute import (
    RegressionRequest,
    compute_regression,
    regression_questions,
)
from survey.results.regression.sentences import (
    caveats,
    format_odds_ratio,
    null_statement,
    paper_sentences,
)
from survey.results.request import IntervalOptions
from tests.cases import each_case
from tests.parquet.reports import fill
from tests.parquet.reports import published as published_kinds
from tests.results.populations import SHARES, add_people, shares_by_first_answer


def regress(store, survey, name, predictors, options=None, baseline="", penalty=""):
    """Regress a question on predictors given by their ids."""
    request = RegressionRequest(name, tuple(predictors), baseline, penalty=penalty)
    return compute_regression(store, survey, request, options or IntervalOptions())


def codes_of(store, survey):
    """Return the codes of all released reports, shape (n, 2), and their strata."""
    parts = list(store.block_columns(survey.key, [0, 1]))
    codes = [
        np.stack([np.frombuffer(column.data, np.uint8) for column in pair], axis=1)
        for pair in parts
    ]
    strata = [pair[0].stratum for pair in parts for _ in range(pair[0].n)]
    return np.concatenate(codes).astype(int), np.array(strata)


def test_combinations_are_counted_per_group(store, small):
    add_people(store, small, 400, "north", seed=1)
    add_people(store, small, 300, "south", seed=2)
    result = count_combinations(store, small, [0, 1])
    codes, strata = codes_of(store, small)
    assert result.groups == ("north", "south")
    for code, group, times in zip(result.codes, result.group, result.times, strict=True):
        alike = (codes == code).all(axis=1) & (strata == result.groups[group])
        assert alike.sum() == times
    assert result.times.sum() == 700


def test_combinations_count_only_respondents_who_were_asked_all_questions(store):
    survey = published_kinds(store, ["choice", "coins", "mood"], "questions_per_person = 2\n")
    fill(store, survey, 900, drawn=0.5)
    is_asked = [
        (np.frombuffer(a.data, np.uint8)[::2] & np.frombuffer(b.data, np.uint8)[::2]).sum()
        for a, b in store.block_columns(survey.key, [0, 1])
    ]
    assert count_combinations(store, survey, [0, 1]).times.sum() == sum(is_asked)


@pytest.mark.web
def test_the_coefficients_equal_those_of_a_fit_to_single_reports(store, small):
    add_people(store, small, 1200, "north", shares_by_first_answer(0.5), 1)
    add_people(store, small, 800, "south", shares_by_first_answer(0.3), 2)
    result = regress(store, small, "fell_asleep", ["pressure", "link"], IntervalOptions(level=0.9))
    codes, strata = codes_of(store, small)
    channels = [question.channel for question in small.definition.questions]
    expected = regression(
        codes[:, 0],
        channels[0],
        (strata == "south").astype(float),
        randomized=[Randomized("pressure", codes[:, 1], channels[1])],
        baseline=1,
        level=0.9,
    )
    rows = result.rows
    assert [row.option_id for row in rows] == ["yes"] * 4 + ["prefer_not_to_say"] * 4
    assert {row.against_option_id for row in rows} == {"no"}
    assert [(row.predictor_id, row.predictor_option_id) for row in rows[:4]] == [
        ("", ""),
        ("link", "south"),
        ("pressure", "once"),
        ("pressure", "often"),
    ]
    np.testing.assert_allclose([row.coefficient for row in rows], expected.estimate, atol=1e-4)
    np.testing.assert_allclose([row.std_error for row in rows], expected.std_error, rtol=1e-3)
    for row in rows:
        assert row.odds_ratio == pytest.approx(math.exp(row.coefficient))
        assert (row.conf_low or 0) < row.odds_ratio < (row.conf_high or math.inf)
    truth = math.log((0.3 / 0.7) / (0.5 / 0.5))
    assert abs(rows[1].coefficient - truth) < 4 * rows[1].std_error


def test_the_baseline_of_the_odds_can_be_chosen(store, small):
    add_people(store, small, 4000)
    result = regress(store, small, "fell_asleep", ["pressure"], baseline="yes")
    default = regress(store, small, "fell_asleep", ["pressure"])
    assert [row.option_id for row in result.rows[:3]] == ["no"] * 3
    for turned_row, row in zip(result.rows[:3], default.rows[:3], strict=True):
        assert turned_row.coefficient == pytest.approx(-row.coefficient, abs=1e-4)


def test_sentences_and_caveats_name_the_method(store, small):
    add_people(store, small, 6000)
    result = regress(store, small, "fell_asleep", ["pressure"])
    model, first = paper_sentences(result)[:2]
    assert "multinomial logistic regression by maximum likelihood" in model
    assert "6,000 reports" in model
    assert "The estimated odds of “Yes” against “No” were" in first
    assert any("bias odds ratios towards 1" in text for text in caveats(result))
    penalized = regress(store, small, "fell_asleep", ["pressure"], penalty="firth")
    assert "by Firth’s penalized likelihood" in paper_sentences(penalized)[0]


def test_undetermined_coefficients_are_flagged_and_explained(store, small):
    nobody = np.array([[0.40, 0.25, 0.35], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    # Enough reports to show every table, although only the randomization reports "no".
    add_people(store, small, 20_000, shares=nobody, seed=12)
    result = regress(store, small, "fell_asleep", ["pressure"])
    flags = {row.flag for row in result.rows}
    assert "not_determined" in flags
    assert all(row.odds_ratio is None for row in result.rows if row.flag == "not_determined")
    assert any("without an estimate" in text for text in caveats(result))
    undetermined = [row for row in result.rows if row.flag == "not_determined"]
    # Each has an interval, of which the reports leave a side open.
    assert all(None in (row.conf_low, row.conf_high) for row in undetermined)
    assert any(row.conf_high is not None for row in undetermined)
    assert any("intervals with one end" in text for text in caveats(result))
    penalized = regress(store, small, "fell_asleep", ["pressure"], penalty="firth")
    assert {row.flag for row in penalized.rows} == {""}
    assert all(math.isfinite(row.odds_ratio) for row in penalized.rows)
    assert {row.method[-15:] for row in penalized.rows} == {"Firth's penalty"}
    assert any("more than the responses do" in text for text in caveats(penalized))


def test_a_penalty_with_many_coefficients_or_another_name_is_rejected(store, small, monkeypatch):
    add_people(store, small, 400)
    with pytest.raises(CountsError, match=r"penalty must be firth or empty \(found 'ridge'\)"):
        regress(store, small, "fell_asleep", ["pressure"], penalty="ridge")
    monkeypatch.setattr("survey.results.regression.compute.MAX_PENALIZED", 7)
    with pytest.raises(CountsError, match="takes too long with this many coefficients"):
        regress(store, small, "fell_asleep", ["pressure"], penalty="firth")


def test_few_reports_suppress_every_coefficient(store, small):
    add_people(store, small, 150)
    result = regress(store, small, "fell_asleep", ["pressure"], IntervalOptions(level=0.5))
    assert {(row.odds_ratio, row.coefficient, row.flag) for row in result.rows} == {
        (None, None, "suppressed")
    }
    assert paper_sentences(result) == []


@pytest.fixture
def every_kind(store):
    """Return a survey of regressable and other questions with 100 reports."""
    survey = published_kinds(store, ["choice", "sets", "hours", "mood", "coins"])
    fill(store, survey, 100)
    return survey


@each_case(
    ("name", "predictors", "error", "reason"),
    [
        ("choice", [], CountsError, "at least one predictor"),
        ("choice", ["choice"], CountsError, "it cannot be a predictor"),
        ("choice", ["mood", "mood"], CountsError, "Choose each predictor once"),
        ("choice", ["link"], CountsError, "one group"),
        ("choice", ["none"], NotFoundError, 'no question "none"'),
        ("hours", ["choice"], ChannelError, "“hours.” is a number"),
        ("choice", ["sets"], ChannelError, "several options"),
    ],
)
def test_invalid_regressions_are_rejected_with_a_reason(
    store, every_kind, name, predictors, error, reason
):
    with pytest.raises(error, match=reason):
        regress(store, every_kind, name, predictors)


def test_questions_with_one_answer_of_a_list_can_be_regressed(every_kind):
    assert {question.id for question in regression_questions(every_kind)} >= {"choice", "coins"}


def test_an_unknown_baseline_is_rejected_by_name(store, small):
    add_people(store, small, 100)
    with pytest.raises(CountsError, match="no answer 'perhaps'"):
        regress(store, small, "fell_asleep", ["pressure"], baseline="perhaps")


def test_odds_ratios_have_three_significant_digits():
    assert [format_odds_ratio(x) for x in (1e-9, 0.5, 12.345, 1e9)] == [
        "less than 0.000001",
        "0.5",
        "12.3",
        "more than 1,000,000",
    ]
    assert SHARES.sum() == pytest.approx(1)


def test_sentences_are_about_differences_that_were_shown_and_state_open_intervals(store, small):
    add_people(store, small, 6000)
    result = regress(store, small, "fell_asleep", ["pressure"])
    place = next(i for i, row in enumerate(result.rows) if row.predictor_id)

    def changed(**columns):
        arrays = {name: np.full(len(result.rows), value) for name, value in columns.items()}
        return replace(result, fit=replace(result.fit, **arrays))

    is_unclear = changed(conf_low=-0.5, conf_high=math.inf, p_value=0.2)
    assert paper_sentences(is_unclear) == []
    assert "do not show that the odds differ" in null_statement(is_unclear)
    is_open = changed(conf_low=0.5, conf_high=math.inf, p_value=0.002)
    assert "(95% confidence interval: above 1.65; p = 0.002)." in paper_sentences(is_open)[1]
    assert null_statement(is_open) == ""
    assert is_open.rows[place].conf_high is None
    assert any("“Above” and “below”" in text for text in caveats(is_open))
    assert not any("“Above” and “below”" in text for text in caveats(result))
