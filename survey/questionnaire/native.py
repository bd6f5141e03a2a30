"""Load a definition file (TOML or JSON): a Survey, or every mistake in it with its place."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from survey.errors import DefinitionError
from survey.mechanism.accounting import total_epsilon
from survey.questionnaire.model import MAX_QUESTIONS, OPT_OUT_ID, PRIVACY, Question, Survey
from survey.settings import Caps

Place = tuple[str | int, ...]
Mistake = tuple[Place, str]

MAX_FILE_BYTES = 1_000_000

MAX_TRUTH_PROBABILITY = Fraction(99, 100)
"""Highest P(report = truth) that is published; the client has the same ceiling built in."""

NAMES = {"pages": "page", "questions": "question", "options": "option"}


def load_file(path: Path, caps: Caps) -> Survey:
    """Read and check a definition file; its ending says whether it is TOML or JSON."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DefinitionError([(str(path), f"cannot be read: {error.strerror}")]) from None
    return load(content, path.name, caps)


def load(content: bytes, name: str, caps: Caps) -> Survey:
    """Parse and check a definition; raises DefinitionError with every mistake found."""
    raw = with_survey_defaults(_parse(content, name))
    mistakes = [*_structure(raw), *_repeated_ids(raw), *_caps(raw, caps)]
    if mistakes:
        mistakes.sort(key=lambda mistake: [f"{step:05}" if isinstance(step, int) else step
                                           for step in mistake[0]])
        raise DefinitionError([(_shown(raw, place), text) for place, text in mistakes])
    return Survey.model_validate(raw)


def _parse(content: bytes, name: str) -> dict[str, Any]:
    if len(content) > MAX_FILE_BYTES:
        raise DefinitionError([(name, f"is larger than {MAX_FILE_BYTES:,} bytes")])
    try:
        text = content.decode("utf-8-sig")
        if name.lower().endswith(".json"):
            raw = json.loads(text, parse_float=Decimal, object_pairs_hook=_unique)
        elif name.lower().endswith(".toml"):
            raw = tomllib.loads(text, parse_float=Decimal)
        else:
            raise DefinitionError([(name, "a definition file ends in .toml or .json")])
    except UnicodeDecodeError as error:
        raise DefinitionError([(name, f"is not UTF-8 text (byte {error.start})")]) from None
    except RecursionError:
        raise DefinitionError([(name, "is nested too deeply")]) from None
    except ValueError as error:  # of both parsers, with line and column
        raise DefinitionError([(name, f"cannot be parsed: {error}")]) from None
    if not isinstance(raw, dict):
        raise DefinitionError([(name, "must hold one object with slug, title, pages")])
    return raw


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key {key!r} is given twice in one object")
    return dict(pairs)


