"""Power: the probability that a test finds a difference between two shares, or from a known one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from survey.errors import DesignError
from survey.estimator.core.arguments import LARGEST_N, checked_arguments
from survey.estimator.core.intervals import (
    DEFAULT_INTERVAL,
    INTERVALS,
    Chances,
    ReportChances,
    normal_quantile,
)
from survey.estimator.core.result import Result
from survey.estimator.planning.expected_margin import (
    MAX_VARIANCE,
    TINY,
    binomial_outcomes,
    checked_interval,
)
from survey.estimator.planning.sample_size import (
    ROUNDING,
    checked_n,
    checked_number,
    checked_share,
    plan_chances,
    smallest_n,
)
from survey.mechanism.channel import Booleans, Integers

FEW_COUNTS = 9.0
"""Below this n lambda(1-lambda) in one group, the power of a comparison is enumerated."""

SMALLEST_SIGNIFICANCE = 1e-9
"""A test by an interval needs a larger one: 1 less it would lose its double precision."""

FAR = 8
"""The search starts this number of counts beyond two margins from the expected count."""

SMALLEST_SCALE = 10_000
"""Searches never use fewer reports than this instead of the real number."""

MAX_PAIRS = 2_000
"""Maximum number of outcomes of each group in an enumeration."""


@dataclass(frozen=True, eq=False, repr=False)
class Power(Result):
    """A planned comparison of a share in two groups.

    power         probability that the test finds a difference, if the shares are these
    n_a, n_b      reports of each group
    difference    share_b - share_a
    std_error     of the estimated difference, if the shares are these
    significance  probability to find a difference if there is none: two-sided level of the test
    """

    power: float
    n_a: int
    n_b: int
    difference: float
    std_error: float
    significance: float


@checked_arguments
def power(
    n_a: int,
    n_b: int,
    share_a: float,
    share_b: float,
    *,
    epsilon: float | None = None,
    channel: ReportChances | None = None,
    k: int = 2,
    significance: float = 0.05,
) -> Power:
    """Return the probability that a two-sided z test finds the difference between two groups.

    Both groups answer through the same channel: generalized randomized response of k options
    with `epsilon`, or any with p and q. The test compares two shares of reports with their pooled
    standard error, which D = p - q does not change:
        power = P(|Z| > z) = Phi((|d| - z s_0)/s_1) + Phi((-|d| - z s_0)/s_1),
    d the difference of the lambdas, s_0^2 = l(1-l)(1/n_a + 1/n_b) with their weighted mean l,
    s_1^2 = sum of lambda(1-lambda)/n. Where n lambda(1-lambda) of a group is below 9, all outcomes
    of both groups are enumerated instead. Source: Fleiss 1981, section 3.

    >>> round(power(500, 500, .2, .4, epsilon=1).power, 3)
    0.846
    """
    p, q = plan_chances(epsilon, channel, k)
    _check_significance(significance)
    checked_n(n_a)
    checked_n(n_b)
    a, b = (q + (p - q) * checked_share(share) for share in (share_a, share_b))
    s1 = math.sqrt(a * (1 - a) / n_a + b * (1 - b) / n_b)
    if s1 == 0:
        raise DesignError("both shares of reports are certain, so there is nothing to test")
    probability = _power_of_comparison(n_a, n_b, a, b, significance)
    return Power(probability, n_a, n_b, share_b - share_a, s1 / abs(p - q), significance)


def _power_of_comparison(n_a: int, n_b: int, a: float, b: float, significance: float) -> float:
    """Return the power for the shares of reports a and b, enumerated if counts are small."""
    from scipy.special import ndtr, ndtri

    z, d = float(ndtri(1 - significance / 2)), abs(b - a)
    if min(n_a * a * (1 - a), n_b * b * (1 - b)) < FEW_COUNTS:
        return _enumerated_power(n_a, n_b, a, b, z)
    pooled = (n_a * a + n_b * b) / (n_a + n_b)
    s0 = math.sqrt(pooled * (1 - pooled) * (1 / n_a + 1 / n_b))
    s1 = math.sqrt(a * (1 - a) / n_a + b * (1 - b) / n_b)
    return float(ndtr((d - z * s0) / s1) + ndtr((-d - z * s0) / s1))


def _enumerated_power(n_a: int, n_b: int, a: float, b: float, z: float) -> float:
    """Return P(|f_b - f_a| > z sqrt(f(1-f)(1/n_a + 1/n_b))), f the share in both groups."""
    (c_a, weights_a), (c_b, weights_b) = (
        binomial_outcomes(n, chance, MAX_PAIRS) for n, chance in ((n_a, a), (n_b, b))
    )
    f_a, f_b = c_a[:, None] / n_a, c_b / n_b
    pooled = (n_a * f_a + n_b * f_b) / (n_a + n_b)
    error2 = np.maximum(pooled * (1 - pooled), 0.0) * (1 / n_a + 1 / n_b)
    return float(weights_a @ ((f_b - f_a) ** 2 > z**2 * error2) @ weights_b)


@checked_arguments
def required_n_difference(
    share_a: float,
    share_b: float,
    *,
    epsilon: float | None = None,
    channel: ReportChances | None = None,
    k: int = 2,
    target: float = 0.8,
    significance: float = 0.05,
    ratio: float = 1.0,
) -> Power:
    """Return the fewest reports of two groups for a given power.

    `ratio` is n_b / n_a, `target` the requested power. With s_0, s_1 of one report of group a,
        n_a = ((z_(1-alpha/2) s_0 + z_power s_1) / d)^2,
    rounded up. Without randomization (p = 1, q = 0) it is the textbook's n.

    >>> found = required_n_difference(.2, .4, epsilon=1)
    >>> found.n_a, found.n_b
    (443, 443)
    >>> required_n_difference(.5, .75, channel=Chances(1, 0), target=.9).n_a
    77
    """
    from scipy.special import ndtri

    p, q = plan_chances(epsilon, channel, k)
    _check_significance(significance)
    _check_target(target, significance)
    if not 0 < checked_number("ratio", ratio) < math.inf:
        raise DesignError(f"ratio = {ratio:g} must be a number above 0: n_b / n_a")
    a, b = (q + (p - q) * checked_share(share) for share in (share_a, share_b))
    if a == b:
        raise DesignError(
            "both groups have the same share, so no number of reports shows a difference"
        )
    pooled = (a + ratio * b) / (1 + ratio)
    s0 = math.sqrt(pooled * (1 - pooled) * (1 + 1 / ratio))
    s1 = math.sqrt(a * (1 - a) + b * (1 - b) / ratio)
    z, reach = float(ndtri(1 - significance / 2)), float(ndtri(target))
    n = max(((z * s0 + reach * s1) / (b - a)) ** 2, 1.0)
    if n * max(1.0, ratio) > LARGEST_N:
        raise DesignError(f"this difference would need {n:.3g} reports of each group")

    def other(n_a: int) -> int:
        return math.ceil(n_a * ratio - ROUNDING)

    n_a = math.ceil(n - ROUNDING)
    if min(n_a * a * (1 - a), other(n_a) * b * (1 - b)) < 2 * FEW_COUNTS:
        # The formula is wrong for few reports, which may be enough.
        n_a = smallest_n(
            lambda n_a: _power_of_comparison(n_a, other(n_a), a, b, significance) >= target,
            n_a,
            LARGEST_N,
        )
    return power(
        n_a, other(n_a), share_a, share_b, channel=Chances(p, q), significance=significance
    )


@dataclass(frozen=True, eq=False, repr=False)
class OneGroupPower(Result):
    """A planned test of one group's share against a known share.

    power         probability that the interval excludes the known share, if `share` is true
    size          the same if the known share is true: the real level of the test
    n             reports
    share         assumed true share
    known         known share
    accepted      smallest and largest number of reports for the option that do not reject it
    significance  nominal level of the test; 1 - significance is the level of the interval
    method        name of the interval
    """

    power: float
    size: float
    n: int
    share: float
    known: float
    accepted: tuple[int, int]
    significance: float
    method: str


@checked_arguments
def power_against(
    n: int,
    share: float,
    known: float,
    *,
    epsilon: float | None = None,
    channel: ReportChances | None = None,
    k: int = 2,
    significance: float = 0.05,
    interval: str = DEFAULT_INTERVAL,
) -> OneGroupPower:
    """Return the probability that the interval of n reports excludes a known share.

    The test rejects `known` if the interval of `proportions` at level 1 - significance does not
    contain it. The number c of reports for the option is Binomial(n, lambda), so with the counts
    c_1 to c_2 whose intervals contain `known`,
        power = P(c < c_1) + P(c > c_2) at lambda(share), size = the same at lambda(known):
    exact at every n. With the default interval, size is at most `significance`.

    >>> found = power_against(500, .3, .2, epsilon=1)
    >>> round(found.power, 3), round(found.size, 3), found.accepted
    (0.546, 0.045, (160, 202))
    """
    chances = plan_chances(epsilon, channel, k)
    _check_significance(significance, SMALLEST_SIGNIFICANCE)
    checked_interval(interval, None)
    for value in (share, known):
        checked_share(value)
    checked_n(n)
    floor, ceiling = max(min(chances), TINY), min(max(chances), 1 - TINY)
    lam, null = (chances.q + (chances.p - chances.q) * x for x in (share, known))
    at_null = min(max(null, floor), ceiling)
    first, last = _accepted_counts(n, floor, ceiling, at_null, 1 - significance, interval)
    return OneGroupPower(
        power=_outside(first, last, n, lam),
        size=_outside(first, last, n, null),
        n=n,
        share=float(share),
        known=float(known),
        accepted=(first, last),
        significance=significance,
        method=interval,
    )


def _accepted_counts(
    n: int, floor: float, ceiling: float, null: float, level: float, interval: str
) -> tuple[int, int]:
    """Return the smallest and the largest count whose interval contains the share of reports.

    Both ends of an interval rise with the count, so bisection finds them.
    """

    def contains(counts: Integers) -> Booleans:
        low, high = INTERVALS[interval](counts, n, floor, ceiling, level)
        return np.asarray((low <= null) & (null <= high))

    middle = round(n * null)
    inside = np.array([middle, middle])
    # Intervals of counts this far away rarely contain it.
    far = 2 * math.ceil(normal_quantile(level) * math.sqrt(n * null * (1 - null))) + FAR
    near = np.clip(np.array([middle - far, middle + far]), 0, n)
    outside = np.where(contains(near), [-1, n + 1], near)
    while np.any(abs(outside - inside) > 1):
        # Towards `inside`, which it equals where the search is over.
        middle_counts = inside + np.trunc((outside - inside) / 2).astype(np.int64)
        is_inside = contains(middle_counts)
        inside = np.where(is_inside, middle_counts, inside)
        outside = np.where(is_inside, outside, middle_counts)
    return int(inside[0]), int(inside[1])


def _outside(first: int, last: int, n: int, chance: float) -> float:
    """Return P(c < first) + P(c > last) for c ~ Binomial(n, chance)."""
    from scipy.special import betainc, betaincc

    # P(c < x) = 1 - I_chance(x, n - x + 1)
    below = float(betaincc(first, n - first + 1, chance)) if first > 0 else 0.0
    above = float(betainc(last + 1, n - last, chance)) if last < n else 0.0
    return below + above


@checked_arguments
def required_n_against(
    share: float,
    known: float,
    *,
    epsilon: float | None = None,
    channel: ReportChances | None = None,
    k: int = 2,
    target: float = 0.8,
    significance: float = 0.05,
    interval: str = DEFAULT_INTERVAL,
) -> OneGroupPower:
    """Return the fewest reports with which `power_against` reaches a target.

    The power rises with n in a saw-tooth, because counts are whole numbers: n is the smallest
    number for which it and the next 20 numbers have the power. Where n lambda(1-lambda) at the
    known share is above 2,500, n is computed on the scale of that survey, which is right within 3%.
    Source: Chernick and Liu 2002.

    >>> found = required_n_against(.3, .2, epsilon=1)
    >>> found.n, round(found.power, 3)
    (896, 0.806)
    """
    from scipy.special import ndtri

    p, q = plan_chances(epsilon, channel, k)
    _check_significance(significance, SMALLEST_SIGNIFICANCE)
    checked_interval(interval, None)
    _check_target(target, significance)
    lam, null = (q + (p - q) * checked_share(x) for x in (share, known))
    if lam == null:
        raise DesignError("the share equals the known one, so no number of reports shows it")
    # ((z_(1-alpha/2) s_0 + z_power s_1)/d)^2
    reach = float(ndtri(1 - significance / 2)) * math.sqrt(null * (1 - null))
    reach += float(ndtri(target)) * math.sqrt(lam * (1 - lam))
    guess = max(math.ceil((reach / (lam - null)) ** 2), 1)
    if guess > LARGEST_N:
        raise DesignError(f"this difference would need {guess:.3g} reports")

    floor, ceiling = max(min(p, q), TINY), min(max(p, q), 1 - TINY)
    at_null = min(max(null, floor), ceiling)

    def has_power(n: int) -> bool:
        # Fewer reports from a wider range [floor, ceiling] have the same geometry.
        size = min(n, math.ceil(max(MAX_VARIANCE / (at_null * (1 - at_null)), SMALLEST_SCALE)))
        scale = math.sqrt(n / size)
        low, high, true = (
            min(max(at_null + scale * (x - at_null), TINY), 1 - TINY) for x in (floor, ceiling, lam)
        )
        first, last = _accepted_counts(size, low, high, at_null, 1 - significance, interval)
        return _outside(first, last, size, true) >= target

    return power_against(
        smallest_n(has_power, guess, LARGEST_N),
        share,
        known,
        channel=Chances(p, q),
        significance=significance,
        interval=interval,
    )


def _check_target(target: float, significance: float) -> None:
    if not significance < checked_number("target", target) < 1:
        raise DesignError(f"target = {target:g} must be above the test's {significance:g}, below 1")


def _check_significance(significance: float, above: float = 0.0) -> None:
    if not above < checked_number("significance", significance) < 1:
        raise DesignError(
            f"significance = {significance:g} must be above {above:g} and below 1: try 0.05"
        )
