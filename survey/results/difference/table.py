"""Rows of a difference between two groups: one per answer, and one for the mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from survey.estimator import Difference, Disclosure, Independence, MeanDifference
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import FLAGS, NO_BASE, SUPPRESSED, numbers_at
from survey.results.groups import ANSWER, Group
from survey.results.question_statistics import (
    Answer,
    answer_columns,
    question_columns,
    truth_labels,
    truth_values,
)
from survey.results.request import IntervalOptions
from survey.store import PublishedSurvey


@dataclass(frozen=True)
class DifferenceRow:
    """One answer, or the mean, in both groups; the fields are the columns of the CSV.

    `estimate` is group a minus group b. Shares are fractions of one, means are in the question's
    own unit. Suppressed rows have no numbers.
    """

    survey_id: str
    survey_version: int
    question_id: str
    statistic: str
    option_id: str
    option_label: str
    group_a: str
    group_b: str
    n_a: int
    n_b: int
    estimate_a: float | None
    estimate_b: float | None
    estimate: float | None
    std_error: float | None
    conf_low: float | None
    conf_high: float | None
    p_value: float | None
    conf_level: float
    method: str
    flag: str


@dataclass(frozen=True)
class DifferenceResult:
    """The answers of two groups to a question, the decisions about them, and Pearson's test.

    `n` is the number of reports of each group; for groups by an answer, the number of reports
    that include both questions, because nobody knows who belongs to which group.
    """

    survey: PublishedSurvey
    question: PublishedQuestion
    groups: tuple[Group, Group]
    n: tuple[int, int]
    options: IntervalOptions
    shares: Difference | None = None
    shares_disclosure: Disclosure = SUPPRESSED
    means: MeanDifference | None = None
    means_disclosure: Disclosure = SUPPRESSED
    test: Independence | None = None

    @property
    def by_answer(self) -> bool:
        """Whether the groups are known only through randomized answers."""
        return self.groups[0].kind == ANSWER

    @property
    def is_suppressed(self) -> bool:
        """Whether nothing is shown."""
        return self.shares_disclosure == self.means_disclosure == SUPPRESSED

    @property
    def share_rows(self) -> list[DifferenceRow]:
        """One row per answer, all shown or none; empty for numbers and dates."""
        if self.question.kind.is_numeric:
            return []
        return [
            self._row("share", answer, self.shares_disclosure, _share_numbers(self.shares, place))
            for place, answer in enumerate(truth_labels(self.question))
        ]

    @property
    def mean_rows(self) -> list[DifferenceRow]:
        """The row of the mean, if the answers are numbers or scores."""
        if not truth_values(self.question) or self.by_answer:
            return []
        numbers = _mean_numbers(self.means, truth_values(self.question))
        return [self._row("mean", ("", ""), self.means_disclosure, numbers)]

    @property
    def rows(self) -> list[DifferenceRow]:
        """All rows in the order of the CSV."""
        return [*self.share_rows, *self.mean_rows]

    def _row(
        self, statistic: str, answer: Answer, disclosure: Disclosure, numbers: dict[str, Any]
    ) -> DifferenceRow:
        first, second = self.groups
        return DifferenceRow(
            **question_columns(self.survey, self.question),
            statistic=statistic,
            **answer_columns("option", answer),
            group_a=first.id,
            group_b=second.id,
            n_a=self.n[0],
            n_b=self.n[1],
            conf_level=self.options.level,
            flag=FLAGS[disclosure],
            **(NO_NUMBERS if disclosure == SUPPRESSED else numbers),
        )


NUMBERS = ("estimate", "std_error", "conf_low", "conf_high", "p_value")
"""Columns that both estimators' results hold under the same name."""

NO_NUMBERS: dict[str, Any] = {**dict.fromkeys(("estimate_a", "estimate_b", *NUMBERS)), "method": ""}


def _unknown_numbers(reach: float) -> dict[str, Any]:
    """Return the interval of all possible differences, if hardly anybody is in one of the groups.

    Such a result is shown like any other: hiding it would select the surveys that show estimates.
    """
    return NO_NUMBERS | {"conf_low": -reach, "conf_high": reach, "method": NO_BASE}


def _share_numbers(shares: Difference | None, place: int) -> dict[str, Any]:
    if shares is None:
        return _unknown_numbers(1.0)
    return {
        "estimate_a": float(shares.share_a[place]),
        "estimate_b": float(shares.share_b[place]),
        **numbers_at(shares, NUMBERS, place),
        "method": shares.method,
    }


def _mean_numbers(means: MeanDifference | None, values: Sequence[float | None]) -> dict[str, Any]:
    if means is None:
        numbers = [value for value in values if value is not None]
        return _unknown_numbers(max(numbers) - min(numbers))
    return {
        "estimate_a": means.mean_a,
        "estimate_b": means.mean_b,
        **{name: getattr(means, name) for name in (*NUMBERS, "method")},
    }
