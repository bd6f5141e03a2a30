"""The rows that dashboard, CSV and `survey estimate` all print, made in one place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

from survey.estimator import Disclosure, Mean, Proportions, disclosure, reports_needed, rounded_up
from survey.mechanism import BitVector
from survey.questionnaire.published import PublishedQuestion
from survey.results.estimates import Estimates, estimates
from survey.results.rows import LEVEL, Decisions, Row, question_rows
from survey.results.wording import Amounts, Margin, amounts, widest_margin
from survey.store import PublishedSurvey, Store, Tally


@dataclass(frozen=True)
class Part:
    """Rows that are shown or hidden together, and about how many more reports if hidden.

    `told` is whether the question's design can tell them at all. `what` names them where a
    question has several parts.
    """

    rows: tuple[Row, ...]
    disclosure: Disclosure = "hide"
    more_needed: int = 0
    told: bool = True
    what: str = ""

    @property
    def is_listed(self) -> bool:
        """Whether there are rows to see: with numbers, or saying that the design tells none."""
        beside_another = not self.told and bool(self.what)
        return bool(self.rows) and (self.disclosure != "hide" or beside_another)

    def caveat(self, *, closed: bool) -> str:
        """What to say beside these rows, or instead of their numbers; empty when nothing."""
        if not self.rows or self.disclosure == "show":
            return ""
        if self.disclosure == "caution":
            it = f" {self.what}" if self.what else ""
            return f"Read{it} with caution: the intervals are still wide."
        if not self.told:
            return "" if self.what else "Nothing can be estimated from this question's design."
        more = f"about {self.more_needed:,} more" if self.more_needed else "more"
        of = f" for {self.what}" if self.what else ""
        if closed:
            return f"Not enough responses{of}: {more} would have been needed."
        return f"Not enough responses yet{of}: {more} needed."


@dataclass(frozen=True)
class QuestionResult:
    """A question's three parts, which decide about being shown each for itself.

    Shares among those who answered are never shown without those among all. `asked` of the `n`
    released reports hold an answer to it. `margin` is the widest one of the shares, if shown.
    """

    question: PublishedQuestion
    shares_part: Part
    answered_part: Part
    mean_part: Part
    asked: int
    n: int
    margin: Margin | None

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows in the order of the CSV."""
        return self.shares_part.rows + self.answered_part.rows + self.mean_part.rows

    @property
    def shares(self) -> tuple[Row, ...]:
        """The rows of options, among all."""
        return self.shares_part.rows

    @property
    def answered(self) -> tuple[Row, ...]:
        """The rows of answers, among those who answered."""
        return self.answered_part.rows

    @property
    def mean(self) -> Row | None:
        """The row of the mean, of questions whose answers stand for numbers."""
        return next(iter(self.mean_part.rows), None)

    @property
    def among_answered(self) -> dict[str, Row]:
        """The rows among those who answered that may be shown, by option."""
        rows = self.answered if self.answered_part.disclosure != "hide" else ()
        return {row.option_id: row for row in rows}

    def share_caveats(self, *, closed: bool) -> list[str]:
        """What to say beside the shares, or instead of them; among all first."""
        every, some = self.shares_part, self.answered_part
        said = [every.caveat(closed=closed)]
        if every.disclosure != "hide" and some.disclosure != every.disclosure:
            said.append(some.caveat(closed=closed))
        return [text for text in said if text]

    def caveats(self, *, closed: bool) -> list[str]:
        """All there is to say beside or instead of the question's numbers."""
        mean = self.mean_part.caveat(closed=closed)
        return self.share_caveats(closed=closed) + ([mean] if mean else [])

    @property
    def disclosure(self) -> Disclosure:
        """That of the part which may be shown the most: "hide" when there is nothing to see."""
        order: tuple[Disclosure, ...] = ("show", "caution", "hide")
        parts = (self.shares_part.disclosure, self.mean_part.disclosure)
        return min(parts, key=order.index)

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
    shown = _decisions(found)
    rows = question_rows(survey, question, asked, found, shown, now)
    both = bool(rows.shares and rows.mean)

    def part(
        result: Proportions | Mean | None, rows: tuple[Row, ...], decision: Disclosure, what: str
    ) -> Part:
        more = _more_needed(result, asked, n) if result and decision == "hide" else 0
        return Part(rows, decision, more, not asked or result is not None, what if both else "")

    return QuestionResult(
        question=question,
        shares_part=part(found.shares, rows.shares, shown.shares, "the shares"),
        answered_part=Part(rows.answered, shown.answered, what="shares among those who answered"),
        mean_part=part(found.mean, rows.mean, shown.mean, "the mean"),
        asked=asked,
        n=n,
        margin=widest_margin(found.shares) if found.shares and shown.shares != "hide" else None,
    )


def _decisions(found: Estimates) -> Decisions:
    shares: Disclosure = disclosure(found.shares) if found.shares else "hide"
    answered: Disclosure = "hide"
    if found.answered and shares != "hide":
        answered = disclosure(found.answered)
    return Decisions(shares, answered, disclosure(found.mean) if found.mean else "hide")


def _more_needed(result: Proportions | Mean, asked: int, n: int) -> int:
    """About how many more respondents, of whom only a part is asked."""
    needed = reports_needed(result)
    return needed - n if asked == n else rounded_up(math.ceil(needed * n / asked)) - n


def _about(n: int) -> str:
    """A number of people to three significant digits."""
    return f"{round(n, 3 - len(str(n))):,}"
