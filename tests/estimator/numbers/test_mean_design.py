"""The design selected for numbers has the smallest worst-case variance of its candidates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from survey.errors import ChannelError
from survey.estimator import mean
from survey.estimator.core.debiasing import expected, pseudo_values
from survey.estimator.numbers.mean import DESIGNS, smallest_worst_variance, worst_variance
from survey.mechanism import WeightTable
from survey.mechanism.numeric import (
    _moving_window,
    hybrid,
    one_bit,
    optimal_piecewise,
    piecewise,
)
from tests.cases import each_case

EPSILONS = ("0.5", "0.7", "1", "2", "4", "8")


@pytest.mark.slow
@each_case("no_answers", [0, 1, 2])
@each_case("k", [2, 3, 11, 40])
def test_the_chosen_design_is_never_worse_than_one_bit_hybrid_or_piecewise(k, no_answers):
    for epsilon in EPSILONS:
        worst = {
            name: worst_variance(make(k, epsilon, no_answers)) for name, make in DESIGNS.items()
        }
        design = smallest_worst_variance(k, epsilon, no_answers)
        assert worst[design] == min(worst.values())


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.62", "1", "4", "8"])
def test_a_fine_grid_gets_the_design_of_a_coarser_one_at_no_loss(epsilon):
    worst = {name: worst_variance(make(1000, epsilon, 0)) for name, make in DESIGNS.items()}
    assert worst[smallest_worst_variance(1000, epsilon)] <= min(worst.values()) * 1.001


@each_case(
    ("k", "epsilon", "no_answers", "name"),
    [
        (2, "8", 0, "one_bit"),
        (2, "1", 2, "one_bit"),
        (11, "0.61", 0, "one_bit"),
        (11, "0.7", 0, "hybrid"),
        (11, "0.7", 1, "one_bit"),
        (11, "1", 1, "hybrid"),
        (11, "1", 2, "one_bit"),
        (1000, "4", 1, "hybrid"),
    ],
)
def test_one_bit_is_best_for_few_points_small_epsilons_and_no_answers(k, epsilon, no_answers, name):
    assert smallest_worst_variance(k, epsilon, no_answers) == name


@pytest.mark.parametrize("epsilon", [0.7, 1.0, 2.0, 4.0])
def test_the_worst_cases_are_those_of_the_papers(epsilon):
    half, e = math.exp(epsilon / 2), math.exp(epsilon)
    of_one_bit = ((e + 1) / (e - 1)) ** 2  # Duchi, Jordan, Wainwright 2018, at 0
    at_an_end = 1 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)  # Wang et al. 2019
    of_hybrid = (half + 3) / (3 * half * (half - 1)) + of_one_bit / half
    for make, paper in ((one_bit, of_one_bit), (piecewise, at_an_end), (hybrid, of_hybrid)):
        assert worst_variance(make(101, epsilon)) == pytest.approx(paper, rel=0.01)


@each_case("epsilon", ["0.5", "1", "2", "4", "8", "12"])
def test_no_other_width_of_the_window_has_a_smaller_worst_case_than_optimal_piecewise(epsilon):
    optimal = optimal_piecewise(5, epsilon)
    window, least = optimal.shape, worst_variance(optimal)
    movement = (window.k - 1) * window.stride
    for factor in (0.25, 0.5, 0.7, 0.9, 1.1, 1.4, 2, 3):
        other = _moving_window(5, epsilon, factor * window.width / movement)
        assert worst_variance(WeightTable(other)) > least


@each_case("epsilon", [1.0, 2.0, 4.0, 8.0])
@each_case("k", [2, 11, 101])
def test_optimal_piecewise_has_its_closed_form_variance(k, epsilon):
    channel, x = optimal_piecewise(k, str(epsilon)), np.linspace(-1, 1, k)
    r, window = float(channel.ratio), channel.shape
    h = window.width / channel.reports
    D = 1 + (r - 1) * h
    beta = D * (1 + (r - 1) * h**3) / (3 * (r - 1) ** 2 * h**2 * (1 - h) ** 2)
    values = pseudo_values(channel, x, 1).values
    np.testing.assert_allclose(expected(channel, values), x, atol=1e-9)
    variance = expected(channel, values**2) - x**2
    np.testing.assert_allclose(variance, beta + x**2 / ((r - 1) * h), rtol=2e-3)
    assert worst_variance(channel) == pytest.approx(variance[0])


@pytest.mark.parametrize("no_answers", [0, 1])
@pytest.mark.parametrize("make", [*DESIGNS.values(), optimal_piecewise])
def test_the_worst_case_is_the_squared_standard_error_of_the_mean_there(make, no_answers):
    channel, k, n = make(5, 2, no_answers), 5, 10**6
    results = []
    for truth in range(k):
        counts = np.round(channel.matrix[truth] * n).astype(int)
        values = [*np.linspace(-1, 1, k), *[None] * no_answers]
        results.append(mean(counts, channel, values).std_error ** 2 * n)
    assert max(results) == pytest.approx(worst_variance(channel), rel=0.01)


def test_plans_that_no_design_supports_are_rejected():
    with pytest.raises(ChannelError, match="2 to 1,000"):
        smallest_worst_variance(1001, 1)
    with pytest.raises(ChannelError, match="epsilon = 13"):
        smallest_worst_variance(11, 13)
