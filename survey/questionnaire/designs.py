"""The ways of asking by their names: for which questions, and how their privacy is stated.

Each entry turns what a researcher writes into a channel; the mathematics is `survey.mechanism`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from survey.errors import ChannelError
from survey.estimator.numbers.mean import smallest_worst_variance
from survey.mechanism import (
    AnyChannel,
    WeightTable,
    best,
    classical,
    from_epsilon,
    from_keep_probability,
    grr,
    multiple_choice,
    numeric,
)
from survey.mechanism.design import exact_fraction

SHORTEST_WAVE = 7
"""Fewest points of a scale whose distribution is asked for by square wave."""

REMEMBERED = 512
"""Channels of one way of asking that are kept: a draft is checked again with every word of it."""

PRIVACY = ("truth_probability", "keep_probability", "epsilon")
"""The three ways to state a question's privacy; other designs state it by a parameter."""


@dataclass(frozen=True)
class Asked:
    """What a question offers to its channel.

    `ordinary` options, or points of a grid, and `no_answers` ("does not apply", "prefer not to
    say"); for multiple choice at most `ticks` ordinary ones, and `alone` that stand alone. `step`
    is the distance of two points in the answer's own unit.
    """

    ordinary: int
    no_answers: int
    ticks: int = 0
    alone: int = 0
    step: Fraction = Fraction(1)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> int:
        """Options of a single choice, the ones that are no answer among them."""
        return self.ordinary + self.no_answers


Build = Callable[[Asked, Fraction], AnyChannel]


@dataclass(frozen=True)
class Design:
    """One way of asking: the types of question it is for, and a constructor per way to state it.

    `ways` maps what is stated ("epsilon", "truth", ...) to the constructor that takes its value;
    a way that is not in `PRIVACY` stands among the question's parameters. `others` are the
    parameters there are beside it.
    """

    types: tuple[str, ...]
    ways: Mapping[str, Build]
    others: tuple[str, ...] = ()
    fewest: int = 2

    @property
    def states_itself(self) -> bool:
        """Whether the privacy is stated by a parameter of the design's own."""
        return not set(self.ways) & set(PRIVACY)


def _one_per_option(asked: Asked, name: str) -> Sequence[Any]:
    """A parameter that has one entry per option; looked at before anything is computed with it."""
    entries = asked.parameters[name]
    if not isinstance(entries, list | tuple) or len(entries) != asked.ordinary:
        there = len(entries) if isinstance(entries, list | tuple) else "no list of"
        raise ChannelError(
            f"parameters.{name} has {there} entries; the nearest allowed number is "
            f"{asked.ordinary}, one per option"
        )
    return entries


def _one_row_per_option(asked: Asked) -> Sequence[Sequence[float]]:
    """A square utility table whose rows differ enough for shares to be estimated."""
    rows = _one_per_option(asked, "utility")
    for number, row in enumerate(rows):
        if not isinstance(row, list | tuple) or len(row) != asked.ordinary:
            raise ChannelError(
                f"parameters.utility, row {number + 1} must have {asked.ordinary} numbers, "
                "one per option"
            )
    return [[float(exact_fraction(value, "utility")) for value in row] for row in rows]


def _exponential(asked: Asked, epsilon: Fraction) -> WeightTable:
    table = classical.exponential(_one_row_per_option(asked), epsilon, asked.no_answers)
    if np.linalg.matrix_rank(table.matrix) < table.truths:
        raise ChannelError(
            "parameters.utility: one option's row is a mixture of the others', so that no shares "
            "could be estimated from the reports"
        )
    return table


CHOICES = ("yes_no", "single_choice", "scale")
GRIDS = ("number", "date")


def _on_grid(constructor: Callable[..., WeightTable]) -> Build:
    # Many questions of a survey may have the same grid and epsilon; a fine one takes a while.
    made = lru_cache(maxsize=64)(constructor)
    return lambda asked, value: made(asked.ordinary, value, asked.no_answers)


def _of_ticks(constructor: Callable[..., multiple_choice.MultipleChoice]) -> Build:
    made = lru_cache(maxsize=REMEMBERED)(constructor)
    return lambda asked, value: made(asked.ordinary, asked.ticks, asked.alone, value)


