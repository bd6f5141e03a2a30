"""Power: how likely a survey is to find a difference between two groups, and how many it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from survey.errors import DesignError
from survey.estimator.core.arguments import LARGEST_N, checked_arguments
from survey.estimator.core.intervals import Chances, ReportChances
from survey.estimator.core.result import Result
from survey.estimator.planning.sample_size import (
    checked_n,
    checked_number,
    checked_share,
    grr_chances,
)


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
    s_1^2 = sum of lambda(1-lambda)/n. A normal approximation. Source: Fleiss 1981, section 3.

    >>> round(power(500, 500, .2, .4, epsilon=1).power, 3)
    0.846
    """
    from scipy.special import ndtr, ndtri

    p, q = _chances(epsilon, channel, k)
    _check_significance(significance)
    checked_n(n_a)
    checked_n(n_b)
    a, b = (q + (p - q) * checked_share(share) for share in (share_a, share_b))
    pooled = (n_a * a + n_b * b) / (n_a + n_b)
    s0 = math.sqrt(pooled * (1 - pooled) * (1 / n_a + 1 / n_b))
    s1 = math.sqrt(a * (1 - a) / n_a + b * (1 - b) / n_b)
    z, d = float(ndtri(1 - significance / 2)), abs(b - a)
    if s1 == 0:
        raise DesignError("both shares of reports are certain, so there is nothing to test")
    probability = ndtr((d - z * s0) / s1) + ndtr((-d - z * s0) / s1)
    return Power(float(probability), n_a, n_b, share_b - share_a, s1 / abs(p - q), significance)


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

    p, q = _chances(epsilon, channel, k)
    _check_significance(significance)
    if not significance < checked_number("target", target) < 1:
        raise DesignError(f"target = {target:g} must be above the test's {significance:g}, below 1")
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
    n_a = math.ceil(n - 1e-9)
    return power(
        n_a,
        math.ceil(n_a * ratio - 1e-9),
        share_a,
        share_b,
        channel=Chances(p, q),
        significance=significance,
    )


def _chances(epsilon: float | None, channel: ReportChances | None, k: int) -> Chances:
    if channel is None and epsilon is not None:
        return grr_chances(k, epsilon)
    if channel is None or epsilon is not None:
        raise DesignError("a plan needs an epsilon or a channel, one of the two")
    if channel.p == channel.q:
        raise DesignError(f"p = q = {channel.p}: the reports contain no information")
    return Chances(channel.p, channel.q)


def _check_significance(significance: float) -> None:
    if not 0 < checked_number("significance", significance) < 1:
        raise DesignError(f"significance = {significance:g} must be above 0 and below 1: try 0.05")
