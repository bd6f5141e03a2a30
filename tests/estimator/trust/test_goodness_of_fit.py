"""Goodness of fit, its undetectable cases, and the lie detector of two groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2

from survey.errors import ChannelError, CountsError
from survey.estimator import channel_fit, lie_detector
from survey.estimator.trust.goodness_of_fit import MISFIT, NOT_CONVERGED
from survey.estimator.trust.lie_detector import NOT_CLEAR, OUTSIDE
from survey.mechanism import BitVector, HalfSpace, SubsetSelection, WeightTable, from_epsilon, grr
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.numeric import geometric, one_bit, square_wave
from survey.mechanism.weight_table import Explicit
from tests.cases import each_case

TABLES = {
    "generalized randomized response": from_epsilon(5, 1),
    "Warner": grr(2, "3/4"),
    "square wave": square_wave(9, 2, 1),
    "geometric": geometric(7, 3),
    "more reports than truths": WeightTable(Explicit(((5, 1, 1, 3), (1, 5, 1, 3)))),
}
tables = pytest.mark.parametrize("channel", TABLES.values(), ids=TABLES)


def doubtful_rate(channel, truth, rounds: int, n: int, *, fakes=None, part: float = 0.0) -> float:
    """Return how often the test flags n reports that include fabricated reports."""
    rng = np.random.default_rng([n, rounds])
    chances = (1 - part) * (np.asarray(truth) @ channel.matrix)
    if fakes is not None:
        chances = chances + part * np.asarray(fakes)
    draws = rng.multinomial(n, chances, size=rounds)
    return float(np.mean([channel_fit(counts, channel).doubtful for counts in draws]))


@pytest.mark.web
@tables
@each_case("n", [30, 1000])
def test_genuine_reports_are_rarely_flagged(channel, n):
    k = len(channel.matrix)
    # The worst case is a corner, where nearly all shares are at the edge of the possible range.
    for truth in (np.eye(k)[0], np.full(k, 1 / k)):
        assert doubtful_rate(channel, truth, 400, n) <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / 400)


@pytest.mark.long
@each_case("level", [0.95, 0.99])
@tables
def test_the_test_has_at_most_its_nominal_size(channel, level):
    # Iterative fitting of tables is slow.
    k, rounds = len(channel.matrix), 4000 if isinstance(channel, SubsetSelection) else 300
    for n in (50, 5000):
        for truth in (np.eye(k)[0], np.eye(k)[-1], np.full(k, 1 / k)):
            draws = np.random.default_rng(n).multinomial(n, truth @ channel.matrix, size=rounds)
            rate = np.mean([channel_fit(c, channel, level=level).doubtful for c in draws])
            assert rate <= 1 - level + 3 * math.sqrt(level * (1 - level) / rounds)


def test_fabricated_reports_that_push_other_shares_below_zero_are_detected():
    channel = from_epsilon(5, 1)
    truth, target = [0.7, 0.3, 0, 0, 0], np.eye(5)[0]
    assert doubtful_rate(channel, truth, 200, 5000, fakes=target, part=0.10) >= 0.95
    assert doubtful_rate(channel, truth, 200, 5000) <= 0.03


def test_the_power_grows_with_the_fakes_and_with_the_reports():
    channel, truth, target = from_epsilon(4, 1), [0.9, 0.1, 0, 0], np.eye(4)[1]
    by_part = [doubtful_rate(channel, truth, 200, 2000, fakes=target, part=b) for b in (0.02, 0.2)]
    by_n = [doubtful_rate(channel, truth, 200, n, fakes=target, part=0.08) for n in (200, 20_000)]
    assert by_part[0] < 0.5 < 0.95 < by_part[1]
    assert by_n[0] < 0.5 < 0.95 < by_n[1]


def test_the_result_states_that_plausible_fabricated_reports_are_undetectable():
    channel, truth, target = grr(2, "3/4"), [0.5, 0.5], np.eye(2)[0]
    assert doubtful_rate(channel, truth, 200, 5000, fakes=target, part=0.10) == 0
    result = channel_fit([3000, 2000], channel)
    assert result.flag == ""
    assert "fabricated reports that keep the shares possible" in result.cannot_see
    assert 'self-protective "no"' in repr(result)


def test_the_statistics_are_those_of_the_formulas():
    channel, counts = grr(3, "0.6"), np.array([550, 300, 150])
    result = channel_fit(counts, channel)
    n, q = 1000, 0.2
    assert result.z[2] == pytest.approx((0.15 - q) / math.sqrt(q * (1 - q) / n))
    assert result.min_z == result.z.min()
    assert result.z_p_value == pytest.approx(3 * binom.cdf(150, n, q))
    # The third share is 0; the other two keep their proportions in the remainder.
    reported = np.array([0.8 * 550 / 850, 0.8 * 300 / 850, 0.2])
    g_squared = 2 * np.sum(counts * np.log(counts / n / reported))
    assert result.g_squared == pytest.approx(g_squared)
    assert result.df == 2
    assert result.g_p_value == pytest.approx(chi2.sf(g_squared, 2))
    assert result.p_value == pytest.approx(2 * min(result.g_p_value, result.z_p_value))


def test_two_options_are_tested_at_both_ends():
    channel = grr(2, "3/4")
    low, high = channel_fit([150, 850], channel), channel_fit([850, 150], channel)
    assert low.doubtful
    assert high.doubtful
    assert low.flag == high.flag == MISFIT
    assert low.p_value == pytest.approx(high.p_value)


def test_shares_that_are_all_possible_fit_exactly():
    result = channel_fit([400, 300, 300], grr(3, "0.6"))
    assert result.g_squared == pytest.approx(0, abs=1e-9)
    assert (result.g_p_value, result.doubtful) == (pytest.approx(1), False)


def test_bit_vectors_and_sets_are_tested_count_by_count():
    bits = BitVector(3, 1, 3, 1)
    fitting, low, high = (
        channel_fit([c, 500, 500], bits, n=1000) for c in (500, 150, 850)
    )  # q = .25, p = .75
    assert [f.doubtful for f in (fitting, low, high)] == [False, True, True]
    assert (fitting.g_squared, fitting.df) == (-1, 0)
    sampled = channel_fit([500, 0, 500, 20, 0, 250], BitVector(3, 1, 3, 1, sampled=1), n=1000)
    assert sampled.doubtful
    assert np.isfinite(sampled.z).all()
    sets = SubsetSelection(4, 2, 3, 1)
    assert not channel_fit([500, 500, 500, 500], sets).doubtful
    assert channel_fit([990, 670, 170, 170], sets).doubtful


def test_sets_of_all_options_but_one_are_tested_by_their_likelihood():
    channel, missing = SubsetSelection(3, 2, 3, 1), np.array([200, 300, 500])
    result = channel_fit(1000 - missing, channel)
    # The third share is 0: P(missing) is at most 3/7, and the others share the remainder.
    reported = np.array([4 / 7 * 0.4, 4 / 7 * 0.6, 3 / 7])
    g_squared = 2 * np.sum(missing * np.log(missing / 1000 / reported))
    assert result.g_squared == pytest.approx(g_squared)
    assert (result.df, result.flag) == (2, MISFIT)
    assert result.g_p_value == pytest.approx(chi2.sf(g_squared, 2))


CHANNELS = {
    "bits": BitVector(4, 2, 3, 1),
    "half-space": HalfSpace(4, 2, 3, 5, 1),
    "sampled bits": BitVector(4, 2, 3, 1, sampled=2),
    "pairs": SubsetSelection(6, 2, 3, 1),
    "all but one": SubsetSelection(4, 3, 3, 1),
}
each_channel = pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)


def reports_of(channel, truth: int, n: int, rng):
    """Return reports of respondents with one common answer, the worst case for the test."""
    if isinstance(channel, TickChannel):
        return channel.perturb(np.tile(np.eye(channel.m, dtype=int)[truth], (n, 1)), rng)
    return channel.perturb(np.full(n, truth), rng)


@pytest.mark.web
@each_channel
@each_case("n", [30, 1000])
def test_genuine_reports_with_several_options_are_rarely_flagged(channel, n):
    rng, rounds = np.random.default_rng(n), 400
    doubts = [
        channel_fit(reports_of(channel, 0, n, rng).sum(axis=0), channel, n=n).doubtful
        for _ in range(rounds)
    ]
    assert np.mean(doubts) <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / rounds)


@each_channel
def test_fabricated_sets_that_never_contain_an_option_are_detected(channel):
    n, rng = 4000, np.random.default_rng(5)
    reports = reports_of(channel, 0, n, rng)
    # A fifth of the reports are copies of reports without the last option.
    without = reports[reports[:, -1] == 0][: n // 5]
    faked = np.concatenate([reports[n // 5 :], without])
    assert channel_fit(faked.sum(axis=0), channel, n=n).doubtful


def test_the_result_states_that_wrong_combinations_of_options_are_undetectable():
    channel, n, rng = BitVector(4, 1, 3, 1), 4000, np.random.default_rng(5)
    reports = np.concatenate([reports_of(channel, truth, n // 2, rng) for truth in (0, 1)])
    # All respondents tick at most one option, but a tenth of the reports contain all options.
    reports[: n // 10] = 1
    result = channel_fit(reports.sum(axis=0), channel, n=n)
    assert not result.doubtful
    assert "wrong combinations of options" in result.cannot_see
    assert "combinations" not in channel_fit([500, 500], grr(2, "3/4")).cannot_see
    assert "combinations" in channel_fit([500] * 6, SubsetSelection(6, 2, 3, 1)).cannot_see


def test_one_bit_has_a_goodness_of_fit_without_shares():
    channel = one_bit(11, 2)
    assert not channel_fit([500, 500], channel).doubtful
    assert channel_fit([990, 10], channel).doubtful


@pytest.mark.slow
def test_sparse_reports_are_counted_together():
    channel = square_wave(60, 1)
    counts = np.random.default_rng(1).multinomial(90, channel.matrix.mean(axis=0))
    result = channel_fit(counts, channel)
    assert 0 < result.df <= 90 / 5
    assert not result.doubtful


def test_a_likelihood_that_is_not_maximized_in_time_is_flagged(monkeypatch):
    monkeypatch.setattr("survey.estimator.core.maximum_likelihood.MAX_ROUNDS", 1)
    result = channel_fit([500, 3, 1], WeightTable(Explicit(((3, 1, 1), (1, 3, 1), (1, 1, 3)))))
    assert NOT_CONVERGED in result.flag
    assert (result.g_squared, result.df, result.g_p_value) == (-1, 0, 1)


@each_case(
    ("counts", "channel", "n", "error"),
    [
        ([0, 0], grr(2, "3/4"), None, "n = 0"),
        ([1, 2, 3], grr(2, "3/4"), None, "one per option"),
        ([1, -2], grr(2, "3/4"), None, "negative"),
        ([1, 2.5], grr(2, "3/4"), None, "whole number"),
        ([1, 2], grr(2, "3/4"), 4, "n = 4"),
        ([1, 2, 3], BitVector(3, 1, 3, 1), None, "state the number of reports"),
        ([1, 2, 13], BitVector(3, 1, 3, 1), 10, "13 of 10"),
        ([3, 0, 1], SubsetSelection(3, 2, 3, 1), None, "3 of 2"),
    ],
)
def test_counts_that_the_channel_cannot_produce_are_rejected(counts, channel, n, error):
    with pytest.raises(CountsError, match=error):
        channel_fit(counts, channel, n=n)


def test_a_level_outside_0_and_1_is_rejected():
    with pytest.raises(ValueError, match="level = 0"):
        channel_fit([5, 5], grr(2, "3/4"), level=0)


def by_hand(pi: float, t: float, p, n: int, rng):
    chances = pi * t + (1 - pi) * (1 - np.asarray(p))
    return rng.binomial(n, chances)


def test_the_lie_detector_finds_carriers_and_their_honesty():
    pi, t, p, n = 0.3, 0.6, (0.3, 0.8), 10**6
    exact = pi * t + (1 - pi) * (1 - np.array(p))
    result = lie_detector((exact * n).round().astype(int), [n, n], p)
    assert result.estimate == pytest.approx([pi, t], abs=1e-5)
    assert result.flag == ""


@pytest.mark.slow
@pytest.mark.parametrize(("pi", "t"), [(0.2, 0.5), (0.5, 1.0), (0.6, 0.3)])
def test_standard_errors_of_the_lie_detector_match_a_simulation(pi, t):
    rng, p, n = np.random.default_rng(2), (0.2, 0.7), 5000
    results = [lie_detector(by_hand(pi, t, p, n, rng), [n, n], p) for _ in range(600)]
    spread = np.std([f.estimate for f in results], axis=0)
    claimed = np.mean([f.std_error for f in results], axis=0)
    np.testing.assert_allclose(claimed, spread, rtol=0.12)


@pytest.mark.web
@each_case("n", [200, 2000])
@each_case("t", [0.3, 1.0])
@each_case("pi", [0.05, 0.2, 0.6])
def test_intervals_of_the_lie_detector_cover_and_have_a_width(pi, t, n):
    rng, p, rounds = np.random.default_rng(n), (0.3, 0.7), 400
    results = [lie_detector(by_hand(pi, t, p, n, rng), [n, n], p) for _ in range(rounds)]
    low, high = (np.array([getattr(f, end) for f in results]) for end in ("conf_low", "conf_high"))
    covered = ((low <= [pi, t]) & ([pi, t] <= high)).mean(axis=0)
    assert covered.min() >= 0.93 - 3 * math.sqrt(0.05 * 0.95 / rounds)
    assert np.all(low < high)
    assert low.min() >= 0
    assert high.max() <= 1


def test_without_carriers_honesty_is_undefined():
    result = lie_detector([700, 300], [1000, 1000], [0.3, 0.7])
    assert result.flag == NOT_CLEAR
    assert (result.conf_low[1], result.conf_high[1]) == (0, 1)
    beyond = lie_detector([800, 200], [1000, 1000], [0.3, 0.7])
    assert beyond.estimate[0] < 0
    assert (beyond.estimate[1], beyond.std_error[1]) == (0, math.inf)


def test_answers_that_do_not_follow_the_rules_are_flagged():
    # Both groups say yes more often than any honesty t permits.
    result = lie_detector([900, 700], [1000, 1000], [0.5, 0.9])
    assert result.estimate[1] > 1
    assert result.flag == OUTSIDE


def test_unanimous_answers_still_have_intervals():
    for yes in ([0, 0], [50, 50], [50, 0], [0, 50]):
        result = lie_detector(yes, [50, 50], [0.3, 0.7])
        assert np.isfinite(result.estimate).all()
        assert np.all(result.conf_low < result.conf_high)


def test_two_groups_of_devices_are_rejected_with_the_reason():
    with pytest.raises(ChannelError, match=r"two groups of devices determine pi t only"):
        lie_detector([5, 5], [10, 10], [grr(2, "3/4"), grr(2, "2/3")])
    assert "Not for two groups of DEVICES" in lie_detector.__doc__


@each_case(
    ("yes", "n", "p", "error"),
    [
        ([5, 5], [10, 10], [0.5, 0.5], "equal probabilities"),
        ([5, 5], [10, 10], [0.5], "two groups' probabilities"),
        ([5, 5], [10, 10], [0.5, 1.5], "from 0 to 1"),
        ([5, 5], [10, 10], [0.5, math.nan], "from 0 to 1"),
        ([5, 5], [10, 0], [0.5, 0.7], "n = 0"),
        ([5, 11], [10, 10], [0.5, 0.7], "11 of 10"),
        ([5, 5.5], [10, 10], [0.5, 0.7], "whole number"),
        ([5], [10, 10], [0.5, 0.7], "yes per group"),
    ],
)
def test_invalid_groups_are_rejected(yes, n, p, error):
    with pytest.raises((ChannelError, CountsError), match=error):
        lie_detector(yes, n, p)
