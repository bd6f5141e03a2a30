"""Composition: what all reports of one person together can give away, as exact fractions."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction


def log_rounded_up(ratio: Fraction) -> float:
    """ln(ratio) as the smallest float that is not below the exact value.

    >>> log_rounded_up(Fraction(3))
    1.0986122886681098
    """
    with decimal.localcontext(prec=60):
        exact = Decimal(ratio.numerator).ln() - Decimal(ratio.denominator).ln()
        nearest = float(exact)
        return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


def format_epsilon(epsilon: float) -> str:
    """An epsilon with at most three decimals, rounded up: what is shown is never too small.

    >>> format_epsilon(0.6931471805599454), format_epsilon(2.0)
    ('0.694', '2')
    """
    thousandths = math.ceil(Decimal(epsilon) * 1000)
    return f"{Decimal(thousandths) / 1000:f}"


def total_ratio(ratios: Iterable[Fraction]) -> Fraction:
    """e^epsilon of everything one respondent sends: the product over the questions.

    Basic sequential composition (Dwork and Roth 2014, theorem 3.14), exact because each
    channel's ratio is a fraction.

    >>> total_ratio([Fraction(3), Fraction(3)])
    Fraction(9, 1)
    """
    return math.prod(ratios, start=Fraction(1))


def total_epsilon(ratios: Iterable[Fraction]) -> float:
    """ln of `total_ratio`, rounded up."""
    return log_rounded_up(total_ratio(ratios))


def posterior_bound(prior: Fraction, ratio: Fraction) -> Fraction:
    """Largest posterior that one report can give to a suspicion of `prior`.

    prior odds move by at most e^epsilon: posterior = prior r / (prior r + 1 - prior).

    >>> posterior_bound(Fraction(1, 10), Fraction(3))
    Fraction(1, 4)
    """
    return prior * ratio / (prior * ratio + 1 - prior)


def posterior_interval(ratio: Fraction) -> tuple[Fraction, Fraction]:
    """Where a suspicion of one half can end after one report: [1/(1+r), r/(1+r)], r = e^epsilon.

    >>> posterior_interval(Fraction(3))
    (Fraction(1, 4), Fraction(3, 4))
    """
    return 1 / (1 + ratio), ratio / (1 + ratio)


def parallel_ratio(ratios: Iterable[Fraction]) -> Fraction:
    """e^epsilon over disjoint groups of people, each asked its own questions: the largest.

    Parallel composition (McSherry 2009).

    >>> parallel_ratio([Fraction(3), Fraction(5)])
    Fraction(5, 1)
    """
    return max(ratios, default=Fraction(1))


def group_ratio(ratio: Fraction, people: int) -> Fraction:
    """e^epsilon for a group whose answers hang together: k people have k epsilon.

    Group privacy (Dwork and Roth 2014, theorem 2.2).

    >>> group_ratio(Fraction(3), 2)
    Fraction(9, 1)
    """
    return ratio**people


def waves_ratio(ratio: Fraction, waves: int) -> Fraction:
    """e^epsilon of one person who answers a survey `waves` times: fresh randomness adds up.

    >>> waves_ratio(Fraction(3), 4)
    Fraction(81, 1)
    """
    return ratio**waves


def advanced_epsilon(epsilons: Sequence[float], delta: float) -> float:
    """Advanced composition, for comparison only: at a survey's size it is worse than the sum.

    sqrt(2 ln(1/delta) sum eps^2) + sum eps (e^eps - 1). Source: Dwork, Rothblum, Vadhan 2010,
    in the form for unequal epsilons of Kairouz, Oh, Viswanath 2015, eq. 3. The guarantee is
    (epsilon, delta), so it is also of a weaker kind. Raises ValueError for delta outside (0, 1).

    >>> round(advanced_epsilon([math.log(3)] * 10, 1e-6), 1)
    40.2
    """
    _check_delta(delta)
    spread = 2 * math.log(1 / delta) * math.fsum(epsilon**2 for epsilon in epsilons)
    return math.sqrt(spread) + math.fsum(epsilon * math.expm1(epsilon) for epsilon in epsilons)


def shuffled_epsilon(ratio: Fraction, n: int, delta: float) -> float | None:
    """Central epsilon of n shuffled reports for who trusts the shuffler; None where not proved.

    ln(1 + (r-1)/(r+1) (8 sqrt(r ln(4/delta)) / sqrt(n) + 8 r / n)), r = e^epsilon of all that one
    person sends, valid for epsilon <= ln(n / (16 ln(2/delta))). Source: Feldman, McMillan,
    Talwar 2021, theorem 3.1. Never the guarantee: it is conditional on the server.

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
