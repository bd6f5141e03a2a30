"""Wilson's score interval for the mean of pseudo-values, not clipped: what relations are made of.

A pseudo-value g of a report has E[g | truth] = 1 for one truth and 0 for all others, so its mean
x is that truth's share, and Var g = x own + (1-x) other - x^2 with own = E[g^2 | the truth] and
other = the mean of E[g^2 | another truth] over the others as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]

EDGE = 1e-12
"""Shares nearer to 1 than this leave nothing to tell the other truths' second moment from."""

MOST_SKEW = 2.0
"""Skewness never adds more than this to a quantile: beyond it, the expansion means nothing."""


class SecondMoment(NamedTuple):
    """What E[g^2] is at the truth, and the least and largest it is at another; shapes alike."""

    own: Floats
    least: Floats
    most: Floats

    def of_others(self, estimate: Floats, mean_square: Floats) -> Floats:
        """E[g^2] among the other truths: (mean of g^2 - x own)/(1-x), within what it can be.

        Equal to both bounds where all other truths are alike, as for one question by generalized
        randomized response.
        """
        x = np.clip(estimate, 0.0, 1.0)
        rest = np.maximum(1 - x, EDGE)
        return np.asarray(np.clip((mean_square - x * self.own) / rest, self.least, self.most))


def score_ends(
    estimate: Floats,
    n: Floats | int,
    own: Floats,
    other: Floats,
    level: float,
    skewness: Floats | None = None,
    *,
    fixed: bool = False,
) -> tuple[Floats, Floats]:
    """The x with n (est - x)^2 <= z^2 (x own + (1-x) other - x^2), all of one shape.

    `skewness` (of one pseudo-value) moves the end on its side outwards, to the quantile
    z + skew (z^2 - 1)/(6 sqrt n) of Edgeworth's expansion (Hall 1992); the other end stays.
    `fixed` leaves out the sampling, x (1-x), for the share among these n respondents.
    For a binomial share of reports, own = (p (1-q)^2 + (1-p) q^2)/D^2 and other = q(1-q)/D^2,
    this is Wilson's interval of f mapped by (f-q)/D. Never of zero width. Source: Wilson 1927.

    >>> low, high = score_ends(np.array([.3]), 10, np.array([1.]), np.array([0.]), .95)
    >>> low.round(4), high.round(4)
    (array([0.1078]), array([0.6032]))
    """
    z = float(ndtri((1 + level) / 2))
    moved = 0.0 if skewness is None else skewness * (z**2 - 1) / (6 * np.sqrt(n))
    # Var = other + slope x - curve x^2
    slope, curve = (own - other - 1, 0) if fixed else (own - other, 1)
    below, above = (
        (z + np.clip(one, 0.0, MOST_SKEW)) ** 2 for one in (np.asarray(moved), -np.asarray(moved))
    )
    low, _ = _solved(estimate, n, slope, curve, other, below)
    _, high = _solved(estimate, n, slope, curve, other, above)
    return low, high


def _solved(
    estimate: Floats, n: Floats | int, slope: Floats, curve: int, other: Floats, z2: Floats
) -> tuple[Floats, Floats]:
    # whole x^2 - 2 h x + n est^2 - z^2 other = 0, h = n est + z^2 slope/2
    whole, h = n + curve * z2, n * estimate + z2 * slope / 2
    # h^2 - whole (n est^2 - z^2 other), without the difference of two numbers of size n^2
    variance = np.maximum(other + slope * estimate - curve * estimate**2, 0.0)
    root = np.sqrt(z2 * (n * variance + z2 * (slope**2 / 4 + curve * other)))
    return np.asarray((h - root) / whole), np.asarray((h + root) / whole)
