"""Parameters of a cross-tabulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from survey.errors import DesignError

Method = Literal["linear", "em"]
METHODS: Mapping[Method, str] = {
    "linear": "unbiased (joint inversion)",
    "em": "most likely table (EM)",
}
"""The estimation methods of a table, with their names on pages."""


@dataclass(frozen=True)
class CrosstabRequest:
    """Two questions, or options of multiple-choice questions, and an estimation method."""

    first: str = ""
    second: str = ""
    method: Method = "linear"

    @classmethod
    def parse(cls, query: Any) -> CrosstabRequest:
        """Parse a link's query; DesignError for an unknown method."""
        method = query.get("method", "") or "linear"
        if method not in METHODS:
            raise DesignError(f"method = {method[:40]!r} must be one of {', '.join(METHODS)}")
        return cls(query.get("first", ""), query.get("second", ""), cast(Method, method))

    @property
    def is_complete(self) -> bool:
        """Whether there is enough to compute."""
        return bool(self.first and self.second)

    @property
    def query(self) -> dict[str, Any]:
        """The query of a link that repeats this request."""
        return {"first": self.first, "second": self.second, "method": self.method}

    @property
    def file_stem(self) -> str:
        """The part of a file name that states what the file is about."""
        return f"{self.first}-{self.second}"
