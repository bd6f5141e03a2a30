"""Channels of the same kind, run by the same code, with so small integers that all draws fit."""

from __future__ import annotations

from survey.audit.exact import number_of_reports, sequences, work
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable
from survey.mechanism.weight_table import ByDistance, Explicit, Mixture, OneBit, Shape, Window

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
