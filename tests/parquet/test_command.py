"""`survey export --parquet`, and `survey estimate --parquet` with the output of the store."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from survey.cli import main
from tests.conftest import long_unless
from tests.parquet.reports import fill, published
from tests.parquet.test_counting import pytestmark  # noqa: F401  the same engines


@pytest.fixture
def run(monkeypatch, settings):
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    return lambda *arguments: CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def mixed(store):
    """Return a survey of every kind of channel except the fine grids, whose estimates are slow."""
    survey = published(store, ["choice", "sets", "coins", "bits", "sampled", "mood"], slug="mixed")
    fill(store, survey, 400, "north")
    fill(store, survey, 200, "south", 6)
    return survey


def without_time(form: str, output: str) -> object:
    """Return the rows without their time."""
    if form == "--json":
        rows = json.loads(output)
    elif form == "--csv":
        rows = list(csv.DictReader(io.StringIO(output)))
    else:
        return output
    return [{**row, "generated_at": ""} for row in rows]


def test_an_export_is_estimated_byte_for_byte_as_its_survey(run, mixed, tmp_path, engine):
    out = tmp_path / "out"
    response = run("export", mixed.slug, "--parquet", out)
    assert response.output == f"wrote 600 released reports to {out} in 1 file\n"
    for options in ([], ["--level", "0.9", "--simultaneous"]):
        from_store = run("estimate", mixed.slug, *options)
        from_export = run("estimate", "--parquet", out, "--engine", engine, *options)
        assert from_store.exit_code == from_export.exit_code == 0, from_export.output
        assert from_export.stdout_bytes == from_store.stdout_bytes


@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_rows_for_programs_differ_only_in_their_time(run, mixed, tmp_path, form):
    run("export", mixed.slug, "--parquet", tmp_path / "out")
    from_store = run("estimate", mixed.slug, form)
    from_export = run("estimate", "--parquet", tmp_path / "out", form)
    assert without_time(form, from_export.stdout) == without_time(form, from_store.stdout)


def test_an_earlier_version_can_be_exported(run, store, tmp_path):
    first = published(store, ["choice"], slug="twice")
    fill(store, first, 40)
    published(store, ["mood"], slug="twice")
    response = run("export", "twice", "--parquet", tmp_path / "out", "--version", 1)
    assert "wrote 40 released reports" in response.output
    assert "version 1" in run("estimate", "--parquet", tmp_path / "out").output


@pytest.mark.parametrize(
    "arguments",
    [
        ["estimate"],
        ["estimate", "every", "--parquet", "out"],
        ["estimate", "every", "--engine", "duckdb"],
        ["estimate", "--parquet", "out", "--version", "1"],
        ["export", "every", "--parquet", "out", "--output", "out.csv"],
        ["export", "every", "--parquet", "out", "--level", "0.9"],
        ["export", "every", "--debiased", "--microdata", "out.zip"],
    ],
)
def test_options_that_exclude_each_other_are_a_usage_error(run, arguments):
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["export", "none", "--parquet", "out"], 'no survey "none"'),
        (["export", "every", "--parquet", "/dev/null"], "/dev/null"),
        (["estimate", "--parquet", "nowhere"], "nowhere is not an export"),
        (["estimate", "--parquet", "nowhere", "--engine", "awk"], "must be one of duckdb, pyspark"),
        (["estimate", "--parquet", "nowhere", "--level", "95"], "level = 95"),
    ],
)
def test_an_error_is_one_clear_line(run, every, arguments, refusal):
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert len(refused.stderr.splitlines()) == 1
    assert refusal in refused.stderr


WITHOUT = [
    ("pyarrow", ["export", "every", "--parquet", "{}/new"], "parquet"),
    ("pyarrow", ["estimate", "--parquet", "{}/exported"], "parquet"),
    ("ibis", ["estimate", "--parquet", "{}/exported"], "parquet"),
    ("duckdb", ["estimate", "--parquet", "{}/exported", "--engine", "duckdb"], "parquet"),
    ("pyspark", ["estimate", "--parquet", "{}/exported", "--engine", "pyspark"], "scale"),
]
"""A missing module, a command that needs it, and the extra that installs it."""


@pytest.mark.parametrize("case", long_unless(WITHOUT[2:3], WITHOUT), ids=str)
def test_a_missing_extra_is_one_line_that_names_it(store, settings, exported, tmp_path, case):
    module, arguments, extra = case
    without = f"import sys; sys.modules[{module!r}] = None; from survey.cli import main; main()"
    refused = subprocess.run(
        [sys.executable, "-c", without, *(argument.format(tmp_path) for argument in arguments)],
        env={**os.environ, "SURVEY_DATABASE": settings.database},
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert f"pip install 'ldp-survey[{extra}]'" in refused.stderr
