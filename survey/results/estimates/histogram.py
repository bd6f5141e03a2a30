"""Cells of a histogram that a reader can take in: at most twelve, with ends people count by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import count, groupby

from survey.questionnaire.grid import EPOCH, Grid

MOST_CELLS = 12
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12000)
"""Lengths of cells of dates, in months: parts of a year, then years by 1, 2 and 5."""

WEEKS = (7, 14)
"""Lengths of cells of days."""

YEAR = 12


@dataclass(frozen=True)
class Cell:
    """Neighbouring values of a grid: the first and the last of them, and their words."""

    first: float
    last: float
    label: str

    @property
    def id(self) -> str:
        """A name for programs, with the numbers in it; no spreadsheet takes it for a formula."""
        return f"from_{self.first:.12g}_to_{self.last:.12g}"


def cells(grid: Grid, *, is_date: bool) -> tuple[Cell, ...]:
    """The cells of a grid, from its least to its largest value; a property of the question.

    They never depend on the answers: cells chosen by what people answered would not be covered as
    often as their intervals say.

    >>> [cell.label for cell in cells(Grid(low=0, step=1, points=31, unit="hours"), is_date=False)]
    ['0 to 4', '5 to 9', '10 to 14', '15 to 19', '20 to 24', '25 to 30']
    """
    groups = _dates(grid) if is_date else _numbers(grid)
    return tuple(
        Cell(
            values[0],
            values[-1],
            _days(values[0], values[-1])
            if is_date
            else _amounts(values[0], values[-1], grid.decimals),
        )
        for values in groups
    )


def edges(grid: Grid, found: tuple[Cell, ...]) -> list[float]:
    """The first value of every cell, and an end above the last value."""
    return [*(cell.first for cell in found), found[-1].last + grid.step / 10**grid.decimals]


def _numbers(grid: Grid) -> list[list[float]]:
    """Cells of 1, 2 or 5 times a power of ten, where these are whole steps of the grid."""
    for width in _widths(grid):
        groups = _grouped(grid, [(grid.low + i * grid.step) // width for i in range(grid.points)])
        # The largest value often is a round end of its own: 25 to 30, not 25 to 29 and 30.
        if len(groups) > 1 and len(groups[-1]) == 1 and width > grid.step:
            last = groups.pop()
            groups[-1] += last
        if len(groups) <= MOST_CELLS:
            return groups
    return []


def _widths(grid: Grid) -> Iterator[int]:
    """The step itself, then rounder and rounder ones."""
    yield grid.step
    round_ones = (digit * 10**power for power in count() for digit in (1, 2, 5))
    # Of a step that no round number is a multiple of, round numbers of steps.
    any_whole = any(digit * 10**6 % grid.step == 0 for digit in (1, 2, 5))
    for one in round_ones:
        width = one if any_whole else one * grid.step
        if width > grid.step and width % grid.step == 0:
            yield width


def _dates(grid: Grid) -> list[list[float]]:
    """Cells of days, weeks, months or years, as in a calendar."""
    days = [int(value) - grid.low for value in grid.values]
    months = [_month(day + grid.low) for day in days]
    keys = [
        days,
        *([day // length for day in days] for length in WEEKS if grid.step == 1),
        *([month // length for month in months] for length in MONTHS),
        # All within one month, but not every day.
        [day // (WEEKS[0] * grid.step) for day in days],
    ]
    found = [_grouped(grid, each) for each in keys]
    return next(groups for groups in found if 1 < len(groups) <= MOST_CELLS)


def _grouped(grid: Grid, keys: list[int]) -> list[list[float]]:
    """Values in their order, together while their keys are the same."""
    pairs = zip(keys, grid.values, strict=True)
    return [[value for _, value in group] for _, group in groupby(pairs, key=lambda pair: pair[0])]


def _month(day: int) -> int:
    at = EPOCH + timedelta(day)
    return at.year * YEAR + at.month - 1


def _amounts(first: float, last: float, decimals: int) -> str:
    ends = [f"{end:,.{decimals}f}".replace("-", "−") for end in (first, last)]
    return ends[0] if first == last else " to ".join(ends)


def _days(first: float, last: float) -> str:
    """As short as the ends allow: "3 to 9 Jan 2020", "3 Jan to 9 Feb 2020"."""
    start, end = EPOCH + timedelta(first), EPOCH + timedelta(last)
    if start == end:
        return f"{start.day} {start:%b} {start.year}"
    return f"{_start(start, end)} to {end.day} {end:%b} {end.year}"


def _start(start: date, end: date) -> str:
    """The start of a span without what its end says again."""
    if (start.year, start.month) == (end.year, end.month):
        return f"{start.day}"
    year = f" {start.year}" if start.year != end.year else ""
    return f"{start.day} {start:%b}{year}"
