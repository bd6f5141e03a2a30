"""Read exported files of released reports: the ZIP of microdata, and the Parquet directory.

Every code is checked against the question's channel. Files of the ZIP with other names are ignored.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from array import array
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from survey.errors import (
    ChannelError,
    NotFoundError,
    StoreError,
    SurveyError,
    require_extra,
)
from survey.estimator.core.notebook_forms import NOTEBOOK
from survey.mechanism.channel import AnyIntegers, Codes, pack_bits
from survey.notebook.microdata import Microdata
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.base import ASKED_PREFIX
from survey.results.exports.csv import bounded_lines, safe_cell
from survey.results.exports.microdata import encode_cell
from survey.store import PublishedSurvey
from survey.store.releases import BUCKET, STRATUM

MAX_DOCUMENT = 64 * 2**20
"""Maximum size in bytes of the definition and of the channels in a ZIP."""

MAX_REPORTS = 10**8
"""Maximum number of reports that are read into memory."""

MAX_SHOWN = 60
"""Characters of a wrong cell that an error message repeats."""


def read_microdata(path: str | Path | IO[bytes]) -> Microdata:
    """Read the ZIP of `survey export SLUG --microdata FILE`, or of the page *Responses*.

    Checks the definition's hash, the columns, and every code. Raises NotFoundError for a missing
    file, StoreError that names an invalid member, row and value.
    """
    name = str(path) if isinstance(path, str | Path) else "the file"
    try:
        with ZipFile(path) as archive:
            survey = _read_survey(archive, name)
            try:
                with archive.open("reports.csv") as member:
                    text = io.TextIOWrapper(member, encoding="utf-8", newline="")
                    return _read_reports(text, survey, f"{name}: reports.csv")
            except KeyError:
                raise StoreError(f"{name} contains no reports.csv") from None
    except FileNotFoundError:
        raise NotFoundError(f"{name} does not exist") from None
    except (BadZipFile, UnicodeDecodeError, csv.Error) as error:
        raise StoreError(f"{name} is not a ZIP of microdata: {error}") from None


def read_parquet(path: str | Path) -> Microdata:
    """Read the directory of `survey export SLUG --parquet DIR` into memory.

    `survey.parquet.open_reports` counts exports that do not fit. Raises MissingPartError without
    pyarrow, NotFoundError if there is no export, StoreError for invalid files and codes.
    """
    with require_extra(NOTEBOOK):
        import pyarrow.parquet as pq

        from survey.parquet.export import read_export
    export = read_export(Path(path))
    questions = export.survey.definition.questions
    names = [STRATUM, BUCKET, *(question.id for question in questions)]
    tables = [pq.read_table(part, columns=names, partitioning=None) for part in export.parts]
    strata, buckets = (
        np.concatenate([np.array(table[name].to_pylist(), dtype=object) for table in tables])
        for name in (STRATUM, BUCKET)
    )
    stored = [
        np.concatenate([_parquet_codes(question, table[question.id]) for table in tables])
        for question in questions
    ]
    return Microdata(export.survey, strata, buckets, stored, export.manifest.release)


def _read_survey(archive: ZipFile, name: str) -> PublishedSurvey:
    """Return the survey of a ZIP; StoreError unless its definition has the stated hash."""
    canonical = _read_document(archive, "definition.json", name)
    try:
        described = json.loads(_read_document(archive, "channels.json", name))
        slug, version = str(described["survey"]), int(described["version"])
        expected = str(described["definition_sha256"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{name}: channels.json does not describe a survey: {error}") from None
    digest = hashlib.sha256(canonical).hexdigest()
    if digest != expected:
        raise StoreError(
            f"{name}: definition.json has the SHA-256 {digest[:16]}...; channels.json says "
            f"{expected[:16]}..."
        )
    # The file does not state the survey's state, which changes only texts about waiting for more.
    survey = PublishedSurvey(0, slug, version, digest, "closed", date.min, canonical)
    try:
        _ = survey.definition
    except (KeyError, TypeError, ValueError, RecursionError, SurveyError) as error:
        raise StoreError(f"{name}: definition.json is not a definition: {error}") from None
    return survey


def _read_document(archive: ZipFile, member: str, name: str) -> bytes:
    try:
        size = archive.getinfo(member).file_size
    except KeyError:
        raise StoreError(f"{name} contains no {member}") from None
    if size > MAX_DOCUMENT:
        raise StoreError(f"{name}: {member} has {size:,} bytes, above {MAX_DOCUMENT:,}")
    return archive.read(member)


def _read_reports(text: IO[str], survey: PublishedSurvey, name: str) -> Microdata:
    questions = survey.definition.questions
    rows = csv.reader(bounded_lines(text))
    expected = [STRATUM, BUCKET, *(question.id for question in questions)]
    if (header := next(rows, [])) != expected:
        raise StoreError(
            f"{name} must have the columns {', '.join(expected)} "
            f"(found {', '.join(header)[:MAX_SHOWN]})"
        )
    columns = [_DistinctCells() for _ in expected]
    for number, row in enumerate(rows, 2):
        if len(row) != len(expected) or number > MAX_REPORTS + 1:
            raise StoreError(
                f"{name}, row {number}: {len(row)} cells, not {len(expected)}"
                if len(row) != len(expected)
                else f"{name} has more than {MAX_REPORTS:,} reports"
            )
        for column, cell in zip(columns, row, strict=True):
            column.add(cell, number)
    strata, buckets = (
        np.array([_unsafe(cell) for cell in column.cells] or [""], dtype=object)[column.index]
        for column in columns[:2]
    )
    stored = [
        column.codes(question, name)
        for question, column in zip(questions, columns[2:], strict=True)
    ]
    return Microdata(survey, strata, buckets, stored)


class _DistinctCells:
    """A column of a CSV file: its distinct cells, the row of each, and an index per row."""

    def __init__(self) -> None:
        self.cells: dict[str, int] = {}
        self.first_rows: list[int] = []
        self._index = array("l")

    def add(self, cell: str, row: int) -> None:
        place = self.cells.setdefault(cell, len(self.cells))
        if place == len(self.first_rows):
            self.first_rows.append(row)
        self._index.append(place)

    @property
    def index(self) -> AnyIntegers:
        return np.array(self._index, dtype=np.int64)

    def codes(self, question: PublishedQuestion, name: str) -> Codes:
        """Return the stored codes; StoreError with the row of an invalid cell."""
        distinct = []
        for cell, row in zip(self.cells, self.first_rows, strict=True):
            try:
                distinct.append(_encode(question, cell))
            except (ChannelError, ValueError) as error:
                raise StoreError(
                    f"{name}, row {row}: {question.id} = {cell[:MAX_SHOWN]!r}: {error}"
                ) from None
        return _stacked(question, distinct)[self.index]


def _stacked(question: PublishedQuestion, distinct: Sequence[bytes]) -> Codes:
    width = question.channel.code_bytes + question.nullable
    return np.frombuffer(b"".join(distinct), dtype=np.uint8).reshape(-1, width)


def _encode(question: PublishedQuestion, cell: str) -> bytes:
    """Return the stored bytes of a cell; ChannelError for anything but a code of the channel."""
    if not question.nullable:
        return encode_cell(question.channel, cell)
    if not cell:
        return bytes(1 + question.channel.code_bytes)
    return ASKED_PREFIX + encode_cell(question.channel, cell)


def _unsafe(cell: str) -> str:
    """Remove the apostrophe with which the export protects spreadsheets from formulas."""
    return cell[1:] if cell.startswith("'") and safe_cell(cell[1:]) == cell else cell


def _parquet_codes(question: PublishedQuestion, column: Any) -> Codes:
    """Return the stored codes of a column of an export; StoreError for an invalid code."""
    cells = column.to_pylist()
    distinct: dict[Any, int] = {}
    index = np.array([distinct.setdefault(cell, len(distinct)) for cell in cells], dtype=np.int64)
    try:
        stored = [_encode_value(question, value) for value in distinct]
    except ChannelError as error:
        raise StoreError(f"column {question.id}: {error}") from None
    return _stacked(question, stored)[index]


def _encode_value(question: PublishedQuestion, value: int | bytes | None) -> bytes:
    """Return the stored bytes of a value in a column: an integer, bytes, or null."""
    channel = question.channel
    if value is None:
        if not question.nullable:
            raise ChannelError("a code is missing")
        return bytes(1 + channel.code_bytes)
    prefix = ASKED_PREFIX if question.nullable else b""
    if isinstance(value, bytes):
        bits = np.unpackbits(np.frombuffer(value, np.uint8))
        if bits[channel.report_bits :].any():
            raise ChannelError(f"{value.hex()} has a 1 after its last bit")
        return prefix + channel.encode(
            pack_bits(np.flatnonzero(bits).tolist(), channel.report_bits)
        )
    return prefix + channel.encode(value)
