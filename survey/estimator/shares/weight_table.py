"""Shares of a weight table's truths: pseudo-values, Wilson's score interval, most likely shares."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError
from survey.estimator.core.arguments import checked_arguments, reports_from, whole_counts
from survey.estimator.core.intervals import DEFAULT_INTERVAL, FIXED_POPULATION, score_ends
from survey.estimator.core.likelihood import most_likely_mixture
from survey.estimator.core.moments import SecondMoments, effective_answers, observed_variance
from survey.estimator.core.pseudo_values import expected, left_inverse, pseudo_values
from survey.estimator.shares.binomial import (
    POPULATION,
    RESPONDENTS,
    IntervalOptions,
    Proportions,
    binomial_shares,
)
from survey.mechanism import WeightTable
from survey.mechanism.arrays import Floats, Integers

SCORE = "score"

CACHED_QUESTIONS = 64
"""Number of questions whose most likely shares are cached, with 8 bytes per truth and report."""


def table_shares(
    counts: Integers, n: int, channel: WeightTable, interval_options: IntervalOptions
) -> Proportions:
    """Estimate the shares of a weight table: counts[j] of the n reports are report j.

    Tables of two truths and two reports are binomial, with p and q of each truth. All others use
    the linear estimate of least variance at uniform truth, its error from the counts, the score
    interval, and the most likely shares by expectation maximization.
    """
    if channel.truths == channel.reports == 2:
        P = channel.matrix
        p, q = np.diag(P).copy(), np.diag(P[::-1]).copy()
        return binomial_shares(counts, np.full(2, n), p, q, interval_options, n=n)
    G = left_inverse(channel)
    moments = _second_moments(channel, G, range(channel.truths))
    mle = _most_likely(counts.tobytes(), channel).copy()
    return _score_shares(counts, n, G, moments, np.zeros(len(G)), mle, interval_options)


@lru_cache(maxsize=CACHED_QUESTIONS)
def _most_likely(counts: bytes, channel: WeightTable) -> Floats:
    """Return the most likely shares, cached for the estimates among all and among those who
    answered.
    """
    return most_likely_mixture(np.frombuffer(counts, dtype=np.int64), channel.matrix)


@checked_arguments
def no_answer_shares(
    counts: ArrayLike,
    channel: WeightTable,
    *,
    level: float = 0.95,
    simultaneous: bool = False,
    target: str = POPULATION,
) -> Proportions:
    """Estimate the shares of the truths that are no answer ("prefer not to say") among all people.

    This works even for tables whose other shares cannot be estimated, such as one bit. `counts` are
    one per report. Arrays have one number per such truth; the mle is the estimate clipped to [0,
    1], each alone. `level`, `simultaneous` (over these truths) and `target` are those of
    `proportions`.

    >>> from survey.mechanism.numeric import one_bit
    >>> no_answer_shares([500, 480, 300], one_bit(11, 1, no_answers=1)).estimate.round(2).tolist()
    [0.06]
    """
    if channel.no_answers == 0:
        raise ChannelError("this table has no truth that stands for no answer")
    c = whole_counts(counts, channel.reports, "one per report")
    n = reports_from(int(c.sum()), 1, None)
    truths = range(channel.truths - channel.no_answers, channel.truths)
    solutions = [pseudo_values(channel, np.eye(1, channel.truths, t)[0], n) for t in truths]
    G = np.stack([solution.values for solution in solutions])
    bias = np.array([solution.bias for solution in solutions])
    mle = np.clip(G @ (c / c.sum()), 0.0, 1.0)
    interval_options = IntervalOptions.of(target, DEFAULT_INTERVAL, level, simultaneous)
    return _score_shares(c, n, G, _second_moments(channel, G, truths), bias, mle, interval_options)


def _second_moments(channel: WeightTable, G: Floats, truths: range) -> SecondMoments:
    """Return m_i = E[g_j^2 | i] of row j of G: at truth j, and the largest at the others."""
    squares = np.stack([expected(channel, g**2) for g in G])
    rows = np.arange(len(G))
    at_truth = squares[rows, list(truths)]
    squares[rows, list(truths)] = 0.0
    return SecondMoments(at_truth, squares.max(axis=1))


def _score_shares(
    counts: Integers,
    n: int,
    G: Floats,
    moments: SecondMoments,
    bias: Floats,
    mle: Floats,
    interval_options: IntervalOptions,
) -> Proportions:
    names = {DEFAULT_INTERVAL: SCORE, SCORE: SCORE, FIXED_POPULATION: FIXED_POPULATION}
    if interval_options.interval not in names:
        raise ValueError(
            f"unknown interval {interval_options.interval!r} of a table; the names are {SCORE} "
            f"and {FIXED_POPULATION}"
        )
    fixed = interval_options.target == RESPONDENTS
    f = counts / n
    estimate = G @ f
    low, _ = score_interval(
        estimate - bias, n, moments, interval_options.level_of_each(len(G)), fixed=fixed
    )
    _, high = score_interval(
        estimate + bias, n, moments, interval_options.level_of_each(len(G)), fixed=fixed
    )
    # E g^2 - E[g]^2 is the variance of sampling and randomization;
    # E g^2 - E[E[g | truth]^2] = E g^2 - pi is that of randomization alone.
    explained = np.clip(estimate, 0.0, 1.0) if fixed else estimate**2
    square = G**2 @ f
    minimum = moments.randomization(np.clip(estimate, 0.0, 1.0))
    variance = observed_variance(square - explained, square, minimum)
    return Proportions(
        estimate=estimate,
        mle=mle,
        std_error=np.sqrt(variance / n),
        conf_low=low,
        conf_high=high,
        n=n,
        n_effective=effective_answers(estimate, np.full(len(G), n), moments),
        level=interval_options.level,
        method=interval_options.method(names[interval_options.interval]),
        reports=np.full(len(G), n),
        moments=moments,
    )


def score_interval(
    estimate: Floats, n: int, moments: SecondMoments, level: float, *, fixed: bool = False
) -> tuple[Floats, Floats]:
    """Return `score_ends` in [0, 1], with the largest variance that the other options could cause.

    The estimate is clipped to [0, 1] first, which only widens the interval: it always has a width.
    """
    x = np.clip(estimate, 0.0, 1.0)
    low, high = score_ends(x, n, moments.own, moments.other, level, fixed=fixed)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
