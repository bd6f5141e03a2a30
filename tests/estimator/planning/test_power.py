"""Power matches published numbers, its inverse and simulated comparisons."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from survey.errors import DesignError
from survey.estimator import power, power_against, required_n_against, required_n_difference
from survey.estimator.core.intervals import Chances, confidence_interval
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


@each_case(
    ("n_a", "n_b", "a", "b"), [(30, 40, 0.02, 0.3), (60, 60, 0.0, 0.1), (25, 2000, 0.3, 0.01)]
)
@each_case("channel", [from_epsilon(2, 6), from_ratio(3, 50, 1), OPENLY])
def test_power_of_few_reports_is_enumerated(channel, n_a, n_b, a, b):
    planned = power(n_a, n_b, a, b, channel=channel).power
    simulated = rejections(channel, n_a, n_b, a, b, 40_000, np.random.default_rng(2))
    assert planned == pytest.approx(simulated, abs=0.01)


def test_rare_answers_need_the_enumerated_number_of_reports():
    plan = required_n_difference(0.001, 0.02, epsilon=10)
    a, b = (from_epsilon(2, 10).q + share for share in (0.001, 0.02))
    assert min(plan.n_a * a, plan.n_a * b) < 9
    assert plan.power >= 0.8 > power(plan.n_a - 1, plan.n_a - 1, 0.001, 0.02, epsilon=10).power


def rejecting_chance(n, channel, share, known, interval, level=0.95):
    """Return how often the published interval excludes `known`, over every outcome."""
    counts = np.arange(n + 1)
    low, high = confidence_interval(counts, n, channel, level, interval)
    excluded = (known < low) | (known > high)
    lam = channel.q + (channel.p - channel.q) * share
    return float(binom.pmf(counts, n, lam) @ excluded)


@each_case("interval", ["feldman-cousins", "wilson", "clopper-pearson"])
@each_case(
    ("n", "k", "epsilon", "share", "known"),
    [(60, 2, 1, 0.5, 0.2), (200, 4, 2, 0.3, 0.2), (40, 2, 7, 0.0, 0.1), (150, 2, 6, 0.04, 0.0)],
)
def test_power_against_a_known_share_is_how_often_its_interval_excludes_it(
    n, k, epsilon, share, known, interval
):
    channel = from_epsilon(k, epsilon)
    plan = power_against(n, share, known, channel=channel, interval=interval)
    expected = rejecting_chance(n, channel, share, known, interval)
    assert plan.power == pytest.approx(expected, abs=1e-9)
    size = rejecting_chance(n, channel, known, known, interval)
    assert plan.size == pytest.approx(size, abs=1e-9)
    assert interval != "feldman-cousins" or plan.size <= 0.05
    strict = power_against(n, share, known, channel=channel, interval=interval, significance=0.01)
    expected = rejecting_chance(n, channel, share, known, interval, level=0.99)
    assert strict.power == pytest.approx(expected, abs=1e-9)


def test_the_fewest_reports_against_a_known_share_have_the_power_from_then_on():
    plan = required_n_against(0.02, 0.1, epsilon=5, target=0.9)
    arguments = {"share": 0.02, "known": 0.1, "epsilon": 5}
    assert power_against(plan.n - 1, **arguments).power < 0.9
    assert all(power_against(plan.n + i, **arguments).power >= 0.9 for i in range(21))
    # R, pwr.p.test(h = ES.h(.3, .2), power = .8) gives n = 142.6 for answers without randomization,
    # by the arcsine approximation.
    assert required_n_against(0.3, 0.2, channel=OPENLY).n == pytest.approx(143, rel=0.1)


@each_case(
    ("change", "words"),
    [
        ({"known": 0.4}, "equals the known one"),
        ({"known": -0.1}, "nearest allowed value is 0"),
        ({"target": 0.01}, "target"),
        ({"interval": "wald"}, "must be one of"),
        ({"known": 0.4 + 1e-7}, "would need"),
    ],
)
def test_wrong_known_shares_are_rejected_by_name(change, words):
    arguments = {"share": 0.4, "known": 0.2, "epsilon": 1, **change}
    share, known = arguments.pop("share"), arguments.pop("known")
    with pytest.raises(DesignError, match=words):
        required_n_against(share, known, **arguments)


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
