"""Composition: what all reports of one person together can give away, as exact fractions."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
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
