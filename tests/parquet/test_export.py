"""Exports contain all released reports and nothing else, in complete files."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from survey.collect.publication import close
from survey.errors import ConflictError, StoreBusyError
from survey.notebook.files import read_parquet
from survey.parquet import export, export_reports, open_reports
from survey.store import StoredReport
from tests.conftest import SMALL, TODAY
from tests.parquet.reports import EVERY, fill, published, stored_codes
from tests.results.exports.test_report_table import estimates_of, released
from tests.results.exports.test_report_table import rows_of as csv_rows
from tests.surveys import EVERY_DESIGN, EVERY_TYPE, MATRIX, ROUTED_AND_DRAWN


def silent(n: int) -> None:
    """Ignore the progress."""


def rows_of(directory):
    """Return all parts of an export as one table."""
    names = json.loads((directory / export.MANIFEST).read_text("utf-8"))["parts"]
    return pa.concat_tables([pq.read_table(directory / name) for name in names])


def as_stored(question, answer) -> bytes:
    """Return a cell of a question's column as the bytes in the store."""
    if answer is None:
        return bytes(question.code_bytes)
    width = question.channel.code_bytes
    code = answer if isinstance(answer, bytes) else answer.to_bytes(width, "big")
    return b"\1" * question.nullable + code


def codes_of(block, questions, i: int) -> list[bytes]:
    """Return the codes of the i-th report of a block."""
    return [
        column.data[i * question.code_bytes : (i + 1) * question.code_bytes]
        for column, question in zip(block, questions, strict=True)
    ]


@pytest.mark.parametrize("name", ["every", "drawn"])
def test_an_export_contains_each_released_report_once_with_its_answers_together(
    store, name, request, tmp_path
):
    survey = request.getfixturevalue(name)
    export_reports(store, survey, tmp_path / "out", silent)
    questions = survey.definition.questions
    actual = sorted(
        (row["_stratum"], row["_bucket"], *(as_stored(q, row[q.id]) for q in questions))
        for row in rows_of(tmp_path / "out").to_pylist()
    )
    expected = sorted(
        (block[0].stratum, block[0].bucket, *codes_of(block, questions, i))
        for block in store.block_columns(survey.key, range(len(questions)))
        for i in range(block[0].n)
    )
    assert actual == expected


def test_integers_are_bytes_or_two_bytes_and_bit_strings_of_fixed_size(exported, every):
    schema = rows_of(exported).schema
    assert schema.field("choice").type == pa.uint8()
    assert schema.field("hours").type == pa.uint16()
    assert schema.field("bits").type == pa.binary(1)
    assert schema.field("long_sampled").type == pa.binary(6)
    assert schema.names == ["_stratum", "_bucket", *EVERY]


def test_a_pending_report_is_not_exported(store, every, tmp_path):
    rng = np.random.default_rng(1)
    codes = b"".join(stored_codes(q, 1, rng).tobytes() for q in every.definition.questions)
    assert store.add_reports([(every.key, StoredReport(bytes(16), "", codes))]) == [None]
    assert export_reports(store, every, tmp_path / "out", silent).n == 900
    assert len(rows_of(tmp_path / "out")) == 900


def test_the_definition_and_a_manifest_are_exported_with_the_reports(exported, every, store):
    assert (exported / "definition.json").read_bytes() == every.canonical
    manifest = json.loads((exported / "manifest.json").read_text("utf-8"))
    assert manifest["definition"] == every.sha256
    assert (manifest["n"], manifest["release"]) == (900, store.tally(every.key).release)
    assert sorted(p.name for p in exported.iterdir()) == sorted(
        ["codebook.csv", "definition.json", "manifest.json", *manifest["parts"]]
    )


def test_a_later_export_replaces_an_earlier_one(store, every, exported):
    fill(store, every, 100, "north", 9)
    close(store, every.slug, TODAY)
    (closed,) = store.versions(every.slug)
    manifest = export_reports(store, closed, exported, silent)
    assert (manifest.n, manifest.state) == (1000, "closed")
    assert len(rows_of(exported)) == 1000
    assert len(list(exported.glob("*.parquet"))) == len(manifest.parts)


def test_a_survey_without_reports_can_be_exported(store, tmp_path):
    survey = published(store, ["choice"], slug="nobody")
    assert export_reports(store, survey, tmp_path / "out", silent).n == 0
    assert len(rows_of(tmp_path / "out")) == 0


