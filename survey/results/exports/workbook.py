"""Results as XLSX: estimates or a cross-tab, codebook, methods; a text is never a formula."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from typing import TYPE_CHECKING, Any

import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from survey.results.crosstab.compute import CrossedQuestions, CrossedRow
from survey.results.crosstab.sentences import crossed_methods
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import Row
from survey.results.exports.codebook import CodebookRow, codebook, methods
from survey.results.exports.csv import neutral

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

WIDEST = 60
"""Characters to which a column grows."""

OPTIONS = {
    "in_memory": True,
    "strings_to_numbers": False,
    "strings_to_urls": False,
    "strings_to_formulas": False,
    "nan_inf_to_errors": False,
}


def workbook(result: SurveyResult) -> bytes:
    """The estimates of a survey; missing numbers are empty cells."""
    questions = result.survey.definition.questions
    return _book("estimates", Row, result.rows, codebook(questions), methods(result))


def crossed_workbook(found: CrossedQuestions) -> bytes:
    """The table of two questions, one row per cell, with their codebook alone."""
    sheets = codebook(found.questions), crossed_methods(found)
    return _book("crosstab", CrossedRow, found.rows, *sheets)


def _book(
    name: str,
    kind: type[DataclassInstance],
    rows: Iterable[DataclassInstance],
    coded: Iterable[CodebookRow],
    made: Sequence[tuple[str, str]],
) -> bytes:
    """A file of three sheets: rows of a kind, what their names mean, and how they were made."""
    written = io.BytesIO()
    with xlsxwriter.Workbook(written, OPTIONS) as book:
        head, wrapped = book.add_format({"bold": True}), book.add_format({"text_wrap": True})
        wrapped.set_align("top")
        _sheet(book.add_worksheet(name), kind, rows, head)
        _sheet(book.add_worksheet("codebook"), CodebookRow, coded, head)
        _methods(book.add_worksheet("methods"), made, head, wrapped)
    return written.getvalue()


def _sheet(
    sheet: Worksheet,
    kind: type[DataclassInstance],
    rows: Iterable[DataclassInstance],
    head: Format,
) -> None:
    names = [column.name for column in fields(kind)]
    cells = [[neutral(value) for value in astuple(row)] for row in rows]
    for column, name in enumerate(names):
        sheet.write_string(0, column, name, head)
        longest = max([len(name), *(len(str(row[column])) for row in cells)])
        sheet.set_column(column, column, min(longest + 1, WIDEST))
    for at, row in enumerate(cells, 1):
        for column, value in enumerate(row):
            _write(sheet, at, column, value)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, max(len(cells), 1), len(names) - 1)


def _write(sheet: Worksheet, row: int, column: int, value: Any) -> None:
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, str):
        if value:
            sheet.write_string(row, column, value)
    else:
        sheet.write_number(row, column, value)


def _methods(
    sheet: Worksheet, pairs: Sequence[tuple[str, str]], head: Format, wrapped: Format
) -> None:
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 100)
    for row, (what, how) in enumerate(pairs):
        sheet.write_string(row, 0, what, head)
        sheet.write_string(row, 1, neutral(how), wrapped)
