"""A question explained by others and by the links: the estimator's coefficients, in words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError, NotFoundError
from survey.estimator import Randomized, regression
from survey.results.combined_counts import combined_counts
from survey.results.options import Wanted
from survey.results.regression.compute import regressable, regressed
from survey.results.regression.sentences import caveats, number, to_write
from tests.parquet.reports import fill
from tests.parquet.reports import published as published_kinds
from tests.results.exploring import SHARES, add_people, turned


def codes_of(store, survey):
    """Every released report's codes, shape (n, 2), and its stratum."""
    parts = list(store.block_columns(survey.key, [0, 1]))
    codes = [
        np.stack([np.frombuffer(one.data, np.uint8) for one in pair], axis=1) for pair in parts
    ]
    strata = [pair[0].stratum for pair in parts for _ in range(pair[0].n)]
    return np.concatenate(codes).astype(int), np.array(strata)


def test_combinations_are_counted_link_by_link(store, small):
    add_people(store, small, 400, "north", seed=1)
    add_people(store, small, 300, "south", seed=2)
    found = combined_counts(store, small, [0, 1])
    codes, strata = codes_of(store, small)
    assert found.links == ("north", "south")
    for code, link, times in zip(found.codes, found.link, found.times, strict=True):
        alike = (codes == code).all(axis=1) & (strata == found.links[link])
        assert alike.sum() == times
    assert found.times.sum() == 700


def test_combinations_of_drawn_questions_are_of_those_who_were_asked_all(store):
    survey = published_kinds(store, ["choice", "coins", "mood"], "questions_per_person = 2\n")
    fill(store, survey, 900, drawn=0.5)
    asked = [
        (np.frombuffer(a.data, np.uint8)[::2] & np.frombuffer(b.data, np.uint8)[::2]).sum()
        for a, b in store.block_columns(survey.key, [0, 1])
    ]
    assert combined_counts(store, survey, [0, 1]).times.sum() == sum(asked)


def test_the_coefficients_are_those_of_the_single_reports(store, small):
    add_people(store, small, 3000, "north", turned(0.5), 1)
    add_people(store, small, 2000, "south", turned(0.3), 2)
    found = regressed(store, small, "fell_asleep", ["pressure", "link"], Wanted(level=0.9))
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
    rows = found.rows
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
        assert row.conf_low < row.odds_ratio < row.conf_high
    truth = math.log((0.3 / 0.7) / (0.5 / 0.5))
    assert abs(rows[1].coefficient - truth) < 4 * rows[1].std_error


def test_odds_are_against_the_answer_that_is_asked_for(store, small):
    add_people(store, small, 4000)
    found = regressed(store, small, "fell_asleep", ["pressure"], Wanted(), "yes")
    usual = regressed(store, small, "fell_asleep", ["pressure"], Wanted())
    assert [row.option_id for row in found.rows[:3]] == ["no"] * 3
    for turned_row, row in zip(found.rows[:3], usual.rows[:3], strict=True):
        assert turned_row.coefficient == pytest.approx(-row.coefficient, abs=1e-4)


def test_sentences_and_caveats_say_how_it_was_found(store, small):
    add_people(store, small, 6000)
    found = regressed(store, small, "fell_asleep", ["pressure"], Wanted())
    model, first = to_write(found)[:2]
    assert "multinomial logistic regression by maximum likelihood" in model
    assert "6,000 reports" in model
    assert "The odds of “Yes” against “No” were" in first
    assert any("never sorted by what they reported" in said for said in caveats(found))


def test_coefficients_without_an_error_are_not_told_and_it_is_said_why(store, small):
    nobody = np.array([[0.40, 0.25, 0.35], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    # Enough for every table to be shown, though only chance says "no".
    add_people(store, small, 60_000, shares=nobody, seed=12)
    found = regressed(store, small, "fell_asleep", ["pressure"], Wanted())
    flags = {row.flag for row in found.rows}
    assert "not_determined" in flags
    assert all(row.odds_ratio is None for row in found.rows if row.flag == "not_determined")
    assert any("grow without end" in said for said in caveats(found))


def test_few_reports_hide_every_coefficient(store, small):
    add_people(store, small, 150)
    found = regressed(store, small, "fell_asleep", ["pressure"], Wanted(level=0.5))
    assert {(row.odds_ratio, row.coefficient, row.flag) for row in found.rows} == {
        (None, None, "suppressed")
    }
    assert to_write(found) == []


@pytest.mark.parametrize(
    ("name", "predictors", "error", "reason"),
    [
        ("choice", [], CountsError, "at least one predictor"),
        ("choice", ["choice"], CountsError, "cannot explain itself"),
        ("choice", ["mood", "mood"], CountsError, "taken once"),
        ("choice", ["link"], CountsError, "one link"),
        ("choice", ["none"], NotFoundError, 'no question "none"'),
        ("hours", ["choice"], ChannelError, "hours is a number"),
        ("choice", ["sets"], ChannelError, "several options"),
    ],
)
def test_what_cannot_be_regressed_is_refused_by_name(store, name, predictors, error, reason):
    survey = published_kinds(store, ["choice", "sets", "hours", "mood", "coins"])
    fill(store, survey, 100)
    with pytest.raises(error, match=reason):
        regressed(store, survey, name, predictors, Wanted())
    assert {one.id for one in regressable(survey)} >= {"choice", "coins"}


def test_an_unknown_answer_to_hold_others_against_is_refused_by_name(store, small):
    add_people(store, small, 100)
    with pytest.raises(CountsError, match="no answer 'perhaps'"):
        regressed(store, small, "fell_asleep", ["pressure"], Wanted(), "perhaps")


def test_numbers_are_written_to_three_digits_whatever_their_size():
    assert [number(x) for x in (1e-9, 0.5, 12.345, 1e9)] == [
        "below 0.000001",
        "0.5",
        "12.3",
        "above 1,000,000",
    ]
    assert SHARES.sum() == pytest.approx(1)
