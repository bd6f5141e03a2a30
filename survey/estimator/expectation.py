"""The most likely shares of a table's truths: expectation maximization with a proof of its end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOLERANCE = 1e-6
"""The likelihood found is within this, per report and in natural logs, of the largest there is."""

GOAL = 1e-8
"""It is searched until it is within this."""

MOST_ROUNDS = 20_000
"""Rounds of three steps each after which the search gives up; hundreds are usual."""

LARGEST_WORK = 2 * 10**10
"""Weights looked at after which it gives up, so that large tables end too."""


def expectation_maximization(counts: Integers, matrix: Floats) -> Floats:
    """Shares that maximize sum_j c_j log lambda_j, lambda = pi P; shape (truths,), sum 1.

    One step (iterative Bayesian update) is pi_i <- pi_i D_i with D_i = sum_j f_j P(j|i)/lambda_j;
    pairs of steps are extrapolated (SQUAREM), which never lowers the likelihood here because a
    worse point is not taken. The likelihood is concave, and by duality
    log L(best) - log L(pi) <= n log max_i D_i <= n (max_i D_i - 1): it ends when that gap is at
    most `GOAL`. Where it is above `TOLERANCE` when time is up the result is nan, never a wrong
    number.
    Where the rows of P are not independent the maximum may have several places; this is one.
    Sources: Agrawal and Aggarwal 2001; Varadhan and Roland 2008.

    >>> expectation_maximization(np.array([60, 40]), np.array([[.75, .25], [.25, .75]])).round(4)
    array([0.7, 0.3])
    """
    seen = np.flatnonzero(counts)
    f, P = counts[seen] / counts.sum(), matrix[:, seen]
    pi = np.full(len(P), 1 / len(P))
    gap = np.inf
    for _ in range(min(MOST_ROUNDS, LARGEST_WORK // (6 * P.size) + 1)):
        once, gap, _ = _step(pi, f, P)
        if gap <= GOAL:
            break
        twice, _, level = _step(once, f, P)
        further = extrapolated(pi, once, twice)
        # A step from `further` is compared with the one from `once`.
        ahead, _, reached = _step(further, f, P)
        pi = ahead if reached >= level else twice
    return pi if gap <= TOLERANCE else np.full(len(P), np.nan)


def _step(pi: Floats, f: Floats, P: Floats) -> tuple[Floats, float, float]:
    """The next shares, the duality gap max D - 1 and the log likelihood per report, both at pi."""
    shares = pi @ P
    gradient = P @ (f / shares)
    following = pi * gradient
    return (
        following / following.sum(),
        float(gradient.max()) - 1,
        float(f @ np.log(shares)),
    )


def extrapolated(pi: Floats, once: Floats, twice: Floats) -> Floats:
    """pi - 2 s r + s^2 v with r = F(pi) - pi, v = F(F(pi)) - F(pi) - r, s = -|r|/|v|."""
    r = once - pi
    v = twice - once - r
    curve = float(np.linalg.norm(v))
    if curve == 0:
        return twice
    s = min(-float(np.linalg.norm(r)) / curve, -1.0)
    further = pi - 2 * s * r + s**2 * v
    # A share at 0 could never grow again.
    further = np.where(further > 0, further, twice)
    return np.asarray(further / further.sum())
