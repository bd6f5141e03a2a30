"""The canonical JSON of a definition: writing it when a survey is published, reading it back.

Its bytes never change for a published survey. A key that older definitions lack is written only
when its value is not the default, so that they keep their hash.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from survey.errors import DefinitionError
from survey.mechanism import AnyChannel, HalfSpace, SubsetSelection, channel_from_json
from survey.progress import steps
from survey.questionnaire.definition import (
    INVITATION_LENGTH,
    MAX_REPORT_BYTES,
    MAX_STRATUM_LENGTH,
    Definition,
    FieldMode,
    Page,
    Survey,
    report_body,
)
from survey.questionnaire.kinds import BaseQuestion, PublishedQuestion
from survey.questionnaire.kinds.base import AskIf, Grid, JointResponse, MatrixRow
from survey.questionnaire.placeholders import PIPED_TEXTS, fallback_text, is_piped
from survey.questionnaire.texts import PICTURE_TYPE, SURVEY_TEXTS, Option

FORMAT = 2
"""Links to definitions of format 1 may have 16 digits of the hash; later ones have at least 32."""

REPORT_STEP = 256
"""Reports are padded to a multiple of this many bytes, so that all have the same length."""


def freeze(survey: Survey, version: int, field_key: bytes = b"") -> Definition:
    """Return the published form of a survey; raises DefinitionError if a report is too long.

    `field_key` is the public key for field mode; drafts and test runs have none.
    """
    always = ("slug", "title", "language", "introduction", "contact", "thanks")
    sampled = survey.questions_per_person is not None
    form: dict[str, Any] = {
        "format": FORMAT,
        "version": version,
        **{name: getattr(survey, name) for name in always},
        **_optional_keys(survey),
        "allow_skip_logic": survey.allow_skip_logic,
        "sampling": {"draw": survey.drawn, "groups": survey.groups} if sampled else None,
        "pages": [
            {"title": page.title, "questions": [question_form(q) for q in page.questions]}
            for page in survey.pages
        ],
        "report_bytes": _report_bytes(survey),
    }
    if survey.field_until and field_key:
        key = base64.urlsafe_b64encode(field_key).decode("ascii").rstrip("=")
        form["field"] = {"key": key, "until": survey.field_until}
    return read_definition(canonical_json(form))


def canonical_json(form: dict[str, Any]) -> bytes:
    """Return the one sequence of bytes of a form: sorted keys, no spaces, UTF-8, integers only.

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
        kiosk=form.get("kiosk", False),
        field=_read_field(form["field"]) if "field" in form else None,
        groups=tuple(map(tuple, groups)),
        drawn=sampling["draw"] if sampling else len(groups),
        questions=tuple(
            read_question(question, nullable=sampling is not None) for question in steps(questions)
        ),
    )


def _read_field(form: dict[str, str]) -> FieldMode:
    key = base64.urlsafe_b64decode(form["key"] + "=" * (-len(form["key"]) % 4))
    return FieldMode(key, date.fromisoformat(form["until"]))


def unpublished(definition: Definition) -> Definition:
    """Return the same questions as a first version that everybody with the link may answer."""
    form = json.loads(definition.canonical)
    for name in ("access", "field"):
        form.pop(name, None)
    return read_definition(canonical_json({**form, "version": 1}))


def question_form(question: BaseQuestion) -> dict[str, Any]:
    """Return the canonical form of a question; only optional keys may be missing."""
    grid, ask_if, ends = question.grid, question.ask_if, question.slider_labels
    form = {
        "id": question.id,
        "type": question.type,
        **plain_texts(question),
        "options": [_option_form(option) for option in question.all_options],
        "grid": grid and grid.to_json(),
        "max_ticks": question.ticks,
        "alone": question.answer_space.alone,
        "opt_out": question.opt_out,
        "not_applicable": question.not_applicable,
        "ask_if": ask_if and {"question": ask_if.question, "options": list(ask_if.options)},
        "mechanism": question.design,
        "stated": question.stated,
        "channel": question.channel.to_json(),
    }
    optional = {
        "shuffled": question.shuffled,
        "slider": ends and {"low": ends[0], "high": ends[1]},
        "topic": question.topic,
        "joint": question.joint and question.joint.to_json(),
        "matrix": question.matrix and question.matrix.to_json(),
        "piped": piped_texts(question),
    }
    return {**form, **{name: value for name, value in optional.items() if value}}


