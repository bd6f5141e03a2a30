"""Composition: formulas for the privacy loss of several reports, as exact fractions.

`survey.questionnaire.privacy_loss` and `ledger` apply them to the questions of a survey.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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


MAX_STEPS = 50_000
"""Steps of all reports together into which `composed_epsilon` divides the largest epsilon."""

GUARD = 1e-6
"""Fraction of delta reserved for rounding, which is a thousand times smaller."""


def composed_epsilon(epsilons: Sequence[float], delta: float) -> float:
    """Return the smallest epsilon of all reports of one person for which (epsilon, delta) holds.

    Each report of epsilon_i reveals at most what one randomized bit of the same epsilon_i does
    (Kairouz, Oh, Viswanath 2015), whose privacy loss is +-epsilon_i, + with probability
    1/(1 + e^-epsilon_i). The losses L of independent reports add up, and

        delta(epsilon) = E[max(0, 1 - e^(epsilon - L))].

    Exact if all epsilons are equal; otherwise each is rounded up to a multiple of a small fraction
    of the largest, which can only increase the result. The result is at most the sum, but an
    (epsilon, delta) guarantee is weaker. Raises ValueError for delta outside (0, 1).

    >>> round(composed_epsilon([math.log(3)] * 10, 1e-6), 4), round(10 * math.log(3), 4)
    (10.9861, 10.9861)
    >>> round(composed_epsilon([0.1] * 100, 1e-6), 2)
    4.77
    """
    _check_delta(delta)
    total = math.fsum(epsilons)
    if not epsilons or max(epsilons) == 0:
        return total
    is_uniform = len(set(epsilons)) == 1
    unit = max(epsilons) / (1 if is_uniform else max(1, MAX_STEPS // len(epsilons)))
    steps = [math.ceil(epsilon / unit - 1e-9) for epsilon in epsilons]
    # P(sum of the steps with a positive loss = j)
    chances = np.ones(1)
    for step in steps:
        positive = 1 / (1 + math.exp(-step * unit))
        sums = np.zeros(len(chances) + step)
        sums[: len(chances)] = (1 - positive) * chances
        sums[step:] += positive * chances
        chances = sums
    losses = unit * (2 * np.arange(len(chances)) - sum(steps))

    def delta_at(epsilon: float) -> float:
        above = losses > epsilon
        return float(chances[above] @ -np.expm1(epsilon - losses[above]))

    return min(total, _smallest_epsilon(delta_at, total, delta))


def shuffled_epsilon(ratio: Fraction, n: int, delta: float) -> float:
    """Return epsilon of one of n shuffled reports for (epsilon, delta), at most that of a report.

    With r = e^epsilon of all reports of one person: each of the n - 1 others is, with probability
    1/r, as likely to be a report of either of two possible answers of this person. With C ~
    Bin(n - 1, 1/r) and A ~ Bin(C, 1/2), the two answers are as hard to tell apart as A + 1 and A,
    chosen with odds r : 1 or 1 : r, if C is known. Given C = c, with b the probabilities of A,

        P(a) = (r b(a-1) + b(a))/(r+1),  Q(a) = (b(a-1) + r b(a))/(r+1),
        delta(epsilon) = E_C[sum_a max(0, P(a) - e^epsilon Q(a))].

    Source: Feldman, McMillan, Talwar 2021, section 3; their closed form is two to four times
    larger. It holds for any mechanism if the others are honest, their number is fixed, and the
    shuffling is trusted. It holds against nobody who can send or use the other reports. Raises
    ValueError for delta outside (0, 1).

    >>> [round(shuffled_epsilon(Fraction(3), n, 1e-6), 3) for n in (25, 1_000, 100_000)]
    [1.099, 0.209, 0.018]
    """
    from scipy.special import bdtrc

    _check_delta(delta)
    local = log_rounded_up(ratio)
    if n < 2 or not 0 < local <= LARGEST_LOCAL:
        return local
    r = float(ratio)
    c, chances, remainder = _binomial(n - 1, 1 / r)

    def delta_at(epsilon: float) -> float:
        factor = math.exp(epsilon)
        # P(a) > e^epsilon Q(a) if and only if a > (c+1)(e^epsilon r - 1)/((r-1)(1 + e^epsilon))
        bound = ((c + 1) * (factor * r - 1) / ((r - 1) * (1 + factor))).astype(np.int64)
        # P(A >= bound) and P(A >= bound + 1)
        near = np.where(bound < 1, 1.0, bdtrc(np.clip(bound - 1, 0, c), c, 0.5))
        far = np.where(bound >= c, 0.0, bdtrc(np.clip(bound, 0, c), c, 0.5))
        return float(chances @ (near * (r - factor) - far * (r * factor - 1))) / (r + 1) + remainder

    return min(local, _smallest_epsilon(delta_at, local, delta))


def _binomial(n: int, p: float) -> tuple[Integers, Floats, float]:
    """Return numbers of successes near the mean, their probabilities, and that of all others.

    Neighboring numbers share the smallest of them, at which nobody hides better.
    """
    from scipy.special import bdtr, bdtrc

    deviation = math.sqrt(n * p)
    reach, width = 9 * deviation + 40, max(1, math.floor(deviation / 16))
    low, high = max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach))
    ends = np.append(np.arange(low, high + 1, width), high + 1)
    # P(number < end), from the nearer tail
    below = np.where(ends > 0, bdtr(np.maximum(ends - 1, 0), n, p), 0.0)
    above = np.where(ends > 0, bdtrc(np.maximum(ends - 1, 0), n, p), 1.0)
    chances = np.where(ends[1:] <= n * p, np.diff(below), -np.diff(above))
    return ends[:-1], chances, float(below[0] + above[-1])


LARGEST_LOCAL = 300.0
"""Above this epsilon of a report, shuffling hides nothing, and e^epsilon exceeds a float."""


def _smallest_epsilon(delta_at: Callable[[float], float], largest: float, delta: float) -> float:
    """Return the smallest epsilon up to `largest` with delta(epsilon) <= delta, rounded up."""
    low, high = 0.0, largest
    if delta_at(low) <= delta * (1 - GUARD):
        return low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta * (1 - GUARD) else (middle, high)
    return high


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta = {delta} must lie between 0 and 1")
