"""From a question's stated privacy to its channel under the caps, or the nearest that publishes.

Whatever value an error suggests really publishes: it is found by building its channel.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from survey.errors import ChannelError
from survey.mechanism import AnyChannel, WeightTable, multiple_choice
from survey.mechanism.accounting import log_rounded_up
from survey.mechanism.design import GRID, MAX_EPSILON, shown
from survey.questionnaire.designs import DESIGNS, USUAL, Asked
from survey.settings import Caps

MAX_TRUTH_PROBABILITY = Fraction(99, 100)
"""Highest probability of any one report that is published; the client has the same ceiling."""


@dataclass(frozen=True)
class Stated:
    """How one question states its privacy: by which design, by which way, with which value."""

    design: str
    way: str
    value: Fraction
    asked: Asked

    def build(self, value: Fraction) -> AnyChannel:
        """The channel that another value of the same way would mean."""
        return DESIGNS[self.design].ways[self.way](self.asked, value)

    @property
    def candidates(self) -> range:
        """Values to suggest, in units of `unit`, from the most private to the least."""
        if self.way == "epsilon":
            return range(1, GRID * MAX_EPSILON + 1)
        if self.way == "sigma":
            return range(2 * GRID * self.asked.ordinary, 0, -1)
        return range(int(self.useless * GRID) + 1, GRID)

    @property
    def unit(self) -> Fraction:
        """What the candidates count."""
        return (self.asked.step if self.way == "sigma" else Fraction(1)) / GRID

    @property
    def useless(self) -> Fraction:
        """The value at which a report says nothing."""
        if (self.design, self.way) == ("grr", "truth_probability"):
            return Fraction(1, self.asked.options)
        return Fraction(1, 2) if self.way in ("truth_probability", "p") else Fraction(0)

    @property
    def subject(self) -> str:
        """What the channel is for, in words."""
        if self.asked.alone:
            return f"{self.asked.ordinary + self.asked.alone} options"
        on_grid = DESIGNS[self.design].types[-1] == "date"
        return (
            f"a grid of {self.asked.ordinary:,} points"
            if on_grid
            else f"{self.asked.options} options"
        )


def state(kind: str, design: str | None, asked: Asked, written: Mapping[str, Fraction]) -> Stated:
    """Which design and way a question of type `kind` means; raises ChannelError for none or two.

    `written` maps every way that is stated, among `PRIVACY` or the parameters, to its value.
    """
    if kind == "multiple_choice" and design is None:
        design = _smallest_variance(asked, written)
    name = design or USUAL[kind]
    ways = DESIGNS[name].ways
    stated = [way for way in written if way in ways]
    unfit = [way for way in written if way not in ways]
    if unfit or len(stated) != 1:
        told = [*stated, *unfit]
        raise ChannelError(
            f"state {'one of ' if len(ways) > 1 else ''}{', '.join(ways)}, "
            + (f"not {' and '.join(told)}" if told else "here or for the whole survey")
            + ("" if not design else f" (mechanism {name})")
        )
    return Stated(name, stated[0], written[stated[0]], asked)


def _smallest_variance(asked: Asked, written: Mapping[str, Fraction]) -> str:
    if set(written) != {"epsilon"}:
        return "bits"
    try:
        return multiple_choice.smallest_variance(
            asked.ordinary, asked.ticks, asked.alone, written["epsilon"]
        )[0]
    except ChannelError:
        return "bits"


def build_channel(stated: Stated, caps: Caps) -> AnyChannel:
    """The channel that was stated.

    Raises ChannelError, with the nearest value on the grid of 1/1000 that publishes.

    >>> build_channel(Stated("grr", "truth_probability", Fraction(3, 4), Asked(2, 0)), Caps()).ratio
    Fraction(3, 1)
    >>> build_channel(Stated("grr", "epsilon", Fraction(13), Asked(2, 0)), Caps())
    Traceback (most recent call last):
    survey.errors.ChannelError: epsilon = 13 is too weak for 2 options: truth probability is at \
