"""The ways of asking by their names: for which questions, and how their privacy is stated.

Each entry turns what a researcher writes into a channel; the mathematics is `survey.mechanism`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from survey.mechanism import (
    AnyChannel,
    WeightTable,
    best,
    classical,
    from_epsilon,
    from_keep_probability,
    grr,
    multiple_choice,
    noise,
    numeric,
)

SHORTEST_WAVE = 7
"""Fewest points of a scale whose distribution is asked for by square wave."""

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


CHOICES = ("yes_no", "single_choice", "scale")
GRIDS = ("number", "date")


def _on_grid(constructor: Callable[..., WeightTable]) -> Build:
    return lambda asked, value: constructor(asked.ordinary, value, asked.no_answers)


def _of_ticks(constructor: Callable[..., multiple_choice.MultipleChoice]) -> Build:
    return lambda asked, value: constructor(asked.ordinary, asked.ticks, asked.alone, value)


DESIGNS: Mapping[str, Design] = MappingProxyType(
    {
        "grr": Design(
            CHOICES,
            {
                "truth_probability": lambda asked, p: grr(asked.options, p),
                "keep_probability": lambda asked, t: from_keep_probability(asked.options, t),
                "epsilon": lambda asked, epsilon: from_epsilon(asked.options, epsilon),
            },
        ),
        "best": Design(CHOICES, {"epsilon": lambda asked, epsilon: best(asked.options, epsilon)}),
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
                    t, asked.parameters["forced"], asked.no_answers
                )
            },
            others=("forced",),
        ),
        "exponential": Design(
            ("single_choice", "scale"),
            {
                "epsilon": lambda asked, epsilon: noise.exponential(
                    asked.parameters["utility"], epsilon, asked.no_answers
                )
            },
            others=("utility",),
        ),
        "geometric": Design(("scale", *GRIDS), {"epsilon": _on_grid(noise.geometric)}),
        "laplace": Design(("scale", *GRIDS), {"epsilon": _on_grid(noise.laplace)}),
        "gaussian": Design(
            ("scale", *GRIDS),
            {
                # sigma is written in the answer's own unit, the channel counts in steps.
                "sigma": lambda asked, sigma: noise.gaussian(
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
    {**dict.fromkeys(CHOICES, "grr"), **dict.fromkeys(GRIDS, "hybrid")}
)
"""The design of a question that names none; multiple choice takes the smallest variance."""


def names_for(kind: str) -> list[str]:
    """The designs that a type of question may have."""
    return [name for name, design in DESIGNS.items() if kind in design.types]
