"""Grids of equally spaced values, in integers: numbers with decimals, dates, scores of a scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from survey.errors import ChannelError
from survey.mechanism.channel import MAX_GRID
from survey.mechanism.design import format_fraction
from survey.questionnaire.suggestion import Values, refusal

MAX_DECIMALS = 6
LARGEST = 10**12
"""Largest value of a grid, before its decimals: every device counts this far exactly."""

EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Grid:
    """`points` values: value i is (low + i step) / 10^decimals; for dates, days since 1970-01-01.

    >>> Grid(low=0, step=5, points=3, decimals=1, unit="km").values
    (0.0, 0.5, 1.0)
    """

    low: int
    step: int
    points: int
    decimals: int = 0
    unit: str = ""

    @property
    def values(self) -> tuple[float, ...]:
        """The value of each point."""
        scale = 10**self.decimals
        return tuple((self.low + i * self.step) / scale for i in range(self.points))

    def to_json(self) -> dict[str, Any]:
        """Return the form in a definition."""
        return asdict(self)


def number_grid(low: Fraction, high: Fraction, step: Fraction, unit: str = "") -> Grid:
    """Return the grid from `low` to `high`; raises ChannelError with the nearest valid one.

    >>> number_grid(Fraction(0), Fraction(2), Fraction(1, 2))
    Grid(low=0, step=5, points=5, decimals=1, unit='')
    >>> number_grid(Fraction(0), Fraction(1), Fraction(1, 10**7))
    Traceback (most recent call last):
    survey.errors.ChannelError: step = 1e-07 has more than 6 decimals; the nearest allowed value \
is step = 0.001002 with high = 0.999996
    """
    if mistake := _number_mistake(low, high, step):
        values = {"step": step, "low": low, "high": high}
        raise refusal(mistake, values, _near_numbers(low, high, step), _is_of_numbers)
    decimals = max(_decimals(low), _decimals(step))
    scale = 10**decimals
    return Grid(int(low * scale), int(step * scale), int((high - low) / step) + 1, decimals, unit)


def date_grid(low: date, high: date, step: int) -> Grid:
    """Return the grid of days from `low` to `high`, every `step` days.

    >>> date_grid(date(1970, 1, 2), date(1970, 1, 16), 7)
    Grid(low=1, step=7, points=3, decimals=0, unit='')
    """
    if mistake := _date_mistake(low, high, step):
        values = {"step": step, "low": low, "high": high}
        raise refusal(mistake, values, _near_dates(low, high, step), _is_of_dates)
    return Grid((low - EPOCH).days, step, (high - low).days // step + 1)


def too_few_numbers(low: Fraction, high: Fraction, step: Fraction, points: int) -> ChannelError:
    """Return the error for too few points, with another end or a finer step as suggestions."""
    steps = points - 1
    unit = Fraction(1, 10 ** max(_decimals(low), _decimals(step)))
    finer = (high - low) / steps // unit * unit
    return refusal(
        f"a grid of {int((high - low) / step) + 1} points: at least {points} are needed",
        {"low": low, "high": high, "step": step},
        [
            {"high": low + steps * step},
            {"low": high - steps * step},
            {"step": finer, "high": low + steps * finer},
        ],
        _is_of_numbers,
    )


def too_few_dates(low: date, high: date, step: int, points: int) -> ChannelError:
    """Return the error for too few days, with another end or a finer step as suggestions."""
    steps = points - 1
    first, last = low.toordinal(), high.toordinal()
    finer = (last - first) // steps
    candidates: list[Values] = [
        {name: day}
        for name, end in (("high", first + steps * step), ("low", last - steps * step))
        if (day := _day(end))
    ]
    return refusal(
        f"a grid of {(last - first) // step + 1} points: at least {points} are needed",
        {"low": low, "high": high, "step": step},
        [*candidates, {"step": finer, "high": low + timedelta(steps * finer)}],
        _is_of_dates,
    )


def _number_mistake(low: Fraction, high: Fraction, step: Fraction) -> str:
    """Return what is wrong with a grid of numbers, or an empty string."""
    if step <= 0:
        return f"step = {format_fraction(step)} must be above 0"
    if high <= low:
        return f"high = {format_fraction(high)} must be above low = {format_fraction(low)}"
    for name, value in (("low", low), ("step", step)):
        if _decimals(value) > MAX_DECIMALS:
            return f"{name} = {format_fraction(value)} has more than {MAX_DECIMALS} decimals"
    decimals = max(_decimals(low), _decimals(step))
    for name, value in (("low", low), ("high", high)):
        if abs(value) * 10**decimals > LARGEST:
            digits = len(str(LARGEST)) - 1
            return (
                f"{name} = {format_fraction(value)} has more than {digits} digits "
                f"to {decimals} decimals"
            )
    steps = (high - low) / step
    if (points := int(steps) + 1) > MAX_GRID:
        return f"a grid of {points:,} points: at most {MAX_GRID:,} are allowed"
    if steps.denominator != 1:
        return (
            f"high = {format_fraction(high)} is not a whole number of steps of "
            f"{format_fraction(step)} above {format_fraction(low)}"
        )
    return ""


def _is_of_numbers(low: Fraction, high: Fraction, step: Fraction) -> bool:
    return not _number_mistake(low, high, step)


def _near_numbers(low: Fraction, high: Fraction, step: Fraction) -> Iterator[Values]:
    """Yield grids near the written one, with fewer and fewer decimals: one of them is allowed."""
    for decimals in range(min(max(_decimals(low), _decimals(step)), MAX_DECIMALS), -1, -1):
        unit = Fraction(1, 10**decimals)
        limit = LARGEST * unit
        near, far = (min(max(end, -limit), limit) for end in (low, high))
        start = round(near / unit) * unit
        wide = max(round(step / unit) * unit, unit) if step > 0 else Fraction(1)
        # The step changes only if neither end can be moved by one step.
        for first, last, spacing in (
            (start, far, wide),
            (start, start + wide, wide),
            (limit - wide, limit, wide),
            (-limit, limit, 2 * limit),
        ):
            if first < last:
                coarser = spacing * max(-(-int((last - first) / spacing) // (MAX_GRID - 1)), 1)
                steps = max(round((last - first) / coarser), 1)
                while steps > 1 and first + steps * coarser > limit:
                    steps -= 1
                yield {"step": coarser, "low": first, "high": first + steps * coarser}


def _date_mistake(low: date, high: date, step: int) -> str:
    """Return what is wrong with a grid of days, or an empty string."""
    if high <= low:
        return f"high = {high} must be after low = {low}"
    if step < 1:
        return f"step = {step} days must be at least 1"
    days = (high - low).days
    if (points := days // step + 1) > MAX_GRID:
        return f"a grid of {points:,} points: at most {MAX_GRID:,} are allowed"
    if step > days:
        return f"step = {step} days is longer than the range"
    if days % step:
        return f"high = {high} is not a whole number of steps of {step} days after {low}"
    return ""


def _is_of_dates(low: date, high: date, step: int) -> bool:
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


def _decimals(value: Fraction) -> int:
    """Return the decimals that a number needs, `MAX_DECIMALS` + 1 for all that need more."""
    return next(
        (n for n in range(MAX_DECIMALS + 1) if (value * 10**n).denominator == 1), MAX_DECIMALS + 1
    )
