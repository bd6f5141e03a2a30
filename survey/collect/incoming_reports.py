"""Receive reports: check the JSON and the codes, and answer once a group is on the disk.

Requests neither parse definitions nor query the database themselves. Definitions never change and
are cached by their hash. What can change, the state of a survey and its number of reports, is
read once for each group. A request's body is never echoed or logged: errors name only the place
and the allowed range.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from survey.collect.group_commit import Committer, Outcome
from survey.collect.invitations import token_hash
from survey.disclosure import is_full
from survey.errors import (
    ChannelError,
    ClosedError,
    DamagedSurveyError,
    FullError,
    InvitationNeededError,
    LateBoxesError,
    MalformedReportError,
    NotFoundError,
    NotOpenError,
    OutdatedError,
    ReportError,
    ReportTooLargeError,
    SurveyError,
    TestRunError,
)
from survey.questionnaire import is_test_run
from survey.questionnaire.definition import (
    MAX_REPORT_BYTES,
    MAX_STRATUM_LENGTH,
    Definition,
    report_body,
)
from survey.store import GRACE, PublishedSurvey, Store, StoredReport
from survey.store.field_boxes import box_bytes, box_id, seal_box

MAX_DEFINITIONS = 256
"""Most parsed definitions in the cache."""

QUEUE_MARK = b"survey-field 1 "
"""The first bytes of each file in which a tablet saves its queue."""

QUEUE_HEAD = re.compile(QUEUE_MARK + rb"(?P<slug>[a-z0-9-]{1,100}) (?P<sha256>[0-9a-f]{64})")
"""The first line of such a file; the boxes of the queue follow it."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A report that fits the definition it names, on its way into the store."""

    slug: str
    definition: str
    report: StoredReport
    today: date


