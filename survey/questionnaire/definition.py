"""A published definition: canonical JSON, frozen for good, known by its SHA-256.

Devices, server and estimator all read their parameters from these same bytes.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from survey.errors import DefinitionError
from survey.mechanism.accounting import log_rounded_up
from survey.questionnaire.groups import groups_of, linked_ratios, total_ratio_of
from survey.questionnaire.languages import SURVEY_TEXTS
from survey.questionnaire.model import Page, Survey
from survey.questionnaire.published import (
    PublishedQuestion,
    published,
    question_form,
    translated_form,
    unless,
)

FORMAT = 1
MAX_REPORT_BYTES = 8192
"""Largest body of a report on the wire."""

REPORT_STEP = 256
"""Reports are padded to a multiple of this many bytes, the same for everybody."""

MAX_STRATUM_LENGTH = 60
INVITATION_LENGTH = 43


@dataclass(frozen=True)
class Definition:
    """One version of one survey, as published; `canonical` is what its hash is over.

    `groups` are the questions that are drawn together, of which each person is asked `drawn`;
    without question sampling both cover all questions. `bucket` says what is kept of the date on
    which a report is released: "none", the "day" or the "week". `languages` are those it is
    written in, its own first. `access` is "open" to all who have the link, or by "invitation".
    """

    canonical: bytes
    slug: str
    version: int
    title: str
    questions: tuple[PublishedQuestion, ...]
    groups: tuple[tuple[str, ...], ...]
    drawn: int
    report_bytes: int
    allow_skip_logic: bool
    bucket: str
    languages: tuple[str, ...]
    access: str

    @cached_property
    def sha256(self) -> str:
        """The definition id: SHA-256 of the canonical bytes, in hex."""
        return hashlib.sha256(self.canonical).hexdigest()

    @property
    def is_sampled(self) -> bool:
        """Whether each person is asked only some of the questions."""
        return self.drawn < len(self.groups)

    @cached_property
    def ratio(self) -> Fraction:
        """e^epsilon of everything one respondent sends."""
        return total_ratio_of(self.groups, self._ratios, self.drawn)

    @cached_property
    def linked_ratios(self) -> dict[str, Fraction]:
        """e^epsilon of all reports that tell about the answer to a question, by its id.

        Its own, times those of the questions that skip logic links to it.
        """
        return linked_ratios(groups_of(self.questions), self._ratios)

    @property
    def _ratios(self) -> dict[str, Fraction]:
        return {question.id: question.channel.ratio for question in self.questions}

    @cached_property
    def epsilon(self) -> float:
        """ln of `ratio`, rounded up."""
        return log_rounded_up(self.ratio)


def freeze(survey: Survey, version: int) -> Definition:
    """Turn a survey into its published form; refuses what would not fit on the wire."""
    always = ("slug", "title", "language", "introduction", "contact", "thanks")
    sampled = survey.questions_per_person is not None
    form: dict[str, Any] = {
        "format": FORMAT,
        "version": version,
        **{name: getattr(survey, name) for name in always},
        **_said(survey),
        "allow_skip_logic": survey.allow_skip_logic,
        "sampling": {"draw": survey.drawn, "groups": survey.groups} if sampled else None,
        "pages": [
            {"title": page.title, "questions": [question_form(q) for q in page.questions]}
            for page in survey.pages
        ],
        "report_bytes": _report_bytes(survey),
    }
    return read_definition(canonical_json(form))


def _said(survey: Survey) -> dict[str, Any]:
    """What a survey says beyond the usual.

    Left out otherwise: definitions that were published before there was this keep their hash.
    """
    said: dict[str, Any] = {
        "consent": survey.consent,
        "ethics": survey.ethics,
        "helpline": survey.helpline,
        "bucket": survey.bucket if survey.bucket != "none" else "",
        "access": survey.access if survey.access != "open" else "",
        "kiosk": survey.kiosk,
        "theme": survey.theme,
        "exit": survey.quick_exit,
        "translations": {
            language: _translation(translated, survey)
            for language, translated in survey.translations.items()
        },
    }
    return {name: value for name, value in said.items() if value}


def _translation(translated: Survey, own: Survey) -> dict[str, Any]:
    """The texts of a survey in another of its languages, in the shape of its pages."""
    texts = {name: unless(getattr(translated, name), getattr(own, name)) for name in SURVEY_TEXTS}
    pages = zip(translated.pages, own.pages, strict=True)
    return {**texts, "pages": [_translated_page(page, as_own) for page, as_own in pages]}


def _translated_page(page: Page, own: Page) -> dict[str, Any]:
    questions = zip(page.questions, own.questions, strict=True)
    return {
        "title": unless(page.title, own.title),
        "questions": [translated_form(question, as_own) for question, as_own in questions],
    }


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
    questions = [question for page in form["pages"] for question in page["questions"]]
    sampling = form["sampling"]
    groups = sampling["groups"] if sampling else [[question["id"]] for question in questions]
    return Definition(
        canonical=canonical,
        slug=form["slug"],
        version=form["version"],
        title=form["title"],
        report_bytes=form["report_bytes"],
        allow_skip_logic=form["allow_skip_logic"],
        bucket=form.get("bucket", "none"),
        languages=(form["language"], *form.get("translations", ())),
        access=form.get("access", "open"),
        groups=tuple(map(tuple, groups)),
        drawn=sampling["draw"] if sampling else len(groups),
        questions=tuple(published(q, nullable=sampling is not None) for q in questions),
    )


def unpublished(definition: Definition) -> Definition:
    """The same questions as a first version that is open to all who have the link."""
    form = json.loads(definition.canonical)
    form.pop("access", None)
    return read_definition(canonical_json({**form, "version": 1}))


def report_body(
    definition_id: str,
    report_id: str,
    codes: Sequence[int | str | None],
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
    codes: list[int | str | None] = [q.channel.longest_code for q in survey.questions]
    if survey.questions_per_person is not None:
        # A question that was not drawn is null, which is longer than a short code.
        codes = [max((code, None), key=lambda one: len(json.dumps(one))) for code in codes]
    length = _padded_length(codes)
    if length > MAX_REPORT_BYTES:
        fitting = bisect_right(
            range(len(codes)), MAX_REPORT_BYTES, key=lambda n: _padded_length(codes[: n + 1])
        )
        raise DefinitionError(
            [
                (
                    "pages",
                    f"a report would have {length:,} bytes; at most {MAX_REPORT_BYTES:,} "
                    f"are allowed; the nearest allowed number of these questions is {fitting}",
                )
            ]
        )
    return length


def _padded_length(codes: Sequence[int | str | None]) -> int:
    """Bytes of the longest report with these codes, rounded up to the next step."""
    longest = len(
        report_body(
            "0" * 64,
            "0" * 22,
            codes,
            stratum="0" * MAX_STRATUM_LENGTH,
            invitation="0" * INVITATION_LENGTH,
        )
    )
    return -(-longest // REPORT_STEP) * REPORT_STEP
