"""How little the pseudo-values of reports can scatter, if people's mean is a given number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survey.estimator.pseudo_values import expected
from survey.mechanism import SubsetSelection, WeightTable

Floats = NDArray[np.float64]

RATIOS = -np.cos(np.linspace(0, np.pi, 65))
"""Ratios at which the least scatter is computed, denser near the ends; linear between them."""


@dataclass(frozen=True, eq=False)
class LeastScatter:
    """The least Var(a - r b) that randomization gives if those who answered have the mean r.

    Var(a - r b) = sum pi_i w_i(r), w_i(r) = E[(a - r b)^2 | i]. Among people who answered with
    mean r it is at least the lower convex hull of the points (x_i, w_i(r)) at r, `answering`;
    among the others at least their smallest w_i, `silent`; both at each of `RATIOS`, the last
    axis.
    """

    answering: Floats
    silent: Floats

    def among(self, answered: Floats) -> Floats:
        """The two weighted by shares of people who answered, clipped to [0, 1].

        Of shape (shares, 65), or (sets, shares, 65) for the scatter of several sets.
        """
        share = np.clip(answered, 0.0, 1.0)[:, None]
        answering, silent = self.answering[..., None, :], self.silent[..., None, :]
        return np.maximum(share * answering + (1 - share) * silent, 0.0)


def least_scatter(
    channel: SubsetSelection | WeightTable,
    target: Floats,
    answered: NDArray[np.bool_],
    a: Floats,
    b: Floats,
) -> LeastScatter:
    """The least scatter of pseudo-values a, for the target in [-1, 1], and b, for `answered`."""
    aa, ab, bb = (expected(channel, g) for g in (a**2, a * b, b**2))
    r = RATIOS[:, None]
    w = aa - 2 * r * ab + r**2 * bb
    others = w[:, ~answered].min(axis=1) if not answered.all() else np.zeros(RATIOS.shape)
    order = np.flatnonzero(answered)[np.argsort(target[answered], kind="stable")]
    # Of truths of the same value only the one of least scatter can carry the hull.
    x, first = np.unique(target[order], return_index=True)
    y = np.minimum.reduceat(w[:, order], first, axis=1)
    return LeastScatter(lower_hulls(x, y), others)


def lower_hulls(x: Floats, y: Floats) -> Floats:
    """The lower convex hull of the points (x, y[i]), x rising, at the ratio i; shape (65,)."""
    if x.tolist() == [-1.0, 1.0]:
        # An indicator's two values: the hull is the line between them.
        return np.asarray(((1 - RATIOS) * y[:, 0] + (1 + RATIOS) * y[:, 1]) / 2)
    return np.array([lower_hull(x, row, r) for row, r in zip(y, RATIOS.tolist(), strict=True)])


def lower_hull(x: Floats, y: Floats, at: float) -> float:
    """The lower convex hull of the points (x, y), x rising, at one place between them.

    Starting from the lowest point on the left, the two that carry the hull are found in turns:
    for one on the left, the right one whose line is lowest here; for that one, the left one.
    """
    on = x == at
    best = float(y[on].min()) if on.any() else np.inf
    left, right = x < at, x > at
    if not left.any() or not right.any():
        return best
    xl, yl, xr, yr = x[left], y[left], x[right], y[right]
    i, lowest = int(np.argmin(yl)), np.inf
    while True:
        j = int(np.argmin(yl[i] + (yr - yl[i]) * (at - xl[i]) / (xr - xl[i])))
        values = yl + (yr[j] - yl) * (at - xl) / (xr[j] - xl)
        i = int(np.argmin(values))
        if not values[i] < lowest:
            return min(best, lowest)
        lowest = float(values[i])
