"""Designs by name, and from the privacy that a question states to the channel of its design.

The mathematics is in `survey.mechanism`; `kinds` says which type of question may use which design.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from survey.errors import ChannelError
from survey.mechanism import (
    AnyChannel,
    WeightTable,
    best,
    from_epsilon,
    from_keep_probability,
    grr,
    multiple_choice,
    numeric,
)
from survey.mechanism.channel import MAX_OPTIONS
from survey.mechanism.exact_numbers import GRID, MAX_EPSILON, exact_fraction
from survey.mechanism.half_space import MAX_HALF_SPACE_BITS
from survey.mechanism.randomized_response import (
    exponential,
    forced_response,
    two_coins,
    unrelated_question,
    warner,
)
from survey.mechanism.ranking import first_or_order
from survey.mechanism.weight_table import MIN_RANKED

MIN_WAVE_POINTS = 7
"""Minimum number of points of a scale that uses the square wave."""

CACHE_SIZE = 512
"""Channels that are cached per constructor: each keystroke in a draft checks it again."""

PRIVACY = ("truth_probability", "keep_probability", "epsilon")
"""The usual ways to state a question's privacy; other designs use a specific parameter."""


@dataclass(frozen=True)
class AnswerSpace:
    """The size of what can be answered, as a channel needs it.

    `ordinary` counts options, or points of a grid; `no_answers` the opt-outs ("does not apply",
    "prefer not to say"). In a multiple choice at most `ticks` ordinary options may be ticked, and
    `alone` options exclude all others. `step` is the distance of two points in the answer's unit.
    `parameters` are those of the design.
    """

    ordinary: int
    no_answers: int
    ticks: int = 0
    alone: int = 0
    step: Fraction = Fraction(1)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> int:
        """Number of options of a single choice, with the opt-outs."""
        return self.ordinary + self.no_answers


Build = Callable[[AnswerSpace, Fraction], AnyChannel]


@dataclass(frozen=True)
class Design:
    """One randomizing design: a constructor per way to state its privacy.

    `ways` maps what is stated ("epsilon", "truth", ...) to the constructor that takes its value; a
    way outside `PRIVACY` is one of the question's parameters. `parameters` are the others.
    `minimum` is the smallest number of ordinary options or points, `options` the largest number of
    options, with those that are added automatically.
    """

    ways: Mapping[str, Build]
    parameters: tuple[str, ...] = ()
    minimum: int = 2
    options: int = MAX_OPTIONS
    is_on_grid: bool = False

    @property
    def has_own_statement(self) -> bool:
        """Whether a parameter of the design states the privacy."""
        return not set(self.ways) & set(PRIVACY)


def _list_per_option(space: AnswerSpace, name: str) -> Sequence[Any]:
    """Return a parameter that has one entry per option; check it before any computation."""
    entries = space.parameters[name]
    if not isinstance(entries, list | tuple) or len(entries) != space.ordinary:
        number = len(entries) if isinstance(entries, list | tuple) else "no list of"
        raise ChannelError(
            f"parameters.{name} has {number} entries; the nearest allowed number is "
            f"{space.ordinary}, one per option"
        )
    return entries


def _row_per_option(space: AnswerSpace) -> Sequence[Sequence[float]]:
    """Return the square table of utilities."""
    rows = _list_per_option(space, "utility")
    for number, row in enumerate(rows):
        if not isinstance(row, list | tuple) or len(row) != space.ordinary:
            raise ChannelError(
                f"parameters.utility, row {number + 1} must have {space.ordinary} numbers, "
                "one per option"
            )
    return [[float(exact_fraction(value, "utility")) for value in row] for row in rows]


def _exponential(space: AnswerSpace, epsilon: Fraction) -> WeightTable:
    table = exponential(_row_per_option(space), epsilon, space.no_answers)
    if np.linalg.matrix_rank(table.matrix) < table.truths:
        raise ChannelError(
            "parameters.utility: the row of one option is a mixture of the others, so that "
            "shares could not be estimated from the reports"
        )
    return table


def _on_grid(constructor: Callable[..., WeightTable]) -> Build:
    # Many questions of a survey may have the same grid and epsilon, and a fine one takes a while.
    build = lru_cache(maxsize=64)(constructor)
    return lambda space, value: build(space.ordinary, value, space.no_answers)


def _for_ticks(constructor: Callable[..., multiple_choice.MultipleChoice]) -> Build:
    build = lru_cache(maxsize=CACHE_SIZE)(constructor)
    return lambda space, value: build(space.ordinary, space.ticks, space.alone, value)


