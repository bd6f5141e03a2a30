"""Interval options: levels, methods and targets, and the suppression they never change."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from survey.errors import DesignError
from survey.estimator import answered_shares, histogram, mean, median, no_answer_shares, proportions
from survey.results.estimates.compute import histogram_cells
from survey.results.estimates.histogram import edges
from survey.results.estimates.result import SurveyResult, terminal_lines
from survey.results.question_statistics import truth_values
from survey.results.request import (
    DEFAULT_OPTIONS,
    IntervalOptions,
    options_to_query,
    parse_options,
)
from survey.store import Tally
from tests.cases import each_case
from tests.results.test_every_type import (
    NOW,
    QUESTIONS,
    SEVEN_VALUES,
    counts_of,
    numbers,
    survey_of,
)

N = 6_000
NAMES = ["choice", "hours", "mood", "wave", "coins", "bits"]
OPTIONS = [
    IntervalOptions(level=0.9),
    IntervalOptions(level=0.99, interval="wilson"),
    IntervalOptions(simultaneous=True),
    IntervalOptions(target="respondents"),
    IntervalOptions(level=0.5, simultaneous=True, target="respondents"),
]


SIZES = (60, 600, N)


@pytest.fixture(scope="module")
def survey():
    return survey_of(NAMES)


@pytest.fixture(scope="module")
def default(survey):
    """Return results with default options for each number of reports."""
    return {n: result_with(survey, n=n) for n in SIZES}


@cache
def result_with(survey, options=DEFAULT_OPTIONS, n=N):
    questions = survey.definition.questions
    counts = [counts_of(question, n) for question in questions]
    return SurveyResult(survey, Tally(1, n, [n] * len(questions), counts), NOW, options)


@each_case("options", OPTIONS)
def test_rows_contain_the_estimates_for_all_options(survey, options):
    choice, hours, mood, *_ = result_with(survey, options).questions
    arguments = {
        "level": options.level,
        "simultaneous": options.simultaneous,
        "target": options.target,
    }
    channel, counts = choice.question.channel, counts_of(choice.question, N)
    expected = proportions(counts, channel, interval=options.interval, **arguments)
    for field in ("estimate", "std_error", "conf_low", "conf_high"):
        np.testing.assert_array_equal(numbers(choice.shares, field), getattr(expected, field))
    assert {row.method for row in choice.shares} == {expected.method}
    assert {row.conf_level for row in choice.rows} == {options.level}
    question, counts = hours.question, counts_of(hours.question, N)
    expected = no_answer_shares(counts, question.channel, **arguments)
    assert numbers(hours.shares, "conf_low") == expected.conf_low.tolist()
    expected = mean(counts, question.channel, truth_values(question), level=options.level)
    assert (hours.mean.conf_low, hours.mean.conf_high) == (expected.conf_low, expected.conf_high)
    counts = counts_of(mood.question, N)
    expected = median(
        counts, mood.question.channel, truth_values(mood.question), level=options.level
    )
    assert mood.median.conf_high == expected.conf_high[0]


@each_case("options", OPTIONS)
def test_options_apply_to_shares_among_those_who_answered(survey, options):
    question = result_with(survey, options).questions[0]
    arguments = {
        "level": options.level,
        "simultaneous": options.simultaneous,
        "target": options.target,
    }
    counts, channel = counts_of(question.question, N), question.question.channel
    expected = answered_shares(counts, channel, [3], **arguments)
    assert numbers(question.answered, "conf_low") == expected.conf_low.tolist()
    assert numbers(question.answered, "std_error") == expected.std_error.tolist()
    assert {row.method for row in question.answered} == {expected.method}


def test_simultaneous_cells_share_the_error_probability(monkeypatch):
    monkeypatch.setitem(QUESTIONS, "few", SEVEN_VALUES)
    (question,) = result_with(
        survey_of(["few"]), IntervalOptions(simultaneous=True), 40_000
    ).questions
    arguments = question.question
    ends = edges(arguments.grid, histogram_cells(arguments))
    expected = histogram(
        counts_of(arguments, 40_000),
        arguments.channel,
        truth_values(arguments),
        ends,
        level=1 - 0.05 / 7,
    )
    assert numbers(question.spread, "conf_low") == expected.conf_low.tolist()
    assert {row.method for row in question.spread} == {f"{expected.method}, simultaneous"}


@pytest.mark.web
@each_case("options", OPTIONS)
@each_case("n", SIZES)
def test_no_options_reveal_what_the_defaults_suppress(survey, default, options, n):
    changed = result_with(survey, options, n)
    for first, second in zip(default[n].rows, changed.rows, strict=True):
        assert (first.option_id, first.statistic) == (second.option_id, second.statistic)
        assert first.flag == second.flag or second.flag == "suppressed"
        assert first.estimate is not None or second.estimate is None


def test_the_heading_states_the_options(survey):
    options = IntervalOptions(level=0.9, simultaneous=True, target="respondents")
    assert terminal_lines(result_with(survey, options))[0].endswith(
        "90% intervals, simultaneous for all shares of a question, shares of these respondents only"
    )


@each_case(
    ("query", "words"),
    [
        ({"level": "1"}, "level = 1 must be from 0.5 to 0.999, for example 0.95"),
        ({"level": "95"}, "level = 95 must be"),
        ({"level": "-1"}, "level = -1 must be from 0.5"),
        *[
            ({"level": text}, f"level = {text!r} must be a number, for example 0.95")
            for text in ("much", "nan", "inf", "", " 0.9", "0.9\n", "0_9", "٠.٩", "0x1", "9e-1")
        ],
        ({"interval": "wald"}, "interval = 'wald' must be one of feldman-cousins,"),
        ({"interval": "fixed-population"}, "interval = 'fixed-population' must be one of"),
        ({"target": "all"}, "target = 'all' must be one of population, respondents"),
        (
            {"target": "respondents", "interval": "wilson"},
            "interval = 'wilson' applies to the population",
        ),
        ({"simultaneous": "yes"}, "simultaneous = 'yes' must be 1 or 0"),
    ],
)
def test_invalid_options_are_rejected_by_name(query, words):
    with pytest.raises(DesignError, match="^" + re.escape(words)):
        parse_options(query)


@each_case("options", [IntervalOptions(), *OPTIONS])
def test_a_link_states_all_options_that_differ_from_the_defaults(options):
    assert parse_options({**options_to_query(options), "unrelated": "x"}) == options
