"""From a question's stated privacy to its channel under the caps, or the nearest allowed values.

Every value that an error suggests has been checked by building its channel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from survey.errors import ChannelError
from survey.mechanism import AnyChannel, WeightTable
from survey.mechanism.accounting import log_rounded_up
from survey.mechanism.design import GRID, MAX_EPSILON, exact_fraction, format_fraction
from survey.questionnaire.designs import DESIGNS, AnswerSpace
from survey.questionnaire.suggestion import (
    STEPS_TO_EVEN,
    Chances,
    Values,
    evened,
    first_allowed,
    first_towards,
    format_value,
    mistake_of,
    suggestion,
)
from survey.settings import Caps

MAX_TRUTH_PROBABILITY = Fraction(99, 100)
"""Highest truth probability that can be published; the client has the same ceiling."""


class MechanismChoice(Protocol):
    """A question type, as far as its mechanisms go."""

    @property
    def mechanism(self) -> str: ...
    def recommend_mechanism(self, space: AnswerSpace, epsilon: Fraction) -> str: ...


Recommend = Callable[[AnswerSpace, Fraction], str]


@dataclass(frozen=True)
class Statement:
    """How one question states its privacy: by which design, in which way, with which value.

    With `recommend` the researcher named no design: it is the best one at the value.
    """

    design: str
    way: str
    value: Fraction
    space: AnswerSpace
    recommend: Recommend | None = None

    def build(self, value: Fraction) -> AnyChannel:
        """Return the channel that another value of the same way would mean."""
        design = self.recommend(self.space, value) if self.recommend else self.design
        return DESIGNS[design].ways[self.way](self.space, value)

    def with_changes(self, changes: Values) -> Statement:
        """Return the statement with another value or other parameters."""
        parameters = {name: value for name, value in changes.items() if name != self.way}
        space = replace(self.space, parameters={**self.space.parameters, **parameters})
        return replace(self, value=changes.get(self.way, self.value), space=space)

    @property
    def chances(self) -> dict[str, Chances]:
        """The parameters beside the value that are probabilities, one or one per option."""
        chances = {}
        for name in DESIGNS[self.design].parameters:
            with suppress(ChannelError):
                chances[name] = _parse_chances(self.space, name)
        return chances

    @property
    def candidates(self) -> range:
        """Values to suggest, in units of `unit`, from the most private to the least."""
        if self.way == "epsilon":
            return range(1, GRID * MAX_EPSILON + 1)
        if self.way == "sigma":
            return range(2 * GRID * self.space.ordinary, 0, -1)
        return range(int(self.useless * GRID) + 1, GRID)

    @property
    def unit(self) -> Fraction:
        """The unit of the candidates."""
        return (self.space.step if self.way == "sigma" else Fraction(1)) / GRID

    @property
    def useless(self) -> Fraction:
        """The value at which a report carries no information."""
        if (self.design, self.way) == ("grr", "truth_probability"):
            return Fraction(1, self.space.options)
        return Fraction(1, 2) if self.way in ("truth_probability", "p") else Fraction(0)

    @property
    def subject(self) -> str:
        """What the channel is for, in words."""
        if self.space.alone:
            return f"{self.space.ordinary + self.space.alone} options"
        if DESIGNS[self.design].is_on_grid:
            return f"a grid of {self.space.ordinary:,} points"
        return f"{self.space.options} options"


def parse_statement(
    kind: MechanismChoice,
    design: str | None,
    space: AnswerSpace,
    statements: Mapping[str, Fraction],
) -> Statement:
    """Return the one design and way that a question means; raises ChannelError for none or two.

    `statements` maps every way that is stated, among `PRIVACY` or the parameters, to its value.
    """
    recommends = design is None and set(statements) == {"epsilon"}
    name = design or kind.mechanism
    ways = DESIGNS[name].ways
    fitting = [way for way in statements if way in ways]
    unfit = [way for way in statements if way not in ways]
    if unfit or len(fitting) != 1:
        listed = [*fitting, *unfit]
        raise ChannelError(
            f"state {'one of ' if len(ways) > 1 else ''}{', '.join(ways)}, "
            + (f"not {' and '.join(listed)}" if listed else "here or for the whole survey")
            + ("" if not design else f" (mechanism {name})")
        )
    if recommends:
        with suppress(ChannelError):  # building the channel reports this error
            name = kind.recommend_mechanism(space, statements["epsilon"])
    recommend = kind.recommend_mechanism if recommends else None
    return Statement(name, fitting[0], statements[fitting[0]], space, recommend)


def build_channel(statement: Statement, caps: Caps) -> AnyChannel:
    """Build the channel of a statement.

    Raises ChannelError, with the nearest value in thousandths that can be published.

    >>> space = AnswerSpace(2, 0)
    >>> build_channel(Statement("grr", "truth_probability", Fraction(3, 4), space), Caps()).ratio
    Fraction(3, 1)
    >>> build_channel(Statement("grr", "epsilon", Fraction(13), space), Caps())
    Traceback (most recent call last):
    survey.errors.ChannelError: epsilon = 13 is too weak for 2 options: truth probability is at \