most 0.99 and epsilon at most 8; the nearest allowed value is epsilon = 4.595
    """
    try:
        channel = stated.build(stated.value)
    except ChannelError as error:
        raise _refusal(stated, caps, error) from None
    # Warner's cards below one half could be read too, but a device never runs them.
    if is_too_weak(channel, caps) or stated.value <= stated.useless:
        raise _refusal(stated, caps, None)
    return channel


def total_mistake(total: Fraction, questions: int, caps: Caps) -> str | None:
    """What is wrong with the sum of all questions, with the nearest epsilon for equal ones.

    `total` is e^epsilon of all that one person sends, about `questions` questions.
    """
    epsilon = log_rounded_up(total)
    if epsilon <= caps.survey:
        return None
    each = Fraction(int(Fraction(min(caps.survey / questions, caps.question)) * GRID), GRID)
    return (
        f"total epsilon {epsilon:.4g} of {questions} questions is above the cap of "
        f"{caps.survey}; "
        + (
            f"the nearest allowed value for equal questions is epsilon = {shown(each)} each"
            if each
            else "ask fewer questions"
        )
    )


def is_too_weak(channel: AnyChannel, caps: Caps) -> bool:
    """Whether a channel is above a cap."""
    return likeliest(channel) > MAX_TRUTH_PROBABILITY or channel.epsilon > caps.question


def likeliest(channel: AnyChannel) -> Fraction:
    """The chance that the best guess from a report is right, for the truth where it is largest.

    p of a report or a bit; for a table the sum over the reports that are likeliest under a truth:
    many reports that say the same are worth one.
    """
    if isinstance(channel, WeightTable):
        rows = channel.weights
        guessed = np.where(rows == rows.max(axis=0), rows, 0).sum(axis=1)
        return Fraction(int(guessed.max()), channel.total)
    return channel.exact_p


def _refusal(stated: Stated, caps: Caps, error: ChannelError | None) -> ChannelError:
    nearest = _nearest(stated, lambda channel: not is_too_weak(channel, caps))
    if nearest is None and error is not None:
        return error  # no value of this parameter helps: something else is wrong
    way, value = stated.way, stated.value
    if value <= stated.useless:
        reason = f"must be above {stated.useless} for {stated.subject}"
    elif error is None or nearest is None or _is_weaker(stated, value, nearest):
        reason = (
            f"is too weak for {stated.subject}: truth probability is at most "
            f"{shown(MAX_TRUTH_PROBABILITY)} and epsilon at most {caps.question}"
        )
    else:
        reason = f"cannot be made exactly for {stated.subject} of integers up to 2^32"
    suggestion = (
        "the caps of this instance allow no value"
        if nearest is None
        else f"the nearest allowed value is {way} = {shown(nearest)}"
    )
    return ChannelError(f"{way} = {shown(value)} {reason}; {suggestion}")


def _is_weaker(stated: Stated, value: Fraction, nearest: Fraction) -> bool:
    return value < nearest if stated.way == "sigma" else value > nearest


def _nearest(stated: Stated, fits: Callable[[AnyChannel], bool]) -> Fraction | None:
    """The candidate that really publishes next to the value that was written; None without one."""

    def publishes(index: int) -> bool:
        value = stated.candidates[index] * stated.unit
        try:
            return value > stated.useless and fits(stated.build(value))
        except ChannelError:
            return False

    steps = stated.candidates
    wanted = round(stated.value / stated.unit)
    start = min(max((wanted - steps[0]) * steps.step, 0), len(steps) - 1)
    found = [
        index
        for end in (0, len(steps) - 1)
        if (index := _first_towards(publishes, start, end)) is not None
    ]
    if not found:
        return None
    return steps[min(found, key=lambda index: abs(index - start))] * stated.unit


def _first_towards(publishes: Callable[[int], bool], start: int, end: int) -> int | None:
    """The first index from `start` on towards `end` that publishes, by ever longer steps.

    Between a step that does and the one before that does not, the edge is found by halving: what
    is returned was built, whatever lies between.
    """
    if publishes(start):
        return start
    away, refused = 1, start
    while refused != end:
        reached = min(refused + away, end) if end > start else max(refused - away, end)
        if publishes(reached):
            between = range(refused, reached, 1 if end > start else -1)
            first = bisect_left(between, True, key=publishes)
            return between[first] if first < len(between) else reached
        away, refused = 2 * away, reached
    return None
