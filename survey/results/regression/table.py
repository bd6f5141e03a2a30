"""Rows of a regression: one per coefficient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from survey.estimator import Disclosure, Regression
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import FLAGS, SUPPRESSED, numbers_at
from survey.results.question_statistics import (
    Answer,
    answer_columns,
    question_columns,
    truth_labels,
)
from survey.results.request import IntervalOptions
from survey.store import PublishedSurvey

GROUP = "link"
"""The id of the group (by collection link) as a predictor, beside ids of questions."""

NOT_DETERMINED = "not_determined"
"""The flag of a coefficient that the reports do not determine."""

METHODS = {
    "none": "maximum likelihood through the channels",
    "firth": "maximum likelihood through the channels with Firth's penalty",
}
"""Methods of estimation in the CSV, by the penalty."""

LARGEST_EXPONENT = 700.0
"""Largest x whose exponential is a floating-point number."""


@dataclass(frozen=True)
class RegressionRow:
    """One coefficient; the fields are the columns of the CSV. Suppressed rows have no numbers.

    `odds_ratio` is the ratio of the odds of `option` against `against_option` between respondents
    with `predictor_option` and with `reference_option`; for the intercept it is the odds. The ends
    of the interval are odds ratios; an open end is None. A coefficient that is not determined has
    only an interval. `predictor_id` is a question's id or "link".
    """

    survey_id: str
    survey_version: int
    question_id: str
    option_id: str
    option_label: str
    against_option_id: str
    against_option_label: str
    predictor_id: str
    predictor_option_id: str
    predictor_option_label: str
    reference_option_id: str
    reference_option_label: str
    n_reports: int
    coefficient: float | None
    std_error: float | None
    odds_ratio: float | None
    conf_low: float | None
    conf_high: float | None
    p_value: float | None
    conf_level: float
    method: str
    flag: str


class Term(NamedTuple):
    """A category of a predictor and its reference category; all empty for the intercept."""

    predictor: str
    option: Answer
    reference: Answer


INTERCEPT = Term("", ("", ""), ("", ""))


@dataclass(frozen=True)
class RegressionResult:
    """The coefficients of a regression; all are shown or none.

    `missing` is about how many more responses they need while they are suppressed.
    """

    survey: PublishedSurvey
    question: PublishedQuestion
    baseline: int
    terms: Sequence[Term]
    fit: Regression | None
    n: int
    disclosure: Disclosure
    options: IntervalOptions
    missing: int = 0

    @property
    def is_suppressed(self) -> bool:
        """Whether the coefficients are suppressed."""
        return self.disclosure == SUPPRESSED

    @property
    def rows(self) -> list[RegressionRow]:
        """One row per term, for each answer but the baseline."""
        answers = truth_labels(self.question)
        outcomes = [answer for place, answer in enumerate(answers) if place != self.baseline]
        return [
            self._row(outcome, term, i * len(self.terms) + j)
            for i, outcome in enumerate(outcomes)
            for j, term in enumerate(self.terms)
        ]

    def _row(self, answer: Answer, term: Term, place: int) -> RegressionRow:
        numbers = {} if self.is_suppressed else _numbers(self.fit, place)
        baseline = truth_labels(self.question)[self.baseline]
        is_undetermined = not self.is_suppressed and numbers.get("estimate") is None
        return RegressionRow(
            **question_columns(self.survey, self.question),
            **answer_columns("option", answer),
            **answer_columns("against_option", baseline),
            predictor_id=term.predictor,
            **answer_columns("predictor_option", term.option),
            **answer_columns("reference_option", term.reference),
            n_reports=self.n,
            coefficient=numbers.get("estimate"),
            std_error=numbers.get("std_error"),
            odds_ratio=_exponential(numbers.get("estimate")),
            conf_low=_exponential(numbers.get("conf_low")),
            conf_high=_exponential(numbers.get("conf_high")),
            p_value=numbers.get("p_value"),
            conf_level=self.options.level,
            method=METHODS[self.fit.penalty] if self.fit and numbers else "",
            flag=NOT_DETERMINED if is_undetermined else FLAGS[self.disclosure],
        )


def _numbers(fit: Regression | None, place: int) -> dict[str, float | None]:
    """Return a coefficient's numbers; None where it has no estimate or an end is open."""
    names = ("estimate", "std_error", "conf_low", "conf_high", "p_value")
    numbers = {} if fit is None else numbers_at(fit, names, place)
    return {name: x if math.isfinite(x) else None for name, x in numbers.items()}


def _exponential(x: float | None) -> float | None:
    return None if x is None else math.exp(min(x, LARGEST_EXPONENT))
