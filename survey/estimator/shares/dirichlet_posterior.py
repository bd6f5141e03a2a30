"""The Bayesian posterior of shares under a Dirichlet prior; never the default."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError
from survey.estimator.core.arguments import (
    CodeChannel,
    checked_arguments,
    checked_level,
    reports_from,
    whole_counts,
    within_reach,
)
from survey.estimator.core.maximum_likelihood import require_two_options
from survey.estimator.core.result import Result
from survey.mechanism import SubsetSelection
from survey.mechanism.channel import Floats, Integers

DRAWS = 10_000
"""Number of posterior draws, after a tenth as many warm-up draws."""

BATCHES = 20
"""Number of batches of draws whose means give the simulation error."""

MAX_DRAWS = 1_000_000
"""Maximum number of draws, because all stay in memory until their quantiles are known."""

SETTLED = 0.2
"""Maximum simulation error, as a fraction of a posterior deviation."""


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Result):
    """Posterior of the k shares, given the counts and a prior.

    estimate           posterior means, sum 1, never 0 or 1
    std_dev            posterior standard deviations
    cred_low           ends of the equal-tailed credible interval. It is not a confidence interval:
    cred_high          it never covers a share of 0
    simulation_error   standard error of `estimate` because the number of draws is finite
    settled            whether this is small beside every deviation; if not, ask for more draws
    n, level           reports, and the posterior probability of each interval
    prior              sum of the prior's weights: the number of reports that the prior is worth
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
    channel: CodeChannel,
    *,
    prior: ArrayLike = 1.0,
    level: float = 0.95,
    draws: int = DRAWS,
    rng: np.random.Generator | None = None,
) -> Posterior:
    """Return the posterior mean of the shares under Dirichlet(prior), through the channel.

    `counts` has one count per report (no reported sets, d > 1). `prior` is one weight for all
    truths or one for each, above 0: 1 is flat, 1/2 is Jeffreys' prior without randomization.
    Simulated by data augmentation: draw the truths behind each report given the shares, P(i | j) =
    pi_i P(j | i)/lambda_j, then the shares given the truths, from Dirichlet(prior + truths). The
    estimate is the mean of the means of these Dirichlets (Rao and Blackwell). `rng` has the seed 0
    unless given, so that the same counts give the same numbers.

    This is not a default: a prior pulls every share towards its mean, and randomization leaves the
    prior much weight. Use it if the prior is knowledge, and say so. It converges slowly for a weak
    channel: see `settled`. Source: Tanner and Wong 1987.

    Raises CountsError for counts that this channel cannot produce, ChannelError for d > 1,
    ValueError for an impossible prior, level or number of draws.

    >>> from survey.mechanism import grr
    >>> dirichlet_mean([700, 1300], grr(2, "3/4")).estimate.round(2).tolist()
    [0.2, 0.8]
    """
    if isinstance(channel, SubsetSelection):
        require_two_options(channel)
        if channel.d > 1:
            raise ChannelError(f"d = {channel.d}: the posterior needs one count per reported set")
    matrix = channel.matrix
    c = whole_counts(counts, matrix.shape[1], "one per report")
    n = reports_from(int(c.sum()), 1, None)
    weights = _checked_prior(prior, len(matrix))
    checked_level(level)
    if not BATCHES <= draws <= MAX_DRAWS:
        raise ValueError(f"draws = {draws} must be from {BATCHES} to {MAX_DRAWS:,}")
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
    """Return draws of the shares and of their conditional means, each of shape (draws, truths)."""
    reported = np.flatnonzero(c)
    c, P = c[reported], matrix[:, reported]
    warm_up = draws // 10
    pi = prior / prior.sum()
    means, shares = np.empty((draws, len(prior))), np.empty((draws, len(prior)))
    for draw in range(-warm_up, draws):
        joint = pi[:, None] * P
        truths = rng.multinomial(c, (joint / joint.sum(axis=0)).T).sum(axis=0)
        pi = rng.dirichlet(prior + truths)
        if draw >= 0:
            means[draw], shares[draw] = (prior + truths) / (prior.sum() + c.sum()), pi
    return means, shares
