"""Exact coverage and width of an interval for a difference: every outcome of both groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from survey.estimator.tables.difference import _binary_group, difference_interval
from survey.mechanism import SubsetSelection

Floats = NDArray[np.float64]
Channels = tuple[SubsetSelection | None, SubsetSelection | None]
"""What each group's devices ran; None: open answers."""

ROUNDING = 1e-9
"""An end may miss the true difference by rounding."""


@dataclass(frozen=True, eq=False)
class Enumerated:
    """For every pair of true shares, shape (shares, shares), first group along axis 0."""

    coverage: Floats
    width: Floats


def enumerated_difference(
    n: tuple[int, int], channels: Channels, interval: str, shares: Floats
) -> Enumerated:
    """Coverage and mean width at level .95 for every pair of the given true shares."""
    chances = [(1.0, 0.0) if one is None else (one.p, one.q) for one in channels]
    outcomes = [each.ravel() for each in np.indices([size + 1 for size in n])]
    groups = [
        _binary_group(c, np.full(c.size, size), p, q, size)
        for c, size, (p, q) in zip(outcomes, n, chances, strict=True)
    ]
    low, high = (
        each.reshape(n[0] + 1, n[1] + 1)
        for each in difference_interval(groups[0], groups[1], 0.95, interval)
    )
    assert np.all(low < high)
    first, second = (
        np.asarray(binom.pmf(np.arange(size + 1), size, (q + (p - q) * shares)[:, None]))
        for size, (p, q) in zip(n, chances, strict=True)
    )
    coverage = np.empty((shares.size, shares.size))
    for i, x in enumerate(shares):
        for j, y in enumerate(shares):
            covers = (low <= x - y + ROUNDING) & (x - y - ROUNDING <= high)
            coverage[i, j] = first[i] @ covers @ second[j]
    return Enumerated(coverage, first @ (high - low) @ second.T)
