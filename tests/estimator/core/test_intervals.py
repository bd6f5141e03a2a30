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
    continuity,
    lattice_shift,
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


# Whole numbers of reports


def shift_of(values, shares, n) -> float:
    """Return the shift in reports of one group of n reports."""
    groups = (np.array([part], dtype=float) for part in (values, shares))
    return float(lattice_shift(*groups, np.array([float(n)]), 0.95)) / continuity(0.95)


def test_the_shift_of_a_binomial_count_is_c_of_one_report_in_every_unit() -> None:
    for step, share in ((1.0, 0.5), (1.0, 0.001), (0.02, 0.3), (-7.0, 0.9)):
        assert shift_of([step, 0.0], [share, 1 - share], 50) == pytest.approx(abs(step))
    assert shift_of([0.0, 0.0], [0.5, 0.5], 50) == 0


def test_smaller_steps_reduce_the_shift_by_the_characteristic_function_of_the_sum() -> None:
    values, shares, n = [1.0, 0.1, 0.0], [0.01, 0.3, 0.69], 40
    steps = np.random.default_rng(1).multinomial(n, shares, size=100_000) @ values
    expected = abs(np.exp(2j * np.pi * steps).mean())
    assert 0.05 < expected < 0.9
    assert shift_of(values, shares, n) == pytest.approx(expected, abs=0.02)
    # Steps of one tenth alone remain where the large ones are certain not to fit them.
    assert shift_of(values, shares, 10_000) == pytest.approx(0.1, abs=0.001)


def test_a_group_of_few_reports_moves_the_ends_as_far_as_the_groups_around_it_allow() -> None:
    values = np.array([[10.0, 0.0], [1.0, 0.0]])
    shares, alone = np.array([[0.1, 0.9], [0.5, 0.5]]), np.array([5.0, 0.0])
    assert float(lattice_shift(values, shares, alone, 0.95)) == pytest.approx(10 * continuity(0.95))
    spread = [float(lattice_shift(values, shares, np.array([5.0, n]), 0.95)) for n in (4, 16, 64)]
    assert np.all(np.diff([10 * continuity(0.95), *spread]) < 0)
    assert spread[-1] >= continuity(0.95)


def test_many_cells_are_computed_in_parts() -> None:
    rng = np.random.default_rng(2)
    values, shares = rng.normal(size=(70_000, 1, 4)), rng.dirichlet(np.ones(4), (70_000, 1))
    n = np.array([30.0])
    together, first = (lattice_shift(values[:m], shares[:m], n, 0.95) for m in (70_000, 5))
    np.testing.assert_array_equal(together[:5], first)
