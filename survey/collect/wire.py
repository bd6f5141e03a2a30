"""Parse the wire format of a report strictly: each report has exactly one valid encoding.

A request's body is never echoed or logged: errors name only the place and the allowed range.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from survey.collect.invitations import token_hash
from survey.errors import MalformedReportError, ReportError, ReportTooLargeError
from survey.questionnaire.definition import MAX_REPORT_BYTES, MAX_STRATUM_LENGTH

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
    if re.fullmatch(r"[A-Za-z0-9_-]{22}", text):
        try:
            octets = base64.urlsafe_b64decode(text + "==")
        except binascii.Error:
            octets = b""
        # Each id has one spelling: the last two bits of the last character must be zero.
        if base64.urlsafe_b64encode(octets).decode("ascii").rstrip("=") == text:
            return octets
    raise ReportError("report_id must be 16 bytes in base64url without padding (22 characters)")


def _strict_json(body: bytes) -> Any:
    """Parse JSON; refuse what parsers interpret differently: repeated keys, NaN, surrogates."""
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
    # Longer integers are no survey's codes; as floats they fail the check of the codes.
    return int(text) if len(text) <= 10 else float(text)
