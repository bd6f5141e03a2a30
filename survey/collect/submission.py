"""Accept a report: parse it strictly, hold it against its survey, store it once.

A request's body is never echoed or logged: errors name the place and the allowed range.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from survey.errors import (
    ChannelError,
    ClosedError,
    ConflictError,
    MalformedReportError,
    NotFoundError,
    ReportError,
    ReportTooLargeError,
    SurveyError,
)
from survey.questionnaire.definition import MAX_REPORT_BYTES, Definition
from survey.store import PublishedSurvey, Store, StoredReport

KEYS = ("definition", "report_id", "stratum", "codes", "invitation", "pad")
GRACE = timedelta(days=7)
"""How long the version before the current one, and the ids of a closed survey, are known."""


@dataclass(frozen=True)
class Submission:
    """A body that has the wire format's form; its codes are not checked yet."""

    definition: str
    report_id: bytes
    stratum: str
    codes: Sequence[object]


def receive(store: Store, slug: str, body: bytes, today: date) -> None:
    """Store the report in `body`, or raise the one refusal that fits.

    Returns when the report is on the disk, also when it was there before.
    """
    versions = store.versions(slug)
    if not versions:
        raise NotFoundError("there is no survey at this address")
    submission = parse(body)
    survey = _made_for(versions, submission.definition)
    report = accept(submission, survey.definition)
    if refusal := _refusal(survey, versions[0], today):
        # Someone whose acknowledgement was lost must learn that the report did arrive.
        if not store.knows_report(survey.key, report):
            raise refusal
        return
    store.add_report(survey.key, report)


def _made_for(versions: Sequence[PublishedSurvey], definition: str) -> PublishedSurvey:
    """The version whose definition the report's device had."""
    for survey in versions:
        if survey.sha256 == definition:
            return survey
    raise ConflictError("this report was made for another definition of the survey")


def _refusal(survey: PublishedSurvey, current: PublishedSurvey, today: date) -> SurveyError | None:
    """Why a version takes no new reports, or None when it does."""
    if survey.state == "closed":
        return ClosedError("this survey is closed and takes no more reports")
    stale = survey.version < current.version - 1 or today - survey.changed > GRACE
    if survey.state == "superseded" and stale:
        return ConflictError("this report was made for another definition of the survey")
    return None


def parse(body: bytes) -> Submission:
    """Read the wire format and nothing else."""
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
        form["definition"], _report_id(form["report_id"]), _no_link(form), form["codes"]
    )


def accept(submission: Submission, definition: Definition) -> StoredReport:
    """Hold a submission against its survey; the first code that does not fit is named."""
    questions = definition.questions
    if len(submission.codes) != len(questions):
        raise ReportError(
            f"codes must have {len(questions)} entries, one per question, "
            f"not {len(submission.codes)}"
        )
    _check_drawn(submission.codes, definition)
    codes = []
    for number, (code, question) in enumerate(zip(submission.codes, questions, strict=True), 1):
        try:
            codes.append(question.encode(code))
        except ChannelError as error:
            raise ReportError(f"code {number} ({question.id}) {error}") from None
    return StoredReport(submission.report_id, submission.stratum, b"".join(codes))


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


def _no_link(form: dict[str, Any]) -> str:
    """Strata and invitations come with links that a survey has issued; none does so far."""
    if form["stratum"]:
        raise ReportError("stratum must be empty: this survey has no strata")
    if form["invitation"]:
        raise ReportError("invitation must be empty: this survey takes no invitations")
    return ""


def _report_id(text: str) -> bytes:
    if re.fullmatch(r"[A-Za-z0-9_-]{22}", text):
        try:
            octets = base64.urlsafe_b64decode(text + "==")
        except binascii.Error:
            octets = b""
        # One id has one spelling: the last character carries two bits that must be zero.
        if base64.urlsafe_b64encode(octets).decode("ascii").rstrip("=") == text:
            return octets
    raise ReportError("report_id must be 16 bytes in base64url without padding (22 characters)")


def _strict_json(body: bytes) -> Any:
    """JSON without what parsers disagree about: repeated keys, NaN, half characters."""
    try:
        text = body.decode("utf-8")
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_small_integer,
        )
    except UnicodeDecodeError:
        raise MalformedReportError("the body is not UTF-8") from None
    except (json.JSONDecodeError, RecursionError):
        raise MalformedReportError("the body is not JSON") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    form = dict(pairs)
    if len(form) != len(pairs):
        raise MalformedReportError("a key is given twice")
    for text in (*form, *form.values()):
        if isinstance(text, str) and re.search("[\ud800-\udfff]", text):
            raise MalformedReportError("a string holds half a character (a lone surrogate)")
    return form


def _refuse_constant(_: str) -> Any:
    raise MalformedReportError("NaN and Infinity are not JSON")


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise MalformedReportError("a number is too large")
    return value


def _small_integer(text: str) -> int | float:
    # Longer ones are no code of any survey; as floats they are refused where codes are checked.
    return int(text) if len(text) <= 10 else float(text)
