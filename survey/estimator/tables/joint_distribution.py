"""Joint distributions of several answers: linear inverses along each axis, and the EM table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from survey.errors import ChannelError, CountsError
from survey.estimator.core.debiasing import left_inverse
from survey.estimator.core.intervals import MomentRange
from survey.estimator.core.maximum_likelihood import (
    GOAL,
    MAX_ROUNDS,
    MAX_WORK,
    TOLERANCE,
    extrapolated,
    require_two_options,
)
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.channel import Floats, Integers

CrosstabChannel = SubsetSelection | WeightTable
"""Channels of the questions that a cross-tab accepts."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Linear maps from counts along an axis to means, and second moments by truth.

    means        shape (truths, counts): sum over reports of g_a, per truth a
    squares      shape (truths, counts): sum over reports of g_a^2
    cubes        shape (truths, counts): sum over reports of g_a^3
    by_truth     shape (truths, truths): E[g_a^2 | truth i], row a, column i
    per_report   how much one report adds to the counts: d for sets of d options, otherwise 1
    """

    means: Floats
    squares: Floats
    cubes: Floats
    by_truth: Floats
    per_report: int


def axis(channel: CrosstabChannel) -> Axis:
    """Return the linear maps of this channel; ChannelError if its table has no inverse."""
    if isinstance(channel, WeightTable):
        G = left_inverse(channel)
        return Axis(G, G**2, G**3, G**2 @ channel.matrix.T, 1)
    require_two_options(channel)
    k, d, p, q = channel.k, channel.d, channel.p, channel.q
    D = p - q
    # g_a = (s_a - q)/D with s_a = 1 if the set contains a; 1 = sum_a s_a / d.
    means = (np.eye(k) - q / d) / D
    # g_a^m = (s_a ((1-q)^m - (-q)^m) + (-q)^m)/D^m, because s_a is 0 or 1.
    squares, cubes = (
        (((1 - q) ** m - (-q) ** m) * np.eye(k) + (-q) ** m / d) / D**m for m in (2, 3)
    )
    by_truth = np.full((k, k), q * (1 - q) / D**2)
    np.fill_diagonal(by_truth, (p * (1 - q) ** 2 + (1 - p) * q**2) / D**2)
    return Axis(means, squares, cubes, by_truth, d)


def count_size(channel: CrosstabChannel) -> int:
    """Return the length of the question's axis in a table of joint counts; check the channel."""
    if not isinstance(channel, SubsetSelection | WeightTable):
        raise ChannelError(
            f"a {getattr(channel, 'kind', type(channel).__name__)} question cannot be in a "
            "cross-tab, because its reports are not single codes"
        )
    return channel.counted


def along(table: Floats, maps: Sequence[Floats]) -> Floats:
    """Apply maps[0] along axis 0, maps[1] along axis 1, and so on.

    >>> along(np.ones((2, 3)), [np.ones((1, 2)), np.eye(3)]).tolist()
    [[2.0, 2.0, 2.0]]
    """
    for matrix in maps:
        # The first axis becomes the last one, so that all maps together restore the order.
        table = np.tensordot(table, matrix, axes=(0, 1))
    return table


def product_moment(axes: Sequence[Axis]) -> MomentRange:
    """Return E[(g_a h_b ...)^2] at the cell's own truth, and its range at the other truths.

    It is the product of the questions' E[g_a^2 | i], all positive. So the extremes over all other
    truths come from each question's own truth, and the minimum and maximum of its other truths.
    """
    at_truth = [np.diagonal(question.by_truth) for question in axes]
    minima = [_without_diagonal(question.by_truth, np.inf).min(axis=1) for question in axes]
    maxima = [_without_diagonal(question.by_truth, 0.0).max(axis=1) for question in axes]
    return MomentRange(
        _outer(at_truth),
        _extreme(at_truth, minima, np.minimum),
        _extreme(at_truth, maxima, np.maximum),
    )


def _without_diagonal(by_truth: Floats, instead: float) -> Floats:
    moments = by_truth.copy()
    np.fill_diagonal(moments, instead)
    return moments


def _extreme(at_truth: list[Floats], elsewhere: list[Floats], choose: np.ufunc) -> Floats:
    """Return the extreme product with at least one factor from `elsewhere`."""
    extremes = [choose(a, b) for a, b in zip(at_truth, elsewhere, strict=True)]
    with_one = [
        _outer([*extremes[:place], elsewhere[place], *extremes[place + 1 :]])
        for place in range(len(at_truth))
    ]
    return np.asarray(reduce(choose, with_one))


