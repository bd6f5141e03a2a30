"""Sample size, margin of error and epsilon, each from the other two."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from numbers import Real

import numpy as np

from survey.errors import DesignError
from survey.estimator.core.arguments import LARGEST_N, checked_arguments, checked_level
from survey.estimator.core.intervals import (
    DEFAULT_INTERVAL,
    Chances,
    ReportChances,
    normal_quantile,
)
from survey.estimator.core.result import Result
from survey.estimator.planning.expected_margin import (
    binomial_margin,
    checked_interval,
    finite_margin,
)

LARGEST_EPSILON = 12.0
"""Largest epsilon of a question (survey.mechanism.exact_numbers.MAX_EPSILON)."""

SMALLEST_EPSILON = 0.001
"""Smallest epsilon of a plan."""

MAX_OPTIONS = 10_000
LARGEST_MARGIN = 0.5

MIN_SQUARE = 1e-300
"""Minimum square of a margin in a denominator."""

ROUNDING = 1e-9
"""Numbers of reports are rounded down to a whole number if they exceed it by less than this."""


@dataclass(frozen=True)
class Question:
    """The checked question of a plan: one share, estimated through a channel at a level.

    chances   p and q of the channel; epsilon is the planned one, nan if unknown
    interval  name of the interval that will be used, for an unlimited population
    """

    chances: Chances
    epsilon: float
    share: float
    level: float
    population: int | None
    interval: str = DEFAULT_INTERVAL

    @property
    def z(self) -> float:
        """Return z with P(|N(0, 1)| <= z) = level."""
        return normal_quantile(self.level)

    @property
    def sampling(self) -> float:
        """Return S = pi(1-pi), the sampling variance of one report."""
        return self.share * (1 - self.share)

    @property
    def randomization(self) -> float:
        """Return m2 = [pi p(1-p) + (1-pi) q(1-q)] / (p-q)^2, the randomization's variance."""
        p, q = self.chances
        return (self.share * p * (1 - p) + (1 - self.share) * q * (1 - q)) / (p - q) ** 2

    def margin(self, n: int) -> float:
        """Return the expected half width of the interval at n reports."""
        if self.population is None:
            return binomial_margin(n, self.chances, self.share, self.level, self.interval)
        return finite_margin(n, self.chances, self.share, self.level, self.population)

    def parts(self, n: int) -> tuple[float, float]:
        """Return the two parts of the margin at n reports, whose squares add up to its square.

        They are in the ratio of the sampling variance (N-n)/(N-1) S/n to that of the randomization,
        m2/n.
        """
        N, margin = self.population, self.margin(n)
        sampling = self.sampling * (1.0 if N is None else (N - n) / max(N - 1, 1))
        total = sampling + self.randomization
        fraction = self.randomization / total if total else 0.0
        return margin * math.sqrt(1 - fraction), margin * math.sqrt(fraction)

    def normal_reports(self, margin: float) -> int:
        """Return the smallest n whose z standard errors are at most this margin.

        n = (S N/(N-1) + m2) / ((margin/z)^2 + S/(N-1)). For an unlimited N it is
        n = z^2 lambda(1-lambda) / (D^2 margin^2), since S + m2 = lambda(1-lambda)/D^2.
        """
        S, m2, N = self.sampling, self.randomization, self.population
        goal = max((margin / self.z) ** 2, MIN_SQUARE)
        if N is None:
            exact = (S + m2) / goal
        else:
            rest_of_population = max(N - 1, 1)
            exact = (S * N / rest_of_population + m2) / (goal + S / rest_of_population)
        return max(math.ceil(exact - ROUNDING), 1)

    def reports(self, margin: float) -> int:
        """Return the smallest n from which on the margin is at most this one; see `required_n`.

        The result may be above `LARGEST_N` or the population.
        """
        guess, limit = self.normal_reports(margin), self.population or LARGEST_N
        if guess > limit and (self.population is None or self.margin(limit) > margin):
            return guess
        return smallest_n(lambda n: self.margin(n) <= margin, min(guess, limit), limit)


def smallest_n(is_enough: Callable[[int], bool], guess: int, limit: int) -> int:
    """Return the smallest n with `LATER` enough numbers from n on; limit + 1 if there is none.

    Bisection around a guess finds the place where n becomes enough. Counts are whole numbers, so
    n + 1 is sometimes not enough although n is; then the search goes on behind it.

    >>> smallest_n(lambda n: n >= 40 and n != 41, 10, 100)
    42
    """
    low, high = 0, guess
    while not is_enough(high):
        if high == limit:
            return limit + 1
        low, high = high, min(2 * high, limit)
    step = 1
    while low == 0 and high - step > 0:
        if not is_enough(high - step):
            low = high - step
        else:
            high, step = high - step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    later = high + 1
    while later <= min(high + LATER, limit):
        if not is_enough(later):
            high = later + 1
        later += 1
    return high


