"""From the fields of a question's form to the values of its sheet, and the buttons of its rows."""

from __future__ import annotations

from typing import Any

from survey.questionnaire.drafts.edits import Values
from survey.research.drafts.forms import SheetForm, fields_of
from survey.research.forms import whole_number

FEWEST_ROWS = 3
"""Rows for options that stand there from the beginning."""

Row = dict[str, Any]


def values_of(form: SheetForm, base: Values) -> dict[str, Any]:
    """What was sent, beside what the form had no field for."""
    sent: dict[str, Any] = {}
    for name, field in fields_of(form).items():
        sent[name] = _rows(field.data) if name == "options" else _value(field.data)
    return {name: sent.get(name, value) for name, value in base.items()}


def options_after(options: tuple[Row, ...], do: str) -> tuple[Row, ...]:
    """The options after a button of the rows was pressed; any other button changes nothing.

    >>> [row["key"] for row in options_after(({"key": 1}, {"key": 2}), "option-up 1")]
    [2, 1]
    """
    what, _, number = do.partition(" ")
    rows, i = list(options), whole_number(number, -1)
    if what == "option-add":
        rows.append({"key": 0, "id": "", "label": ""})
    if not 0 <= i < len(options):
        return tuple(rows)
    if what == "option-remove":
        del rows[i]
    step = {"option-up": -1, "option-down": 1}.get(what, 0)
    if step and 0 <= i + step < len(rows):
        rows[i], rows[i + step] = rows[i + step], rows[i]
    return tuple(rows)


def padded(options: tuple[Row, ...]) -> list[Row]:
    """Rows to show: those there are, and empty ones to begin with."""
    empty = [{"key": "", "id": "", "label": ""} for _ in range(FEWEST_ROWS - len(options))]
    return [*options, *empty]


def _rows(entries: list[Row]) -> tuple[Row, ...]:
    """The rows that say something or are known; a row of spaces is empty."""
    rows = []
    for entry in entries:
        row = {
            "key": whole_number(str(entry["key"] or "")),
            "id": _value(entry["id"]),
            "label": _value(entry["label"]),
        }
        if row["key"] or row["id"] or row["label"]:
            rows.append(row)
    return tuple(rows)


def _value(data: Any) -> Any:
    """Text without the spaces around it; lists as tuples, as sheets have them."""
    if isinstance(data, list):
        return tuple(data)
    if isinstance(data, bool):
        return data
    return plain(data) if isinstance(data, str) else ""


def plain(text: str) -> str:
    """A text without the spaces around it, and without NUL, which one of both databases refuses."""
    return text.replace("\r\n", "\n").replace("\0", "").strip()
