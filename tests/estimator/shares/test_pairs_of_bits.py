"""Pairs of options ticked together, from joint supports of bits and from patterns."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import multinomial

from survey.errors import ChannelError, CountsError
from survey.estimator import bit_pairs, count_bit_pairs, option_pairs, proportions
from survey.estimator.shares.multiple_choice import CELLS, _ends, two_bit_values
from survey.mechanism import BitVector, HalfSpace, grr, multiple_choice
from tests.cases import each_case

PATTERNS = multiple_choice.patterns(3, 3, 1)
DIVISIONS = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0.5, 0.5, 0), (0.3, 0.3, 0.4), (0.1, 0.1, 0.8))


def two_bits(channel: BitVector) -> np.ndarray:
    bit = [[channel.p, 1 - channel.p], [channel.q, 1 - channel.q]]
    return np.kron(bit, bit)


def test_expected_supports_recover_the_truth():
    channel = BitVector(2, 2, 3, 1)
    people = np.array([16, 32, 48, 64])
    supports = people @ (16 * two_bits(channel))
    result = bit_pairs([supports.round().astype(int)], channel, [(0, 1)])
    assert result.estimate[0] == pytest.approx(0.1)
    assert result.reports[0] == 16 * 160


def test_expected_supports_of_a_half_space_recover_the_truth():
    channel = HalfSpace(4, 4, 4, 1, 3)
    # P(all agree) = 1/4, and 1/20 for each of 15 other vectors; 4 vectors fix two given bits.
    expected = {(1, 1): 0.25 + 3 * 0.05, (1, 0): 4 * 0.05, (0, 1): 4 * 0.05, (0, 0): 4 * 0.05}
    for truth, share in zip(CELLS, np.eye(4), strict=True):
        supports = [
            round(1000 * expected[int(cell[0] == truth[0]), int(cell[1] == truth[1])])
            for cell in CELLS
        ]
        result = bit_pairs([supports], channel, [(0, 3)])
        assert result.estimate[0] == pytest.approx(share[0], abs=1e-12)
        inverse, squares = two_bit_values(channel)
        np.testing.assert_allclose(inverse @ supports / 1000, share, atol=1e-12)
        expected_square = (inverse[0] ** 2) @ supports / 1000
        assert squares[CELLS.index(truth)] == pytest.approx(expected_square)


def test_pairs_of_a_half_space_through_the_middle_are_refused_because_it_shows_nothing_about_them():
    with pytest.raises(ChannelError, match="show nothing about two options together"):
        bit_pairs([[1, 1, 1, 1]], HalfSpace(5, 5, 3, 3, 1), [(0, 1)])
    bit_pairs([[1, 1, 1, 1]], HalfSpace(5, 5, 4, 3, 1), [(0, 1)])


@pytest.mark.web
@pytest.mark.parametrize("weights", [(2, 1), (3, 1), (15, 2), (50, 1), (400, 1), (3000, 1)])
def test_pairs_of_bits_cover_by_enumeration_of_every_outcome(weights):
    channel, n = BitVector(2, 2, *weights), 20
    head = np.array([c for c in itertools.product(range(n + 1), repeat=3) if sum(c) <= n])
    counts = np.column_stack([head, n - head.sum(axis=1)])
    inverse, squares = two_bit_values(channel)
    ends = np.array([_ends(c, inverse, squares, 0.95) for c in counts])[:, :, 0]
    assert np.all(ends[:, 0] < ends[:, 1])
    for joint, division in itertools.product((0, 0.01, 0.1, 0.5, 1), DIVISIONS):
        pi = np.array([joint, *((1 - joint) * part for part in division)])
        covers = (ends[:, 0] <= joint + 1e-9) & (joint - 1e-9 <= ends[:, 1])
        assert multinomial.pmf(counts, n, pi @ two_bits(channel)) @ covers >= 0.945


@pytest.mark.web
@each_case(
    "channel",
    [
        BitVector(4, 3, 4, 1, alone=1),
        BitVector(4, 3, 4, 1, alone=1, sampled=3),
        HalfSpace(4, 3, 4, 1, 1, alone=1),
    ],
)
def test_pairs_counted_from_reports_are_unbiased_with_their_error(channel):
    rng = np.random.default_rng(12)
    kinds = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    pi, pairs = np.array([0.2, 0.1, 0.1, 0.3, 0.3]), [(0, 1), (0, 2), (1, 2)]
    truth = np.array([0.3, 0.2, 0.1])
    results = []
    for _ in range(300):
        truths = kinds[rng.choice(5, size=800, p=pi)]
        supports = count_bit_pairs(channel.perturb(truths, rng), channel, pairs)
        results.append(bit_pairs(supports, channel, pairs))
    estimates = np.array([result.estimate for result in results])
    spread = estimates.std(axis=0)
    assert np.all(np.abs(estimates.mean(axis=0) - truth) < 4 * spread / math.sqrt(300))
    np.testing.assert_allclose(np.mean([r.std_error for r in results], axis=0), spread, rtol=0.15)
    covered = np.mean([(r.conf_low <= truth) & (truth <= r.conf_high) for r in results], axis=0)
    # At a true coverage of .95, a value below .90 has a probability of 1 in 10,000.
    assert np.all(covered >= 0.90)


def test_pairs_of_patterns_are_binomial_with_the_intervals_of_shares():
    channel = grr(len(PATTERNS), "0.5")
    counts = [40, 30, 50, 20, 30, 10, 60, 60]
    result = option_pairs(counts, channel, PATTERNS, 4)
    assert list(zip(result.first.tolist(), result.second.tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (1, 2),
    ]
    joint_count = sum(c for c, p in zip(counts, PATTERNS, strict=True) if 0 in p and 1 in p)
    # Two of eight patterns contain both options: p + q if they were ticked, 2 q if not.
    p, q = channel.p + channel.q, 2 * channel.q
    assert result.estimate[0] == pytest.approx((joint_count / 300 - q) / (p - q))
    assert result.method == "feldman-cousins"
    assert np.all(result.conf_low < result.conf_high)
    wilson = option_pairs(counts, channel, PATTERNS, 4, interval="wilson", simultaneous=True)
    assert wilson.method == "wilson, simultaneous"


def test_a_pair_of_two_patterns_is_one_option_of_generalized_randomized_response():
    counts, channel = [60, 20, 20], grr(3, "0.6")
    pair = option_pairs(counts, channel, [[0], [1], [0, 1]], 2)
    alone = proportions(counts, channel)
    for name in ("estimate", "std_error", "conf_low", "conf_high"):
        assert getattr(pair, name)[0] == getattr(alone, name)[2]


@pytest.mark.parametrize("pair", [(0, 0), (1, 0), (0, 2), (-1, 0)])
def test_pairs_that_exclude_each_other_are_rejected(pair):
    with pytest.raises(ValueError, match="chosen together"):
        bit_pairs([[1, 1, 1, 1]], BitVector(3, 2, 3, 1, alone=1), [pair])


def test_other_errors_of_pairs_are_named():
    channel = BitVector(2, 2, 3, 1)
    with pytest.raises(CountsError, match="n = 0"):
        bit_pairs([[0, 0, 0, 0]], channel, [(0, 1)])
    with pytest.raises(CountsError, match=r"shape \(4,\) must have shape \(1, 4\)"):
        bit_pairs([1, 1, 1, 1], channel, [(0, 1)])
    with pytest.raises(CountsError, match="must not be negative"):
        bit_pairs([[1, -1, 1, 1]], channel, [(0, 1)])
    with pytest.raises(ValueError, match="level = 1"):
        bit_pairs([[5, 5, 5, 5]], channel, [(0, 1)], level=1)
    with pytest.raises(ValueError, match="chosen together"):
        bit_pairs([[5, 5, 5, 5]], BitVector(2, 1, 3, 1), [(0, 1)])
    with pytest.raises(CountsError, match="reports must be bits"):
        count_bit_pairs([[0, 2]], channel, [(0, 1)])
    with pytest.raises(ChannelError, match="no pattern contains two"):
        option_pairs([5, 5], grr(2, "3/4"), [[0], [1]], 2)