def _option_form(option: Option) -> dict[str, Any]:
    form: dict[str, Any] = {"id": option.id, "label": option.label}
    if option.picture:
        form["picture"] = {
            "sha256": option.picture,
            "type": PICTURE_TYPE,
            "alt": option.picture_alt,
        }
    return form


def _read_option(form: dict[str, Any]) -> Option:
    picture = form.get("picture", {"sha256": "", "alt": ""})
    return Option(
        id=form["id"],
        label=form["label"],
        picture=picture["sha256"],
        picture_alt=picture["alt"],
    )


UNCHANGED_KEYS = (
    *("id", "type", "text", "max_ticks", "alone"),
    *("opt_out", "not_applicable", "mechanism", "stated"),
)
"""Keys of a question's canonical form that `PublishedQuestion` has with the same values."""


def read_question(
    form: dict[str, Any], *, nullable: bool, channel: AnyChannel | None = None
) -> PublishedQuestion:
    """Read the result of `question_form`; `channel` is the question's channel if it is built."""
    question = PublishedQuestion(
        **{name: form[name] for name in UNCHANGED_KEYS},
        options=tuple(map(_read_option, form["options"])),
        grid=Grid(**form["grid"]) if form["grid"] else None,
        ask_if=AskIf(**form["ask_if"]) if form["ask_if"] else None,
        channel=channel or channel_from_json(form["channel"]),
        nullable=nullable,
        topic=form.get("topic", ""),
        joint=_read_joint(form["joint"]) if "joint" in form else None,
        matrix=MatrixRow(**form["matrix"]) if "matrix" in form else None,
    )
    if question.channel.options != question.kind.count_truths(question):
        raise DefinitionError([(form["id"], f"its channel has {question.channel.options} options")])
    return question


def _read_joint(form: dict[str, Any]) -> JointResponse:
    channel = channel_from_json(form["channel"])
    if not isinstance(channel, SubsetSelection | HalfSpace):
        raise DefinitionError([("joint", f"a {channel.kind} channel cannot be a joint response")])
    return JointResponse(tuple(form["questions"]), channel)


def _optional_keys(survey: Survey) -> dict[str, Any]:
    """Return the keys of a survey that are left out while they have their default."""
    values: dict[str, Any] = {
        "consent": survey.consent,
        "ethics": survey.ethics,
        "helpline": survey.helpline,
        "organization": survey.organization,
        "bucket": survey.bucket if survey.bucket != "none" else "",
        "access": survey.access if survey.access != "open" else "",
        "kiosk": survey.kiosk,
        "theme": survey.theme,
        "exit": survey.quick_exit,
        "layout": survey.layout if survey.layout != "auto" else "",
        "translations": {
            language: _translated_survey(translated, survey)
            for language, translated in survey.translations.items()
        },
    }
    return {name: value for name, value in values.items() if value}


def _translated_survey(translated: Survey, original: Survey) -> dict[str, Any]:
    """Return the texts of a survey in another of its languages, in the shape of its pages."""
    texts = {
        name: _unless_same(getattr(translated, name), getattr(original, name))
        for name in SURVEY_TEXTS
        # This text was added later; without it, definitions keep their hash.
        if name != "organization" or original.organization
    }
    pages = zip(translated.pages, original.pages, strict=True)
    return {**texts, "pages": [_translated_page(page, own_page) for page, own_page in pages]}


def _translated_page(page: Page, original: Page) -> dict[str, Any]:
    questions = zip(page.questions, original.questions, strict=True)
    return {
        "title": _unless_same(page.title, original.title),
        "questions": [_translated_question(question, original) for question, original in questions],
    }


