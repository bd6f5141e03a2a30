"""The test of independence: statistic, error rates and failure on debiased counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from survey.errors import CountsError
from survey.estimator import crosstab, independence
from survey.mechanism import from_epsilon
from tests.cases import each_case


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (2, 3, 4)])
def test_the_statistic_matches_scipy_without_yates_correction(shape):
    counts = np.random.default_rng(1).poisson(40, size=shape)
    result, theirs = independence(counts), chi2_contingency(counts, correction=False)
    assert result.statistic == pytest.approx(theirs.statistic)
    assert result.p_value == pytest.approx(theirs.pvalue)
    assert result.df == theirs.dof
    np.testing.assert_allclose(result.expected, theirs.expected_freq)
    assert np.sum(result.residual**2) == pytest.approx(result.statistic)
    assert not result.small_expected


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (2, 3, 4)])
def test_the_likelihood_ratio_matches_scipy(shape):
    counts = np.random.default_rng(2).poisson(9, size=shape)
    counts.flat[0] = 0
    result = independence(counts)
    theirs = chi2_contingency(counts, correction=False, lambda_="log-likelihood")
    assert result.g_squared == pytest.approx(theirs.statistic)
    assert result.g_p_value == pytest.approx(theirs.pvalue)


def test_unreported_options_reduce_the_degrees_of_freedom():
    result = independence([[30, 0, 20], [20, 0, 30]])
    assert result.df == 1
    assert result.statistic == pytest.approx(4)
    assert np.isfinite(result.residual).all()


def test_small_expected_counts_are_flagged():
    assert independence([[3, 1], [1, 3]]).small_expected
    assert not independence([[30, 10], [10, 30]]).small_expected
    assert independence([[1000, 1], [1, 0]]).small_expected


@each_case(
    ("counts", "reason"),
    [
        ([[0, 0], [0, 0]], "n = 0"),
        ([[5, 5]], "question 0: all reports are identical"),
        ([[5, 0], [5, 0]], "question 1: all reports are identical"),
        ([3, 4], "at least two questions"),
        ([[1, -1], [2, 2]], "negative"),
        ([[1, 0.5], [2, 2]], "whole number"),
    ],
)
def test_tables_with_nothing_to_test_are_rejected(counts, reason):
    with pytest.raises(CountsError, match=reason):
        independence(counts)


def unrelated_tables(rounds: int) -> tuple[np.ndarray, object]:
    channel = from_epsilon(3, 1)
    a, b = np.array([0.6, 0.3, 0.1]) @ channel.matrix, np.array([0.2, 0.3, 0.5]) @ channel.matrix
    rng = np.random.default_rng(5)
    return rng.multinomial(2000, np.outer(a, b).ravel(), size=rounds).reshape(-1, 3, 3), channel


@pytest.mark.slow
def test_the_test_has_its_nominal_size_on_reports_but_not_on_debiased_counts():
    tables, channel = unrelated_tables(2000)
    wrong = np.mean([independence(table).p_value <= 0.05 for table in tables])
    # .05 +- 4 standard errors
    assert 0.0305 <= wrong <= 0.0695
    debiased = [
        np.round(2000 * np.maximum(crosstab(table, [channel, channel]).estimate, 0)).astype(int)
        for table in tables[:200]
    ]
    assert np.mean([independence(table + 1).p_value <= 0.05 for table in debiased]) > 0.5


def test_dependent_answers_have_a_small_p_value():
    channel = from_epsilon(3, 1)
    F = channel.matrix.T @ (np.eye(3) / 3) @ channel.matrix
    counts = np.random.default_rng(6).multinomial(2000, F.ravel()).reshape(3, 3)
    assert independence(counts).p_value < 1e-6
