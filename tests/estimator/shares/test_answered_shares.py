"""Shares among respondents with an answer: moments, coverage and rejected arguments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import multinomial

from survey.errors import ChannelError, CountsError, NoBaseError
from survey.estimator import AnsweredShares, answered_shares, proportions, subset_shares
from survey.estimator.core.intervals import continuity
from survey.estimator.shares.answered_shares import RATIOS, ratio_ends, support, support_shift
from survey.mechanism import (
    BitVector,
    HalfSpace,
    SubsetSelection,
    WeightTable,
    best,
    from_epsilon,
    grr,
    multiple_choice,
)
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.numeric import geometric
from survey.mechanism.simulation import population
from survey.mechanism.weight_table import Explicit
from tests.cases import each_case
from tests.conftest import long_unless

Z = float(ndtri(0.975))


# -- moments, against all possible reports


def sets_of(channel: SubsetSelection) -> tuple[np.ndarray, np.ndarray]:
    """Return the members of all reported sets (sets, k) and P(set | truth) (k, sets)."""
    members = np.array(
        [
            [j in options for j in range(channel.k)]
            for options in itertools.combinations(range(channel.k), channel.d)
        ]
    )
    weights = np.where(members.T, channel.T, channel.L).astype(float)
    return members, weights / weights.sum(axis=1, keepdims=True)


def exact_variance(a, b, chances, pi, ratio):
    """Return Var(a - r b) per report for true shares pi."""
    reports = pi @ chances
    values = a - ratio * b
    return reports @ values**2 - (reports @ values) ** 2


@pytest.mark.parametrize(("k", "d", "silent"), [(4, 1, 1), (5, 2, 1), (6, 3, 2), (4, 2, 2)])
def test_moments_of_sets_are_those_of_every_reported_set(k, d, silent):
    channel = SubsetSelection(k=k, d=d, T=5, L=2)
    members, chances = sets_of(channel)
    pi = np.arange(1, k + 1) / sum(range(1, k + 1))
    g = (members - channel.q) / (channel.p - channel.q)
    b = 1 - g[:, k - silent :].sum(axis=1)
    answered = 1 - pi[k - silent :].sum()
    kinds = support(channel, 1, silent).moments(1)
    for j in range(k - silent):
        ratio = pi[j] / answered
        result = kinds.variance(np.array([[ratio]]), np.array([[answered]]))
        assert result[0, 0] == pytest.approx(exact_variance(g[:, j], b, chances, pi, ratio))
    nobody = np.r_[np.zeros(k - silent), np.full(silent, 1 / silent)]
    assert kinds.bottom_if_nobody() == pytest.approx(nobody @ chances @ b**2)


def independent(channel: BitVector, agreements: np.ndarray) -> np.ndarray:
    return channel.p**agreements * channel.q ** (channel.m - agreements)


def in_a_half_space(channel: HalfSpace, agreements: np.ndarray) -> np.ndarray:
    weights = np.array([channel.far / channel.far_count, channel.near / channel.near_count])
    return weights[(agreements >= channel.agreements).astype(int)] / (channel.near + channel.far)


@each_case(
    ("channel", "chances_of"),
    [
        (BitVector(4, 2, 3, 1, alone=2), independent),
        (HalfSpace(4, 2, 3, 3, 1, alone=2), in_a_half_space),
    ],
)
def test_moments_of_ticks_are_those_of_every_reported_vector(channel, chances_of):
    reports = np.array(list(itertools.product((0, 1), repeat=4)))
    truths = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    chances = chances_of(channel, (reports[None] == truths[:, None]).sum(axis=2))
    pi = np.array([0.2, 0.15, 0.25, 0.3, 0.1])
    g = (reports - channel.q) / (channel.p - channel.q)
    b = 1 - g[:, 2] - g[:, 3]
    result = support(channel, 1, 2).moments(1)
    ratio = 0.35 / 0.6
    assert result.variance(np.array([[ratio]]), np.array([[0.6]]))[0, 0] == pytest.approx(
        exact_variance(g[:, 0], b, chances, pi, ratio)
    )


def test_moments_of_patterns_are_those_of_every_reported_pattern():
    patterns = multiple_choice.patterns(3, 2, 2)
    channel = grr(len(patterns), "0.4")
    holds = np.array([[j in pattern for pattern in patterns] for j in range(5)])
    number = holds.sum(axis=1)
    pi = np.arange(1, len(patterns) + 1) / sum(range(1, len(patterns) + 1))
    g = (holds - (number * channel.q)[:, None]) / (channel.p - channel.q)
    truth = holds @ pi
    for j in range(3):
        kinds = support(channel, 1, 2, number[j : j + 1]).moments(1)
        answered = 1 - truth[3] - truth[4]
        ratio = truth[j] / answered
        assert kinds.variance(np.array([[ratio]]), np.array([[answered]]))[0, 0] == pytest.approx(
            exact_variance(g[j], 1 - g[3] - g[4], channel.matrix, pi, ratio)
        )


# -- coverage


def every_outcome(n: int, k: int) -> np.ndarray:
    head = np.array([c for c in itertools.product(range(n + 1), repeat=k - 1) if sum(c) <= n])
    return np.column_stack([head, n - head.sum(axis=1)])


def exact_answered_coverage(channel: SubsetSelection, n: int) -> tuple[float, float]:
    """Return the minimum coverage of estimated shares, and with rejections counted as covering.

    The first minimum is over truths with at most half of the outcomes rejected. The last option
    is no answer; the target is the first option's share among the others.
    """
    counts, k = every_outcome(n, channel.k), channel.k
    estimate = (counts / n - channel.q) / (channel.p - channel.q)
    kinds = support(channel, 1, 1).moments(n)
    bottom = 1 - estimate[:, -1]
    is_estimated = bottom > Z * math.sqrt(kinds.bottom_if_nobody())
    counts, estimate, bottom = (part[is_estimated] for part in (counts, estimate, bottom))
    reports = np.full(len(counts), float(n))
    answer, silent = (np.stack([counts[:, j] / n, reports], axis=1) for j in (0, -1))
    shift = support_shift(answer, silent[:, None], channel.p - channel.q, 0.95, is_single=True)
    low, high = ratio_ends(estimate[:, 0], bottom, kinds, shift, Z)
    assert np.all(low < high)
    conditional, claimed = [1.0], [1.0]
    for silent, ratio in itertools.product((0, 0.1, 0.3, 0.6, 0.8), (0, 0.01, 0.1, 0.5, 0.9, 1)):
        remainder = (1 - silent) * (1 - ratio) / (k - 2)
        pi = np.array([(1 - silent) * ratio, *[remainder] * (k - 2), silent])
        weight = multinomial.pmf(counts, n, pi @ channel.matrix)
        covered = weight[(low <= ratio + 1e-9) & (ratio - 1e-9 <= high)].sum()
        if weight.sum() >= 0.5:
            conditional.append(covered / weight.sum())
        claimed.append(covered + 1 - weight.sum())
    return min(conditional), min(claimed)


@pytest.mark.slow
@each_case("epsilon", ["0.5", "1", "2", "4", "6", "8"])
@each_case(("n", "k"), [(20, 3), (50, 3), (20, 4)])
def test_shares_among_those_who_answered_cover_by_enumeration_of_every_outcome(n, k, epsilon):
    conditional, claimed = exact_answered_coverage(from_epsilon(k, epsilon), n)
    assert conditional >= 0.945
    assert claimed >= 0.945


@pytest.mark.long
@each_case("epsilon", ["0.5", "1", "1.0986", "2", "3", "4", "5", "6", "7", "8"])
@each_case(("n", "k"), [(200, 3), (50, 4), (100, 3)])
def test_shares_among_those_who_answered_cover_at_larger_n(n, k, epsilon):
    conditional, claimed = exact_answered_coverage(from_epsilon(k, epsilon), n)
    assert conditional >= 0.945
    assert claimed >= 0.945


PATTERNS = multiple_choice.patterns(3, 2, 1)
SCALE = geometric(5, 2, 1)
SHARES = {
    "generalized randomized response": (grr(5, "0.6"), [0.3, 0.2, 0.15, 0.15, 0.2]),
    "two that are no answer": (grr(5, "0.6"), [0.5, 0.1, 0.0, 0.3, 0.1]),
    "reported sets": (best(8, 1), [0.4, 0.2, 0.1, 0, 0, 0, 0, 0.3]),
    "reported sets, two silent": (best(8, 1), [0.4, 0.2, 0.1, 0, 0, 0, 0.2, 0.1]),
    "geometric scale": (SCALE, [0.4, 0.2, 0.1, 0.1, 0.05, 0.15]),
    "geometric scale, one end": (SCALE, [0.8, 0, 0, 0, 0, 0.2]),
    "a table of its own": (
        WeightTable(Explicit(((8, 1, 1, 2), (1, 8, 1, 2), (1, 1, 8, 2)))),
        [0.1, 0.6, 0.3],
    ),
}


def covered_parts(draw, truth, rounds=400):
    """Return the coverage of each share in simulated surveys, and the mean estimate."""
    covered, estimates, errors = np.zeros(len(truth)), [], []
    for _ in range(rounds):
        result = draw()
        covered += (result.conf_low <= truth) & (truth <= result.conf_high)
        estimates.append(result.estimate)
        errors.append(result.std_error)
    estimates = np.array(estimates)
    spread = estimates.std(axis=0)
    # Ratios have a bias of order 1/n.
    assert np.all(np.abs(estimates.mean(axis=0) - truth) <= 5 * spread / math.sqrt(rounds) + 0.01)
    np.testing.assert_allclose(np.mean(errors, axis=0), spread, rtol=0.25)
    return covered / rounds


@pytest.mark.web
@pytest.mark.parametrize("kind", long_unless([*SHARES][::3], SHARES))
def test_every_channel_covers_and_its_error_is_its_spread(kind):
    channel, shares = SHARES[kind]
    silent = [len(shares) - 1] if "two" not in kind else [len(shares) - 2, len(shares) - 1]
    pi, rng = np.array(shares), np.random.default_rng(7)
    truth = np.delete(pi, silent) / (1 - pi[silent].sum())
    covered = covered_parts(
        lambda: answered_shares(population(channel, shares, 1500, rng), channel, silent), truth
    )
    # At a true coverage of .95, a value below .91 has a probability of 1 in 1,000.
    assert np.all(covered >= 0.91), covered


TICKS = [
    BitVector(5, 2, 4, 1, alone=2, sampled=3),
    HalfSpace(5, 2, 4, 3, 1, alone=2),
    BitVector(5, 2, 4, 1, alone=2),
    BitVector(5, 2, 4, 1, alone=2, sampled=1),
]


@pytest.mark.web
@pytest.mark.parametrize("channel", long_unless(TICKS[:2], TICKS), ids=str)
def test_ticks_cover_with_all_or_some_options_asked(channel):
    ticks = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    shares, rng = [0.3, 0.2, 0.1, 0.25, 0.15], np.random.default_rng(3)
    truth = np.array([0.5, 0.3, 0.1]) / 0.6
    covered = covered_parts(
        lambda: answered_shares(
            population(channel, shares, 3000, rng, ticks), channel, [3, 4], n=3000
        ),
        truth,
    )
    assert np.all(covered >= 0.91), covered


@pytest.mark.web
def test_patterns_cover():
    channel = grr(len(PATTERNS), "0.5")
    shares, rng = [0.2, 0.1, 0.2, 0.1, 0.0, 0.1, 0.3], np.random.default_rng(3)
    truths = [sum(s for s, p in zip(shares, PATTERNS, strict=True) if j in p) for j in range(3)]
    covered = covered_parts(
        lambda: answered_shares(
            population(channel, shares, 1500, rng), channel, [3], patterns=PATTERNS
        ),
        np.array(truths) / 0.7,
    )
    assert np.all(covered >= 0.91), covered


def exact_respondents(channel: SubsetSelection, people: list[int]) -> np.ndarray:
    """Return the probability of every outcome if people[i] respondents have truth i."""
    n = sum(people)
    chances = np.zeros((n + 1, n + 1))
    chances[0, 0] = 1
    for truth, number in enumerate(people):
        p_first, p_second, p_third = channel.matrix[truth]
        for _ in range(number):
            shifted = p_third * chances
            shifted[1:] += p_first * chances[:-1]
            shifted[:, 1:] += p_second * chances[:, :-1]
            chances = shifted
    return chances


@each_case("epsilon", ["1", "2", "4"])
@each_case("people", [(20, 0, 0), (10, 10, 0), (5, 5, 10), (1, 15, 4), (0, 30, 10), (15, 15, 10)])
def test_shares_of_the_respondents_who_answered_cover_by_enumeration(people, epsilon):
    channel, n = from_epsilon(3, epsilon), sum(people)
    chances = exact_respondents(channel, people)
    a, b = np.nonzero(chances > 1e-12)
    counts = np.column_stack([a, b, n - a - b])
    kinds = support(channel, 1, 1).moments(n)
    estimate = (counts / n - channel.q) / (channel.p - channel.q)
    is_estimated = 1 - estimate[:, 2] > Z * math.sqrt(kinds.bottom_if_nobody())
    top, bottom = estimate[is_estimated, 0], 1 - estimate[is_estimated, 2]
    shift = np.full((len(top), RATIOS.size), continuity(0.95) * kinds.one_report()[0])
    low, high = ratio_ends(top, bottom, kinds._replace(sampled=False), shift, Z)
    share, weight = people[0] / (people[0] + people[1]), chances[a, b][is_estimated]
    covers = (low <= share + 1e-9) & (share - 1e-9 <= high)
    assert np.all(low < high)
    assert weight.sum() <= 0.5 or weight[covers].sum() / weight.sum() >= 0.95


RESPONDENTS_OF = {
    "generalized randomized response": (grr(4, "0.7"), [3]),
    "pairs": (SubsetSelection(4, 2, 8, 1), [3]),
    "table": (geometric(3, 3, 1), [3]),
    "bits": (BitVector(4, 2, 5, 1, alone=1), [3]),
    "half-space": (HalfSpace(4, 2, 3, 5, 1, alone=1), [3]),
}


@pytest.mark.web
@each_case("kind", RESPONDENTS_OF)
def test_the_error_for_the_respondents_is_the_spread_when_the_same_people_answer_again(kind):
    channel, silent = RESPONDENTS_OF[kind]
    people, rng = np.repeat(np.arange(4), [600, 300, 100, 500]), np.random.default_rng(5)
    truths = np.eye(4, dtype=int)[people] if isinstance(channel, TickChannel) else people
    shares, results = np.array([0.6, 0.3, 0.1]), []
    for _ in range(300):
        reports = channel.perturb(truths, rng)
        counts = reports.sum(axis=0) if reports.ndim == 2 else np.bincount(reports, minlength=4)
        results.append(answered_shares(counts, channel, silent, n=1500, target="respondents"))
    covered = np.mean([(r.conf_low <= shares) & (shares <= r.conf_high) for r in results], axis=0)
    assert np.all(covered >= 0.91), covered
    spread = np.std([r.estimate for r in results], axis=0)
    np.testing.assert_allclose(np.mean([r.std_error for r in results], axis=0), spread, rtol=0.15)
    assert results[0].target == "respondents"
    assert results[0].method == "fixed-population-fieller"
    whole = answered_shares(counts, channel, silent, n=1500)
    assert np.all(results[-1].std_error < whole.std_error)
    np.testing.assert_array_equal(results[-1].n_effective, whole.n_effective)
    np.testing.assert_array_equal(results[-1].estimate, whole.estimate)


def test_sampled_bits_of_the_respondents_scatter_less_than_those_of_a_sample():
    channel = BitVector(4, 2, 5, 1, alone=1, sampled=2)
    counts = [700, 750, 760, 790, 350, 300, 200, 250]
    sample, respondents = (
        answered_shares(counts, channel, [3], target=target)
        for target in ("population", "respondents")
    )
    assert np.all(respondents.std_error < sample.std_error)
    assert np.all(respondents.conf_low < respondents.conf_high)


def test_an_unknown_target_is_rejected():
    with pytest.raises(ValueError, match="unknown target 'everybody'"):
        answered_shares([500, 300, 200], grr(3, "0.7"), [2], target="everybody")


# -- values


def test_the_estimate_is_the_ratio_of_the_linear_ones():
    counts, channel = [500, 300, 200, 400], grr(4, "0.7")
    result, shares = answered_shares(counts, channel, [3]), proportions(counts, channel)
    assert result.answered == pytest.approx(shares.estimate[:3].sum())
    np.testing.assert_allclose(result.estimate, shares.estimate[:3] / result.answered)
    assert result.estimate.sum() == pytest.approx(1)
    assert result.mle.sum() == pytest.approx(1)
    np.testing.assert_allclose(result.mle, shares.mle[:3] / shares.mle[:3].sum())
    assert result.option.tolist() == [0, 1, 2]
    assert isinstance(result, AnsweredShares)


def test_a_table_of_generalized_randomized_response_has_its_answered_shares():
    as_table = WeightTable(Explicit(((4, 1, 1), (1, 4, 1), (1, 1, 4))))
    counts = [300, 500, 200]
    table, plain = (answered_shares(counts, channel, [2]) for channel in (as_table, grr(3, "2/3")))
    for name in ("estimate", "mle", "std_error", "conf_low", "conf_high", "n_effective"):
        np.testing.assert_allclose(getattr(table, name), getattr(plain, name), atol=1e-6)


def test_little_randomization_gives_wilsons_interval_among_the_answers():
    """With little randomization, the interval is Wilson's, widened by half of a report."""
    from statsmodels.stats.proportion import proportion_confint

    result = answered_shares([300, 700, 500], from_epsilon(3, 12), [2])
    low, high = proportion_confint(300, 1000, 0.05, method="wilson")
    assert result.conf_low[0] == pytest.approx(low, abs=1e-3)
    assert result.conf_high[0] == pytest.approx(high, abs=1e-3)


