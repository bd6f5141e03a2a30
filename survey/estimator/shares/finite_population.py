"""Finite populations: sampling a good part of one makes shares surer, but not the randomization."""

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
from survey.estimator.core.intervals import continuity, normal_quantile
from survey.estimator.core.moments import SecondMoments
from survey.estimator.core.result import Result
from survey.estimator.shares.binomial import Proportions
from survey.estimator.shares.proportions import proportions
from survey.estimator.shares.tally import reading
from survey.mechanism import AnyChannel
from survey.mechanism.arrays import Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class FiniteShares(Result):
    """Shares of the k true answers in a population of N people; arrays have shape (k,).

    estimate        linear in the counts; may lie outside [0, 1]
    std_error       of `estimate`: sampling and randomization together
    conf_low        ends of the interval, in [0, 1], never of zero width
    conf_high
    sampling        the part of std_error that asking only n of the N people leaves
    randomization   the part that perturbing leaves, even when everybody is asked; their squares
                    add up to that of std_error
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
    the first part vanishes when everybody is asked, the second does not. Where each person was
    asked some of the options, n and N are for the option. The interval is the score interval of
    that variance with the continuity correction C/(n|D|) (`continuity`); with n = N it is
    "fixed-population".
    `margin_split` splits the margins of `proportions`, of very many people, in the same way.
    Coverage at .95, by enumeration of every outcome of every population (k 2, 4, 10, epsilon .5
    to 12, N 10 to 200, n from N/10 to N): at least .950.

    Raises DesignError for a population smaller than n, and as `proportions`.

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
    low, high = _score_ends(shares, channel, N, level)
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
    """N as a whole number of at least n people, or DesignError."""
    whole = checked_whole(population, "population", DesignError)
    if whole > LARGEST_N:
        raise DesignError(f"population = {population:,} is above {LARGEST_N:,} people")
    if whole < n:
        raise DesignError(f"population = {population:,} is smaller than its {n:,} reports")
    return whole


def _parts(shares: Proportions, N: int) -> tuple[Floats, Floats]:
    """Standard errors of sampling, (N-n)/(N-1) pi(1-pi)/n, and of randomization."""
    pi = np.clip(np.nan_to_num(shares.estimate), 0.0, 1.0)
    n = np.maximum(shares.reports, 1)
    asked = shares.reports > 0
    sampling = _left_out(shares.reports, N) * shares.moments.sampling(pi) / n
    randomization = shares.moments.randomization(pi) / n
    return (
        np.sqrt(np.where(asked, sampling, np.nan)),
        np.sqrt(np.where(asked, randomization, np.nan)),
    )


def _left_out(n: Integers, N: int) -> Floats:
    """(1 - n/N) N/(N-1): how much of the sampling variance is left."""
    return np.asarray((N - n) / max(N - 1, 1))


def _score_ends(
    shares: Proportions, channel: AnyChannel, N: int, level: float
) -> tuple[Floats, Floats]:
    n = np.maximum(shares.reports, 1).astype(np.float64)
    chances = reading(channel).chances
    # Reports of more than two kinds add up to no lattice of steps 1/(n|D|).
    step = np.zeros(n.shape)
    if chances:
        step = continuity(level) * np.array([1 / abs(p - q) for p, q in chances]) / n
    left = _left_out(shares.reports, N)
    estimate = np.nan_to_num(shares.estimate)
    ends = [
        _score_end(side, np.clip(estimate + side * step, 0, 1), n, shares.moments, left, level)
        for side in (-1, 1)
    ]
    asked = shares.reports > 0
    return np.where(asked, ends[0], 0.0), np.where(asked, ends[1], 1.0)


def _score_end(
    side: int, estimate: Floats, n: Floats, moments: SecondMoments, left: Floats, level: float
) -> Floats:
    """The x farthest to one side with n (est - x)^2 <= z^2 V(x), in [0, 1].

    V(x) = phi x(1-x) + x A + (1-x) B, with phi what is left of the sampling variance and A, B the
    variance of one report's value among people with and without the answer; a quadratic in x.
    """
    z2 = normal_quantile(level) ** 2
    A, B = moments.own - 1, moments.other
    slope = left + A - B
    h = n * estimate + z2 * slope / 2
    variance = left * estimate * (1 - estimate) + estimate * A + (1 - estimate) * B
    spread = z2 * (n * variance + z2 * (slope**2 / 4 + left * B))
    return np.asarray(np.clip((h + side * np.sqrt(spread)) / (n + z2 * left), 0.0, 1.0))
