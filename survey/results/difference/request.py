"""Parameters of a difference between two groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from survey.results.options import Request


@dataclass(frozen=True)
class DifferenceRequest(Request):
    """A question, and the ids of the two groups whose answers are compared."""

    required: ClassVar = ("question", "a", "b")
    file_stem_format: ClassVar = "{question}-difference"

    question: str = ""
    a: str = ""
    b: str = ""

    @classmethod
    def parse(cls, query: Any) -> DifferenceRequest:
        """Parse a link's query."""
        return cls(query.get("question", ""), query.get("a", ""), query.get("b", ""))
