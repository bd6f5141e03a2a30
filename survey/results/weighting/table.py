"""Rows of a weighting, one per answer, weighted and unweighted, and the sentences about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from survey.estimator import Disclosure, Proportions, WeightedShares
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import FLAGS, NO_BASE, SUPPRESSED, numbers_at
from survey.results.number_format import percent, percent_range
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
    """Weighted and unweighted shares of a question; all are shown or none.

    `missing` is about how many more responses they need while they are suppressed.
    """

    survey: PublishedSurvey
    question: PublishedQuestion
    by: str
    composition: Sequence[CategoryShare]
    unweighted: Proportions | None
    weighted: WeightedShares | None
    n: int
    disclosure: Disclosure
    options: IntervalOptions
    missing: int = 0

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


def paper_sentences(result: WeightingResult) -> list[str]:
    """Return sentences for a paper; none about suppressed shares."""
    rows = [row for row in result.rows if row.estimate is not None]
    if not rows or result.design_effect is None:
        return []
    largest = max(rows, key=lambda row: row.estimate or 0.0)
    return [
        f"Weighted to {_margins_phrase(result)}, an estimated {percent(largest.estimate)} answered "
        f"“{largest.option_label}” to “{result.question.text}” ({100 * largest.conf_level:g}% "
        f"confidence interval {percent_range(largest.conf_low, largest.conf_high)}; unweighted "
        f"{percent(largest.unweighted)}; {result.n:,} reports, each randomized on the respondent’s "
        f"device, {_method_phrase(result)}; design effect {result.design_effect:.2f})."
    ]


def caveats(result: WeightingResult) -> list[str]:
    """Return the caveats that belong beside the figures."""
    texts = []
    base = result.base_question
    if base is None:
        texts.append(
            "Weights correct for nonresponse only between groups: within a group, those who "
            "answered must be like those who did not."
        )
    else:
        texts.append(
            f"The answers to “{base.text}” are known only through randomized reports, so single "
            "reports have no weights. Shares within each category are estimated by joint inversion "
            "and combined in the known proportions, which widens the intervals."
        )
        texts += _omission_caveat(result)
        texts.append(
            "The margins must measure what the question asks. If people describe themselves "
            "differently here than in official figures, the weighted shares are wrong."
        )
    texts.append("The margins are treated as exact. Margins from another survey are not exact.")
    if result.weighted is None and not result.is_suppressed:
        texts.append(
            "Too few respondents appear to belong to one of the categories, so any weighted share "
            "is possible."
        )
    if result.disclosure == "caution":
        texts.append("The intervals are wide: treat the shares as a first impression.")
    if result.design_effect is not None and result.design_effect > 2:
        texts.append(
            f"The weights are costly: these reports are worth about "
            f"{result.n / result.design_effect:,.0f} reports of equal weight."
        )
    return texts


def _omission_caveat(result: WeightingResult) -> list[str]:
    omitted = [category.label for category in result.composition if category.population == 0]
    if not omitted:
        return []
    labels = " or ".join(f"“{label}”" for label in omitted)
    return [f"Respondents who answered {labels} are left out: the margins do not include them."]


def _margins_phrase(result: WeightingResult) -> str:
    shares = ", ".join(
        f"{category.label} {percent(category.population)}" for category in result.composition
    )
    base = result.base_question
    source = "the groups" if base is None else f"the known answers to “{base.text}”"
    return f"{source} ({shares})"


def _method_phrase(result: WeightingResult) -> str:
    if result.base_question is None:
        return "debiased and post-stratified"
    return "debiased and standardized by joint inversion"
