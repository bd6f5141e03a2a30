"""The interval of a ratio of two means, for a ratio known to lie in [-1, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from survey.estimator.scatter import RATIOS

Floats = NDArray[np.float64]

HALVINGS = 40


class Moments(NamedTuple):
    """Means of a and b over n reports, and their sample variances and covariance."""

    mean_a: float
    mean_b: float
    aa: float
    ab: float
    bb: float

    def scatter(self, ratio: float) -> float:
        """The sample variance of a - ratio b."""
        return max(self.aa - 2 * ratio * self.ab + ratio**2 * self.bb, 0.0)


class Ratio(NamedTuple):
    """An estimated ratio; the ends lie in [-1, 1], the estimate may not."""

    estimate: float
    std_error: float
    low: float
    high: float


def ratio_interval(moments: Moments, floor: Floats, bias: float, n: int, level: float) -> Ratio:
    """mean a / mean b with Fieller's interval, Student's when b = 1 throughout.

    All r with |A - r B| <= bias + t sqrt(max(Var(a - r b), floor(r))/n), as a hull. `floor` is
    the least variance that randomization gives if the ratio is one of `RATIOS`, `bias` bounds
    |E a - r E b| at the true r. For the interval A is clipped to [-B, B], which only adds to it:
    it always has a width. It is all of [-1, 1] where B is not clearly above 0. Source: Fieller
    1954; the floor makes the inner end of one bit's interval Wilson's (1927).

    >>> round(ratio_interval(Moments(.5, 1., 4., 0., 0.), np.ones(65), 0., 400, 0.95).low, 3)
    0.303
    """
    A, B = moments.mean_a, moments.mean_b
    if B <= 0 or n < 2:
        return Ratio(A / B if B > 0 else math.nan, math.inf, -1.0, 1.0)
    estimate = A / B
    inside = min(max(estimate, -1.0), 1.0)
    std_error = (
        math.sqrt(max(moments.scatter(estimate), float(np.interp(inside, RATIOS, floor))) / n) / B
    )
    t = float(stdtrit(n - 1, (1 + level) / 2))

    def least(r: float) -> float:
        return float(np.interp(r, RATIOS, floor))

    def rejected(r: float) -> bool:
        return B * abs(inside - r) > bias + t * math.sqrt(least(r) / n)

    ends = [_end(B * inside + side * bias, side, moments, t**2 / n) for side in (-1, 1)]
    return Ratio(
        estimate,
        std_error,
        max(min(ends[0], _last_accepted(inside, -1.0, rejected)), -1.0),
        min(max(ends[1], _last_accepted(inside, 1.0, rejected)), 1.0),
    )


def _end(A: float, side: int, moments: Moments, t2: float) -> float:
    """The end on one side of the r with (A - r B)^2 <= t2 Var(a - r b), a quadratic in r."""
    square = moments.mean_b**2 - t2 * moments.bb
    if square <= 0:
        return float(side)
    half = A * moments.mean_b - t2 * moments.ab
    rest = A**2 - t2 * moments.aa
    return (half + side * math.sqrt(max(half**2 - square * rest, 0.0))) / square


def _last_accepted(start: float, end: float, rejected: Callable[[float], bool]) -> float:
    """Where, on the way from an accepted start to the end, values begin to be rejected."""
    if not rejected(end):
        return end
    accepted, beyond = start, end
    for _ in range(HALVINGS):
        middle = (accepted + beyond) / 2
        if rejected(middle):
            beyond = middle
        else:
            accepted = middle
    return beyond
