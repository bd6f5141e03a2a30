"""Exact intervals of a share in a finite population, from the probabilities of all outcomes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from survey.mechanism.channel import Floats

LARGEST_TABLE = 250_000
"""Maximum number of probabilities of a table, (N+1)(n+1); one takes 35 ms and 2 MB."""

CACHED_TABLES = 8
CACHED_QUESTIONS = 256
CACHED_BINOMIALS = 4

SIZE_STEP = 64
"""Tables of binomials are computed for multiples of this n, so that several n share one."""

SAME = 1e-9
"""Likelihood ratios that differ by less, relatively, are equal: yes and no mirror each other."""


def has_table(n: int, population: int) -> bool:
    """Return whether the outcomes of n reports from this population are tabulated."""
    return (population + 1) * (n + 1) <= LARGEST_TABLE


@lru_cache(maxsize=CACHED_TABLES)
def outcome_table(n: int, population: int, floor: float, ceiling: float) -> Floats:
    """Return P(c reports support the option | M of N people have it), shape (N+1, n+1).

    Of n people, drawn without replacement, m have the option: hypergeometric. Each of them supports
    it with probability `ceiling`, and the others with probability `floor`, so c is the sum of
    Bin(m, ceiling) and Bin(n-m, floor).

    >>> outcome_table(1, 2, 0.25, 0.75).tolist()
    [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]
    """
    size = -(-n // SIZE_STEP) * SIZE_STEP
    with_option, without = (_binomials(size, chance) for chance in (ceiling, floor))
    outcomes = np.array(
        [np.convolve(with_option[m, : m + 1], without[n - m, : n - m + 1]) for m in range(n + 1)]
    )
    if population > n:
        outcomes = _hypergeometric(n, population) @ outcomes
    outcomes.flags.writeable = False
    return outcomes


def _log_factorials(maximum: int) -> Floats:
    from scipy.special import gammaln

    return np.asarray(gammaln(np.arange(maximum + 1) + 1.0))


@lru_cache(maxsize=CACHED_BINOMIALS)
def _binomials(n: int, chance: float) -> Floats:
    """Return P(Bin(m, chance) = c), shape (n+1, n+1), for m, c = 0 .. n and a chance in [0, 1]."""
    from scipy.special import xlog1py, xlogy

    log_factorial = _log_factorials(n)
    c = np.arange(n + 1)
    m, rest = c[:, None], np.maximum(c[:, None] - c, 0)
    logarithms = (
        log_factorial[m] - log_factorial[c] - log_factorial[rest]
        + xlogy(c, chance) + xlog1py(c, -chance)[rest]
    )  # fmt: skip
    return np.tril(np.exp(np.minimum(logarithms, 0.0)))


def _hypergeometric(n: int, population: int) -> Floats:
    """Return P(m of n | M of N) = C(M, m) C(N-M, n-m)/C(N, n), shape (N+1, n+1)."""
    log_factorial = _log_factorials(population)
    M, m = np.arange(population + 1)[:, None], np.arange(n + 1)
    others, rest = population - M, n - m
    is_possible = (m <= M) & (rest <= others)
    # Impossible draws get factorials of 0 for now.
    left, right = np.where(is_possible, M - m, 0), np.where(is_possible, others - rest, 0)
    logarithms = (
        log_factorial[M]
        - log_factorial[m]
        - log_factorial[left]
        + log_factorial[others]
        - log_factorial[rest]
        - log_factorial[right]
        - log_factorial[population]
        + log_factorial[n]
        + log_factorial[population - n]
    )
    return np.exp(np.where(is_possible, logarithms, -np.inf))


@lru_cache(maxsize=CACHED_QUESTIONS)
def exact_ends(
    n: int, population: int, floor: float, ceiling: float, level: float
) -> tuple[Floats, Floats]:
    """Return both ends of the share of N people for c = 0 .. n supporting reports, shape (n+1,).

    For each M, outcomes c are accepted in the order of P(c | M)/max_K P(c | K) until their
    probability reaches the level (Feldman and Cousins 1998, for a finite set of parameters). The
    interval is the hull of all M/N that accept c, of half a person on each side of the most likely
    M, so that its width is never zero, and of the linear estimate clipped to [0, 1]. It covers
    every M with at least `level`, its ends rise with c, and an interval of a higher level contains
    it.

    >>> low, high = exact_ends(10, 10, 0.25, 0.75, 0.95)
    >>> low[[0, 5]].tolist(), high[[0, 5]].tolist()
    ([0.0, 0.0], [0.1, 1.0])
    """
    P = outcome_table(n, population, floor, ceiling)
    N, best = population, P.max(axis=0)
    # Outcomes that are impossible in double precision come last, and have the ends of their
    # neighbors.
    ratio = np.divide(P, best, out=np.zeros(P.shape), where=best > 0)
    # Indices into the flat table, which numpy reads faster than pairs.
    order = np.argsort(-ratio, axis=1, kind="stable") + np.arange(0, P.size, n + 1)[:, None]
    ranked, chances = np.take(ratio, order), np.take(P, order)
    # The probability of all outcomes that rank above c; those that rank equally are accepted
    # together.
    above = np.cumsum(chances, axis=1) - chances
    is_first = np.ones(P.shape, dtype=bool)
    is_first[:, 1:] = ranked[:, 1:] < ranked[:, :-1] * (1 - SAME)
    above = np.maximum.accumulate(np.where(is_first, above, 0.0), axis=1)
    is_accepted = np.empty(P.shape, dtype=bool)
    np.put(is_accepted, order, above < level)
    likeliest = np.maximum.accumulate(P.argmax(axis=0))
    has_accepted = is_accepted.any(axis=0)
    first = np.where(has_accepted, is_accepted.argmax(axis=0), likeliest)
    last = np.where(has_accepted, N - is_accepted[::-1].argmax(axis=0), likeliest)
    low = np.minimum(first, np.maximum(likeliest - 0.5, 0.0))
    high = np.maximum(last, np.minimum(likeliest + 0.5, N))
    low, high = np.minimum.accumulate(low[::-1])[::-1] / N, np.maximum.accumulate(high) / N
    estimate = np.clip((np.arange(n + 1) / n - floor) / (ceiling - floor), 0.0, 1.0)
    low, high = np.minimum(low, estimate), np.maximum(high, estimate)
    low.flags.writeable = high.flags.writeable = False
    return low, high


def expected_half_width(
    n: int, population: int, floor: float, ceiling: float, share: float, level: float
) -> float:
    """Return E[(high - low)/2] if a share of the N people has the option.

    Between the shares of whole people it is linear.
    """
    low, high = exact_ends(n, population, floor, ceiling, level)
    before = min(int(share * population), population - 1) if population else 0
    part = share * population - before
    P = outcome_table(n, population, floor, ceiling)
    chances = (1 - part) * P[before] + part * P[before + 1]
    return float(chances @ (high - low)) / 2
