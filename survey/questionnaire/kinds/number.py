"""Questions whose answer is a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import StrictBool, StringConstraints, TypeAdapter, ValidationError

from survey.errors import ChannelError
from survey.mechanism.channel import MAX_GRID
from survey.mechanism.exact_numbers import format_fraction
from survey.questionnaire.designs import Values
from survey.questionnaire.kinds.base import LARGEST, Grid, GridKind
from survey.questionnaire.kinds.question import ExactNumber, GridQuestion
from survey.questionnaire.limits import refusal
from survey.questionnaire.texts import LINE, Text

MAX_DECIMALS = 6

MAX_SLIDER = 101
"""Maximum number of points on a slider: nobody could tell more apart on a phone's screen."""


EndLabel = Annotated[Text, StringConstraints(max_length=100, pattern=LINE)]
"""What the lowest or highest number of a slider means, such as "Not at all"; may be empty."""


class Number(GridKind):
    """A number between two bounds, rounded on the device to a grid."""

    type = "number"
    label = "A number between two bounds"
    icon = "M10 4L8 20M17 4l-2 16M4 9h17M3 15h17"
    fields = ("low", "high", "step", "unit", "slider", "low_label", "high_label")

    def count_values(self, form: Mapping[str, Any]) -> int:
        try:
            low, high, step = map(
                TypeAdapter(ExactNumber).validate_python,
                (form.get("low"), form.get("high"), form.get("step", 1)),
            )
        except ValidationError:
            return 0
        return 0 if _number_mistake(low, high, step) else int((high - low) / step) + 1

    def source(self, form: Mapping[str, Any]) -> dict[str, Any]:
        grid = form["grid"]
        scale = 10 ** grid["decimals"]
        high = grid["low"] + grid["step"] * (grid["points"] - 1)
        numbers = {"low": grid["low"], "high": high, "step": grid["step"]}
        return {
            **{name: format_fraction(Fraction(value, scale)) for name, value in numbers.items()},
            "unit": grid["unit"],
            **_slider_source(form),
        }


def _slider_source(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a slider with its labels, or nothing for a typed number."""
    if not form["slider"]:
        return {}
    labels = {f"{end}_label": label for end, label in form["slider"].items() if label}
    return {"slider": True, **labels}


class NumberQuestion(GridQuestion):
    """A number between two bounds, rounded on the device to a grid."""

    type: Literal["number"]
    low: ExactNumber
    """Lowest number that can be entered."""

    high: ExactNumber
    """Highest number that can be entered."""

    step: ExactNumber = Fraction(1)
    """Distance of the numbers to which the device rounds."""

    unit: Annotated[Text, StringConstraints(max_length=40, pattern=LINE)] = ""
    """What the number counts, such as "hours"."""

    slider: StrictBool = False
    """Whether respondents use a slider of up to 101 points instead of typing."""

    low_label: EndLabel = ""
    """Meaning of the lowest number of a slider."""

    high_label: EndLabel = ""
    """Meaning of the highest number of a slider."""

    def _check(self) -> None:
        super()._check()
        if not self.slider:
            if self.low_label or self.high_label:
                raise ChannelError("low_label and high_label of a number need slider = true")
        elif self._grid.points > MAX_SLIDER:
            raise self._too_many_points()

    @property
    def slider_labels(self) -> tuple[str, str] | None:
        """The labels of a slider's ends, or None if the number is typed."""
        return (self.low_label, self.high_label) if self.slider else None

    def _build_grid(self) -> Grid:
        return number_grid(self.low, self.high, self.step, self.unit)

    def _too_many_points(self) -> ChannelError:
        """Return the error for a slider that is too fine, with the nearest allowed step."""
        low, high, step = self.low, self.high, self.step
        steps = self._grid.points - 1
        # A step that divides the range keeps both ends; otherwise the upper end moves outwards.
        factors = range(-(-steps // (MAX_SLIDER - 1)), steps + 1)
        coarser = next(factor for factor in factors if steps % factor == 0) * step
        least = factors[0] * step
        outer = low + -(-(high - low) // least) * least
        return refusal(
            f"step is too fine for a slider, which has at most {MAX_SLIDER} points (found "
            f"{self._grid.points:,}); leave out slider to ask for a typed number",
            {"low": low, "high": high, "step": step},
            [
                *([{"step": coarser}] if (high - low) / coarser >= MAX_SLIDER // 2 else []),
                {"step": least, "high": outer},
            ],
            _is_valid,
        )

    def _too_few_points(self, minimum: int) -> ChannelError:
        low, high, step, steps = self.low, self.high, self.step, minimum - 1
        unit = Fraction(1, 10 ** max(_decimals(low), _decimals(step)))
        finer = (high - low) / steps // unit * unit
        return refusal(
            f"the grid must have at least {minimum} points (found {self._grid.points})",
            {"low": low, "high": high, "step": step},
            [
                {"high": low + steps * step},
                {"low": high - steps * step},
                {"step": finer, "high": low + steps * finer},
            ],
            _is_valid,
        )


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
        raise refusal(mistake, values, _near_numbers(low, high, step), _is_valid)
    decimals = max(_decimals(low), _decimals(step))
    scale = 10**decimals
    return Grid(int(low * scale), int(step * scale), int((high - low) / step) + 1, decimals, unit)


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
        return f"the grid must have at most {MAX_GRID:,} points (found {points:,})"
    if steps.denominator != 1:
        return (
            f"high = {format_fraction(high)} is not a whole number of steps of "
            f"{format_fraction(step)} above {format_fraction(low)}"
        )
    return ""


def _is_valid(low: Fraction, high: Fraction, step: Fraction) -> bool:
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


def _decimals(value: Fraction) -> int:
    """Return the decimals that a number needs, `MAX_DECIMALS` + 1 for all that need more."""
    return next(
        (n for n in range(MAX_DECIMALS + 1) if (value * 10**n).denominator == 1), MAX_DECIMALS + 1
    )
