"""Questions whose answer is one of several options in order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, StrictInt

from survey.errors import ChannelError
from survey.questionnaire.kinds.base import (
    LARGEST,
    Grid,
    Kind,
    PublishedQuestion,
    Shares,
    SharesAndMeans,
)
from survey.questionnaire.kinds.question import MAX_OPTIONS, BaseQuestion
from survey.questionnaire.limits import refusal
from survey.questionnaire.texts import Line, Option

_POINT = re.compile(r"value_(?:minus_)?[0-9]+")
_END_LABEL = re.compile(r"-?[0-9]+(?: \((?P<label>.*)\))?", re.DOTALL)


class Scale(Kind):
    """One of several options in order, each with a score."""

    type = "scale"
    label = "A scale"
    icon = "M2 12h20M3 8v8M12 6v12M21 8v8"
    is_ordered = True
    mechanisms: ClassVar[tuple[str, ...]] = (
        *("grr", "best", "forced_response", "exponential"),
        *("geometric", "laplace", "gaussian", "square_wave"),
    )
    fields: ClassVar[tuple[str, ...]] = ("options", "low", "high", "low_label", "high_label")
    whole_fields = ("low", "high")

    def source(self, form: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ends of a numbered scale, or the options of any other."""
        grid, options = form["grid"], form["options"]
        if not all(_POINT.fullmatch(option["id"]) for option in options):
            return super().source(form)
        labels = {
            "low_label": _end_label(options[0]["label"]),
            "high_label": _end_label(options[-1]["label"]),
        }
        return {
            "low": grid["low"],
            "high": grid["low"] + grid["points"] - 1,
            **{name: label for name, label in labels.items() if label},
        }

    def true_shares(self, question: PublishedQuestion, shares: Shares) -> SharesAndMeans:
        """Return the shares, and the mean score of those who chose a point of the scale."""
        if question.grid is None:
            return list(shares), {}
        answering = sum(shares[: question.grid.points])
        values = zip(shares, question.grid.values, strict=False)
        total = sum(share * value for share, value in values)
        return list(shares), {"": total / answering} if answering else {}


def _end_label(label: Any) -> Any:
    """Return the text in brackets behind an end's number, in every language."""
    if isinstance(label, Mapping):
        labels = {language: _end_label(text) for language, text in label.items()}
        return labels if any(labels.values()) else ""
    match = _END_LABEL.fullmatch(label)
    return (match["label"] or "") if match else ""


class OrderedQuestion(BaseQuestion):
    """One of several options in order: written out, or the whole numbers from low to high."""

    options: tuple[Option, ...] = Field(default=(), max_length=MAX_OPTIONS)
    """Answers in order, instead of whole numbers from `low` to `high`."""

    low: StrictInt | None = Field(default=None, ge=-LARGEST, le=LARGEST)
    """Lowest number of the scale."""

    high: StrictInt | None = Field(default=None, ge=-LARGEST, le=LARGEST)
    """Highest number of the scale."""

    low_label: Line | None = None
    """Meaning of the lowest number."""

    high_label: Line | None = None
    """Meaning of the highest number."""

    def _check(self) -> None:
        numbered = self.low is not None and self.high is not None
        if self.options and numbered:
            raise ChannelError("a scale has options in order, or low and high, not both")
        if not self.options and not numbered:
            raise ChannelError("a scale needs options in order, or both low and high")
        if self.options and (self.low_label or self.high_label):
            raise ChannelError("low_label and high_label go with low and high")
        if mistake := self._size_mistake(2):
            raise mistake

    def _size_mistake(self, minimum: int, options: int = MAX_OPTIONS) -> ChannelError | None:
        if self.low is None or self.high is None:
            return super()._size_mistake(minimum, options)
        maximum = MAX_OPTIONS - len(self.special)

        def allows(low: int, high: int) -> bool:
            return minimum <= high - low + 1 <= maximum and max(abs(low), abs(high)) <= LARGEST

        if allows(self.low, self.high):
            return None
        points = self.high - self.low + 1
        nearest = maximum if points > maximum else minimum
        return refusal(
            f"a scale has {minimum} to {maximum} points here, not {max(points, 0):,}",
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


class ScaleQuestion(OrderedQuestion):
    """A question that is answered on a scale."""

    type: Literal["scale"]


def point_id(value: int) -> str:
    """Return the id of a point of a numbered scale.

    >>> point_id(3), point_id(-3)
    ('value_3', 'value_minus_3')
    """
    return f"value_{value}" if value >= 0 else f"value_minus_{-value}"


def _point(value: int, label: str | None) -> Option:
    return Option(id=point_id(value), label=f"{value} ({label})" if label else str(value))
