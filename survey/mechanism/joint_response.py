"""Joint randomized response: the answers to several questions, randomized as one.

Over the combinations of the options of two or three questions, numbered row by row with the last
question fastest, generalized randomized response draws one of the K combinations. Over two to
twenty yes/no questions, a half-space of the hypercube draws one of the 2^m vectors of options. In
both, a report names one option per question, as reports of questions randomized separately do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Literal

from survey.errors import ChannelError
from survey.mechanism.channel import WORD_TOTAL, UniformBelow, check_truth
from survey.mechanism.composition import log_rounded_up
from survey.mechanism.exact_numbers import MAX_EPSILON
from survey.mechanism.half_space import HalfSpace, tail
from survey.mechanism.randomized_response import from_ratio
from survey.mechanism.subset_selection import SubsetSelection

MAX_COMBINATIONS = 256
"""Maximum number of combinations of options; above it, separate reports are more precise."""

LARGEST_L = 10**4
"""Weight L of a wrong combination if the exact ratio would need integers above 2^32."""

MAX_ITEMS = 20
"""Maximum number of yes/no questions in one half-space: p of each is then a ratio of weights that
add up to at most 2^32."""

JointMechanism = Literal["grr", "half_space"]
"""How a joint response is randomized: over all combinations of options, or in a half-space."""

JointChannel = SubsetSelection | HalfSpace
"""The channels of joint responses: over combinations of options, or over vectors of two options."""


def joint_response(sizes: Sequence[int], ratio: Fraction) -> SubsetSelection:
    """Return generalized randomized response over all combinations of `sizes` options.

    K = the product of `sizes`, T/L = `ratio`, the e^epsilon of the whole report on these questions.
    Where T + (K-1)L would exceed 2^32, L = 10^4 and T = floor(L ratio), so that epsilon is never
    above the requested one. Guarantee: epsilon = ln(T/L), about all answers together, and about one
    of them against somebody who knows the others. Source: Kairouz, Oh, Viswanath 2016, with the K
    combinations as options.

    Raises ChannelError for fewer than two questions, more than 256 combinations, or an epsilon that
    is above 12 or too small for integers.

    >>> joint_response([2, 2], Fraction(9))
    SubsetSelection(k=4, d=1, T=9, L=1)
    """
    k = math.prod(sizes)
    if len(sizes) < 2 or min(sizes) < 2:
        raise ChannelError(
            f"sizes {list(sizes)} must be two or more numbers of options, each at least 2"
        )
    if k > MAX_COMBINATIONS:
        raise ChannelError(
            f"{k:,} combinations of options are more than {MAX_COMBINATIONS}: separate reports are "
            "more precise"
        )
    _check_epsilon(ratio)
    T, L = ratio.numerator, ratio.denominator
    if T + (k - 1) * L > WORD_TOTAL:
        T, L = math.floor(LARGEST_L * ratio), LARGEST_L
    return from_ratio(k, T, L)


def joint_channel(
    sizes: Sequence[int], ratio: Fraction, mechanism: JointMechanism = "grr"
) -> JointChannel:
    """Return the channel of a joint response to questions with these numbers of options.

    Raises ChannelError as `joint_response` and `item_response` do; a half-space needs yes/no
    questions.

    >>> joint_channel([2, 2, 2], Fraction(9), "half_space").kind
    'half_space'
    """
    if mechanism == "grr":
        return joint_response(sizes, ratio)
    if set(sizes) != {2}:
        raise ChannelError(f"sizes {list(sizes)}: in a half-space each question has 2 options")
    return item_response(len(sizes), ratio)


def item_response(items: int, ratio: Fraction) -> HalfSpace:
    """Return the half-space over the options of this many yes/no questions.

    Each near vector has weight a, each other one b: near = aG and far = b(2^m - G), so that
    e^epsilon = a/b = `ratio` exactly (G as in `HalfSpace`). Where aG + b(2^m - G) would exceed
    2^32, b is the largest number of at most 10^4 that fits, and a = floor(b ratio). The number of
    agreements is the one with the largest p. Guarantee: epsilon = ln(a/b), about all answers
    together, and about one of them against somebody who knows the others.
    Source: Duchi, Jordan, Wainwright 2018; Bhowmick et al. 2018.

    Raises ChannelError for fewer than two or more than 20 questions, or an epsilon that is above 12
    or too small for integers.

    >>> item_response(2, Fraction(9))  # the three other combinations have weight 1 each
    HalfSpace(m=2, s=2, agreements=2, near=3, far=1, alone=0)
    >>> channel = item_response(8, Fraction(9))
    >>> channel.agreements, channel.ratio, round(float(channel.exact_p), 3)
    (6, Fraction(9, 1), 0.652)
    """
    if not 2 <= items <= MAX_ITEMS:
        raise ChannelError(
            f"{items} yes/no questions in one half-space are not possible: 2 to {MAX_ITEMS} are"
        )
    _check_epsilon(ratio)
    candidates = []
    for agreements in range(items // 2 + 1, items + 1):
        near_count = tail(items, agreements)
        far_count = 2**items - near_count
        a, b = ratio.numerator, ratio.denominator
        if a * near_count + b * far_count > WORD_TOTAL:
            b = min(LARGEST_L, math.floor(WORD_TOTAL / (ratio * near_count + far_count)))
            a = math.floor(b * ratio)
        weights = Fraction(a * near_count, max(b, 1) * far_count)
        with suppress(ChannelError):
            near, far = weights.numerator, weights.denominator
            candidates.append(HalfSpace(items, items, agreements, near, far))
    if not candidates:
        raise ChannelError(f"e^epsilon = {float(ratio):g} is too small for integers")
    return max(candidates, key=lambda channel: channel.exact_p)


def _check_epsilon(ratio: Fraction) -> None:
    if (epsilon := log_rounded_up(ratio)) > MAX_EPSILON:
        raise ChannelError(f"epsilon = {epsilon:.4g} of a joint response is above {MAX_EPSILON}")


def marginal_response(channel: JointChannel, k: int) -> SubsetSelection:
    """Return the channel of some of the questions of a joint response, which have k combinations.

    Each of their combinations stands for K/k of all, so that
        T' = T + (K/k - 1)L,  L' = (K/k)L:
    generalized randomized response again. In a half-space, one yes/no question has p of
    `HalfSpace.exact_p`, whatever the answers to the others. T'/L' is what their reports reveal
    about their own answers to somebody who does not see the other reports.

    Raises ChannelError unless d = 1 and k divides K, and for a half-space unless k = 2.

    >>> marginal_response(joint_response([2, 2], Fraction(9)), 2)
    SubsetSelection(k=2, d=1, T=5, L=1)
    >>> marginal_response(item_response(3, Fraction(9)), 2)
    SubsetSelection(k=2, d=1, T=3, L=1)
    """
    if isinstance(channel, HalfSpace):
        if k != 2:
            raise ChannelError(
                f"{k} combinations: the questions of a half-space are estimated one by one"
            )
        p = channel.exact_p
        return from_ratio(2, p.numerator, p.denominator - p.numerator)
    if channel.d != 1 or k < 2 or channel.k % k:
        raise ChannelError(
            f"{k} combinations cannot be part of a joint response of {channel.k}, d = {channel.d}"
        )
    parts = channel.k // k
    return from_ratio(k, channel.T + (parts - 1) * channel.L, parts * channel.L)


def combination(answers: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the number of a combination of options; the last question varies fastest.

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
    channel: JointChannel,
    truths: Sequence[int],
    sizes: Sequence[int],
    uniform_below: UniformBelow,
) -> list[int]:
    """Randomize the answers of one respondent in one draw; return the reported options.

    >>> channel = joint_response([2, 2], Fraction(9))
    >>> [perturb_jointly(channel, [0, 1], [2, 2], lambda n: u) for u in (0, 9, 10, 11)]
    [[0, 1], [1, 0], [1, 1], [0, 0]]
    """
    if isinstance(channel, HalfSpace):
        return channel.perturb_bits(truths, uniform_below)
    report = channel.perturb_one(combination(truths, sizes), uniform_below)
    return options_of(int(report), sizes)
