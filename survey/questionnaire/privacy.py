"""From a question's stated privacy to its channel under the caps, or the nearest that publishes.

Whatever value an error suggests really publishes: it is found by building its channel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from survey.errors import ChannelError
from survey.mechanism import AnyChannel, WeightTable
from survey.mechanism.accounting import log_rounded_up
from survey.mechanism.design import GRID, MAX_EPSILON, exact_fraction, format_fraction
from survey.questionnaire.designs import CHOSEN, DESIGNS, USUAL, Asked, Choose
from survey.questionnaire.nearest import (
    EVEN,
    Chances,
    Values,
    evened,
    first_allowed,
    first_towards,
    in_a_file,
    mistake_of,
    suggestion,
)
from survey.settings import Caps

MAX_TRUTH_PROBABILITY = Fraction(99, 100)
"""Highest probability of any one report that is published; the client has the same ceiling."""


@dataclass(frozen=True)
class Stated:
    """How one question states its privacy: by which design, by which way, with which value.

    With `choose` the design was not named: it is the one that is best at the value.
    """

    design: str
    way: str
    value: Fraction
    asked: Asked
    choose: Choose | None = None

    def build(self, value: Fraction) -> AnyChannel:
        """The channel that another value of the same way would mean."""
        design = self.choose(self.asked, value) if self.choose else self.design
        return DESIGNS[design].ways[self.way](self.asked, value)

    def with_changes(self, changes: Values) -> Stated:
        """The same with another value, or with other parameters beside it."""
        others = {name: value for name, value in changes.items() if name != self.way}
        asked = replace(self.asked, parameters={**self.asked.parameters, **others})
        return replace(self, value=changes.get(self.way, self.value), asked=asked)

    @property
    def others(self) -> dict[str, Chances]:
        """The parameters beside the value that are chances, one or one per option."""
        found = {}
        for name in DESIGNS[self.design].others:
            with suppress(ChannelError):
                found[name] = _chances(self.asked, name)
        return found

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
    choose = CHOSEN.get(kind) if design is None and set(written) == {"epsilon"} else None
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
    if choose:
        with suppress(ChannelError):  # the design is named when its channel is built
            name = choose(asked, written["epsilon"])
    return Stated(name, stated[0], written[stated[0]], asked, choose)


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
            "the nearest allowed value for equal questions is "
            f"epsilon = {format_fraction(each)} each"
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
    """The error with the nearest values that publish: the stated one, else what stands beside."""
    written = {stated.way: stated.value, **stated.others}
    changed = first_allowed(
        written,
        _candidates(stated, caps),
        lambda **values: _publishes(stated.with_changes(values), caps),
    )
    if changed is None and error is not None:
        return error  # no value helps: something else is wrong
    nearest = suggestion(changed) if changed else "the caps of this instance allow no value"
    return ChannelError(f"{_mistake(stated, caps, error, changed or {})}; {nearest}")


def _publishes(stated: Stated, caps: Caps) -> bool:
    """Whether a statement gives a channel that says something and is under the caps."""
    try:
        return stated.value > stated.useless and not is_too_weak(stated.build(stated.value), caps)
    except ChannelError:
        return False


def _mistake(stated: Stated, caps: Caps, error: ChannelError | None, changed: Values) -> str:
    """What is wrong, said of the first value that has to change."""
    way, value = stated.way, stated.value
    if value <= stated.useless:
        return (
            f"{way} = {format_fraction(value)} must be above {stated.useless} for {stated.subject}"
        )
    if error is not None and set(changed) != {way}:
        return mistake_of(error)
    if error is not None and not _is_weaker(stated, value, changed[way]):
        return (
            f"{way} = {format_fraction(value)} cannot be made exactly for {stated.subject} "
            "of integers up to 2^32"
        )
    name = next(iter(changed), way)
    wrong = f"{way} = {format_fraction(value)} is too weak"
    if name != way:
        other = in_a_file(stated.others[name])
        wrong = f"{name} = {other} is too weak with {way} = {format_fraction(value)}"
    return (
        f"{wrong} for {stated.subject}: truth probability is at most "
        f"{format_fraction(MAX_TRUTH_PROBABILITY)} and epsilon at most {caps.question}"
    )


def _is_weaker(stated: Stated, value: Fraction, nearest: Fraction) -> bool:
    return value < nearest if stated.way == "sigma" else value > nearest


def _candidates(stated: Stated, caps: Caps) -> Iterator[Values]:
    """Changes from the least on: of the value, of one parameter beside it, of both."""
    way = stated.way
    if (nearest := _nearest(stated, caps)) is not None:
        yield {way: nearest}
    for name, chances in stated.others.items():
        evener = _evener(stated, name, chances, caps)
        if evener is not None:
            yield {name: evener}
    for name, chances in stated.others.items():
        for other in (evened(chances, 0), evened(chances, EVEN)):
            nearest = _nearest(stated.with_changes({name: other}), caps)
            if nearest is not None:
                yield {way: nearest, name: other}


def _evener(stated: Stated, name: str, chances: Chances, caps: Caps) -> Chances | None:
    """The least even chances that publish: the more even, the less a report can tell."""
    first = first_towards(
        lambda n: _publishes(stated.with_changes({name: evened(chances, n)}), caps), 0, EVEN
    )
    return None if first is None else evened(chances, first)


def _nearest(stated: Stated, caps: Caps) -> Fraction | None:
    """The candidate that really publishes next to the value that was written; None without one."""
    steps = stated.candidates

    def publishes(index: int) -> bool:
        return _publishes(replace(stated, value=steps[index] * stated.unit), caps)

    wanted = round(stated.value / stated.unit)
    start = min(max((wanted - steps[0]) * steps.step, 0), len(steps) - 1)
    # What is too weak is not made stronger by the weaker ones: these need no search.
    ends = (
        (0,)
        if _is_built(replace(stated, value=steps[start] * stated.unit))
        else (0, len(steps) - 1)
    )
    found = [index for end in ends if (index := first_towards(publishes, start, end)) is not None]
    if not found:
        return None
    return steps[min(found, key=lambda index: abs(index - start))] * stated.unit


def _is_built(stated: Stated) -> bool:
    """Whether a statement gives a channel at all."""
    try:
        return stated.value > stated.useless and bool(stated.build(stated.value))
    except ChannelError:
        return False


def _chances(asked: Asked, name: str) -> Chances:
    """A parameter that is a chance, or a list of them; ChannelError for any other."""
    value = asked.parameters.get(name)
    if isinstance(value, list | tuple):
        if len(value) != asked.ordinary:
            raise ChannelError(f"{name} has {len(value)} entries, not {asked.ordinary}")
        return tuple(exact_fraction(entry, name) for entry in value)
    return exact_fraction(value, name)  # type: ignore[arg-type]
