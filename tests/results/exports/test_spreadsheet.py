"""LibreOffice reads every number of an export exactly and executes no text as a formula."""

from __future__ import annotations

import csv
import io
import subprocess
from dataclasses import astuple
from pathlib import Path

import pytest

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab
from survey.results.crosstab.table import CrosstabRow
from survey.results.estimates.result import ResultCache
from survey.results.estimates.table import EstimateRow
from survey.results.exports.csv import column_names, to_csv
from survey.results.exports.xlsx import CodebookRow, crosstab_workbook, estimates_workbook
from survey.results.request import IntervalOptions
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY
from tests.results.hostile import TEXTS, hostile_rows

pytestmark = [pytest.mark.web, pytest.mark.security]

HOSTILE = {"Never": "=1+1", "Once": "+cmd|' /C calc'!A0", "Often": "@SUM(1;1)"}
CALLING = '-HYPERLINK("http://127.0.0.1:9/x")'

# 44 comma, 34 quote, 76 UTF-8, row 1, no formats, English, quoted fields are text, all sheets.
TO_CSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,1033,false,true,false,false,false,-1"
FROM_CSV = "CSV:44,34,76,1,,1033,false,true"


@pytest.fixture
def survey(store):
    toml = SMALL.replace('title = "A small survey"', f"title = '{CALLING}'")
    for label, hostile in HOSTILE.items():
        toml = toml.replace(f'label = "{label}"', f'label = "{hostile}"')
    published = publish(store, load(toml.encode(), "s.toml", Caps()), TODAY)
    add_released(store, published, 3000)
    return published


def through_office(office: str, file: Path) -> dict[str, list[list[str]]]:
    """Return each sheet of a file by name, as LibreOffice reads, computes and writes it."""
    out = file.parent / "out"
    command = [office, f"-env:UserInstallation={(file.parent / 'profile').as_uri()}"]
    if file.suffix == ".csv":
        command += [f"--infilter={FROM_CSV}"]
    command += ["--headless", "--convert-to", TO_CSV, "--outdir", str(out), str(file)]
    subprocess.run(command, check=True, capture_output=True, timeout=180)
    sheets = {}
    for converted in out.glob("*.csv"):
        text = converted.read_text(encoding="utf-8")
        sheets[converted.stem.removeprefix(f"{file.stem}-")] = list(csv.reader(io.StringIO(text)))
    return sheets


def is_equal(cell: str, value: object) -> bool:
    """Return whether a cell holds a value: a number up to its last digit, a text exactly."""
    if value is None:
        return cell == ""
    if isinstance(value, int | float):
        return float(cell) == pytest.approx(value, rel=1e-12)
    return cell in (value, f"'{value}")


def check(lines: list[list[str]], kind: type, rows: list) -> None:
    head, *cells = lines
    assert tuple(head) == column_names(kind)
    assert len(cells) == len(rows)
    for line, row in zip(cells, rows, strict=True):
        for cell, value in zip(line, astuple(row), strict=True):
            assert is_equal(cell, value), (cell, value)


def test_xlsx_libreoffice_reads_every_cell_of_the_estimates_exactly(
    office, store, survey, tmp_path
):
    result = ResultCache(store).result(survey)
    file = tmp_path / "estimates.xlsx"
    file.write_bytes(estimates_workbook(result))
    sheets = through_office(office, file)
    assert set(sheets) == {"estimates", "codebook", "methods"}
    check(sheets["estimates"], EstimateRow, result.rows)
    labels = {row[4] for row in sheets["codebook"]}
    assert {f"'{hostile}" for hostile in HOSTILE.values()} <= labels
    assert dict(sheets["methods"])["Survey"].startswith(f"'{CALLING}")


def test_xlsx_libreoffice_reads_every_cell_of_a_crosstab_exactly(office, store, survey, tmp_path):
    names = [question.id for question in survey.definition.questions]
    table = compute_crosstab(store, survey, CrosstabRequest(*names), IntervalOptions())
    file = tmp_path / "crosstab.xlsx"
    file.write_bytes(crosstab_workbook(table))
    sheets = through_office(office, file)
    check(sheets["crosstab"], CrosstabRow, table.rows)


@pytest.mark.parametrize("kind", ["estimates", "crosstab"])
def test_csv_libreoffice_reads_every_cell_exactly_and_runs_no_formula(
    office, store, survey, tmp_path, kind
):
    names = [question.id for question in survey.definition.questions]
    file = tmp_path / f"{kind}.csv"
    if kind == "estimates":
        rows, of = ResultCache(store).result(survey).rows, EstimateRow
    else:
        rows, of = (
            compute_crosstab(store, survey, CrosstabRequest(*names), IntervalOptions()).rows,
            CrosstabRow,
        )
    file.write_text(to_csv(rows, of), encoding="utf-8", newline="")
    (sheet,) = through_office(office, file).values()
    check(sheet, of, rows)
    assert not any(cell.startswith(("#", "Err:")) for line in sheet for cell in line)


def as_read(text: str, *, is_csv: bool) -> str:
    """Return a text as LibreOffice shows it: a line feed for \\r, and no NUL from a CSV."""
    text = text.replace("\r", "\n")
    return text.replace("\0", "") if is_csv else text


def test_xlsx_libreoffice_runs_no_formula_for_any_first_character(
    office, store, survey, tmp_path, monkeypatch
):
    monkeypatch.setattr("survey.results.exports.xlsx.codebook", lambda _: hostile_rows())
    file = tmp_path / "estimates.xlsx"
    file.write_bytes(estimates_workbook(ResultCache(store).result(survey)))
    _, *rows = through_office(office, file)["codebook"]
    for column in (1, 4):
        assert [row[column] for row in rows] == [as_read(f"'{t}", is_csv=False) for t in TEXTS]


def test_csv_libreoffice_runs_no_formula_for_any_first_character(office, tmp_path):
    file = tmp_path / "codebook.csv"
    file.write_text(to_csv(hostile_rows(), CodebookRow), encoding="utf-8", newline="")
    ((_, *rows),) = through_office(office, file).values()
    for column in (1, 4):
        assert [row[column] for row in rows] == [as_read(f"'{t}", is_csv=True) for t in TEXTS]
