"""The XLSX export has the rows of the CSV, a codebook and the methods, and no formulas."""

from __future__ import annotations

import io
from dataclasses import astuple, fields

import pytest
from openpyxl import load_workbook
from openpyxl.utils.escape import unescape

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab
from survey.results.crosstab.table import CrosstabRow
from survey.results.estimates.result import ResultCache
from survey.results.exports.csv import column_names
from survey.results.exports.xlsx import CodebookRow, codebook, crosstab_workbook, estimates_workbook
from survey.results.request import IntervalOptions
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY
from tests.results.hostile import TEXTS, hostile_rows
from tests.surveys import EVERY_TYPE


@pytest.fixture
def result(store, small):
    add_released(store, small, 3000)
    return ResultCache(store).result(small)


def sheets(result):
    return sheets_of(estimates_workbook(result))


def sheets_of(content):
    book = load_workbook(io.BytesIO(content))
    return {sheet.title: [list(row) for row in sheet.iter_rows()] for sheet in book.worksheets}


def values(rows):
    return [[cell.value for cell in row] for row in rows]


def test_the_sheet_of_estimates_has_the_rows_and_columns_of_the_csv(result):
    head, *rows = values(sheets(result)["estimates"])
    assert tuple(head) == column_names()
    expected = [[None if value == "" else value for value in astuple(row)] for row in result.rows]
    assert len(rows) == len(expected)
    for row, right in zip(rows, expected, strict=True):
        for cell, value in zip(row, right, strict=True):
            assert cell == (pytest.approx(value) if isinstance(value, float) else value)


def test_the_codebook_names_every_option_of_every_question(store):
    survey = publish(store, load(EVERY_TYPE.encode(), "s.toml", Caps()), TODAY)
    result = ResultCache(store).result(survey)
    rows = codebook(survey.definition.questions)
    options = {(row.question_id, row.option_id) for row in rows}
    for question in survey.definition.questions:
        assert {(question.id, option.id) for option in question.options} <= options
        if question.kind.is_numeric:
            assert (question.id, "") in options
    opt_outs = {row.option_label for row in rows if row.is_no_answer}
    assert "Prefer not to say" in opt_outs
    head, *_ = values(sheets(result)["codebook"])
    assert head == [column.name for column in fields(CodebookRow)]


def test_the_methods_sheet_names_the_definition_and_the_intervals(result, small):
    pairs = dict(values(sheets(result)["methods"]))
    assert pairs["Definition (SHA-256)"] == small.sha256
    assert pairs["Released reports"] == "3,000"
    assert "95%" in pairs["Figures"]


@pytest.mark.security
@pytest.mark.parametrize("start", "=+-@")
def test_xlsx_no_cell_is_a_formula_for_any_content(store, start):
    hostile = SMALL.replace('label = "Never"', f'label = "{start}1+cmd|calc"')
    survey = publish(store, load(hostile.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 3000)
    cells = [
        cell
        for rows in sheets(ResultCache(store).result(survey)).values()
        for row in rows
        for cell in row
    ]
    assert any(str(cell.value).startswith(f"'{start}1+cmd") for cell in cells)
    assert all(cell.data_type in ("s", "n", "b") for cell in cells)


@pytest.mark.security
def test_xlsx_every_text_that_would_start_a_formula_gets_an_apostrophe(result, monkeypatch):
    monkeypatch.setattr("survey.results.exports.xlsx.codebook", lambda _: hostile_rows())
    monkeypatch.setattr(
        "survey.results.exports.xlsx.methods_sheet", lambda _: [("How", t) for t in TEXTS]
    )
    book = sheets(result)
    _, *rows = book["codebook"]
    escaped = [f"'{hostile}" for hostile in TEXTS]
    assert [unescape(row[1].value) for row in rows] == escaped
    assert [unescape(row[4].value) for row in rows] == escaped
    assert {(row[9].value, row[9].data_type) for row in rows} == {(-1, "n")}
    assert [unescape(how.value) for _, how in book["methods"]] == escaped
    assert all(cell.data_type != "f" for sheet in book.values() for row in sheet for cell in row)


def test_a_survey_without_reports_has_a_workbook(store, small):
    assert len(sheets(ResultCache(store).result(small))["estimates"]) > 1


def test_a_crosstab_workbook_has_rows_codebook_and_methods(store):
    survey = publish(store, load(SMALL.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 3000)
    names = [question.id for question in survey.definition.questions]
    table = compute_crosstab(store, survey, CrosstabRequest(*names), IntervalOptions(level=0.9))
    book = sheets_of(crosstab_workbook(table))
    head, *rows = values(book["crosstab"])
    assert tuple(head) == column_names(CrosstabRow)
    for row, right in zip(rows, table.rows, strict=True):
        assert row[9] == pytest.approx(right.estimate)
    coded = values(book["codebook"])[1:]
    assert {row[0] for row in coded} == set(names)
    methods = dict(values(book["methods"]))
    assert methods["Definition (SHA-256)"] == survey.sha256
    assert methods["Figures"].startswith("90%")
    assert "biased" in methods["Limits"]
    assert "χ²" in methods["Test"]


def test_a_suppressed_crosstab_has_no_numbers_in_its_workbook(store, small):
    add_released(store, small, 60)
    names = [question.id for question in small.definition.questions]
    book = sheets_of(
        crosstab_workbook(
            compute_crosstab(store, small, CrosstabRequest(*names), IntervalOptions())
        )
    )
    rows = values(book["crosstab"])[1:]
    assert rows
    assert all(row[9:13] == [None] * 4 for row in rows)
    assert "Test" not in dict(values(book["methods"]))
