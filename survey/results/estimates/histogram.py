"""Cells of a histogram: at most twelve, with round ends or calendar units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count, groupby

from survey.questionnaire.kinds.base import EPOCH, Grid

MAX_CELLS = 12
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12000)
"""Lengths of date cells in months: parts of a year, then 1, 2 and 5 years and their tens."""

WEEKS = (7, 14)
"""Lengths of date cells in days."""

YEAR = 12


@dataclass(frozen=True)
class Cell:
    """A range of neighboring grid values: the first, the last, and a label."""

    first: float
    last: float
    label: str

    @property
    def id(self) -> str:
        """A stable name that contains both ends; spreadsheets do not read it as a formula."""
        return f"from_{self.first:.12g}_to_{self.last:.12g}"


def cells(grid: Grid, *, is_date: bool) -> tuple[Cell, ...]:
    """Return the cells of a grid from its smallest to its largest value.

    They depend on the question only: cells chosen from the answers would invalidate the coverage
    of their intervals.

    >>> [cell.label for cell in cells(Grid(low=0, step=1, points=31, unit="hours"), is_date=False)]
    ['0 to 4', '5 to 9', '10 to 14', '15 to 19', '20 to 24', '25 to 30']
    """
    groups = _dates(grid) if is_date else _numbers(grid)
    label = _date_range if is_date else partial(_number_range, decimals=grid.decimals)
    return tuple(Cell(values[0], values[-1], label(values[0], values[-1])) for values in groups)


def equal_parts(points: int, number: int) -> list[int]:
    """Return the part of each grid point, of `number` parts of equal width.

    The last part includes the last point, as in a histogram with the same number of cells.

    >>> equal_parts(7, 3)
    [0, 0, 1, 1, 2, 2, 2]
    """
    return [min(i * number // (points - 1), number - 1) for i in range(points)]


def ranges(grid: Grid, number: int, *, is_date: bool) -> tuple[str, ...]:
    """Return the labels of ranges of equal width, to ask for instead of the value.

    >>> ranges(Grid(low=0, step=1, points=13, unit="hours"), 5, is_date=False)
    ('0 to 2 hours', '3 to 4 hours', '5 to 7 hours', '8 to 9 hours', '10 to 12 hours')
    """
    label = _date_range if is_date else partial(_number_range, decimals=grid.decimals)
    groups = _group_values(grid, equal_parts(grid.points, number))
    return tuple(f"{label(values[0], values[-1])} {grid.unit}".strip() for values in groups)


def edges(grid: Grid, bins: tuple[Cell, ...]) -> list[float]:
    """Return the first value of each cell, and one bound above the last value."""
    return [*(cell.first for cell in bins), bins[-1].last + grid.step / 10**grid.decimals]


def _numbers(grid: Grid) -> list[list[float]]:
    """Group values into cells of 1, 2 or 5 times a power of ten, in whole steps of the grid."""
    for width in _widths(grid):
        groups = _group_values(
            grid, [(grid.low + i * grid.step) // width for i in range(grid.points)]
        )
        # Join a single round last value to its neighbors: 25 to 30, not 25 to 29 and 30.
        if len(groups) > 1 and len(groups[-1]) == 1 and width > grid.step:
            last = groups.pop()
            groups[-1] += last
        if len(groups) <= MAX_CELLS:
            return groups
    return []


def _widths(grid: Grid) -> Iterator[int]:
    """Yield the step itself, then ever larger round widths."""
    yield grid.step
    round_numbers = (digit * 10**power for power in count() for digit in (1, 2, 5))
    # If no round number is a multiple of the step, use round numbers of steps.
    any_whole = any(digit * 10**6 % grid.step == 0 for digit in (1, 2, 5))
    for number in round_numbers:
        width = number if any_whole else number * grid.step
        if width > grid.step and width % grid.step == 0:
            yield width


def _dates(grid: Grid) -> list[list[float]]:
    """Group dates into cells of days, weeks, months or years."""
    days = [int(value) - grid.low for value in grid.values]
    dates = [EPOCH + timedelta(value) for value in grid.values]
    months = [day.year * YEAR + day.month - 1 for day in dates]
    keys = [
        days,
        *([day // length for day in days] for length in WEEKS if grid.step == 1),
        *([month // length for month in months] for length in MONTHS),
        # Dates within one month, but not on every day.
        [day // (WEEKS[0] * grid.step) for day in days],
    ]
    candidates = [_group_values(grid, part) for part in keys]
    return next(groups for groups in candidates if 1 < len(groups) <= MAX_CELLS)


def _group_values(grid: Grid, keys: list[int]) -> list[list[float]]:
    """Group neighboring values with equal keys."""
    pairs = zip(keys, grid.values, strict=True)
    return [[value for _, value in group] for _, group in groupby(pairs, key=lambda pair: pair[0])]


def _number_range(first: float, last: float, decimals: int) -> str:
    ends = [f"{end:,.{decimals}f}".replace("-", "−") for end in (first, last)]
    return ends[0] if first == last else " to ".join(ends)


def _date_range(first: float, last: float) -> str:
    """Format a range of dates briefly: "3 to 9 Jan 2020", "3 Jan to 9 Feb 2020"."""
    start, end = EPOCH + timedelta(first), EPOCH + timedelta(last)
    if start == end:
        return f"{start.day} {start:%b} {start.year}"
    # Omit from the start what the end repeats.
    year = f" {start.year}" if start.year != end.year else ""
    is_one_month = (start.year, start.month) == (end.year, end.month)
    first_day = f"{start.day}" if is_one_month else f"{start.day} {start:%b}{year}"
    return f"{first_day} to {end.day} {end:%b} {end.year}"
