"""How each question's reports are read along its axis of a table of joint counts.

Every report of question A gets a number g_a for each truth a with E[g_a | truth i] = [i = a].
A table's cell is read by the product g_a h_b ... of its questions, because devices randomize
questions independently given the truths. Means of products are linear in the joint counts, so a
table is read one axis at a time, never by a Kronecker product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.estimator.likelihood import require_two_options
from survey.estimator.pseudo_values import left_inverse
from survey.estimator.score import SecondMoment
from survey.mechanism import SubsetSelection, WeightTable

Floats = NDArray[np.float64]
Crossed = SubsetSelection | WeightTable
"""Channels whose questions can be crossed."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Linear maps from counts along an axis to means, and second moments by truth.

    means        shape (truths, counted): sum over reports of g_a, per truth a
    squares      shape (truths, counted): sum over reports of g_a^2
    cubes        shape (truths, counted): sum over reports of g_a^3
    by_truth     shape (truths, truths): E[g_a^2 | truth i], row a, column i
    each         how much one report adds to the counts: d for sets of d options, else 1
    """

    means: Floats
    squares: Floats
    cubes: Floats
    by_truth: Floats
    each: int


def axis(channel: Crossed) -> Axis:
    """How reports of this channel are read; ChannelError where its table has no inverse."""
    if isinstance(channel, WeightTable):
        G = left_inverse(channel)
        return Axis(G, G**2, G**3, G**2 @ channel.matrix.T, 1)
    require_two_options(channel)
    k, d, p, q = channel.k, channel.d, channel.p, channel.q
    D = p - q
    # g_a = (s_a - q)/D with s_a = 1 if the set holds a; 1 = sum_a s_a / d.
    means = (np.eye(k) - q / d) / D
    # g_a^m = (s_a ((1-q)^m - (-q)^m) + (-q)^m)/D^m, because s_a is 0 or 1.
    squares, cubes = (
        (((1 - q) ** m - (-q) ** m) * np.eye(k) + (-q) ** m / d) / D**m for m in (2, 3)
    )
    by_truth = np.full((k, k), q * (1 - q) / D**2)
    np.fill_diagonal(by_truth, (p * (1 - q) ** 2 + (1 - p) * q**2) / D**2)
    return Axis(means, squares, cubes, by_truth, d)


def counted(channel: Crossed) -> int:
    """Length of the question's axis in a table of joint counts; refuses other channels."""
    if not isinstance(channel, SubsetSelection | WeightTable):
        raise ChannelError(
            f"a {getattr(channel, 'kind', type(channel).__name__)} question cannot be crossed: "
            "its reports are not one of a list"
        )
    return channel.counted


def along(table: Floats, maps: Sequence[Floats]) -> Floats:
    """Apply maps[0] along axis 0, maps[1] along axis 1, and so on.

    >>> along(np.ones((2, 3)), [np.ones((1, 2)), np.eye(3)]).tolist()
    [[2.0, 2.0, 2.0]]
    """
    for each in maps:
        # The axis that was first becomes the last, so after all of them the order is the old one.
        table = np.tensordot(table, each, axes=(0, 1))
    return table


def product_moment(axes: Sequence[Axis]) -> SecondMoment:
    """E[(g_a h_b ...)^2] at the cell's own truth, and the least and largest at another.

    It is the product of the questions' E[g_a^2 | i], all positive, so the extremes over all other
    truths come from each question's own, and from its least and largest other.
    """
    own = [np.diagonal(each.by_truth) for each in axes]
    least = [_other(each.by_truth, np.inf).min(axis=1) for each in axes]
    most = [_other(each.by_truth, 0.0).max(axis=1) for each in axes]
    return SecondMoment(
        _outer(own),
        _extreme(own, least, np.minimum),
        _extreme(own, most, np.maximum),
    )


def _other(by_truth: Floats, instead: float) -> Floats:
    changed = by_truth.copy()
    np.fill_diagonal(changed, instead)
    return changed


def _extreme(own: list[Floats], other: list[Floats], choose: np.ufunc) -> Floats:
    """The extreme product with at least one factor taken from `other`."""
    either = [choose(a, b) for a, b in zip(own, other, strict=True)]
    with_one = [
        _outer([*either[:place], other[place], *either[place + 1 :]]) for place in range(len(own))
    ]
    return np.asarray(reduce(choose, with_one))


def _outer(factors: Sequence[Floats]) -> Floats:
    return np.asarray(reduce(np.multiply.outer, factors))
