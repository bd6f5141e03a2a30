"""What a channel promises, report by report, as exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

from survey.mechanism import BitVector, SubsetSelection, WeightTable
from survey.mechanism.bits import pack_bits

AnyChannel = SubsetSelection | BitVector | WeightTable
Truth = int | tuple[int, ...]


def truths_of(channel: AnyChannel) -> list[Truth]:
    """Every true answer that the channel takes."""
    match channel:
        case SubsetSelection():
            return list(range(channel.k))
        case WeightTable():
            return list(range(channel.truths))
        case BitVector():
            return [ticks for ticks in product((0, 1), repeat=channel.m) if sum(ticks) <= channel.s]


def distribution(channel: AnyChannel, truth: Truth) -> dict[str, Fraction]:
    """P(report | truth) for every report, keyed by its code as text."""
    match channel:
        case WeightTable():
            assert isinstance(truth, int)  # noqa: S101  narrows the type; see `truths_of`
            row = channel.weights[truth]
            return {str(j): Fraction(int(weight), channel.total) for j, weight in enumerate(row)}
        case BitVector():
            assert isinstance(truth, tuple)  # noqa: S101
            return {
                pack_bits([i for i, bit in enumerate(bits) if bit], channel.m): math.prod(
                    (
                        channel.exact_p if bit == tick else channel.exact_q
                        for bit, tick in zip(bits, truth, strict=True)
                    ),
                    start=Fraction(1),
                )
                for bits in product((0, 1), repeat=channel.m)
            }
        case SubsetSelection():
            return _of_sets(channel, truth)


def _of_sets(channel: SubsetSelection, truth: Truth) -> dict[str, Fraction]:
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
            return [channel.T + channel.L] * channel.m
        case SubsetSelection():
            others = range(channel.d) if channel.d > 1 else ()
            return [*(channel.k - 1 - i for i in others), channel.total]


def sequences(channel: AnyChannel) -> int:
    """Number of different sequences of draws that one perturbation can take."""
    return math.prod(draws_below(channel))
