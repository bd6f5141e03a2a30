"""Parameters of a regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from survey.results.options import Request


@dataclass(frozen=True)
class RegressionRequest(Request):
    """The outcome question, its predictors, and the answer that serves as the baseline.

    `predictors` are ids of questions and `LINK`. `baseline` is an option's id; if it is empty,
    the default baseline is used. In links it is prefixed with its question's id, so that a link
    with another question ignores it.
    """

    required: ClassVar = ("question",)
    file_stem_format: ClassVar = "{question}-regression"

    question: str = ""
    predictors: tuple[str, ...] = ()
    baseline: str = ""
    against: str = ""

    @classmethod
    def parse(cls, query: Any) -> RegressionRequest:
        """Parse a link's query."""
        question, against = query.get("question", ""), query.get("against", "")
        baseline_question, _, baseline = against.partition(":")
        return cls(
            question,
            tuple(query.getlist("predictor")),
            baseline if baseline_question == question else "",
            against,
        )

    @property
    def query(self) -> dict[str, Any]:
        """The query of a link that repeats this request."""
        predictors = list(self.predictors)
        return {"question": self.question, "against": self.against, "predictor": predictors}
