"""Parameters of a weighting: the question, and the known margins that a researcher types."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.parse import quote_plus

from survey.errors import DesignError
from survey.estimator.core.arguments import LARGEST_NUMBER
from survey.results.request import Request

PEOPLE, PER_CENT, SHARES = "people", "percent", "shares"
UNITS = {PER_CENT: "per cent", SHARES: "shares of 1", PEOPLE: "numbers of people"}
"""The units of margins, with their names on pages."""

TOTALS = {PER_CENT: 100.0, SHARES: 1.0}
"""What margins of a unit must add up to; numbers of people may add up to anything."""

ROUNDING = 0.01
"""Relative deviation from the total that rounding in published figures may cause."""

MAX_LINK_LENGTH = 3_000
"""Characters of margins in a link; servers on the way cut longer links."""

SEPARATORS = ("\t", ";", ",")
NUMBER = re.compile(r"[0-9][0-9 .,\u202f\xa0]*%?")


BY_GROUP = "link"
"""The base of margins over groups by collection link."""

BY_ANSWER = "answer:"
"""The prefix of a base of margins over the answers to a question, before its id."""


@dataclass(frozen=True)
class WeightingRequest(Request):
    """A question, the base of the margins, and the margins as text with their unit."""

    required: ClassVar = ("question", "by", "margins")
    file_stem_format: ClassVar = "{question}-weighted"

    question: str = ""
    by: str = ""
    margins: str = ""
    unit: str = PER_CENT

    @classmethod
    def parse(cls, query: Any) -> Self:
        """Parse a link's query or a form; margins typed for another base are dropped."""
        by = query.get("by", "")
        is_current = query.get("typed_for", by) == by
        return cls(
            query.get("question", ""),
            by,
            query.get("margins", "") if is_current else "",
            query.get("unit", "") or PER_CENT,
        )


def check_length(margins: str) -> None:
    """Raise DesignError if the margins do not fit into a link."""
    length = len(quote_plus(margins))
    if length > MAX_LINK_LENGTH:
        raise DesignError(
            f"Margins in a link can have {MAX_LINK_LENGTH:,} characters after encoding; these "
            f"have {length:,}. Use the ids of the options instead of their labels"
        )


def decode_margins(content: bytes) -> str:
    """Return the lines of an uploaded file in UTF-8, or in the encoding of Windows spreadsheets.

    Raises DesignError for spreadsheets, empty files, and files too long for a link.
    """
    if content.startswith(b"PK"):
        raise DesignError("This is a spreadsheet; save it as CSV first")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    lines = "\n".join(line.strip() for line in text.splitlines() if line.strip())
    if not lines or "\0" in lines:
        raise DesignError("This file has no lines of text")
    check_length(lines)
    return lines


@dataclass(frozen=True)
class Category:
    """A category of the margins; official tables omit `optional` ones such as opt-outs."""

    id: str
    label: str
    optional: bool = False


def parse_margins(text: str, categories: Sequence[Category], unit: str) -> list[float]:
    """Return the share of each category in the population, in order; the shares sum to 1.

    Each line holds a category's id or label, a comma, semicolon or tab, and a number. A first line
    without a number is a heading. Raises DesignError with a message for the researcher.

    >>> sexes = [Category("f", "Women"), Category("m", "Men")]
    >>> parse_margins("Women, 51\\nMen, 49", sexes, "percent")
    [0.51, 0.49]
    >>> parse_margins("f, 51\\nm, 45", sexes, "percent")
    Traceback (most recent call last):
        ...
    survey.errors.DesignError: These margins add up to 96%, not to 100%
    """
    if unit not in UNITS:
        raise DesignError(f"Margins are one of {', '.join(UNITS.values())}")
    numbers: dict[str, float] = {}
    lines = [
        (number, _split_line(line, number))
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip(" \t,;")
    ]
    has_heading = len(lines) > 1 and re.fullmatch(r"\D+", lines[0][1][1])
    for number, (name, value) in lines[1:] if has_heading else lines:
        category = _category(name, categories, number)
        if category.id in numbers:
            raise DesignError(f"Line {number}: “{category.label}” appears twice")
        numbers[category.id] = _parse_number(value, number, unit)
    missing = [c.label for c in categories if c.id not in numbers and not c.optional]
    if missing:
        raise DesignError(f"The margins lack {', '.join(f'“{label}”' for label in missing)}")
    total = sum(numbers.values())
    _check_total(total, unit)
    return [numbers.get(category.id, 0.0) / total for category in categories]


def _split_line(line: str, place: int) -> tuple[str, str]:
    """Return the name before the last separator of a line, and the number after it."""
    pairs = [_split_at(line, separator) for separator in SEPARATORS if separator in line]
    if not pairs:
        raise DesignError(f"Line {place}: enter a category, a comma and a number")
    return next((pair for pair in pairs if NUMBER.fullmatch(pair[1])), pairs[0])


def _split_at(line: str, separator: str) -> tuple[str, str]:
    """Split a line at its last separator outside the quotation marks of a spreadsheet."""
    if line.lstrip().startswith('"'):
        cells = next(csv.reader([line.strip()], delimiter=separator, skipinitialspace=True))
        return separator.join(cells[:-1]).strip(), cells[-1].strip()
    name, _, number = line.rpartition(separator)
    return name.strip(), number.strip()


def _category(name: str, categories: Sequence[Category], place: int) -> Category:
    for category in categories:
        if name.casefold() in (category.id.casefold(), category.label.casefold()):
            return category
    labels = ", ".join(f"“{category.label}”" for category in categories)
    raise DesignError(f"Line {place}: “{name[:60]}” is not one of {labels}")


def _parse_number(text: str, place: int, unit: str) -> float:
    """Parse a number with a decimal point or comma, spaces between thousands, and a % sign."""
    digits = re.sub("[ \u202f\xa0]", "", text.removesuffix("%")).replace(",", ".")
    if not digits:
        raise DesignError(f"Line {place}: a number is missing")
    if not digits.replace(".", "", 1).isdecimal() or not digits.isascii():
        raise DesignError(f"Line {place}: “{text[:40]}” is not a number of at least 0")
    if text.endswith("%") and unit != PER_CENT:
        raise DesignError(f"Line {place}: “{text[:40]}” is in per cent, not {UNITS[unit]}")
    value = float(digits)
    if value > LARGEST_NUMBER:
        raise DesignError(f"Line {place}: “{text[:40]}” is too large")
    return value


def _check_total(total: float, unit: str) -> None:
    if not total > 0:
        raise DesignError("All margins are 0")
    target = TOTALS.get(unit)
    if target is None or abs(total - target) <= ROUNDING * target:
        return
    sign = "%" if unit == PER_CENT else ""
    message = f"These margins add up to {total:,.10g}{sign}, not to {target:g}{sign}"
    if total > 1.5 * target:
        message += "; if they are numbers of people, select that unit"
    elif unit == PER_CENT and abs(total - 1) <= ROUNDING:
        message += "; if they are shares of 1, select that unit"
    raise DesignError(message)
