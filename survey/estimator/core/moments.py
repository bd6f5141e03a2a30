"""Second moments of the values that stand for reports, and the errors that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from survey.mechanism.arrays import Floats, Integers

EFFECTIVE_RANGE = (0.01, 0.99)
"""Shares are clipped to this range before the effective number of answers is computed."""


IDENTICAL = 1e-12
"""Reports are identical if their variance is at most this fraction of their mean square."""


def observed_variance(variance: Floats, square: Floats, minimum: Floats) -> Floats:
    """Return the observed variance of a value, or `minimum` where all reports are identical.

    Identical reports have no observed variance, so a linear estimate would seem to have no error,
    although another survey would give another estimate. `square` is the mean square of the values.
    `minimum` is the variance that randomization alone causes at the possible share nearest to the
    estimate. Where any two reports differ, the plain formula is unbiased and stays.

    >>> observed_variance(np.array([0.0, 0.1]), np.array([4.0, 4.0]), np.array([0.3, 0.3])).tolist()
    [0.3, 0.1]
    """
    # "<=" is false for nan, so options without reports keep nan.
    return np.asarray(np.where(variance <= IDENTICAL * square, np.maximum(minimum, 0.0), variance))


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """Second moments of one report's pseudo-value g_j.

    own     E[g_j^2 | the truth is j], shape (k,)
    other   the largest E[g_j^2 | the truth is i] over all i other than j, shape (k,)
    """

    own: Floats
    other: Floats

    def variance(self, share: Floats) -> Floats:
        """Return x own + (1-x) other - x^2 at share x.

        It is an upper bound of Var g_j, and equal to it if E[g_j^2 | i] is the same for all i but
        j.
        """
        return np.asarray(self.randomization(share) + self.sampling(share))

    def sampling(self, share: Floats) -> Floats:
        """Return x (1-x), the variance of the answers without randomization."""
        return np.asarray(share * (1 - share))

    def randomization(self, share: Floats) -> Floats:
        """Return E[Var(g_j | truth)] = x (own-1) + (1-x) other.

        E[g_j | truth] is 1 for truth j and 0 otherwise.
        """
        return np.asarray(share * (self.own - 1) + (1 - share) * self.other)


def binary_moments(p: Floats, q: Floats) -> SecondMoments:
    """Return the moments of g = (supported - q)/(p-q).

    A report supports its truth with probability p and any other option with q. If s is p or q,
        E[g^2] = (s (1-q)^2 + (1-s) q^2)/(p-q)^2.
    """
    squared = (p - q) ** 2
    return SecondMoments(
        own=np.asarray((p * (1 - q) ** 2 + (1 - p) * q**2) / squared),
        other=np.asarray(q * (1 - q) / squared),
    )


def binary_error(f: Floats, reports: Integers, p: Floats, q: Floats) -> Floats:
    """Return sqrt(f(1-f)/n)/|p-q|, the standard error of the linear estimate.

    Where f is 0 or 1, return the error that randomization alone causes.
    """
    D2 = (p - q) ** 2
    x = np.clip((f - q) / (p - q), 0.0, 1.0)
    minimum = binary_moments(p, q).randomization(x)
    return np.asarray(np.sqrt(observed_variance(f * (1 - f) / D2, 1 / D2, minimum) / reports))


def effective_answers(estimate: Floats, reports: Integers, moments: SecondMoments) -> Floats:
    """Return pi(1-pi)/SE^2, with pi and the pi of SE clipped so that nothing divides by zero."""
    pi = np.clip(np.nan_to_num(estimate), *EFFECTIVE_RANGE)
    return np.asarray(reports * pi * (1 - pi) / moments.variance(pi))
