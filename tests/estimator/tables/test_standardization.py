"""Conditional differences, and shares standardized to another answer's distribution."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from survey.errors import ChannelError, DesignError, NoBaseError
from survey.estimator import (
    conditional,
    conditional_difference,
    crosstab,
    disclosure,
    poststratified,
    standardized_shares,
)
from survey.mechanism import SubsetSelection, from_epsilon, grr
from tests.cases import each_case

SURVEYS = 150
RELATED = np.array([[0.05, 0.20], [0.50, 0.25]])


def tables(P, epsilon, n, seed=3):
    """Yield cross-tabs of surveys drawn from this true table."""
    rng = np.random.default_rng(seed)
    channels = [from_epsilon(k, epsilon) for k in P.shape]
    F = channels[0].matrix.T @ P @ channels[1].matrix
    for _ in range(SURVEYS):
        yield crosstab(rng.multinomial(n, F.ravel() / F.sum()).reshape(F.shape), channels)


def test_a_difference_is_that_of_the_two_conditional_shares():
    table = crosstab([[2500, 1400], [1500, 2000], [1500, 2000]], [grr(3, "3/4"), grr(2, "3/4")])
    result, shares = conditional_difference(table, [1, 0]), conditional(table, 1)
    np.testing.assert_allclose(result.estimate, shares.estimate[:, 1] - shares.estimate[:, 0])
    np.testing.assert_allclose(result.share_a, shares.estimate[:, 1])
    reversed_ = conditional_difference(table, [0, 1])
    np.testing.assert_allclose(reversed_.estimate, -result.estimate)
    np.testing.assert_allclose(reversed_.conf_low, -result.conf_high)
    assert np.all((result.conf_low < result.estimate) & (result.estimate < result.conf_high))


@pytest.mark.web
def test_differences_have_nominal_coverage():
    r = RELATED / RELATED.sum(axis=0)
    covered = [
        (result.conf_low <= r[:, 0] - r[:, 1]) & (r[:, 0] - r[:, 1] <= result.conf_high)
        for result in (conditional_difference(t, [0, 1]) for t in tables(RELATED, 2, 1500))
    ]
    # .93 minus three standard errors for the number of surveys
    assert np.mean(covered, axis=0).min() >= 0.87


@pytest.mark.web
def test_differences_of_certain_shares_have_nominal_coverage():
    covered = [
        (result.conf_low <= [1, -1]) & (result.conf_high >= [1, -1])
        for result in (
            conditional_difference(t, [0, 1]) for t in tables(np.diag([0.1, 0.9]), 1, 3000)
        )
    ]
    # Two standard errors of 150 surveys below .945. Ends cut off at 0 and 1 cover far fewer.
    assert np.mean(covered, axis=0).min() >= 0.909


@pytest.mark.web
def test_unrelated_answers_differ_significantly_at_the_nominal_rate():
    unrelated = np.outer(RELATED.sum(axis=1), RELATED.sum(axis=0))
    rejections = [
        conditional_difference(t, [0, 1]).p_value <= 0.05 for t in tables(unrelated, 2, 1500)
    ]
    assert np.mean(rejections) <= 0.11


@pytest.mark.web
@each_case("level", [0.9, 0.95, 0.99])
def test_a_difference_is_significant_if_and_only_if_its_interval_excludes_0(level):
    rng = np.random.default_rng(20261125)
    for channel in (grr(2, "3/4"), from_epsilon(2, 3), from_epsilon(3, 4)):
        tested = 0
        for _ in range(60):
            # The shares among people with one of the two answers differ by .12 at most.
            given = rng.dirichlet(np.ones(channel.truths))
            other = 0.88 * given + 0.12 * rng.permutation(given)
            base = rng.uniform(0.3, 0.7)
            columns = [given * base, other * (1 - base), *[0 * given] * (channel.truths - 2)]
            F = channel.matrix.T @ np.column_stack(columns) @ channel.matrix
            counts = rng.multinomial(rng.choice([1_000, 4_000]), F.ravel() / F.sum())
            table = crosstab(counts.reshape(F.shape), [channel] * 2)
            with suppress(NoBaseError):
                result = conditional_difference(table, [0, 1], level=level)
                contains = (result.conf_low <= 0) & (result.conf_high >= 0)
                assert (contains == (result.p_value >= 1 - level)).all(), (counts, result)
                tested += 1
        assert tested > 30


def test_answers_without_randomization_are_post_stratified_exactly():
    certain = from_epsilon(2, 12)
    counts = np.array([[300, 100], [200, 400]])
    table = crosstab(counts, [grr(2, "3/4"), certain])
    ours = standardized_shares(table, [30, 70])
    theirs = poststratified(counts.T, [30, 70], grr(2, "3/4"))
    np.testing.assert_allclose(ours.estimate, theirs.estimate, atol=1e-5)
    np.testing.assert_allclose(ours.std_error, theirs.std_error, rtol=2e-3)
    # The few answers of one column represent most of the population; in its own sample it is rare.
    rare = np.array([[5, 200], [15, 180]])
    ours = standardized_shares(crosstab(rare, [grr(2, "9/10"), certain]), [80, 20])
    theirs = poststratified(rare.T, [80, 20], grr(2, "9/10"))
    np.testing.assert_allclose(ours.n_effective, theirs.n_effective, rtol=2e-3)


def test_standardized_shares_are_covered_under_selective_participation():
    w = np.array([0.2, 0.8])
    truth = RELATED / RELATED.sum(axis=0) @ w
    covered = [
        (result.conf_low <= truth) & (truth <= result.conf_high)
        for result in (standardized_shares(t, w) for t in tables(RELATED, 2, 1500))
    ]
    assert np.mean(covered, axis=0).min() >= 0.87


def test_an_answer_of_weight_0_is_left_out():
    table = crosstab([[300, 200, 100], [200, 300, 400]], [grr(2, "3/4"), grr(3, "3/4")])
    result = standardized_shares(table, [1, 0, 0])
    np.testing.assert_allclose(result.estimate, conditional(table, 1).estimate[:, 0])


def test_shares_given_an_answer_with_a_share_near_0_are_rejected():
    nobody = crosstab([[375, 125], [375, 125]], [grr(2, "3/4")] * 2)
    with pytest.raises(NoBaseError, match="clearly"):
        conditional_difference(nobody, [0, 1])
    with pytest.raises(NoBaseError, match="clearly"):
        standardized_shares(nobody, [1, 1])
    sets = SubsetSelection(k=4, d=2, T=3, L=1)
    table = crosstab(np.full((2, 4), 100), [grr(2, "3/4"), sets])
    with pytest.raises(ChannelError, match="reports of sets"):
        standardized_shares(table, [1, 1, 1, 1])
    with pytest.raises(ValueError, match="two different"):
        conditional_difference(nobody, [1, 1])
    for population in ([1], [0, 0], [-1, 2], [np.inf, 1]):
        with pytest.raises(DesignError, match="population"):
            standardized_shares(nobody, population)


def test_conditional_and_standardized_shares_are_suppressed_like_others():
    small, large = (
        crosstab(np.array([[300, 200], [200, 300]]) * times, [grr(2, "3/4")] * 2)
        for times in (1, 100)
    )
    for estimate in (lambda t: conditional(t, 1), lambda t: standardized_shares(t, [1, 1])):
        assert disclosure(estimate(small)) == "caution"
        assert disclosure(estimate(large)) == "show"
    few = crosstab([[30, 20], [20, 30]], [grr(2, "3/4")] * 2)
    assert disclosure(standardized_shares(few, [1, 1])) == "hide"


@pytest.mark.filterwarnings("error")
def test_equal_reports_to_the_first_question_do_not_make_standardized_shares_certain():
    result = standardized_shares(crosstab([[0, 0], [153, 327]], [from_epsilon(2, 6)] * 2), [1, 2])
    assert (result.std_error > 0).all()
    assert np.isfinite(result.n_effective).all()
    assert result.conf_low[0] == 0 < result.conf_high[0] < 0.02
    assert result.conf_high[1] == 1 > result.conf_low[1] > 0.98
