"""The methods of one survey: its own numbers, in a table and as paragraphs for a paper."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pytest

import survey.estimator
from survey.collect.publication import publish
from survey.estimator.core.intervals import DEFAULT_INTERVAL
from survey.estimator.shares.proportions import RESPONDENTS, TARGETS
from survey.methods import interval_anchor, sections
from survey.questionnaire.loading import load
from survey.results.estimates.result import ResultCache
from survey.results.exports.methods import (
    describe_intervals,
    describe_mechanisms,
    methods_statement,
    question_methods,
    sections_used,
    works_cited,
)
from survey.results.exports.xlsx import methods_sheet
from survey.results.request import IntervalOptions
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import TODAY, long_unless
from tests.surveys import EVERY_TYPE

COMBINATIONS = [*product(TARGETS, (False, True))]

FEWEST_METHODS = 5
"""Different methods among the rows of a survey with every question type."""


@pytest.fixture
def every_type(store):
    """A survey with every question type and enough reports to show most results."""
    toml = EVERY_TYPE.replace("epsilon = 0.5", "epsilon = 4")
    survey = publish(store, load(toml.encode(), "s.toml", Caps(survey=Decimal(60))), TODAY)
    add_released(store, survey, 800)
    return survey


@pytest.mark.web
@pytest.mark.parametrize("options", long_unless(COMBINATIONS[:1], COMBINATIONS), ids=str)
def test_every_statistic_base_method_and_mechanism_of_a_row_has_a_section(
    store, every_type, options
):
    target, simultaneous = options
    result = ResultCache(store).result(
        every_type, IntervalOptions(simultaneous=simultaneous, target=target)
    )
    for row in result.rows:
        assert row.statistic in sections()
        assert row.base in sections()
        if row.method:
            assert interval_anchor(row.method) in sections()
    for method in question_methods(result):
        assert method.anchor in sections()
        assert {computation.anchor for computation in method.computations} <= set(sections())
    assert len({row.method for row in result.rows}) >= FEWEST_METHODS


def test_the_functions_named_for_a_question_are_public_functions_of_the_estimator(
    store, every_type
):
    for method in question_methods(ResultCache(store).result(every_type)):
        for computation in method.computations:
            assert callable(getattr(survey.estimator, computation.function))


def test_the_methods_of_a_survey_contain_its_own_numbers(store, small):
    add_released(store, small, 3000)
    result = ResultCache(store).result(small)
    method, question = question_methods(result)[0], result.questions[0]
    row = question.shares[0]
    assert f"{row.report_count:,} of 3,000 reports" in method.calculation
    assert method.calculation.endswith(f"{row.estimate:.4f}")
    assert (method.p, method.n_options, method.n) == (0.75, 3, 3000)


def test_the_statement_for_a_paper_contains_everything_a_reader_needs(store, small):
    add_released(store, small, 3000)
    result = ResultCache(store).result(small)
    text = " ".join(methods_statement(result))
    for expected in (
        "generalized randomized response (p = 0.75, epsilon = 1.792 for each question alone)",
        "Privacy loss of one complete response: ε 3.584 (weak). One complete response changes",
        "3,000 released reports (release 1)",
        "95% intervals (Feldman–Cousins; function proportions)",
        small.sha256,
        "version 1",
        "software survey ",
        "do not show whether respondents answered truthfully",
    ):
        assert expected in text
    assert any("Feldman" in work for work in works_cited(result))
    assert "Warner" in " ".join(works_cited(result))


def test_suppressed_results_have_no_interval_and_no_calculation(store, small):
    add_released(store, small, 40)
    result = ResultCache(store).result(small)
    methods = question_methods(result)
    assert not any(part.interval for method in methods for part in method.computations)
    assert all(method.calculation == "" for method in methods)
    assert not any("Feldman" in work for work in works_cited(result))


def test_the_statement_names_the_interval_that_the_reader_selected(store, small):
    add_released(store, small, 3000)
    result = ResultCache(store).result(small, IntervalOptions(level=0.9, target=RESPONDENTS))
    assert "90% intervals (Interval for these respondents; function proportions)" in " ".join(
        methods_statement(result)
    )
    assert interval_anchor(DEFAULT_INTERVAL) not in {
        section.anchor for section in sections_used(result)
    }


def test_the_methods_sheet_agrees_with_the_statement(store, small):
    add_released(store, small, 3000)
    result = ResultCache(store).result(small)
    sheet = dict(methods_sheet(result))
    methods = question_methods(result)
    assert sheet["Mechanisms"] == describe_mechanisms(methods)
    assert describe_intervals(methods, result.options) in sheet["Estimation"]
