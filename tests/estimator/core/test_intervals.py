"""Intervals match other software and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, chi2

from survey.estimator import proportions
from survey.estimator.core.intervals import (
    INTERVALS,
    clopper_pearson,
    confidence_interval,
    likelihood_ratio_ends,
    wilson,
)
from survey.mechanism import SubsetSelection, from_epsilon, from_ratio, grr
from tests.cases import each_case

COUNTS = [(0, 1), (1, 1), (0, 40), (3, 40), (20, 40), (40, 40), (617, 2000), (999_000, 10**6)]


@each_case(("count", "n"), COUNTS)
@each_case("level", [0.8, 0.95, 0.999])
def test_clopper_pearson_agrees_with_scipy(count: int, n: int, level: float) -> None:
    theirs = binomtest(count, n).proportion_ci(level, method="exact")
    low, high = clopper_pearson(np.array([count]), n, level)
    np.testing.assert_allclose([low[0], high[0]], [theirs.low, theirs.high], atol=1e-9)


@each_case(("count", "n"), COUNTS)
@each_case("level", [0.8, 0.95, 0.999])
def test_wilson_agrees_with_scipy(count: int, n: int, level: float) -> None:
    theirs = binomtest(count, n).proportion_ci(level, method="wilson")
    low, high = wilson(np.array([count]), n, level)
    np.testing.assert_allclose([low[0], high[0]], [theirs.low, theirs.high], atol=1e-12)


@each_case("n", [1, 40, 1000, 10**7])
@each_case("a", [1e-4, 0.25, 0.6])
def test_likelihood_ratio_ends_lose_half_the_chi_square_quantile(n: int, a: float) -> None:
    c = np.unique(np.linspace(0, n * a, 7).astype(np.int64))
    high = likelihood_ratio_ends(c, n, a, 1 - 1e-12, 0.95)[1]
    loss = c * np.log(a / high) + (n - c) * (np.log1p(-a) - np.log1p(-high))
    inside = high < 1 - 1e-9
    np.testing.assert_allclose(2 * loss[inside], chi2.ppf(0.95, 1), rtol=1e-6)


def test_likelihood_ratio_ends_exist_only_for_outcomes_outside_the_range() -> None:
    low, high = likelihood_ratio_ends(np.array([10, 50, 90]), 100, 0.25, 0.75, 0.95)
    assert np.isnan(low).tolist() == [True, True, False]
    assert np.isnan(high).tolist() == [False, True, True]


@each_case("interval", list(INTERVALS))
def test_the_two_options_of_a_question_mirror_each_other(interval: str) -> None:
    result = proportions([430, 570], grr(2, "3/4"), interval=interval)
    assert result.conf_low[0] == pytest.approx(1 - result.conf_high[1], abs=1e-8)
    assert result.conf_high[0] == pytest.approx(1 - result.conf_low[1], abs=1e-8)


@each_case("interval", list(INTERVALS))
def test_inverted_warner_reads_as_warner_with_the_reports_swapped(interval: str) -> None:
    plain = proportions([130, 370], grr(2, "3/4"), interval=interval)
    inverted = proportions([370, 130], from_ratio(2, 1, 3), interval=interval)
    for field in ("estimate", "mle", "std_error", "conf_low", "conf_high", "n_effective"):
        np.testing.assert_allclose(
            getattr(inverted, field), getattr(plain, field), atol=1e-8, err_msg=field
        )


@each_case("interval", list(INTERVALS))
def test_each_share_may_have_any_count_beside_it(interval: str) -> None:
    channel, counts = grr(3, "0.6"), np.array([31, 7, 7])
    together = confidence_interval(counts, 45, channel, 0.9, interval)
    for option, count in enumerate(counts):
        alone = confidence_interval(np.array([count]), 45, channel, 0.9, interval)
        for ends, end in zip(together, alone, strict=True):
            assert ends[option] == pytest.approx(end[0], abs=1e-6)


@pytest.mark.parametrize("channel", [grr(2, "3/4"), grr(5, "0.5")], ids=str)
def test_large_surveys_approach_the_normal_interval(channel: SubsetSelection) -> None:
    n = 10**7
    counts = np.full(channel.k, n // channel.k)
    result = proportions(counts, channel)
    half = 1.959964 * result.std_error
    np.testing.assert_allclose(result.conf_high - result.estimate, half, rtol=0.01)
    np.testing.assert_allclose(result.estimate - result.conf_low, half, rtol=0.01)


@each_case("interval", list(INTERVALS))
@each_case("n", [1, 1000, 10**7, 10**10])
@each_case("epsilon", ["0.01", "1", "12"])
def test_every_size_of_survey_gets_finite_ends(epsilon: str, n: int, interval: str) -> None:
    for counts in ([0, n], [n // 2, n - n // 2], [1, n - 1]):
        result = proportions(counts, from_epsilon(2, epsilon), interval=interval)
        assert np.all(result.conf_low >= 0)
        assert np.all(result.conf_low <= result.conf_high)
        assert np.all(result.conf_high <= 1)
