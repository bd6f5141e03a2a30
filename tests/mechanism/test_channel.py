"""Channels have exactly the probabilities of their integer weights, as in the client."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.errors import ChannelError
from survey.mechanism import (
    BitVector,
    HalfSpace,
    SubsetSelection,
    WeightTable,
    channel_from_json,
    from_epsilon,
    from_keep_probability,
    from_ratio,
    grr,
)
from survey.mechanism.exact_numbers import format_fraction
from survey.mechanism.weight_table import Explicit
from tests.cases import each_case
from tests.conftest import ROOT

VECTORS = json.loads((ROOT / "tests/vectors/mechanism.json").read_text(encoding="utf-8"))
WEIGHTS = st.tuples(st.integers(1, 10**6), st.integers(1, 10**5)).map(lambda w: (w[0] + w[1], w[1]))


@pytest.mark.slow
@each_case("vector", VECTORS)
def test_python_and_the_vectors_agree(vector):
    channel = channel_from_json(vector["channel"])
    draws = iter(vector["draws"])

    def uniform_below(n):
        expected, value = next(draws)
        assert n == expected
        return value

    assert channel.perturb_one(vector["truth"], uniform_below) == vector["report"]
    assert next(draws, None) is None


@each_case(("k", "T", "L"), [(2, 3, 1), (3, 6, 1), (5, 7, 3), (7, 27, 10)])
def test_all_draws_together_give_exactly_the_weights(k, T, L):
    channel = from_ratio(k, T, L)
    for truth in range(k):
        table = Counter(channel.perturb_one(truth, lambda n, u=u: u) for u in range(channel.total))
        assert table == {option: channel.T if option == truth else channel.L for option in range(k)}


def sequences(channel):
    """Yield every sequence of draws of a channel with d > 1."""
    ranges = [channel.k - 1 - i for i in range(channel.d)] + [channel.total]
    return product(*(range(n) for n in ranges))


@each_case(("k", "d", "T", "L"), [(3, 2, 3, 1), (4, 2, 3, 1), (5, 3, 2, 1)])
def test_subsets_that_contain_the_truth_are_likelier_by_exactly_the_weights(k, d, T, L):
    channel = SubsetSelection(k, d, T, L)
    for truth in range(k):
        table = Counter()
        for sequence in sequences(channel):
            draws = iter(sequence)
            table[channel.perturb_one(truth, lambda n, draws=draws: next(draws))] += 1
        assert len(table) == math.comb(k, d)
        assert Fraction(max(table.values()), min(table.values())) == Fraction(T, L)
        inside = sum(n for n in table.values() if n == max(table.values()))
        assert Fraction(inside, table.total()) == channel.exact_p


@given(k=st.integers(2, 60), weights=WEIGHTS)
def test_rows_of_a_channel_sum_to_one_and_epsilon_is_tight(k, weights):
    channel = from_ratio(k, *weights)
    assert channel.exact_p + (k - 1) * channel.exact_q == 1
    np.testing.assert_allclose(channel.matrix.sum(axis=1), 1)
    ratio = channel.exact_p / channel.exact_q
    assert ratio == channel.ratio
    # The bound is true at the stated epsilon and fails just below it.
    assert math.log(ratio) <= channel.epsilon + 1e-12
    assert math.log(ratio) > channel.epsilon - 1e-9


def test_truth_probability_three_quarters_of_two_options_is_ln_3_and_no_less():
    channel = grr(2, "3/4")
    assert (channel.T, channel.L) == (3, 1)
    assert channel.ratio == 3
    assert math.log(3) <= channel.epsilon < math.log(3) + 1e-9


@each_case("p", [Fraction(3, 4), "3/4", "0.75", 0.75])
def test_a_probability_can_be_a_fraction_a_text_or_a_float(p):
    assert grr(2, p) == SubsetSelection(2, 1, 3, 1)


def test_a_float_stands_for_its_shortest_decimal():
    assert grr(5, 0.85).exact_p == Fraction(17, 20)


def test_the_coin_form_has_p_equal_to_t_plus_the_rest_over_k():
    assert from_keep_probability(4, "1/2").exact_p == Fraction(5, 8)


@given(k=st.integers(2, 100), epsilon=st.integers(10, 12_000))
def test_from_epsilon_never_exceeds_the_epsilon_and_is_close_to_it(k, epsilon):
    stated = Fraction(epsilon, 1000)
    channel = from_epsilon(k, stated)
    assert channel.epsilon <= float(stated) + 1e-14
    assert channel.epsilon > float(stated) - (0.02 if epsilon < 50 else 0.001)


@each_case(("factor", "ratio"), [(2, 2), (3, 3), (10, 10)])
def test_epsilon_given_as_a_logarithm_is_met_exactly(factor, ratio):
    assert from_epsilon(2, math.log(factor)).ratio == ratio


@each_case(
    ("make", "words"),
    [
        (lambda: grr(1, 0.5), "nearest is 2"),
        (lambda: grr(3, "1/3"), "0.334"),
        (lambda: grr(2, 0.5), "0.501"),
        (lambda: grr(2, 0.2), "0.501"),
        (lambda: grr(2, 1), "0.999"),
        (lambda: grr(2, "three"), "not a number"),
        (lambda: grr(2, "1/0"), "not a number"),
        (lambda: grr(2, float("nan")), "not a number"),
        (lambda: grr(2, True), "must be a number"),
        (lambda: grr(2, "99999999999/100000000000"), "2\\^32"),
        (lambda: from_keep_probability(2, 0), "0.001"),
        (lambda: from_epsilon(2, 0), "0.001"),
        (lambda: from_epsilon(2, 12.5), "12"),
        (lambda: from_epsilon(2, -1), "0.001"),
        (lambda: SubsetSelection(2, 1, 3.0, 1), "integer"),
        (lambda: SubsetSelection(2, 1, 3, 0), "no privacy"),
        (lambda: SubsetSelection(2, 1, 2, 2), "differ"),
        (lambda: SubsetSelection(3, 3, 2, 1), "k - 1"),
        (lambda: SubsetSelection(2, 1, 2**32, 1), "2\\^32"),
        (lambda: channel_from_json({"kind": "other"}), "unknown kind"),
    ],
)
def test_an_impossible_channel_is_rejected_with_the_nearest_value(make, words):
    with pytest.raises(ChannelError, match=words):
        make()


HOSTILE_NUMBERS = [
    Decimal("1e400"),
    Decimal("1e9999999"),
    Decimal("1e-9999999"),
    Decimal("0e9999999"),
    Decimal("0." + "3" * 1000),
    "1e9999999",
    "1e-9999999",
    "1e99999999999999999999",
    "1" * 5000,
    "1/" + "7" * 5000,
    "1/1e5",
    "³⁄₄",
    "3/4/5",
    "",
    "0x1",
    "-inf",
    "\x1b[31m",
    "\ud800",
    10**5000,
    1e300,
    1e-300,
    float("inf"),
    Decimal("sNaN"),
    Fraction(1, 10**5000),
    None,
    [],
    {},
    b"1",
    1j,
]


@each_case("value", HOSTILE_NUMBERS)
@each_case("make", [grr, from_keep_probability, from_epsilon])
def test_a_hostile_number_is_rejected_at_once_and_briefly(make, value):
    started = time.process_time()
    with pytest.raises(ChannelError, match="number") as refused:
        make(3, value)
    assert time.process_time() - started < 0.5
    assert len(str(refused.value)) < 200
    assert str(refused.value).isprintable()


@each_case(
    ("value", "p"),
    [
        (" 3/4 ", Fraction(3, 4)),
        ("7.5e-1", Fraction(3, 4)),
        (Decimal("0.75"), Fraction(3, 4)),
        (Decimal("0.7" + "0" * 30), Fraction(7, 10)),
        ("1_1/2_0", Fraction(11, 20)),
    ],
)
def test_a_number_of_reasonable_length_is_parsed_exactly(value, p):
    assert grr(2, value).exact_p == p


@given(
    st.fractions()
    | st.integers().map(lambda n: Fraction(10) ** (n % 9000))
    | st.just(Fraction(1, 10**9999))
)
def test_every_fraction_can_be_formatted(value):
    text = format_fraction(value)
    assert 0 < len(text) <= 40
    assert "/" not in text or "..." in text or Fraction(text) == value


def test_devices_reject_channels_that_favour_other_answers():
    with pytest.raises(ChannelError, match="never runs"):
        SubsetSelection(2, 1, 1, 3).perturb_one(0, lambda n: 0)


@each_case("channel", [grr(2, "3/4"), grr(7, 0.4), SubsetSelection(6, 2, 3, 1)])
def test_simulated_reports_have_the_channels_probabilities(channel):
    rng = np.random.default_rng(7)
    n = 200_000
    for truth in (0, channel.k - 1):
        reports = channel.perturb(np.full(n, truth), rng)
        counts = reports.sum(axis=0) if channel.d > 1 else np.bincount(reports)
        frequencies = counts / n
        expected = channel.matrix[truth]
        assert np.all(np.abs(frequencies - expected) < 5 * np.sqrt(expected * (1 - expected) / n))


def test_truths_outside_the_options_are_rejected():
    with pytest.raises(ChannelError, match="option indices"):
        grr(2, 0.7).perturb(np.array([2]), np.random.default_rng(1))
    with pytest.raises(ChannelError, match="not an option index"):
        grr(2, 0.7).perturb_one(2, lambda n: 0)


CHANNELS = [
    grr(2, "3/4"),
    grr(300, "3/4"),
    SubsetSelection(k=20, d=3, T=3, L=1),
    BitVector(m=1, s=1, T=3, L=1),
    BitVector(m=9, s=2, T=3, L=1),
    BitVector(m=9, s=2, T=3, L=1, sampled=2),
    HalfSpace(m=9, s=2, agreements=5, near=3, far=1),
    WeightTable(Explicit(((3, 1), (1, 3)))),
]
"""A channel for each kind of code: one or two bytes, sets, bits, sampled bits, tables."""


def test_counting_stored_codes_gives_the_supports_of_simulated_reports():
    for channel in CHANNELS:
        codes = [channel.perturb_one(truth_of(channel), lambda n: n // 2) for _ in range(5)]
        stored = np.array([list(channel.encode(code)) for code in codes], dtype=np.uint8)
        counts = channel.count(stored)
        assert counts.shape == (channel.counted,), channel
        assert counts.max() == 5, channel
        assert channel.count(stored[:0]).sum() == 0, channel


def test_counting_segments_together_equals_counting_each_alone():
    rng = np.random.default_rng(5)
    sizes = [3, 0, 25, 1, 0]
    stops = np.cumsum(sizes)
    for channel in CHANNELS:
        codes = [
            channel.perturb_one(truth_of(channel), lambda n: int(rng.integers(n)))
            for _ in range(sum(sizes))
        ]
        stored = np.array([list(channel.encode(code)) for code in codes], np.uint8)
        expected = [channel.count(part) for part in np.split(stored, stops[:-1])]
        np.testing.assert_array_equal(channel.count_segments(stored, sizes), expected)
        np.testing.assert_array_equal(channel.count_segments(stored[:3], [3]), expected[:1])
    with pytest.raises(ChannelError, match="code 2 must be an integer from 0 to 1"):
        CHANNELS[0].count_segments(np.array([[0], [2]], dtype=np.uint8), [1, 1])


def truth_of(channel):
    return [1] + [0] * (channel.m - 1) if hasattr(channel, "m") else 0


def test_counting_other_arrays_than_stored_codes_is_rejected_with_the_expected_form():
    for channel in CHANNELS:
        truths = np.array([truth_of(channel)] * 5)
        bits = np.ones((5, channel.counted + 1), dtype=np.uint8)
        for codes in (
            bits,  # microdata: one column per option
            bits.astype(np.int64),
            channel.perturb(truths, np.random.default_rng(1)),  # simulated reports
            np.zeros((5, channel.code_bytes)),
            np.zeros((5, channel.code_bytes), dtype=np.int64),
            np.zeros(5, dtype=np.uint8),
            np.zeros((5, channel.code_bytes, 1), dtype=np.uint8),
            [[0] * channel.code_bytes],
        ):
            if np.array_equal(codes, channel.perturb(truths, np.random.default_rng(1))):
                # Bits of a single option have the shape of a stored code, but not its values.
                expected = "uint8 of shape|after its last bit"
            else:
                expected = f"uint8 of shape \\(n, {channel.code_bytes}\\), as `encode` returns them"
            with pytest.raises(ChannelError, match=expected):
                channel.count(codes)


def test_counting_a_code_that_the_channel_does_not_have_is_rejected():
    with pytest.raises(ChannelError, match="code 2 must be an integer from 0 to 1"):
        grr(2, "3/4").count(np.array([[0], [2]], dtype=np.uint8))
    with pytest.raises(ChannelError, match="a code of 9 bits has a 1 after its last bit"):
        BitVector(m=9, s=2, T=3, L=1).count(np.array([[0, 1]], dtype=np.uint8))
