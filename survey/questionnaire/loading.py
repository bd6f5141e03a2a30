"""Load a definition file (TOML or JSON): a Survey, or every mistake in it with its place."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from survey.catalogue import SOURCE, closest_language
from survey.questionnaire.consistency import mistakes_between, repeated_ids, repeated_labels
from survey.questionnaire.defaults import questions_in, with_default_labels
from survey.questionnaire.designs import DESIGNS, PRIVACY
from survey.questionnaire.kinds import KINDS, QUESTION_KEYS, kind_of
from survey.questionnaire.kinds.base import NOT_APPLICABLE_ID, SPECIAL
from survey.questionnaire.kinds.question import MAX_OPTIONS, UntypedQuestion
from survey.questionnaire.mistakes import (
    Mistake,
    Place,
    located,
    quoted,
    refusal,
    sentence,
    shortened,
)
from survey.questionnaire.model import MAX_QUESTIONS, Survey
from survey.questionnaire.texts import in_language, languages_in, mistakes_in_tables
from survey.settings import Caps

MAX_FILE_BYTES = 1_000_000

DOTTED = re.compile(
    r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
    r"""(?:[ \t]*+\.[ \t]*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')){50}""",
    re.ASCII,
)
"""A TOML key with so many parts that tomllib, quadratic in them, would run for hours."""

INHERITED = tuple(SPECIAL)[1:]
"""Automatic options of every type of question: a survey may state them once for all."""


def load_file(path: Path, caps: Caps) -> Survey:
    """Read and check a definition file in TOML or JSON, by its file name extension."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise refusal([(str(path), f"cannot be read: {error.strerror}")]) from None
    return load(content, path.name, caps)


def load(content: bytes, name: str, caps: Caps) -> Survey:
    """Parse and check a definition; raises DefinitionError with every mistake."""
    return check(parse(content, name), caps)


def check(raw: Mapping[str, Any], caps: Caps) -> Survey:
    """Check a parsed definition; raises DefinitionError with every mistake."""
    own = own_language(raw)
    if mistakes := list(mistakes_in_tables(raw, own)):
        raise located(raw, mistakes)
    survey = _check_own_language(with_default_texts(in_language(raw, own, own), own), caps)
    return survey.translated(
        {
            language: _check_translation(raw, language, survey, caps)
            for language in languages_in(raw, own)[1:]
        }
    )


def own_language(raw: Mapping[str, Any]) -> str:
    """Return the language of a file's texts; the default if it names none."""
    language = raw.get("language", SOURCE)
    return language if isinstance(language, str) else SOURCE


def _check_own_language(raw: Mapping[str, Any], caps: Caps) -> Survey:
    if too_many := list(_too_many(raw)):
        raise located(raw, too_many)
    survey, mistakes = _structure(raw, caps)
    mistakes += [*repeated_ids(raw), *repeated_labels(raw)]
    mistakes += mistakes_between(survey, caps) if survey and not mistakes else []
    if survey is None or mistakes:
        raise located(raw, mistakes)
    return survey


def _check_translation(raw: Mapping[str, Any], language: str, survey: Survey, caps: Caps) -> Survey:
    """Check a valid survey in another of its languages: only texts can still be wrong."""
    in_own = with_default_texts(in_language(raw, language, survey.language), language)
    translated, mistakes = _structure(in_own, caps)
    mistakes += repeated_labels(in_own)
    if translated is None or mistakes:
        raise located(in_own, [((*place, language), text) for place, text in mistakes])
    return translated


