"""Mistakes as people read them: a place, a sentence, nothing that could steer a terminal."""

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
"""Longest piece of a file that is repeated in a message."""

NAMES = {"pages": "page", "questions": "question", "options": "option"}


def refusal(mistakes: Sequence[tuple[str, str]], places: Sequence[Place] = ()) -> DefinitionError:
    """The error that lists the mistakes; everything in it is printable."""
    listed = [(printable(place), printable(text)) for place, text in mistakes[:MAX_LISTED]]
    if len(mistakes) > MAX_LISTED:
        listed.append(("and so on", f"{len(mistakes) - MAX_LISTED:,} more mistakes"))
    return DefinitionError(listed, places)


def located(raw: Mapping[str, Any], mistakes: Iterable[Mistake]) -> DefinitionError:
    """The error that lists mistakes in the order and by the names of their places."""
    ordered = sorted(
        mistakes,
        key=lambda mistake: [
            f"{step:05}" if isinstance(step, int) else step for step in mistake[0]
        ],
    )
    named = [(_named(raw, place), text) for place, text in ordered[:MAX_LISTED]]
    places = [place for place, _ in ordered[:MAX_LISTED]]
    return refusal([*named, *(("", text) for _, text in ordered[MAX_LISTED:])], places)


def printable(text: str) -> str:
    """Text with every character that a terminal might obey written as an escape.

    >>> print(printable("a\\x1b[31m \\u202eb"))
    a\\x1b[31m \\u202eb
    """
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def shortened(text: str) -> str:
    """The beginning of a text that may be a megabyte long."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def quoted(value: object) -> str:
    """A value of the file as part of a sentence: a short text, else only what kind it is."""
    if isinstance(value, str):
        return f'"{shortened(value)}"'
    return "this" if value is None else f"a {type(value).__name__}"


def sentence(detail: ErrorDetails) -> str:
    """What pydantic found wrong, as a sentence that goes on from the place."""
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
        return _of_length(kind, value, limits)
    return (
        f"{quoted(value)} does not fit: {message}" if kind == "string_pattern_mismatch" else message
    )


def _of_length(kind: str, value: object, limits: Mapping[str, Any]) -> str:
    if not isinstance(value, str):
        nearest = limits["min_length" if kind == "too_short" else "max_length"]
        return f"has {limits['actual_length']:,} entries; the nearest allowed number is {nearest}"
    if kind == "too_short":
        return "is empty"
    return f"has {limits['actual_length']:,} characters; at most {limits['max_length']:,} fit"


def _named(raw: Mapping[str, Any], place: Place) -> str:
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
                f" ({shortened(name)})" if isinstance(name, str) else ""
            )
        else:
            parts.append(shortened(str(step)))
    return ", ".join(parts)
