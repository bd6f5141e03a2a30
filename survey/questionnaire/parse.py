"""Bytes of a definition file to plain values: a hostile file is refused, in no time, by name."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from survey.questionnaire.mistakes import quoted, refusal, shortened

MAX_FILE_BYTES = 1_000_000

DOTTED = re.compile(
    r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
    r"""(?:[ \t]*+\.[ \t]*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')){50}""",
    re.ASCII,
)
"""A TOML key of so many parts that tomllib, quadratic in them, would work for hours."""


def parse(content: bytes, name: str) -> dict[str, Any]:
    """Read TOML or JSON, by the ending of the file's name; raises DefinitionError."""
    if len(content) > MAX_FILE_BYTES:
        raise refusal([(shortened(name), f"is larger than {MAX_FILE_BYTES:,} bytes")])
    try:
        raw = _parsed(content.decode("utf-8-sig"), name)
        _refuse_surrogates(raw)
    except UnicodeDecodeError as error:
        raise refusal([(shortened(name), f"is not UTF-8 text (byte {error.start})")]) from None
    except RecursionError:
        raise refusal([(shortened(name), "is nested too deeply")]) from None
    except ValueError as error:  # of both parsers, with line and column
        raise refusal([(shortened(name), f"cannot be parsed: {error}")]) from None
    if not isinstance(raw, dict):
        raise refusal([(shortened(name), "must hold one object with slug, title, pages")])
    return raw


def _parsed(text: str, name: str) -> Any:
    if name.lower().endswith(".json"):
        return json.loads(
            text, parse_float=_decimal, object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    if not name.lower().endswith(".toml"):
        raise refusal([(shortened(name), "a definition file ends in .toml or .json")])
    if dotted := DOTTED.search(text):
        raise ValueError(f"the key {quoted(dotted[0])} has too many parts")
    return tomllib.loads(text, parse_float=_decimal)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # its exponent has more than 18 digits
        raise ValueError(f"{shortened(text)} is too long a number") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {quoted(key)} is given twice in one object")
        found[key] = value
    return found


def _refuse_surrogates(raw: Any) -> None:
    """Halves of surrogate pairs are in no UTF-8: they would be an accident later, anywhere."""
    for text in _texts(raw):
        if half := re.search("[\ud800-\udfff]", text):
            raise ValueError(
                f"{ascii(half[0])[1:-1]} is half of a unicode character, in {quoted(text)}"
            )


def _texts(raw: Any) -> Iterator[str]:
    waiting = [raw]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
