"""Second moments of the values that stand for reports, and the errors that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from survey.mechanism.arrays import Floats, Integers

EFFECTIVE_RANGE = (0.01, 0.99)
"""Shares are clipped to this range before a number of effective answers is computed."""


ALIKE = 1e-12
"""Reports whose values scatter by less than this part of their mean square are all alike."""


def seen_variance(variance: Floats, square: Floats, least: Floats) -> Floats:
    """The variance of a report's value as seen; `least` where all reports are alike.

    Of reports that are all alike nothing is seen to scatter, and the error of a linear estimate
    would be 0 though another survey would give another one. `square` is the mean square of the
    values, `least` what randomization alone makes them scatter at the possible share next to the
    estimate. Where any two reports differ the plain formula, which is unbiased, is left as it is.

    >>> seen_variance(np.array([0.0, 0.1]), np.array([4.0, 4.0]), np.array([0.3, 0.3])).tolist()
    [0.3, 0.1]
    """
    # Not "greater": nan, of options that nobody was asked about, stays nan.
    return np.asarray(np.where(variance <= ALIKE * square, np.maximum(least, 0.0), variance))


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """How far one report's pseudo-value g_j scatters, whatever the other shares are.

    own     E[g_j^2 | the truth is j], shape (k,)
    other   the largest E[g_j^2 | the truth is i] of all i other than j, shape (k,)
    """

    own: Floats
    other: Floats

    def variance(self, share: Floats) -> Floats:
        """Var g_j <= x own + (1-x) other - x^2 at share x; equal where all others are alike."""
        return np.asarray(self.randomization(share) + self.sampling(share))

    def sampling(self, share: Floats) -> Floats:
        """x (1-x): what the answers themselves scatter, given openly."""
        return np.asarray(share * (1 - share))

    def randomization(self, share: Floats) -> Floats:
        """E[Var(g_j | truth)] = x (own-1) + (1-x) other, as E[g_j | truth j] = 1 and else 0."""
        return np.asarray(share * (self.own - 1) + (1 - share) * self.other)


def binary_moments(p: Floats, q: Floats) -> SecondMoments:
    """Of g = (supported - q)/(p-q), where a report supports its truth with p and others with q.

    E[g^2] = (s (1-q)^2 + (1-s) q^2)/(p-q)^2 with s the chance of support, p or q.
    """
    squared = (p - q) ** 2
    return SecondMoments(
        own=np.asarray((p * (1 - q) ** 2 + (1 - p) * q**2) / squared),
        other=np.asarray(q * (1 - q) / squared),
    )


def binary_error(f: Floats, reports: Integers, p: Floats, q: Floats) -> Floats:
    """sqrt(f(1-f)/n)/|p-q| of the linear estimate; of randomization alone where f is 0 or 1."""
    D2 = (p - q) ** 2
    x = np.clip((f - q) / (p - q), 0.0, 1.0)
    least = binary_moments(p, q).randomization(x)
    return np.asarray(np.sqrt(seen_variance(f * (1 - f) / D2, 1 / D2, least) / reports))


def effective_answers(estimate: Floats, reports: Integers, moments: SecondMoments) -> Floats:
    """pi(1-pi)/SE^2 with pi clipped; SE at the clipped pi, so that no count divides by zero."""
    pi = np.clip(np.nan_to_num(estimate), *EFFECTIVE_RANGE)
    return np.asarray(reports * pi * (1 - pi) / moments.variance(pi))
