"""Smoothed expectation maximization: shares of neighbouring values that do not jump about."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_CHANGE = 1e-3
"""It ends when a round changes the log likelihood of all reports by less (Li et al. 2020)."""

MOST_ROUNDS = 10_000
"""Rounds after which it gives up; tens are usual."""


def smoothed_shares(counts: Integers, matrix: Floats, along: Integers) -> tuple[Floats, bool]:
    """Shares of all truths, shape (truths,), and whether the rounds settled.

    Every round is one of expectation maximization, pi_i <- pi_i sum_j f_j P(j|i)/lambda_j with
    lambda = pi P, and then one of smoothing with the weights 1/4, 1/2, 1/4 along the truths
    `along`, which are in the order of their values; an end counts as its own neighbour, so the
    sum of their shares stays. Truths that are not in `along` ("prefer not to say") are not
    smoothed. The shares are biased towards smooth ones: for display, where the rows of P are so
    much alike that the most likely shares are a few spikes. On a scale of a few options plain
    expectation maximization is better. Source: Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric 2020,
    section 5.5 (EMS); Silverman, Jones, Wilson, Nychka 1990.

    >>> P = np.array([[.6, .2, .2], [.2, .6, .2], [.2, .2, .6]])
    >>> smoothed_shares(np.array([60, 20, 20]), P, np.arange(3))[0].round(2).tolist()
    [0.51, 0.31, 0.18]
    """
    seen = np.flatnonzero(counts)
    n = int(counts.sum())
    f, P = counts[seen] / n, matrix[:, seen]
    pi, before = np.full(len(P), 1 / len(P)), -np.inf
    for _ in range(MOST_ROUNDS):
        reported = pi @ P
        level = n * float(f @ np.log(reported))
        if abs(level - before) < LEAST_CHANGE:
            return pi, True
        before = level
        pi = pi * (P @ (f / reported))
        pi[along] = smooth(pi[along])
        pi /= pi.sum()
    return pi, False


def smooth(shares: Floats) -> Floats:
    """Each share replaced by a quarter, a half and a quarter of it and its two neighbours.

    >>> smooth(np.array([0.0, 1.0, 0.0, 0.0])).tolist()
    [0.25, 0.5, 0.25, 0.0]
    """
    padded = np.concatenate([shares[:1], shares, shares[-1:]])
    return np.asarray((padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4)
