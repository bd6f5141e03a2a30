"""Parameters of a cross-tabulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from survey.errors import DesignError
from survey.results.options import Request

Method = Literal["linear", "em"]
METHODS: Mapping[Method, str] = {
    "linear": "unbiased (joint inversion)",
    "em": "most likely table (EM)",
}
"""The estimation methods of a table, with their names on pages."""


@dataclass(frozen=True)
class CrosstabRequest(Request):
    """Two questions, or options of multiple-choice questions, and an estimation method."""

    required: ClassVar = ("first", "second")
    file_stem_format: ClassVar = "{first}-{second}"

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
