"""The rows that dashboard, CSV and `survey estimate` all print, made in one place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

from survey.estimator import Disclosure, disclosure, reports_needed, rounded_up
from survey.mechanism import BitVector
from survey.questionnaire.published import PublishedQuestion
from survey.results.estimates import Estimates, estimates
from survey.results.rows import LEVEL, Row, question_rows
from survey.results.wording import Amounts, amounts
from survey.store import PublishedSurvey, Store, Tally


@dataclass(frozen=True)
class QuestionResult:
    """A question's rows, whether they may be shown, and about how many more reports if not.

    `asked` of the `n` released reports hold an answer to it.
    """

    question: PublishedQuestion
    rows: tuple[Row, ...]
    disclosure: Disclosure
    more_needed: int
    asked: int
    n: int

    @property
    def shares(self) -> tuple[Row, ...]:
        """The rows of options."""
        return tuple(row for row in self.rows if row.statistic == "share")

    @property
    def mean(self) -> Row | None:
        """The row of the mean, of questions whose answers stand for numbers."""
        return next((row for row in self.rows if row.statistic == "mean"), None)

    @property
    def amounts(self) -> Amounts:
        """How this question's numbers are written."""
        return amounts(self.question)

    @property
    def notes(self) -> list[str]:
        """What a reader must know about who was asked and what the shares add up to."""
        notes = []
        if self.asked < self.n:
            notes.append(
                f"Asked to about {_about(self.asked)} of {self.n:,} respondents, at random."
            )
        if self.question.type == "multiple_choice":
            notes.append("Several answers possible: shares do not add up to 100%.")
        channel = self.question.channel
        if isinstance(channel, BitVector) and channel.sampled < channel.m:
            notes.append(
                f"Each report tells about {channel.sampled} of the {channel.m} answers, at random."
            )
        return notes

    def caveat(self, *, closed: bool) -> str:
        """What to say beside this question, or instead of its numbers; empty when nothing."""
        if self.disclosure == "show":
            return ""
        if self.disclosure == "caution":
            return "Read with caution: the intervals are still wide."
        if self.asked and not self.more_needed:
            return "Nothing can be estimated from this question's design."
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
    questions = zip(survey.definition.questions, tally.asked, tally.counts, strict=True)
    return SurveyResult(
        survey=survey,
        release=tally.release,
        n=tally.n,
        questions=tuple(
            question_result(survey, question, tally.n, asked, counts, now)
            for question, asked, counts in questions
        ),
    )


def question_result(
    survey: PublishedSurvey,
    question: PublishedQuestion,
    n: int,
    asked: int,
    counts: Sequence[int],
    now: datetime,
) -> QuestionResult:
    """Estimate a question from the counts of those asked, of n respondents."""
    found = estimates(question, asked, counts, LEVEL)
    shown: Disclosure = disclosure(*found.found) if found.found else "hide"
    rows = question_rows(survey, question, asked, found, shown, now)
    more = _more_needed(found, asked, n) if shown == "hide" else 0
    return QuestionResult(question, rows, shown, more, asked, n)


def _more_needed(found: Estimates, asked: int, n: int) -> int:
    """About how many more respondents, of whom only a part is asked; 0 when that is unknown."""
    if not found.found:
        return 0
    needed = reports_needed(*found.found)
    return needed - n if asked == n else rounded_up(math.ceil(needed * n / asked)) - n


def _about(n: int) -> str:
    """A number of people to three significant digits."""
    return f"{round(n, 3 - len(str(n))):,}"
