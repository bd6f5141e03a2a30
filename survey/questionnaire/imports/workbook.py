"""Sheets of an Excel file (.xlsx) that nobody trusts: sizes are bounded before anything is read.

openpyxl reads the XML through defusedxml, which refuses entities. A file of a few kilobytes can
unpack to gigabytes, and reading takes time for every element and every cell, so all are counted.
"""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from typing import Any

from survey.errors import DefinitionError
from survey.questionnaire.error_messages import refusal, shortened

MAX_FILE_BYTES = 1_000_000
MAX_MEMBERS = 300
MAX_UNPACKED_BYTES = 20_000_000
MAX_ELEMENTS = 300_000
"""Maximum number of XML tags: reading a million takes some seconds."""

MAX_STYLE_ELEMENTS = 20_000
"""Maximum number of XML tags outside of sheets and their texts: openpyxl reads styles slowly."""

MAX_CELLS = 3_000_000
"""Maximum number of cells, with the empty ones before a row's last cell."""

MAX_CHARACTERS = 2_000_000
"""Maximum number of characters of all cells: many cells can share one text of a file."""

MAX_SHEET_ROWS = 1_048_576
"""Maximum number of rows of a sheet, with empty ones: Excel has as many."""

MAX_ROWS = 20_000
"""Maximum number of rows with content in a sheet."""

CHUNK = 65_536

DECLARES = "has XML with a document type, whose entities could be endless or name other files"

PARTS = (".xml", ".rels")
"""Endings of the parts that are read: pictures and macros are left out."""

MASS_PARTS = ("xl/worksheets/", "xl/sharedstrings")
"""Beginnings of the names of the parts that grow with the content."""

MACROS = "vbaproject.bin"

OLD_FORMAT = bytes.fromhex("d0cf11e0a1b11ae1")
"""First bytes of .xls files and of encrypted ones."""

Rows = Sequence[tuple[int, Sequence[str]]]
"""Rows with content: the number of each, and the text of its cells."""


def read_sheets(content: bytes, name: str, sheet_names: Iterable[str]) -> dict[str, Rows | None]:
    """Return the sheets of a file by name: the rows of the wanted ones, None for all others.

    Sheets are wanted whatever their names' case. Formulas have the values that were saved with
    them. Raises DefinitionError for a file that is broken, too large or not in this format.
    """
    file = _bounded_copy(content, name)
    lowercase = {sheet.casefold() for sheet in sheet_names}
    with _errors_of_readers(name):
        book = _load(file, name)
        budget = _Budget(name)
        return {
            sheet.title: list(_rows(sheet, budget))
            if sheet.title.strip().casefold() in lowercase
            else None
            for sheet in book.worksheets
        }


def _refused(name: str, why: str) -> DefinitionError:
    return refusal([(shortened(name), why)])


