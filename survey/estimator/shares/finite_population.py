"""Shares in a finite population: the sampling error falls to 0, the randomization stays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import DesignError
from survey.estimator.core.arguments import (
    LARGEST_N,
    checked_arguments,
    checked_level,
    checked_whole,
)
from survey.estimator.core.debiasing import left_inverse
from survey.estimator.core.intervals import Chances, finite_population, mapped_to_shares
from survey.estimator.core.result import Result
from survey.estimator.shares.linear_estimator import linear_estimator
from survey.estimator.shares.proportions import Proportions, proportions, table_ends
from survey.mechanism import AnyChannel, WeightTable
from survey.mechanism.channel import Floats


@dataclass(frozen=True, eq=False, repr=False)
class FiniteShares(Result):
    """Shares of the k true answers in a population of N people; arrays have shape (k,).

    estimate        linear in the counts; may be outside [0, 1]
    std_error       of `estimate`: sampling and randomization together
    conf_low        ends of the interval, in [0, 1], never of zero width
    conf_high
    sampling        part of std_error because only n of the N people were asked
    randomization   part of std_error because of the randomization, even if everybody is asked; the
                    squares of both parts add up to that of std_error
    """

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    sampling: Floats
    randomization: Floats
    n: int
    population: int
    level: float


@checked_arguments
def finite_shares(
    counts: ArrayLike,
    channel: AnyChannel,
    population: int,
    *,
    n: int | None = None,
    level: float = 0.95,
) -> FiniteShares:
    """Estimate shares in a population of N people of whom n, drawn at random, reported.

    `counts` and `n` as in `proportions`. With S^2 = N/(N-1) pi(1-pi),
        SE^2 = (1 - n/N) S^2/n + [pi p(1-p) + (1-pi) q(1-q)] / (n D^2):
    the first part is 0 if everybody is asked, the second is not. If each person is asked about some
    of the options, n and N are those of the option. The interval is that of `finite_population`:
    exact up to a table of 250,000 outcomes, (N+1)(n+1), and above that the score interval of this
    variance with a continuity correction; channels given as tables always have a score interval.
    For n = N it is "fixed-population". `margin_split` divides the margins of `proportions`, for a
    large population, in the same way. Coverage at .95 is at least .950, by enumeration of every
    outcome of every population (`tests/benchmarks/coverage_tables.py`).

    Raises DesignError for a population smaller than n, and the errors of `proportions`.

    >>> from survey.mechanism import grr
    >>> found = finite_shares([250, 150], grr(2, "3/4"), 500)
    >>> found.estimate.round(3).tolist(), found.std_error.round(4).tolist()
    ([0.75, 0.25], [0.0444, 0.0444])
    >>> found.sampling.round(4).tolist(), found.randomization.round(4).tolist()
    ([0.0097, 0.0097], [0.0433, 0.0433])
    """
    checked_level(level)
    shares = proportions(counts, channel, n=n, level=level)
    N = checked_population(population, int(shares.reports.max()))
    sampling, randomization = _parts(shares, N)
    low, high = _ends(shares, counts, channel, N, level)
    return FiniteShares(
        estimate=shares.estimate,
        std_error=np.hypot(sampling, randomization),
        conf_low=low,
        conf_high=high,
        sampling=sampling,
        randomization=randomization,
        n=shares.n,
        population=N,
        level=level,
    )


def checked_population(population: int, n: int) -> int:
    """Return N as a whole number of at least n people, or raise DesignError."""
    whole = checked_whole(population, "population", DesignError)
    if whole > LARGEST_N:
        raise DesignError(f"population = {population:,} is above {LARGEST_N:,} people")
    if whole < n:
        raise DesignError(f"population = {population:,} is smaller than its {n:,} reports")
    return whole


def _parts(shares: Proportions, N: int) -> tuple[Floats, Floats]:
    """Return standard errors of sampling, (N-n)/(N-1) pi(1-pi)/n, and of randomization."""
    pi = np.clip(np.nan_to_num(shares.estimate), 0.0, 1.0)
    n = np.maximum(shares.reports, 1)
    has_reports = shares.reports > 0
    # (1 - n/N) N/(N-1) of the sampling variance remains.
    sampling = (N - shares.reports) / max(N - 1, 1) * shares.moments.sampling(pi) / n
    randomization = shares.moments.randomization(pi) / n
    return (
        np.sqrt(np.where(has_reports, sampling, np.nan)),
        np.sqrt(np.where(has_reports, randomization, np.nan)),
    )


def _ends(
    shares: Proportions, counts: ArrayLike, channel: AnyChannel, N: int, level: float
) -> tuple[Floats, Floats]:
    """Return the interval of each share; [0, 1] for options without reports."""
    chances = linear_estimator(channel).chances
    if isinstance(channel, WeightTable) and not chances:
        n, G = shares.n, left_inverse(channel)
        f, no_bias = np.asarray(counts) / n, np.zeros(len(G))
        remaining = (N - n) / max(N - 1, 1)
        return table_ends(f, n, channel, G, shares.moments, level, no_bias, sampled=remaining)
    low, high = np.zeros(len(chances)), np.ones(len(chances))
    for j, ((p, q), n) in enumerate(zip(chances, shares.reports.tolist(), strict=True)):
        if n:
            # The estimate determines the count of reports that support the option.
            count = np.array([round(n * (q + (p - q) * float(shares.estimate[j])))])
            ends = finite_population(count, n, min(p, q), max(p, q), level, N)
            (low[j],), (high[j],) = mapped_to_shares(ends, Chances(p, q))
    return low, high
