"""Invalid channels raise ChannelError, which names the parameter and the nearest allowed value.

These tests cover every parameter of every kind and both sides of each limit; the other modules
have one example of most errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from survey.errors import ChannelError
from survey.mechanism import (
    BitVector,
    HalfSpace,
    SubsetSelection,
    WeightTable,
    best,
    channel_from_json,
    from_epsilon,
    from_keep_probability,
    grr,
)
from survey.mechanism.numeric import (
    gaussian,
    geometric,
    hybrid,
    laplace,
    one_bit,
    optimal_piecewise,
    piecewise,
    square_wave,
)
from survey.mechanism.randomized_response import exponential, from_probabilities
from survey.mechanism.weight_table import ByDistance, Explicit, Mixture, OneBit, Window
from tests.cases import each_case

WORD = 2**32
ON_A_GRID = [one_bit, square_wave, piecewise, hybrid, optimal_piecewise, geometric, laplace]


def no_draw(n: int) -> int:
    raise AssertionError(f"a draw below {n} although the channel never runs")


# Weights that are not integers.

BIT, WINDOW = OneBit(4, 3, 1), Window(5, 3, 2, 3, 1)
PARAMETERS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "subset selection": (SubsetSelection, {"k": 5, "d": 2, "T": 3, "L": 1}),
    "bit vector": (BitVector, {"m": 5, "s": 2, "T": 3, "L": 1, "alone": 1, "sampled": 3}),
    "half space": (
        HalfSpace,
        {"m": 5, "s": 2, "agreements": 4, "near": 3, "far": 1, "alone": 1},
    ),
    "window": (Window, {"k": 5, "width": 3, "stride": 2, "T": 3, "L": 1}),
    "one bit": (OneBit, {"R": 4, "T": 3, "L": 1}),
    "mixture": (Mixture, {"a": 2, "first": BIT, "b": 3, "second": WINDOW}),
    "weight table": (WeightTable, {"shape": BIT, "no_answers": 1}),
}
NO_INTEGERS = [3.0, 2.5, float("nan"), float("inf"), "3", True, None, [3], b"3"]
NO_INTEGERS += [Fraction(3), Decimal(3), np.int64(3), 3 + 0j]


@each_case(
    ("kind", "name"),
    [
        (kind, name)
        for kind, (_, parameters) in PARAMETERS.items()
        for name, value in parameters.items()
        if type(value) is int
    ],
)
def test_a_parameter_that_is_not_an_integer_is_rejected_by_its_name(kind, name):
    make, parameters = PARAMETERS[kind]
    make(**parameters)
    for wrong in NO_INTEGERS:
        with pytest.raises(ChannelError, match=f"^{name} must be an integer, not "):
            make(**{**parameters, name: wrong})


@each_case("wrong", NO_INTEGERS)
def test_a_weight_in_a_list_that_is_not_an_integer_is_rejected_by_its_place(wrong):
    with pytest.raises(ChannelError, match=r"^weights\[2\] must be an integer"):
        ByDistance((9, 6, wrong))
    with pytest.raises(ChannelError, match=r"^table\[1\]\[0\] must be an integer"):
        Explicit(((2, 1), (wrong, 1)))


@pytest.mark.slow
@given(
    form=st.dictionaries(
        st.sampled_from(["kind", "k", "d", "T", "L", "m", "s", "table", "no_answers", "other"]),
        st.sampled_from(
            [
                "subset_selection",
                "bit_vector",
                "half_space",
                "weight_table",
                3,
                1,
                2.5,
                None,
                [],
                {},
            ]
        )
        | st.dictionaries(
            st.sampled_from(
                ["name", "k", "R", "T", "L", "width", "weights", "table", "a", "first"]
            ),
            st.sampled_from(["window", "one_bit", "by_distance", "explicit", "mixture", 3, 1, []])
            | st.lists(st.integers(-1, 3) | st.lists(st.integers(-1, 3), max_size=3), max_size=3),
        ),
    )
)
def test_a_definitions_channel_is_valid_or_rejected_with_a_message(form):
    try:
        channel = channel_from_json(form)
    except ChannelError as refused:
        sentence = str(refused)
    else:
        sentence = "a valid channel"
        assert channel_from_json(channel.to_json()) == channel
    assert 10 < len(sentence) < 1000


# Rows of unequal sum, and zero weights.

ROWS = st.integers(2, 6).flatmap(
    lambda reports: st.lists(
        st.lists(st.integers(1, 1000), min_size=reports, max_size=reports), min_size=2, max_size=6
    )
)


@given(ROWS)
def test_rows_of_unequal_sum_are_rejected_with_both_sums(rows):
    sums = [sum(row) for row in rows]
    assume(len(set(sums)) > 1)
    wrong = next(i for i, total in enumerate(sums) if total != sums[0])
    with pytest.raises(
        ChannelError, match=f"row {wrong} adds up to {sums[wrong]}, row 0 to {sums[0]};"
    ):
        Explicit(tuple(map(tuple, rows)))


@given(ROWS)
def test_suggested_weights_for_unequal_sums_make_a_table(rows):
    for _ in range(2 * len(rows)):
        try:
            Explicit(tuple(map(tuple, rows)))
        except ChannelError as refused:
            match = re.search(r"value is table\[(\d)\]\[(\d)\] = (\d+)$", str(refused))
            row, column, weight = map(int, match.groups())
            rows[row][column] = weight
    Explicit(tuple(map(tuple, rows)))


@given(ROWS, st.integers(-5, 0), st.data())
def test_a_zero_or_negative_weight_is_rejected_by_its_row_with_the_nearest(rows, weight, data):
    row = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.integers(0, len(rows[0]) - 1))
    largest = max(map(sum, rows))
    # All sums are equal, so the zero weight is the only error.
    equal = [
        [*row_weights[:-1], row_weights[-1] + largest - sum(row_weights)] for row_weights in rows
    ]
    next_column = (column + 1) % len(rows[0])
    equal[row][next_column] += equal[row][column] - weight
    equal[row][column] = weight
    with pytest.raises(ChannelError, match=f"^row {row} has .*infinite.*the nearest is 1$"):
        Explicit(tuple(map(tuple, equal)))


@each_case("remainder", ["1/3", "2/3", "0"])
def test_probabilities_that_do_not_add_up_to_one_are_rejected_by_their_row(remainder):
    rows = [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 2), Fraction(remainder)]]
    with pytest.raises(ChannelError, match=f"^row 1 adds up to {sum(rows[1])}; it must be 1$"):
        from_probabilities(rows)


@each_case("L", [0, -1, -(2**40)])
@each_case(
    "make",
    [
        lambda L: SubsetSelection(5, 1, 3, L),
        lambda L: SubsetSelection(5, 2, 3, L),
        lambda L: BitVector(5, 2, 3, L),
        lambda L: BitVector(5, 2, 3, L, alone=1, sampled=2),
        lambda L: Window(5, 3, 1, 3, L),
        lambda L: OneBit(4, 3, L),
    ],
)
def test_a_second_weight_below_one_is_rejected_everywhere(make, L):
    with pytest.raises(ChannelError, match=f"^L = {L} must be at least 1: a zero weight"):
        make(L)


@each_case("T", [0, -3, 1])
def test_a_first_weight_that_is_zero_negative_or_the_second_is_rejected(T):
    for make in (
        lambda: SubsetSelection(5, 2, T, 1),
        lambda: BitVector(5, 2, T, 1),
        lambda: Window(5, 3, 1, T, 1),
        lambda: OneBit(4, T, 1),
    ):
        with pytest.raises(ChannelError, match=f"^T = {T} must be positive and differ from L = 1"):
            make()


def test_probabilities_of_zero_are_rejected_as_zero_weights():
    with pytest.raises(ChannelError, match="row 1 has a weight below 1"):
        from_probabilities([[Fraction(1, 2), Fraction(1, 2)], [Fraction(1), Fraction(0)]])


# Totals of more than one word.

TOTALS: dict[str, Callable[[int], object]] = {
    "randomized response": lambda extra: SubsetSelection(2, 1, WORD - 1 + extra, 1),
    "sets of two": lambda extra: SubsetSelection(4, 2, WORD // 2 - 1 + extra, 1),
    "bits": lambda extra: BitVector(3, 1, WORD - 1 + extra, 1),
    "a half-space": lambda extra: HalfSpace(3, 1, 2, WORD - 1 + extra, 1),
    "a window": lambda extra: WeightTable(Window(3, 1, 1, WORD - 2 + extra, 1)),
    "one bit": lambda extra: WeightTable(OneBit(2, WORD // 2 - 1 + extra, 1)),
    "by distance": lambda extra: WeightTable(ByDistance((WORD - 2 + extra, 1))),
    "explicit": lambda extra: WeightTable(Explicit(((WORD - 1 + extra, 1), (1, WORD - 1 + extra)))),
    "a mixture": lambda extra: WeightTable(
        Mixture(1, OneBit(1, 3, 1), WORD // 4 - 1 + extra, OneBit(1, 3, 1))
    ),
}


@each_case("make", TOTALS.values())
def test_a_total_of_one_word_is_allowed_and_one_more_is_rejected(make):
    make(0)
    with pytest.raises(ChannelError, match=r"the weights add up to 4,294,967,\d+, above 2\^32"):
        make(1)


def test_a_no_answer_option_cannot_push_the_total_above_one_word():
    full = OneBit(2, WORD // 2 - 1, 1)
    WeightTable(full)
    with pytest.raises(
        ChannelError, match=r"above 2\^32; the nearest allowed total is 4,294,967,296$"
    ):
        WeightTable(full, 1)


# Devices reject channels that favor other answers than the truth.


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(2, 9), st.data())
def test_devices_never_draw_for_a_channel_that_favours_other_answers(L, extra, k, data):
    d, sampled = data.draw(st.integers(1, k - 1)), data.draw(st.integers(1, k))
    weak = L + extra
    for channel, truth in (
        (SubsetSelection(k, d, L, weak), 0),
        (BitVector(k, 1, L, weak), [1] + [0] * (k - 1)),
        (BitVector(k, 1, L, weak, alone=1, sampled=sampled), [0] * k),
    ):
        assert channel.ratio > 1  # The estimator accepts the channel.
        with pytest.raises(ChannelError, match=f"never runs .* T = {L} <= L = {weak}"):
            channel.perturb_one(truth, no_draw)


# Sizes of sets, options, ticks and grids.


@given(st.integers(2, 200), st.integers(-3, 300))
def test_a_set_of_all_or_no_options_is_rejected_with_the_allowed_sizes(k, d):
    assume(not 1 <= d < k)
    with pytest.raises(ChannelError, match=f"^d = {d} must be from 1 to k - 1 = {k - 1}$"):
        SubsetSelection(k, d, 3, 1)


@each_case(("k", "nearest"), [(1, 2), (0, 2), (-7, 2), (10_001, 10_000)])
@each_case("make", [grr, from_keep_probability, from_epsilon, best])
def test_too_few_or_too_many_options_are_rejected_with_the_nearest_number(make, k, nearest):
    with pytest.raises(ChannelError, match=f"the nearest is {nearest}$"):
        make(k, "0.9")
    make(nearest, "0.9")


@each_case(
    ("parameters", "words"),
    [
        ({"m": 0}, "nearest is 1$"),
        ({"m": 1001}, "nearest is 1000$"),
        ({"s": 0}, "from 1 to m - alone = 4$"),
        ({"s": 5}, "from 1 to m - alone = 4$"),
        ({"alone": -1}, "alone = -1 must be from 0"),
        ({"alone": 5}, "alone = 5 must be from 0"),
        ({"sampled": -1}, "from 1 to m = 5$"),
        ({"sampled": 6}, "from 1 to m = 5$"),
    ],
)
def test_a_bit_vector_of_a_wrong_size_is_rejected_with_the_allowed_values(parameters, words):
    fits = {"m": 5, "s": 2, "T": 3, "L": 1, "alone": 1, "sampled": 3}
    with pytest.raises(ChannelError, match=words):
        BitVector(**{**fits, **parameters})


@each_case(
    "truth",
    [(1, 1, 1, 0, 0), (1, 0, 0, 1, 0), (0, 0, 0, 1, 1), (1, 1, 0, 0, 1), (1, 0, 0, 0), (2,) * 5],
)
def test_ticks_that_the_question_does_not_allow_are_rejected_before_any_draw(truth):
    for sampled in (5, 2):
        with pytest.raises(ChannelError, match="tick"):
            BitVector(5, 2, 3, 1, alone=2, sampled=sampled).perturb_one(truth, no_draw)


@each_case("k", [1001, 4097, 10**9])
@each_case("make", [*ON_A_GRID, gaussian])
def test_a_grid_of_more_than_1000_points_is_rejected_with_the_nearest(make, k):
    with pytest.raises(ChannelError, match=r"2 to 1,000 are allowed; the nearest is 1,000$"):
        make(k, 1)


@each_case("k", [1001, 4096])
def test_a_shape_over_more_than_1000_points_is_rejected_with_the_nearest(k):
    for make in (
        lambda: ByDistance((2,) * k),
        lambda: OneBit(k - 1, 3, 1),
        lambda: Window(k, 1, 1, 3, 1),
    ):
        with pytest.raises(ChannelError, match=r"2 to 1,000 are allowed; the nearest is 1,000$"):
            make()


# Epsilon outside (0, 12], and suggested values.

OF_EPSILON: dict[str, Callable[[Any], Any]] = {
    **{make.__name__: lambda value, make=make: make(11, value) for make in ON_A_GRID},
    "exponential": lambda value: exponential([[1, 0], [0, 1]], value),
    "from_epsilon": lambda value: from_epsilon(5, value),
    "best": lambda value: best(11, value),
}


@each_case("make", OF_EPSILON.values())
@each_case(
    ("value", "nearest"),
    [(0, "0.001"), (-1, "0.001"), ("-1/3", "0.001"), (12.5, "12"), ("12.001", "12"), (13, "12")],
)
def test_an_epsilon_outside_0_to_12_is_rejected_everywhere_with_the_nearest(make, value, nearest):
    with pytest.raises(ChannelError, match=f"^epsilon = .*the nearest allowed value is {nearest}$"):
        make(value)


@each_case("make", OF_EPSILON.values())
@each_case("value", ["x", "", None, True, float("nan"), float("inf"), 10**400])
def test_an_epsilon_that_is_not_a_number_is_rejected_everywhere(make, value):
    with pytest.raises(ChannelError, match=r"^epsilon .*number"):
        make(value)


def suggested(refused: ChannelError) -> str:
    """Return the nearest allowed value that an error names."""
    return re.search(r"the nearest allowed value is (\S+)$", str(refused))[1]


@given(
    k=st.integers(2, 10_000),
    value=st.fractions("-1/2", 2, max_denominator=10**6) | st.sampled_from(["1e-9", "0.99999999"]),
    make=st.sampled_from([grr, from_keep_probability]),
)
def test_suggested_probabilities_are_allowed(k, value, make):
    try:
        make(k, value)
    except ChannelError as refused:
        make(k, suggested(refused))


@pytest.mark.slow
@given(
    k=st.integers(2, 300),
    value=st.fractions(-20, 20) | st.fractions("1/1000000000000", "1/1000"),
    make=st.sampled_from([*ON_A_GRID, from_epsilon, best]),
)
def test_suggested_epsilons_are_allowed(k, value, make):
    try:
        make(k, value)
    except ChannelError as refused:
        if "nearest" in str(refused):
            make(k, suggested(refused))
