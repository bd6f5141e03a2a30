"""Accept a report: check it against its survey and answer once its group is on the disk.

Requests neither parse definitions nor query the database themselves. Definitions never change and
are cached by their hash. What can change, the state of a survey and its number of reports, is
read once for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from time import monotonic
from typing import Protocol

from survey.collect.admission import GRACE, schedule_refusal
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

MAX_DEFINITIONS = 256
"""Most parsed definitions in the cache."""


class IntakeMetrics(Protocol):
    """Receives every commit and refusal; must publish them only in steps of many reports."""

    def committed(self, accepted: int, seconds: float, queued: int) -> None:
        """Record a commit: its accepted reports, its duration, the reports queued behind it."""
        ...

    def refused(self, error: SurveyError) -> None:
        """Record a refused report."""
        ...


class _NoMetrics:
    """Metrics that are not recorded."""

    def committed(self, accepted: int, seconds: float, queued: int) -> None:
        """Do nothing."""

    def refused(self, error: SurveyError) -> None:
        """Do nothing."""


NO_METRICS = _NoMetrics()


@dataclass(frozen=True, slots=True)
class Arrival:
    """A report that fits the definition it names, on its way into the store."""

    slug: str
    definition: str
    report: StoredReport
    today: date


class Intake:
    """Accepts the reports of all threads of a process into a store, in groups."""

    def __init__(self, store: Store, metrics: IntakeMetrics = NO_METRICS) -> None:
        self._store = store
        self._metrics = metrics
        self._definitions: dict[str, Definition] = {}
        self._committer = Committer(self._timed_commit)

    def receive(self, slug: str, body: bytes, today: date) -> None:
        """Store the report in a request's body, or raise the error with which it is refused.

        Returns when the report is on the disk, even if it was stored earlier.
        """
        submission = parse(body)
        definition = self._definition(slug, submission.definition)
        report = accept(submission, definition)
        self._committer.add(Arrival(slug, submission.definition, report, today))

    def _definition(self, slug: str, sha256: str) -> Definition:
        """Return the definition with which the device made its report."""
        cached = self._definitions.get(sha256)
        if cached is not None and cached.slug == slug:
            return cached
        definition = _find_version(self._store.versions(slug), sha256).definition
        if len(self._definitions) >= MAX_DEFINITIONS:
            self._definitions.clear()
        self._definitions[sha256] = definition
        return definition

    def _timed_commit(self, arrivals: Sequence[Arrival]) -> Sequence[Outcome]:
        start = monotonic()
        outcomes = self._commit(arrivals)
        self._metrics.committed(
            sum(outcome is None for outcome in outcomes),
            monotonic() - start,
            self._committer.queued,
        )
        return outcomes

    def _commit(self, arrivals: Sequence[Arrival]) -> Sequence[Outcome]:
        """Store a group in one transaction; refuse single reports that a survey does not accept."""
        slugs = {arrival.slug for arrival in arrivals}
        versions = {slug: self._store.versions(slug) for slug in slugs}
        outcomes: list[Outcome] = [None] * len(arrivals)
        reports: list[tuple[int, StoredReport]] = []
        places: list[int] = []
        maxima: dict[int, int] = {}
        for place, arrival in enumerate(arrivals):
            try:
                survey = _find_version(versions[arrival.slug], arrival.definition)
                if not self._is_stored_late(arrival, survey, versions[arrival.slug][0]):
                    reports.append((survey.key, arrival.report))
                    places.append(place)
                    maxima[survey.key] = survey.schedule.maximum
            except SurveyError as refusal:
                outcomes[place] = refusal
        verdicts = self._store.add_reports(reports, maxima) if reports else ()
        for place, verdict in zip(places, verdicts, strict=True):
            outcomes[place] = verdict
        return outcomes

    def _is_stored_late(
        self, arrival: Arrival, survey: PublishedSurvey, current: PublishedSurvey
    ) -> bool:
        """Return whether a version that accepts no new reports has this one; raise why if not.

        A respondent whose acknowledgement was lost must learn that the report was stored.
        """
        refusal = _outdated(survey, current, arrival.today) or schedule_refusal(
            survey, arrival.today
        )
        if refusal is None:
            return False
        if not self._store.has_report(survey.key, arrival.report):
            raise refusal
        return True


def _find_version(versions: Sequence[PublishedSurvey], sha256: str) -> PublishedSurvey:
    """Return the version with the definition with which the device made its report."""
    if not versions:
        raise NotFoundError("there is no survey at this address")
    for survey in versions:
        if survey.sha256 == sha256:
            return survey
    raise OutdatedError("this report was made for another definition of the survey")


def _outdated(survey: PublishedSurvey, current: PublishedSurvey, today: date) -> SurveyError | None:
    """Return why a superseded version accepts no new reports, or None if it does."""
    is_late = survey.version < current.version - 1 or today - survey.changed > GRACE
    if survey.state == "superseded" and is_late:
        return OutdatedError("this report was made for another definition of the survey")
    return None


def accept(submission: Submission, definition: Definition) -> StoredReport:
    """Check a submission against its survey; raise an error that names the first wrong code."""
    questions = definition.questions
    if len(submission.codes) != len(questions):
        raise ReportError(
            f"codes must have {len(questions)} entries, one per question, "
            f"not {len(submission.codes)}"
        )
    if definition.access == "invitation" and not submission.invitation:
        raise InvitationNeededError("this survey accepts reports only with an invitation")
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
    """Check that a report answers all questions of as many groups as its survey draws."""
    if not definition.is_sampled:
        return
    answered = {
        question.id for code, question in zip(codes, definition.questions, strict=True)
        if code is not None
    }  # fmt: skip
    groups = [group for group in definition.groups if answered.issuperset(group)]
    if len(groups) != definition.drawn or sum(map(len, groups)) != len(answered):
        raise ReportError(
            f"codes must be null for all but {definition.drawn} of the "
            f"{len(definition.groups)} questions that are drawn, with those that depend on them"
        )