@contextmanager
def _errors_of_readers(name: str) -> Iterator[None]:
    """Turn whatever a reader raises for a broken file into a DefinitionError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of parts that it leaves out
            yield
    except DefinitionError:
        raise
    except Exception as error:  # noqa: BLE001 - openpyxl raises errors of all kinds
        detail = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise _refused(name, f"is not a workbook that can be read: {shortened(detail)}") from None


def _bounded_copy(content: bytes, name: str) -> io.BytesIO:
    """Return the XML parts of a file in a new one, each with its true size."""
    if len(content) > MAX_FILE_BYTES:
        raise _refused(name, f"is larger than {MAX_FILE_BYTES:,} bytes")
    if content.startswith(OLD_FORMAT):
        raise _refused(name, "is encrypted, or an .xls file; save it as .xlsx without a password")
    copy = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(copy, "w") as target:
            for part, unpacked in _parts(archive, name).items():
                target.writestr(part, unpacked)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        detail = shortened(str(error)) or type(error).__name__
        raise _refused(name, f"is no .xlsx file, which is a zip archive: {detail}") from None
    except (ValueError, OSError, OverflowError) as error:
        raise _refused(name, f"is a damaged file: {error}") from None
    return copy


def _parts(archive: zipfile.ZipFile, name: str) -> Mapping[str, bytes]:
    """Return the unpacked XML parts; raises DefinitionError if there is too much in them."""
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise _refused(name, f"has {len(members):,} parts; at most {MAX_MEMBERS} are allowed")
    if any(member.filename.lower().endswith(MACROS) for member in members):
        raise _refused(name, "contains macros; save it as .xlsx without macros")
    parts: dict[str, bytes] = {}
    remaining, elements, small = MAX_UNPACKED_BYTES, 0, 0
    for member in members:
        if not member.filename.lower().endswith(PARTS):
            continue
        if member.filename in parts:
            raise _refused(name, f"has two parts with the name {shortened(member.filename)}")
        unpacked = _unpack(archive, member, remaining)
        if unpacked is None:
            raise _refused(name, f"unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
        remaining -= len(unpacked)
        tags = unpacked.count(b"<")
        elements += tags
        is_small = not member.filename.lower().startswith(MASS_PARTS)
        small += tags if is_small else 0
        if elements > MAX_ELEMENTS or small > MAX_STYLE_ELEMENTS:
            raise _refused(
                name, "has too much content or formatting; delete unused rows and styles"
            )
        if b"<!DOCTYPE" in unpacked:
            raise _refused(name, DECLARES)
        if is_small:
            _refuse_types(unpacked)
        parts[member.filename] = unpacked
    return parts


def _refuse_types(content: bytes) -> None:
    """Raise ValueError for a document type in any encoding, and for broken XML.

    openpyxl reads sheets and their texts with defusedxml, but other parts with lxml if it exists.
    """
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        fromstring(content, forbid_dtd=True)
    except DefusedXmlException:
        raise ValueError(DECLARES) from None
    except ParseError as error:
        raise ValueError(f"its XML has a mistake, {error}") from None


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, maximum: int) -> bytes | None:
    """Return a part's content, or None if it has more bytes, whatever the archive says of it."""
    if member.file_size > maximum:
        return None
    unpacked = bytearray()
    with archive.open(member) as source:
        while chunk := source.read(CHUNK):
            unpacked += chunk
            if len(unpacked) > maximum:
                return None
    return bytes(unpacked)


def _load(file: io.BytesIO, name: str) -> Any:
    """Open a workbook; raises DefinitionError if nothing protects from hostile XML."""
    import openpyxl

    if not openpyxl.DEFUSEDXML:
        raise _refused(name, "cannot be read safely: unset OPENPYXL_DEFUSEDXML")
    return openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)


class _Budget:
    """Counts the cells of all sheets, and their characters."""

    def __init__(self, name: str) -> None:
        self.name, self._cells, self._characters = name, 0, 0

    def spend(self, cells: Sequence[Any]) -> None:
        """Count cells; raises DefinitionError if they or their texts are too many."""
        self._cells += len(cells)
        if self._cells > MAX_CELLS:
            raise _refused(self.name, f"has more than {MAX_CELLS:,} cells; delete unused columns")
        self._characters += sum(len(value) for value in cells if isinstance(value, str))
        if self._characters > MAX_CHARACTERS:
            raise _refused(
                self.name, f"has more than {MAX_CHARACTERS:,} characters of text in its cells"
            )


def _rows(sheet: Any, budget: _Budget) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the number and the cells of each row with content."""
    # Files state sizes that are wrong, and openpyxl would fill up each row to them.
    sheet.reset_dimensions()
    with_content = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        budget.spend(row)
        if number > MAX_SHEET_ROWS:
            raise _refused(budget.name, f"has more than {MAX_SHEET_ROWS:,} rows in a sheet")
        cells = [cell_text(value) for value in row]
        if not any(cells):
            continue
        with_content += 1
        if with_content > MAX_ROWS:
            raise _refused(budget.name, f"has more than {MAX_ROWS:,} rows in a sheet")
        yield number, cells


def cell_text(value: Any) -> str:
    """Return a cell as text, as a person would write it.

    >>> cell_text(12.0), cell_text(True), cell_text(date(2026, 1, 2)), cell_text(None)
    ('12', 'TRUE', '2026-01-02', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time(0):
        value = value.date()
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value).replace("\xa0", " ").strip()
