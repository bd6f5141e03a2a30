"""Parameters of a difference between two groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DifferenceRequest:
    """A question, and the ids of the two groups whose answers are compared."""

    question: str = ""
    a: str = ""
    b: str = ""

    @classmethod
    def parse(cls, query: Any) -> DifferenceRequest:
        """Parse a link's query."""
        return cls(query.get("question", ""), query.get("a", ""), query.get("b", ""))

    @property
    def is_complete(self) -> bool:
        """Whether there is enough to compute."""
        return bool(self.question and self.a and self.b)

    @property
    def query(self) -> dict[str, Any]:
        """The query of a link that repeats this request."""
        return {"question": self.question, "a": self.a, "b": self.b}

    @property
    def file_stem(self) -> str:
        """The part of a file name that states what the file is about."""
        return f"{self.question}-difference"
