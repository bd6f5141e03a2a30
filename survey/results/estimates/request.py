"""Parameters of a page, file or figure of estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from survey.results.options import Request


@dataclass(frozen=True)
class EstimatesRequest(Request):
    """All questions of a survey, or one question, or the chart of one of its parts."""

    file_stem_format: ClassVar = "{question}-{part}"

    question: str = ""
    part: str = ""

    @classmethod
    def parse(cls, query: Any, path: Mapping[str, str]) -> EstimatesRequest:  # noqa: ARG003
        """Parse the parameters of a path."""
        return cls(path.get("question", ""), path.get("part", ""))

    @property
    def query(self) -> dict[str, Any]:
        """The query of a link that repeats this request; its parameters are in the path."""
        return {}

    @property
    def file_stem(self) -> str:
        """The part of a file name that states what the file is about."""
        return super().file_stem if self.part else "estimates"
