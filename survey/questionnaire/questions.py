"""Questions as a researcher writes them: a closed list of types, each with a private channel.

Free text, files and places cannot be randomized, so there is no type for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    StrictBool,
    StrictInt,
    StringConstraints,
    model_validator,
)

from survey.catalogue import SOURCE, say
from survey.errors import ChannelError
from survey.questionnaire.designs import Asked
from survey.questionnaire.grid import (
    LARGEST,
    Grid,
    date_grid,
    number_grid,
    too_few_dates,
    too_few_numbers,
)
from survey.questionnaire.nearest import refusal
from survey.questionnaire.question import MAX_OPTIONS, BaseQuestion, Number
from survey.questionnaire.texts import Line, Option, Text

YES_NO = tuple({"id": name, "label": say(SOURCE, f"option.{name}")} for name in ("yes", "no"))


def _day(value: Any) -> date:
    """A day as TOML has it, or as text."""
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        day = None
    if type(day) is not date:  # a datetime is a date to Python
        raise ValueError("must be a date such as 2020-01-31")
    return day


Day = Annotated[date, BeforeValidator(_day)]


class ChoiceQuestion(BaseQuestion):
    """One of several options."""

    type: Literal["yes_no", "single_choice"]
    options: tuple[Option, ...] = Field(min_length=2, max_length=MAX_OPTIONS)
    shuffle_options: StrictBool = False

    @model_validator(mode="before")
    @classmethod
    def _yes_no_has_its_options(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("type") == "yes_no":
            return {"options": YES_NO, **data}
        return data

    def _check(self) -> None:
        if self.type == "yes_no" and [option.id for option in self.options] != ["yes", "no"]:
            raise ChannelError('options of a yes_no question have the ids "yes" and "no", in order')
        if self.type == "yes_no" and self.shuffle_options:
            raise ChannelError("the options of a yes_no question are always shown in one order")
        if mistake := self._size_mistake(2):
            raise mistake

    @property
    def shuffled(self) -> bool:
        return self.shuffle_options

    @property
    def ordinary(self) -> tuple[Option, ...]:
        return self.options

    @property
    def asked(self) -> Asked:
        return Asked(len(self.options), len(self.special), parameters=self.parameters)


class ScaleQuestion(BaseQuestion):
    """One of several options in order: written out, or the whole numbers from low to high."""

    type: Literal["scale"]
    options: tuple[Option, ...] = Field(default=(), max_length=MAX_OPTIONS)
    low: StrictInt | None = Field(default=None, ge=-LARGEST, le=LARGEST)
    high: StrictInt | None = Field(default=None, ge=-LARGEST, le=LARGEST)
    low_label: Line | None = None
    high_label: Line | None = None

    def _check(self) -> None:
        numbered = self.low is not None and self.high is not None
        if bool(self.options) == numbered or (self.low is None) != (self.high is None):
            raise ChannelError("a scale has options in order, or low and high, not both")
        if self.options and (self.low_label or self.high_label):
            raise ChannelError("low_label and high_label go with low and high")
        if mistake := self._size_mistake(2):
            raise mistake

    def _size_mistake(self, fewest: int) -> ChannelError | None:
        if self.low is None or self.high is None:
            return super()._size_mistake(fewest)
        most = MAX_OPTIONS - len(self.special)

        def allows(low: int, high: int) -> bool:
            return fewest <= high - low + 1 <= most and max(abs(low), abs(high)) <= LARGEST

        if allows(self.low, self.high):
            return None
        points = self.high - self.low + 1
        nearest = most if points > most else fewest
        return refusal(
            f"a scale has {fewest} to {most} points here, not {max(points, 0):,}",
            {"low": self.low, "high": self.high},
            [
                {"high": self.low + nearest - 1},
                {"low": self.high - nearest + 1},
                {"low": LARGEST - nearest + 1, "high": LARGEST},
            ],
            allows,
        )

    @property
    def ordinary(self) -> tuple[Option, ...]:
        if self.options or self.low is None or self.high is None:
            return self.options
        points = range(self.low, min(self.high, self.low + MAX_OPTIONS) + 1)
        ends = {self.low: self.low_label, self.high: self.high_label}
        return tuple(_point(value, ends.get(value)) for value in points)

    @property
    def grid(self) -> Grid:
        """The scores of the ordinary options."""
        return Grid(1 if self.low is None else self.low, 1, len(self.ordinary))

    @property
    def asked(self) -> Asked:
        return Asked(len(self.ordinary), len(self.special), parameters=self.parameters)


class MultipleChoiceQuestion(BaseQuestion):
    """Any number of options, up to a limit, or none of them."""

    type: Literal["multiple_choice"]
    options: tuple[Option, ...] = Field(min_length=2, max_length=MAX_OPTIONS)
    none_of_these: Literal[True] | Line = True
    max_ticks: StrictInt | None = None
    shuffle_options: StrictBool = False

    def _check(self) -> None:
        # First: the ticks there may be follow from it.
        if mistake := self._size_mistake(2):
            raise mistake
        if self.max_ticks is not None and not 1 <= self.max_ticks <= len(self.options):
            nearest = min(max(self.max_ticks, 1), len(self.options))
            raise ChannelError(
                f"max_ticks = {self.max_ticks} of {len(self.options)} options; "
                f"the nearest allowed value is max_ticks = {nearest}"
            )

    @property
    def ordinary(self) -> tuple[Option, ...]:
        return self.options

    @property
    def shuffled(self) -> bool:
        return self.shuffle_options

    @property
    def ticks(self) -> int:
        """Most ordinary options that may be ticked."""
        return self.max_ticks or len(self.options)

    @property
    def asked(self) -> Asked:
        return Asked(len(self.options), 0, self.ticks, len(self.special))


class NumberQuestion(BaseQuestion):
    """A number between two bounds, rounded on the device to a grid."""

    type: Literal["number"]
    low: Number
    high: Number
    step: Number = Fraction(1)
    unit: Annotated[Text, StringConstraints(max_length=40, pattern=r"^[^\n]*$")] = ""
    _grid: Grid = PrivateAttr()

    def _check(self) -> None:
        self._grid = number_grid(self.low, self.high, self.step, self.unit)

    def _size_mistake(self, fewest: int) -> ChannelError | None:
        if self._grid.points >= fewest:
            return None
        return too_few_numbers(self.low, self.high, self.step, fewest)

    @property
    def grid(self) -> Grid:
        """The numbers that can be reported about."""
        return self._grid

    @property
    def asked(self) -> Asked:
        return Asked(
            self._grid.points, len(self.special), step=self.step, parameters=self.parameters
        )


class DateQuestion(BaseQuestion):
    """A day between two days, rounded on the device to every `step` days."""

    type: Literal["date"]
    low: Day
    high: Day
    step: StrictInt = Field(default=1, ge=1)
    _grid: Grid = PrivateAttr()

    def _check(self) -> None:
        self._grid = date_grid(self.low, self.high, self.step)

    def _size_mistake(self, fewest: int) -> ChannelError | None:
        if self._grid.points >= fewest:
            return None
        return too_few_dates(self.low, self.high, self.step, fewest)

    @property
    def grid(self) -> Grid:
        """The days that can be reported about, counted from 1970-01-01."""
        return self._grid

    @property
    def asked(self) -> Asked:
        return Asked(
            self._grid.points,
            len(self.special),
            step=Fraction(self.step),
            parameters=self.parameters,
        )


Question = Annotated[
    ChoiceQuestion | ScaleQuestion | MultipleChoiceQuestion | NumberQuestion | DateQuestion,
    Field(discriminator="type"),
]

TYPES = ("yes_no", "single_choice", "scale", "multiple_choice", "number", "date")


def _point(value: int, label: str | None) -> Option:
    name = f"value_{value}" if value >= 0 else f"value_minus_{-value}"
    return Option(id=name, label=f"{value} ({label})" if label else str(value))