class Intake:
    """Accepts the reports of all requests of a process into a store, in groups."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._definitions: dict[str, Definition] = {}
        self._committer = Committer(self._commit, write_lock=store.hold_write_lock)

    def receive(self, slug: str, body: bytes, today: date) -> None:
        """Store the report in a request's body, or raise the error with which it is refused.

        Returns when the report is on the disk, even if it was stored earlier.
        """
        submission = parse(body)
        definition = self._definition(slug, submission.definition)
        self._committer.add(_arrival(slug, submission, definition, today))

    async def receive_in_loop(self, slug: str, body: bytes, today: date) -> bool:
        """Store a report as `receive` does, but in a coroutine and without blocking its event loop.

        Return False, without effect, if the report's definition must be read from the store.
        """
        submission = parse(body)
        definition = self._cached_definition(slug, submission.definition)
        if definition is None:
            return False
        await self._committer.add_from_loop(_arrival(slug, submission, definition, today))
        return True

    def receive_boxes(self, slug: str, sha256: str, content: bytes, today: date) -> None:
        """Store the boxes of a tablet in field mode, or raise the error that the tablet receives.

        `content` contains any number of boxes; without any, a tablet only asks whether the survey
        accepts uploads. Only the keeper can open the boxes, so it drops invalid ones later. Return
        when all boxes are on the disk, even if some were stored earlier. If the survey accepts no
        more uploads, LateBoxesError lists the boxes that were stored in time.
        """
        definition = self._definition(slug, sha256)
        if definition.field is None:
            raise NotFoundError("this survey has no field mode")
        length = box_bytes(definition)
        if len(content) % length:
            raise ReportError(
                f"an upload for this survey must contain boxes of {length:,} bytes each"
            )
        boxes = [content[start : start + length] for start in range(0, len(content), length)]
        survey = _find_version(self._store.versions(slug), sha256)
        reports = [(survey.key, StoredReport(box_id(box), "", box)) for box in boxes]
        if survey.state == "closed" or today > definition.field.until:
            errors: Sequence[SurveyError | None] = [ClosedError("")]
        else:
            errors = self._store.add_reports(reports) if reports else ()
        if error := next((error for error in errors if error is not None), None):
            if not isinstance(error, ClosedError):
                raise error
            known = [self._store.has_report(key, report.id) for key, report in reports]
            if not (boxes and all(known)):
                raise LateBoxesError([place for place, is_known in enumerate(known) if is_known])

    def receive_file(self, slug: str, content: bytes, today: date) -> int:
        """Store the boxes in a tablet's file, like an upload; return the number of its slots.

        A box that was uploaded or imported earlier is not stored again.
        """
        head, _, boxes = content.partition(b"\n")
        match = QUEUE_HEAD.fullmatch(head)
        if match is None and QUEUE_MARK.startswith(content[: len(QUEUE_MARK)]):
            raise ReportError("the first line of the file is truncated or altered; save it again")
        if match is None:
            raise ReportError("this is not a file that a tablet in field mode saved")
        if match["slug"].decode() != slug:
            raise ReportError(f"the file belongs to the survey {match['slug'].decode()}")
        sha256 = match["sha256"].decode()
        try:
            length = box_bytes(self._definition(slug, sha256))
        except OutdatedError:
            raise ReportError(
                f"the file belongs to a version of {slug} that this server does not have"
            ) from None
        if not boxes or len(boxes) % length:
            raise ReportError(
                f"the file is truncated or altered: {len(boxes):,} bytes follow its first line, "
                f"which should be boxes of {length:,} bytes each; save it again"
            )
        self.receive_boxes(slug, sha256, boxes, today)
        return len(boxes) // length

    def _definition(self, slug: str, sha256: str) -> Definition:
        """Return the definition with which the device made its report."""
        if cached := self._cached_definition(slug, sha256):
            return cached
        definition = _find_version(self._store.versions(slug), sha256).definition
        if len(self._definitions) >= MAX_DEFINITIONS:
            self._definitions.clear()
        self._definitions[sha256] = definition
        return definition

    def _cached_definition(self, slug: str, sha256: str) -> Definition | None:
        cached = self._definitions.get(sha256)
        return cached if cached is not None and cached.slug == slug else None

    def _commit(self, arrivals: Sequence[Arrival]) -> Sequence[Outcome]:
        """Store a group in one transaction; refuse single reports that a survey does not accept."""
        slugs = {arrival.slug for arrival in arrivals}
        versions = {slug: self._store.versions(slug) for slug in slugs}
        outcomes: list[Outcome] = [None] * len(arrivals)
        reports: list[tuple[int, StoredReport]] = []
        places: list[int] = []
        for place, arrival in enumerate(arrivals):
            try:
                survey = _find_version(versions[arrival.slug], arrival.definition)
                if not self._is_stored_late(arrival, survey, versions[arrival.slug][0]):
                    reports.append((survey.key, arrival.report))
                    places.append(place)
            except SurveyError as refusal:
                outcomes[place] = refusal
        verdicts = self._store.add_reports(reports) if reports else ()
        for place, verdict in zip(places, verdicts, strict=True):
            outcomes[place] = verdict
        return outcomes

    def _is_stored_late(
        self, arrival: Arrival, survey: PublishedSurvey, current: PublishedSurvey
    ) -> bool:
        """Return whether a version that accepts no new reports has this one; raise why if not.

        A respondent whose acknowledgement was lost must learn that the report was stored.
        """
        error = _outdated(survey, current, arrival.today) or refusal(
            self._store, survey, arrival.today
        )
        if error is None:
            return False
        if not self._store.has_report(survey.key, arrival.report.id):
            raise error
        return True


def _arrival(slug: str, submission: Submission, definition: Definition, today: date) -> Arrival:
    """Return the report in a submission, or raise the error that rejects it."""
    if is_test_run(slug):
        raise TestRunError("this is a test run: it stores simulated reports only")
    report = accept(submission, definition)
    if definition.field:
        # In a survey with field mode, the keeper expects every arriving report to be a box.
        report = replace(report, codes=seal_box(definition, _body(submission, definition)))
    return Arrival(slug, submission.definition, report, today)


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


def refusal(store: Store, survey: PublishedSurvey, today: date) -> SurveyError | None:
    """Return why a survey accepts no new report today, or None if it does.

    The result depends on releases and the date, never on an arriving report.
    """
    try:
        survey.require_intact_dates()
    except DamagedSurveyError as error:
        return error
    schedule = survey.schedule
    if survey.state == "closed" or (schedule.closes and today > schedule.closes):
        return ClosedError("this survey is closed and accepts no more reports")
    if schedule.opens and today < schedule.opens:
        return NotOpenError(schedule.opens)
    if schedule.maximum and is_full(store.n_released(survey.key), schedule.maximum):
        return FullError(f"this survey has reached its maximum of {schedule.maximum:,} reports")
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
    stratum, invitation = submission.stratum, submission.invitation
    return StoredReport(submission.report_id, stratum, b"".join(codes), invitation)


def _body(submission: Submission, definition: Definition) -> bytes:
    """Return a submission as the client encodes it, with the length that the survey requires."""
    report_id = base64.urlsafe_b64encode(submission.report_id).decode("ascii").rstrip("=")
    codes: Any = submission.codes
    return report_body(definition.sha256, report_id, codes, length=definition.report_bytes)


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


# Each id has one spelling: the last four bits of the last character must be zero.
REPORT_ID = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
SURROGATE = re.compile("[\ud800-\udfff]")

KEYS = ("definition", "report_id", "stratum", "codes", "invitation", "pad")


@dataclass(frozen=True, slots=True)
class Submission:
    """A request's body in the wire format; its codes are not checked yet.

    `invitation` is the SHA-256 of the invitation's token, b"" for an open link.
    """

    definition: str
    report_id: bytes
    stratum: str
    codes: Sequence[object]
    invitation: bytes


def parse(body: bytes) -> Submission:
    """Parse a request's body; raise an error that names what differs from the wire format."""
    if len(body) > MAX_REPORT_BYTES:
        raise ReportTooLargeError(f"a report has at most {MAX_REPORT_BYTES:,} bytes")
    form = _strict_json(body)
    if not isinstance(form, dict):
        raise ReportError("a report is one JSON object")
    missing = [key for key in KEYS if key not in form]
    if missing:
        raise ReportError(f"the key {missing[0]} is missing")
    if len(form) > len(KEYS):
        raise ReportError(f"a report has only the keys {', '.join(KEYS)}")
    for key in ("definition", "report_id", "stratum", "invitation", "pad"):
        if not isinstance(form[key], str):
            raise ReportError(f"{key} must be a string")
    if not isinstance(form["codes"], list):
        raise ReportError("codes must be a list with one code per question")
    return Submission(
        form["definition"],
        _report_id(form["report_id"]),
        _stratum(form["stratum"], form["invitation"]),
        form["codes"],
        token_hash(form["invitation"]) if form["invitation"] else b"",
    )


