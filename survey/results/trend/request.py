"""Parameters of a comparison over links, time or versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from survey.errors import DesignError, NotFoundError
from survey.results.estimates.result import Split
from survey.results.groups import (
    AS_STORED,
    MONTH,
    WEEK,
    split_by_month,
    split_by_period,
    split_by_week,
)
from survey.results.request import Request

Over = Literal["links", "trend", "versions"]
OVER: tuple[Over, ...] = ("links", "trend", "versions")
"""The pages; "trend" is over time."""

PART_LABELS: Mapping[str, str] = {
    "shares": "Shares among all",
    "answered": "Shares of those who answered",
    "mean": "Mean",
    "median": "Median",
    "spread": "Histogram",
}
"""The parts of a question that can be compared, with their names on pages."""

SPLITS: Mapping[str, Split] = {
    AS_STORED: split_by_period,
    WEEK: split_by_week,
    MONTH: split_by_month,
}
"""The period lengths that a link can request."""

PERIOD_CHOICES: Mapping[str, Mapping[str, str]] = {
    "day": {AS_STORED: "day", WEEK: "week", MONTH: "month"},
    "week": {AS_STORED: "week", MONTH: "month"},
}
"""The period lengths that a page offers, by what the survey stores."""


@dataclass(frozen=True)
class TrendRequest(Request):
    """One part of a question over links, time or versions.

    An empty `question` is the first of the survey, an empty `part` the question's main part, and
    an empty `per` the shortest period length that does not give too many periods.
    """

    file_stem_format: ClassVar = "{question}-{over}"

    over: Over
    question: str = ""
    part: str = ""
    per: str = ""

    @classmethod
    def parse(cls, query: Any, over: str = "") -> Self:
        """Parse a link; NotFoundError for an unknown page or part, DesignError for a length."""
        if over not in OVER:
            raise NotFoundError(f"there is no page {over}: choose one of {', '.join(OVER)}")
        part, per = query.get("part", ""), query.get("per", "") if over == "trend" else ""
        if part and part not in PART_LABELS:
            raise NotFoundError(f"there is no {part}: choose one of {', '.join(PART_LABELS)}")
        if per and per not in SPLITS:
            raise DesignError(f"per = {per[:40]!r} must be one of {', '.join(SPLITS)}")
        return cls(over, query.get("question", ""), part, per)

    @property
    def query(self) -> dict[str, Any]:
        """The query of a link that repeats this request; the page is part of the path."""
        values = {"question": self.question, "part": self.part, "per": self.per}
        return {name: value for name, value in values.items() if value}
