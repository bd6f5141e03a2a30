"""The most likely shares of a table's truths, where expectation maximization ends, with a proof."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOLERANCE = 1e-6
"""The likelihood found is within this, per report and in natural logs, of the largest there is."""

GOAL = 1e-8
"""It is searched until it is within this."""

MOST_ROUNDS = 20_000
"""Rounds after which a search gives up: of three steps each where it goes by expectation
maximization, where hundreds are usual; of one where it goes by Newton's, where 7 to 16 are."""

LARGEST_WORK = 2 * 10**10
"""Weights looked at after which expectation maximization gives up, so that large tables end too."""

MOST_PRODUCTS = 10**11
"""The same for Newton's steps, each of which multiplies truths x truths x reports."""

MOST_TRUTHS = 3_000
"""More are not tried: the second derivatives of so many take 72 MB."""

CENTRING = 0.1
"""Part of the mean of pi s that each Newton step aims at."""

SHORT = 0.99
"""Part of the way to the nearest wall that a step may go."""


def most_likely_mixture(counts: Integers, matrix: Floats) -> Floats:
    """Shares that maximize sum_j c_j log lambda_j, lambda = pi P; shape (truths,), sum 1.

    The step of expectation maximization, pi_i <- pi_i D_i with D_i = sum_j f_j P(j|i)/lambda_j,
    rests where every D_i <= 1, and = 1 where pi_i > 0. With the slack s = 1 - D that is
    pi, s >= 0, pi s = 0, which Newton's method solves for pi s = mu, mu falling to 0 (primal-dual
    interior point): with H = P diag(f/lambda^2) P'

        (H + diag(s/pi)) dpi = mu/pi - (1 - D),    ds = 1 - D - s + H dpi.

    The same place as by expectation maximization, in about ten rounds instead of thousands. The
    likelihood is concave, and by duality log L(best) - log L(pi) <= n (max_i D_i - 1): it ends
    when that gap is at most `GOAL`. Where it is above `TOLERANCE` when time is up the result is
    nan, never a wrong number.
    Where the rows of P are not independent the maximum may have several places; this is one.
    Sources: Agrawal and Aggarwal 2001 (expectation maximization); Koenker and Mizera 2014 (by
    interior points); Wright 1997 (primal-dual steps).

    >>> most_likely_mixture(np.array([60, 40]), np.array([[.75, .25], [.25, .75]])).round(4)
    array([0.7, 0.3])
    """
    seen = np.flatnonzero(counts)
    f, P = counts[seen] / counts.sum(), matrix[:, seen]
    pi = np.full(len(P), 1 / len(P))
    slack = np.maximum(1 - P @ (f / (pi @ P)), CENTRING)
    found, least = pi, np.inf
    for _ in range(_rounds(P)):
        shares = pi @ P
        D = P @ (f / shares)
        # Of pi scaled to the sum 1.
        gap = float(D.max() * pi.sum()) - 1
        if gap < least:
            found, least = pi / pi.sum(), gap
        if gap <= GOAL:
            break
        try:
            pi, slack = _newton(pi, slack, D, P * (np.sqrt(f) / shares))
        except LinAlgError:
            break
    return found if least <= TOLERANCE else np.full(len(P), np.nan)


def _rounds(P: Floats) -> int:
    """How many rounds a table of this size may take."""
    if len(P) > MOST_TRUTHS:
        return 0
    return min(MOST_ROUNDS, MOST_PRODUCTS // (P.size * len(P)) + 1)


def _newton(pi: Floats, slack: Floats, D: Floats, Q: Floats) -> tuple[Floats, Floats]:
    """pi and s after one step, H = Q Q'; LinAlgError where rounding leaves nothing to solve."""
    mu = CENTRING * float(pi @ slack) / pi.size
    H = Q @ Q.T
    factor = cho_factor(H + np.diag(slack / pi), lower=True, check_finite=False)
    dpi = cho_solve(factor, mu / pi - (1 - D), check_finite=False)
    ds = 1 - D - slack + H @ dpi
    return pi + _reach(pi, dpi) * dpi, slack + _reach(slack, ds) * ds


def _reach(at: Floats, step: Floats) -> float:
    """The part of a step that keeps all of `at` above 0."""
    falls = step < 0
    return min(1.0, SHORT * float(np.min(at[falls] / -step[falls], initial=np.inf)))


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
