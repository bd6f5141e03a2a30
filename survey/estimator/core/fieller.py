"""Fieller's interval for the ratio of two means of pseudo-values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from survey.errors import NoBaseError
from survey.estimator.core.arguments import CodeChannel
from survey.estimator.core.debiasing import expected
from survey.mechanism.channel import Booleans, Floats, Integers

RATIOS = -np.cos(np.linspace(0, np.pi, 65))
"""Ratios at which the minimum variance is computed, denser near the ends; linear between them."""


@dataclass(frozen=True, eq=False)
class MinimumScatter:
    """The minimum of Var(a - r b) that randomization causes if those who answered have the mean r.

    Var(a - r b) = sum pi_i w_i(r), w_i(r) = E[(a - r b)^2 | i]. Among people who answered with mean
    r it is at least the lower convex hull of the points (x_i, w_i(r)) at r, `answering`; among the
    others at least their smallest w_i, `silent`. Both are at each of `RATIOS`, the last axis.
    """

    answering: Floats
    silent: Floats

    def among(self, answered: Floats) -> Floats:
        """Return both minima weighted by shares of people who answered, clipped to [0, 1].

        Shape (shares, 65), or (sets, shares, 65) for several sets.
        """
        share = np.clip(answered, 0.0, 1.0)[:, None]
        answering, silent = self.answering[..., None, :], self.silent[..., None, :]
        return np.maximum(share * answering + (1 - share) * silent, 0.0)


def minimum_scatter(
    channel: CodeChannel, target: Floats, answered: Booleans, a: Floats, b: Floats
) -> MinimumScatter:
    """Return the minimum variance of pseudo-values a for the target and b for `answered`."""
    aa, ab, bb = (expected(channel, g) for g in (a**2, a * b, b**2))
    r = RATIOS[:, None]
    w = aa - 2 * r * ab + r**2 * bb
    silent = w[:, ~answered].min(axis=1) if not answered.all() else np.zeros(RATIOS.shape)
    order = np.flatnonzero(answered)[np.argsort(target[answered], kind="stable")]
    # Among truths of the same value only the one with the smallest variance can be on the hull.
    x, first = np.unique(target[order], return_index=True)
    y = np.minimum.reduceat(w[:, order], first, axis=1)
    return MinimumScatter(lower_hulls(x, y), silent)


def lower_hulls(x: Floats, y: Floats) -> Floats:
    """Return the lower convex hull of the points (x, y[i]), x rising, at ratio i; shape (65,)."""
    if x.tolist() == [-1.0, 1.0]:
        # An indicator has two values: the hull is the line between them.
        return np.asarray(((1 - RATIOS) * y[:, 0] + (1 + RATIOS) * y[:, 1]) / 2)
    return np.array([lower_hull(x, row, r) for row, r in zip(y, RATIOS.tolist(), strict=True)])


def lower_hull(x: Floats, y: Floats, at: float) -> float:
    """Return the height at `at` of the lower convex hull of the points (x, y), x rising.

    Every line from a point before `at` to a point after it is at least as high as the hull.
    Starting from the lowest point before `at`, alternate: choose the point after `at` whose line is
    lowest there, then the point before `at` for that one, until the line falls no further.
    """
    is_at, is_before, is_after = x == at, x < at, x > at
    best = float(y[is_at].min()) if is_at.any() else np.inf
    if not is_before.any() or not is_after.any():
        return best
    xl, yl, xr, yr = x[is_before], y[is_before], x[is_after], y[is_after]
    i, lowest = int(np.argmin(yl)), np.inf
    while True:
        j = int(np.argmin(yl[i] + (yr - yl[i]) * (at - xl[i]) / (xr - xl[i])))
        values = yl + (yr[j] - yl) * (at - xl) / (xr[j] - xl)
        i = int(np.argmin(values))
        if not values[i] < lowest:
            return min(best, lowest)
        lowest = float(values[i])


WIDTH = 2.0**-24
"""Width of the final bracket of an end is at most twice this."""

PARTS = 32
"""Parts into which a bracket is cut at a time for a small batch; two for a larger one."""

SMALL_BATCH = 8


class Moments(NamedTuple):
    """Means of a and b over n reports, their sample variances and covariance; of one shape."""

    mean_a: Floats
    mean_b: Floats
    aa: Floats
    ab: Floats
    bb: Floats

    def scatter(self, ratio: Floats) -> Floats:
        """Return the sample variance of a - ratio b."""
        return np.maximum(self.aa - 2 * ratio * self.ab + ratio**2 * self.bb, 0.0)


class Tails(NamedTuple):
    """Skewness of the mean of a - r b.

    aaa ... bbb       third central moments of the reports, of the shape of `Moments`
    minimum, maximum  of a - r b over all possible reports, at each of `RATIOS`, shape (..., 65)
    """

    aaa: Floats
    aab: Floats
    abb: Floats
    bbb: Floats
    minimum: Floats
    maximum: Floats

    def third(self, ratio: Floats) -> Floats:
        """Return the third central moment of a - ratio b."""
        return np.asarray(
            self.aaa - 3 * ratio * self.aab + 3 * ratio**2 * self.abb - ratio**3 * self.bbb
        )


class Ratio(NamedTuple):
    """Estimated ratios, of one shape; the ends are in [-1, 1], the estimate may be outside.

    If hardly anybody is in the denominator (B <= 0), the estimate is nan and the interval [-1, 1].
    A single report has this interval too.
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
    """Return mean a / mean b with Fieller's interval, which is Student's if b = 1 throughout.

    The interval is the hull of all r with |A - r B| <= bias + t(r) sqrt(max(Var(a - r b),
    floor(r))/n). `floor` is the minimum variance that randomization causes at each of `RATIOS`,
    shape (..., 65), and `bias` bounds |E a - r E b| at the true r. For the interval, A is clipped
    to [-B, B], which only widens it, so that it always has a width. Source: Fieller 1954.

    t(r) is Student's quantile t. With `tails`, the end on the side to which a - r b is skewed moves
    outwards, by Edgeworth's expansion of Student's ratio (Johnson 1978; Hall 1992): t + skewness (2
    t^2 + 1)/(6 sqrt n). The other end stays. Variance and skewness then include one more report,
    the most extreme possible one on that side: a small sample may contain none of the rare reports
    that cause both, and would seem too certain.

    >>> moments = Moments(*map(np.array, (.5, 1., 4., 0., 0.)))
    >>> ratio_interval(moments, np.ones(65), 0., 400, 0.95).low.round(3)
    np.float64(0.303)
    """
    from scipy.special import stdtrit

    estimate, std_error, inside = estimated_ratio(moments, floor, n)
    B = np.asarray(moments.mean_b)
    has_base = B > 0
    t = float(stdtrit(max(n - 1, 1), (1 + level) / 2))

    def rejected(r: Floats, side: int) -> Booleans:
        scatter, quantile = _with_tails(moments, tails, r, side, n, t)
        spread = np.sqrt(np.maximum(scatter, _interpolate(floor, r)) / n)
        return np.asarray(has_base & (n > 1) & (B * np.abs(inside - r) > bias + quantile * spread))

    low, high = (_last_accepted(inside, side, rejected) for side in (-1, 1))
    return Ratio(estimate, std_error, low, high)


