"""Designs for questions with several ticks, and the one with the smallest variance.

A truth is a set of 1 to `ticks` ordinary options, or one exclusive option ("none of these",
"does not apply", "prefer not to say"). The `alone` exclusive options come last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from types import MappingProxyType

from survey.errors import ChannelError
from survey.mechanism.bit_vector import BitVector, TickChannel
from survey.mechanism.exact_numbers import Probability, exact_fraction, two_weights
from survey.mechanism.half_space import MAX_HALF_SPACE_BITS, HalfSpace, tail
from survey.mechanism.randomized_response import from_epsilon, grr
from survey.mechanism.subset_selection import SubsetSelection

Pattern = tuple[int, ...]
"""A set of options that can be ticked together, as ascending indices."""

MultipleChoice = BitVector | HalfSpace | SubsetSelection

MAX_PATTERNS = 1_024


def patterns(ordinary: int, ticks: int, alone: int) -> tuple[Pattern, ...]:
    """Return every possible answer: sets in ascending order of their bits, then exclusive options.

    >>> patterns(2, 2, 1)
    ((0,), (1,), (0, 1), (2,))
    """
    if number_of_patterns(ordinary, ticks, alone) > MAX_PATTERNS:
        allowed = max(
            (t for t in range(1, ticks) if number_of_patterns(ordinary, t, alone) <= MAX_PATTERNS),
            default=0,
        )
        raise ChannelError(
            f"{ordinary} options have more than {MAX_PATTERNS:,} sets of up to {ticks}; "
            + (f"the nearest allowed number of ticks is {allowed}" if allowed else "ask fewer")
        )
    sets = (
        pattern for size in range(1, ticks + 1) for pattern in combinations(range(ordinary), size)
    )
    ascending = sorted(sets, key=lambda pattern: sum(1 << option for option in pattern))
    return (*ascending, *((ordinary + i,) for i in range(alone)))


def number_of_patterns(ordinary: int, ticks: int, alone: int) -> int:
    """Return the number of possible answers.

    >>> number_of_patterns(5, 5, 2)
    33
    """
    return sum(math.comb(ordinary, size) for size in range(1, ticks + 1)) + alone


def bits(ordinary: int, ticks: int, alone: int, epsilon: Probability) -> BitVector:
    """Report the bit of every option, each with a part of epsilon: (T/L)^D = e^epsilon.

    D as in `BitVector.distance`. Source: Warner 1965 per bit, basic composition.

    >>> bits(5, 5, 0, 1).epsilon <= 1
    True
    """
    m = ordinary + alone
    return _split(m, ticks, alone, m, epsilon)


def sampled_options(ordinary: int, ticks: int, alone: int, epsilon: Probability) -> BitVector:
    """Report the bits of some options, drawn at random, each with a larger part of epsilon.

    The number of options is the one with the smallest variance. (T/L)^min(sampled, D) = e^epsilon.
    Source: Nguyen, Xiao, Yang, Hui, Shin, Shin 2016 (one of m); Wang et al. 2019 (several).

    >>> sampled_options(5, 5, 0, 1).sampled
    1
    """
    m = ordinary + alone
    if m < 2:
        raise ChannelError("a question with one option cannot sample its options")
    distance = BitVector(m, ticks, 2, 1, alone).distance
    candidates = (
        _split(m, ticks, alone, sampled, epsilon) for sampled in range(1, min(m - 1, distance) + 1)
    )
    return min(candidates, key=lambda channel: variance(channel, ordinary, ticks, alone))


def subsets(ordinary: int, ticks: int, alone: int, epsilon: Probability) -> SubsetSelection:
    """Generalized randomized response over all possible answers, for few options.

    Source: Kairouz, Oh, Viswanath 2016, on the sets as categories.

    >>> subsets(5, 5, 1, 4).k
    32
    """
    number = len(patterns(ordinary, ticks, alone))
    return from_epsilon(number, epsilon)


def half_space(ordinary: int, ticks: int, alone: int, epsilon: Probability) -> HalfSpace:
    """Report all bits at once, with many agreements more likely.

    near (2^m - G)/(far G) = e^epsilon, with G as in `HalfSpace`. The smallest number of agreements
    of a near report is the one with the largest p.
    Source: Duchi, Jordan, Wainwright 2018; Bhowmick et al. 2018 ("PrivUnit" for the hypercube).

    >>> half_space(10, 10, 0, 4).agreements, half_space(20, 20, 0, 8).agreements
    (8, 16)
    """
    m = ordinary + alone
    if m > MAX_HALF_SPACE_BITS:
        raise ChannelError(
            f"{ordinary} options beside {alone} that exclude all others are too many for one draw; "
            f"the nearest allowed number is {MAX_HALF_SPACE_BITS - alone}"
        )
    candidates = [_space(m, ticks, alone, m // 2 + 1, epsilon)]
    for agreements in range(m // 2 + 2, m + 1):
        # With more agreements G may be so small that no integer `near` fits.
        with suppress(ChannelError):
            candidates.append(_space(m, ticks, alone, agreements, epsilon))
    return max(candidates, key=lambda channel: channel.exact_p)


def _space(m: int, ticks: int, alone: int, agreements: int, epsilon: Probability) -> HalfSpace:
    """Return the channel with the largest near/far up to e^epsilon G/(2^m - G)."""
    size = tail(m, agreements)
    odds = Fraction(size, (1 << m) - size)
    near, far = two_weights(epsilon, lambda near, far: near + far, odds)
    return HalfSpace(m, ticks, agreements, near, far, alone)


def per_option(ordinary: int, ticks: int, alone: int, truth_probability: Probability) -> BitVector:
    """Report every option's bit unchanged with the stated probability: epsilon = D ln(p/(1-p)).

    >>> per_option(3, 1, 0, "3/4").ratio
    Fraction(9, 1)
    """
    bit = grr(2, truth_probability)
    return BitVector(ordinary + alone, ticks, bit.T, bit.L, alone)


DESIGNS: Mapping[str, Callable[[int, int, int, Probability], MultipleChoice]] = MappingProxyType(
    {
        "bits": bits,
        "sampled_options": sampled_options,
        "half_space": half_space,
        "subsets": subsets,
    }
)
"""Each design maps (ordinary options, maximum ticks, exclusive options, epsilon) to a channel."""

CACHE_SIZE = 512
"""Enough for every question of a file, which is checked again and again."""


@lru_cache(maxsize=CACHE_SIZE)
def smallest_variance(
    ordinary: int, ticks: int, alone: int, epsilon: Probability
) -> tuple[str, MultipleChoice]:
    """Return the name and the channel of the design with the smallest variance at this epsilon.

    Raises ChannelError if no design fits.

    >>> smallest_variance(5, 5, 0, 1)[0], smallest_variance(5, 5, 1, 4)[0]
    ('sampled_options', 'subsets')
    """
    channels = {}
    for name, design in DESIGNS.items():
        try:
            channels[name] = design(ordinary, ticks, alone, epsilon)
        except ChannelError:
            continue  # too many sets, or too small an epsilon for its integers
    if not channels:
        bits(ordinary, ticks, alone, epsilon)  # raises the specific error
    name = min(channels, key=lambda name: variance(channels[name], ordinary, ticks, alone))
    return name, channels[name]


def variance(channel: MultipleChoice, ordinary: int, ticks: int, alone: int) -> float:
    """Return n Var of the estimated share of an ordinary option that half of all people tick.

    lambda (1 - lambda)/(p - q)^2, lambda = (p+q)/2; times m/sampled if a report covers only
    `sampled` of the m options.

    >>> round(variance(bits(5, 5, 0, 1), 5, 5, 0), 1)
    25.2
    >>> round(variance(subsets(5, 5, 1, 4), 5, 5, 1), 2)
    0.64
    """
    if isinstance(channel, TickChannel):
        return _variance_at_half(channel.exact_p, channel.exact_q) * channel.m / channel.sampled
    containing = sum(0 in pattern for pattern in patterns(ordinary, ticks, alone))
    return _variance_at_half(*support(channel, containing))


def support(channel: SubsetSelection, containing: int) -> tuple[Fraction, Fraction]:
    """Return P(the reported set contains an option | it is ticked), and the same if it is not.

    p + (N-1) q and N q, where N = `containing` of the k sets contain the option.
    """
    return channel.exact_p + (containing - 1) * channel.exact_q, containing * channel.exact_q


def _variance_at_half(p: Fraction, q: Fraction) -> float:
    share = (p + q) / 2
    return float(share * (1 - share) / (p - q) ** 2)


def _split(m: int, ticks: int, alone: int, sampled: int, epsilon: Probability) -> BitVector:
    exact = exact_fraction(epsilon, "epsilon")
    parts = min(sampled, BitVector(m, ticks, 2, 1, alone).distance)
    # Checked as a whole first, so that an error names the epsilon as it was stated.
    two_weights(exact, lambda _T, _L: 1)
    T, L = two_weights(exact / parts, lambda T, L: T + L)
    return BitVector(m, ticks, T, L, alone, sampled)