def with_survey_defaults(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Spell out the short forms: questions without pages, one privacy for the whole survey."""
    spelled = dict(raw)
    if "questions" in spelled and "pages" not in spelled:
        spelled["pages"] = [{"questions": spelled.pop("questions")}]
    defaults = {name: spelled.pop(name) for name in (*PRIVACY, OPT_OUT_ID) if name in spelled}

    def complete(question: Any) -> Any:
        if not isinstance(question, Mapping):
            return question
        inherited = {name: value for name, value in defaults.items()
                     if name == OPT_OUT_ID or not any(stated in question for stated in PRIVACY)}
        return {**inherited, **question}

    pages = spelled.get("pages")
    if isinstance(pages, list):
        spelled["pages"] = [
            {**page, "questions": [complete(question) for question in page["questions"]]}
            if isinstance(page, Mapping) and isinstance(page.get("questions"), list) else page
            for page in pages
        ]
    return spelled


def _structure(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    try:
        Survey.model_validate(raw)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            if not _echoes_another(detail):
                yield detail["loc"], _sentence(detail)


def _echoes_another(detail: ErrorDetails) -> bool:
    """Whether a list is called too short only because its entries have mistakes of their own."""
    value = detail["input"]
    return (detail["type"] == "too_short" and isinstance(value, Sequence)
            and len(value) >= detail["ctx"]["min_length"])


def _sentence(detail: ErrorDetails) -> str:
    """What pydantic found wrong, as a sentence that goes on from the place."""
    kind, value, limits = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return "is not a known key"
    if kind == "missing":
        return "is missing"
    if kind == "literal_error" and detail["loc"][-1] == "type":
        return (f"{value!r} is not a type of question: {detail['msg'][0].lower()}"
                f"{detail['msg'][1:]}; free text, files and places cannot be randomized")
    if isinstance(value, str) and kind in ("too_short", "too_long"):
        return "is empty" if not value.strip() else (
            f"has {limits['actual_length']:,} characters; at most {limits['max_length']:,} fit")
    if kind == "too_short":
        least = limits["min_length"]
        return f"has {limits['actual_length']} entries; the nearest allowed number is {least}"
    if kind == "too_long":
        most = limits["max_length"]
        return f"has {limits['actual_length']} entries; the nearest allowed number is {most}"
    message = detail["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    return f"{value!r} does not fit: {message}" if kind == "string_pattern_mismatch" else message


def _questions(raw: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Every question that is an object, with its place, whatever else is wrong."""
    pages = raw.get("pages")
    for i, page in enumerate(pages if isinstance(pages, list) else []):
        questions = page.get("questions") if isinstance(page, Mapping) else None
        for j, question in enumerate(questions if isinstance(questions, list) else []):
            if isinstance(question, Mapping):
                yield ("pages", i, "questions", j), question


def _repeated_ids(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    questions = list(_questions(raw))
    yield from _repeats([(place, question.get("id")) for place, question in questions])
    for place, question in questions:
        options = question.get("options")
        entries: list[tuple[Place, Any]] = [
            ((*place, "options", i), option.get("id"))
            for i, option in enumerate(options if isinstance(options, list) else [])
            if isinstance(option, Mapping)
        ]
        if question.get(OPT_OUT_ID, True):
            entries.insert(0, (place, OPT_OUT_ID))
        yield from _repeats(entries)


def _repeats(entries: list[tuple[Place, Any]]) -> Iterator[Mistake]:
    taken: set[str] = set()
    every = {identifier for _, identifier in entries if isinstance(identifier, str)}
    for place, identifier in entries:
        if not isinstance(identifier, str):
            continue
        if identifier in taken:
            free = next(f"{identifier}_{n}" for n in range(2, len(every) + 3)
                        if f"{identifier}_{n}" not in every)
            reason = " (the option to prefer not to say is there by itself; " \
                     "write prefer_not_to_say = false to leave it out)" \
                if identifier == OPT_OUT_ID else ""
            yield (*place, "id"), f'"{identifier}" is used twice; the nearest free id ' \
                                  f'is "{free}"{reason}'
        taken.add(identifier)


def _caps(raw: Mapping[str, Any], caps: Caps) -> Iterator[Mistake]:
    """What is too weak to publish, of one question and of all together."""
    ratios = []
    places = list(_questions(raw))
    if len(places) > MAX_QUESTIONS:
        yield ("pages",), f"has {len(places)} questions; at most {MAX_QUESTIONS} are allowed"
    for place, data in places:
        try:
            channel = Question.model_validate(data).channel
        except ValidationError:
            continue
        ratios.append(channel.ratio)
        if channel.exact_p > MAX_TRUTH_PROBABILITY:
            highest = float(MAX_TRUTH_PROBABILITY)
            yield place, (f"truth probability {channel.p:.4g} is above {highest}; "
                          f"the nearest allowed value is truth_probability = {highest}")
        elif channel.epsilon > caps.question:
            yield place, (f"epsilon {channel.epsilon:.4g} is above this instance's cap; "
                          f"the nearest allowed value is epsilon = {caps.question}")
    if ratios and (total := total_epsilon(ratios)) > caps.survey:
        each = int(caps.survey * 1000 / len(ratios)) / 1000
        yield ("pages",), (f"total epsilon {total:.4g} of {len(ratios)} questions is above "
                           f"the cap of {caps.survey}; the nearest allowed value for equal "
                           f"questions is epsilon = {each:g} each")


def _shown(raw: Mapping[str, Any], place: Place) -> str:
    """A place as people say it: page 1, question 2 (bullied), option 3, label."""
    parts: list[str] = []
    here: Any = raw
    for step in place:
        try:
            here = here[step]
        except (KeyError, IndexError, TypeError):
            here = None
        if isinstance(step, int) and parts:
            name = here.get("id") if isinstance(here, Mapping) else None
            parts[-1] = f"{NAMES.get(parts[-1], parts[-1])} {step + 1}" + (
                f" ({name})" if isinstance(name, str) else "")
        else:
            parts.append(str(step))
    return ", ".join(parts)
