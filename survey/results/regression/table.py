"""A regression of one question's answers on others and on the links, and what may be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from survey.estimator import Disclosure, Regression
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.crosstab.compute import answers
from survey.results.estimates.table import FLAGS
from survey.results.options import Wanted
from survey.store import PublishedSurvey

LINK = "link"
"""The predictor that is known openly, beside the ids of questions."""

NOT_DETERMINED = "not_determined"
"""The flag of a coefficient that the reports do not determine."""


@dataclass(frozen=True)
class RegressionRow:
    """One coefficient; the fields are the columns of the CSV. Without numbers while it is hidden.

    The odds of `option` against `against_option`, multiplied by `odds_ratio` for those of the
    predictor's `predictor_option` rather than its `reference_option`; of the intercept, the odds
    themselves. `predictor_id` is a question's, or that of the links. The ends of the interval are
    those of the odds ratio.
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
    """A category of a predictor held against its reference; all empty for the intercept."""

    predictor: str
    option: tuple[str, str]
    reference: tuple[str, str]


INTERCEPT = Term("", ("", ""), ("", ""))


@dataclass(frozen=True)
class Regressed:
    """The coefficients, what of them may be shown, and whether a maximum was found."""

    survey: PublishedSurvey
    question: PublishedQuestion
    against: int
    terms: Sequence[Term]
    fit: Regression | None
    n: int
    shown: Disclosure
    wanted: Wanted

    @property
    def rows(self) -> list[RegressionRow]:
        """A row for each answer but the one that is held against, and each term."""
        options = answers(self.question)
        others = [place for place in range(len(options)) if place != self.against]
        return [
            self._row(options[outcome], term, at * len(self.terms) + place)
            for at, outcome in enumerate(others)
            for place, term in enumerate(self.terms)
        ]

    def _row(self, answer: tuple[str, str], term: Term, place: int) -> RegressionRow:
        numbers = _numbers(self.fit, place) if self.shown != "hide" else {}
        against = answers(self.question)[self.against]
        undetermined = self.shown != "hide" and not numbers
        return RegressionRow(
            survey_id=self.survey.slug,
            survey_version=self.survey.version,
            question_id=self.question.id,
            option_id=answer[0],
            option_label=answer[1],
            against_option_id=against[0],
            against_option_label=against[1],
            predictor_id=term.predictor,
            predictor_option_id=term.option[0],
            predictor_option_label=term.option[1],
            reference_option_id=term.reference[0],
            reference_option_label=term.reference[1],
            n_reports=self.n,
            coefficient=numbers.get("estimate"),
            std_error=numbers.get("std_error"),
            odds_ratio=_exponential(numbers.get("estimate")),
            conf_low=_exponential(numbers.get("conf_low")),
            conf_high=_exponential(numbers.get("conf_high")),
            p_value=numbers.get("p_value"),
            conf_level=self.wanted.level,
            method="maximum likelihood through the channels" if numbers else "",
            flag=NOT_DETERMINED if undetermined else FLAGS[self.shown],
        )


def _numbers(fit: Regression | None, place: int) -> dict[str, float]:
    """Nothing of a coefficient without a finite error: where the search stopped says little."""
    if fit is None or not math.isfinite(fit.std_error[place]):
        return {}
    names = ("estimate", "std_error", "conf_low", "conf_high", "p_value")
    return {name: float(getattr(fit, name)[place]) for name in names}


def _exponential(x: float | None) -> float | None:
    """e^x, within what a file of numbers can hold."""
    return None if x is None else math.exp(min(x, 700.0))
