"""Rankings of up to six options: the design with the least variance, and what its reports say.

A report states either the first choice or the order of a few options. The device draws which of the
two, and which options, independently of the ranking. The whole epsilon protects this one statement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from survey.errors import ChannelError
from survey.mechanism.channel import Integers
from survey.mechanism.exact_numbers import Probability, parse_epsilon, two_weights
from survey.mechanism.weight_table import (
    Explicit,
    FirstOrOrder,
    WeightTable,
    order_sizes,
    rankings,
)

FINEST_SPLIT = 64
"""Maximum weight of first choices relative to orders, and of orders relative to first choices."""


def first_choice_variance(m: int, ratio: float) -> float:
    """Return n Var of a share of first places, divided by its value without randomization.

    If every report states a first choice by generalized randomized response and all rankings are
    equally frequent, the quotient is 1/(p-q)^2 with p - q = (r-1)/(r+m-1), r = e^epsilon.
    """
    return ((ratio + m - 1) / (ratio - 1)) ** 2


def order_variance(m: int, size: int, ratio: float) -> float:
    """Return n Var of a mean rank, divided by its value without randomization, (m^2-1)/12.

    Assume that every report states the order of `size` = g random options, by generalized
    randomized response over the g! orders. Let v be an option's place among the g options, minus
    (g+1)/2, or 0 if it is not one of them, and K = (r-1)/(r+g!-1). A pair is in C(m-2, g-2) of the
    C(m, g) subsets, so an unbiased estimate of rank - (m+1)/2 is v m (m-1) / (g (g-1) K). If all
    rankings are equally frequent, E[v^2] = (g/m) (g^2-1)/12, and the quotient is

        m (m-1) (g+1) / (g (g-1) (m+1)) / K^2.

    >>> round(order_variance(6, 2, math.e), 1), round(order_variance(6, 3, math.e), 1)
    (30.1, 57.6)
    """
    K = (ratio - 1) / (ratio + math.factorial(size) - 1)
    return m * (m - 1) * (size + 1) / (size * (size - 1) * (m + 1)) / K**2


def sum_of_variances(m: int, size: int, ratio: float) -> float:
    """Return the smallest sum of the relative variances of first places and mean ranks.

    With V1 = `first_choice_variance`, V2 = `order_variance` and a fraction s of first choices, the
    sum is V1/s + V2/(1-s). Its minimum, at s = sqrt V1 / (sqrt V1 + sqrt V2), is
    (sqrt V1 + sqrt V2)^2. Orders of all m options (V2 = 1/K^2) estimate both: 2 V2.

    >>> [round(sum_of_variances(6, size, math.e), 1) for size in (2, 3, 6)]
    [99.6, 146.0, 352839.0]
    """
    orders = order_variance(m, size, ratio)
    if size == m:
        return 2 * orders
    return (math.sqrt(first_choice_variance(m, ratio)) + math.sqrt(orders)) ** 2


def best_order(m: int, ratio: float) -> int:
    """Return the number of options to order in a report for the smallest `sum_of_variances`.

    >>> [best_order(6, math.exp(epsilon)) for epsilon in (1, 3, 7)]
    [2, 3, 6]
    """
    return min(order_sizes(m), key=lambda size: sum_of_variances(m, size, ratio))


def first_or_order(m: int, epsilon: Probability, no_answers: int = 0) -> WeightTable:
    """Report a first choice, or the order of two or three options; or the order of all of them.

    The size of the orders and the fraction of first choices minimize `sum_of_variances`. For six
    options, orders of two are best up to epsilon 1.9 and orders of three up to 6.6. The order of
    all options is best for three options above epsilon 1.2, and for four above 3.4.

    Guarantee: epsilon = ln(T/L), because a report's weight is a fixed factor times T or L under
    every ranking. Raises ChannelError unless there are 3 to 6 options. Sources: Kairouz, Oh,
    Viswanath 2016 (generalized randomized response); Marden 1995, chapter 2 (ranks as sums of
    pairs).

    >>> first_or_order(6, 1).shape
    FirstOrOrder(m=6, size=2, a=59, b=10, T=13591, L=5000)
    """
    FirstOrOrder(m, 2, 1, 1, 3, 1)  # raises ChannelError for a wrong m
    exact = parse_epsilon(epsilon)
    ratio = math.exp(float(exact))
    size = best_order(m, ratio)
    subsets, orders = math.comb(m, size), math.factorial(size)

    def totals(T: int, L: int) -> tuple[int, int]:
        return T + (m - 1) * L, subsets * (T + (orders - 1) * L)

    # The table gets a third of 2^32, because each of two opt-outs adds at most the same total.
    T, L = two_weights(exact, lambda T, L: 3 * FINEST_SPLIT * sum(totals(T, L)))
    if size == m:
        return WeightTable(FirstOrOrder(m, size, 0, 1, T, L), no_answers)
    roots = [math.sqrt(first_choice_variance(m, ratio)), math.sqrt(order_variance(m, size, ratio))]
    first_total, order_total = totals(T, L)
    weights = _split(roots[0] * order_total / (roots[1] * first_total))
    table = FirstOrOrder(m, size, weights.numerator, weights.denominator, T, L)
    return WeightTable(table, no_answers)


def _split(quotient: float) -> Fraction:
    """Return the nearest fraction a/b with a and b from 1 to `FINEST_SPLIT`."""
    if quotient > 1:
        return 1 / _split(1 / quotient)
    return max(Fraction(quotient).limit_denominator(FINEST_SPLIT), Fraction(1, FINEST_SPLIT))


def first_or_order_shape(channel: object) -> FirstOrOrder | None:
    """Return the shape of a channel for rankings, or None for any other channel."""
    shape = channel.shape if isinstance(channel, WeightTable) else None
    return shape if isinstance(shape, FirstOrOrder) else None


@lru_cache(maxsize=64)
def first_choice_channel(channel: WeightTable) -> WeightTable:
    """Return the channel from first choices and opt-outs to what reports say about first places.

    Orders of some options say nothing about first places: their total weight is the same for every
    ranking, so they are merged into one report, number m. Orders of all options count as their
    first option. The probabilities of these reports depend only on the first place;
    `first_choice_counts` returns their counts.
    """
    shape = _shape(channel)
    per_first, last = math.factorial(shape.m - 1), math.factorial(shape.m)
    rows = np.concatenate([channel.weights[:last:per_first], channel.weights[last:]])
    table = first_choice_counts(rows, channel)
    return WeightTable(Explicit(tuple(tuple(row) for row in table.tolist())))


def first_choice_counts(counts: Sequence[int] | Integers, channel: WeightTable) -> Integers:
    """Return the counts of the reports of `first_choice_channel`; the last axis has the reports."""
    shape, c = _shape(channel), np.asarray(counts, dtype=np.int64)
    answers = channel.reports - channel.no_answers
    named, others, silent = np.split(c, [shape.m * bool(shape.a), answers], axis=-1)
    if shape.a:
        return np.concatenate([named, others.sum(axis=-1, keepdims=True), silent], axis=-1)
    by_first = others.reshape(*c.shape[:-1], shape.m, -1).sum(axis=-1)
    return np.concatenate([by_first, silent], axis=-1)


def rank_values(channel: WeightTable, option: int) -> tuple[float | None, ...]:
    """Return the rank of an option, 1 to m, under every truth; None for opt-outs."""
    shape = _shape(channel)
    ranks = np.argsort(rankings(shape.m), axis=1)[:, option] + 1
    return (*map(float, ranks.tolist()), *(None,) * channel.no_answers)


def _shape(channel: WeightTable) -> FirstOrOrder:
    if (shape := first_or_order_shape(channel)) is None:
        raise ChannelError("this is not a channel for rankings")
    return shape