def checked_plan(
    epsilon: float | None,
    channel: ReportChances | None,
    k: int,
    share: float,
    level: float,
    population: int | None,
    interval: str = DEFAULT_INTERVAL,
) -> Question:
    """Return the question, or raise DesignError that names the nearest allowed value."""
    check_question(k, share, level, population)
    checked_interval(interval, population)
    chances = plan_chances(epsilon, channel, k)
    planned = getattr(channel, "epsilon", math.nan) if epsilon is None else epsilon
    return Question(chances, float(planned), float(share), float(level), population, interval)


def plan_chances(epsilon: float | None, channel: ReportChances | None, k: int) -> Chances:
    """Return p and q of the epsilon or of the channel; DesignError unless exactly one is given."""
    if epsilon is not None and channel is None:
        return grr_chances(k, epsilon)
    if epsilon is not None or channel is None:
        raise DesignError("a plan needs an epsilon or a channel, one of the two")
    # A plan may have p and q that no constructor has checked.
    if not (0 <= channel.q <= 1 and 0 <= channel.p <= 1 and channel.p != channel.q):
        raise DesignError(f"p = {channel.p} and q = {channel.q} must be two different chances")
    return Chances(channel.p, channel.q)


def check_question(k: int, share: float, level: float, population: int | None) -> None:
    """Raise DesignError for values that no survey can have at any epsilon."""
    _check_whole("options", k, 2, MAX_OPTIONS)
    checked_share(share)
    checked_number("level", level)
    checked_level(level)
    if population is not None:
        _check_whole("population", population, 1, LARGEST_N)


def checked_number(name: str, value: float) -> float:
    """Return a value that may still be out of range, or raise DesignError for nan and texts."""
    # Only nan differs from itself; math.isnan fails for whole numbers above 10^308.
    if not isinstance(value, Real) or value != value:
        raise DesignError(f"{name} = {value} is not a number")
    return value


def checked_share(share: float) -> float:
    """Return a share from 0 to 1, or raise DesignError."""
    if not 0 <= checked_number("share", share) <= 1:
        nearest = 0 if share < 0 else 1
        raise DesignError(
            f"share = {share:g} must be from 0 to 1; the nearest allowed value is {nearest}"
        )
    return share


def rounded(value: float, decimals: int, digits: int) -> str:
    """Format a margin with `decimals`, or more if fewer than `digits` significant ones remain.

    >>> rounded(0.0421, 4, 3), rounded(0.00000421, 4, 3), rounded(0, 2, 2)
    ('0.0421', '0.00000421', '0.00')
    """
    # Of the rounded value: 0.00098 to one digit is 0.001.
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    places = digits - 1 - exponent if value else decimals
    return f"{value:,.{max(decimals, places)}f}"


def grr_chances(k: int, epsilon: float) -> Chances:
    """Return p = e^epsilon/(e^epsilon + k - 1) and q = 1/(e^epsilon + k - 1), for any real epsilon.

    >>> [round(x, 4) for x in grr_chances(2, 1)]
    [0.7311, 0.2689]
    """
    _check_whole("options", k, 2, MAX_OPTIONS)
    if not SMALLEST_EPSILON <= checked_number("epsilon", epsilon) <= LARGEST_EPSILON:
        nearest = SMALLEST_EPSILON if epsilon < SMALLEST_EPSILON else LARGEST_EPSILON
        raise DesignError(
            f"epsilon = {epsilon:g} must be from {SMALLEST_EPSILON} to {LARGEST_EPSILON:g}; "
            f"the nearest allowed value is {nearest:g}"
        )
    ratio = math.exp(epsilon)
    return Chances(ratio / (ratio + k - 1), 1 / (ratio + k - 1))


def checked_margin(margin: float) -> float:
    """Return a margin of error in shares, above 0 and at most 1/2, or raise DesignError."""
    if not 0 < checked_number("margin", margin) <= LARGEST_MARGIN:
        nearest = 0.001 if margin <= 0 else LARGEST_MARGIN
        raise DesignError(
            f"margin = {margin:g} must be above 0 and at most {LARGEST_MARGIN} "
            f"(3 points are 0.03); the nearest allowed value is {nearest:g}"
        )
    return margin


def checked_n(n: int, population: int | None = None) -> int:
    """Return a number of reports that is possible for this population, or raise DesignError."""
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


HALVINGS = 24
"""Steps of the search for an epsilon, which then is exact to 10^-6."""