def _of_options(constructor: Callable[..., AnyChannel]) -> Build:
    made = lru_cache(maxsize=REMEMBERED)(constructor)
    return lambda asked, value: made(asked.options, value)


DESIGNS: Mapping[str, Design] = MappingProxyType(
    {
        "grr": Design(
            CHOICES,
            {
                "truth_probability": _of_options(grr),
                "keep_probability": _of_options(from_keep_probability),
                "epsilon": _of_options(from_epsilon),
            },
        ),
        "best": Design(CHOICES, {"epsilon": _of_options(best)}),
        "warner": Design(
            ("yes_no",), {"p": lambda asked, p: classical.warner(p, asked.no_answers)}
        ),
        "two_coins": Design(
            ("yes_no",),
            {
                "truth": lambda asked, t: classical.two_coins(
                    t, asked.parameters["yes"], asked.no_answers
                )
            },
            others=("yes",),
        ),
        "unrelated_question": Design(
            ("yes_no",),
            {
                "asked": lambda asked, p: classical.unrelated_question(
                    p, asked.parameters["prevalence"], asked.no_answers
                )
            },
            others=("prevalence",),
        ),
        "forced_response": Design(
            CHOICES,
            {
                "truth": lambda asked, t: classical.forced_response(
                    t, _one_per_option(asked, "forced"), asked.no_answers
                )
            },
            others=("forced",),
        ),
        "exponential": Design(
            ("single_choice", "scale"),
            {"epsilon": _exponential},
            others=("utility",),
        ),
        "geometric": Design(("scale", *GRIDS), {"epsilon": _on_grid(numeric.geometric)}),
        "laplace": Design(("scale", *GRIDS), {"epsilon": _on_grid(numeric.laplace)}),
        "gaussian": Design(
            ("scale", *GRIDS),
            {
                # sigma is written in the answer's own unit, the channel counts in steps.
                "sigma": lambda asked, sigma: numeric.gaussian(
                    asked.ordinary, sigma / asked.step, asked.no_answers
                )
            },
        ),
        "square_wave": Design(
            ("scale", *GRIDS), {"epsilon": _on_grid(numeric.square_wave)}, fewest=SHORTEST_WAVE
        ),
        "one_bit": Design(GRIDS, {"epsilon": _on_grid(numeric.one_bit)}),
        "piecewise": Design(GRIDS, {"epsilon": _on_grid(numeric.piecewise)}),
        "hybrid": Design(GRIDS, {"epsilon": _on_grid(numeric.hybrid)}),
        "bits": Design(
            ("multiple_choice",),
            {
                "epsilon": _of_ticks(multiple_choice.bits),
                "truth_probability": _of_ticks(multiple_choice.per_option),
            },
        ),
        "sampled_options": Design(
            ("multiple_choice",), {"epsilon": _of_ticks(multiple_choice.sampled_options)}
        ),
        "subsets": Design(("multiple_choice",), {"epsilon": _of_ticks(multiple_choice.subsets)}),
    }
)

USUAL: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(CHOICES, "grr"),
        **dict.fromkeys(GRIDS, "hybrid"),
        "multiple_choice": "bits",
    }
)
"""The design of a question that names none, where `CHOSEN` has no better one."""

Choose = Callable[[Asked, Fraction], str]


def _of_multiple_choice(asked: Asked, epsilon: Fraction) -> str:
    return multiple_choice.smallest_variance(asked.ordinary, asked.ticks, asked.alone, epsilon)[0]


def _of_numbers(asked: Asked, epsilon: Fraction) -> str:
    return smallest_worst_variance(asked.ordinary, epsilon, asked.no_answers)


CHOSEN: Mapping[str, Choose] = MappingProxyType(
    {"multiple_choice": _of_multiple_choice, **dict.fromkeys(GRIDS, _of_numbers)}
)
"""The best design of those that name none, by type of question, at an epsilon."""


def names_for(kind: str) -> list[str]:
    """The designs that a type of question may have."""
    return [name for name, design in DESIGNS.items() if kind in design.types]
