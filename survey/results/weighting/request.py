"""Known margins as researchers type or upload them: a line for each category, checked by name."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from survey.errors import DesignError
from survey.estimator.core.arguments import LARGEST_NUMBER

PEOPLE, PER_CENT, SHARES = "people", "percent", "shares"
UNITS = {PER_CENT: "per cent", SHARES: "shares of 1", PEOPLE: "numbers of people"}
"""What numbers of margins may be, in words."""

WHOLE = {PER_CENT: 100.0, SHARES: 1.0}
"""What margins of a unit must add up to; numbers of people may add up to anything."""

ROUNDING = 0.01
"""Part of the whole by which published figures may miss it."""

SEPARATORS = ("\t", ";", ",")
NUMBER = re.compile(r"[0-9][0-9 .,\u202f\xa0]*%?")


@dataclass(frozen=True)
class Category:
    """What a line of margins may be about: an id, and what people call it.

    `optional` categories may be left out: those who gave no answer are in no official table.
    """

    id: str
    label: str
    optional: bool = False


def read_margins(text: str, categories: Sequence[Category], unit: str) -> list[float]:
    """Shares of the population, in the order of the categories; they add up to 1.

    Each line is a category's id or label, a comma, semicolon or tab, and a number; a first line
    without a number is a heading. Raises DesignError, in words for whoever typed it.

    >>> sexes = [Category("f", "Women"), Category("m", "Men")]
    >>> read_margins("Women, 51\\nMen, 49", sexes, "percent")
    [0.51, 0.49]
    >>> read_margins("f, 51\\nm, 45", sexes, "percent")
    Traceback (most recent call last):
        ...
    survey.errors.DesignError: These margins add up to 96%, not to 100%
    """
    if unit not in UNITS:
        raise DesignError(f"Margins are one of {', '.join(UNITS.values())}")
    found: dict[str, float] = {}
    for number, (name, value) in _lines(text):
        category = _category(name, categories, number)
        if category.id in found:
            raise DesignError(f"Line {number}: “{category.label}” is there twice")
        found[category.id] = _number(value, number, unit)
    _check_complete(found, categories)
    total = sum(found.values())
    _check_total(total, unit)
    return [found.get(category.id, 0.0) / total for category in categories]


def _lines(text: str) -> list[tuple[int, tuple[str, str]]]:
    """Name and number of each line that has any, with its place; a heading is left out."""
    lines = enumerate(text.splitlines(), 1)
    cut = [(place, _cut(line, place)) for place, line in lines if line.strip(" \t,;")]
    has_heading = len(cut) > 1 and re.fullmatch(r"\D+", cut[0][1][1])
    return cut[1:] if has_heading else cut


def _cut(line: str, place: int) -> tuple[str, str]:
    """The name before the last separator of a line, and the number after it."""
    pairs = [_parts(line, separator) for separator in SEPARATORS if separator in line]
    if not pairs:
        raise DesignError(f"Line {place}: write the category, a comma and a number")
    return next((pair for pair in pairs if NUMBER.fullmatch(pair[1])), pairs[0])


def _parts(line: str, separator: str) -> tuple[str, str]:
    """Spreadsheets put quotation marks around cells; within these a separator is none."""
    if line.lstrip().startswith('"'):
        cells = next(csv.reader([line.strip()], delimiter=separator, skipinitialspace=True))
        return separator.join(cells[:-1]).strip(), cells[-1].strip()
    name, _, number = line.rpartition(separator)
    return name.strip(), number.strip()


def _category(name: str, categories: Sequence[Category], place: int) -> Category:
    for category in categories:
        if name.casefold() in (category.id.casefold(), category.label.casefold()):
            return category
    known = ", ".join(f"“{category.label}”" for category in categories)
    raise DesignError(f"Line {place}: “{name[:60]}” is none of {known}")


def _number(written: str, place: int, unit: str) -> float:
    """A number with a decimal point or comma; spaces between thousands and a % may stand by."""
    tidy = written.removesuffix("%").replace("\u202f", "").replace("\xa0", "").replace(" ", "")
    tidy = tidy.replace(",", ".")
    if not tidy:
        raise DesignError(f"Line {place}: a number is missing")
    if not tidy.replace(".", "", 1).isdecimal() or not tidy.isascii():
        raise DesignError(f"Line {place}: “{written[:40]}” is not a number from 0")
    if written.endswith("%") and unit != PER_CENT:
        raise DesignError(f"Line {place}: “{written[:40]}” is per cent, not {UNITS[unit]}")
    value = float(tidy)
    if value > LARGEST_NUMBER:
        raise DesignError(f"Line {place}: “{written[:40]}” is too large")
    return value


def _check_complete(found: dict[str, float], categories: Sequence[Category]) -> None:
    missing = [each.label for each in categories if each.id not in found and not each.optional]
    if missing:
        named = ", ".join(f"“{label}”" for label in missing)
        raise DesignError(f"The margins lack {named}")


def _check_total(total: float, unit: str) -> None:
    if not total > 0:
        raise DesignError("These margins are all 0")
    whole = WHOLE.get(unit)
    if whole is None or abs(total - whole) <= ROUNDING * whole:
        return
    sign = "%" if unit == PER_CENT else ""
    wrong = f"These margins add up to {total:,.10g}{sign}, not to {whole:g}{sign}"
    if total > 1.5 * whole:
        wrong += "; if they are numbers of people, say so"
    elif unit == PER_CENT and abs(total - 1) <= ROUNDING:
        wrong += "; if they are shares of 1, say so"
    raise DesignError(wrong)
