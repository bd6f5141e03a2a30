"""The interval of a ratio of two means, for a ratio known to lie in [-1, 1]; many at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from survey.estimator.scatter import RATIOS

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

WIDTH = 2.0**-24
"""The bracket of an end is at last twice this wide."""

PARTS = 32
"""Into so many a bracket is cut at a time when there are few, into two when there are many."""

FEW = 8


class Moments(NamedTuple):
    """Means of a and b over n reports, and their sample variances and covariance; of one shape."""

    mean_a: Floats
    mean_b: Floats
    aa: Floats
    ab: Floats
    bb: Floats

    def scatter(self, ratio: Floats) -> Floats:
        """The sample variance of a - ratio b."""
        return np.maximum(self.aa - 2 * ratio * self.ab + ratio**2 * self.bb, 0.0)


class Tails(NamedTuple):
    """What makes a mean of a - r b lean to one side.

    aaa ... bbb  third central moments of the reports, of the shape of `Moments`
    least, most  of a - r b over all reports there can be, at each of `RATIOS`, shape (..., 65)
    """

    aaa: Floats
    aab: Floats
    abb: Floats
    bbb: Floats
    least: Floats
    most: Floats

    def third(self, ratio: Floats) -> Floats:
        """The third central moment of a - ratio b."""
        return np.asarray(
            self.aaa - 3 * ratio * self.aab + 3 * ratio**2 * self.abb - ratio**3 * self.bbb
        )


class Ratio(NamedTuple):
    """Estimated ratios, of one shape; the ends lie in [-1, 1], the estimate may not.

    Where hardly anybody is in the denominator (B <= 0) the estimate is nan, the interval [-1, 1],
    which is also that of a single report.
    """

    estimate: Floats
    std_error: Floats
    low: Floats
    high: Floats


def ratio_interval(
    moments: Moments,
    floor: Floats,
    bias: Floats | float,
    n: int,
    level: float,
    tails: Tails | None = None,
) -> Ratio:
    """mean a / mean b with Fieller's interval, Student's when b = 1 throughout.

    All r with |A - r B| <= bias + t(r) sqrt(max(Var(a - r b), floor(r))/n), as a hull. `floor` is
    the least variance that randomization gives if the ratio is one of `RATIOS`, shape (..., 65);
    `bias` bounds |E a - r E b| at the true r. For the interval A is clipped to [-B, B], which only
    adds to it: it always has a width. Source: Fieller 1954; the floor makes the inner end of one
    bit's interval Wilson's (1927).

    t(r) is Student's quantile t. With `tails`, the end on the side to which a - r b leans lies
    further out, as Edgeworth's expansion of Student's ratio says (Johnson 1978; Hall 1992):
    t + skewness (2 t^2 + 1)/(6 sqrt n). The other end is left where it is. Variance and skewness
    are then those of the reports and one more, the most extreme that there can be on that side:
    few reports may hold none of the rare ones that carry both, and seem sure of what they missed.

    >>> moments = Moments(*map(np.array, (.5, 1., 4., 0., 0.)))
    >>> ratio_interval(moments, np.ones(65), 0., 400, 0.95).low.round(3)
    np.float64(0.303)
    """
    A, B = np.asarray(moments.mean_a), np.asarray(moments.mean_b)
    known = B > 0
    divisor = np.where(known, B, 1.0)
    estimate = np.where(known, A / divisor, np.nan)
    inside = np.where(known, np.clip(A / divisor, -1.0, 1.0), 0.0)
    # A single report scatters from no other: its truth may, by 1 at most on [-1, 1].
    seen = moments.scatter(A / divisor) if n > 1 else _at(floor, inside) + 1.0
    variance = np.maximum(seen, _at(floor, inside))
    std_error = np.where(known, np.sqrt(variance / n) / divisor, np.inf)
    t = float(stdtrit(max(n - 1, 1), (1 + level) / 2))

    def rejected(r: Floats, side: int) -> Booleans:
        scatter, quantile = _with_tails(moments, tails, r, side, n, t)
        spread = np.sqrt(np.maximum(scatter, _at(floor, r)) / n)
        return np.asarray(known & (n > 1) & (B * np.abs(inside - r) > bias + quantile * spread))

    low, high = (_last_accepted(inside, side, rejected) for side in (-1, 1))
    return Ratio(estimate, std_error, low, high)


def _with_tails(
    moments: Moments, tails: Tails | None, r: Floats, side: int, n: int, t: float
) -> tuple[Floats, Floats | float]:
    """Variance of a - r b and the quantile, with one more report at distance g of the mean.

    With it the variance is V + g^2/(n+1) and, the mean moving by d = g/(n+1), the third central
    moment (n (K - 3 d V - d^3) + (g - d)^3)/(n+1).
    """
    variance = moments.scatter(r)
    if tails is None:
        return variance, t
    extreme = _at(tails.most if side > 0 else tails.least, r)
    g = np.maximum(side * (extreme - (moments.mean_a - r * moments.mean_b)), 0.0)
    d = g / (n + 1)
    third = n * (side * tails.third(r) - 3 * d * variance - d**3) + (g - d) ** 3
    more = variance + g * d
    # Reports all alike, none more extreme: neither scatter nor skewness.
    scale = np.where(more > 0, more, 1.0) ** 1.5
    skewness = np.maximum(third / (n + 1) / scale, 0.0)
    return more, t + skewness * (2 * t**2 + 1) / (6 * math.sqrt(n))


def _at(table: Floats, r: Floats) -> Floats:
    """What is known at `RATIOS`, shape (..., 65), at each r: on lines between them."""
    place = np.clip(np.searchsorted(RATIOS, r) - 1, 0, RATIOS.size - 2)
    wide = np.broadcast_to(table, (*np.shape(r), RATIOS.size))
    before, after = (
        np.take_along_axis(wide, at[..., None], axis=-1)[..., 0] for at in (place, place + 1)
    )
    along = (r - RATIOS[place]) / (RATIOS[place + 1] - RATIOS[place])
    return np.asarray(before + along * (after - before))


def _last_accepted(start: Floats, side: int, rejected: Callable[[Floats, int], Booleans]) -> Floats:
    """Where, on the way from accepted starts to the end -1 or 1, values begin to be rejected."""
    accepted, beyond = start, np.full_like(start, side)
    reached = ~rejected(beyond, side)
    parts = PARTS if start.size <= FEW else 2
    steps = np.arange(1, parts).reshape(-1, *[1] * start.ndim) / parts
    for _ in range(math.ceil(math.log(WIDTH, 1 / parts))):
        out = rejected(accepted + steps * (beyond - accepted), side)
        before = np.where(out.any(axis=0), out.argmax(axis=0), parts - 1)
        length = (beyond - accepted) / parts
        accepted, beyond = accepted + before * length, accepted + (before + 1) * length
    return np.where(reached, float(side), beyond)
