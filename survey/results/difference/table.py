"""A question's answers in two groups: how far apart they are, and whether that may be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from survey.estimator import Difference, Disclosure, Independence, MeanDifference
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.crosstab.compute import answers
from survey.results.estimates.compute import values
from survey.results.estimates.table import FLAGS
from survey.results.groups import ANSWER, Group
from survey.results.options import Wanted
from survey.store import PublishedSurvey


@dataclass(frozen=True)
class DifferenceRow:
    """One answer, or the mean, in both groups; the fields are the columns of the CSV.

    `estimate` is that of group a minus that of group b; shares are fractions of one, means in the
    question's own unit. Without numbers while they are hidden.
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
class Compared:
    """Two groups' answers to a question, what of it may be shown, and Pearson's test if it holds.

    `n` are the reports of each group; of groups by an answer, those that hold both questions:
    which of them are whose nobody knows.
    """

    survey: PublishedSurvey
    question: PublishedQuestion
    groups: tuple[Group, Group]
    n: tuple[int, int]
    shares: Difference | None
    shown: Disclosure
    means: MeanDifference | None
    means_shown: Disclosure
    test: Independence | None
    wanted: Wanted

    @property
    def by_answer(self) -> bool:
        """Whether the groups are known through random answers alone."""
        return self.groups[0].kind == ANSWER

    @property
    def hidden(self) -> bool:
        """Whether nothing may be shown."""
        return self.shown == "hide" and self.means_shown == "hide"

    @property
    def share_rows(self) -> list[DifferenceRow]:
        """A row for each answer; shown or hidden all together. None of a number or date."""
        if is_number(self.question):
            return []
        shown = self.shares if self.shown != "hide" else None
        return [
            self._row("share", option, self.shown, _at(shown, place))
            for place, option in enumerate(answers(self.question))
        ]

    @property
    def mean_rows(self) -> list[DifferenceRow]:
        """The row of the mean, of a question whose answers stand for numbers."""
        if not values(self.question) or self.by_answer:
            return []
        shown = self.means if self.means_shown != "hide" else None
        return [self._row("mean", ("", ""), self.means_shown, _of_means(shown))]

    @property
    def rows(self) -> list[DifferenceRow]:
        """All rows, in the order of the CSV."""
        return [*self.share_rows, *self.mean_rows]

    def _row(
        self, statistic: str, option: tuple[str, str], shown: Disclosure, numbers: dict[str, Any]
    ) -> DifferenceRow:
        first, second = self.groups
        return DifferenceRow(
            survey_id=self.survey.slug,
            survey_version=self.survey.version,
            question_id=self.question.id,
            statistic=statistic,
            option_id=option[0],
            option_label=option[1],
            group_a=first.id,
            group_b=second.id,
            n_a=self.n[0],
            n_b=self.n[1],
            conf_level=self.wanted.level,
            flag=FLAGS[shown],
            **numbers,
        )


NO_NUMBERS: dict[str, Any] = {
    **dict.fromkeys(("estimate_a", "estimate_b", "estimate", "std_error")),
    **dict.fromkeys(("conf_low", "conf_high", "p_value")),
    "method": "",
}


def _at(found: Difference | None, place: int) -> dict[str, Any]:
    if found is None:
        return NO_NUMBERS
    names = ("estimate", "std_error", "conf_low", "conf_high", "p_value")
    return {
        "estimate_a": float(found.share_a[place]),
        "estimate_b": float(found.share_b[place]),
        **{name: float(getattr(found, name)[place]) for name in names},
        "method": found.method,
    }


def _of_means(found: MeanDifference | None) -> dict[str, Any]:
    if found is None:
        return NO_NUMBERS
    names = ("estimate", "std_error", "conf_low", "conf_high", "p_value", "method")
    return {
        "estimate_a": found.mean_a,
        "estimate_b": found.mean_b,
        **{name: getattr(found, name) for name in names},
    }


def is_number(question: PublishedQuestion) -> bool:
    """Whether a question has a mean and no list of options to compare."""
    return question.type in ("number", "date")
