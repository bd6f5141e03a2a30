"""Accept a report: check it against its survey and answer once its group is on the disk.

Requests neither parse definitions nor query the database themselves. Definitions never change and
are cached by their hash; the state of a survey, which can change, is read once for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from time import monotonic
from typing import Protocol

from survey.collect.admission import GRACE, refusal
from survey.collect.committer import Committer, Outcome
from survey.collect.wire import Submission, parse
from survey.errors import (
    ChannelError,
    InvitationNeededError,
    NotFoundError,
    OutdatedError,
    ReportError,
    SurveyError,
)
from survey.questionnaire.definition import Definition
from survey.store import PublishedSurvey, Store, StoredReport


class IntakeMetrics(Protocol):
    """Is told of every commit and refusal; whoever implements it tells nothing finer than steps."""

    def committed(self, accepted: int, seconds: float, left: int) -> None:
        """A group was committed: reports accepted, how long it took, how many wait behind it."""
        ...

    def refused(self, error: SurveyError) -> None:
        """A report was refused."""
        ...


class _NoMetrics:
    """IntakeMetrics that nobody reads."""

    def committed(self, accepted: int, seconds: float, left: int) -> None:
        """Forget it."""

    def refused(self, error: SurveyError) -> None:
        """Forget it."""


NO_METRICS = _NoMetrics()


MOST_DEFINITIONS = 256
"""Definitions that are kept parsed; more are parsed again."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A report that fits the definition it names, on its way into the store."""

    slug: str
    definition: str
    report: StoredReport
    today: date


class Intake:
    """Takes the reports of all threads of a process into one store, group by group."""

    def __init__(self, store: Store, figures: IntakeMetrics = NO_METRICS) -> None:
        self._store = store
        self._figures = figures
        self._definitions: dict[str, Definition] = {}
        self._committer = Committer(self._timed_commit)

    def receive(self, slug: str, body: bytes, today: date) -> None:
        """Store the report in `body`, or raise the one refusal that fits.

        Returns when the report is on the disk, also when it was there before.
        """
        submission = parse(body)
        definition = self._definition(slug, submission.definition)
        report = accept(submission, definition)
        self._committer.add(Arrival(slug, submission.definition, report, today))

    def _definition(self, slug: str, sha256: str) -> Definition:
        """The definition that the report's device had."""
        known = self._definitions.get(sha256)
        if known is not None and known.slug == slug:
            return known
        found = _made_for(self._store.versions(slug), sha256).definition
        if len(self._definitions) >= MOST_DEFINITIONS:
            self._definitions.clear()
        self._definitions[sha256] = found
        return found

    def _timed_commit(self, arrivals: Sequence[Arrival]) -> Sequence[Outcome]:
        begun = monotonic()
        outcomes = self._commit(arrivals)
        self._figures.committed(
            sum(outcome is None for outcome in outcomes),
            monotonic() - begun,
            self._committer.queued,
        )
        return outcomes

    def _commit(self, arrivals: Sequence[Arrival]) -> Sequence[Outcome]:
        """Store a group in one transaction; what its survey does not take is refused alone."""
        slugs = {arrival.slug for arrival in arrivals}
        versions = {slug: self._store.versions(slug) for slug in slugs}
        outcomes: list[Outcome] = [None] * len(arrivals)
        taken: list[tuple[int, StoredReport]] = []
        places: list[int] = []
        for place, arrival in enumerate(arrivals):
            try:
                survey = _made_for(versions[arrival.slug], arrival.definition)
                if not self._is_stored_late(arrival, survey, versions[arrival.slug][0]):
                    taken.append((survey.key, arrival.report))
                    places.append(place)
            except SurveyError as refusal:
                outcomes[place] = refusal
        stored = self._store.add_reports(taken) if taken else ()
        for place, outcome in zip(places, stored, strict=True):
            outcomes[place] = outcome
        return outcomes

    def _is_stored_late(
        self, arrival: Arrival, survey: PublishedSurvey, current: PublishedSurvey
    ) -> bool:
        """Whether a version that takes no new reports has this one already; if not, the refusal.

        Someone whose acknowledgement was lost must learn that the report did arrive.
        """
        refused = _stale(survey, current, arrival.today) or refusal(
            self._store, survey, arrival.today
        )
        if refused is None:
            return False
        if not self._store.has_report(survey.key, arrival.report):
            raise refused
        return True


def _made_for(versions: Sequence[PublishedSurvey], definition: str) -> PublishedSurvey:
    """The version whose definition the report's device had."""
    if not versions:
        raise NotFoundError("there is no survey at this address")
    for survey in versions:
        if survey.sha256 == definition:
            return survey
    raise OutdatedError("this report was made for another definition of the survey")


def _stale(survey: PublishedSurvey, current: PublishedSurvey, today: date) -> SurveyError | None:
    """Why a version that another has followed takes no new reports, or None when it does."""
    late = survey.version < current.version - 1 or today - survey.changed > GRACE
    if survey.state == "superseded" and late:
        return OutdatedError("this report was made for another definition of the survey")
    return None


def accept(submission: Submission, definition: Definition) -> StoredReport:
    """Hold a submission against its survey; the first code that does not fit is named."""
    questions = definition.questions
    if len(submission.codes) != len(questions):
        raise ReportError(
            f"codes must have {len(questions)} entries, one per question, "
            f"not {len(submission.codes)}"
        )
    if definition.access == "invitation" and not submission.invitation:
        raise InvitationNeededError("this survey takes reports only from personal links")
    _check_drawn(submission.codes, definition)
    codes = []
    for number, (code, question) in enumerate(zip(submission.codes, questions, strict=True), 1):
        try:
            codes.append(question.encode(code))
        except ChannelError as error:
            raise ReportError(f"code {number} ({question.id}) {error}") from None
    return StoredReport(
        submission.report_id, submission.stratum, b"".join(codes), submission.invitation
    )


def _check_drawn(codes: Sequence[object], definition: Definition) -> None:
    """In a survey that draws its questions, whole groups are null, as many as are not drawn."""
    if not definition.is_sampled:
        return
    asked = {
        question.id for code, question in zip(codes, definition.questions, strict=True)
        if code is not None
    }  # fmt: skip
    drawn = [group for group in definition.groups if asked.issuperset(group)]
    if len(drawn) != definition.drawn or sum(map(len, drawn)) != len(asked):
        raise ReportError(
            f"codes must be null for all but {definition.drawn} of the "
            f"{len(definition.groups)} questions that are drawn, with those that depend on them"
        )
