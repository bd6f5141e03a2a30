"""Pseudo-values, their variance and ratio intervals match closed forms and definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from survey.estimator.core.debiasing import EXACT, expected, pseudo_values
from survey.estimator.core.fieller import RATIOS, Moments, lower_hull, ratio_interval
from survey.mechanism import WeightTable
from survey.mechanism.numeric import gaussian, hybrid, one_bit, piecewise, square_wave
from tests.cases import each_case

K = 11
X = np.linspace(-1, 1, K)


def scatter_of(channel: WeightTable) -> np.ndarray:
    """Var(pseudo-value | truth) on [-1, 1]."""
    a = pseudo_values(channel, X, 1000).values
    return expected(channel, a**2) - expected(channel, a) ** 2


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
def test_one_bit_has_the_variance_of_duchi_jordan_and_wainwright(epsilon):
    channel = one_bit(K, epsilon)
    ratio = float(channel.ratio)
    B = (ratio + 1) / (ratio - 1)
    np.testing.assert_allclose(scatter_of(channel), B**2 - X**2, rtol=1e-9)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "3"])
def test_piecewise_has_the_variance_of_wang_et_al_up_to_its_grid(epsilon):
    channel = piecewise(K, epsilon)
    half = math.exp(float(epsilon) / 2)
    closed = X**2 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)
    np.testing.assert_allclose(scatter_of(channel), closed, rtol=0.03)


@pytest.mark.parametrize("channel", [one_bit(K, 2, 1), square_wave(K, 2, 1), hybrid(K, 2, 1)])
def test_window_one_bit_and_mixture_are_exactly_unbiased_on_a_grid(channel):
    for target in (np.append(X, 0.0), np.append(np.ones(K), 0.0), np.append(np.zeros(K), 1.0)):
        pseudo = pseudo_values(channel, target, 100)
        assert pseudo.bias == 0
        np.testing.assert_allclose(expected(channel, pseudo.values), target, atol=EXACT)


@pytest.mark.parametrize("epsilon", ["0.7", "1", "2", "4", "8"])
def test_hybrids_have_the_constant_variance_of_wang_et_al_up_to_their_grid(epsilon):
    half = math.exp(float(epsilon) / 2)
    # Wang et al. 2019, hybrid mechanism: with this coin the variance is equal for all truths.
    closed = (half + 3) / (3 * half * (half - 1)) + (half**2 + 1) ** 2 / half / (half**2 - 1) ** 2
    np.testing.assert_allclose(scatter_of(hybrid(K, epsilon)), closed, rtol=0.02)


@each_case("epsilon", ["0.7", "1", "2", "4", "8"])
@each_case("k", [3, 11, 101])
def test_no_other_weights_of_a_hybrids_parts_have_a_smaller_worst_case(k, epsilon):
    channel, x = hybrid(k, epsilon), np.linspace(-1, 1, k)
    values = pseudo_values(channel, x, 100).values
    only_bit = np.where(np.arange(channel.reports) < 2, 1.0, 0.0)
    coin = expected(channel, only_bit)[0]
    # Shifting weight from one part to the other keeps the estimate unbiased.
    free = values * (only_bit / coin - (1 - only_bit) / (1 - coin))
    np.testing.assert_allclose(expected(channel, free), 0, atol=1e-9)
    worst = (expected(channel, values**2) - x**2).max()
    for step in np.linspace(-0.2, 0.2, 41):
        alternative = (expected(channel, (values + step * free) ** 2) - x**2).max()
        # The bound is exact for real weights; integer weights deviate by up to 1.2%.
        assert alternative >= worst * (1 - 0.012)


def test_the_bias_of_gaussian_noise_is_small_and_falls_with_the_number_of_reports():
    channel = gaussian(K, 6)
    results = [pseudo_values(channel, X, n) for n in (100, 10**4, 10**7)]
    assert [pseudo.bias for pseudo in results] == sorted(
        (pseudo.bias for pseudo in results), reverse=True
    )
    assert 0 < results[0].bias <= 0.05
    exact = np.linalg.solve(channel.matrix, X)
    assert np.abs(results[0].values).max() < np.abs(exact).max() / 100


def test_fiellers_interval_is_the_set_its_definition_accepts():
    moments, n, t = Moments(0.3, 0.8, 2.0, 0.5, 1.5), 200, 1.971957
    interval = ratio_interval(moments, np.zeros(len(RATIOS)), 0.0, n, 0.95)
    r = np.linspace(-1, 1, 200_001)
    scatter = moments.aa - 2 * r * moments.ab + r**2 * moments.bb
    accepted = r[(moments.mean_a - r * moments.mean_b) ** 2 <= t**2 * scatter / n]
    assert interval.low == pytest.approx(accepted.min(), abs=2e-5)
    assert interval.high == pytest.approx(accepted.max(), abs=2e-5)


def test_the_lower_hull_is_the_least_mix_of_two_points():
    rng = np.random.default_rng(8)
    for _ in range(50):
        x = np.sort(rng.random(12)) * 2 - 1
        y, at = rng.random(12), float(rng.uniform(x[0], x[-1]))
        mixes = [
            y[i] + (y[j] - y[i]) * (at - x[i]) / (x[j] - x[i])
            for i in range(12)
            for j in range(12)
            if x[i] < at < x[j]
        ]
        assert lower_hull(x, y, at) == pytest.approx(min(mixes))
