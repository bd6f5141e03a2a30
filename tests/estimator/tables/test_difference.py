"""Differences of two groups: values, agreement with statsmodels, coverage, rejected arguments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from survey.errors import ChannelError, CountsError
from survey.estimator import Difference, difference, proportions
from survey.mechanism import BitVector, HalfSpace, SubsetSelection, WeightTable, from_epsilon, grr
from survey.mechanism.numeric import geometric, one_bit
from survey.mechanism.randomized_response import two_coins
from survey.mechanism.weight_table import Explicit
from tests.cases import each_case
from tests.estimator.difference_enumeration import enumerated_difference

HALF = grr(2, "3/4")
WIDE = WeightTable(Explicit(((5, 1, 1, 3), (1, 5, 1, 3), (1, 1, 5, 3))))


def test_mover_takes_wilsons_ends_mapped_through_each_channel():
    weak = grr(2, "2/3")
    result = difference([500, 500], [130, 170], HALF, weak, interval="mover-wilson")
    ends, shares = [], []
    for counts, channel in (([500, 500], HALF), ([130, 170], weak)):
        low, high = proportion_confint(np.array(counts), sum(counts), method="wilson")
        ends.append([(np.asarray(x) - channel.q) / (channel.p - channel.q) for x in (low, high)])
        shares.append(proportions(counts, channel).estimate)
    (la, ua), (lb, ub), (a, b) = ends[0], ends[1], shares
    np.testing.assert_allclose(result.estimate, a - b)
    np.testing.assert_allclose(result.conf_low, a - b - np.hypot(a - la, ub - b))
    np.testing.assert_allclose(result.conf_high, a - b + np.hypot(ua - a, b - lb))
    errors = [proportions(c, ch).std_error for c, ch in (([500, 500], HALF), ([130, 170], weak))]
    np.testing.assert_allclose(result.std_error, np.hypot(*errors))
    np.testing.assert_allclose(result.share_a, a)
    assert (result.n_a, result.n_b, result.method) == (1000, 300, "mover-wilson")


@pytest.mark.parametrize(("a", "b"), [(30, 20), (0, 5), (1, 49), (50, 50), (25, 25)])
def test_without_randomization_mover_is_newcombes_interval(a, b):
    result = difference([a, 60 - a], [b, 50 - b], None, interval="mover-wilson")
    low, high = confint_proportions_2indep(a, 60, b, 50, method="newcomb", compare="diff")
    assert result.conf_low[0] == pytest.approx(low, abs=1e-9)
    assert result.conf_high[0] == pytest.approx(high, abs=1e-9)


@pytest.mark.parametrize(
    ("a", "b", "n"), [(30, 20, (60, 50)), (20, 30, (60, 50)), (8, 9, (20, 200))]
)
def test_a_score_end_is_the_quantile_and_a_part_of_a_report_away_from_the_difference(a, b, n):
    result = difference([a, n[0] - a], [b, n[1] - b], HALF, None)
    # The correction of one share: 1 - z sqrt(-log .95) of a report.
    whole = 1 - norm.ppf(0.975) * math.sqrt(-math.log(0.95))
    effects = sorted((2 / n[0], 1 / n[1]))
    estimate, shift = result.estimate[0], whole * (effects[1] - 0.18 * effects[0])
    # Upper bounds of E[g^2]: g = 2 (supported - 1/4) through the channel, 0 or 1 without.
    weights = n[0] / (4 * (0.75 * 0.75**2 + 0.25 * 0.25**2)), n[1]
    for d, side in ((result.conf_low[0], 1), (result.conf_high[0], -1)):
        x = np.average([result.share_a[0], result.share_b[0] + d], weights=weights)
        x = min(max(x, 0, d), 1, 1 + d)
        reported = 0.25 + 0.5 * x
        variance = 4 * reported * (1 - reported) / n[0] + (x - d) * (1 - x + d) / n[1]
        gap = side * (estimate - d) - shift
        assert gap == pytest.approx(norm.ppf(0.975) * math.sqrt(variance), abs=1e-9)


def test_the_score_at_large_n_is_the_normal_interval():
    n = 10**8
    result = difference([6 * n // 10, 4 * n // 10], [n // 2, n // 2], HALF)
    reach = norm.ppf(0.975) * result.std_error
    np.testing.assert_allclose(result.conf_high - result.estimate, reach, rtol=1e-3)
    np.testing.assert_allclose(result.estimate - result.conf_low, reach, rtol=1e-3)


def test_the_test_of_equal_shares_is_the_pooled_one_with_a_correction_for_whole_counts():
    result = difference([60, 40], [45, 55], None)
    shift = (1 - norm.ppf(0.975) * math.sqrt(-math.log(0.95))) * 0.82 / 100
    z = (0.15 - shift) / math.sqrt(0.525 * 0.475 * 2 / 100)
    assert result.z[0] == pytest.approx(z)
    assert result.p_value[0] == pytest.approx(2 * norm.sf(z))
    through = difference([60, 40], [45, 55], HALF)
    # With one common channel, the test equals the test on the reports.
    assert through.z[0] == pytest.approx(z)
    large = difference([60 * 10**6, 40 * 10**6], [59_999_000, 40_001_000], None)
    assert large.z[0] == pytest.approx(1e-5 / math.sqrt(0.6 * 0.4 * 2 / 10**8), rel=1e-3)
    assert difference([10, 0], [20, 0], None).p_value.tolist() == [1, 1]
    assert np.isfinite(difference([100, 0], [0, 100], HALF).z).all()


@pytest.mark.web
@each_case("level", [0.9, 0.95, 0.99])
def test_an_interval_contains_0_if_and_only_if_the_p_value_is_above_its_level(level):
    rng = np.random.default_rng(20261125)
    for channel in (HALF, from_epsilon(4, 2), None):
        k = 2 if channel is None else channel.truths
        for n_a, n_b in ((50, 50), (100, 300), (500, 100)):
            for _ in range(100):
                a, b = (rng.multinomial(n, rng.dirichlet(np.ones(k))) for n in (n_a, n_b))
                result = difference(a, b, channel, level=level)
                contains = (result.conf_low <= 0) & (result.conf_high >= 0)
                assert (contains == (result.p_value >= 1 - level)).all(), (a, b)


def test_swapping_the_groups_reverses_the_result():
    forward, backward = (
        difference([50, 70], [30, 20], HALF, None),
        difference([30, 20], [50, 70], None, HALF),
    )
    np.testing.assert_allclose(forward.estimate, -backward.estimate)
    np.testing.assert_allclose(forward.conf_low, -backward.conf_high)
    np.testing.assert_allclose(forward.z, -backward.z)
    np.testing.assert_allclose(forward.p_value, backward.p_value)


def test_every_channel_can_be_compared():
    bits, sampled = BitVector(3, 2, 3, 1), BitVector(3, 2, 3, 1, sampled=2)
    result = difference([50, 40, 30], [30, 20, 10], bits, n_a=100, n_b=60)
    np.testing.assert_allclose(result.share_a, proportions([50, 40, 30], bits, n=100).estimate)
    sampled_result = difference([60, 70, 70, 30, 30, 30], [30, 20, 10], sampled, bits, n_b=60)
    assert (sampled_result.n_a, sampled_result.n_b) == (100, 60)
    space = HalfSpace(3, 2, 3, 1, 2)
    result = difference([50, 40, 30], [30, 20, 10], space, n_a=100, n_b=60)
    np.testing.assert_allclose(result.share_b, proportions([30, 20, 10], space, n=60).estimate)
    sets = SubsetSelection(4, 2, 3, 1)
    assert difference([50, 60, 40, 50], [20, 30, 30, 20], sets).n_b == 50
    warner = SubsetSelection(2, 1, 1, 3)
    inverted, plain = difference([30, 70], [50, 50], warner), difference([70, 30], [50, 50], HALF)
    np.testing.assert_allclose(inverted.conf_low, plain.conf_low)
    ticks = difference([50, 40, 30], [9, 8, 7], None, n_a=80, n_b=10)
    np.testing.assert_allclose(ticks.share_b, [0.9, 0.8, 0.7])


def test_tables_of_two_options_are_wilsons_and_larger_ones_have_score_ends():
    coins = two_coins("1/2", "1/3")
    result = difference([420, 580], [300, 300], coins, interval="mover-wilson")
    p, q = coins.matrix[:, 0]
    low, high = proportion_confint(np.array([420, 300]), np.array([1000, 600]), method="wilson")
    (la, lb), (ua, ub) = (low - q) / (p - q), (high - q) / (p - q)
    a, b = (0.42 - q) / (p - q), (0.5 - q) / (p - q)
    assert result.conf_low[0] == pytest.approx(a - b - math.hypot(a - la, ub - b))
    assert result.conf_high[0] == pytest.approx(a - b + math.hypot(ua - a, b - lb))
    wide = difference([50, 20, 30, 40], [20, 20, 20, 20], WIDE)
    np.testing.assert_allclose(wide.share_a, proportions([50, 20, 30, 40], WIDE).estimate)
    np.testing.assert_allclose(wide.std_error[0] ** 2, sum(
        proportions(c, WIDE).std_error[0] ** 2 for c in ([50, 20, 30, 40], [20, 20, 20, 20])
    ))  # fmt: skip
    assert np.all(difference([0, 0, 0, 9, 0], [0, 0, 9, 0, 0], geometric(5, 4)).conf_low < 1)


@each_case("channel", [HALF, from_epsilon(2, "0.1"), None])
@each_case("counts", [([9, 0], [0, 9]), ([10**9, 0], [0, 1]), ([1, 0], [1, 0])])
@each_case("interval", ["score", "mover-wilson"])
def test_an_interval_always_has_a_width_and_lies_between_minus_1_and_1(channel, counts, interval):
    result = difference(*counts, channel, interval=interval)
    assert result.method == interval
    assert np.all(result.conf_low < result.conf_high)
    assert np.all((result.conf_low >= -1) & (result.conf_high <= 1))
    assert np.isfinite([result.estimate, result.std_error, result.z, result.p_value]).all()


@each_case(
    ("arguments", "error", "reason"),
    [
        (([0, 0], [3, 4], HALF), CountsError, "group a is empty|n = 0"),
        (([3, 4], [0, 0], HALF), CountsError, "group b is empty|n = 0"),
        (([3, 4], [0, 0], HALF, None), CountsError, "group b is empty"),
        (([10**10, 4], [3, 4], None), CountsError, "group a has 10,000,000,004 reports"),
        (([3, 4], [1, -1], HALF), CountsError, "negative"),
        (([3, 4], [1, 1.5], HALF), CountsError, "whole number"),
        (([3, 4, 5], [1, 2], HALF), CountsError, "shape"),
        (([3, 4], [1, 2, 3], HALF, None), ChannelError, "must be equal"),
        (([3, 4], [1, 2], one_bit(5, 1)), ChannelError, "cannot be estimated"),
        (([3, 4], [[1, 2]], None), CountsError, "without randomization"),
        (([3, 4], [1, 2], BitVector(2, 1, 3, 1)), CountsError, "state n_a"),
        (([0, 9, 0, 3], [5, 4, 2, 3], BitVector(2, 1, 3, 1, sampled=1)), CountsError, "nobody was"),
    ],
)
def test_groups_that_cannot_be_compared_are_rejected(arguments, error, reason):
    with pytest.raises(error, match=reason):
        difference(*arguments)
    for level in (0, 1, math.nan):
        with pytest.raises(ValueError, match="level"):
            difference([1, 2], [3, 4], HALF, level=level)
    with pytest.raises(ValueError, match="unknown interval 'wald' of a difference"):
        difference([1, 2], [3, 4], HALF, interval="wald")


SHARES = np.array([0, 0.01, 0.02, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 0.97, 0.993, 1])
"""Grid of shares with the corners: nearly all of one group and nearly none of the other."""


@each_case(
    ("n", "epsilons"),
    [
        ((50, 50), ("4", "4")),
        ((50, 50), ("0.5", "2")),
        ((50, 50), ("1", None)),
        ((43, 86), ("7", "7")),
        ((44, 129), ("6", None)),
        ((43, 129), (None, None)),
    ],
)
def test_differences_are_covered_in_the_corners_too(n, epsilons):
    channels = [None if epsilon is None else from_epsilon(2, epsilon) for epsilon in epsilons]
    assert enumerated_difference(n, channels, "score", SHARES).coverage.min() >= 0.945


@pytest.mark.web
@each_case("n", [430, 450, 500])
@each_case("k", [2, 10])
def test_a_small_group_without_randomization_is_compared_with_a_large_one(n, k):
    channels = (from_epsilon(k, "6"), None)
    shares = np.unique([*np.linspace(0, 1, 41), *np.linspace(0.005, 0.055, 11), 0.98, 0.99])
    assert enumerated_difference((n, 43), channels, "score", shares).coverage.min() >= 0.945


def test_the_score_interval_is_barely_wider_than_mover():
    run, shares = (from_epsilon(2, "2"), from_epsilon(2, "2")), np.linspace(0, 1, 21)
    score, mover = (
        enumerated_difference((100, 100), run, interval, shares)
        for interval in ("score", "mover-wilson")
    )
    assert score.width.mean() <= 1.05 * mover.width.mean()


@pytest.mark.long
@each_case("epsilon", ["0.5", "1", "2", "4", "8"])
@each_case("k", [2, 4, 10])
@each_case("n", [(50, 50), (100, 100), (100, 50), (50, 200)])
def test_differences_are_covered_on_a_grid(epsilon, k, n):
    channel = from_epsilon(k, epsilon)
    for second in (channel, from_epsilon(2, "1"), from_epsilon(4, "4"), None):
        enumeration = enumerated_difference(n, (channel, second), "score", np.linspace(0, 1, 41))
        assert enumeration.coverage.min() >= 0.945


def test_men_and_women_in_nigeria():
    # Counted in the data of R's rr, forced response with a die (Blair, Imai, Zhou 2015).
    result = difference([815, 497], [789, 334], grr(2, "5/6"))
    assert result.share_a[1] == pytest.approx(0.3182, abs=5e-5)
    assert result.share_b[1] == pytest.approx(0.1961, abs=5e-5)
    assert result.p_value[1] < 1e-4
    assert 0.06 < result.conf_low[1] < result.estimate[1] < result.conf_high[1] < 0.18


def test_a_difference_is_a_table_of_options():
    result = difference([50, 70], [30, 20], HALF)
    assert isinstance(result, Difference)
    assert result.to_rows()[1]["option"] == 1
    assert "share_a" in repr(result)
