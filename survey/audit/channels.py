"""Exact facts about each channel: its truths, distribution, draws, cost, and a smaller sibling.

A sibling is a channel of the same kind, run by the same code of the client, with integers so
small that every sequence of draws can be run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

from survey.mechanism import AnyChannel, BitVector, HalfSpace, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import pack_bits
from survey.mechanism.weight_table import (
    ByDistance,
    Explicit,
    FirstOrOrder,
    Mixture,
    OneBit,
    Shape,
    Window,
)

Truth = int | tuple[int, ...]
"""An option index, or one tick (0 or 1) per option."""

ENUMERATION_WORK = 30_000_000
"""Maximum `work` of all sequences of draws, over all truths, of one channel."""

SEQUENCE_WORK = 5
"""The cost of one sequence of draws in addition to the perturbation itself."""

EXACT_CELLS = 200_000
"""Maximum entries of an exact table, truths by reports."""


def truths_of(channel: AnyChannel) -> list[Truth]:
    """Return every true answer of a channel; `channel.truths` says how many there are."""
    match channel:
        case SubsetSelection() | WeightTable():
            return list(range(channel.truths))
        case BitVector() | HalfSpace():
            ordinary = channel.m - channel.alone
            sets = (
                options
                for size in range(channel.s + 1)
                for options in combinations(range(ordinary), size)
            )
            exclusive = ((option,) for option in range(ordinary, channel.m))
            return [ticks(channel.m, options) for options in (*sets, *exclusive)]


def ticks(m: int, options: tuple[int, ...]) -> tuple[int, ...]:
    """Return a set of options as m ticks, each 0 or 1.

    >>> ticks(4, (0, 2))
    (1, 0, 1, 0)
    """
    return tuple(int(option in options) for option in range(m))


def some_truths(channel: AnyChannel, limit: int) -> list[Truth]:
    """Return all truths, or `limit` of them spread from the first to the last."""
    n = channel.truths
    if not isinstance(channel, TickChannel):
        return list(spread(n, limit))
    return truths_of(channel) if n <= limit else _extreme_ticks(channel, limit)


def spread(n: int, limit: int) -> list[int]:
    """Return 0..n-1, or `limit` of these at equal distances, including the first and the last.

    >>> spread(3, 5), spread(10, 4)
    ([0, 1, 2], [0, 3, 6, 9])
    """
    return list(range(n)) if n <= limit else [i * (n - 1) // (limit - 1) for i in range(limit)]


def _extreme_ticks(channel: TickChannel, limit: int) -> list[Truth]:
    """Return no ticks, the most ticks at either end, exclusive options, then single ticks."""
    ordinary = channel.m - channel.alone
    sets = [
        (),
        tuple(range(channel.s)),
        tuple(range(ordinary - channel.s, ordinary)),
        *((option,) for option in reversed(range(ordinary, channel.m))),
        *((option,) for option in spread(ordinary, limit)),
    ]
    return [ticks(channel.m, options) for options in list(dict.fromkeys(sets))[:limit]]


def distribution(channel: AnyChannel, truth: Truth) -> dict[str, Fraction]:
    """Return P(report | truth) for every report, by the report's code as text."""
    match channel:
        case WeightTable():
            row = channel.weights[_index(truth)]
            return {str(j): Fraction(int(weight), channel.total) for j, weight in enumerate(row)}
        case BitVector():
            return dict(_bit_distribution(channel, truth))
        case HalfSpace():
            return dict(_vector_distribution(channel, truth))
        case SubsetSelection():
            return _set_distribution(channel, _index(truth))


def _index(truth: Truth) -> int:
    assert isinstance(truth, int)  # noqa: S101  narrows the type; see `truths_of`
    return truth


