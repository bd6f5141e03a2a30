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
from scipy.special import betaincc, expit

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROOT_STEPS = 30
"""Halvings of a segment, itself about 1/n wide: an end is known to 10^-9 of that, outwards."""

CACHED_QUESTIONS = 256
"""Questions whose ends are remembered; one takes 24 bytes for each option."""


def feldman_cousins(
    counts: Integers, n: int, least: float, most: float, level: float
) -> tuple[Floats, Floats]:
    """Both ends for lambda in [least, most], each of the shape of `counts`, read-only.

    Exact at every n: the hull covers with at least `level` for every lambda in the range. A
    repeat is answered from a cache. Source: Feldman and Cousins 1998, doi 10.1103/PhysRevD.57.3873.

    >>> low, high = feldman_cousins(np.array([3, 7]), 10, 0.25, 0.75, 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.25, 0.393], [0.607, 0.75])
    """
    wanted, place = np.unique(counts, return_inverse=True)
    low, high = _ends(wanted.astype(np.int64).tobytes(), n, least, most, level)
    return low[place], high[place]


@lru_cache(maxsize=CACHED_QUESTIONS)
def _ends(
    counts: bytes, n: int, least: float, most: float, level: float
) -> tuple[Floats, Floats]:
    """The ends for distinct counts, given as the bytes of int64: both sides in one pass."""
    c = np.frombuffer(counts, dtype=np.int64)
    a = np.repeat([least, 1 - most], c.size)
    b = np.repeat([most, 1 - least], c.size)
    low, high = np.split(lower_end(np.concatenate([c, n - c]), n, a, b, level), 2)
    return low, 1 - high


def lower_end(c: Integers, n: int, a: Floats, b: Floats, level: float) -> Floats:
    """The least lambda in [a, b] at which c is accepted; all arrays of one shape."""
    end = a.copy()
    inside = np.flatnonzero(c > n * a)
    if inside.size:
        end[inside] = _lower_end_inside(c[inside], n, a[inside], b[inside], level)
    return end


def _lower_end_inside(c: Integers, n: int, a: Floats, b: Floats, level: float) -> Floats:
    """`lower_end` where c > n a: elsewhere nothing ranks above c at lambda = a."""
    m = _first_dropped(c, n, a, b, level)
    right = np.clip(_overtaking(m, c, n, a, b), a, b)
    left = np.where(m > 0, np.clip(_overtaking(m - 1, c, n, a, b), a, b), a)
    crossing = _between(m, c, n, right) < level
    for _ in range(ROOT_STEPS):
        middle = (left + right) / 2
        rejected = _between(m, c, n, middle) >= level
        left = np.where(crossing & rejected, middle, left)
        right = np.where(crossing & ~rejected, middle, right)
    return np.where(crossing, left, right)


def _first_dropped(c: Integers, n: int, a: Floats, b: Floats, level: float) -> Integers:
    """The first m in [0, c) with P(m < X < c; theta_m) < level, by bisection over m.

    The probability falls as m grows (checked by enumeration in the tests).
    """
    first, last = np.zeros_like(c), c - 1
    while np.any(first < last):
        middle = (first + last) // 2
        accepted = _between(middle + 1, c, n, _overtaking(middle, c, n, a, b)) < level
        first, last = np.where(accepted, first, middle + 1), np.where(accepted, middle, last)
        first = np.minimum(first, last)
    return first


def _overtaking(m: Integers, c: Integers, n: int, a: Floats, b: Floats) -> Floats:
    """The lambda at which m < c ranks as high as c: logit(lambda) = (l(c) - l(m)) / (c - m)."""
    slope = (_best_log_likelihood(c, n, a, b) - _best_log_likelihood(m, n, a, b)) / (c - m)
    return np.asarray(expit(slope))


def _best_log_likelihood(c: Integers, n: int, a: Floats, b: Floats) -> Floats:
    """l(c) = c log x + (n - c) log(1 - x) at x = clip(c/n, a, b)."""
    x = np.clip(c / n, a, b)
    return np.asarray(c * np.log(x) + (n - c) * np.log1p(-x))


def _between(m: Integers, c: Integers, n: int, share: Floats) -> Floats:
    """P(m <= X < c) for X ~ Binomial(n, share), 0 <= m <= c, 1 <= c <= n.

    P(X < x) = 1 - I_share(x, n - x + 1), the regularized incomplete beta function.
    """
    below_c = betaincc(c, n - c + 1, share)
    below_m = np.where(m > 0, betaincc(np.maximum(m, 1), n - m + 1, share), 0.0)
    return np.asarray(below_c - below_m)