def test_simultaneous_intervals_share_the_error_among_the_answers():
    counts, channel = [500, 300, 200, 400], grr(4, "0.7")
    together = answered_shares(counts, channel, [3], simultaneous=True)
    per_estimate = answered_shares(counts, channel, [3], level=1 - 0.05 / 3)
    np.testing.assert_array_equal(together.conf_low, per_estimate.conf_low)
    assert together.method == "fieller, simultaneous"


def test_no_interval_has_zero_width():
    for channel in (grr(3, "0.6"), from_epsilon(3, 8), best(8, 1), geometric(4, 3, 1)):
        k = channel.counted
        for n in (30, 10**9):
            for first in (0, k // 2, k - 2):
                d = getattr(channel, "d", 1)
                counts = np.zeros(k, dtype=int)
                counts[[(first + i) % (k - 1) for i in range(d)]] = n
                result = answered_shares(counts, channel, [len(channel.matrix) - 1])
                assert np.all(result.conf_low < result.conf_high)
                assert result.conf_low.min() >= 0
                assert result.conf_high.max() <= 1
                assert np.all(result.std_error > 0)


def test_an_option_without_asked_respondents_has_no_estimate_and_the_whole_range():
    channel = BitVector(3, 2, 3, 1, alone=1, sampled=1)
    result = answered_shares([500, 0, 500, 200, 0, 200], channel, [2])
    assert math.isnan(result.estimate[1])
    assert (result.conf_low[1], result.conf_high[1], result.n_effective[1]) == (0, 1, 0)
    assert 0 < result.conf_low[0] < result.conf_high[0]


# -- rejected arguments


@each_case(
    ("counts", "channel", "n"),
    [
        ([250, 250, 500], grr(3, "1/2"), None),
        ([0, 0, 50], grr(3, "3/4"), None),
        ([1, 0, 0], grr(3, "0.4"), None),
        ([100, 100, 500, 30, 30, 380], BitVector(3, 2, 3, 1, alone=1, sampled=1), None),
        ([100, 100, 0, 30, 30, 0], BitVector(3, 2, 3, 1, alone=1, sampled=1), None),
        ([30, 30, 95], BitVector(3, 2, 3, 1, alone=1), 100),
    ],
)
def test_shares_among_too_few_answers_are_rejected(counts, channel, n):
    with pytest.raises(NoBaseError, match=r"no-answer|not clearly above 0"):
        answered_shares(counts, channel, [2], n=n)


@pytest.mark.parametrize("no_answers", [[], [3], [-1], [0, 1], [0, 1, 2]])
def test_a_question_needs_answers_and_no_answer_options(no_answers):
    with pytest.raises(ValueError, match="no_answers = "):
        answered_shares([500, 300, 200], grr(3, "0.7"), no_answers)


def test_other_errors_of_answered_shares_are_named():
    with pytest.raises(ValueError, match="option 1 must be one of the last 1"):
        answered_shares([30, 30, 5], BitVector(3, 2, 3, 1, alone=1), [1], n=100)
    with pytest.raises(ValueError, match=r"pattern \(0, 1\) contains an option"):
        answered_shares([30, 30, 5], grr(3, "0.6"), [1], patterns=[[0], [1], [0, 1]])
    with pytest.raises(ChannelError, match="patterns are reported by"):
        answered_shares([30, 30], BitVector(2, 1, 3, 1), [1], n=50, patterns=[[0], [1]])
    with pytest.raises(CountsError, match="n = 0"):
        answered_shares([0, 0, 0], grr(3, "0.7"), [2])
    with pytest.raises(ValueError, match="level = 2"):
        answered_shares([500, 300, 200], grr(3, "0.7"), [2], level=2)


def test_answered_options_of_patterns_are_those_of_subset_shares():
    counts, channel = [90, 50, 90, 50, 20, 40, 60], grr(len(PATTERNS), "0.5")
    all_shares = subset_shares(counts, channel, PATTERNS, 4)
    result = answered_shares(counts, channel, [3], patterns=PATTERNS)
    np.testing.assert_allclose(
        result.estimate, all_shares.estimate[:3] / (1 - all_shares.estimate[3])
    )
    assert result.n == 400