def _bit_distribution(channel: BitVector, truth: Truth) -> Iterator[tuple[str, Fraction]]:
    """Yield T^unchanged L^flipped / (T+L)^r for each pattern and each equally likely sample."""
    assert isinstance(truth, tuple)  # noqa: S101
    m, r = channel.m, channel.sampled
    sequences = math.comb(m, r) * (channel.T + channel.L) ** r
    weights = [channel.T ** (r - flipped) * channel.L**flipped for flipped in range(r + 1)]
    shares = [Fraction(weight, sequences) for weight in weights]
    for options in combinations(range(m), r):
        for bits in product((0, 1), repeat=r):
            flipped = sum(bit != truth[option] for option, bit in zip(options, bits, strict=True))
            ones = [option for option, bit in zip(options, bits, strict=True) if bit]
            code = [*options, *(m + option for option in ones)] if r < m else ones
            yield pack_bits(code, channel.bits), shares[flipped]


def _vector_distribution(channel: HalfSpace, truth: Truth) -> Iterator[tuple[str, Fraction]]:
    """Yield near/((near+far) G) for each near vector and far/((near+far) (2^m - G)) for others."""
    assert isinstance(truth, tuple)  # noqa: S101
    total = channel.near + channel.far
    near = Fraction(channel.near, total * channel.near_count)
    far = Fraction(channel.far, total * channel.far_count)
    for vector in product((0, 1), repeat=channel.m):
        agreements = sum(bit == tick for bit, tick in zip(vector, truth, strict=True))
        ones = [option for option, bit in enumerate(vector) if bit]
        yield pack_bits(ones, channel.m), near if agreements >= channel.agreements else far


def _set_distribution(channel: SubsetSelection, truth: int) -> dict[str, Fraction]:
    """Return T for a set that contains the truth and L for any other, over their sum."""
    sets = list(combinations(range(channel.k), channel.d))
    weights = [channel.T if truth in members else channel.L for members in sets]
    codes = (
        str(members[0]) if channel.d == 1 else pack_bits(members, channel.k) for members in sets
    )
    return {
        code: Fraction(weight, sum(weights)) for code, weight in zip(codes, weights, strict=True)
    }


def draws_below(channel: AnyChannel) -> list[int]:
    """Return the n of every draw below n that one perturbation makes, in order."""
    match channel:
        case WeightTable():
            return [channel.total]
        case BitVector():
            picks = range(channel.sampled) if channel.is_sampled else ()
            return [*(channel.m - i for i in picks), *[channel.T + channel.L] * channel.sampled]
        case HalfSpace():
            return [channel.near + channel.far, channel.near_count, channel.far_count]
        case SubsetSelection():
            offsets = range(channel.d) if channel.d > 1 else ()
            return [*(channel.k - 1 - i for i in offsets), channel.total]


def sequences(channel: AnyChannel) -> int:
    """Return the number of different sequences of draws of one perturbation."""
    return math.prod(draws_below(channel))


def number_of_reports(channel: AnyChannel) -> int:
    """Return the number of different codes."""
    match channel:
        case WeightTable():
            return channel.reports
        case BitVector():
            return math.comb(channel.m, channel.sampled) * (1 << channel.sampled)
        case HalfSpace():
            return 1 << channel.m
        case SubsetSelection():
            return math.comb(channel.k, channel.d)


