"""What a plan is for: one share, read through a channel, and which values it may have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import ndtri

from survey.errors import DesignError
from survey.estimator.counts import LARGEST_N, checked_level
from survey.estimator.intervals import Chances, ReportChances

LARGEST_EPSILON = 12.0
"""Largest epsilon of one question, anywhere (survey.mechanism.design.MAX_EPSILON)."""

SMALLEST_EPSILON = 0.001
"""Smallest epsilon a plan looks at."""

MOST_OPTIONS = 10_000
LARGEST_MARGIN = 0.5

LEAST_GOAL = 1e-300
"""Margins have squares of at least this where one divides by them."""

ROUNDING = 1e-9
"""Reports by which a number may be above a whole one and still be that one."""


@dataclass(frozen=True)
class Question:
    """What a plan is for: one share, read through a channel, with a level; all checked.

    chances   p and q of the channel; epsilon the one it was planned with, nan if not known
    """

    chances: Chances
    epsilon: float
    share: float
    level: float
    population: int | None

    @property
    def z(self) -> float:
        """P(|N(0, 1)| <= z) = level."""
        return float(ndtri((1 + self.level) / 2))

    @property
    def sampling(self) -> float:
        """S = pi(1-pi), for one report."""
        return self.share * (1 - self.share)

    @property
    def randomization(self) -> float:
        """m2 = [pi p(1-p) + (1-pi) q(1-q)] / (p-q)^2, for one report."""
        p, q = self.chances
        return (self.share * p * (1 - p) + (1 - self.share) * q * (1 - q)) / (p - q) ** 2

    def margin(self, n: int) -> tuple[float, float, float]:
        """z SE at n reports, and its parts: sampling (N-n)/(N-1) S/n, randomization m2/n."""
        N = self.population
        left = 1.0 if N is None else (N - n) / max(N - 1, 1)
        sampling = self.z * math.sqrt(left * self.sampling / n)
        randomization = self.z * math.sqrt(self.randomization / n)
        return math.hypot(sampling, randomization), sampling, randomization

    def reports(self, margin: float) -> int:
        """The fewest reports with at most this margin, whether or not there are as many people.

        n = (S N/(N-1) + m2) / ((margin/z)^2 + S/(N-1)); for N without end
        n = z^2 lambda(1-lambda) / (D^2 margin^2), since S + m2 = lambda(1-lambda)/D^2.
        """
        S, m2, N = self.sampling, self.randomization, self.population
        goal = max((margin / self.z) ** 2, LEAST_GOAL)
        if N is None:
            exact = (S + m2) / goal
        else:
            others = max(N - 1, 1)
            exact = (S * N / others + m2) / (goal + S / others)
        return max(math.ceil(exact - ROUNDING), 1)


def planned(
    epsilon: float | None,
    channel: ReportChances | None,
    k: int,
    share: float,
    level: float,
    population: int | None,
) -> Question:
    """The question, or DesignError saying which value is wrong and the nearest that is right."""
    if (epsilon is None) == (channel is None):
        raise DesignError("a plan needs an epsilon or a channel, one of the two")
    check_question(k, share, level, population)
    if channel is None:
        chances = grr_chances(k, epsilon if epsilon is not None else math.nan)
    else:
        chances = Chances(channel.p, channel.q)
        # Also what no constructor has checked: p and q of a plan on paper.
        if not (0 <= chances.q <= 1 and 0 <= chances.p <= 1 and chances.p != chances.q):
            raise DesignError(f"p = {chances.p} and q = {chances.q} must be two different chances")
        epsilon = float(getattr(channel, "epsilon", math.nan))
    return Question(chances, float(epsilon or 0.0), float(share), float(level), population)


def check_question(k: int, share: float, level: float, population: int | None) -> None:
    """Refuse what no survey can ask, whatever its epsilon, by name."""
    _check_whole("options", k, 2, MOST_OPTIONS)
    checked_share(share)
    checked_number("level", level)
    checked_level(level)
    if population is not None:
        _check_whole("population", population, 1, LARGEST_N)


def checked_number(name: str, value: float) -> float:
    """A value that may still be too small or too large, or DesignError for nan and texts."""
    # Only nan differs from itself; math.isnan fails for whole numbers above 10^308.
    if not isinstance(value, Real) or value != value:
        raise DesignError(f"{name} = {value} is not a number")
    return value


def checked_share(share: float) -> float:
    """A share from 0 to 1, or DesignError."""
    if not 0 <= checked_number("share", share) <= 1:
        nearest = 0 if share < 0 else 1
        raise DesignError(
            f"share = {share:g} must be from 0 to 1; the nearest allowed value is {nearest}"
        )
    return share


def rounded(value: float, decimals: int, digits: int) -> str:
    """A margin with its decimals, and with more where fewer than `digits` significant ones remain.

    >>> rounded(0.0421, 4, 3), rounded(0.00000421, 4, 3), rounded(0, 2, 2)
    ('0.0421', '0.00000421', '0.00')
    """
    # Of the rounded value: 0.00098 to one digit is 0.001.
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    places = digits - 1 - exponent if value else decimals
    return f"{value:,.{max(decimals, places)}f}"


def grr_chances(k: int, epsilon: float) -> Chances:
    """p = e^epsilon/(e^epsilon + k - 1) and q = 1/(e^epsilon + k - 1), for any real epsilon.

    >>> [round(x, 4) for x in grr_chances(2, 1)]
    [0.7311, 0.2689]
    """
    _check_whole("options", k, 2, MOST_OPTIONS)
    if not SMALLEST_EPSILON <= checked_number("epsilon", epsilon) <= LARGEST_EPSILON:
        nearest = SMALLEST_EPSILON if epsilon < SMALLEST_EPSILON else LARGEST_EPSILON
        raise DesignError(
            f"epsilon = {epsilon:g} must be from {SMALLEST_EPSILON} to {LARGEST_EPSILON:g}; "
            f"the nearest allowed value is {nearest:g}"
        )
    ratio = math.exp(epsilon)
    return Chances(ratio / (ratio + k - 1), 1 / (ratio + k - 1))


def checked_margin(margin: float) -> float:
    """A margin of error in shares, above 0 and at most 1/2, or DesignError."""
    if not 0 < checked_number("margin", margin) <= LARGEST_MARGIN:
        nearest = 0.001 if margin <= 0 else LARGEST_MARGIN
        raise DesignError(
            f"margin = {margin:g} must be above 0 and at most {LARGEST_MARGIN} "
            f"(3 points are 0.03); the nearest allowed value is {nearest:g}"
        )
    return margin


def checked_n(n: int, population: int | None = None) -> int:
    """A number of reports that a survey of so many people can have, or DesignError."""
    _check_whole("n", n, 1, LARGEST_N if population is None else population)
    return n


def _check_whole(name: str, value: int, low: int, high: int) -> None:
    checked_number(name, value)
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not low <= value <= high:
        nearest = int(min(max(value, low), high))
        raise DesignError(
            f"{name} = {value} must be a whole number from {low:,} to {high:,}; "
            f"the nearest allowed value is {nearest}"
        )
