"""Questions whose answer is a day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictInt

from survey.errors import ChannelError
from survey.mechanism.channel import MAX_GRID
from survey.questionnaire.designs import Values
from survey.questionnaire.kinds.base import EPOCH, Grid, GridKind
from survey.questionnaire.kinds.question import GridQuestion
from survey.questionnaire.limits import refusal


class Date(GridKind):
    """A day between two days, rounded on the device to every `step` days."""

    type = "date"
    label = "A date between two days"
    icon = "M4 6h16v14H4zM4 11h16M8 3v5M16 3v5"
    is_date = True
    fields = ("low", "high", "step")
    whole_fields = ("step",)

    def count_values(self, form: Mapping[str, Any]) -> int:
        step = form.get("step", 1)
        try:
            low, high = _parse_day(form.get("low")), _parse_day(form.get("high"))
        except ValueError:
            return 0
        is_wrong = type(step) is not int or _date_mistake(low, high, step)
        return 0 if is_wrong else (high - low).days // step + 1

    def source(self, form: Mapping[str, Any]) -> dict[str, Any]:
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


class DateQuestion(GridQuestion):
    """A day between two days, rounded on the device to every `step` days."""

    type: Literal["date"]
    low: Day
    """First day, such as 2020-01-31."""

    high: Day
    """Last day."""

    step: StrictInt = Field(default=1, ge=1)
    """Distance in days of the days to which the device rounds."""

    def _build_grid(self) -> Grid:
        return date_grid(self.low, self.high, self.step)

    def _too_few_points(self, minimum: int) -> ChannelError:
        low, high, step, steps = self.low, self.high, self.step, minimum - 1
        ends = {
            "high": low.toordinal() + steps * step,
            "low": high.toordinal() - steps * step,
        }
        candidates: list[Values] = [{name: day} for name in ends if (day := _day(ends[name]))]
        finer = (high - low).days // steps
        return refusal(
            f"the grid must have at least {minimum} points (found {self._grid.points})",
            {"low": low, "high": high, "step": step},
            [*candidates, {"step": finer, "high": low + timedelta(steps * finer)}],
            _is_valid,
        )


def date_grid(low: date, high: date, step: int) -> Grid:
    """Return the grid of days from `low` to `high`, every `step` days.

    >>> date_grid(date(1970, 1, 2), date(1970, 1, 16), 7)
    Grid(low=1, step=7, points=3, decimals=0, unit='')
    """
    if mistake := _date_mistake(low, high, step):
        values = {"step": step, "low": low, "high": high}
        raise refusal(mistake, values, _near_dates(low, high, step), _is_valid)
    return Grid((low - EPOCH).days, step, (high - low).days // step + 1)


def _date_mistake(low: date, high: date, step: int) -> str:
    """Return what is wrong with a grid of days, or an empty string."""
    if high <= low:
        return f"high = {high} must be after low = {low}"
    if step < 1:
        return f"step = {step} days must be at least 1"
    days = (high - low).days
    if (points := days // step + 1) > MAX_GRID:
        return f"the grid must have at most {MAX_GRID:,} points (found {points:,})"
    if step > days:
        return f"step = {step} days is longer than the range"
    if days % step:
        return f"high = {high} is not a whole number of steps of {step} days after {low}"
    return ""


def _is_valid(low: date, high: date, step: int) -> bool:
    return not _date_mistake(low, high, step)


def _near_dates(low: date, high: date, step: int) -> Iterator[Values]:
    """Yield grids near the written one: one of them is allowed."""
    for start, end in ((low, high), *((low, _day(low.toordinal() + n)) for n in (step, 1))):
        if end and end > start:
            days = (end - start).days
            coarser = max(min(step, days), -(-days // (MAX_GRID - 1)))
            yield {"step": coarser, "low": start, "high": end - timedelta(days % coarser)}
    # Only the last day of the calendar has no day after it.
    yield {"step": 1, "low": date.max - timedelta(1), "high": date.max}


def _day(ordinal: int) -> date | None:
    """Return the day of an ordinal, or None outside the calendar."""
    in_calendar = date.min.toordinal() <= ordinal <= date.max.toordinal()
    return date.fromordinal(ordinal) if in_calendar else None
