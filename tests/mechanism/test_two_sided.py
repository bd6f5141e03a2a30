"""The stated epsilon bounds every exact table from both sides, and no smaller one does."""

from __future__ import annotations

import decimal
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from survey.audit.channels import Truth, distribution, truths_of
from survey.mechanism import (
    AnyChannel,
    BitVector,
    HalfSpace,
    SubsetSelection,
    WeightTable,
    best,
    from_epsilon,
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
from survey.mechanism.randomized_response import (
    exponential,
    forced_response,
    from_probabilities,
    two_coins,
    unrelated_question,
    warner,
)
from survey.mechanism.weight_table import ByDistance, Explicit, Mixture, OneBit, Shape, Window
from tests.cases import each_case

SLACK = Decimal("1e-9")
"""Distance below the stated epsilon at which the bound must fail."""

SETS: dict[str, AnyChannel] = {
    "randomized response of two options at three quarters": grr(2, "3/4"),
    "randomized response of five options at .85": grr(5, 0.85),
    "randomized response of 100 options at epsilon 2": from_epsilon(100, 2),
    "sets of two of three options": SubsetSelection(3, 2, 3, 1),
    "sets of three of five options": SubsetSelection(5, 3, 7, 2),
    "the best sets of seven options at epsilon one half": best(7, "0.5"),
    "the best sets of ten options at epsilon 1": best(10, 1),
}

BITS: dict[str, AnyChannel] = {
    "one bit": BitVector(1, 1, 3, 1),
    "three bits with any ticks": BitVector(3, 3, 3, 1),
    "four bits with at most one tick": BitVector(4, 1, 5, 2),
    "five bits with at most two ticks": BitVector(5, 2, 2, 1),
    "three bits, the last alone": BitVector(3, 1, 3, 1, alone=1),
    "four bits, the last alone, three ticks": BitVector(4, 3, 3, 1, alone=1),
    "five bits, the last alone, one tick": BitVector(5, 1, 2, 1, alone=1),
    "five bits, two alone, two ticks": BitVector(5, 2, 2, 1, alone=2),
    "three bits, all but one alone": BitVector(3, 1, 3, 1, alone=2),
    "five bits, three alone, one tick": BitVector(5, 1, 2, 1, alone=3),
    "one of four bits asked": BitVector(4, 4, 3, 1, sampled=1),
    "three of four bits asked": BitVector(4, 4, 2, 1, sampled=3),
    "three of four bits asked, at most one tick": BitVector(4, 1, 2, 1, sampled=3),
    "two of four bits asked, one alone": BitVector(4, 2, 3, 1, alone=1, sampled=2),
    "three of five bits asked, two alone, one tick": BitVector(5, 1, 2, 1, alone=2, sampled=3),
}

SPACES: dict[str, AnyChannel] = {
    "one bit in a half-space": HalfSpace(1, 1, 1, 3, 1),
    "a half-space of two bits": HalfSpace(2, 2, 2, 2, 3),
    "a half-space of three bits": HalfSpace(3, 3, 2, 3, 2),
    "all three bits agree": HalfSpace(3, 3, 3, 1, 3),
    "a half-space of four bits, ties far": HalfSpace(4, 4, 3, 2, 1),
    "a half-space of four bits, two ticks, the last alone": HalfSpace(4, 2, 3, 4, 3, alone=1),
    "most of five bits agree, three ticks, two alone": HalfSpace(5, 3, 4, 1, 2, alone=2),
}

SHAPES: dict[str, Shape] = {
    "a window": Window(5, 3, 1, 3, 1),
    "a wide window with a stride": Window(7, 4, 3, 27, 10),
    "a window of two truths that do not overlap": Window(2, 1, 1, 5, 2),
    "one bit of two points": OneBit(1, 3, 1),
    "one bit of eleven points": OneBit(10, 27, 10),
    "noise by distance": ByDistance((9, 6, 4, 3)),
    "noise that grows with distance": ByDistance((3, 50)),
    "an explicit table": Explicit(((5, 1, 2), (2, 5, 1), (1, 2, 5))),
    "an explicit table that is not square": Explicit(((7, 2, 1), (1, 8, 1))),
    "a mixture of one bit and a window": Mixture(3, OneBit(4, 3, 1), 2, Window(5, 3, 2, 3, 1)),
    "a mixture of two windows": Mixture(1, Window(3, 1, 1, 3, 1), 5, Window(3, 2, 2, 4, 3)),
}

MAKERS = (one_bit, square_wave, piecewise, hybrid, optimal_piecewise, geometric, laplace)
NO_ANSWERS = ("", " and one no answer", " and two no answers")


def tables() -> Iterator[tuple[str, AnyChannel]]:
    """Yield every shape and constructor with 0, 1 and 2 no-answer options."""
    for extra, ending in enumerate(NO_ANSWERS):
        for name, shape in SHAPES.items():
            yield name + ending, WeightTable(shape, extra)
        for epsilon in ("0.5", "1", "4"):
            for make in MAKERS:
                name = make.__name__.replace("_", " ")
                yield f"{name} at epsilon {epsilon}{ending}", make(11, epsilon, extra)
        yield f"gaussian noise of six steps{ending}", gaussian(11, 6, extra)
        utility = [[0, -1, -4], [-1, 0, -1], [-4, -1, 0]]
        yield f"the exponential mechanism{ending}", exponential(utility, 2, extra)
        yield f"warners cards{ending}", warner("3/4", extra)
        yield f"warners cards below one half{ending}", warner("1/5", extra)
        yield f"two coins of unequal bias{ending}", two_coins("2/3", "1/7", extra)
        yield (
            f"a die with unequal faces{ending}",
            forced_response("1/2", ["1/2", "1/3", "1/6"], extra),
        )
        yield f"an unrelated question{ending}", unrelated_question("3/4", "1/12", extra)
        rows = [[Fraction(3, 5), Fraction(2, 5)], [Fraction(1, 4), Fraction(3, 4)]]
        yield f"probabilities as they are{ending}", from_probabilities(rows, extra)


CHANNELS = {**SETS, **BITS, **SPACES, **dict(tables())}


@cache
def largest_ratio(channel: AnyChannel) -> Fraction:
    """Return the maximum ratio of probabilities over all reports and pairs of truths."""
    rows = [distribution(channel, truth) for truth in truths_of(channel)]
    assert all(row.keys() == rows[0].keys() for row in rows)
    columns = ([row[report] for row in rows] for report in rows[0])
    return max(max(column) / min(column) for column in columns)


@pytest.mark.web
@pytest.mark.security
@each_case("channel", CHANNELS.values())
def test_the_largest_ratio_between_two_truths_is_exactly_the_channels_ratio(channel):
    assert largest_ratio(channel) == channel.ratio


@pytest.mark.web
@pytest.mark.slow
@pytest.mark.security
@each_case("channel", CHANNELS.values())
def test_the_stated_epsilon_is_the_smallest_bound(channel):
    with decimal.localcontext(prec=60):
        claimed = Decimal(channel.epsilon)
        worst = largest_ratio(channel)
        exact = Decimal(worst.numerator).ln() - Decimal(worst.denominator).ln()
        assert claimed - SLACK < exact <= claimed


def bit_truths(channel: BitVector | HalfSpace) -> list[Truth]:
    """Return the truths by definition: at most s ordinary ticks, or one exclusive option."""
    free = channel.m - channel.alone
    return [
        ticks
        for ticks in product((0, 1), repeat=channel.m)
        if (sum(ticks[:free]) <= channel.s and not any(ticks[free:]))
        or (sum(ticks[free:]) == 1 and not any(ticks[:free]))
    ]


def replayed(
    channel: SubsetSelection | BitVector | HalfSpace, truth: Truth, draws: list[int]
) -> tuple[str, list[int]]:
    """Return the report of these draws, followed by zeros, and the ranges of all draws."""
    ranges: list[int] = []

    def uniform_below(n: int) -> int:
        ranges.append(n)
        return draws[len(ranges) - 1] if len(ranges) <= len(draws) else 0

    return str(channel.perturb_one(truth, uniform_below)), ranges


def enumerated(
    channel: SubsetSelection | BitVector | HalfSpace, truth: Truth
) -> dict[str, Fraction]:
    """Return P(report | truth) from every sequence of draws of `perturb_one`."""
    table: Counter[str] = Counter()
    draws: list[int] = []
    _, ranges = replayed(channel, truth, draws)
    while True:
        report, drawn_ranges = replayed(channel, truth, draws)
        assert drawn_ranges == ranges, (
            "sequences are equally likely only when their ranges are the same"
        )
        table[report] += 1
        draws += [0] * (len(drawn_ranges) - len(draws))
        while draws and draws[-1] + 1 == drawn_ranges[len(draws) - 1]:
            draws.pop()
        if not draws:
            return {code: Fraction(n, table.total()) for code, n in table.items()}
        draws[-1] += 1


@pytest.mark.slow
@pytest.mark.security
@each_case("channel", [*BITS.values(), *SPACES.values()])
def test_all_draws_of_ticks_together_give_exactly_the_stated_table(channel):
    assert sorted(truths_of(channel)) == sorted(bit_truths(channel))
    rows = [enumerated(channel, truth) for truth in bit_truths(channel)]
    assert rows == [distribution(channel, truth) for truth in bit_truths(channel)]
    reports = set().union(*rows)
    columns = [[row.get(report, Fraction(0)) for row in rows] for report in reports]
    assert all(min(column) > 0 for column in columns)
    assert max(max(column) / min(column) for column in columns) == channel.ratio


SMALL_SETS = {
    name: channel for name, channel in SETS.items() if channel.k <= 5 and channel.total < 100
}


@pytest.mark.security
@each_case("channel", SMALL_SETS.values())
def test_all_draws_of_a_set_together_give_exactly_the_stated_table(channel):
    for truth in truths_of(channel):
        assert enumerated(channel, truth) == distribution(channel, truth)
