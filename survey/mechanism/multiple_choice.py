"""Three designs for questions with several ticks, and the one with the smallest variance.

Truths are sets of at most `ticks` of the ordinary options, or one of the options that stand
alone ("none of these", "does not apply", "prefer not to say"); these come last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from types import MappingProxyType

from survey.errors import ChannelError
from survey.mechanism.bit_vector import BitVector
from survey.mechanism.design import Probability, exact_fraction, from_epsilon, grr, two_weights
from survey.mechanism.subset_selection import SubsetSelection

Pattern = tuple[int, ...]
"""A set of options that may be ticked together, as ascending indices."""

MultipleChoice = BitVector | SubsetSelection

MAX_PATTERNS = 1_024


def patterns(ordinary: int, ticks: int, alone: int) -> tuple[Pattern, ...]:
    """Every answer there is: sets in ascending order of their bits, then the ones that stand alone.

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
        chosen for size in range(1, ticks + 1) for chosen in combinations(range(ordinary), size)
    )
    in_order = sorted(sets, key=lambda chosen: sum(1 << option for option in chosen))
    return (*in_order, *((ordinary + i,) for i in range(alone)))


def number_of_patterns(ordinary: int, ticks: int, alone: int) -> int:
    """How many answers there are.

    >>> number_of_patterns(5, 5, 2)
    33
    """
    return sum(math.comb(ordinary, size) for size in range(1, ticks + 1)) + alone


def bits(ordinary: int, ticks: int, alone: int, epsilon: Probability) -> BitVector:
    """Every option's bit, each with its part of epsilon: (T/L)^D = e^epsilon.

    D as in `BitVector.distance`. Source: Warner 1965 per bit, basic composition.

    >>> bits(5, 5, 0, 1).epsilon <= 1
    True
    """
    m = ordinary + alone
    return _split(m, ticks, alone, m, epsilon)


def sampled_options(ordinary: int, ticks: int, alone: int, epsilon: Probability) -> BitVector:
    """Only some options' bits, drawn at random whatever the answer is, each with more of epsilon.

    How many: the number with the smallest variance. (T/L)^min(sampled, D) = e^epsilon.
    Source: Nguyen, Xiao, Yang, Hui, Shin, Shin 2016 (one of m); Wang et al. 2019 (several).

    >>> sampled_options(5, 5, 0, 1).sampled
    1
    """
    m = ordinary + alone
    if m < 2:
        raise ChannelError("one option alone cannot be sampled")
    distance = BitVector(m, ticks, 2, 1, alone).distance
    candidates = (
        _split(m, ticks, alone, sampled, epsilon) for sampled in range(1, min(m - 1, distance) + 1)
    )
    return min(candidates, key=lambda channel: variance(channel, ordinary, ticks, alone))


def subsets(ordinary: int, ticks: int, alone: int, epsilon: Probability) -> SubsetSelection:
    """Generalized randomized response over all answers there are, for few options.

    Source: Kairouz, Oh, Viswanath 2016, on the sets as categories.

    >>> subsets(5, 5, 1, 4).k
    32
    """
    number = len(patterns(ordinary, ticks, alone))
    return from_epsilon(number, epsilon)


def per_option(ordinary: int, ticks: int, alone: int, truth_probability: Probability) -> BitVector:
    """Every option's bit, kept with the stated probability. epsilon = D ln(p/(1-p)).

    >>> per_option(3, 1, 0, "3/4").ratio
    Fraction(9, 1)
    """
    one = grr(2, truth_probability)
    return BitVector(ordinary + alone, ticks, one.T, one.L, alone)


DESIGNS: Mapping[str, Callable[[int, int, int, Probability], MultipleChoice]] = MappingProxyType(
    {"bits": bits, "sampled_options": sampled_options, "subsets": subsets}
)
"""Each design: (ordinary options, most ticks, options that stand alone, epsilon) to its channel."""


REMEMBERED = 512
"""Choices that are remembered: every question of a file that is checked again and again."""


@lru_cache(maxsize=REMEMBERED)
def smallest_variance(
    ordinary: int, ticks: int, alone: int, epsilon: Probability
) -> tuple[str, MultipleChoice]:
    """The design whose estimates vary least at the same epsilon, with its name.

    >>> smallest_variance(5, 5, 0, 1)[0], smallest_variance(5, 5, 1, 4)[0]
    ('sampled_options', 'subsets')
    """
    made = {}
    for name, design in DESIGNS.items():
        try:
            made[name] = design(ordinary, ticks, alone, epsilon)
        except ChannelError:
            continue  # too many sets, or too small an epsilon for its integers
    if not made:
        bits(ordinary, ticks, alone, epsilon)  # says what is wrong
    name = min(made, key=lambda name: variance(made[name], ordinary, ticks, alone))
    return name, made[name]


def variance(channel: MultipleChoice, ordinary: int, ticks: int, alone: int) -> float:
    """n Var of the estimated share of an ordinary option, when half of all people tick it.

    lambda (1 - lambda)/(p - q)^2, lambda = (p+q)/2; m/sampled times that when only some of the m
    options are reported.

    >>> round(variance(bits(5, 5, 0, 1), 5, 5, 0), 1)
    25.2
    >>> round(variance(subsets(5, 5, 1, 4), 5, 5, 1), 2)
    0.64
    """
    if isinstance(channel, BitVector):
        return _at_half(channel.exact_p, channel.exact_q) * channel.m / channel.sampled
    with_it = sum(0 in pattern for pattern in patterns(ordinary, ticks, alone))
    return _at_half(*support(channel, with_it))


def support(channel: SubsetSelection, holding: int) -> tuple[Fraction, Fraction]:
    """P(the reported set holds an option | it is ticked), and if it is not.

    p + (N-1) q and N q, when N = `holding` of the k sets hold the option.
    """
    return channel.exact_p + (holding - 1) * channel.exact_q, holding * channel.exact_q


def _at_half(p: Fraction, q: Fraction) -> float:
    share = (p + q) / 2
    return float(share * (1 - share) / (p - q) ** 2)


def _split(m: int, ticks: int, alone: int, sampled: int, epsilon: Probability) -> BitVector:
    asked = exact_fraction(epsilon, "epsilon")
    parts = min(sampled, BitVector(m, ticks, 2, 1, alone).distance)
    # Asked as a whole first, so that a wrong epsilon is named as it was written.
    two_weights(asked, lambda _T, _L: 1)
    T, L = two_weights(asked / parts, lambda T, L: T + L)
    divisor = math.gcd(T, L)
    return BitVector(m, ticks, T // divisor, L // divisor, alone, sampled)
