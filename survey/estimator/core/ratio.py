"""Ratios of two means of pseudo-values, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from survey.errors import NoBaseError
from survey.estimator.core.pseudo_values import expected
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.arrays import Booleans, Floats, Integers

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
    answered: Booleans,
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
    from scipy.special import stdtrit

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


@dataclass(frozen=True, eq=False)
class PseudoRatios:
    """How reports are read for the means of targets in [-1, 1] among those who answered.

    a            pseudo-values of each target, shape (targets, reports)
    b            pseudo-values of having answered, shape (reports,)
    bias         the largest |E a - r E b| at the true ratio r, shape (targets,)
    some_silent  whether some truths are no answer; else b is 1 for every report
    scatter      the least that a - r b scatters, shape (targets, 65)
    least, most  of a - r b over the reports, at each of `RATIOS`, shape (targets, 65)
    """

    a: Floats
    b: Floats
    bias: Floats
    some_silent: bool
    scatter: LeastScatter
    least: Floats
    most: Floats

    def intervals(self, counts: Integers, level: float) -> Ratio:
        """The ratios, shape (targets, surveys); counts (surveys, reports), all of the same n."""
        n = int(counts[0].sum())
        moments, tails = self._moments(counts / n, n)
        share = moments.mean_b if self.some_silent else np.ones_like(moments.mean_b)
        floor = self.scatter.among(share)
        return ratio_interval(moments, floor, self.bias[:, None], n, level, tails)

    def of_survey(self, counts: Integers, level: float) -> Ratio:
        """The ratios of one survey, shape (targets, 1); counts (reports,).

        NoBaseError where hardly anybody seems to have answered, and of one report where some
        truths are no answer: it tells nothing of those who answered.
        """
        found = self.intervals(counts[None], level)
        if np.isnan(found.estimate).any() or (self.some_silent and counts.sum() == 1):
            raise nobody()
        return found

    def _moments(self, f: Floats, n: int) -> tuple[Moments, Tails]:
        """Of a and b over the reports; both are centred first, which keeps digits of the rest."""
        mean_a, mean_b = self.a @ f.T, f @ self.b
        centre_a, centre_b = mean_a.mean(axis=1, keepdims=True), mean_b.mean()
        a, b = self.a - centre_a, self.b - centre_b
        u, v = mean_a - centre_a, mean_b - centre_b
        aa, ab, bb = a**2 @ f.T, (a * b) @ f.T, f @ b**2
        more = n / max(n - 1, 1)
        moments = Moments(
            mean_a, mean_b, more * (aa - u * u), more * (ab - u * v), more * (bb - v * v)
        )
        return moments, Tails(
            a**3 @ f.T - 3 * u * aa + 2 * u**3,
            (a * a * b) @ f.T - 2 * u * ab - v * aa + 2 * u * u * v,
            (a * b * b) @ f.T - 2 * v * ab - u * bb + 2 * u * v * v,
            f @ b**3 - 3 * v * bb + 2 * v**3,
            self.least[:, None, :],
            self.most[:, None, :],
        )


def nobody() -> NoBaseError:
    """The refusal to tell anything of those who answered."""
    return NoBaseError("hardly anybody seems to have answered: nothing is known of those who did")


def pseudo_ratios(
    channel: SubsetSelection | WeightTable,
    targets: Floats,
    answered: Booleans,
    a: Floats,
    b: Floats,
    bias: Floats,
) -> PseudoRatios:
    """Read reports of a channel by given pseudo-values; targets are 0 where nothing is answered."""
    scatter = [
        least_scatter(channel, target, answered, one, b)
        for target, one in zip(targets, a, strict=True)
    ]
    differences = (one - RATIOS[:, None] * b for one in a)
    extremes = np.array([(each.min(axis=1), each.max(axis=1)) for each in differences])
    return PseudoRatios(
        a=a,
        b=b,
        bias=bias,
        some_silent=not bool(answered.all()),
        scatter=LeastScatter(
            np.array([one.answering for one in scatter]), np.array([one.silent for one in scatter])
        ),
        least=extremes[:, 0],
        most=extremes[:, 1],
    )