def test_blocks_become_row_groups_of_parts_of_limited_size(store, every, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "BLOCKS_PER_PART", 1)
    progress: list[int] = []
    manifest = export_reports(store, every, tmp_path / "out", progress.append)
    assert manifest.parts == (export.part_name(3, 0), export.part_name(3, 1))
    assert progress == [500, 400]


@pytest.mark.parametrize("name", ["notes.txt", "release-notes.parquet", "mine.partial"])
def test_a_directory_with_anything_else_in_it_is_refused(store, every, exported, name):
    (exported / name).write_text("mine", encoding="utf-8")
    with pytest.raises(ConflictError, match=f"contains {name}; choose an empty"):
        export_reports(store, every, exported, silent)
    assert (exported / name).read_text(encoding="utf-8") == "mine"


def test_an_export_of_another_survey_is_not_replaced(store, exported, drawn):
    with pytest.raises(ConflictError, match="contains every version 1, not drawn version 1"):
        export_reports(store, drawn, exported, silent)
    assert len(rows_of(exported)) == 900


def test_an_interrupted_export_leaves_the_earlier_one_and_the_next_deletes_its_files(
    store, every, exported, monkeypatch
):
    fill(store, every, 100, "south", 9)
    written: list[int] = []

    def fail(n: int) -> None:
        written.append(n)
        if len(written) == 2:
            raise StoreBusyError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(export, "BLOCKS_PER_PART", 1)
        with pytest.raises(StoreBusyError):
            export_reports(store, every, exported, fail)
    assert any(p.name.endswith(".partial") for p in exported.iterdir())
    assert len(rows_of(exported)) == 900
    manifest = export_reports(store, every, exported, silent)
    assert len(rows_of(exported)) == 1000
    assert {p.name for p in exported.iterdir()} == {*export.DOCUMENTS, *manifest.parts}


def test_a_release_during_the_start_of_an_export_is_exported_completely_or_not_at_all(
    store, every, tmp_path, monkeypatch
):
    tallies, tally = [], store.tally

    def releasing(survey):
        tallies.append(survey)
        if len(tallies) == 2:
            fill(store, every, 100, "south", 9)
        return tally(survey)

    monkeypatch.setattr(store, "tally", releasing)
    manifest = export_reports(store, every, tmp_path / "out", silent)
    assert (manifest.n, manifest.release, len(tallies)) == (1000, 4, 4)
    assert len(rows_of(tmp_path / "out")) == 1000


@pytest.mark.parametrize("toml", [EVERY_TYPE, EVERY_DESIGN, ROUTED_AND_DRAWN, MATRIX])
def test_the_average_that_duckdb_computes_of_each_debiased_column_is_the_published_figure(
    store, toml, tmp_path
):
    survey, out = released(store, toml), tmp_path / "out"
    export_reports(store, survey, out, silent, with_debiased=True)
    variables = {
        row["variable"]: (row["question_id"], row["content"], row["option_id"])
        for row in csv_rows((out / export.CODEBOOK).read_bytes())
        if row["content"] in ("share", "mean", "mean rank")
    }
    parquet = duckdb.read_parquet(str(out / "*.parquet"))
    averages = parquet.aggregate(", ".join(f'avg("{name}")' for name in variables)).fetchall()[0]
    estimates = estimates_of(store, survey)
    assert set(variables.values()) == estimates.keys()
    for about, average in zip(variables.values(), averages, strict=True):
        assert f"{average + 0.0:.6f}" == f"{estimates[about] + 0.0:.6f}", about


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # called by Ibis 12
def test_debiased_columns_have_names_of_their_own_and_leave_the_codes_and_counts_as_they_were(
    store, tmp_path
):
    toml = SMALL.replace('"fell_asleep"', '"pressure_share_never"')
    survey, out = released(store, toml), tmp_path / "out"
    export_reports(store, survey, out, silent)
    plain = rows_of(out)
    export_reports(store, survey, out, silent, with_debiased=True)
    wide = rows_of(out)
    assert wide.select(plain.column_names) == plain
    assert "pressure_share_never_2" in wide.column_names
    codebook = csv_rows((out / export.CODEBOOK).read_bytes())
    assert list(dict.fromkeys(row["variable"] for row in codebook)) == wide.column_names
    with open_reports(out, "duckdb") as reports:
        assert reports.tally() == store.tally(survey.key)
    assert read_parquet(out).tally(0) == store.tally(survey.key)
