"""Bit vectors and weight tables: integer rows, exact epsilon, no-answer rows at no cost."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.errors import ChannelError
from survey.mechanism import BitVector, WeightTable, channel_from_json
from survey.mechanism.channel import pack_bits, unpack_bits
from survey.mechanism.weight_table import (
    ByDistance,
    Explicit,
    Mixture,
    OneBit,
    Window,
    largest_ratio,
    with_no_answers,
)
from tests.cases import each_case

SHAPES = [
    Window(5, 3, 1, 3, 1),
    Window(7, 4, 3, 27, 10),
    Window(2, 1, 1, 5, 2),
    OneBit(1, 3, 1),
    OneBit(10, 27, 10),
    ByDistance((9, 6, 4, 3)),
    ByDistance((50, 3)),
    Explicit(((5, 1, 2), (2, 5, 1), (1, 2, 5))),
    Explicit(((7, 3), (1, 9))),
    Mixture(3, OneBit(4, 3, 1), 2, Window(5, 3, 2, 3, 1)),
]
TABLES = [WeightTable(shape, extra) for shape in SHAPES for extra in (0, 1, 2)]


@each_case("table", TABLES)
def test_all_draws_together_give_exactly_the_weights_of_a_table(table):
    for truth in range(table.truths):
        frequencies = Counter(
            table.perturb_one(truth, lambda n, u=u: u) for u in range(table.total)
        )
        assert [frequencies[report] for report in range(table.reports)] == table.weights[
            truth
        ].tolist()


@each_case("table", TABLES)
def test_rows_have_equal_sums_and_epsilon_is_tight(table):
    assert (table.weights.sum(axis=1) == table.total).all()
    assert table.weights.min() >= 1
    # Brute force over all pairs of truths and all reports, in exact fractions.
    worst = max(
        Fraction(int(a), int(b))
        for i, j in product(range(table.truths), repeat=2)
        for a, b in zip(table.weights[i], table.weights[j], strict=True)
    )
    assert worst == table.ratio
    assert math.log(worst) <= table.epsilon + 1e-12
    assert math.log(worst) > table.epsilon - 1e-9


@each_case("table", TABLES)
def test_a_no_answer_option_costs_no_epsilon_and_has_its_own_report(table):
    assert table.ratio == WeightTable(table.shape).ratio
    if table.no_answers:
        weight = table.weights[-1, -1]
        assert weight > table.weights[0, -1]
        assert np.linalg.matrix_rank(table.matrix) >= 2


def test_the_no_answer_rule_is_the_designs_closed_form_for_windows_and_one_bit():
    window = with_no_answers(Window(10, 3, 1, 5, 2).rows(), 1)
    assert window[0, -1] == 3 * 2  # A = width L
    assert window[-1, -1] == 3 * 5
    bit = with_no_answers(OneBit(10, 5, 2).rows(), 1)
    assert bit[0, -1] == 10 * 2  # A = R L
    assert bit[-1, -1] == 10 * 5


@each_case("table", TABLES)
def test_a_table_survives_its_json_form(table):
    assert channel_from_json(table.to_json()) == table


@given(
    st.lists(st.lists(st.integers(1, 400), min_size=3, max_size=3), min_size=2, max_size=5),
    st.integers(1, 2),
)
def test_no_answer_rows_never_raise_epsilon(rows, extra):
    largest = max(map(sum, rows))
    table = np.array([[*row[:2], row[2] + largest - sum(row)] for row in rows])
    if largest_ratio(table) == 1:
        return
    try:
        extended = with_no_answers(table, extra)
    except ChannelError:
        return  # The table is almost flat, so there is no room.
    assert len(set(extended.sum(axis=1).tolist())) == 1
    assert extended.min() >= 1
    assert largest_ratio(extended) <= largest_ratio(table)


def test_noise_by_distance_gathers_its_tails_at_the_ends_of_the_grid():
    rows = ByDistance((4, 2, 1)).rows()
    # M = 4 + 2(2 + 1) = 10; from the middle: 1 step out on either side gathers 2 + 1.
    assert rows.tolist() == [[7, 2, 1], [3, 4, 3], [1, 2, 7]]


def test_means_estimated_from_one_bit_are_unbiased():
    R, T, L = 20, 27, 10
    table = WeightTable(OneBit(R, T, L))
    share_of_1 = table.matrix[:, 1]
    # x = R (P(1|x)(T+L) - L) / (T-L)
    np.testing.assert_allclose(R * (share_of_1 * (T + L) - L) / (T - L), np.arange(R + 1))


@each_case(("m", "s", "T", "L"), [(1, 1, 3, 1), (3, 3, 3, 1), (4, 1, 2, 1), (4, 2, 5, 2)])
def test_bit_vectors_epsilon_is_tight_over_all_pairs_of_answers(m, s, T, L):
    channel = BitVector(m, s, T, L)
    answers = [ticks for ticks in product((0, 1), repeat=m) if sum(ticks) <= s]
    worst = Fraction(0)
    tables = {}
    for ticks in answers:
        table = Counter()
        for draws in product(range(T + L), repeat=m):
            stream = iter(draws)
            table[channel.perturb_one(ticks, lambda n, stream=stream: next(stream))] += 1
        assert sum(table.values()) == (T + L) ** m
        assert table[pack_bits([i for i, tick in enumerate(ticks) if tick], m)] == T**m
        tables[ticks] = table
    for first, second in product(tables.values(), repeat=2):
        worst = max(worst, *(Fraction(first[report], second[report]) for report in first))
    assert worst == channel.ratio
    assert math.log(worst) <= channel.epsilon + 1e-12
    assert math.log(worst) > channel.epsilon - 1e-9


def test_simulated_bits_have_the_channels_probabilities():
    channel = BitVector(4, 4, 3, 1)
    n = 100_000
    truths = np.tile([1, 0, 1, 0], (n, 1))
    share = channel.perturb(truths, np.random.default_rng(5)).mean(axis=0)
    np.testing.assert_allclose(share, [0.75, 0.25, 0.75, 0.25], atol=5 * np.sqrt(0.1875 / n))


@each_case("table", TABLES)
def test_simulated_reports_of_tables_have_their_probabilities(table):
    n = 40_000
    rng = np.random.default_rng(11)
    for truth in (0, table.truths - 1):
        frequencies = (
            np.bincount(table.perturb(np.full(n, truth), rng), minlength=table.reports) / n
        )
        expected = table.matrix[truth]
        assert np.all(
            np.abs(frequencies - expected) < 5 * np.sqrt(expected * (1 - expected) / n) + 1e-9
        )


@given(st.integers(1, 70), st.data())
def test_bit_strings_have_one_spelling(k, data):
    members = data.draw(st.sets(st.integers(0, k - 1)))
    text = pack_bits(members, k)
    octets = unpack_bits(text, k)
    assert {i for i in range(k) if octets[i >> 3] & (128 >> (i & 7))} == members
    for wrong in (text[:-1], text + "A", text + "=", text[:-1] + "!"):
        with pytest.raises(ChannelError):
            unpack_bits(wrong, k)


def test_spare_bits_must_be_zero():
    with pytest.raises(ChannelError):
        unpack_bits("gEE", 10)


@each_case(
    ("make", "words"),
    [
        (lambda: Explicit(((1, 2), (2, 2))), "equal sums"),
        (lambda: Explicit(((1.0, 2), (2, 1))), "integer"),
        (lambda: Explicit(((0, 3), (2, 1))), "infinite"),
        (lambda: Explicit(((1, 2),)), "2 to 64 rows"),
        (lambda: Explicit(((1, 2), (1, 2, 3))), "2 to 64 rows"),
        (lambda: Explicit(tuple((1,) * 65 for _ in range(65))), "2 to 64"),
        (lambda: WeightTable(Explicit(((2, 2), (2, 2)))), "all rows are equal"),
        (lambda: Explicit(((2**32, 1), (1, 2**32))), "2\\^32"),
        (lambda: Window(1001, 1, 1, 2, 1), "nearest is 1,000"),
        (lambda: Window(10, 0, 1, 2, 1), "at least 1"),
        (lambda: Window(1000, 1, 5, 2, 1), "4,096 fit"),
        (lambda: Window(10, 3, 1, 2, 2), "differ"),
        (lambda: Window(10, 3, 1, 2, 0), "no privacy"),
        (lambda: OneBit(1000, 3, 1), "nearest is 1,000"),
        (lambda: OneBit(999, 2**31, 1), "2\\^32"),
        (lambda: ByDistance((3, 0)), "no privacy"),
        (lambda: ByDistance((3,)), "nearest is 2"),
        (lambda: Mixture(0, OneBit(4, 3, 1), 1, Window(5, 3, 2, 3, 1)), "at least 1"),
        (lambda: Mixture(1, OneBit(5, 3, 1), 1, Window(5, 3, 2, 3, 1)), "6 and 5 truths"),
        (lambda: WeightTable(OneBit(4, 3, 1), 3), "from 0 to 2"),
        (lambda: BitVector(0, 1, 3, 1), "nearest is 1"),
        (lambda: BitVector(3, 4, 3, 1), "ticks"),
        (lambda: BitVector(3, 1, 3, 3), "differ"),
        (
            lambda: channel_from_json(
                {"kind": "weight_table", "table": {"name": "x"}, "no_answers": 0}
            ),
            "unknown table",
        ),
        (
            lambda: channel_from_json(
                {"kind": "weight_table", "table": {"name": "window", "k": 3}, "no_answers": 0}
            ),
            "other parameters",
        ),
        (
            lambda: channel_from_json({"kind": "bit_vector", "m": 3}),
            "has kind, m, s, alone, sampled, T, L",
        ),
    ],
)
def test_an_impossible_table_is_rejected_by_name(make, words):
    with pytest.raises(ChannelError, match=words):
        make()


@each_case("truth", [[1, 0], [1, 0, 2], [1, 1, 1]])
def test_ticks_that_do_not_fit_are_rejected(truth):
    with pytest.raises(ChannelError, match="ticks"):
        BitVector(3, 2, 3, 1).perturb_one(truth, lambda n: 0)