def estimated_ratio(moments: Moments, floor: Floats, n: int) -> tuple[Floats, Floats, Floats]:
    """Return mean a / mean b, its standard error, and the ratio clipped to [-1, 1].

    The variance is at least `floor`, as in `ratio_interval`. If B <= 0, they are nan, inf and 0.
    """
    A, B = np.asarray(moments.mean_a), np.asarray(moments.mean_b)
    has_base = B > 0
    divisor = np.where(has_base, B, 1.0)
    estimate = np.where(has_base, A / divisor, np.nan)
    inside = np.where(has_base, np.clip(A / divisor, -1.0, 1.0), 0.0)
    # A single report has no sample variance; its truth varies by at most 1 on [-1, 1].
    observed = moments.scatter(A / divisor) if n > 1 else _interpolate(floor, inside) + 1.0
    variance = np.maximum(observed, _interpolate(floor, inside))
    return estimate, np.where(has_base, np.sqrt(variance / n) / divisor, np.inf), inside


def _with_tails(
    moments: Moments, tails: Tails | None, r: Floats, side: int, n: int, t: float
) -> tuple[Floats, Floats | float]:
    """Return the variance of a - r b and the quantile, with one more report at distance g.

    The report moves the mean by d = g/(n+1), makes the variance V + g^2/(n+1), and the third
    central moment (n (K - 3 d V - d^3) + (g - d)^3)/(n+1).
    """
    variance = moments.scatter(r)
    if tails is None:
        return variance, t
    extreme = _interpolate(tails.maximum if side > 0 else tails.minimum, r)
    g = np.maximum(side * (extreme - (moments.mean_a - r * moments.mean_b)), 0.0)
    d = g / (n + 1)
    third = n * (side * tails.third(r) - 3 * d * variance - d**3) + (g - d) ** 3
    larger = variance + g * d
    # Identical reports, none more extreme: neither variance nor skewness.
    scale = np.where(larger > 0, larger, 1.0) ** 1.5
    skewness = np.maximum(third / (n + 1) / scale, 0.0)
    return larger, t + skewness * (2 * t**2 + 1) / (6 * math.sqrt(n))


def _interpolate(table: Floats, r: Floats) -> Floats:
    """Interpolate a table at `RATIOS`, shape (..., 65), linearly at each r."""
    index = np.clip(np.searchsorted(RATIOS, r) - 1, 0, RATIOS.size - 2)
    wide = np.broadcast_to(table, (*np.shape(r), RATIOS.size))
    before, after = (
        np.take_along_axis(wide, position[..., None], axis=-1)[..., 0]
        for position in (index, index + 1)
    )
    along = (r - RATIOS[index]) / (RATIOS[index + 1] - RATIOS[index])
    return np.asarray(before + along * (after - before))


