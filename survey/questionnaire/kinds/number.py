"""Questions whose answer is a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import PrivateAttr, StringConstraints

from survey.errors import ChannelError
from survey.mechanism.design import format_fraction
from survey.questionnaire.designs import AnswerSpace
from survey.questionnaire.grid import Grid, number_grid, too_few_numbers
from survey.questionnaire.kinds.base import GridKind
from survey.questionnaire.kinds.question import BaseQuestion, ExactNumber
from survey.questionnaire.texts import Text


class Number(GridKind):
    """A number between two bounds, rounded on the device to a grid."""

    type = "number"
    label = "A number between two bounds"
    fields = ("low", "high", "step", "unit")

    def source(
        self,
        form: Mapping[str, Any],
        options: Sequence[Mapping[str, Any]],
        unit: Callable[[str], Any],
    ) -> dict[str, Any]:
        grid = form["grid"]
        scale = 10 ** grid["decimals"]
        high = grid["low"] + grid["step"] * (grid["points"] - 1)
        numbers = {"low": grid["low"], "high": high, "step": grid["step"]}
        return {
            **{name: format_fraction(Fraction(value, scale)) for name, value in numbers.items()},
            "unit": unit(grid["unit"]),
        }


class NumberQuestion(BaseQuestion):
    """A number between two bounds, rounded on the device to a grid."""

    type: Literal["number"]
    low: ExactNumber
    high: ExactNumber
    step: ExactNumber = Fraction(1)
    unit: Annotated[Text, StringConstraints(max_length=40, pattern=r"^[^\n]*$")] = ""
    _grid: Grid = PrivateAttr()

    def _check(self) -> None:
        self._grid = number_grid(self.low, self.high, self.step, self.unit)

    def _size_mistake(self, minimum: int) -> ChannelError | None:
        if self._grid.points >= minimum:
            return None
        return too_few_numbers(self.low, self.high, self.step, minimum)

    @property
    def grid(self) -> Grid:
        """The numbers that can be reported."""
        return self._grid

    @property
    def answer_space(self) -> AnswerSpace:
        return AnswerSpace(
            self._grid.points, len(self.special), step=self.step, parameters=self.parameters
        )
