"""The rows that dashboard, CSV and `survey estimate` all print, made in one place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any, TypeVar

from survey.errors import NotFoundError
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.compute import Estimates, estimates
from survey.results.estimates.details import Detail, details
from survey.results.estimates.question import Part, QuestionResult
from survey.results.estimates.sentences import remarks
from survey.results.estimates.table import Row, Told, question_rows
from survey.results.grouped import EVERYBODY, Group, Tallies
from survey.results.options import Wanted
from survey.results.suppression import Decisions, decisions, needed
from survey.store import PublishedSurvey, Store, Tally


@dataclass(frozen=True)
class SurveyResult:
    """All that can be read of one version of a survey after one of its releases.

    `group` is whose reports they are. A question is estimated when it is first looked at.
    """

    survey: PublishedSurvey
    tally: Tally
    wanted: Wanted
    now: datetime
    group: Group = EVERYBODY
    _found: dict[int, QuestionResult] = field(default_factory=dict, compare=False, repr=False)

    @property
    def release(self) -> int:
        """The number of the release."""
        return self.tally.release

    @property
    def n(self) -> int:
        """Released reports."""
        return self.tally.n

    @property
    def questions(self) -> tuple[QuestionResult, ...]:
        """Every question, in the survey's order."""
        return tuple(self._at(place) for place in range(len(self.tally.counts)))

    def question(self, name: str) -> QuestionResult:
        """The question of this id; NotFoundError when the survey has none."""
        return self._at(place_of(self.survey, name))

    @property
    def rows(self) -> list[Row]:
        """Every row of every question, in the survey's order."""
        return [row for question in self.questions for row in question.rows]

    def _at(self, place: int) -> QuestionResult:
        if place not in self._found:
            self._found[place] = question_result(
                self.survey,
                self.survey.definition.questions[place],
                self.tally.n,
                self.tally.n_asked[place],
                self.tally.counts[place],
                self.now,
                self.wanted,
                self.group,
            )
        return self._found[place]


def asks(survey: PublishedSurvey, name: str) -> bool:
    """Whether a version has a question of this id."""
    return any(question.id == name for question in survey.definition.questions)


def place_of(survey: PublishedSurvey, name: str) -> int:
    """The place of the question of this id; NotFoundError says which there are."""
    names = [question.id for question in survey.definition.questions]
    if name not in names:
        raise NotFoundError(f'{survey.slug} has no question "{name}"; there are {", ".join(names)}')
    return names.index(name)


Kept = TypeVar("Kept")
Split = Callable[[Tallies], dict[Group, Tally]]

USUAL = Wanted()
"""The usual way to read a survey; what may be shown is decided in it, however it is read."""

MOST_KEPT = 32
"""Ways of reading surveys that are remembered; any query of a link is one."""


class Results:
    """Makes results once per release and way of reading, and keeps the newest of them.

    Every process keeps its own; the release's number says whether what is kept still holds.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[Hashable, tuple[int, Any]] = {}
        self._lock = Lock()

    def of(self, survey: PublishedSurvey, wanted: Wanted = USUAL) -> SurveyResult:
        """The result of a survey's newest release."""
        tally = self._store.tally(survey.key)

        def made() -> SurveyResult:
            return survey_result(survey, tally, datetime.now(UTC), wanted)

        return self._once(tally.release, (survey, wanted), made)

    def by(
        self, survey: PublishedSurvey, split: Split, wanted: Wanted = USUAL
    ) -> dict[Group, SurveyResult]:
        """The results of each group of a survey's released reports, as `split` tells them apart."""
        # Read first: a release between this and the counts is found out the next time.
        release = self._store.tally(survey.key).release

        def made() -> dict[Group, SurveyResult]:
            now = datetime.now(UTC)
            found = split(self._store.tallies(survey.key))
            return {
                group: survey_result(survey, tally, now, wanted, group)
                for group, tally in found.items()
            }

        return self._once(release, (survey, split, wanted), made)

    def _once(self, release: int, key: Hashable, make: Callable[[], Kept]) -> Kept:
        with self._lock:
            kept = self._kept.get(key)
        if kept is None or kept[0] != release:
            kept = release, make()
            with self._lock:
                self._kept.pop(key, None)
                self._kept[key] = kept
                while len(self._kept) > MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
        found: Kept = kept[1]
        return found


def survey_result(
    survey: PublishedSurvey,
    tally: Tally,
    now: datetime,
    wanted: Wanted = USUAL,
    group: Group = EVERYBODY,
) -> SurveyResult:
    """Turn released counts into rows."""
    return SurveyResult(survey, tally, wanted, now, group)


def question_result(
    survey: PublishedSurvey,
    question: PublishedQuestion,
    n: int,
    asked: int,
    counts: Sequence[int],
    now: datetime,
    wanted: Wanted = USUAL,
    group: Group = EVERYBODY,
) -> QuestionResult:
    """Estimate a question from the counts of those asked, of n respondents.

    What may be shown is decided on the usual intervals: asking for narrower ones shows no more.
    """
    usual = estimates(question, asked, counts, USUAL)
    found = usual if wanted == USUAL else estimates(question, asked, counts, wanted)
    shown = decisions(usual)
    rows = question_rows(Told(survey, question, asked, found, shown, wanted, now, group))
    definition = survey.definition
    one_in = len(definition.groups) / definition.drawn
    more = needed(usual, asked, n, question, one_in)
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
        answered_part=Part(
            rows.answered, shown.answered, more.answered, what="shares among those who answered"
        ),
        spread_part=Part(rows.spread, shown.spread, more.spread, not unspread, "the histogram"),
        mean_part=Part(rows.mean, shown.mean, more.mean, what="the mean" if several else ""),
        median_part=Part(rows.median, shown.median, more.median, not unspread, "the median"),
        asked=asked,
        n=n,
        remarks=remarks(question, counts, found, shown) if asked else (),
        details=_details(question, found, shown),
        wanted=wanted,
    )


def _details(question: PublishedQuestion, found: Estimates, shown: Decisions) -> tuple[Detail, ...]:
    """Nothing where the options are only the ones that are no answer, or may not be shown."""
    if found.shares is None or shown.shares == "hide" or question.type in ("number", "date"):
        return ()
    return details(question, found.shares)


def _shares_name(question: PublishedQuestion) -> str:
    """Options of a number or date are the ones that are no answer."""
    return "the shares" if question.type == "scale" else "the share of those who did not answer"