def _last_accepted(start: Floats, side: int, rejected: Callable[[Floats, int], Booleans]) -> Floats:
    """Return where values begin to be rejected between accepted starts and the end -1 or 1."""
    accepted, beyond = start, np.full_like(start, side)
    reached = ~rejected(beyond, side)
    parts = PARTS if start.size <= SMALL_BATCH else 2
    steps = np.arange(1, parts).reshape(-1, *[1] * start.ndim) / parts
    for _ in range(math.ceil(math.log(WIDTH, 1 / parts))):
        is_rejected = rejected(accepted + steps * (beyond - accepted), side)
        before = np.where(is_rejected.any(axis=0), is_rejected.argmax(axis=0), parts - 1)
        length = (beyond - accepted) / parts
        accepted, beyond = accepted + before * length, accepted + (before + 1) * length
    return np.where(reached, float(side), beyond)


@dataclass(frozen=True, eq=False)
class PseudoRatios:
    """Pseudo-values for the means of targets in [-1, 1] among those who answered.

    a                 pseudo-values of each target, shape (targets, reports)
    b                 pseudo-values of having answered, shape (reports,)
    bias              the largest |E a - r E b| at the true ratio r, shape (targets,)
    some_silent       whether some truths are no answer; otherwise b is 1 for every report
    scatter           the minimum variance of a - r b, shape (targets, 65)
    minimum, maximum  of a - r b over the reports, at each of `RATIOS`, shape (targets, 65)
    """

    a: Floats
    b: Floats
    bias: Floats
    some_silent: bool
    scatter: MinimumScatter
    minimum: Floats
    maximum: Floats

    def intervals(self, counts: Integers | Floats, level: float) -> Ratio:
        """Return the ratios, shape (targets, surveys), for counts of shape (surveys, reports).

        All surveys have the same n. Expected counts need not be whole numbers.
        """
        n = round(float(counts[0].sum()))
        moments, tails = self._moments(counts / n, n)
        share = moments.mean_b if self.some_silent else np.ones_like(moments.mean_b)
        floor = self.scatter.among(share)
        return ratio_interval(moments, floor, self.bias[:, None], n, level, tails)

    def of_survey(self, counts: Integers, level: float) -> Ratio:
        """Return the ratios of one survey, shape (targets, 1), for counts of shape (reports,).

        Raises NoBaseError if hardly anybody seems to have answered, and for a single report if some
        truths are no answer, because it does not show whether anybody answered.
        """
        ratio = self.intervals(counts[None], level)
        if np.isnan(ratio.estimate).any() or (self.some_silent and counts.sum() == 1):
            raise no_answers_error()
        return ratio

    def _moments(self, f: Floats, n: int) -> tuple[Moments, Tails]:
        """Return the moments of a and b over the reports, centred first to limit rounding."""
        mean_a, mean_b = self.a @ f.T, f @ self.b
        centre_a, centre_b = mean_a.mean(axis=1, keepdims=True), mean_b.mean()
        a, b = self.a - centre_a, self.b - centre_b
        u, v = mean_a - centre_a, mean_b - centre_b
        aa, ab, bb = a**2 @ f.T, (a * b) @ f.T, f @ b**2
        bessel = n / max(n - 1, 1)
        moments = Moments(
            mean_a, mean_b, bessel * (aa - u * u), bessel * (ab - u * v), bessel * (bb - v * v)
        )
        return moments, Tails(
            a**3 @ f.T - 3 * u * aa + 2 * u**3,
            (a * a * b) @ f.T - 2 * u * ab - v * aa + 2 * u * u * v,
            (a * b * b) @ f.T - 2 * v * ab - u * bb + 2 * u * v * v,
            f @ b**3 - 3 * v * bb + 2 * v**3,
            self.minimum[:, None, :],
            self.maximum[:, None, :],
        )


def no_answers_error() -> NoBaseError:
    """Return the error for estimates among those who answered if hardly anybody did."""
    return NoBaseError(
        "hardly anybody seems to have answered: estimates among those who did are unknown"
    )


def pseudo_ratios(
    channel: CodeChannel, targets: Floats, answered: Booleans, a: Floats, b: Floats, bias: Floats
) -> PseudoRatios:
    """Return the ratios for given pseudo-values; targets are 0 at truths that are no answer."""
    parts = [
        minimum_scatter(channel, target, answered, values, b)
        for target, values in zip(targets, a, strict=True)
    ]
    scatter = MinimumScatter(
        np.array([part.answering for part in parts]), np.array([part.silent for part in parts])
    )
    differences = [values - RATIOS[:, None] * b for values in a]
    minimum = np.array([difference.min(axis=1) for difference in differences])
    maximum = np.array([difference.max(axis=1) for difference in differences])
    return PseudoRatios(a, b, bias, not bool(answered.all()), scatter, minimum, maximum)
