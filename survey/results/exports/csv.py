"""Rows as CSV (RFC 4180) and as JSON; no spreadsheet interprets a cell of the CSV as a formula.

The columns are the fields of the row's dataclass, which is declared in the `table.py` of its
analysis: `EstimateRow` in `estimates/table.py`, `CrosstabRow` in `crosstab/table.py`, and so on.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from typing import IO, TYPE_CHECKING, Any

from survey.results.estimates.table import EstimateRow

if TYPE_CHECKING:
    from _csv import Writer

    from _typeshed import DataclassInstance

MAX_LINE = 2**20
"""Maximum number of characters of a line that is read."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\x00", "＝", "＋", "－", "＠")


def to_csv(
    rows: Iterable[DataclassInstance], row_type: type[DataclassInstance] = EstimateRow
) -> str:
    """Return rows as CSV with a header; numbers stay numbers, and None is an empty cell."""
    text = io.StringIO()
    writer = csv_writer(text)
    writer.writerow(column_names(row_type))
    writer.writerows([safe_cell(value) for value in astuple(row)] for row in rows)
    return text.getvalue()


def to_json(rows: Iterable[DataclassInstance]) -> str:
    """Return rows as a JSON list of objects, whose keys are the columns of the CSV."""
    return json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False)


def csv_writer(file: IO[str]) -> Writer:
    """Return a writer whose lines end as RFC 4180 requires."""
    return csv.writer(file, lineterminator="\r\n")


def bounded_lines(file: IO[str]) -> Iterator[str]:
    """Yield the lines of a file; one of more than `MAX_LINE` characters in parts.

    `csv.reader` takes a part for a row, which then has too few cells: a file without line ends
    cannot fill the memory.
    """
    while line := file.readline(MAX_LINE):
        yield line


def column_names(row_type: type[DataclassInstance] = EstimateRow) -> tuple[str, ...]:
    """Return the columns of a type of row, in order."""
    return tuple(field.name for field in fields(row_type))


def safe_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet interprets as a formula; None becomes an empty cell.

    Text that would start a formula gets an apostrophe before it (OWASP, CSV injection).

    >>> safe_cell("=1+1"), safe_cell(-1), safe_cell(None)
    ("'=1+1", -1, '')
    """
    if isinstance(value, str) and value.lstrip("\ufeff\" '").startswith(FORMULA_STARTS):
        return "'" + value
    return "" if value is None else value


@dataclass(frozen=True)
class InvitationRow:
    """One single-use invitation, for the person who sends it."""

    number: int
    stratum: str
    link: str


def links_csv(links: Sequence[str], stratum: str) -> str:
    """Return the single-use invitations of one group as CSV."""
    rows = (InvitationRow(number, stratum, link) for number, link in enumerate(links, 1))
    return to_csv(rows, InvitationRow)
