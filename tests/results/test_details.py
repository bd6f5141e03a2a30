"""Details of a question show the estimator's numbers and omit suppressed estimates."""

from __future__ import annotations

import numpy as np
import pytest

from survey.estimator import margin_split, poisoning
from survey.results.estimates.compute import estimate_question
from survey.results.request import IntervalOptions
from tests.cases import each_case
from tests.results.test_every_type import QUESTIONS, counts_of, every_type, result_of

OF_OPTIONS = [name for name in QUESTIONS if name not in ("hours", "pay", "since")]


@pytest.fixture
def result():
    return every_type()


@pytest.fixture
def survey(result):
    return result.survey


@each_case("name", OF_OPTIONS)
def test_details_match_the_estimator_for_every_type(result, name):
    question_result = result.question(name)
    question = question_result.question
    if question_result.parts["shares"].disclosure == "hide":
        assert question_result.details == ()
        return
    shares = estimate_question(
        question, 20_000, counts_of(question, 20_000), IntervalOptions()
    ).shares
    split = margin_split(shares)
    patterns = question.patterns if question.by_patterns else None
    bounds = poisoning(shares, question.channel, patterns=patterns)
    for field, expected in (
        ("unbiased", shares.estimate),
        ("display", shares.mle),
        ("std_error", shares.std_error),
        ("n_effective", shares.n_effective),
        ("margin", split.margin),
        ("sampling", split.sampling),
        ("randomization", split.randomization),
        ("fabricated", bounds.fakes_per_margin),
    ):
        np.testing.assert_array_equal(
            [getattr(line, field) for line in question_result.details], expected, err_msg=field
        )
    assert [line.label for line in question_result.details] == [
        option.label for option in question.options
    ]
    for line in question_result.details:
        assert 0 <= line.display <= 1
        assert line.sampling**2 + line.randomization**2 == pytest.approx(line.margin**2)


@pytest.mark.parametrize("name", ["choice", "subsets"])
def test_both_estimates_match_the_rows(result, name):
    question_result = result.question(name)
    assert question_result.details
    assert [line.unbiased for line in question_result.details] == [
        row.estimate for row in question_result.shares
    ]
    assert [line.display for line in question_result.details] == [
        row.mle for row in question_result.shares
    ]


@pytest.mark.parametrize("name", ["hours", "since"])
def test_numbers_and_dates_have_no_details(result, name):
    assert result.question(name).details == ()


def test_suppressed_questions_have_no_details(survey):
    suppressed = result_of(survey, 100, 100)
    for question_result in (suppressed.question(name) for name in OF_OPTIONS):
        assert question_result.parts["shares"].disclosure == "hide"
        assert question_result.details == ()
