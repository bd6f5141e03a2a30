"""Feldman and Cousins' interval for one binomial share known to lie in a range, exactly.

Outcomes c of Binomial(n, lambda), lambda in [a, b], are ordered by their likelihood ratio

    R(c; lambda) = log L(lambda; c) - l(c),    l(c) = log L(clip(c/n, a, b); c),

accepted from the highest R down until their probability reaches the level, and the accepted
sets are inverted (Feldman and Cousins 1998, section IV); what is returned is the hull.

No grid of lambda is needed. With theta = logit(lambda), R(c) = c theta + n log(1-lambda) - l(c)
and l is convex, so an outcome m < c ranks above c exactly while theta lies below the slope

    theta_m = (l(c) - l(m)) / (c - m),    non-decreasing in m.

Those above c at lambda are therefore {m, ..., c-1}, one more m dropping out at each theta_m, and
c is accepted where P(m <= X < c) < level. At theta_m that probability falls from
P(m <= X < c) to P(m < X < c); between two of them it rises at most once and then falls. Hence
the lower end is theta_m, or a root on the segment before it, for the first m with
P(m < X < c; theta_m) < level. The upper end is the lower end of n - c in [1-b, 1-a].
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, expit, ndtri

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
    m = np.maximum(c - np.ceil(2 * ndtri((1 + level) / 2) * deviation).astype(np.int64), 0)
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
    below_m = np.where(m > 0, betaincc(np.maximum(m, 1), n - m + 1, share), 0.0)
    return np.asarray(betaincc(c, n - c + 1, share) - below_m)
