"""Pseudo-values of many sets of values at once: their means are the shares of the sets.

What `pseudo_values` does for one target, for many with the same few matrix products; a grid of a
thousand points is read in seconds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from survey.estimator.pseudo_values import (
    EXACT,
    MOST_BIAS,
    RIDGES,
    TWO_ERRORS,
    WORTH,
    _factors,
    pseudo_values,
)
from survey.mechanism import SubsetSelection, WeightTable

Floats = NDArray[np.float64]


def set_values(
    channel: SubsetSelection | WeightTable, targets: Floats, n: int
) -> tuple[Floats, Floats]:
    """Pseudo-values of every target, shape (sets, reports), and their largest biases, (sets,).

    `targets` has shape (sets, truths), values in [-1, 1]. Of the ridge solutions (see
    `pseudo_values`) each set takes the exact one, unless one with little bias has an interval
    narrower by more than a tenth with that bias included.

    >>> from survey.mechanism import grr
    >>> set_values(grr(2, "3/4"), np.array([[1.0, -1.0]]), 100)
    (array([[ 2., -2.]]), array([0.]))
    """
    if isinstance(channel, SubsetSelection):
        exact = np.array([pseudo_values(channel, target, n).values for target in targets])
        return exact, np.zeros(len(targets))
    U, s, V, root = _factors(channel)
    kept = s > s[0] * np.finfo(np.float64).eps * max(len(U), len(root))
    ridges = np.array(RIDGES)[:, None]
    # h = V diag(shrunk/s) U'x / root, shrunk = s^2/(s^2 + ridge s_0^2)
    shrunk = np.where(kept, s**2 / (s**2 + ridges * s[0] ** 2), 0.0)
    wanted = U.T @ targets.T
    inverse = np.divide(1.0, s, out=np.zeros_like(s), where=kept)
    chosen = shrunk[_chosen(U, shrunk, wanted, inverse, targets, n)].T
    values = V @ (chosen * wanted * inverse[:, None]) / root[:, None]
    bias = np.abs(channel.matrix @ values - targets.T).max(axis=0)
    return values.T, np.where(bias > EXACT, bias, 0.0)


def _chosen(
    U: Floats, shrunk: Floats, wanted: Floats, inverse: Floats, targets: Floats, n: int
) -> NDArray[np.intp]:
    """The place of each set's ridge: shortest 2 sqrt(E h^2/n) + bias, the exact one if near it."""
    bias = np.array([np.abs(U @ (one[:, None] * wanted) - targets.T).max(axis=0) for one in shrunk])
    spread = np.sqrt((shrunk * inverse) ** 2 @ wanted**2)
    half = TWO_ERRORS * spread / math.sqrt(n) + bias
    allowed = np.where(bias <= np.maximum(bias[0], MOST_BIAS), half, np.inf)
    best = allowed.argmin(axis=0)
    near = half[0] <= WORTH * allowed.min(axis=0)
    return np.where(near, 0, best)
