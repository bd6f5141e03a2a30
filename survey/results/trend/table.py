"""Estimates of one question in several groups (links, periods or versions), in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from survey.estimator import Disclosure
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.result import QuestionResult, ResultPart, SurveyResult
from survey.results.estimates.table import EstimateRow
from survey.results.groups import first_day, last_day
from survey.results.number_format import NOT_ENOUGH, NOT_ENOUGH_YET
from survey.results.request import IntervalOptions
from survey.results.trend.request import PART_LABELS, TrendRequest
from survey.store import PublishedSurvey


@dataclass(frozen=True)
class TrendGroup:
    """One group's name and figures.

    `result` has the texts and the channel of the version that the group answered, and `counts` the
    question's released counts. `period` is empty unless groups are periods. A `closed` group
    receives no more responses.
    """

    name: str
    result: QuestionResult
    counts: Sequence[int]
    part: ResultPart
    period: str
    closed: bool

    @property
    def rows(self) -> tuple[EstimateRow, ...]:
        """The group's rows, with numbers or without."""
        return self.part.rows

    @property
    def disclosure(self) -> Disclosure:
        """The decision about the group's numbers."""
        return self.part.disclosure

    @property
    def suppression_text(self) -> str:
        """The text that replaces suppressed numbers."""
        text = self.result.failure or self.part.caveat(closed=self.closed)
        return text or (NOT_ENOUGH if self.closed else NOT_ENOUGH_YET)


@dataclass(frozen=True)
class DatedNote:
    """A team's note on an event, with its day.

    `number` is the note's position in the list below a chart, `key` its number in the store.
    """

    day: date
    number: int
    text: str
    key: int = 0


@dataclass(frozen=True)
class TrendResult:
    """A part of one question in several groups; each group is shown or suppressed independently.

    `total` is the result over all groups. `notes` say which versions are left out and why.
    `dated_notes` are the team's notes in chronological order, if groups are periods.
    `groups` is empty if the survey has no groups of this kind.
    """

    request: TrendRequest
    total: SurveyResult
    groups: tuple[TrendGroup, ...]
    notes: tuple[str, ...] = ()
    dated_notes: tuple[DatedNote, ...] = ()

    @property
    def marks(self) -> tuple[DatedNote, ...]:
        """The notes on days within the periods, which charts mark."""
        if not self.groups or not self.dated_notes:
            return ()
        first, last = first_day(self.groups[0].period), last_day(self.groups[-1].period)
        return tuple(note for note in self.dated_notes if first <= note.day <= last)

    @property
    def survey(self) -> PublishedSurvey:
        """The version of the survey."""
        return self.total.survey

    @property
    def options(self) -> IntervalOptions:
        """The interval options."""
        return self.total.options

    @property
    def question(self) -> PublishedQuestion:
        """The question, as the first group answered it."""
        source = (
            self.groups[0].result if self.groups else self.total.question(self.request.question)
        )
        return source.question

    @property
    def rows(self) -> list[EstimateRow]:
        """All rows of all groups."""
        return [row for group in self.groups for row in group.rows]

    @property
    def columns(self) -> tuple[EstimateRow, ...]:
        """The rows of one group, whose labels are the column headings."""
        return self.groups[0].rows if self.groups else ()


def question_parts(result: QuestionResult) -> list[str]:
    """Return the names of a question's parts, the main part first."""
    parts = [name for name in PART_LABELS if result.parts[name].rows]
    if result.question.kind.is_numeric:
        parts.sort(key=lambda name: name == "shares")
    return parts