def _outer(factors: Sequence[Floats]) -> Floats:
    return np.asarray(reduce(np.multiply.outer, factors))


MAX_CELLS = 10**6
"""Maximum number of cells of the most likely table."""

SWEEP = 6
"""Time of a pass over a table without a matrix product, in weights per cell."""


def most_likely_table(
    counts: Integers, channels: Sequence[CrosstabChannel]
) -> tuple[Floats, float, bool]:
    """Return the joint shares that maximize sum c log lambda, the duality gap, and convergence.

    lambda = P through every channel along its own axis. One step (iterative Bayesian update) is
    P <- P D, D = the channels' matrices applied backwards to f/lambda. Pairs of steps are
    extrapolated, and by duality log L(best) - log L(P) <= n (max D - 1), as in
    `most_likely_mixture`. The search ends at a gap of 1e-8 per report, and has converged if the gap
    is at most 1e-6. If channels have no inverse, several maxima may exist; this is one of them.
    Raises ChannelError for reports of sets, CountsError above 10^6 cells. Sources: Agrawal and
    Aggarwal 2001; Varadhan and Roland 2008.
    """
    for channel in channels:
        if isinstance(channel, SubsetSelection):
            require_two_options(channel)
            if channel.d > 1:
                raise ChannelError(
                    f"d = {channel.d}: counts per option do not determine the likelihood of "
                    'reported sets; use method="linear"'
                )
    shape = tuple(channel.truths for channel in channels)
    cells = math.prod(shape)
    if cells > MAX_CELLS:
        raise CountsError(
            f"a table of {cells:,} cells is above the maximum of {MAX_CELLS:,} for the most "
            'likely table; use method="linear" or fewer questions'
        )
    f = counts / counts.sum()
    P = np.full(shape, 1 / cells)
    gap = math.inf
    for _ in range(min(MAX_ROUNDS, MAX_WORK // (6 * _weights(channels, cells)) + 1)):
        once, gap, _ = _step(P, f, channels)
        if gap <= GOAL:
            break
        twice, _, likelihood = _step(once, f, channels)
        further = extrapolated(P, once, twice)
        # Compare the step from `further` with the step from `once`.
        ahead, _, ahead_likelihood = _step(further, f, channels)
        P = ahead if ahead_likelihood >= likelihood else twice
    return P, max(gap, 0.0), gap <= TOLERANCE


def _step(P: Floats, f: Floats, channels: Sequence[CrosstabChannel]) -> tuple[Floats, float, float]:
    """Return the next table, and the duality gap and the log likelihood per report at P."""
    shares = report_shares(P, channels)
    # Reports that never occurred have f = 0 and add nothing.
    gradient = _backwards(f / shares, channels)
    following = P * gradient
    return (
        following / following.sum(),
        float(gradient.max()) - 1,
        float(np.sum(f * np.log(shares))),
    )


def report_shares(P: Floats, channels: Sequence[CrosstabChannel]) -> Floats:
    """Return joint shares of reports, lambda, from joint shares of truths, shape (k1, k2, ...).

    >>> from survey.mechanism import grr
    >>> report_shares(np.array([[1.0, 0], [0, 0]]), [grr(2, "3/4"), grr(2, "3/4")]).tolist()
    [[0.5625, 0.1875], [0.1875, 0.0625]]
    """
    for channel in channels:
        P = _through(P, channel, 0)
    return P


def _backwards(table: Floats, channels: Sequence[CrosstabChannel]) -> Floats:
    for channel in channels:
        table = _through(table, channel, 1)
    return table


def _through(table: Floats, channel: CrosstabChannel, contracted: int) -> Floats:
    """Apply the channel's matrix along the first axis, and move that axis to the end."""
    if isinstance(channel, SubsetSelection):
        # M = q J + (p - q) I needs no matrix product.
        mixed = (channel.p - channel.q) * table + channel.q * table.sum(axis=0)
        return np.moveaxis(mixed, 0, -1)
    return np.tensordot(table, channel.matrix, axes=(0, contracted))


def _weights(channels: Sequence[CrosstabChannel], cells: int) -> int:
    """Return about how many weights all channels apply to a table, as a unit of time."""
    return sum(
        SWEEP * cells if isinstance(channel, SubsetSelection) else cells * channel.reports
        for channel in channels
    )
