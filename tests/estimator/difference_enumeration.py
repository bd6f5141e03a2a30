"""Exact coverage and width of intervals for differences, over all outcomes of both groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from survey.estimator.tables.difference import _binary_group, difference_interval
from survey.mechanism import SubsetSelection

Floats = NDArray[np.float64]
Channels = tuple[SubsetSelection | None, SubsetSelection | None]
"""The channel of each group; None for answers without randomization."""

ROUNDING = 1e-9
"""Tolerance for rounding in the end points of an interval."""


@dataclass(frozen=True, eq=False)
class Enumerated:
    """Coverage and width for every pair of true shares; the first group is along axis 0."""

    coverage: Floats
    width: Floats


def enumerated_difference(
    n: tuple[int, int], channels: Channels, interval: str, shares: Floats
) -> Enumerated:
    """Return coverage and mean width at level .95 for every pair of true shares."""
    chances = [(1.0, 0.0) if channel is None else (channel.p, channel.q) for channel in channels]
    outcomes = [axis.ravel() for axis in np.indices([size + 1 for size in n])]
    groups = [
        _binary_group(c, np.full(c.size, size), p, q, size)
        for c, size, (p, q) in zip(outcomes, n, chances, strict=True)
    ]
    low, high = (
        end.reshape(n[0] + 1, n[1] + 1)
        for end in difference_interval(groups[0], groups[1], 0.95, interval)
    )
    assert np.all(low < high)
    first, second = (
        np.asarray(binom.pmf(np.arange(size + 1), size, (q + (p - q) * shares)[:, None]))
        for size, (p, q) in zip(n, chances, strict=True)
    )
    coverage = np.empty((shares.size, shares.size))
    # Pairs with the same difference are covered by the same outcomes.
    differences = np.round(shares[:, None] - shares, 9)
    for d in np.unique(differences):
        covers = (low <= d + ROUNDING) & (d - ROUNDING <= high)
        rows, columns = np.nonzero(differences == d)
        coverage[rows, columns] = ((first[rows] @ covers) * second[columns]).sum(axis=1)
    return Enumerated(coverage, first @ (high - low) @ second.T)