LATER = 20
"""This many sizes after the required one must have the margin too."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Result):
    """The expected precision of a survey of n reports for one share.

    possible          whether some number of reports (or some epsilon) gives the requested margin
    n                 reports; if it is not possible, the population or the requested n
    margin            the expected half width of the interval at n reports, in shares
    sampling          its part without randomization
    randomization     its part if everybody were asked; the squares of both parts add up
    epsilon, p, q     of generalized randomized response, or of the given channel
    share             the assumed true share; 1/2 is the worst case for k = 2
    population        N, None for an unlimited population
    level             of the interval whose half width is the margin
    note              one sentence: the requirement, or why it is impossible and what is possible
    """

    possible: bool
    n: int
    margin: float
    sampling: float
    randomization: float
    epsilon: float
    p: float
    q: float
    share: float
    population: int | None
    level: float
    note: str


@checked_arguments
def required_n(
    margin: float,
    *,
    epsilon: float | None = None,
    channel: ReportChances | None = None,
    k: int = 2,
    share: float = 0.5,
    level: float = 0.95,
    population: int | None = None,
    interval: str = DEFAULT_INTERVAL,
) -> Plan:
    """Return the number of reports for a margin of error, half an interval's width in shares.

    For generalized randomized response of k options with `epsilon` (a real number: p =
    e^epsilon/(e^epsilon + k - 1); a device's integers differ by at most 10^-4), or for any
    `channel` with p and q. `share` is the assumed true share of the option. In a `population`, the
    reports are a random sample without replacement, and the randomization part has no
    finite-population correction. If even the whole population is too small, the result has
    `possible` False and the smallest possible margin.

    The margin is the expected half width of the interval that will be used: `interval` is a name
    that `proportions` accepts, and in a population it is the interval of `finite_shares`. It is
    enumerated where counts are small or the share is near 0 or 1, and z standard errors elsewhere
    (`binomial_margin`). It falls with n except for small steps, because counts are whole numbers: n
    is the smallest number for which it and the next 20 numbers have the margin.
    Source: Warner 1965 for the variance; Cochran 1977, section 4.4, for N.

    Raises DesignError for impossible values, with the nearest allowed one.

    >>> required_n(.03, epsilon=1).n, required_n(.03, epsilon=1, population=5000).n
    (4997, 4184)
    >>> required_n(.03, epsilon=12, share=.001).n  # z standard errors would ask for 5
    52
    >>> required_n(.03, epsilon=1, population=2000).note
    'not possible at this epsilon; the smallest possible margin is 0.0427'
    """
    question = checked_plan(epsilon, channel, k, share, level, population, interval)
    n = question.reports(checked_margin(margin))
    if n > LARGEST_N:
        raise DesignError(f"margin = {margin:g} would need {n:.3g} reports: choose a larger margin")
    if population is not None and n > population:
        minimum = question.margin(population)
        note = (
            f"not possible at this epsilon; the smallest possible margin is {_format_up(minimum)}"
        )
        return _plan(question, population, note, possible=False)
    return _plan(question, n, f"{n:,} reports are needed")


@checked_arguments
def margin_of(
    n: int,
    *,
    epsilon: float | None = None,
    channel: ReportChances | None = None,
    k: int = 2,
    share: float = 0.5,
    level: float = 0.95,
    population: int | None = None,
    interval: str = DEFAULT_INTERVAL,
) -> Plan:
    """Return the margin of error of n reports; other arguments as in `required_n`.

    >>> round(margin_of(4997, epsilon=1).margin, 4)
    0.03
    """
    question = checked_plan(epsilon, channel, k, share, level, population, interval)
    checked_n(n, population)
    margin = question.margin(n)
    return _plan(question, n, f"{n:,} reports give a margin of {_format(margin)}")


@checked_arguments
def required_epsilon(
    n: int,
    margin: float,
    *,
    k: int = 2,
    share: float = 0.5,
    level: float = 0.95,
    population: int | None = None,
    interval: str = DEFAULT_INTERVAL,
) -> Plan:
    """Return the smallest epsilon at which n reports give the margin; others as in `required_n`.

    Found by halving, because the margin falls as epsilon grows. It is not possible if the margin is
    larger even at epsilon 12, because of sampling or the remaining randomization.

    >>> round(required_epsilon(4997, .03).epsilon, 3)
    1.0
    >>> required_epsilon(500, .03).note
    'not possible with 500 reports at any epsilon; the smallest possible margin is 0.0442'
    """
    checked_margin(margin)

    def at(epsilon: float) -> Question:
        return checked_plan(epsilon, None, k, share, level, population, interval)

    strongest = at(LARGEST_EPSILON)
    checked_n(n, population)
    if (minimum := strongest.margin(n)) > margin:
        note = (
            f"not possible with {n:,} reports at any epsilon; "
            f"the smallest possible margin is {_format_up(minimum)}"
        )
        return _plan(strongest, n, note, possible=False)
    low, high = SMALLEST_EPSILON, LARGEST_EPSILON
    if at(low).margin(n) <= margin:
        high = low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle).margin(n) <= margin else (middle, high)
    return _plan(at(high), n, f"epsilon {high:.4g} is needed")


def _format(margin: float) -> str:
    return rounded(margin, decimals=4, digits=3)


def _format_up(margin: float) -> str:
    """Format a margin rounded up, because a margin called possible must be possible."""
    last = Decimal(1).scaleb(-len(_format(margin).partition(".")[2]))
    return f"{Decimal(margin).quantize(last, ROUND_CEILING):,}"


def _plan(question: Question, n: int, note: str, *, possible: bool = True) -> Plan:
    sampling, randomization = question.parts(n)
    return Plan(
        possible=possible,
        n=n,
        margin=question.margin(n),
        sampling=sampling,
        randomization=randomization,
        epsilon=question.epsilon,
        p=question.chances.p,
        q=question.chances.q,
        share=question.share,
        population=question.population,
        level=question.level,
        note=note,
    )