def work(channel: AnyChannel) -> int:
    """Estimate the client's time for one perturbation, in units of one randomized response."""
    match channel:
        case WeightTable():
            # The client builds the rows of all answers such as "prefer not to say" as well.
            return 20 + (3 * channel.reports // 4 if channel.no_answers else channel.reports // 3)
        case BitVector():
            return 10 + channel.bits
        case HalfSpace():
            # The client adds up to m binomial coefficients for each of two times m bits.
            return 20 + channel.m**2
        case SubsetSelection():
            return 1 if channel.d == 1 else 10 + 2 * channel.k


def describe(channel: AnyChannel) -> str:
    """Return the kind and the integers of a channel in one line."""
    if isinstance(channel, WeightTable):
        extra = f", {channel.no_answers} no answers" if channel.no_answers else ""
        size = f"{channel.truths} x {channel.reports}"
        return f"weight_table {channel.shape.name} {size}, total {channel.total:,}{extra}"
    form = channel.to_json()
    integers = ", ".join(f"{name}={value}" for name, value in form.items() if name != "kind")
    return f"{form['kind']} {integers}"


def can_enumerate(channel: AnyChannel) -> bool:
    """Return whether every sequence of draws of every truth can be run in reasonable time."""
    truths = channel.truths
    effort = sequences(channel) * truths * (SEQUENCE_WORK + work(channel))
    return effort <= ENUMERATION_WORK and number_of_reports(channel) * truths <= EXACT_CELLS


def sibling(channel: AnyChannel) -> AnyChannel:
    """Return a channel of the same kind with few options and, where possible, weights 3 and 1."""
    match channel:
        case BitVector():
            return smaller_bits(channel, min(channel.m - channel.alone, 4), 3, sampled=3)
        case HalfSpace():
            return smaller_space(channel, min(channel.m - channel.alone, 4))
        case SubsetSelection():
            k = min(channel.k, 6)
            return SubsetSelection(k, min(channel.d, k - 1), 3, 1)
        case WeightTable():
            return smaller_table(channel, min(channel.truths - channel.no_answers, 5))


def smaller_bits(channel: BitVector, ordinary: int, T: int, sampled: int) -> BitVector:
    """Return a bit vector with fewer ordinary options and the same exclusive ones.

    If the channel is sampled, the result samples at most `sampled` options.
    """
    m = ordinary + channel.alone
    sample = min(channel.sampled, sampled, m - 1) if channel.is_sampled and m > 1 else m
    return BitVector(m, min(channel.s, ordinary), T, 1, channel.alone, sample)


def smaller_space(channel: HalfSpace, ordinary: int) -> HalfSpace:
    """Return a half-space with fewer ordinary options, the same exclusive ones and few draws.

    Its reports agree with the truth in about the same part of all bits.
    """
    m = ordinary + channel.alone
    agreements = min(max(channel.agreements * m // channel.m, m // 2 + 1), m)
    return HalfSpace(m, min(channel.s, ordinary), agreements, 5, 1, channel.alone)


def smaller_table(channel: WeightTable, truths: int) -> WeightTable:
    """Return a table of the same shape with `truths` rows plus the truths that are no answer."""
    return WeightTable(_smaller_shape(channel.shape, truths), channel.no_answers)


def _smaller_shape(shape: Shape, truths: int) -> Shape:
    match shape:
        case Mixture():
            parts = [_smaller_part(part, truths) for part in (shape.first, shape.second)]
            return Mixture(2, parts[0], 1, parts[1])
        case Window() | OneBit():
            return _smaller_part(shape, truths)
        case ByDistance():
            # With squares no weight is the sum of others, so two errors cannot cancel out.
            return ByDistance(tuple((truths - z) ** 2 for z in range(truths)))
        case FirstOrOrder():
            # Three options have six truths.
            whole = shape.size == shape.m
            return FirstOrOrder(3, 3, 0, 1, 3, 1) if whole else FirstOrOrder(3, 2, 2, 1, 3, 1)
        case Explicit():
            # Weights 1, 2, ..., rotated by one report per row, so that all sums are equal.
            k = min(len(shape.table[0]), truths)
            rows = range(truths)
            return Explicit(tuple(tuple(1 + (j - i) % k for j in range(k)) for i in rows))
    raise TypeError(f"no sibling for the shape {shape.name}")


def _smaller_part(part: Window | OneBit, truths: int) -> Window | OneBit:
    if isinstance(part, OneBit):
        return OneBit(truths - 1, 3, 1)
    return Window(truths, min(part.width, 3), min(part.stride, 2), 3, 1)
