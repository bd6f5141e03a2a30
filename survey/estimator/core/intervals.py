"""Confidence intervals of a share, from the exact distribution of its count or by the score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from survey.mechanism.arrays import Floats, Integers

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
    z = normal_quantile(level)
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


ROOT_TOLERANCE = 1e-5
"""A root lies at most this many standard errors too far out, and never too far in."""

ROUNDING = 1e-6
"""Standard errors by which ends are moved out; floats are wrong by less up to n = 10^10."""

FIRST_STEP = 20
"""The search over m begins in steps of 1/20 standard deviation; it decides speed only."""

CACHED_QUESTIONS = 256
"""Questions whose ends are remembered; one takes 24 bytes for each distinct count."""


def feldman_cousins(
    counts: Integers, n: int, least: float, most: float, level: float
) -> tuple[Floats, Floats]:
    """Both ends for lambda in [least, most], 0 < least < most < 1, in the shape of `counts`.

    Exact at every n: the hull covers with at least `level` for every lambda in the range. Only
    the counts asked for are computed, and a repeat is answered from a cache. At low levels (below
    about .62) an outcome outside the range may be accepted nowhere inside it: its inner end is nan.
    Source: Feldman and Cousins 1998, doi 10.1103/PhysRevD.57.3873.

    >>> low, high = feldman_cousins(np.array([3, 7]), 10, 0.25, 0.75, 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.25, 0.387], [0.613, 0.75])
    """
    wanted, place = np.unique(counts, return_inverse=True)
    low, high = _ends(wanted.astype(np.int64).tobytes(), n, least, most, level)
    return low[place], high[place]


@lru_cache(maxsize=CACHED_QUESTIONS)
def _ends(counts: bytes, n: int, least: float, most: float, level: float) -> tuple[Floats, Floats]:
    """The ends for distinct counts, given as the bytes of int64: both sides in one pass."""
    c = np.frombuffer(counts, dtype=np.int64)
    a = np.repeat([least, 1 - most], c.size)
    b = np.repeat([most, 1 - least], c.size)
    low, mirrored = np.split(_lower_end(np.concatenate([c, n - c]), n, a, b, level), 2)
    # 1 - (1 - most) may miss most by a rounding; the range itself is exact.
    return low, np.where(mirrored == 1 - most, most, 1 - mirrored)


def _lower_end(c: Integers, n: int, a: Floats, b: Floats, level: float) -> Floats:
    """The least lambda in [a, b] at which c is accepted; all arrays of one shape."""
    end = a.copy()
    # Where c <= n a nothing ranks above c at lambda = a.
    inside = np.flatnonzero(c > n * a)
    if inside.size:
        end[inside] = _lower_end_inside(c[inside], n, a[inside], b[inside], level)
    return end


def _lower_end_inside(c: Integers, n: int, a: Floats, b: Floats, level: float) -> Floats:
    """`_lower_end` where c > n a: theta_m, or the root on the segment that ends there."""
    m = _first_accepted(c, n, a, b, level)
    # For m >= n b the slope is logit(b): c is accepted nowhere below b.
    right = np.where(m < n * b, np.clip(_overtaking(m, c, n, a, b), a, b), np.nan)
    left = np.where(m > 0, np.clip(_overtaking(m - 1, c, n, a, b), a, b), a)
    crossing = np.flatnonzero(_between(m, c, n, right) < level)
    if crossing.size:
        right[crossing] = _root(m[crossing], c[crossing], n, left[crossing], right[crossing], level)
    # At theta_m one outcome enters where another leaves: rounding must not part the two ends.
    return np.asarray(np.clip(right - ROUNDING * np.sqrt(right * (1 - right) / n), a, b))


def _root(m: Integers, c: Integers, n: int, left: Floats, right: Floats, level: float) -> Floats:
    """Where P(m <= X < c) falls below level in [left, right], by bisection, from outside."""
    tolerance = ROOT_TOLERANCE * np.sqrt(right * (1 - left) / n)
    while np.any(wide := right - left > tolerance):
        middle = (left + right) / 2
        rejected = _between(m, c, n, middle) >= level
        left, right = (
            np.where(wide & rejected, middle, left),
            np.where(wide & ~rejected, middle, right),
        )
    return left


def _first_accepted(c: Integers, n: int, a: Floats, b: Floats, level: float) -> Integers:
    """The first m in [0, c) with P(m < X < c; theta_m) < level, by bisection over m.

    The probability falls as m grows (checked by enumeration in the tests). For normal counts m
    is 2z standard deviations below c, which is where the search begins, in growing steps.
    """
    first, last = np.zeros_like(c), c - 1
    x = np.clip(c / n, a, b)
    deviation = np.sqrt(n * x * (1 - x))
    step = 1 + (deviation / FIRST_STEP).astype(np.int64)
    m = np.maximum(c - np.ceil(2 * normal_quantile(level) * deviation).astype(np.int64), 0)
    m = np.minimum(m, last)
    while np.any(first < last):
        accepted = _between(m + 1, c, n, _overtaking(m, c, n, a, b)) < level
        last = np.where(accepted, m, last)
        first = np.where(accepted, first, np.minimum(m + 1, last))
        halfway = (first + last) // 2
        m = np.where(accepted, np.maximum(m - step, halfway), np.minimum(m + step, halfway))
        step = np.minimum(4 * step, n)
    return first


def _overtaking(m: Integers, c: Integers, n: int, a: Floats, b: Floats) -> Floats:
    """The lambda at which m < c ranks as high as c: logit(lambda) = (l(c) - l(m)) / (c - m)."""
    from scipy.special import expit

    slope = (_best_log_likelihood(c, n, a, b) - _best_log_likelihood(m, n, a, b)) / (c - m)
    return np.asarray(expit(slope))


def _best_log_likelihood(c: Integers, n: int, a: Floats, b: Floats) -> Floats:
    """l(c) = c log x + (n - c) log(1 - x) at x = clip(c/n, a, b)."""
    x = np.minimum(np.maximum(c / n, a), b)
    return np.asarray(c * np.log(x) + (n - c) * np.log1p(-x))


def _between(m: Integers, c: Integers, n: int, share: Floats) -> Floats:
    """P(m <= X < c) for X ~ Binomial(n, share), 0 <= m <= c, 1 <= c <= n.

    P(X < x) = 1 - I_share(x, n - x + 1), the regularized incomplete beta function.
    """
    from scipy.special import betaincc

    below_m = np.where(m > 0, betaincc(np.maximum(m, 1), n - m + 1, share), 0.0)
    return np.asarray(betaincc(c, n - c + 1, share) - below_m)


Ends = tuple[Floats, Floats]

FIXED_POPULATION = "fixed-population"
"""The interval for the shares among these very respondents."""

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
    z = normal_quantile(level)
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
    from scipy.special import betaincinv

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
    return max(0.5, 1 - normal_quantile(level) * math.sqrt(-math.log(level)))


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
    z2, slope = normal_quantile(level) ** 2, 1 - least - most
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
    from scipy.special import expit, logit

    z, start = normal_quantile(level), float(logit(a))
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


def normal_quantile(level: float) -> float:
    """z with P(|N(0, 1)| <= z) = level."""
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))
