"""The rows that dashboard, CSV and `survey estimate` all print, made in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

from survey.questionnaire.published import PublishedQuestion
from survey.results.decisions import decisions, needed
from survey.results.estimates import estimates
from survey.results.question import Part, QuestionResult
from survey.results.remarks import remarks
from survey.results.rows import Row, Told, question_rows
from survey.results.wanted import Wanted
from survey.store import PublishedSurvey, Store, Tally


@dataclass(frozen=True)
class SurveyResult:
    """All that can be read of one version of a survey after its latest release."""

    survey: PublishedSurvey
    release: int
    n: int
    wanted: Wanted
    questions: tuple[QuestionResult, ...]

    @property
    def rows(self) -> list[Row]:
        """Every row of every question, in the survey's order."""
        return [row for question in self.questions for row in question.rows]


USUAL = Wanted()
"""The usual way to read a survey; what may be shown is decided in it, however it is read."""

MOST_KEPT = 32
"""Ways of reading surveys that are remembered; any query of a link is one."""


class Results:
    """Computes results once per release and way of reading, and keeps the newest of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[tuple[int, Wanted], SurveyResult] = {}
        self._lock = Lock()

    def of(self, survey: PublishedSurvey, wanted: Wanted = USUAL) -> SurveyResult:
        """The result of a survey's newest release."""
        tally, key = self._store.tally(survey.key), (survey.key, wanted)
        with self._lock:
            kept = self._kept.get(key)
        if kept is None or kept.release != tally.release or kept.survey != survey:
            kept = survey_result(survey, tally, datetime.now(UTC), wanted)
            with self._lock:
                self._kept.pop(key, None)
                self._kept[key] = kept
                while len(self._kept) > MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
        return kept


def survey_result(
    survey: PublishedSurvey, tally: Tally, now: datetime, wanted: Wanted = USUAL
) -> SurveyResult:
    """Turn released counts into rows."""
    questions = zip(survey.definition.questions, tally.asked, tally.counts, strict=True)
    return SurveyResult(
        survey=survey,
        release=tally.release,
        n=tally.n,
        wanted=wanted,
        questions=tuple(
            question_result(survey, question, tally.n, asked, counts, now, wanted)
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
    wanted: Wanted = USUAL,
) -> QuestionResult:
    """Estimate a question from the counts of those asked, of n respondents.

    What may be shown is decided on the usual intervals: asking for narrower ones shows no more.
    """
    usual = estimates(question, asked, counts, USUAL)
    found = usual if wanted == USUAL else estimates(question, asked, counts, wanted)
    shown = decisions(usual)
    rows = question_rows(Told(survey, question, asked, found, shown, wanted, now))
    more = needed(usual, asked, n)
    several = bool(rows.mean)
    unspread = not found.numbers.told
    return QuestionResult(
        question=question,
        shares_part=Part(
            rows.shares,
            shown.shares,
            more.shares,
            told=not asked or usual.shares is not None,
            what=_shares_name(question) if several else "",
        ),
        answered_part=Part(rows.answered, shown.answered, what="shares among those who answered"),
        spread_part=Part(rows.spread, shown.spread, more.spread, not unspread, "the histogram"),
        mean_part=Part(rows.mean, shown.mean, more.mean, what="the mean" if several else ""),
        median_part=Part(rows.median, shown.median, more.median, not unspread, "the median"),
        asked=asked,
        n=n,
        remarks=remarks(question, counts, found, shown) if asked else (),
        wanted=wanted,
    )


def _shares_name(question: PublishedQuestion) -> str:
    """Options of a number or date are the ones that are no answer."""
    return "the shares" if question.type == "scale" else "the share of those who did not answer"
