"""Exact coverage and width of an interval, over all outcomes and true shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from survey.estimator.core.intervals import confidence_interval
from survey.mechanism import Channel

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ends:
    """Intervals for pi of all outcomes 0..n of one option."""

    low: Floats
    high: Floats
    n: int
    channel: Channel

    @property
    def width(self) -> Floats:
        return self.high - self.low


def all_ends(n: int, channel: Channel, interval: str, level: float = 0.95) -> Ends:
    low, high = confidence_interval(np.arange(n + 1), n, channel, level, interval)
    return Ends(low, high, n, channel)


def exact_coverage(ends: Ends) -> Floats:
    """Return the coverage on both sides of every end; they include the minimum over [0, 1].

    Between two neighboring ends the outcomes that cover are fixed, c_first..c_last, and
    P(c_first <= C <= c_last) has no minimum inside: it rises at most once and then falls.
    """
    order = 1 if ends.channel.p > ends.channel.q else -1
    low, high = ends.low[::order], ends.high[::order]
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) >= 0)
    edge = np.unique(np.concatenate([low, high, [0.0, 1.0]]))
    middle = (edge[1:] + edge[:-1]) / 2
    first = np.searchsorted(high, middle, side="left")
    last = np.searchsorted(low, middle, side="right") - 1
    if order < 0:
        first, last = ends.n - last, ends.n - first
    share = ends.channel.q + (ends.channel.p - ends.channel.q) * edge
    return np.concatenate(
        [
            binom.cdf(last, ends.n, at) - binom.cdf(first - 1, ends.n, at)
            for at in (share[:-1], share[1:])
        ]
    )


def mean_width(ends: Ends, shares: Floats) -> float:
    """Return the expected width, averaged over true shares."""
    reported = ends.channel.q + (ends.channel.p - ends.channel.q) * shares
    outcomes = np.arange(ends.n + 1)
    return float(np.mean(binom.pmf(outcomes[:, None], ends.n, reported).T @ ends.width))
