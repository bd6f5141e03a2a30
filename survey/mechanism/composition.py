"""Composition: formulas for the privacy loss of several reports, as exact fractions.

`survey.questionnaire.privacy_loss` applies them to the questions of a survey.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction


def log_rounded_up(ratio: Fraction) -> float:
    """Return ln(ratio) as the smallest float that is not below the exact value.

    >>> log_rounded_up(Fraction(3))
    1.0986122886681098
    """
    with decimal.localcontext(prec=60):
        exact = Decimal(ratio.numerator).ln() - Decimal(ratio.denominator).ln()
        nearest = float(exact)
        return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


def format_epsilon(epsilon: float) -> str:
    """Return an epsilon with at most three decimals, rounded up so that it is never too small.

    >>> format_epsilon(0.6931471805599454), format_epsilon(2.0)
    ('0.694', '2')
    """
    thousandths = math.ceil(Decimal(epsilon) * 1000)
    return f"{Decimal(thousandths) / 1000:f}"


def total_ratio(ratios: Iterable[Fraction]) -> Fraction:
    """Return e^epsilon of all reports of one respondent: the product over the questions.

    Basic sequential composition (Dwork and Roth 2014, theorem 3.14); exact, because the ratio of
    each channel is a fraction.

    >>> total_ratio([Fraction(3), Fraction(3)])
    Fraction(9, 1)
    """
    return math.prod(ratios, start=Fraction(1))


def total_epsilon(ratios: Iterable[Fraction]) -> float:
    """Return ln of `total_ratio`, rounded up."""
    return log_rounded_up(total_ratio(ratios))


def posterior_bound(prior: Fraction, ratio: Fraction) -> Fraction:
    """Return the largest posterior probability after one report, for a prior probability.

    One report changes the odds by a factor of at most r = e^epsilon:
    posterior = prior r / (prior r + 1 - prior).

    >>> posterior_bound(Fraction(1, 10), Fraction(3))
    Fraction(1, 4)
    """
    return prior * ratio / (prior * ratio + 1 - prior)


def posterior_interval(ratio: Fraction) -> tuple[Fraction, Fraction]:
    """Return the range of the posterior after one report for a prior of 1/2.

    [1/(1+r), r/(1+r)], r = e^epsilon.

    >>> posterior_interval(Fraction(3))
    (Fraction(1, 4), Fraction(3, 4))
    """
    return 1 / (1 + ratio), ratio / (1 + ratio)


def parallel_ratio(ratios: Iterable[Fraction]) -> Fraction:
    """Return e^epsilon over disjoint groups of people with separate questions: the maximum.

    Parallel composition (McSherry 2009).

    >>> parallel_ratio([Fraction(3), Fraction(5)])
    Fraction(5, 1)
    """
    return max(ratios, default=Fraction(1))


def group_ratio(ratio: Fraction, size: int) -> Fraction:
    """Return e^epsilon for a group of people whose answers depend on each other.

    A group of k people has k epsilon: group privacy (Dwork and Roth 2014, theorem 2.2).

    >>> group_ratio(Fraction(3), 2)
    Fraction(9, 1)
    """
    return ratio**size


def waves_ratio(ratio: Fraction, waves: int) -> Fraction:
    """Return e^epsilon of a person who answers a survey `waves` times with new randomness.

    >>> waves_ratio(Fraction(3), 4)
    Fraction(81, 1)
    """
    return ratio**waves


def advanced_epsilon(epsilons: Sequence[float], delta: float) -> float:
    """Return epsilon by advanced composition, for comparison only.

    sqrt(2 ln(1/delta) sum eps^2) + sum eps (e^eps - 1). For the number of questions of a survey
    this exceeds the sum, and an (epsilon, delta) guarantee is weaker. Source: Dwork, Rothblum,
    Vadhan 2010, in the form for unequal epsilons of Kairouz, Oh, Viswanath 2015, eq. 3. Raises
    ValueError for delta outside (0, 1).

    >>> round(advanced_epsilon([math.log(3)] * 10, 1e-6), 1)
    40.2
    """
    _check_delta(delta)
    spread = 2 * math.log(1 / delta) * math.fsum(epsilon**2 for epsilon in epsilons)
    return math.sqrt(spread) + math.fsum(epsilon * math.expm1(epsilon) for epsilon in epsilons)


def shuffled_epsilon(ratio: Fraction, n: int, delta: float) -> float | None:
    """Return the central epsilon of n shuffled reports, or None where no proof exists.

    ln(1 + (r-1)/(r+1) (8 sqrt(r ln(4/delta)) / sqrt(n) + 8 r / n)), r = e^epsilon of all reports
    of one person, valid for epsilon <= ln(n / (16 ln(2/delta))). Source: Feldman, McMillan,
    Talwar 2021, theorem 3.1. It assumes a trusted shuffler, so the project never states it as
    its guarantee.

    >>> round(shuffled_epsilon(Fraction(3), 1000, 1e-6), 2)
    0.62
    >>> shuffled_epsilon(Fraction(12), 1000, 1e-6) is None
    True
    """
    _check_delta(delta)
    if n < 1 or ratio > n / (16 * math.log(2 / delta)):
        return None
    r = float(ratio)
    blanket = 8 * math.sqrt(r * math.log(4 / delta) / n) + 8 * r / n
    return math.log1p((r - 1) / (r + 1) * blanket)


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta = {delta} must lie between 0 and 1")
