"""Shares from reports with several options: sets, bits, sampled bits, patterns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError
from survey.estimator import Proportions, proportions, subset_shares
from survey.mechanism import BitVector, SubsetSelection, best, grr, multiple_choice
from tests.cases import each_case
from tests.conftest import long_unless

LEVEL = 0.95
ROUNDS = 2000


def ticks(shares: list[float], n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n respondents who tick each option independently with its share."""
    return (rng.random((n, len(shares))) < shares).astype(np.uint8)


def expected_sets(channel: SubsetSelection, people: list[int]) -> np.ndarray:
    """Return the expected supports of reported sets if people[i] respondents have truth i."""
    counts = np.zeros(channel.k, dtype=np.int64)
    for members in itertools.combinations(range(channel.k), channel.d):
        for truth, number in enumerate(people):
            weight = channel.T if truth in members else channel.L
            counts[list(members)] += number * weight
    return counts


def test_supports_of_reported_sets_recover_the_truth():
    channel = SubsetSelection(k=5, d=2, T=4, L=1)
    people = [7, 0, 3, 10, 5]
    result = proportions(expected_sets(channel, people), channel, interval="wilson")
    np.testing.assert_allclose(result.estimate, np.array(people) / 25, atol=1e-12)
    np.testing.assert_allclose(result.mle, np.array(people) / 25, atol=1e-12)


@pytest.mark.parametrize("interval", ["feldman-cousins", "wilson-hull", "clopper-pearson"])
def test_each_option_of_reported_sets_has_the_binomial_interval_of_its_p_and_q(interval):
    sets = best(10, 1)
    assert sets.d > 1
    counts = np.array([40, 40, 40, 20, 20, 20, 20, 20, 20, 40])
    counts[0] += sets.d * 100 - counts.sum()
    result = proportions(counts, sets, interval=interval)
    assert result.n == 100
    alone = proportions([counts[3]], BitVector(1, 1, 2, 1), n=100, interval=interval)
    assert alone.n == 100
    f = counts / 100
    error = np.sqrt(f * (1 - f) / 100) / (sets.p - sets.q)
    np.testing.assert_allclose(result.std_error, error)
    assert np.all(result.conf_low < result.conf_high)


