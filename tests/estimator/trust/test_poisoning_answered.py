"""Bounds on shares among answers, of patterns and of no answers hold for every fake."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from survey.errors import ChannelError, NoBaseError
from survey.estimator import (
    Poisoning,
    answered_shares,
    no_answer_shares,
    poisoning,
    poisoning_of_answered,
    poisoning_of_no_answers,
    subset_shares,
)
from survey.mechanism import (
    BitVector,
    HalfSpace,
    SubsetSelection,
    WeightTable,
    grr,
    multiple_choice,
)
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.numeric import geometric, one_bit
from survey.mechanism.simulation import population
from survey.mechanism.weight_table import Explicit

PATTERNS = multiple_choice.patterns(3, 2, 1)
BY_PATTERN = grr(len(PATTERNS), "0.5")
N, FAKES = 4000, 200
BANDS = ("low_5", "high_5")


def kinds_of_report(channel) -> np.ndarray:
    """Return the contribution of each possible report to the counts."""
    if isinstance(channel, TickChannel):
        return np.array(list(itertools.product((0, 1), repeat=channel.m)))
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        sets = itertools.combinations(range(channel.k), channel.d)
        return np.array([[j in members for j in range(channel.k)] for members in sets]).astype(int)
    return np.eye(channel.counted, dtype=int)


KINDS = {
    "one option": (grr(4, "0.7"), [3], None, [0.4, 0.3, 0.1, 0.2]),
    "pairs": (SubsetSelection(5, 2, 6, 1), [3, 4], None, [0.4, 0.2, 0.1, 0.2, 0.1]),
    "triples": (SubsetSelection(4, 3, 9, 1), [3], None, [0.4, 0.3, 0.1, 0.2]),
    "table": (
        WeightTable(Explicit(((8, 1, 1, 2), (1, 8, 1, 2), (1, 1, 8, 2)))),
        [2],
        None,
        [0.5, 0.3, 0.2],
    ),
    "geometric": (geometric(4, 4, 1), [4], None, [0.3, 0.2, 0.1, 0.2, 0.2]),
    "patterns": (BY_PATTERN, [3], PATTERNS, [0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.2]),
    "bits": (BitVector(4, 2, 5, 1, alone=1), [3], None, None),
    "half-space": (HalfSpace(4, 2, 3, 5, 1, alone=1), [3], None, None),
}
kinds = pytest.mark.parametrize(("channel", "silent", "patterns", "pi"), KINDS.values(), ids=KINDS)


def honest_counts(channel, pi, n: int):
    rng = np.random.default_rng(4)
    if isinstance(channel, TickChannel):
        ticks = np.repeat([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]], [n // 4, n // 2, n // 4], 0)
        return channel.perturb(ticks, rng).sum(axis=0, dtype=np.int64)
    return population(channel, pi, n, rng)


@kinds
def test_shares_of_answers_stay_in_their_band_and_the_worst_fakes_reach_its_end(
    channel, silent, patterns, pi
):
    honest = honest_counts(channel, pi, N - FAKES)
    n = None if patterns else N - FAKES
    truth = answered_shares(honest, channel, silent, n=n, patterns=patterns).estimate
    reached = np.zeros((2, truth.size), dtype=bool)
    for kind in kinds_of_report(channel):
        result = poisoning_of_answered(
            honest + FAKES * kind, channel, silent, n=None if patterns else N, patterns=patterns
        )
        low, high = (getattr(result, end) for end in BANDS)
        inside = np.clip(truth, 0, 1)
        assert np.all(low <= inside + 1e-9)
        assert np.all(inside <= high + 1e-9)
        reached |= np.abs(np.array([low, high]) - inside) < 1e-9
    assert reached.all()


@pytest.mark.slow
@kinds
def test_one_fake_in_place_of_an_average_report_moves_an_answer_by_the_largest_shift(
    channel, silent, patterns, pi
):
    counts, n = honest_counts(channel, pi, N), None if patterns else N
    before = answered_shares(counts, channel, silent, n=n, patterns=patterns)
    result = poisoning_of_answered(counts, channel, silent, n=n, patterns=patterns)
    shifts = []
    # Counts are integers, so scale by N: N (N - 1) average reports and N fabricated ones.
    for kind in kinds_of_report(channel):
        faked = (N - 1) * counts + N * kind
        after = answered_shares(
            faked, channel, silent, n=None if patterns else N * N, patterns=patterns
        )
        shifts.append(np.abs(after.estimate - before.estimate))
    np.testing.assert_allclose(np.max(shifts, axis=0), result.largest_shift, rtol=1e-6)


def test_sampled_options_are_bounded_for_every_claim_of_asked_options():
    channel, rng = BitVector(3, 1, 8, 1, alone=1, sampled=2), np.random.default_rng(2)
    ticks = np.repeat([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [1900, 1000, 900], axis=0)
    honest = channel.perturb(ticks, rng).sum(axis=0, dtype=np.int64)
    truth = answered_shares(honest, channel, [2], n=N - FAKES).estimate
    for is_asked in ([1, 1, 0], [1, 0, 1], [0, 1, 1]):
        for bits in itertools.product((0, 1), repeat=3):
            fake = np.array([*is_asked, *np.multiply(is_asked, bits)])
            result = poisoning_of_answered(honest + FAKES * fake, channel, [2], n=N)
            assert np.all(result.low_5 <= truth + 1e-9)
            assert np.all(truth <= result.high_5 + 1e-9)
            assert np.all(result.largest_shift > 0)


def option_bounds(counts) -> Poisoning:
    shares = subset_shares(counts, BY_PATTERN, PATTERNS, 4)
    return poisoning(shares, BY_PATTERN, patterns=PATTERNS)


def test_options_of_patterns_stay_in_their_band_and_the_worst_pattern_reaches_its_end():
    honest = honest_counts(BY_PATTERN, KINDS["patterns"][3], N - FAKES)
    truth = np.clip(subset_shares(honest, BY_PATTERN, PATTERNS, 4).estimate, 0, 1)
    reached = np.zeros((2, 4), dtype=bool)
    for kind in np.eye(len(PATTERNS), dtype=int):
        result = option_bounds(honest + FAKES * kind)
        low, high = (getattr(result, end) for end in BANDS)
        assert np.all(low <= truth + 1e-9)
        assert np.all(truth <= high + 1e-9)
        reached |= np.abs(np.array([low, high]) - truth) < 1e-9
    assert reached.all()
    f = np.array([sum(honest[i] for i, p in enumerate(PATTERNS) if j in p) for j in range(4)])
    f = f / honest.sum()
    np.testing.assert_allclose(
        option_bounds(honest).largest_shift,
        np.maximum(f, 1 - f) / ((BY_PATTERN.p - BY_PATTERN.q) * honest.sum()),
    )


@pytest.mark.parametrize("channel", [one_bit(11, 2, 2), geometric(4, 4, 1)], ids=str)
def test_shares_of_no_answers_stay_in_their_band(channel):
    pi = np.full(channel.truths, 1 / channel.truths)
    honest = population(channel, pi, N - FAKES, np.random.default_rng(1))
    truth = np.clip(no_answer_shares(honest, channel).estimate, 0, 1)
    ends = []
    for kind in np.eye(channel.reports, dtype=int):
        result = poisoning_of_no_answers(no_answer_shares(honest + FAKES * kind, channel), channel)
        assert np.all(result.low_5 <= truth + 1e-6)
        assert np.all(truth <= result.high_5 + 1e-6)
        ends.append(np.abs(np.array([result.low_5, result.high_5]) - truth))
    assert np.max(np.min(ends, axis=0)) < 1e-6


def test_with_few_answers_fabricated_reports_allow_any_share():
    result = poisoning_of_answered([300, 280, 1420], grr(3, "0.8"), [2])
    assert result.low_10.tolist() == [0, 0]
    assert result.high_10.tolist() == [1, 1]
    assert np.isfinite(result.largest_shift).all()


def test_invalid_answered_shares_and_patterns_have_no_bounds():
    with pytest.raises(NoBaseError):
        poisoning_of_answered([10, 10, 1980], grr(3, "0.8"), [2])
    with pytest.raises(ChannelError, match="patterns are reported by"):
        poisoning_of_answered([5, 5, 5], geometric(3, 2), [1], patterns=[[0], [1], [0, 1]])
    with pytest.raises(ChannelError, match="1 shares, but the channel has 0 no answers"):
        poisoning_of_no_answers(
            no_answer_shares([5, 5, 5], one_bit(11, 1, no_answers=1)), one_bit(11, 1)
        )


@pytest.mark.parametrize(
    "options", [{}, {"level": 0.99, "simultaneous": True}, {"target": "respondents"}], ids=str
)
def test_the_margin_of_an_answer_is_half_the_width_of_the_requested_interval(options):
    shares = answered_shares([400, 1000, 600], grr(3, "3/4"), [2], **options)
    result = poisoning_of_answered([400, 1000, 600], grr(3, "3/4"), [2], **options)
    np.testing.assert_array_equal(result.margin, (shares.conf_high - shares.conf_low) / 2)
    assert result.method == shares.method


def test_an_option_without_reports_is_unbounded_and_its_neighbours_stay_bounded():
    channel = BitVector(5, 2, 3, 1, alone=1, sampled=1)
    result = poisoning_of_answered([10, 15, 0, 5, 5, 4, 7, 0, 2, 1], channel, [4])
    assert np.isnan(result.estimate[2])
    assert (result.largest_shift[2], result.fakes_per_margin[2]) == (1, 1)
    assert (result.low_1[2], result.high_1[2]) == (0, 1)
    assert np.isfinite(np.delete(result.largest_shift, 2)).all()