most 0.99 and epsilon at most 8; the nearest allowed value is epsilon = 4.595
    """
    try:
        channel = statement.build(statement.value)
    except ChannelError as error:
        raise _refusal(statement, caps, error) from None
    # The estimator could invert Warner's cards below one half too, but no device runs them.
    if is_too_weak(channel, caps) or statement.value <= statement.useless:
        raise _refusal(statement, caps, None)
    return channel


def total_mistake(total: Fraction, questions: int, caps: Caps) -> str | None:
    """Return what is wrong with the sum of all questions, with the nearest epsilon for equal ones.

    `total` is e^epsilon of everything that one respondent sends about `questions` questions.
    """
    epsilon = log_rounded_up(total)
    if epsilon <= caps.survey:
        return None
    equal = Fraction(int(Fraction(min(caps.survey / questions, caps.question)) * GRID), GRID)
    return (
        f"total epsilon {epsilon:.4g} of {questions} questions is above the cap of "
        f"{caps.survey}; "
        + (
            "the nearest allowed value for equal questions is "
            f"epsilon = {format_fraction(equal)} each"
            if equal
            else "ask fewer questions"
        )
    )


def is_too_weak(channel: AnyChannel, caps: Caps) -> bool:
    """Whether a channel is above a cap."""
    return best_guess_probability(channel) > MAX_TRUTH_PROBABILITY or (
        channel.epsilon > caps.question
    )


def best_guess_probability(channel: AnyChannel) -> Fraction:
    """P(the best guess from a report is right), for the truth where it is largest.

    p of a report or a bit; for a table the sum over the reports that are likeliest under a truth:
    several reports that mean the same count as one.
    """
    if isinstance(channel, WeightTable):
        rows = channel.weights
        correct = np.where(rows == rows.max(axis=0), rows, 0).sum(axis=1)
        return Fraction(int(correct.max()), channel.total)
    return channel.exact_p


def _refusal(statement: Statement, caps: Caps, error: ChannelError | None) -> ChannelError:
    """Return the error with the nearest values that can be published."""
    values = {statement.way: statement.value, **statement.chances}
    changes = first_allowed(
        values,
        _candidates(statement, caps),
        lambda **changed: _is_publishable(statement.with_changes(changed), caps),
    )
    if changes is None and error is not None:
        return error  # no value helps: something else is wrong
    nearest = suggestion(changes) if changes else "the caps of this instance allow no value"
    return ChannelError(f"{_describe_mistake(statement, caps, error, changes or {})}; {nearest}")


def _is_publishable(statement: Statement, caps: Caps) -> bool:
    """Whether a statement gives a channel that carries information and is under the caps."""
    try:
        return statement.value > statement.useless and not is_too_weak(
            statement.build(statement.value), caps
        )
    except ChannelError:
        return False


def _describe_mistake(
    statement: Statement, caps: Caps, error: ChannelError | None, changes: Values
) -> str:
    """Describe what is wrong with the first value that has to change."""
    way, value = statement.way, statement.value
    if value <= statement.useless:
        return (
            f"{way} = {format_fraction(value)} must be above {statement.useless} for "
            f"{statement.subject}"
        )
    if error is not None and set(changes) != {way}:
        return mistake_of(error)
    if error is not None and not _is_weaker(statement, value, changes[way]):
        return (
            f"{way} = {format_fraction(value)} cannot be made exactly for {statement.subject} "
            "of integers up to 2^32"
        )
    name = next(iter(changes), way)
    mistake = f"{way} = {format_fraction(value)} is too weak"
    if name != way:
        parameter = format_value(statement.chances[name])
        mistake = f"{name} = {parameter} is too weak with {way} = {format_fraction(value)}"
    return (
        f"{mistake} for {statement.subject}: truth probability is at most "
        f"{format_fraction(MAX_TRUTH_PROBABILITY)} and epsilon at most {caps.question}"
    )


def _is_weaker(statement: Statement, value: Fraction, nearest: Fraction) -> bool:
    return value < nearest if statement.way == "sigma" else value > nearest


def _candidates(statement: Statement, caps: Caps) -> Iterator[Values]:
    """Yield changes, smallest first: of the value, of one parameter, of both."""
    way = statement.way
    if (nearest := _nearest_value(statement, caps)) is not None:
        yield {way: nearest}
    for name, chances in statement.chances.items():
        evener = _even_out(statement, name, chances, caps)
        if evener is not None:
            yield {name: evener}
    for name, chances in statement.chances.items():
        for changed in (evened(chances, 0), evened(chances, STEPS_TO_EVEN)):
            nearest = _nearest_value(statement.with_changes({name: changed}), caps)
            if nearest is not None:
                yield {way: nearest, name: changed}


def _even_out(statement: Statement, name: str, chances: Chances, caps: Caps) -> Chances | None:
    """Return the least even chances that can be published: even chances reveal less."""
    steps = first_towards(
        lambda n: _is_publishable(statement.with_changes({name: evened(chances, n)}), caps),
        0,
        STEPS_TO_EVEN,
    )
    return None if steps is None else evened(chances, steps)


def _nearest_value(statement: Statement, caps: Caps) -> Fraction | None:
    """Return the publishable candidate nearest to the written value, or None."""
    steps = statement.candidates

    def allows(index: int) -> bool:
        return _is_publishable(replace(statement, value=steps[index] * statement.unit), caps)

    rounded = round(statement.value / statement.unit)
    start = min(max((rounded - steps[0]) * steps.step, 0), len(steps) - 1)
    # If the start is only too weak, weaker candidates cannot help and need no search.
    ends = (
        (0,)
        if _is_buildable(replace(statement, value=steps[start] * statement.unit))
        else (0, len(steps) - 1)
    )
    indices = [index for end in ends if (index := first_towards(allows, start, end)) is not None]
    if not indices:
        return None
    return steps[min(indices, key=lambda index: abs(index - start))] * statement.unit


def _is_buildable(statement: Statement) -> bool:
    """Whether a statement gives a channel at all."""
    try:
        return statement.value > statement.useless and bool(statement.build(statement.value))
    except ChannelError:
        return False


def _parse_chances(space: AnswerSpace, name: str) -> Chances:
    """Return a parameter that is a probability, or a list of them; raises ChannelError."""
    value = space.parameters.get(name)
    if isinstance(value, list | tuple):
        if len(value) != space.ordinary:
            raise ChannelError(f"{name} has {len(value)} entries, not {space.ordinary}")
        return tuple(exact_fraction(entry, name) for entry in value)
    return exact_fraction(value, name)  # type: ignore[arg-type]
