"""From a question's stated privacy to its channel under the caps, or the nearest that publishes.

Whatever value an error suggests really publishes: it is found by building its channel.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction

from survey.errors import ChannelError
from survey.mechanism import SubsetSelection, from_epsilon, from_keep_probability, grr
from survey.mechanism.accounting import total_epsilon
from survey.mechanism.design import GRID, MAX_EPSILON, shown, smallest_truth_probability
from survey.settings import Caps

PRIVACY: dict[str, Callable[[int, Fraction], SubsetSelection]] = {
    "truth_probability": grr,
    "keep_probability": from_keep_probability,
    "epsilon": from_epsilon,
}
"""The three ways to state a question's privacy, each with its constructor."""

MAX_TRUTH_PROBABILITY = Fraction(99, 100)
"""Highest P(report = truth) that is published; the client has the same ceiling built in."""


def build_channel(way: str, value: Fraction, k: int, caps: Caps) -> SubsetSelection:
    """The channel of k options whose privacy is stated as `way` = `value`.

    Raises ChannelError, with the nearest value on the grid of 1/1000 that publishes.

    >>> build_channel("truth_probability", Fraction(3, 4), 2, Caps()).ratio
    Fraction(3, 1)
    >>> build_channel("epsilon", Fraction(13), 2, Caps())
    Traceback (most recent call last):
    survey.errors.ChannelError: epsilon = 13 is too weak for 2 options: truth probability is at \
most 0.99 and epsilon at most 8; the nearest allowed value is epsilon = 4.595
    """
    try:
        channel = PRIVACY[way](k, value)
    except ChannelError:
        raise _refusal(way, value, k, caps) from None
    if _is_too_weak(channel, caps):
        raise _refusal(way, value, k, caps)
    return channel


def total_mistake(channels: Iterable[SubsetSelection], caps: Caps) -> str | None:
    """What is wrong with the sum of all questions, with the nearest epsilon for equal ones."""
    channels = list(channels)
    total = total_epsilon(channel.ratio for channel in channels)
    if total <= caps.survey:
        return None
    sizes = Counter(channel.k for channel in channels)
    each = _highest("epsilon", lambda value: _fits(value, sizes, caps))
    return (
        f"total epsilon {total:.4g} of {len(channels)} questions is above the cap of "
        f"{caps.survey}; "
        + (
            "ask fewer questions"
            if each is None
            else f"the nearest allowed value for equal questions is epsilon = {shown(each)} each"
        )
    )


def _is_too_weak(channel: SubsetSelection, caps: Caps) -> bool:
    return channel.exact_p > MAX_TRUTH_PROBABILITY or channel.epsilon > caps.question


def _fits(value: Fraction, sizes: Counter[int], caps: Caps) -> bool:
    """Whether questions of these numbers of options may all have the epsilon `value`."""
    channels = {k: from_epsilon(k, value) for k in sizes}
    return (
        not any(_is_too_weak(channel, caps) for channel in channels.values())
        and total_epsilon(channels[k].ratio for k in sizes.elements()) <= caps.survey
    )


def _highest(
    way: str, publishes: Callable[[Fraction], bool], lowest: Fraction = Fraction(1, GRID)
) -> Fraction | None:
    """The highest value on the grid that publishes: all below it, from `lowest` on, do too."""
    end = GRID * MAX_EPSILON + 1 if way == "epsilon" else GRID
    steps = range(int(lowest * GRID), end)
    allowed = bisect_left(steps, True, key=lambda step: not publishes(Fraction(step, GRID)))
    return Fraction(steps[allowed - 1], GRID) if allowed else None


def _refusal(way: str, value: Fraction, k: int, caps: Caps) -> ChannelError:
    useless = Fraction(1, k) if way == "truth_probability" else Fraction(0)
    lowest = smallest_truth_probability(k) if way == "truth_probability" else Fraction(1, GRID)
    highest = _highest(way, lambda v: not _is_too_weak(PRIVACY[way](k, v), caps), lowest)
    limits = (
        f"truth probability is at most {shown(MAX_TRUTH_PROBABILITY)} "
        f"and epsilon at most {caps.question}"
    )
    if value <= useless:
        reason = f"must be above {useless} for {k} options"
    elif highest is None or value > highest:
        reason = f"is too weak for {k} options: {limits}"
    else:
        reason = f"cannot be made exactly for {k} options of integers up to 2^32"
    return ChannelError(
        f"{way} = {shown(value)} {reason}; "
        + (
            "the caps of this instance allow no value"
            if highest is None
            else f"the nearest allowed value is {way} = {shown(_nearest(value, lowest, highest))}"
        )
    )


def _nearest(value: Fraction, lowest: Fraction, highest: Fraction) -> Fraction:
    return min(max(Fraction(round(value * GRID), GRID), lowest), highest)
