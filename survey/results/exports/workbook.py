"""Results as XLSX: estimates or a cross-tabulation, codebook and methods; no cell is a formula."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from survey.results.crosstab.table import CrosstabResult, CrosstabRow
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import EstimateRow
from survey.results.exports.codebook import (
    CodebookRow,
    codebook,
    crosstab_methods_sheet,
    methods_sheet,
)
from survey.results.exports.csv import column_names, safe_cell

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

MAX_COLUMN_WIDTH = 60
"""Characters to which a column is widened for its content."""

WORKBOOK_OPTIONS = {
    "in_memory": True,
    "strings_to_numbers": False,
    "strings_to_urls": False,
    "strings_to_formulas": False,
    "nan_inf_to_errors": False,
}


def estimates_workbook(result: SurveyResult) -> bytes:
    """Return the estimates of a survey as a workbook; missing numbers are empty cells."""
    questions = result.survey.definition.questions
    return _workbook(
        "estimates", EstimateRow, result.rows, codebook(questions), methods_sheet(result)
    )


def crosstab_workbook(table: CrosstabResult) -> bytes:
    """Return a cross-tabulation as a workbook, with the codebook of its two questions."""
    sheets = codebook(table.questions), crosstab_methods_sheet(table)
    return _workbook("crosstab", CrosstabRow, table.rows, *sheets)


def _workbook(
    name: str,
    row_type: type[DataclassInstance],
    rows: Iterable[DataclassInstance],
    codebook_rows: Iterable[CodebookRow],
    methods: Sequence[tuple[str, str]],
) -> bytes:
    """Return a file of three sheets: the rows, the codebook and the methods."""
    import xlsxwriter

    file = io.BytesIO()
    with xlsxwriter.Workbook(file, WORKBOOK_OPTIONS) as book:
        bold, wrapped = book.add_format({"bold": True}), book.add_format({"text_wrap": True})
        wrapped.set_align("top")
        _write_rows(book.add_worksheet(name), row_type, rows, bold)
        _write_rows(book.add_worksheet("codebook"), CodebookRow, codebook_rows, bold)
        _write_methods(book.add_worksheet("methods"), methods, bold, wrapped)
    return file.getvalue()


def _write_rows(
    sheet: Worksheet,
    row_type: type[DataclassInstance],
    rows: Iterable[DataclassInstance],
    head: Format,
) -> None:
    names = column_names(row_type)
    cells = [[safe_cell(value) for value in astuple(row)] for row in rows]
    for column, name in enumerate(names):
        sheet.write_string(0, column, name, head)
        longest = max([len(name), *(len(str(row[column])) for row in cells)])
        sheet.set_column(column, column, min(longest + 1, MAX_COLUMN_WIDTH))
    for line, row in enumerate(cells, 1):
        for column, value in enumerate(row):
            _write_cell(sheet, line, column, value)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, max(len(cells), 1), len(names) - 1)


def _write_cell(sheet: Worksheet, row: int, column: int, value: Any) -> None:
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, str):
        if value:
            sheet.write_string(row, column, value)
    else:
        sheet.write_number(row, column, value)


def _write_methods(
    sheet: Worksheet, methods: Sequence[tuple[str, str]], head: Format, wrapped: Format
) -> None:
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 100)
    for row, (topic, text) in enumerate(methods):
        sheet.write_string(row, 0, topic, head)
        sheet.write_string(row, 1, safe_cell(text), wrapped)