def _translated_question(question: BaseQuestion, original: BaseQuestion) -> dict[str, Any]:
    """Return the texts of a question in another language, "" where they do not differ."""
    labels = list(zip(question.all_options, original.all_options, strict=True))
    pictures = {
        "pictures": [_unless_same(option.picture_alt, own.picture_alt) for option, own in labels]
    }
    unit = question.grid.unit if question.grid else ""
    own_unit = original.grid.unit if original.grid else ""
    own_texts = plain_texts(original)
    topic = {"topic": _unless_same(question.topic, original.topic)} if original.topic else {}
    return {
        **topic,
        **_translated_slider(question, original),
        **(pictures if any(own.picture for _, own in labels) else {}),
        **_translated_row(question, original),
        **_translated_piping(question, original),
        **{
            name: _unless_same(text, own_texts[name])
            for name, text in plain_texts(question).items()
        },
        "unit": _unless_same(unit, own_unit),
        "options": [_unless_same(option.label, original.label) for option, original in labels],
    }


def _translated_slider(question: BaseQuestion, original: BaseQuestion) -> dict[str, Any]:
    """Return the labels of a slider's ends in another language; {} for other questions."""
    if original.slider_labels is None or question.slider_labels is None:
        return {}
    (low, high), (own_low, own_high) = question.slider_labels, original.slider_labels
    return {"slider": {"low": _unless_same(low, own_low), "high": _unless_same(high, own_high)}}


def _translated_row(question: BaseQuestion, original: BaseQuestion) -> dict[str, Any]:
    if not question.matrix or not original.matrix:
        return {}
    row, own_row = question.matrix, original.matrix
    texts = {name: _unless_same(getattr(row, name), getattr(own_row, name)) for name in ROW_TEXTS}
    return {"matrix": texts}


def plain_texts(question: BaseQuestion) -> dict[str, str]:
    """Return the texts of a question by name, with the words for no answer in them."""
    return {
        **{name: getattr(question, name) for name in PIPED_TEXTS},
        **{name: fallback_text(text) for name, text in piped_texts(question).items()},
    }


def piped_texts(question: BaseQuestion) -> dict[str, str]:
    """Return the texts of a question that contain placeholders for earlier answers, by name.

    The device fills in the answers. Everywhere else, the texts have the words for no answer.
    """
    texts = {name: getattr(question, name) for name in question.piped_names}
    return {name: text for name, text in texts.items() if is_piped(text)}


def _translated_piping(question: BaseQuestion, original: BaseQuestion) -> dict[str, Any]:
    own = piped_texts(original)
    texts = {name: _unless_same(getattr(question, name), own[name]) for name in own}
    return {"piped": texts} if own else {}


ROW_TEXTS = ("text", "row")
"""The texts of a matrix's row, in addition to the joined one."""


def _unless_same(text: str, original: str) -> str:
    """Return a text, or "" when it is the same as the original.

    >>> _unless_same("Sí", "Yes"), _unless_same("No", "No")
    ('Sí', '')
    """
    return "" if text == original else text


def _report_bytes(survey: Survey) -> int:
    """Return the constant length of a report: the longest one, rounded up to the next step."""
    codes: list[int | str | None] = [q.channel.longest_code for q in survey.questions]
    if survey.questions_per_person is not None:
        # A question that was not drawn is null, which is longer than a short code.
        codes = [max((code, None), key=lambda value: len(json.dumps(value))) for code in codes]
    length = _padded_length(codes)
    if length > MAX_REPORT_BYTES:
        fitting = bisect_right(
            range(len(codes)), MAX_REPORT_BYTES, key=lambda n: _padded_length(codes[: n + 1])
        )
        mistake = (
            f"a report would have {length:,} bytes; at most {MAX_REPORT_BYTES:,} are allowed; "
            f"the nearest allowed number of these questions is {fitting}"
        )
        raise DefinitionError([("pages", mistake)])
    return length


def _padded_length(codes: Sequence[int | str | None]) -> int:
    """Return the bytes of the longest report with these codes, rounded up to the next step."""
    stratum, invitation = "0" * MAX_STRATUM_LENGTH, "0" * INVITATION_LENGTH
    longest = report_body("0" * 64, "0" * 22, codes, stratum=stratum, invitation=invitation)
    return -(-len(longest) // REPORT_STEP) * REPORT_STEP
