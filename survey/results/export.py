"""Rows as CSV (RFC 4180), with text that no spreadsheet can take for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, fields
from typing import Any

from survey.results.tables import Row

COLUMNS = tuple(column.name for column in fields(Row))

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\x00", "＝", "＋", "－", "＠")


def to_csv(rows: Iterable[Row]) -> str:
    """Rows with a header; numbers stay numbers, missing ones are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in astuple(row)] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Text that would start a formula gets an apostrophe before it (OWASP, CSV injection)."""
    if isinstance(value, str) and value.lstrip("\ufeff\" '").startswith(FORMULA_STARTS):
        return "'" + value
    return "" if value is None else value
