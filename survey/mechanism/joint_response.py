"""Joint randomized response: two or three answers, randomized as one over their combinations.

The combinations of the options are numbered row by row, the last question fastest, and generalized
randomized response draws one of the K combinations. A report names one option per question, as
reports of questions randomized separately do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from survey.errors import ChannelError
from survey.mechanism.channel import WORD_TOTAL, UniformBelow, check_truth
from survey.mechanism.composition import log_rounded_up
from survey.mechanism.exact_numbers import MAX_EPSILON
from survey.mechanism.randomized_response import from_ratio
from survey.mechanism.subset_selection import SubsetSelection

MAX_COMBINATIONS = 256
"""Maximum number of combinations of options; above it, separate reports are more precise."""

LARGEST_L = 10**4
"""Weight of a wrong combination where the exact ratio needs integers above 2^32."""


def joint_response(sizes: Sequence[int], ratio: Fraction) -> SubsetSelection:
    """Return generalized randomized response over all combinations of `sizes` options.

    K = the product of `sizes`, T/L = `ratio`, the e^epsilon of the whole report on these questions.
    Where T + (K-1)L would exceed 2^32, L = 10^4 and T = floor(L ratio), so that epsilon is never
    above the one asked for. Guarantee: epsilon = ln(T/L), about all answers together, and about one
    of them against somebody who knows the others. Source: Kairouz, Oh, Viswanath 2016, with the K
    combinations as options.

    Raises ChannelError for fewer than two questions, more than 256 combinations, or an epsilon that
    is above 12 or too small for integers.

    >>> joint_response([2, 2], Fraction(9))
    SubsetSelection(k=4, d=1, T=9, L=1)
    """
    k = math.prod(sizes)
    if len(sizes) < 2 or min(sizes) < 2:
        raise ChannelError(f"sizes {list(sizes)} must be two or more numbers of at least 2 options")
    if k > MAX_COMBINATIONS:
        raise ChannelError(
            f"{k:,} combinations of options are more than {MAX_COMBINATIONS}: separate reports are "
            "more precise"
        )
    if (epsilon := log_rounded_up(ratio)) > MAX_EPSILON:
        raise ChannelError(f"epsilon = {epsilon:.4g} of a joint response is above {MAX_EPSILON}")
    T, L = ratio.numerator, ratio.denominator
    if T + (k - 1) * L > WORD_TOTAL:
        T, L = math.floor(LARGEST_L * ratio), LARGEST_L
    return from_ratio(k, T, L)


def marginal_response(channel: SubsetSelection, k: int) -> SubsetSelection:
    """Return the channel of some of the questions of a joint response, which have k combinations.

    Each of their combinations stands for K/k of all, so that
        T' = T + (K/k - 1)L,  L' = (K/k)L:
    generalized randomized response again. Its T'/L' is what their reports reveal about their own
    answers to somebody who does not see the other reports.

    Raises ChannelError unless d = 1 and k divides K.

    >>> marginal_response(joint_response([2, 2], Fraction(9)), 2)
    SubsetSelection(k=2, d=1, T=5, L=1)
    """
    if channel.d != 1 or k < 2 or channel.k % k:
        raise ChannelError(
            f"{k} combinations are no part of a joint response of {channel.k}, d = {channel.d}"
        )
    parts = channel.k // k
    return from_ratio(k, channel.T + (parts - 1) * channel.L, parts * channel.L)


def combination(answers: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the number of a combination of options, the last question fastest.

    Raises ChannelError for an answer that is not an option of its question.

    >>> combination([1, 2], [2, 3])
    5
    """
    number = 0
    for answer, size in zip(answers, sizes, strict=True):
        number = number * size + check_truth(answer, size)
    return number


def options_of(number: int, sizes: Sequence[int]) -> list[int]:
    """Return the options in a combination, one per question.

    >>> options_of(5, [2, 3])
    [1, 2]
    """
    options: list[int] = []
    for size in reversed(sizes):
        number, option = divmod(number, size)
        options.insert(0, option)
    return options


def perturb_jointly(
    channel: SubsetSelection,
    truths: Sequence[int],
    sizes: Sequence[int],
    uniform_below: UniformBelow,
) -> list[int]:
    """Randomize the answers of one respondent by one draw; return the reported options.

    >>> channel = joint_response([2, 2], Fraction(9))
    >>> [perturb_jointly(channel, [0, 1], [2, 2], lambda n: u) for u in (0, 9, 10, 11)]
    [[0, 1], [1, 0], [1, 1], [0, 0]]
    """
    report = channel.perturb_one(combination(truths, sizes), uniform_below)
    return options_of(int(report), sizes)
