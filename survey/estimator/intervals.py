"""Confidence intervals for one option's share, by name: binomial ends, mapped through the channel.

A report supports the option with probability lambda = q + (p-q) pi, so every interval is made
for lambda in [a, b] = [min(p, q), max(p, q)] from c of n reports and then mapped by
pi = (lambda-q)/(p-q), which swaps the ends when p < q (Warner's channel, inverted).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, logit, ndtri

from survey.estimator.feldman_cousins import feldman_cousins
from survey.estimator.shares import FIXED_POPULATION

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Ends = tuple[Floats, Floats]

DEFAULT_INTERVAL = "feldman-cousins"
SIMULTANEOUS_DEFAULT = "clopper-pearson"
"""What the default becomes for all options at once: joint coverage .955 to .992 at .95."""

NEWTON_STEPS = 50
NEWTON_TOLERANCE = 1e-12


@runtime_checkable
class ReportChances(Protocol):
    """How often a report supports an option: p when it is the truth, q when it is not."""

    @property
    def p(self) -> float: ...
    @property
    def q(self) -> float: ...


class Chances(NamedTuple):
    """The two chances alone."""

    p: float
    q: float


def confidence_interval(
    counts: Integers, n: int, channel: ReportChances, level: float, interval: str
) -> Ends:
    """Ends of the interval of that name for every option's share, clipped to [0, 1].

    `counts` has shape (k,) with values from 0 to `n`. Returns (low, high), each of shape (k,).
    Each interval covers its own share with probability `level`, not all of them at once.
    Raises ValueError for an unknown name.

    >>> from survey.mechanism import grr
    >>> low, high = confidence_interval(np.array([60, 40]), 100, grr(2, "3/4"), 0.95, "wilson")
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.504, 0.119], [0.881, 0.496])
    """
    if interval not in INTERVALS:
        raise ValueError(f"unknown interval {interval!r}; the names are {', '.join(INTERVALS)}")
    least, most = sorted((channel.p, channel.q))
    low, high = INTERVALS[interval](counts, n, least, most, level)
    # pi = (lambda - q)/(p - q), falling in lambda when p < q.
    mapped = (np.stack([low, high]) - channel.q) / (channel.p - channel.q)
    low, high = np.clip(np.sort(mapped, axis=0), 0.0, 1.0)
    return low, high


def feldman_cousins_interval(
    counts: Integers, n: int, least: float, most: float, level: float
) -> Ends:
    """`feldman_cousins`, with the likelihood-ratio end where it would have no width.

    That happens only at low levels and for outcomes outside the range, and never lowers coverage.
    """
    low, high = feldman_cousins(counts, n, least, most, level)
    flat = ~(np.minimum(high, most) > np.maximum(low, least))
    if flat.any():
        reach = likelihood_ratio_ends(counts, n, least, most, level)
        low = np.where(flat, np.fmin(low, reach[0]), low)
        high = np.where(flat, np.fmax(high, reach[1]), high)
    return low, high


def wilson(counts: Integers, n: int, level: float) -> Ends:
    """The score interval for the share of reports (Wilson 1927).

    (f + z^2/2n -+ z sqrt(f(1-f)/n + z^2/4n^2)) / (1 + z^2/n), f = c/n. Coverage falls to .931
    at .95, and when all of it lies outside the range of lambda the mapped width is zero.
    """
    z = _quantile(level)
    f = counts / n
    centre = f + z**2 / (2 * n)
    half = z * np.sqrt(f * (1 - f) / n + z**2 / (4 * n**2))
    return (centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)


def wilson_hull(counts: Integers, n: int, least: float, most: float, level: float) -> Ends:
    """Wilson's interval, widened inwards for outcomes at or outside the range.

    Where f <= a or f >= b the inner end moves to the likelihood-ratio end if that reaches
    further, so the width is never zero. Approximate: for n min(a, 1-b) >= 200 coverage at .95
    stays above .944; below that it can fall to .87.
    """
    return _hull(wilson(counts, n, level), counts, n, least, most, level)


def _hull(ends: Ends, counts: Integers, n: int, least: float, most: float, level: float) -> Ends:
    """The ends, moved inwards to the likelihood-ratio end where that reaches further."""
    low, high = ends
    inner_low, inner_high = likelihood_ratio_ends(counts, n, least, most, level)
    return np.fmin(low, inner_low), np.fmax(high, inner_high)


def clopper_pearson(counts: Integers, n: int, level: float) -> Ends:
    """The exact interval of equal tails for the share of reports.

    Quantiles of Beta(c, n-c+1) at alpha/2 and of Beta(c+1, n-c) at 1 - alpha/2 (Clopper and
    Pearson 1934). Coverage is at least `level`.
    """
    tail = (1 - level) / 2
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), n - counts + 1, tail), 0.0)
    fails = n - counts
    high = np.where(fails > 0, 1 - betaincinv(np.maximum(fails, 1), counts + 1, tail), 1.0)
    return low, high


def clopper_pearson_interval(
    counts: Integers, n: int, least: float, most: float, level: float
) -> Ends:
    """`clopper_pearson`, widened inwards like the hull for outcomes at or outside the range.

    So its width is never zero, and its ends rise with the count; it never lowers coverage.
    """
    return _hull(clopper_pearson(counts, n, level), counts, n, least, most, level)


def continuity(level: float) -> float:
    """How far, in reports, an end is moved out because reports are whole; at least 1/2.

    Where wrong reports are rare their number is nearly Poisson of a rate r, and with chance e^-r
    there is none. Below r = -log(level) that is enough; above, one must be covered as well:
    C + z sqrt(r) >= 1 from there on.

    >>> [round(continuity(level), 3) for level in (.9, .95, .99)]
    [0.5, 0.556, 0.742]
    """
    return max(0.5, 1 - _quantile(level) * math.sqrt(-math.log(level)))


def fixed_population(counts: Integers, n: int, least: float, most: float, level: float) -> Ends:
    """The score interval for the share among these n respondents, who are no sample of others.

    Of them pi n support the option with chance p and the others with q: c is a sum of two
    binomials, of variance n V(lambda) with V = pi p(1-p) + (1-pi) q(1-q)
    = (1-a-b) lambda + a b. The lambda with |f - lambda| <= C/n + z sqrt(V(lambda)/n), C the
    `continuity`, f clipped to [a, b], which only adds to the interval: its width is never zero.
    By enumeration of every outcome of every population (k 2 and 10; epsilon 2 to 12; n 5 to 200)
    coverage is at least .952 at .95 and .986 at .99; with the usual C = 1/2 it is .938 and .964,
    with none .79.
    It does not cover the population's share: it is narrower by what sampling adds.
    """
    # lambda^2 - (2f + z^2 (1-a-b)/n) lambda + f^2 - z^2 a b/n = 0
    z2, slope = _quantile(level) ** 2, 1 - least - most
    ends = []
    for side in (-1, 1):
        f = np.clip((counts + side * continuity(level)) / n, least, most)
        centre = f + z2 * slope / (2 * n)
        # centre^2 - f^2 + z^2 a b/n = z^2 (V(f) + z^2 (1-a-b)^2/(4n))/n
        spread = z2 * (slope * f + least * most + z2 * slope**2 / (4 * n)) / n
        ends.append(np.clip(centre + side * np.sqrt(spread), least, most))
    return ends[0], ends[1]


Interval = Callable[[Integers, int, float, float, float], Ends]
INTERVALS: Mapping[str, Interval] = MappingProxyType(
    {
        DEFAULT_INTERVAL: feldman_cousins_interval,
        "wilson-hull": wilson_hull,
        "wilson": lambda counts, n, _least, _most, level: wilson(counts, n, level),
        SIMULTANEOUS_DEFAULT: clopper_pearson_interval,
        FIXED_POPULATION: fixed_population,
    }
)
"""Every interval offered: (counts, n, least, most, level) to its ends on the scale of lambda."""


def likelihood_ratio_ends(
    counts: Integers, n: int, least: float, most: float, level: float
) -> Ends:
    """Inner ends of the constrained likelihood-ratio interval where f is not inside the range.

    For f <= a the upper end, for f >= b the lower end, and nan for every other end.
    """
    low, high = np.full(counts.shape, np.nan), np.full(counts.shape, np.nan)
    under, over = counts <= n * least, counts >= n * most
    high[under] = np.fmin(_likelihood_reach(counts[under], n, least, level), most)
    low[over] = np.fmax(1 - _likelihood_reach(n - counts[over], n, 1 - most, level), least)
    return low, high


def _likelihood_reach(c: Integers, n: int, a: float, level: float) -> Floats:
    """The lambda > a with log L(a; c) - log L(lambda; c) = z^2/2, for c <= n a.

    Newton's method in theta = logit(lambda), where the log likelihood c theta - n log(1+e^theta)
    is concave: from the far side of the root it approaches monotonically.
    """
    z, start = _quantile(level), float(logit(a))
    theta = np.full(c.shape, logit(_score_reach(a, n, z)))
    for _ in range(NEWTON_STEPS):
        rise = np.logaddexp(0, theta) - np.logaddexp(0, start)
        excess = c * (theta - start) - n * rise + z**2 / 2
        step = excess / (n * expit(theta) - c)
        theta = theta + step
        if np.all(np.abs(step) < NEWTON_TOLERANCE):
            break
    return np.asarray(expit(theta))


def _score_reach(a: float, n: int, z: float) -> float:
    """Wilson's upper end for the share a itself: where Newton's method begins."""
    spread = np.sqrt(a * (1 - a) / n + z**2 / (4 * n**2))
    return float((a + z**2 / (2 * n) + z * spread) / (1 + z**2 / n))


def _quantile(level: float) -> float:
    """z with P(|N(0, 1)| <= z) = level."""
    return float(ndtri((1 + level) / 2))
