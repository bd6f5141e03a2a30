"""Joint tables along their axes: linear inverses, and the most likely table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from survey.errors import ChannelError, CountsError
from survey.estimator.core.intervals import SecondMoment
from survey.estimator.core.likelihood import (
    GOAL,
    LARGEST_WORK,
    MAX_ROUNDS,
    TOLERANCE,
    extrapolated,
    require_two_options,
)
from survey.estimator.core.pseudo_values import left_inverse
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.arrays import Floats, Integers

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


LARGEST_JOINT = 10**6
"""Cells of truths above which it is refused."""

SWEEP = 6
"""Going over a table without a product of matrices takes the time of so many weights a cell."""


def most_likely_table(counts: Integers, channels: Sequence[Crossed]) -> tuple[Floats, float, bool]:
    """Joint shares that maximize sum c log lambda, the duality gap, and whether that is small.

    lambda = P through every channel along its own axis. One step (iterative Bayesian update) is
    P <- P D, D = the channels' matrices applied backwards to f/lambda; pairs of steps are
    extrapolated as in `most_likely_mixture`, and the same proof of the end holds:
    log L(best) - log L(P) <= n (max D - 1). It searches until that gap is 1e-8 per report and
    has converged when it is at most 1e-6. Where channels have no inverse the maximum may have
    several places; this is one.
    Raises ChannelError for reports of sets, CountsError above 10^6 cells.
    Sources: Agrawal and Aggarwal 2001; Varadhan and Roland 2008.
    """
    for channel in channels:
        if isinstance(channel, SubsetSelection):
            require_two_options(channel)
            if channel.d > 1:
                raise ChannelError(
                    f"d = {channel.d}: counts per option do not determine the likelihood of "
                    'reported sets; use method="linear"'
                )
    shape = tuple(_truths(channel) for channel in channels)
    cells = math.prod(shape)
    if cells > LARGEST_JOINT:
        raise CountsError(
            f"a table of {cells:,} cells is above {LARGEST_JOINT:,}: the most likely one would "
            'take hours; use method="linear" or cross fewer questions'
        )
    f = counts / counts.sum()
    P = np.full(shape, 1 / cells)
    gap = math.inf
    for _ in range(min(MAX_ROUNDS, LARGEST_WORK // (6 * _weights(channels, cells)) + 1)):
        once, gap, _ = _step(P, f, channels)
        if gap <= GOAL:
            break
        twice, _, level = _step(once, f, channels)
        further = extrapolated(P, once, twice)
        # A step from `further` is compared with the one from `once`.
        ahead, _, reached = _step(further, f, channels)
        P = ahead if reached >= level else twice
    return P, max(gap, 0.0), gap <= TOLERANCE


def _step(P: Floats, f: Floats, channels: Sequence[Crossed]) -> tuple[Floats, float, float]:
    """The next table, the duality gap and the log likelihood per report, both at P."""
    shares = reported(P, channels)
    # Reports that never came have f = 0 and add nothing.
    gradient = _backwards(f / shares, channels)
    following = P * gradient
    return (
        following / following.sum(),
        float(gradient.max()) - 1,
        float(np.sum(f * np.log(shares))),
    )


def reported(P: Floats, channels: Sequence[Crossed]) -> Floats:
    """Joint shares of reports, lambda, from joint shares of truths, shape (k1, k2, ...).

    >>> from survey.mechanism import grr
    >>> reported(np.array([[1.0, 0], [0, 0]]), [grr(2, "3/4"), grr(2, "3/4")]).tolist()
    [[0.5625, 0.1875], [0.1875, 0.0625]]
    """
    for channel in channels:
        P = _through(P, channel, 0)
    return P


def _backwards(table: Floats, channels: Sequence[Crossed]) -> Floats:
    for channel in channels:
        table = _through(table, channel, 1)
    return table


def _through(table: Floats, channel: Crossed, contracted: int) -> Floats:
    """The first axis through the channel's matrix, moved to the end."""
    if isinstance(channel, SubsetSelection):
        # M = q J + (p - q) I: no product with a matrix.
        mixed = (channel.p - channel.q) * table + channel.q * table.sum(axis=0)
        return np.moveaxis(mixed, 0, -1)
    return np.tensordot(table, channel.matrix, axes=(0, contracted))


def _truths(channel: Crossed) -> int:
    return channel.k if isinstance(channel, SubsetSelection) else channel.truths


def _weights(channels: Sequence[Crossed], cells: int) -> int:
    """Weights looked at when a table goes through all channels, about: time in their unit."""
    return sum(
        SWEEP * cells if isinstance(channel, SubsetSelection) else cells * channel.reports
        for channel in channels
    )