def _stratum(stratum: str, invitation: str) -> str:
    """Check a stratum; only invitations have one: with an open link, anybody could choose any."""
    if stratum and not invitation:
        raise ReportError("stratum must be empty in a report without an invitation")
    if len(stratum) > MAX_STRATUM_LENGTH:
        raise ReportError(f"stratum has at most {MAX_STRATUM_LENGTH} characters")
    # PostgreSQL cannot store this character.
    if "\0" in stratum:
        raise ReportError("stratum must not hold the character U+0000")
    return stratum


def _report_id(text: str) -> bytes:
    if REPORT_ID.fullmatch(text):
        return base64.urlsafe_b64decode(text + "==")
    raise ReportError("report_id must be 16 bytes in base64url without padding (22 characters)")


def _strict_json(body: bytes) -> Any:
    """Parse JSON; refuse what parsers interpret differently: repeated keys, NaN, surrogates."""
    try:
        text = body.decode("utf-8")
        return STRICT_JSON.decode(text)
    except UnicodeDecodeError:
        raise MalformedReportError("the body is not UTF-8") from None
    except (json.JSONDecodeError, RecursionError):
        raise MalformedReportError("the body is not JSON") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    form = dict(pairs)
    if len(form) != len(pairs):
        raise MalformedReportError("a key is given twice")
    for text in (*form, *form.values()):
        if isinstance(text, str) and not text.isascii() and SURROGATE.search(text):
            raise MalformedReportError("a string holds half a character (a lone surrogate)")
    return form


def _refuse_constant(_: str) -> Any:
    raise MalformedReportError("NaN and Infinity are not JSON")


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise MalformedReportError("a number is too large")
    return value


def _small_integer(text: str) -> int | float:
    # Longer integers are no survey's codes; as floats they fail the check of the codes.
    return int(text) if len(text) <= 10 else float(text)


STRICT_JSON = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_constant=_refuse_constant,
    parse_float=_finite,
    parse_int=_small_integer,
)