def with_default_texts(raw: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Expand the short forms, with the default labels of a language."""
    translated = closest_language(language) or SOURCE
    return _map_questions(expand(raw), lambda question: with_default_labels(question, translated))


def expand(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Expand the short forms: questions without pages, one privacy for the whole survey."""
    full = dict(raw)
    if "questions" in full and "pages" not in full:
        full["pages"] = [{"questions": full.pop("questions")}]
    defaults = {name: full.pop(name) for name in (*PRIVACY, *INHERITED) if name in full}
    return _map_questions(full, lambda question: _complete(question, defaults))


def _map_questions(raw: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a definition with every question changed, whatever else is wrong."""
    pages = raw.get("pages")
    if not isinstance(pages, list):
        return raw
    changed = [
        {**page, "questions": [change(question) for question in page["questions"]]}
        if isinstance(page, Mapping) and isinstance(page.get("questions"), list)
        else page
        for page in pages
    ]
    return {**raw, "pages": changed}


def _complete(question: Any, defaults: Mapping[str, Any]) -> Any:
    """Return a question with the survey's defaults for what it does not state itself."""
    if not isinstance(question, Mapping):
        return question
    design = DESIGNS.get(str(question.get("mechanism")))
    has_privacy = any(way in question for way in PRIVACY) or (design and design.has_own_statement)
    inherited = {
        name: value for name, value in defaults.items() if name in INHERITED or not has_privacy
    }
    # A skipped question counts as one that does not apply.
    skippable = {NOT_APPLICABLE_ID: True} if "ask_if" in question else {}
    return {**inherited, **skippable, **question}


def _too_many(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield counts above the limits, before any work is done for each entry."""
    pages = raw.get("pages")
    pages = pages if isinstance(pages, list) else []
    questions = sum(
        len(page["questions"])
        for page in pages
        if isinstance(page, Mapping) and isinstance(page.get("questions"), list)
    )
    for count, name in ((len(pages), "pages"), (questions, "questions")):
        if count > MAX_QUESTIONS:
            yield ("pages",), f"has {count:,} {name}; at most {MAX_QUESTIONS} are allowed"
            return
    for place, question in questions_in(raw):
        options = question.get("options")
        if isinstance(options, list) and len(options) > MAX_OPTIONS:
            yield (
                (*place, "options"),
                (f"has {len(options):,} entries; the nearest allowed number is {MAX_OPTIONS}"),
            )


def _structure(raw: Mapping[str, Any], caps: Caps) -> tuple[Survey | None, list[Mistake]]:
    """Return the survey, or what is wrong with its parts."""
    try:
        return Survey.model_validate(raw, context=caps), []
    except ValidationError as error:
        mistakes = _mistakes(error)
    for place, question in questions_in(raw):
        if not kind_of(question).type:
            mistakes += [((*place, *rest), text) for rest, text in _untyped_mistakes(question)]
    return None, mistakes


def _untyped_mistakes(question: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what is wrong with a question of an unknown type, apart from the type."""
    for key in question.keys() - QUESTION_KEYS:
        yield (key,), "is not a known key"
    try:
        UntypedQuestion.model_validate(question)
    except ValidationError as error:
        yield from _mistakes(error)


def _mistakes(error: ValidationError) -> list[Mistake]:
    details = error.errors(include_url=False)
    return [
        (_place(detail), sentence(detail)) for detail in details if not _repeats_another(detail)
    ]


def _place(detail: ErrorDetails) -> Place:
    """Return where a mistake is, without the type names that pydantic adds to the place."""
    place = tuple(
        step
        for at, step in enumerate(detail["loc"])
        if not (step in KINDS and at and isinstance(detail["loc"][at - 1], int))
    )
    for identifier in SPECIAL:
        if identifier in place:
            place = place[: place.index(identifier) + 1]
    return (*place, "type") if detail["type"].startswith("union_tag") else place


def _repeats_another(detail: ErrorDetails) -> bool:
    """Whether a mistake only repeats another.

    Pydantic calls a list too short when its entries have mistakes, and reports a text as no boolean
    where both are allowed.
    """
    value, place = detail["input"], detail["loc"]
    if set(SPECIAL) & set(place) and place[-1] not in SPECIAL:
        return (place[-1] in ("bool", "literal[True]")) == isinstance(value, str)
    return (
        detail["type"] == "too_short"
        and isinstance(value, Sequence)
        and not isinstance(value, str)
        and len(value) >= detail["ctx"]["min_length"]
    )


def parse(content: bytes, name: str) -> dict[str, Any]:
    """Read TOML or JSON, by the ending of the file's name; raises DefinitionError."""
    if len(content) > MAX_FILE_BYTES:
        raise refusal([(shortened(name), f"is larger than {MAX_FILE_BYTES:,} bytes")])
    try:
        raw = _decode(content.decode("utf-8-sig"), name)
        _refuse_surrogates(raw)
    except UnicodeDecodeError as error:
        raise refusal([(shortened(name), f"is not UTF-8 text (byte {error.start})")]) from None
    except RecursionError:
        raise refusal([(shortened(name), "is nested too deeply")]) from None
    except ValueError as error:  # from both parsers, with line and column
        raise refusal([(shortened(name), f"cannot be parsed: {error}")]) from None
    if not isinstance(raw, dict):
        raise refusal([(shortened(name), "must hold one object with slug, title, pages")])
    return raw


def _decode(text: str, name: str) -> Any:
    if name.lower().endswith(".json"):
        return json.loads(
            text,
            parse_float=_parse_decimal,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
        )
    if not name.lower().endswith(".toml"):
        raise refusal([(shortened(name), "a definition file ends in .toml or .json")])
    if dotted := DOTTED.search(text):
        raise ValueError(f"the key {quoted(dotted[0])} has too many parts")
    return tomllib.loads(text, parse_float=_parse_decimal)


def _parse_decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # its exponent has more than 18 digits
        raise ValueError(f"the number {shortened(text)} is too long") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise ValueError(f"the key {quoted(key)} is given twice in one object")
        entries[key] = value
    return entries


def _refuse_surrogates(raw: Any) -> None:
    """Refuse halves of surrogate pairs, which cannot be encoded as UTF-8 later."""
    for text in _texts(raw):
        if half := re.search("[\ud800-\udfff]", text):
            raise ValueError(
                f"{ascii(half[0])[1:-1]} is half of a Unicode character, in {quoted(text)}"
            )


def _texts(raw: Any) -> Iterator[str]:
    values = [raw]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            values += value
        elif isinstance(value, dict):
            values += [*value, *value.values()]
