"""Mistakes in definitions: a place and a sentence, safe to print on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from survey.errors import DefinitionError

Place = tuple[str | int, ...]

Mistake = tuple[Place, str]

MAX_LISTED = 100
"""Mistakes beyond this many are counted, not listed."""

MAX_SHOWN = 60
"""Maximum length of a quotation from a file in a message."""

NAMES = {"pages": "page", "questions": "question", "options": "option"}


def refusal(
    mistakes: Sequence[tuple[str, str]], places: Sequence[Place] = (), line: int | None = None
) -> DefinitionError:
    """Return the error that lists the mistakes; everything in it is printable."""
    listed = [(printable(place), printable(text)) for place, text in mistakes[:MAX_LISTED]]
    if len(mistakes) > MAX_LISTED:
        listed.append(("and so on", f"{len(mistakes) - MAX_LISTED:,} more mistakes"))
    return DefinitionError(listed, places, line)


def located(raw: Mapping[str, Any], mistakes: Iterable[Mistake]) -> DefinitionError:
    """Return the error that lists mistakes in the order of their places, with named places."""
    ordered = sorted(
        mistakes,
        key=lambda mistake: [
            f"{step:05}" if isinstance(step, int) else step for step in mistake[0]
        ],
    )
    readable = [(_describe_place(raw, place), text) for place, text in ordered[:MAX_LISTED]]
    places = [place for place, _ in ordered[:MAX_LISTED]]
    return refusal([*readable, *(("", text) for _, text in ordered[MAX_LISTED:])], places)


def printable(text: str) -> str:
    """Escape every character that could control a terminal.

    >>> print(printable("a\\x1b[31m \\u202eb"))
    a\\x1b[31m \\u202eb
    """
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def shortened(text: str) -> str:
    """Return the beginning of a text that may be a megabyte long."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def quoted(value: object) -> str:
    """Return a value of the file for a sentence: a short text, or else only its type."""
    if isinstance(value, str):
        return f'"{shortened(value)}"'
    return "this" if value is None else f"a {type(value).__name__}"


def sentence(detail: ErrorDetails) -> str:
    """Return the sentence about an error of pydantic that follows its place."""
    kind, value, limits = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return "is not a known key"
    if kind in ("missing", "union_tag_not_found"):
        return "is missing"
    message = detail["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    if kind == "union_tag_invalid":
        return (
            f"{quoted(limits['tag'])} is not a type of question: {limits['expected_tags']}; "
            "free text, files and places cannot be randomized"
        )
    if kind in ("too_short", "too_long"):
        return _length_mistake(kind, value, limits)
    return (
        f"{quoted(value)} does not fit: {message}" if kind == "string_pattern_mismatch" else message
    )


def _length_mistake(kind: str, value: object, limits: Mapping[str, Any]) -> str:
    if not isinstance(value, str):
        nearest = limits["min_length" if kind == "too_short" else "max_length"]
        return f"has {limits['actual_length']:,} entries; the nearest allowed number is {nearest}"
    if kind == "too_short":
        return "is empty"
    return f"has {limits['actual_length']:,} characters; at most {limits['max_length']:,} fit"


def _describe_place(raw: Mapping[str, Any], place: Place) -> str:
    """Return a place in words: page 1, question 2 (bullied), option 3, label."""
    parts: list[str] = []
    part: Any = raw
    for step in place:
        try:
            part = part[step]
        except (KeyError, IndexError, TypeError):
            part = None
        if isinstance(step, int) and parts:
            name = part.get("id") if isinstance(part, Mapping) else None
            parts[-1] = f"{NAMES.get(parts[-1], parts[-1])} {step + 1}" + (
                f" ({shortened(name)})" if isinstance(name, str) else ""
            )
        else:
            parts.append(shortened(str(step)))
    return ", ".join(parts)
