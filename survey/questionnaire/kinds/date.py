"""Questions whose answer is a day."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, StrictInt

from survey.errors import ChannelError
from survey.questionnaire.designs import AnswerSpace
from survey.questionnaire.grid import EPOCH, Grid, date_grid, too_few_dates
from survey.questionnaire.kinds.base import GridKind
from survey.questionnaire.kinds.question import BaseQuestion


class Date(GridKind):
    """A day between two days, rounded on the device to every `step` days."""

    type = "date"
    label = "A date between two days"
    is_date = True
    fields = ("low", "high", "step")
    whole_fields = ("step",)

    def source(
        self,
        form: Mapping[str, Any],
        options: Sequence[Mapping[str, Any]],
        unit: Callable[[str], Any],
    ) -> dict[str, Any]:
        grid = form["grid"]
        low, step = grid["low"], grid["step"]
        high = low + step * (grid["points"] - 1)
        return {
            "low": (EPOCH + timedelta(low)).isoformat(),
            "high": (EPOCH + timedelta(high)).isoformat(),
            "step": step,
        }


def _parse_day(value: Any) -> date:
    """Accept a day as TOML has it, or as text."""
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        day = None
    if type(day) is not date:  # a datetime is a date to Python
        raise ValueError("must be a date such as 2020-01-31")
    return day


Day = Annotated[date, BeforeValidator(_parse_day)]


class DateQuestion(BaseQuestion):
    """A day between two days, rounded on the device to every `step` days."""

    type: Literal["date"]
    low: Day
    high: Day
    step: StrictInt = Field(default=1, ge=1)
    _grid: Grid = PrivateAttr()

    def _check(self) -> None:
        self._grid = date_grid(self.low, self.high, self.step)

    def _size_mistake(self, minimum: int) -> ChannelError | None:
        if self._grid.points >= minimum:
            return None
        return too_few_dates(self.low, self.high, self.step, minimum)

    @property
    def grid(self) -> Grid:
        """The days that can be reported, counted from 1970-01-01."""
        return self._grid

    @property
    def answer_space(self) -> AnswerSpace:
        return AnswerSpace(
            self._grid.points,
            len(self.special),
            step=Fraction(self.step),
            parameters=self.parameters,
        )
