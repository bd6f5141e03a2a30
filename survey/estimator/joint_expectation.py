"""The most likely table of truths: expectation maximization over the product of questions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError, CountsError
from survey.estimator.axes import Crossed
from survey.estimator.expectation import (
    GOAL,
    LARGEST_WORK,
    MOST_ROUNDS,
    TOLERANCE,
    extrapolated,
)
from survey.estimator.likelihood import require_two_options
from survey.mechanism import SubsetSelection

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
    for _ in range(min(MOST_ROUNDS, LARGEST_WORK // (6 * _weights(channels, cells)) + 1)):
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
