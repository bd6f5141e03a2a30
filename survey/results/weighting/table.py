"""Rows of a weighting: one per answer, weighted and unweighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from survey.estimator import Disclosure, Proportions, WeightedShares
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import FLAGS, NO_BASE, SUPPRESSED, numbers_at
from survey.results.question_statistics import (
    answer_columns,
    find_question,
    question_columns,
    truth_labels,
)
from survey.results.request import IntervalOptions
from survey.results.weighting.request import BY_ANSWER, BY_GROUP
from survey.store import PublishedSurvey


@dataclass(frozen=True)
class WeightingRow:
    """One answer; the fields are the columns of the CSV. Suppressed rows have no numbers."""

    survey_id: str
    survey_version: int
    question_id: str
    option_id: str
    option_label: str
    weighted_by: str
    n_reports: int
    unweighted: float | None
    unweighted_low: float | None
    unweighted_high: float | None
    estimate: float | None
    std_error: float | None
    conf_low: float | None
    conf_high: float | None
    n_effective: float | None
    conf_level: float
    method: str
    flag: str


class CategoryShare(NamedTuple):
    """A category of the margins: its share of the population, and of the reports.

    `reported` is an estimate for margins over an answer, and None where that is suppressed.
    """

    label: str
    population: float
    reported: float | None


@dataclass(frozen=True)
class WeightingResult:
    """Weighted and unweighted shares of a question; all are shown or none."""

    survey: PublishedSurvey
    question: PublishedQuestion
    by: str
    composition: Sequence[CategoryShare]
    unweighted: Proportions | None
    weighted: WeightedShares | None
    n: int
    disclosure: Disclosure
    options: IntervalOptions

    @property
    def is_suppressed(self) -> bool:
        """Whether the shares are suppressed."""
        return self.disclosure == SUPPRESSED

    @property
    def base_question(self) -> PublishedQuestion | None:
        """The question whose answers the margins are over; None for margins over groups."""
        if self.by == BY_GROUP:
            return None
        return find_question(self.survey, self.by.removeprefix(BY_ANSWER))

    @property
    def design_effect(self) -> float | None:
        """The largest n/n_effective: the factor by which weighting multiplies the variance."""
        if self.weighted is None or self.is_suppressed:
            return None
        return float(self.n / self.weighted.n_effective.min())

    @property
    def rows(self) -> list[WeightingRow]:
        """One row per answer."""
        unweighted = None if self.is_suppressed else self.unweighted
        rows = []
        for place, answer in enumerate(truth_labels(self.question)):
            before = numbers_at(unweighted, ("estimate", "conf_low", "conf_high"), place)
            row = WeightingRow(
                **question_columns(self.survey, self.question),
                **answer_columns("option", answer),
                weighted_by=self.by,
                n_reports=self.n,
                unweighted=before["estimate"],
                unweighted_low=before["conf_low"],
                unweighted_high=before["conf_high"],
                **self._weighted_numbers(place),
                conf_level=self.options.level,
                flag=FLAGS[self.disclosure],
            )
            rows.append(row)
        return rows

    def _weighted_numbers(self, place: int) -> dict[str, Any]:
        """Return the columns of a weighted share.

        If hardly anybody seems to be in a category, any share is possible. That is shown like any
        other result: hiding it would select the surveys that show estimates.
        """
        names = ("estimate", "std_error", "conf_low", "conf_high", "n_effective")
        if self.is_suppressed:
            return numbers_at(None, names, place) | {"method": ""}
        if self.weighted is None:
            unknown = {"conf_low": 0.0, "conf_high": 1.0, "method": NO_BASE}
            return numbers_at(None, names, place) | unknown
        return numbers_at(self.weighted, names, place) | {"method": self.weighted.method}
