"""The rows that dashboard, CSV and `survey estimate` all print, made in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

import numpy as np

from survey import __version__
from survey.estimator import Disclosure, Proportions, disclosure, proportions, reports_needed
from survey.questionnaire.definition import PublishedQuestion
from survey.store import PublishedSurvey, Store, Tally

LEVEL = 0.95

MECHANISM = "generalized randomized response"

ESTIMATED = ("estimate", "mle", "std_error", "conf_low", "conf_high", "n_effective")
"""Columns that an estimator's result has under the same name, one number per option."""

FLAGS: Mapping[Disclosure, str] = {"show": "", "caution": "caution", "hide": "suppressed"}


@dataclass(frozen=True)
class Row:
    """One option's estimate; the fields are the CSV's columns, whatever the data.

    Shares and errors are fractions of one. A suppressed row has no numbers (None).
    """

    survey_id: str
    survey_version: int
    wave: str
    stratum: str
    bucket: str
    question_id: str
    question_text: str
    option_id: str
    option_label: str
    statistic: str
    base: str
    n_reports: int
    report_count: int | None
    report_share: float | None
    estimate: float | None
    mle: float | None
    std_error: float | None
    conf_low: float | None
    conf_high: float | None
    conf_level: float
    n_effective: float | None
    method: str
    mechanism: str
    truth_probability: float
    n_options: int
    epsilon: float
    flag: str
    generated_at: str
    app_version: str


@dataclass(frozen=True)
class QuestionResult:
    """A question's rows, whether they may be shown, and about how many more reports if not."""

    question: PublishedQuestion
    rows: tuple[Row, ...]
    disclosure: Disclosure
    more_needed: int

    def caveat(self, *, closed: bool) -> str:
        """What to say beside this question, or instead of its numbers; empty when nothing."""
        if self.disclosure == "show":
            return ""
        if self.disclosure == "caution":
            return "Read with caution: the intervals are still wide."
        more = f"about {self.more_needed:,} more" if self.more_needed else "more"
        if closed:
            return f"Not enough responses: {more} would have been needed."
        return f"Not enough responses yet: {more} needed."


@dataclass(frozen=True)
class SurveyResult:
    """All that can be read of one version of a survey after its latest release."""

    survey: PublishedSurvey
    release: int
    n: int
    questions: tuple[QuestionResult, ...]

    @property
    def rows(self) -> list[Row]:
        """Every row of every question, in the survey's order."""
        return [row for question in self.questions for row in question.rows]


class Results:
    """Computes results once per release and keeps the newest of each survey."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[int, SurveyResult] = {}
        self._lock = Lock()

    def of(self, survey: PublishedSurvey) -> SurveyResult:
        """The result of a survey's newest release."""
        tally = self._store.tally(survey.key)
        with self._lock:
            kept = self._kept.get(survey.key)
        if kept is None or kept.release != tally.release or kept.survey != survey:
            kept = survey_result(survey, tally, datetime.now(UTC))
            with self._lock:
                self._kept[survey.key] = kept
        return kept


def survey_result(survey: PublishedSurvey, tally: Tally, now: datetime) -> SurveyResult:
    """Turn released counts into rows."""
    generated_at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    questions = zip(survey.definition.questions, tally.counts, strict=True)
    return SurveyResult(
        survey=survey,
        release=tally.release,
        n=tally.n,
        questions=tuple(
            _question(survey, question, counts, generated_at) for question, counts in questions
        ),
    )


def _question(
    survey: PublishedSurvey, question: PublishedQuestion, counts: Sequence[int], generated_at: str
) -> QuestionResult:
    n = sum(counts)
    result = proportions(np.array(counts), question.channel, level=LEVEL) if n else None
    shown: Disclosure = disclosure(result) if result else "hide"
    visible = None if shown == "hide" else result
    more = reports_needed(result, question.channel) - n if result and not visible else 0
    rows = tuple(
        _row(survey, question, option, n, counts[option], visible, FLAGS[shown], generated_at)
        for option in range(question.channel.k)
    )
    return QuestionResult(question, rows, shown, more)


def _row(
    survey: PublishedSurvey,
    question: PublishedQuestion,
    option: int,
    n: int,
    count: int,
    result: Proportions | None,
    flag: str,
    generated_at: str,
) -> Row:
    channel = question.channel
    return Row(
        survey_id=survey.slug,
        survey_version=survey.version,
        wave="",
        stratum="",
        bucket="",
        question_id=question.id,
        question_text=question.text,
        option_id=question.options[option].id,
        option_label=question.options[option].label,
        statistic="share",
        base="all",
        n_reports=n,
        report_count=count if result else None,
        report_share=count / n if result else None,
        **{name: float(getattr(result, name)[option]) if result else None for name in ESTIMATED},
        conf_level=LEVEL,
        method=result.method if result else "",
        mechanism=MECHANISM,
        truth_probability=channel.p,
        n_options=channel.k,
        epsilon=channel.epsilon,
        flag=flag,
        generated_at=generated_at,
        app_version=__version__,
    )
