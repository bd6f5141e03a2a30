"""Results of yes/no questions that were randomized in one half-space."""

from __future__ import annotations

import os

import numpy as np
import pytest

from survey.errors import ChannelError
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab
from survey.results.difference.compute import DifferenceRequest, compute_difference
from survey.results.estimates.result import ResultCache
from survey.results.exports.microdata import readme
from survey.results.regression.compute import RegressionRequest, compute_regression
from survey.results.request import IntervalOptions
from survey.results.weighting.compute import compute_weighting
from survey.results.weighting.request import WeightingRequest
from survey.store import StoredReport
from tests.results.populations import published
from tests.store.reports import publish_pending
from tests.surveys import ITEMS

N = 2_000


@pytest.fixture
def items(store):
    """Return a survey with released reports, and the number of people with each first option.

    Almost everybody who sleeps badly smokes, so that dependent answers would bias the shares.
    """
    survey = published(store, ITEMS.decode().replace('"0.5"', '"1.5"'))
    rng = np.random.default_rng(7)
    sleep = (rng.random(N) < 0.7).astype(int)
    smoke = np.where(rng.random(N) < 0.95, sleep, 1 - sleep)
    town = rng.integers(0, 3, N)
    drink, alone = (rng.random((2, N)) < [[0.9], [0.2]]).astype(int)
    people = np.stack([sleep, town, smoke, drink, alone], axis=1)
    reports = people.astype(np.uint8)
    questions = survey.definition.questions
    reports[:, 1] = questions[1].channel.perturb(town, rng)
    items = [0, 2, 3, 4]
    reports[:, items] = questions[0].joint.channel.perturb(people[:, items], rng)
    store.add_reports(
        [(survey.key, StoredReport(os.urandom(16), "", row.tobytes())) for row in reports]
    )
    publish_pending(store, survey, 25)
    return survey, (people == 0).mean(axis=0)


def test_the_share_of_each_question_is_estimated_from_the_one_report(store, items):
    survey, shares = items
    rows = ResultCache(store).result(survey).rows
    by_question = {row.question_id: row for row in reversed(rows) if row.statistic == "share"}
    for question, share in zip(survey.definition.questions, shares, strict=True):
        row = by_question[question.id]
        assert abs(row.estimate - share) < 4.5 * row.std_error, question.id


def test_two_questions_of_a_half_space_are_not_related_to_each_other(store, items):
    survey, _ = items
    options = IntervalOptions()
    for compute, request in (
        (compute_crosstab, CrosstabRequest("sleep", "smoke")),
        (compute_difference, DifferenceRequest("sleep", "answer:smoke:yes", "answer:smoke:no")),
        (compute_regression, RegressionRequest("sleep", ("town", "smoke"))),
        (compute_regression, RegressionRequest("town", ("sleep", "smoke"))),
        (
            compute_weighting,
            WeightingRequest("sleep", "answer:smoke", "yes,0.2\nno,0.8", "shares"),
        ),
    ):
        with pytest.raises(ChannelError, match=r"sleep and smoke are randomized in one half-space"):
            compute(store, survey, request, options)


def test_a_question_of_a_half_space_is_crossed_with_one_outside_it(store, items):
    survey, _ = items
    result = compute_crosstab(store, survey, CrosstabRequest("sleep", "town"), IntervalOptions())
    # Sleep and town are independent: each cell is the product of the shares.
    for row in result.rows:
        expected = (0.3 if row.first_option_id == "yes" else 0.7) / 3
        assert abs(row.estimate - expected) < 4.5 * row.std_error


def test_the_readme_of_microdata_warns_that_the_reports_of_a_half_space_are_no_table(store, items):
    survey, _ = items
    assert 'In a half-space\n  (channels.json: "half_space"), only the shares' in readme(
        survey, N, 1
    )