def _with_parameter(constructor: Callable[..., AnyChannel], name: str) -> Build:
    return lambda space, value: constructor(value, space.parameters[name], space.no_answers)


def _for_options(constructor: Callable[..., AnyChannel]) -> Build:
    build = lru_cache(maxsize=CACHE_SIZE)(constructor)
    return lambda space, value: build(space.options, value)


DESIGNS: Mapping[str, Design] = {
    "grr": Design(
        {
            "truth_probability": _for_options(grr),
            "keep_probability": _for_options(from_keep_probability),
            "epsilon": _for_options(from_epsilon),
        }
    ),
    "best": Design({"epsilon": _for_options(best)}),
    "warner": Design({"p": lambda space, p: warner(p, space.no_answers)}),
    "two_coins": Design({"truth": _with_parameter(two_coins, "yes")}, parameters=("yes",)),
    "unrelated_question": Design(
        {"asked": _with_parameter(unrelated_question, "prevalence")}, parameters=("prevalence",)
    ),
    "forced_response": Design(
        {
            "truth": lambda space, t: forced_response(
                t, _list_per_option(space, "forced"), space.no_answers
            )
        },
        parameters=("forced",),
    ),
    "exponential": Design({"epsilon": _exponential}, parameters=("utility",)),
    "geometric": Design({"epsilon": _on_grid(numeric.geometric)}, is_on_grid=True),
    "laplace": Design({"epsilon": _on_grid(numeric.laplace)}, is_on_grid=True),
    "gaussian": Design(
        {
            # sigma is written in the answer's own unit, the channel counts in steps.
            "sigma": lambda space, sigma: numeric.gaussian(
                space.ordinary, sigma / space.step, space.no_answers
            )
        },
        is_on_grid=True,
    ),
    "square_wave": Design(
        {"epsilon": _on_grid(numeric.square_wave)}, minimum=MIN_WAVE_POINTS, is_on_grid=True
    ),
    "one_bit": Design({"epsilon": _on_grid(numeric.one_bit)}, is_on_grid=True),
    "piecewise": Design({"epsilon": _on_grid(numeric.piecewise)}, is_on_grid=True),
    "hybrid": Design({"epsilon": _on_grid(numeric.hybrid)}, is_on_grid=True),
    "optimal_piecewise": Design({"epsilon": _on_grid(numeric.optimal_piecewise)}, is_on_grid=True),
    "bits": Design(
        {
            "epsilon": _for_ticks(multiple_choice.bits),
            "truth_probability": _for_ticks(multiple_choice.per_option),
        }
    ),
    "sampled_options": Design({"epsilon": _for_ticks(multiple_choice.sampled_options)}),
    "half_space": Design(
        {"epsilon": _for_ticks(multiple_choice.half_space)}, options=MAX_HALF_SPACE_BITS
    ),
    "subsets": Design({"epsilon": _for_ticks(multiple_choice.subsets)}),
    "first_or_order": Design({"epsilon": _on_grid(first_or_order)}, minimum=MIN_RANKED),
}


# Statements of privacy

Values = Mapping[str, Any]
"""Values that can be changed, by their names in a definition file."""

Chances = Fraction | tuple[Fraction, ...]
"""The probability of the first of two options, or one probability per option."""


Recommend = Callable[[AnswerSpace, Fraction], str]


@dataclass(frozen=True)
class Statement:
    """How one question states its privacy: by which design, in which way, with which value.

    If the researcher named no design, `recommend` returns the best one for the value. The value, an
    epsilon, is divided into this number of equal `parts`: one for each row of a matrix.
    """

    design: str
    way: str
    value: Fraction
    space: AnswerSpace
    recommend: Recommend | None = None
    parts: int = 1

    def build(self, value: Fraction) -> AnyChannel:
        """Return the channel for one part of another value that is stated in the same way."""
        part = value / self.parts
        design = self.recommend(self.space, part) if self.recommend else self.design
        return DESIGNS[design].ways[self.way](self.space, part)

    def with_changes(self, changes: Values) -> Statement:
        """Return the statement with another value or other parameters."""
        parameters = {name: changes[name] for name in changes if name != self.way}
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


def _parse_chances(space: AnswerSpace, name: str) -> Chances:
    """Return a parameter that is a probability, or a list of them; raises ChannelError."""
    value = space.parameters.get(name)
    if isinstance(value, list | tuple):
        if len(value) != space.ordinary:
            raise ChannelError(f"{name} has {len(value)} entries, not {space.ordinary}")
        return tuple(exact_fraction(entry, name) for entry in value)
    return exact_fraction(value, name)  # type: ignore[arg-type]
