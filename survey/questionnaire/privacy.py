"""From a question's stated privacy to its channel under the caps, or the nearest that publishes.

Whatever value an error suggests really publishes: it is found by building its channel.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from survey.errors import ChannelError
from survey.mechanism import AnyChannel, WeightTable, multiple_choice
from survey.mechanism.accounting import log_rounded_up, total_ratio
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


def total_ratio_of(
    groups: Iterable[Iterable[str]], ratios: Mapping[str, Fraction], drawn: int
) -> Fraction:
    """e^epsilon of a survey that draws `drawn` of its groups of questions for each person.

    The product over the groups that give away most, whoever they fall to. `ratios` maps a
    question's id to its own.

    >>> ratios = {"a": Fraction(2), "b": Fraction(5), "c": Fraction(3)}
    >>> total_ratio_of([["a", "b"], ["c"]], ratios, 1)
    Fraction(10, 1)
    """
    together = (total_ratio(ratios[name] for name in group) for group in groups)
    return total_ratio(sorted(together, reverse=True)[:drawn])


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
    """The largest probability of any report, of any bit for bit vectors, under any truth."""
    if isinstance(channel, WeightTable):
        return Fraction(int(channel.weights.max()), channel.total)
    return channel.exact_p


def _refusal(stated: Stated, caps: Caps, error: ChannelError | None) -> ChannelError:
    way, value = stated.way, stated.value
    highest = _highest(stated, lambda channel: not is_too_weak(channel, caps))
    if highest is None and error is not None:
        return error  # no value of this parameter helps: something else is wrong
    limits = (
        f"truth probability is at most {shown(MAX_TRUTH_PROBABILITY)} "
        f"and epsilon at most {caps.question}"
    )
    if value <= stated.useless:
        reason = f"must be above {stated.useless} for {stated.subject}"
    elif highest is None or error is None or _is_weaker(stated, value, highest):
        reason = f"is too weak for {stated.subject}: {limits}"
    else:
        reason = f"cannot be made exactly for {stated.subject} of integers up to 2^32"
    return ChannelError(
        f"{way} = {shown(value)} {reason}; "
        + (
            "the caps of this instance allow no value"
            if highest is None
            else f"the nearest allowed value is {way} = {shown(_nearest(stated, highest))}"
        )
    )


def _highest(stated: Stated, fits: Callable[[AnyChannel], bool]) -> Fraction | None:
    """The least private candidate that publishes: all that are more private do too."""

    def is_refused(step: int) -> bool:
        try:
            return not fits(stated.build(step * stated.unit))
        except ChannelError:
            return True

    steps = stated.candidates
    allowed = bisect_left(steps, True, key=is_refused)
    return steps[allowed - 1] * stated.unit if allowed else None


def _is_weaker(stated: Stated, value: Fraction, highest: Fraction) -> bool:
    return value < highest if stated.way == "sigma" else value > highest


def _nearest(stated: Stated, highest: Fraction) -> Fraction:
    """The allowed candidate next to the value that was written."""
    first = stated.candidates[0] * stated.unit
    low, high = min(first, highest), max(first, highest)
    return min(max(round(stated.value / stated.unit) * stated.unit, low), high)
