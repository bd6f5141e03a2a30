"""Channels for numbers: epsilon within the request and close to it, with the published moments."""

from __future__ import annotations

import math

import numpy as np
import pytest

from survey.errors import ChannelError
from survey.mechanism import channel_from_json
from survey.mechanism.numeric import (
    gaussian,
    gaussian_delta,
    geometric,
    hybrid,
    laplace,
    one_bit,
    optimal_piecewise,
    piecewise,
    square_wave,
)
from survey.mechanism.randomized_response import exponential
from tests.cases import each_case

MAKERS = [one_bit, square_wave, piecewise, hybrid, optimal_piecewise, geometric, laplace]


@pytest.mark.slow
@each_case("make", MAKERS)
@each_case("k", [2, 3, 11, 101, 1000])
@each_case("epsilon", [0.5, 1, 2, 4])
@pytest.mark.web
def test_epsilon_of_the_integers_is_close_to_the_requested_one_and_never_above(make, k, epsilon):
    table = make(k, epsilon)
    assert table.epsilon <= epsilon + 1e-14
    # On a coarse grid rounded Laplace noise is slightly more private than requested.
    assert table.epsilon > epsilon * (0.6 if make is laplace else 0.98) - 0.01
    assert table.truths == k
    assert channel_from_json(table.to_json()) == table


@each_case("make", MAKERS)
@each_case("no_answers", [1, 2])
def test_a_prefer_not_to_say_option_does_not_increase_epsilon(make, no_answers):
    table = make(11, 1, no_answers)
    assert table.epsilon == make(11, 1).epsilon
    assert table.truths == 11 + no_answers


@each_case("make", [one_bit, piecewise])
@each_case("epsilon", [0.3, 1, 3])
def test_the_expected_report_is_linear_in_the_truth_so_estimated_means_are_unbiased(make, epsilon):
    table = make(21, epsilon)
    expected = table.matrix @ np.arange(table.reports)
    np.testing.assert_allclose(np.diff(expected, 2), 0, atol=1e-9)
    assert np.all(np.diff(expected) > 0)


def pseudo_values(table):
    """Return the linear map of reports to numbers whose mean is the truth on [-1, 1]."""
    t = np.linspace(-1, 1, table.truths)
    reports = np.arange(table.reports)
    slope, start = np.polyfit(table.matrix @ reports, t, 1)
    return t, slope * reports + start


def test_one_bit_has_the_variance_of_the_paper():
    t, values = pseudo_values(one_bit(21, 1))
    table = one_bit(21, 1)
    B = (math.exp(table.epsilon) + 1) / (math.exp(table.epsilon) - 1)
    np.testing.assert_allclose(table.matrix @ values**2 - t**2, B**2 - t**2, rtol=1e-6)


def test_piecewise_has_the_variance_of_the_paper_up_to_its_grid():
    table = piecewise(21, 2)
    t, values = pseudo_values(table)
    r = math.exp(table.epsilon / 2)
    paper = t**2 / (r - 1) + (r + 3) / (3 * (r - 1) ** 2)
    np.testing.assert_allclose(table.matrix @ values**2 - t**2, paper, rtol=0.01)


def test_hybrid_uses_its_window_with_probability_1_minus_e_to_minus_half_epsilon():
    for epsilon in (0.7, 1, 2, 4):
        table = hybrid(11, epsilon)
        assert table.matrix[3, 2:].sum() == pytest.approx(1 - math.exp(-epsilon / 2), abs=1e-3)
    assert hybrid(11, 0.61) == one_bit(11, 0.61)


def test_a_square_waves_window_is_the_papers():
    # b(1) = (e - e + 1) / (2e(e - 2)) = .2561 of the range
    assert square_wave(1000, 1).shape.width == 2 * 256 + 1


@each_case("epsilon", [0.5, 2])
def test_geometric_noise_has_its_probabilities(epsilon):
    k = 11
    a = math.exp(-epsilon / (k - 1))
    middle = geometric(k, epsilon).matrix[5]
    expected = (1 - a) / (1 + a) * a ** np.abs(np.arange(k) - 5.0)
    np.testing.assert_allclose(middle[1:-1], expected[1:-1], rtol=1e-4)
    assert middle[0] == pytest.approx(a**5 / (1 + a), rel=1e-4)


def test_laplace_noise_is_the_rounded_and_clamped_density():
    k, epsilon = 21, 2.0
    scale = (k - 1) / epsilon
    draws = np.random.default_rng(3).laplace(8, scale, 2_000_000).round().clip(0, k - 1)
    frequencies = np.bincount(draws.astype(int), minlength=k) / draws.size
    np.testing.assert_allclose(laplace(k, epsilon).matrix[8], frequencies, atol=5e-4)


def test_gaussian_noise_is_the_rounded_and_clamped_density():
    draws = np.random.default_rng(4).normal(4, 6, 2_000_000).round().clip(0, 10)
    frequencies = np.bincount(draws.astype(int), minlength=11) / draws.size
    np.testing.assert_allclose(gaussian(11, 6).matrix[4], frequencies, atol=1.5e-3)


def test_the_gaussian_delta_is_the_integral_of_the_excess_over_e_to_the_epsilon():
    sigma, s, epsilon = 3.0, 2.0, 0.5
    x = np.linspace(-60, 60, 1_200_001)
    density = np.exp(-(((x[:, None] - np.array([0, s])) / sigma) ** 2) / 2)
    density /= sigma * math.sqrt(2 * math.pi)
    excess = np.maximum(density[:, 1] - math.exp(epsilon) * density[:, 0], 0).sum() * (x[1] - x[0])
    assert gaussian_delta(sigma, s, epsilon) == pytest.approx(excess, rel=1e-4)


def test_the_exponential_mechanism_follows_its_utilities():
    utility = -np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)
    table = exponential(utility, 2)
    assert 0.9 < table.epsilon <= 2
    expected = np.exp(2 * utility / (2 * 4))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(table.matrix, expected, rtol=1e-3)
    assert len(set(table.weights.sum(axis=1).tolist())) == 1


@each_case(("make", "words"), [
    (lambda: one_bit(1, 1), "nearest is 2"),
    (lambda: geometric(1001, 1), "nearest is 1,000"),
    (lambda: laplace(2.5, 1), "points"),
    (lambda: geometric(5, 0), "0.001"),
    (lambda: square_wave(5, 13), "12"),
    (lambda: piecewise(5, -1), "0.001"),
    (lambda: gaussian(11, 0), "above 0"),
    (lambda: gaussian(11, 0.1), "larger sigma"),
    (lambda: exponential([[1, 1], [1, 1]], 1), "are equal"),
    (lambda: exponential([[1, math.inf], [1, 1]], 1), "finite"),
    (lambda: exponential([[1, 0], [0, 1]], 12.5), "12"),
])  # fmt: skip
def test_invalid_arguments_of_numeric_designs_are_rejected_by_name(make, words):
    with pytest.raises(ChannelError, match=words):
        make()
