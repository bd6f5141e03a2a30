"""A published definition: canonical JSON, frozen for good, known by its SHA-256.

Devices, server and estimator all read their parameters from these same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from survey.errors import DefinitionError
from survey.mechanism import SubsetSelection, channel_from_json
from survey.mechanism.accounting import total_epsilon
from survey.questionnaire.model import Option, Question, Survey

FORMAT = 1
MAX_REPORT_BYTES = 8192
"""Largest body of a report on the wire."""

REPORT_STEP = 256
"""Reports are padded to a multiple of this many bytes, the same for everybody."""

MAX_STRATUM_LENGTH = 60
INVITATION_LENGTH = 43


@dataclass(frozen=True)
class PublishedQuestion:
    """A question as it is asked, with the channel that every device runs for it."""

    id: str
    type: str
    text: str
    options: tuple[Option, ...]
    opt_out: str
    channel: SubsetSelection


@dataclass(frozen=True)
class Definition:
    """One version of one survey, as published; `canonical` is what its hash is over."""

    canonical: bytes
    slug: str
    version: int
    title: str
    questions: tuple[PublishedQuestion, ...]
    report_bytes: int

    @cached_property
    def sha256(self) -> str:
        """The definition id: SHA-256 of the canonical bytes, in hex."""
        return hashlib.sha256(self.canonical).hexdigest()

    @property
    def epsilon(self) -> float:
        """Total epsilon of everything one respondent sends, rounded up."""
        return total_epsilon(question.channel.ratio for question in self.questions)


def freeze(survey: Survey, version: int) -> Definition:
    """Turn a survey into its published form; refuses what would not fit on the wire."""
    form: dict[str, Any] = {
        "format": FORMAT,
        "version": version,
        **{
            name: getattr(survey, name)
            for name in ("slug", "title", "language", "introduction", "contact", "thanks")
        },
        "pages": [
            {"title": page.title, "questions": [_question(q) for q in page.questions]}
            for page in survey.pages
        ],
        "report_bytes": _report_bytes(survey),
    }
    return read_definition(canonical_json(form))


def canonical_json(form: dict[str, Any]) -> bytes:
    """Sorted keys, no spaces, UTF-8, integers only: one form has one sequence of bytes.

    >>> canonical_json({"b": 1, "a": "é"})
    b'{"a":"\\xc3\\xa9","b":1}'
    """
    return json.dumps(
        form, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode("utf-8")


@lru_cache(maxsize=256)
def read_definition(canonical: bytes) -> Definition:
    """Read back what `freeze` wrote."""
    form = json.loads(canonical)
    return Definition(
        canonical=canonical,
        slug=form["slug"],
        version=form["version"],
        title=form["title"],
        report_bytes=form["report_bytes"],
        questions=tuple(_published(q) for page in form["pages"] for q in page["questions"]),
    )


def _question(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "type": question.type,
        "text": question.text,
        "help": question.help,
        "options": [{"id": option.id, "label": option.label} for option in question.all_options],
        "opt_out": question.opt_out,
        "channel": question.channel.to_json(),
    }


def _published(form: dict[str, Any]) -> PublishedQuestion:
    channel = channel_from_json(form["channel"])
    if not isinstance(channel, SubsetSelection):
        raise DefinitionError([(form["id"], f"a {form['type']} question has no {channel.kind}")])
    return PublishedQuestion(
        id=form["id"],
        type=form["type"],
        text=form["text"],
        options=tuple(Option(**option) for option in form["options"]),
        opt_out=form["opt_out"],
        channel=channel,
    )


def report_body(
    definition_id: str,
    report_id: str,
    codes: Sequence[int | str],
    *,
    stratum: str = "",
    invitation: str = "",
    length: int = 0,
) -> bytes:
    """A report as the client writes it: fixed keys in fixed order, padded to `length` bytes."""
    form = {
        "definition": definition_id,
        "report_id": report_id,
        "stratum": stratum,
        "codes": list(codes),
        "invitation": invitation,
        "pad": "",
    }
    body = json.dumps(form, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    return body[:-2] + b"." * (length - len(body)) + body[-2:]


def _report_bytes(survey: Survey) -> int:
    """The constant length of a report: the longest one, rounded up to the next step."""
    longest = len(
        report_body(
            "0" * 64,
            "0" * 22,
            [question.channel.k - 1 for question in survey.questions],
            stratum="0" * MAX_STRATUM_LENGTH,
            invitation="0" * INVITATION_LENGTH,
        )
    )
    length = -(-longest // REPORT_STEP) * REPORT_STEP
    if length > MAX_REPORT_BYTES:
        raise DefinitionError(
            [
                (
                    "pages",
                    f"a report would have {length:,} bytes; at most {MAX_REPORT_BYTES:,} "
                    "are allowed: ask fewer questions",
                )
            ]
        )
    return length
