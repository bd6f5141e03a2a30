"""Grids of equally spaced values, in integers: numbers with decimals, dates, scores of a scale."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from survey.errors import ChannelError
from survey.mechanism.design import shown
from survey.mechanism.weights import MAX_GRID

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
        """What each point stands for."""
        scale = 10**self.decimals
        return tuple((self.low + i * self.step) / scale for i in range(self.points))

    def to_json(self) -> dict[str, Any]:
        """The form a definition carries."""
        return asdict(self)


def number_grid(low: Fraction, high: Fraction, step: Fraction, unit: str = "") -> Grid:
    """The grid from `low` to `high`; raises ChannelError with the nearest that fits.

    >>> number_grid(Fraction(0), Fraction(2), Fraction(1, 2))
    Grid(low=0, step=5, points=5, decimals=1, unit='')
    """
    if step <= 0:
        raise ChannelError(f"step = {shown(step)} must be above 0; the nearest allowed value is 1")
    if high <= low:
        raise ChannelError(
            f"high = {shown(high)} must be above low = {shown(low)}; the nearest allowed value "
            f"is high = {shown(low + step)}"
        )
    decimals = max(_decimals(low, "low"), _decimals(step, "step"))
    scale = 10**decimals
    if max(abs(low), abs(high)) * scale > LARGEST:
        raise ChannelError(f"low and high have at most {len(str(LARGEST)) - 1} digits")
    steps = (high - low) / step
    points = int(steps) + 1
    if points > MAX_GRID:
        raise _too_fine(low, high, step, points)
    if steps.denominator != 1:
        nearest = low + min(max(round(steps), 1), MAX_GRID - 1) * step
        raise ChannelError(
            f"high = {shown(high)} is not a whole number of steps of {shown(step)} above "
            f"{shown(low)}; the nearest allowed value is high = {shown(nearest)}"
        )
    return Grid(int(low * scale), int(step * scale), points, decimals, unit)


def date_grid(low: date, high: date, step: int) -> Grid:
    """The grid of days from `low` to `high`, every `step` days.

    >>> date_grid(date(1970, 1, 2), date(1970, 1, 16), 7)
    Grid(low=1, step=7, points=3, decimals=0, unit='')
    """
    if high <= low:
        raise ChannelError(f"high = {high} must be after low = {low}")
    days = (high - low).days
    points = days // step + 1
    if points > MAX_GRID:
        raise ChannelError(
            f"a grid of {points:,} points: at most {MAX_GRID:,} are allowed; the nearest allowed "
            f"value is step = {-(-days // (MAX_GRID - 1))} days"
        )
    if days % step and points >= 2:
        raise ChannelError(
            f"high = {high} is not a whole number of steps of {step} days after {low}; the "
            f"nearest allowed value is high = {low + timedelta(days - days % step)}"
        )
    if points < 2:
        raise ChannelError(
            f"step = {step} days is longer than the range; the nearest allowed value is {days}"
        )
    return Grid((low - EPOCH).days, step, points)


def _too_fine(low: Fraction, high: Fraction, step: Fraction, points: int) -> ChannelError:
    coarser = step * -(-(points - 1) // (MAX_GRID - 1))
    end = low + int((high - low) / coarser) * coarser
    return ChannelError(
        f"a grid of {points:,} points: at most {MAX_GRID:,} are allowed; the nearest allowed "
        f"value is step = {shown(coarser)}" + ("" if end == high else f" with high = {shown(end)}")
    )


def _decimals(value: Fraction, name: str) -> int:
    """Decimals that a number needs, at most `MAX_DECIMALS`."""
    for decimals in range(MAX_DECIMALS + 1):
        if (value * 10**decimals).denominator == 1:
            return decimals
    nearest = Fraction(Decimal(round(value * 10**MAX_DECIMALS)).scaleb(-MAX_DECIMALS))
    raise ChannelError(
        f"{name} = {shown(value)} has more than {MAX_DECIMALS} decimals; the nearest allowed "
        f"value is {shown(nearest)}"
    )
