"""The posterior mean of shares under a Dirichlet prior, by name: never the default."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError
from survey.estimator.core.arguments import (
    checked_arguments,
    checked_level,
    reports_from,
    whole_counts,
    within_reach,
)
from survey.estimator.core.likelihood import require_two_options
from survey.estimator.core.result import Result
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.arrays import Floats, Integers

DRAWS = 10_000
"""Draws of the posterior that are kept, after a tenth as many that are not."""

BATCHES = 20
"""Parts of the draws whose means tell how far simulation may be off."""

MOST_DRAWS = 1_000_000
"""All of them are kept until their quantiles are known."""

SETTLED = 0.2
"""The simulation's error may be this part of a posterior deviation."""


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Result):
    """What is believed of the k shares after the counts, if the prior was believed before.

    estimate           posterior means, sum 1, never 0 or 1
    std_dev            posterior standard deviations
    cred_low           ends of the credible interval of equal tails; not a confidence interval:
    cred_high          it covers a share of 0 never
    simulation_error   standard error of `estimate` from the finite number of draws
    settled            whether that is small beside every deviation; if not, ask for more draws
    n, level           reports, and the belief in each interval
    prior              the sum of the prior's weights: the reports that the prior counts for
    """

    estimate: Floats
    std_dev: Floats
    cred_low: Floats
    cred_high: Floats
    simulation_error: Floats
    settled: bool
    n: int
    level: float
    prior: float


@checked_arguments
def dirichlet_mean(
    counts: ArrayLike,
    channel: SubsetSelection | WeightTable,
    *,
    prior: ArrayLike = 1.0,
    level: float = 0.95,
    draws: int = DRAWS,
    rng: np.random.Generator | None = None,
) -> Posterior:
    """The mean of the shares' posterior under Dirichlet(prior), through the channel.

    `counts` has one count per report (no reported sets, d > 1); `prior` is one weight for all
    truths or one for each, above 0: 1 is flat, 1/2 Jeffreys' for open answers. Simulated by data
    augmentation: given the shares, the truths behind each report are drawn,
    P(i | j) = pi_i P(j | i)/lambda_j; given those, the shares, from Dirichlet(prior + truths);
    kept is the mean of that Dirichlet (Rao and Blackwell). `rng` is seeded with 0 unless given, so
    that the same counts give the same numbers.

    Not a default: a prior pulls every share towards its own mean with the weight the data leave,
    and randomization leaves much. Flat, at k = 10, n = 1000, epsilon 1, an option that everybody
    holds is estimated at .76; intervals never cover a share of 0 (Feldman and Cousins' do). Use it
    where the prior is knowledge, and say so. Slow where the channel is weak: see `settled`.
    Source: Tanner and Wong 1987.

    Raises CountsError for counts this channel cannot have given, ChannelError for d > 1,
    ValueError for a prior, level or number of draws that is none.

    >>> from survey.mechanism import grr
    >>> dirichlet_mean([700, 1300], grr(2, "3/4")).estimate.round(2).tolist()
    [0.2, 0.8]
    """
    matrix = _matrix(channel)
    c = whole_counts(counts, matrix.shape[1], "one per report")
    n = reports_from(int(c.sum()), 1, None)
    weights = _checked_prior(prior, len(matrix))
    checked_level(level)
    if not BATCHES <= draws <= MOST_DRAWS:
        raise ValueError(f"draws = {draws} must be from {BATCHES} to {MOST_DRAWS:,}")
    means, shares = _chain(c, matrix, weights, draws, rng or np.random.default_rng(0))
    batches = np.stack([part.mean(axis=0) for part in np.array_split(means, BATCHES)])
    error = batches.std(axis=0, ddof=1) / np.sqrt(BATCHES)
    spread = shares.std(axis=0)
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(shares, tails, axis=0)
    return Posterior(
        estimate=means.mean(axis=0),
        std_dev=spread,
        cred_low=low,
        cred_high=high,
        simulation_error=error,
        settled=bool(np.all(error <= SETTLED * spread)),
        n=n,
        level=level,
        prior=float(weights.sum()),
    )


def _matrix(channel: SubsetSelection | WeightTable) -> Floats:
    """P(report | truth), shape (truths, reports)."""
    if isinstance(channel, SubsetSelection):
        require_two_options(channel)
        if channel.d > 1:
            raise ChannelError(f"d = {channel.d}: the posterior needs one count per reported set")
    return channel.matrix


def _checked_prior(prior: ArrayLike, truths: int) -> Floats:
    weights = np.asarray(prior, dtype=np.float64)
    if weights.shape not in ((), (truths,)) or not within_reach(weights).all():
        raise ValueError(f"prior must be one number, or one for each of the {truths} options")
    if (weights <= 0).any():
        raise ValueError(f"prior = {prior!r}: its weights must be above 0")
    return np.broadcast_to(weights, (truths,))


def _chain(
    c: Integers, matrix: Floats, prior: Floats, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Kept draws of the shares and of their conditional means, each of shape (draws, truths)."""
    seen = np.flatnonzero(c)
    c, P = c[seen], matrix[:, seen]
    warm_up = draws // 10
    pi = prior / prior.sum()
    means, shares = np.empty((draws, len(prior))), np.empty((draws, len(prior)))
    for draw in range(-warm_up, draws):
        joint = pi[:, None] * P
        behind = rng.multinomial(c, (joint / joint.sum(axis=0)).T).sum(axis=0)
        pi = rng.dirichlet(prior + behind)
        if draw >= 0:
            means[draw], shares[draw] = (prior + behind) / (prior.sum() + c.sum()), pi
    return means, shares