@pytest.mark.web
def test_intervals_of_reported_sets_cover():
    channel, truth = best(8, 1), np.array([0.5, 0.3, 0.2, 0, 0, 0, 0, 0])
    rng = np.random.default_rng(4)
    covered = np.zeros(8)
    for _ in range(ROUNDS // 4):
        counts = channel.perturb(rng.choice(8, size=200, p=truth), rng).sum(axis=0)
        result = proportions(counts, channel, n=200)
        covered += (result.conf_low <= truth) & (truth <= result.conf_high)
    assert np.all(covered / (ROUNDS // 4) >= 0.93)


@pytest.mark.parametrize(
    ("counts", "n", "sentence"),
    [
        ([3, 3, 3, 2], None, "add up to 11, but each report adds 2"),
        ([3, 3, 3, 3], 7, "n = 7, but the counts come from 6 reports"),
        ([8, 2, 1, 1], None, "option 0: 8 of 6 reports support it"),
    ],
)
def test_impossible_supports_are_rejected(counts, n, sentence):
    with pytest.raises(CountsError, match=sentence):
        proportions(counts, SubsetSelection(k=4, d=2, T=3, L=1), n=n)


def mean_over_rounds(channel: BitVector, shares: list[float], n: int) -> tuple:
    rng = np.random.default_rng(9)
    estimates, covered = [], np.zeros(len(shares))
    for _ in range(ROUNDS):
        counts = channel.perturb(ticks(shares, n, rng), rng).sum(axis=0)
        result = proportions(counts, channel, n=n)
        estimates.append(result.estimate)
        covered += (result.conf_low <= shares) & (shares <= result.conf_high)
    return np.array(estimates), covered / ROUNDS


@pytest.mark.web
@pytest.mark.parametrize("sampled", long_unless([2], [4, 2, 1]))
def test_bits_are_unbiased_and_covered_with_all_or_some_options_asked(sampled):
    channel, shares = BitVector(4, 4, 3, 1, sampled=sampled), [0.6, 0.25, 0.05, 0.0]
    estimates, covered = mean_over_rounds(channel, shares, 120)
    error = estimates.std(axis=0) / np.sqrt(ROUNDS)
    assert np.all(np.abs(estimates.mean(axis=0) - shares) < 4 * error)
    assert np.all(covered >= LEVEL - 0.015)


def test_counts_of_ones_are_read_like_two_options_each():
    bits = proportions([60, 30], BitVector(2, 2, 3, 1), n=100)
    for option, ones in enumerate((60, 30)):
        warner = proportions([ones, 100 - ones], grr(2, "3/4"))
        for field in ("estimate", "std_error", "conf_low", "conf_high", "n_effective", "mle"):
            assert getattr(bits, field)[option] == pytest.approx(getattr(warner, field)[0])
    assert bits.estimate.sum() != pytest.approx(1)


def test_a_sampled_option_has_the_estimate_and_interval_of_its_reports():
    channel = BitVector(3, 3, 3, 1, sampled=2)
    result = proportions([60, 80, 60, 30, 20, 44], channel)
    assert result.n == 100
    assert result.reports.tolist() == [60, 80, 60]
    for option, (n_asked, ones) in enumerate(((60, 30), (80, 20), (60, 44))):
        alone = proportions([ones, n_asked - ones], grr(2, "3/4"))
        assert result.conf_low[option] == pytest.approx(alone.conf_low[0])
        assert result.n_effective[option] == pytest.approx(alone.n_effective[0])


def test_an_option_without_asked_respondents_has_no_estimate_and_the_whole_range():
    result = proportions([5, 0, 3, 0], BitVector(2, 2, 3, 1, sampled=1))
    assert np.isnan([result.estimate[1], result.mle[1], result.std_error[1]]).all()
    assert (result.conf_low[1], result.conf_high[1], result.n_effective[1]) == (0, 1, 0)
    assert np.isfinite(result.estimate[0])
    assert "nan" in repr(result)


@each_case(
    ("counts", "channel", "n", "sentence"),
    [
        ([3, 4], BitVector(2, 2, 3, 1), None, "state the number of reports"),
        ([3, 4], BitVector(2, 2, 3, 1), 3, "option 1: 4 of 3 reports support it"),
        ([3, 4], BitVector(2, 2, 3, 1), 0, "n = 0"),
        ([3, 4, 3, 5], BitVector(2, 2, 3, 1, sampled=1), None, "option 1: 5 of 4"),
        ([3, 4, 3, 4], BitVector(2, 2, 3, 1, sampled=1), 8, "n = 8"),
        ([5, 1, 1, 1, 1, 1], BitVector(3, 3, 3, 1, sampled=2), None, "add up to 7"),
        ([6, 1, 1, 1, 1, 1], BitVector(3, 3, 3, 1, sampled=2), None, "option 0: 6 of 4"),
    ],
)
def test_impossible_counts_of_bits_are_rejected(counts, channel, n, sentence):
    with pytest.raises(CountsError, match=sentence):
        proportions(counts, channel, n=n)


PATTERNS = multiple_choice.patterns(3, 2, 1)


def simulated_patterns(
    channel: SubsetSelection, shares: np.ndarray, n: int, rounds: int
) -> list[Proportions]:
    rng = np.random.default_rng(11)
    draws = rng.multinomial(n, shares @ channel.matrix, size=rounds)
    return [subset_shares(counts, channel, PATTERNS, 4) for counts in draws]


@pytest.mark.web
def test_shares_of_options_are_recovered_from_patterns():
    channel = grr(len(PATTERNS), "0.4")
    shares = np.array([0.3, 0.1, 0.2, 0.1, 0.0, 0.1, 0.2])
    truth = np.array(
        [sum(s for s, p in zip(shares, PATTERNS, strict=True) if j in p) for j in range(4)]
    )
    results = simulated_patterns(channel, shares, 150, ROUNDS)
    estimates = np.array([result.estimate for result in results])
    error = estimates.std(axis=0) / np.sqrt(ROUNDS)
    assert np.all(np.abs(estimates.mean(axis=0) - truth) < 4 * error)
    np.testing.assert_allclose(
        estimates.std(axis=0), np.mean([r.std_error for r in results], axis=0), rtol=0.05
    )
    covered = np.mean([(r.conf_low <= truth) & (truth <= r.conf_high) for r in results], axis=0)
    assert np.all(covered >= LEVEL - 0.015)


def test_the_count_of_an_option_is_binomial_with_the_chances_of_its_patterns():
    channel = grr(len(PATTERNS), "0.4")
    holds = np.array([[j in pattern for pattern in PATTERNS] for j in range(4)])
    chances = holds @ channel.matrix.T
    for j in range(4):
        number = holds[j].sum()
        np.testing.assert_allclose(chances[j][holds[j]], channel.p + (number - 1) * channel.q)
        np.testing.assert_allclose(chances[j][~holds[j]], number * channel.q)


@pytest.mark.parametrize(
    ("patterns", "options", "sentence"),
    [
        ([[0], [1]], 2, "2 patterns for a channel of 3"),
        ([[0], [1], [2]], 2, "pattern 2 contains option 2"),
        ([[0], [0], [1]], 3, "option 2 is in 0 of 3"),
        ([[0], [0, 1], [0]], 2, "option 0 is in 3 of 3"),
    ],
)
def test_patterns_that_do_not_fit_are_rejected(patterns, options, sentence):
    with pytest.raises(ChannelError, match=sentence):
        subset_shares([1, 2, 3], grr(3, "0.6"), patterns, options)


def test_patterns_are_reported_one_at_a_time():
    with pytest.raises(ChannelError, match="d = 2"):
        subset_shares([2, 2, 2], SubsetSelection(k=3, d=2, T=3, L=1), [[0], [1], [0, 1]], 2)


def test_simultaneous_intervals_of_bits_share_the_error_among_the_options():
    channel = BitVector(4, 4, 3, 1)
    together = proportions([30, 40, 50, 60], channel, n=100, simultaneous=True)
    per_estimate = proportions([30, 40, 50, 60], channel, n=100, level=1 - 0.05 / 4)
    np.testing.assert_array_equal(together.conf_low, per_estimate.conf_low)
    assert together.method == "feldman-cousins, simultaneous"
