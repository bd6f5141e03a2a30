"""Half-spaces: which vectors are near, the probabilities of bits and pairs, the best design."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb, exp

import numpy as np
import pytest

from survey.audit.channels import distribution, truths_of
from survey.errors import ChannelError
from survey.mechanism import HalfSpace, channel_from_json, multiple_choice
from survey.mechanism.channel import pack_bits, unpack_bits
from survey.mechanism.half_space import tail, vector_of
from tests.cases import each_case

SMALL = [
    HalfSpace(2, 2, 2, 3, 1),
    HalfSpace(3, 3, 2, 3, 1),
    HalfSpace(4, 4, 3, 7, 2),
    HalfSpace(5, 2, 4, 2, 1, alone=2),
    HalfSpace(6, 6, 6, 1, 9),
]


def test_each_rank_is_a_different_vector_with_enough_ones():
    for m in range(1, 9):
        for least in range(m + 2):
            vectors = [tuple(vector_of(rank, m, least)) for rank in range(tail(m, least))]
            expected = [bits for bits in product((1, 0), repeat=m) if sum(bits) >= least]
            assert vectors == expected


def test_the_vectors_of_32_bits_are_numbered_in_descending_order():
    for least in (6, 17, 27, 32):
        last = tail(32, least) - 1
        for rank in {0, last // 3, last // 2, last}:
            bits = vector_of(rank, 32, least)
            assert sum(bits) >= least
            assert _greater_vectors(bits, least) == rank


def _greater_vectors(bits: list[int], least: int) -> int:
    """Count the vectors with enough ones that first differ from these by a one for a zero."""
    return sum(
        comb(len(bits) - i - 1, ones)
        for i, bit in enumerate(bits)
        if not bit
        for ones in range(max(least - sum(bits[:i]) - 1, 0), len(bits) - i)
    )


@each_case("channel", SMALL)
def test_a_bit_agrees_with_the_stated_probability_whatever_the_truth(channel):
    for truth in truths_of(channel):
        table = distribution(channel, truth)
        for i in range(channel.m):
            assert sum(share for code, share in table.items() if _bits(code, channel.m)[i]) == (
                channel.exact_p if truth[i] else channel.exact_q
            )


@pytest.mark.slow
@each_case("channel", SMALL)
def test_two_bits_agree_with_the_stated_probabilities_whatever_the_other_bits(channel):
    both, neither = channel.pair_agreements
    first_only = channel.exact_p - both
    for truth in truths_of(channel):
        table = distribution(channel, truth)
        for i, j in combinations(range(channel.m), 2):
            shares = {(a, b): Fraction(0) for a in (True, False) for b in (True, False)}
            for code, share in table.items():
                bits = _bits(code, channel.m)
                shares[bits[i] == truth[i], bits[j] == truth[j]] += share
            assert list(shares.values()) == [both, first_only, first_only, neither]


def _bits(code: str, m: int) -> list[int]:
    return np.unpackbits(np.frombuffer(unpack_bits(code, m), dtype=np.uint8))[:m].tolist()


@each_case(("m", "epsilon"), [(2, 1), (4, "0.5"), (4, 2), (5, 1), (6, 3), (7, 4), (8, 2), (9, 8)])
def test_no_other_weights_by_number_of_agreements_give_a_larger_p(m, epsilon):
    channel = multiple_choice.half_space(m, m, 0, epsilon)
    # Two weights are enough: p is a ratio of two linear functions of the weights.
    for weights in product((1, channel.ratio), repeat=m + 1):
        total = sum(comb(m, a) * weight for a, weight in enumerate(weights))
        agreeing = sum(comb(m - 1, a - 1) * weight for a, weight in enumerate(weights) if a)
        assert agreeing / total <= channel.exact_p


@each_case(
    ("m", "epsilon", "split", "others", "expected"),
    [(10, 4, 6.42, 2.16, 1.09), (20, 8, 6.42, 2.16, 0.71)],
)
def test_the_variance_is_below_those_of_the_other_designs_at_a_high_epsilon(
    m, epsilon, split, others, expected
):
    variances = {}
    for name in ("bits", "sampled_options", "half_space"):
        channel = multiple_choice.DESIGNS[name](m, m, 0, epsilon)
        variances[name] = round(multiple_choice.variance(channel, m, m, 0), 2)
    assert variances == {"bits": split, "sampled_options": others, "half_space": expected}
    assert multiple_choice.smallest_variance(m, m, 0, epsilon)[0] == "half_space"


def test_the_design_uses_nearly_all_of_epsilon_and_never_more():
    for m in (1, 2, 3, 9, 20, 31, 32):
        for epsilon in ("0.01", "0.5", "1", "4", "12"):
            channel = multiple_choice.half_space(m, m, 0, epsilon)
            assert float(epsilon) - 5e-4 < channel.epsilon <= float(epsilon), channel
            assert channel_from_json(channel.to_json()) == channel


def test_simulated_reports_have_the_channels_distribution():
    channel, n = HalfSpace(5, 3, 4, 2, 1, alone=1), 200_000
    truth = (1, 0, 1, 0, 0)
    reports = channel.perturb(np.tile(truth, (n, 1)), np.random.default_rng(6))
    codes, counts = np.unique(reports @ (16, 8, 4, 2, 1), return_counts=True)
    assert codes.tolist() == list(range(32))
    shares = np.array(
        [float(distribution(channel, truth)[pack_bits(_places(code), 5)]) for code in range(32)]
    )
    assert np.all(np.abs(counts - n * shares) < 4.5 * np.sqrt(n * shares * (1 - shares)))


def _places(number: int) -> list[int]:
    return [place for place in range(5) if number >> (4 - place) & 1]


def test_simulated_reports_of_32_bits_agree_as_often_as_stated():
    channel = multiple_choice.half_space(32, 32, 0, 8)
    n, truth = 20_000, np.arange(32) % 2
    reports = channel.perturb(np.tile(truth, (n, 1)), np.random.default_rng(7))
    agreements = (reports == truth).sum(axis=1)
    near = channel.near / (channel.near + channel.far)
    assert abs((agreements >= channel.agreements).mean() - near) < 4.5 * np.sqrt(near / n)
    for share in (reports == truth).mean(axis=0):
        assert abs(share - channel.p) < 4.5 * np.sqrt(0.25 / n)


@each_case(
    ("parameters", "words"),
    [
        ({"m": 0}, "a half space has 1 to 32; the nearest is 1$"),
        ({"m": 33}, "a half space has 1 to 32; the nearest is 32$"),
        ({"s": 0}, "from 1 to m - alone = 4$"),
        ({"alone": 5}, "alone = 5 must be from 0"),
        ({"agreements": 2}, "agreements = 2 must be from 3 to m = 5$"),
        ({"agreements": 6}, "agreements = 6 must be from 3 to m = 5$"),
        ({"far": 0}, "far = 0 must be at least 1: a zero weight gives no privacy"),
        ({"far": 3}, "near = 3 must be above 3: a near report must be more likely"),
        ({"near": 2**32}, r"the weights add up to 4,294,967,297, above 2\^32"),
    ],
)
def test_a_half_space_that_is_not_possible_is_rejected_with_the_allowed_values(parameters, words):
    fits = {"m": 5, "s": 2, "agreements": 3, "near": 3, "far": 1, "alone": 1}
    HalfSpace(**fits)
    with pytest.raises(ChannelError, match=words):
        HalfSpace(**{**fits, **parameters})


def test_more_options_than_one_draw_can_hold_are_rejected_with_the_nearest_number():
    with pytest.raises(
        ChannelError, match=r"^32 options beside 1 .*; the nearest allowed number is 31$"
    ):
        multiple_choice.half_space(32, 3, 1, 2)
    assert multiple_choice.smallest_variance(32, 32, 1, 2)[0] == "sampled_options"


def test_an_epsilon_too_small_for_the_integers_is_rejected_with_the_nearest():
    with pytest.raises(ChannelError, match=r"the nearest allowed value is 0\.001$"):
        multiple_choice.half_space(5, 5, 0, "0.00001")
    with pytest.raises(ChannelError, match="must be above 0"):
        multiple_choice.half_space(5, 5, 0, 0)


def test_one_bit_of_a_report_has_the_closest_drawable_probability():
    channel = multiple_choice.half_space(20, 20, 0, 8)
    assert abs(channel.option_channel.exact_p - channel.exact_p) < Fraction(1, 2**60)
    assert channel.option_channel.p == channel.p
    assert abs(channel.p - (1 + exp(-np.log(0.7135 * 4) / 2)) / 2) < 1e-4
