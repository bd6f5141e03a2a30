"""Exact facts about each channel: truths, distribution, draws, cost, and a smaller sibling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable
from survey.mechanism.codes import pack_bits
from survey.mechanism.weight_table import ByDistance, Explicit, Mixture, OneBit, Shape, Window

Truth = int | tuple[int, ...]


def truths_of(channel: AnyChannel) -> list[Truth]:
    """Every true answer that the channel takes; they may be very many: see `channel.truths`."""
    match channel:
        case SubsetSelection() | WeightTable():
            return list(range(channel.truths))
        case BitVector():
            free = channel.m - channel.alone
            among = (
                ticked for n in range(channel.s + 1) for ticked in combinations(range(free), n)
            )
            apart = ((option,) for option in range(free, channel.m))
            return [ticks(channel.m, ticked) for ticked in (*among, *apart)]


def ticks(m: int, ticked: tuple[int, ...]) -> tuple[int, ...]:
    """The options that are ticked as m ticks, each 0 or 1.

    >>> ticks(4, (0, 2))
    (1, 0, 1, 0)
    """
    return tuple(int(option in ticked) for option in range(m))


def some_truths(channel: AnyChannel, most: int) -> list[Truth]:
    """All truths, or `most` of them spread from the first to the last."""
    n = channel.truths
    if not isinstance(channel, BitVector):
        return list(spread(n, most))
    return truths_of(channel) if n <= most else _extreme_ticks(channel, most)


def spread(n: int, most: int) -> list[int]:
    """0..n-1, or `most` of them at equal distances, the first and the last among them.

    >>> spread(3, 5), spread(10, 4)
    ([0, 1, 2], [0, 3, 6, 9])
    """
    return list(range(n)) if n <= most else [i * (n - 1) // (most - 1) for i in range(most)]


def _extreme_ticks(channel: BitVector, most: int) -> list[Truth]:
    """Nothing ticked, most ticked at either end, those that stand alone, then single ticks."""
    free = channel.m - channel.alone
    ticked = [
        (),
        tuple(range(channel.s)),
        tuple(range(free - channel.s, free)),
        *((option,) for option in reversed(range(free, channel.m))),
        *((option,) for option in spread(free, most)),
    ]
    return [ticks(channel.m, each) for each in list(dict.fromkeys(ticked))[:most]]


def distribution(channel: AnyChannel, truth: Truth) -> dict[str, Fraction]:
    """P(report | truth) for every report, keyed by its code as text."""
    match channel:
        case WeightTable():
            row = channel.weights[_index(truth)]
            return {str(j): Fraction(int(weight), channel.total) for j, weight in enumerate(row)}
        case BitVector():
            return dict(_of_bits(channel, truth))
        case SubsetSelection():
            return _of_sets(channel, _index(truth))


def _index(truth: Truth) -> int:
    assert isinstance(truth, int)  # noqa: S101  narrows the type; see `truths_of`
    return truth


def _of_bits(channel: BitVector, truth: Truth) -> Iterator[tuple[str, Fraction]]:
    """T^kept L^flipped / (T+L)^r for every pattern, each choice of r options equally likely."""
    assert isinstance(truth, tuple)  # noqa: S101
    m, r = channel.m, channel.sampled
    sequences = math.comb(m, r) * (channel.T + channel.L) ** r
    weights = [channel.T ** (r - flipped) * channel.L**flipped for flipped in range(r + 1)]
    shares = [Fraction(weight, sequences) for weight in weights]
    for asked in combinations(range(m), r):
        for bits in product((0, 1), repeat=r):
            flipped = sum(bit != truth[option] for option, bit in zip(asked, bits, strict=True))
            ones = [option for option, bit in zip(asked, bits, strict=True) if bit]
            code = [*asked, *(m + option for option in ones)] if r < m else ones
            yield pack_bits(code, channel.bits), shares[flipped]


def _of_sets(channel: SubsetSelection, truth: int) -> dict[str, Fraction]:
    """T for a set that holds the truth, L for one that does not, over their sum."""
    sets = list(combinations(range(channel.k), channel.d))
    weights = [channel.T if truth in members else channel.L for members in sets]
    codes = (
        str(members[0]) if channel.d == 1 else pack_bits(members, channel.k) for members in sets
    )
    return {code: Fraction(w, sum(weights)) for code, w in zip(codes, weights, strict=True)}


def draws_below(channel: AnyChannel) -> list[int]:
    """The n of every draw below n that one perturbation makes, in order."""
    match channel:
        case WeightTable():
            return [channel.total]
        case BitVector():
            picks = range(channel.sampled) if channel.is_sampled else ()
            return [*(channel.m - i for i in picks), *[channel.T + channel.L] * channel.sampled]
        case SubsetSelection():
            others = range(channel.d) if channel.d > 1 else ()
            return [*(channel.k - 1 - i for i in others), channel.total]


def sequences(channel: AnyChannel) -> int:
    """Number of different sequences of draws that one perturbation can take."""
    return math.prod(draws_below(channel))


def number_of_reports(channel: AnyChannel) -> int:
    """How many different codes there are."""
    match channel:
        case WeightTable():
            return channel.reports
        case BitVector():
            return math.comb(channel.m, channel.sampled) * (1 << channel.sampled)
        case SubsetSelection():
            return math.comb(channel.k, channel.d)


def work(channel: AnyChannel) -> int:
    """Time of one perturbation by the client, in that of one generalized randomized response."""
    match channel:
        case WeightTable():
            # Beside a row of no answer, whichever is reported, stands one of every other kind.
            return 20 + (3 * channel.reports // 4 if channel.no_answers else channel.reports // 3)
        case BitVector():
            return 10 + channel.bits
        case SubsetSelection():
            return 1 if channel.d == 1 else 10 + 2 * channel.k


def shown(channel: AnyChannel) -> str:
    """Kind and integers in one line."""
    if isinstance(channel, WeightTable):
        extra = f", {channel.no_answers} no answers" if channel.no_answers else ""
        size = f"{channel.truths} x {channel.reports}"
        return f"weight_table {channel.shape.name} {size}, total {channel.total:,}{extra}"
    form = channel.to_json()
    integers = ", ".join(f"{name}={value}" for name, value in form.items() if name != "kind")
    return f"{form['kind']} {integers}"


ENUMERATED = 30_000_000
"""Most units of `work` for all sequences of draws, over all truths, of one channel."""

TURN = 5
"""What trying one sequence costs beside the perturbation itself."""

CELLS = 200_000
"""Most entries of an exact table, truths by reports, that is compared."""


def fits(channel: AnyChannel) -> bool:
    """Whether every sequence of draws of every truth can be run."""
    truths = channel.truths
    effort = sequences(channel) * truths * (TURN + work(channel))
    return effort <= ENUMERATED and number_of_reports(channel) * truths <= CELLS


def sibling(channel: AnyChannel) -> AnyChannel:
    """The channel, where possible, with few options and weights of 3 and 1."""
    match channel:
        case BitVector():
            return smaller_bits(channel, min(channel.m - channel.alone, 4), 3, sampled=3)
        case SubsetSelection():
            k = min(channel.k, 6)
            return SubsetSelection(k, min(channel.d, k - 1), 3, 1)
        case WeightTable():
            return smaller_table(channel, min(channel.truths - channel.no_answers, 5))


def smaller_bits(channel: BitVector, free: int, T: int, sampled: int) -> BitVector:
    """With `free` ordinary options, as many as before that stand alone.

    Where only some options are reported, at most `sampled` of them.
    """
    m = free + channel.alone
    some = min(channel.sampled, sampled, m - 1) if channel.is_sampled and m > 1 else m
    return BitVector(m, min(channel.s, free), T, 1, channel.alone, some)


def smaller_table(channel: WeightTable, truths: int) -> WeightTable:
    """Of the same shape with `truths` rows; truths that are no answer stay."""
    return WeightTable(_smaller_shape(channel.shape, truths), channel.no_answers)


def _smaller_shape(shape: Shape, truths: int) -> Shape:
    match shape:
        case Mixture():
            parts = [_smaller_part(part, truths) for part in (shape.first, shape.second)]
            return Mixture(2, parts[0], 1, parts[1])
        case Window() | OneBit():
            return _smaller_part(shape, truths)
        case ByDistance():
            # Squares, so that no weight is the sum of others and a slip cannot cancel.
            return ByDistance(tuple((truths - z) ** 2 for z in range(truths)))
        case Explicit():
            return _peaks(truths, min(len(shape.table[0]), truths))
    raise TypeError(f"no sibling for the shape {shape.name}")


def _smaller_part(part: Window | OneBit, truths: int) -> Window | OneBit:
    if isinstance(part, OneBit):
        return OneBit(truths - 1, 3, 1)
    return Window(truths, min(part.width, 3), min(part.stride, 2), 3, 1)


def _peaks(truths: int, reports: int) -> Explicit:
    """Weights 1, 2, ..., moved on by one report in each row: all rows have the same sum."""
    return Explicit(
        tuple(tuple(1 + (j - i) % reports for j in range(reports)) for i in range(truths))
    )
