"""Power matches published numbers, its inverse and simulated comparisons."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from survey.errors import DesignError
from survey.estimator import power, required_n_difference
from survey.estimator.core.intervals import Chances
from survey.mechanism import from_epsilon, from_ratio
from tests.cases import each_case

OPENLY = Chances(1, 0)


def test_answers_without_randomization_have_the_numbers_of_r():
    # R, ?power.prop.test: p1 = .50, p2 = .75, power = .90 gives n = 76.7 (of each group);
    # n = 50, p1 = .50, p2 = .75 gives power = 0.740.
    assert required_n_difference(0.5, 0.75, channel=OPENLY, target=0.9).n_a == 77
    assert power(50, 50, 0.5, 0.75, channel=OPENLY).power == pytest.approx(0.740, abs=5e-4)


def rejections(channel, n_a, n_b, a, b, rounds, rng):
    """Return the share of simulated surveys in which the pooled z test rejects."""
    D = channel.p - channel.q
    c_a = rng.binomial(n_a, channel.q + D * a, rounds)
    c_b = rng.binomial(n_b, channel.q + D * b, rounds)
    pooled = (c_a + c_b) / (n_a + n_b)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n_a + 1 / n_b))
    return float(np.mean(np.abs(c_b / n_b - c_a / n_a) > norm.ppf(0.975) * error))


@each_case(
    ("n_a", "n_b", "a", "b"), [(500, 500, 0.2, 0.4), (300, 900, 0.1, 0.3), (400, 400, 0.3, 0.3)]
)
@each_case("channel", [from_epsilon(2, 1), from_epsilon(4, 2), from_ratio(2, 1, 3)])
def test_power_is_how_often_simulated_surveys_find_the_difference(channel, n_a, n_b, a, b):
    planned = power(n_a, n_b, a, b, channel=channel)
    simulated = rejections(channel, n_a, n_b, a, b, 40_000, np.random.default_rng(1))
    assert planned.power == pytest.approx(simulated, abs=0.012)


@each_case("ratio", [0.5, 1.0, 3.0])
@each_case("epsilon", [0.5, 1, 4])
def test_the_number_of_reports_is_the_fewest_with_the_power(epsilon, ratio):
    plan = required_n_difference(0.1, 0.25, epsilon=epsilon, k=3, target=0.85, ratio=ratio)
    assert plan.power >= 0.85 - 1e-3
    less = int(plan.n_a * 0.99)
    fewer = power(less, max(int(less * ratio), 1), 0.1, 0.25, epsilon=epsilon, k=3)
    assert fewer.power < 0.85


def test_power_rises_with_epsilon_and_equals_the_level_without_a_difference():
    powers = [power(800, 800, 0.2, 0.3, epsilon=e).power for e in (0.1, 0.5, 1, 2, 4)]
    assert np.all(np.diff(powers) > 0)
    assert power(800, 800, 0.2, 0.2, epsilon=1).power == pytest.approx(0.05)


@each_case(
    ("change", "words"),
    [
        ({"share_b": 0.2}, "same share"),
        ({"share_b": 1.2}, "nearest allowed value is 1"),
        ({"share_a": math.nan}, "share = nan"),
        ({"target": 0.01}, "target"),
        ({"target": 1}, "target"),
        ({"ratio": 0}, "ratio"),
        ({"ratio": math.inf}, "ratio"),
        ({"significance": 0}, "significance"),
        ({"epsilon": None}, "one of the two"),
        ({"channel": OPENLY}, "one of the two"),
        ({"epsilon": None, "channel": Chances(0.3, 0.3)}, "must be two different chances"),
        ({"epsilon": 50}, "nearest allowed value is 12"),
        ({"share_b": 0.2 + 1e-7}, "would need"),
    ],
)
def test_wrong_comparisons_are_rejected_by_name(change, words):
    arguments = {"share_a": 0.2, "share_b": 0.4, "epsilon": 1, **change}
    a, b = arguments.pop("share_a"), arguments.pop("share_b")
    with pytest.raises(DesignError, match=words):
        required_n_difference(a, b, **arguments)


def test_certain_answers_and_empty_groups_are_rejected():
    with pytest.raises(DesignError, match="certain"):
        power(10, 10, 0, 1, channel=OPENLY)
    with pytest.raises(DesignError, match="n = 0"):
        power(0, 10, 0.1, 0.2, epsilon=1)
