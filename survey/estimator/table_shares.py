"""Shares of a weight table's truths: pseudo-values, Wilson's score interval, most likely shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from survey.errors import ChannelError
from survey.estimator.binomial import Asked, binomial_shares
from survey.estimator.counts import reports_from, whole_counts
from survey.estimator.expectation import expectation_maximization
from survey.estimator.intervals import DEFAULT_INTERVAL
from survey.estimator.pseudo_values import expected, left_inverse, pseudo_values
from survey.estimator.shares import Proportions, SecondMoments, effective_answers
from survey.mechanism import WeightTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SCORE = "score"


def table_shares(counts: Integers, n: int, channel: WeightTable, asked: Asked) -> Proportions:
    """`proportions` for a weight table: counts[j] of the n reports were report j.

    Two truths and two reports are binomial, with the p and q of each. All others: the linear
    estimate of least variance at uniform truth, its error from the counts, the score interval,
    and the most likely shares by expectation maximization.
    """
    if channel.truths == channel.reports == 2:
        P = channel.matrix
        p, q = np.diag(P).copy(), np.diag(P[::-1]).copy()
        return binomial_shares(counts, np.full(2, n), p, q, asked, n=n)
    G = left_inverse(channel)
    moments = _second_moments(channel, G, range(channel.truths))
    mle = expectation_maximization(counts, channel.matrix)
    return _score_shares(counts, n, G, moments, np.zeros(len(G)), mle, asked)


def no_answer_shares(
    counts: NDArray[np.int64], channel: WeightTable, *, level: float = 0.95
) -> Proportions:
    """Shares of the truths that are no answer ("prefer not to say"), among all people.

    They can be learned also from tables whose other shares cannot, such as one bit. `counts` are
    one per report. Arrays have one number per such truth; there is no mle (nan).

    >>> from survey.mechanism.numeric import one_bit
    >>> no_answer_shares([500, 480, 300], one_bit(11, 1, no_answers=1)).estimate.round(2).tolist()
    [0.06]
    """
    if channel.no_answers == 0:
        raise ChannelError("this table has no truth that stands for no answer")
    c = whole_counts(counts, channel.reports, "one per report")
    n = reports_from(int(c.sum()), 1, None)
    truths = range(channel.truths - channel.no_answers, channel.truths)
    found = [pseudo_values(channel, np.eye(1, channel.truths, t)[0], n) for t in truths]
    G = np.stack([one.values for one in found])
    bias = np.array([one.bias for one in found])
    mle = np.full(len(G), np.nan)
    asked = Asked(DEFAULT_INTERVAL, level, False)
    return _score_shares(c, n, G, _second_moments(channel, G, truths), bias, mle, asked)


def _second_moments(channel: WeightTable, G: Floats, truths: range) -> SecondMoments:
    """m_i = E[g_j^2 | i] of row j of G: at truth j, and the largest at the others."""
    squares = np.stack([expected(channel, g**2) for g in G])
    rows = np.arange(len(G))
    own = squares[rows, list(truths)]
    squares[rows, list(truths)] = 0.0
    return SecondMoments(own, squares.max(axis=1))


def _score_shares(
    counts: Integers,
    n: int,
    G: Floats,
    moments: SecondMoments,
    bias: Floats,
    mle: Floats,
    asked: Asked,
) -> Proportions:
    if asked.interval not in (DEFAULT_INTERVAL, SCORE):
        raise ValueError(f"unknown interval {asked.interval!r} of a table; it is {SCORE!r}")
    f = counts / n
    estimate = G @ f
    low, _ = score_interval(estimate - bias, n, moments, asked.each(len(G)))
    _, high = score_interval(estimate + bias, n, moments, asked.each(len(G)))
    return Proportions(
        estimate=estimate,
        mle=mle,
        # Var g from the counts, sampling and randomization together.
        std_error=np.sqrt(np.maximum(G**2 @ f - estimate**2, 0.0) / n),
        conf_low=low,
        conf_high=high,
        n=n,
        n_effective=effective_answers(estimate, np.full(len(G), n), moments),
        level=asked.level,
        method=asked.method(SCORE),
        reports=np.full(len(G), n),
        moments=moments,
    )


def score_interval(
    estimate: Floats, n: int, moments: SecondMoments, level: float
) -> tuple[Floats, Floats]:
    """Wilson's score interval with the largest variance the other options could give.

    The x with n (est - x)^2 <= z^2 (x m + (1-x) M - x^2), m = E[g^2 | own truth], M the largest
    E[g^2 | another], in [0, 1]. The estimate is clipped to [0, 1] for it, which only adds to the
    interval, so that it always has a width. Source: Wilson 1927, for a mean instead of a count.
    """
    if not 0 < level < 1:
        raise ValueError(f"level = {level!r} must be between 0 and 1, for example 0.95")
    z2 = float(ndtri((1 + level) / 2)) ** 2
    x = np.clip(estimate, 0.0, 1.0)
    # (n + z^2) x^2 - 2 h x + n est^2 - z^2 M = 0, h = n est + z^2 (m - M)/2
    h = n * x + z2 * (moments.own - moments.other) / 2
    # h^2 - (n + z^2)(n est^2 - z^2 M), without the difference of two numbers of size n^2
    spread = z2 * (
        n * (x * moments.own + (1 - x) * moments.other - x**2)
        + z2 * ((moments.own - moments.other) ** 2 / 4 + moments.other)
    )
    root = np.sqrt(spread)
    low, high = (h - root) / (n + z2), (h + root) / (n + z2)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
