"""Every engine counts an export like the store and names the mistakes of an export."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from survey.errors import CountsError, NotFoundError, SettingsError, StoreError, SurveyError
from survey.estimator import crosstab
from survey.parquet import export_reports, open_reports
from survey.parquet.export import column_of, part_name
from tests.conftest import long_unless
from tests.parquet.reports import published

# Ibis 12 calls functions that newer engines and pandas deprecate.
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.mark.web
@pytest.mark.parametrize("name", ["every", "drawn"])
def test_the_tallies_of_an_export_match_the_store(store, name, request, tmp_path, engine):
    survey = request.getfixturevalue(name)
    export_reports(store, survey, tmp_path / "out", lambda n: None)
    with open_reports(tmp_path / "out", engine) as reports:
        assert reports.tallies() == store.tallies(survey.key)
        assert reports.tally() == store.tally(survey.key)
        assert reports.survey.definition == survey.definition


def supported(question, stored: bytes) -> np.ndarray:
    """Return the options that each report supports, shape (n, options), without an engine."""
    codes = np.frombuffer(stored, np.uint8).reshape(-1, question.code_bytes)
    is_asked = codes[:, 0] == 1 if question.nullable else np.ones(len(codes), dtype=bool)
    codes = codes[:, 1:] if question.nullable else codes
    n_options = question.channel.counted
    if question.channel.report_bits:
        members = np.unpackbits(codes, axis=1)[:, :n_options].astype(np.int64)
    else:
        values = codes.astype(np.int64) @ (256 ** np.arange(codes.shape[1])[::-1])
        members = np.eye(n_options, dtype=np.int64)[values]
    return members * is_asked[:, None]


@pytest.mark.web
@pytest.mark.parametrize("name", long_unless(["drawn"], ["every", "drawn"]))
def test_joint_counts_match_the_reports_for_every_two_kinds(store, name, request, tmp_path, engine):
    survey = request.getfixturevalue(name)
    export_reports(store, survey, tmp_path / "out", lambda n: None)
    kinds = ["choice", "sets", "hours", "sampled", "long_bits"]
    questions = survey.definition.questions
    place = {question.id: i for i, question in enumerate(questions)}
    with open_reports(tmp_path / "out", engine) as reports:
        for a, b in combinations(kinds, 2):
            expected = sum(
                supported(questions[place[a]], first.data).T
                @ supported(questions[place[b]], second.data)
                for first, second in store.block_columns(survey.key, [place[a], place[b]])
            )
            actual = reports.joint_counts(a, b)
            assert np.array_equal(actual, expected), (a, b)
            assert np.array_equal(reports.joint_counts(b, a), expected.T), (b, a)


def test_the_cross_tab_accepts_joint_counts(exported, every):
    channels = {question.id: question.channel for question in every.definition.questions}
    with open_reports(exported, "duckdb") as reports:
        for name in ("sets", "mood", "wave"):
            counts = reports.joint_counts("choice", name)
            table = crosstab(counts, [channels["choice"], channels[name]])
            assert table.n == 900
            assert table.estimate.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("pair", "refusal"),
    [
        (("choice", "choice"), "a cross-tab needs two different questions"),
        (("choice", "none"), 'has no question "none"'),
    ],
)
def test_joint_counts_need_two_different_known_questions(exported, pair, refusal):
    with (
        open_reports(exported, "duckdb") as reports,
        pytest.raises((CountsError, NotFoundError), match=refusal),
    ):
        reports.joint_counts(*pair)


def test_an_export_without_reports_has_counts_of_zero(store, tmp_path, engine):
    survey = published(store, ["choice", "long_sampled"], slug="nobody")
    export_reports(store, survey, tmp_path / "out", lambda n: None)
    with open_reports(tmp_path / "out", engine) as reports:
        assert reports.tally() == store.tally(survey.key)


def part_of(directory):
    (part,) = directory.glob("*.parquet")
    return part


def with_column(directory, name: str, values: pa.Array) -> None:
    """Replace one column of an export."""
    part = part_of(directory)
    table = pq.read_table(part)
    place = table.schema.get_field_index(name)
    pq.write_table(table.set_column(place, name, values), part)


def codes(every, name: str, first: bytes) -> pa.Array:
    """Return a column of 900 equal codes except the first."""
    (question,) = (q for q in every.definition.questions if q.id == name)
    usual = {"long_sets": "d", "sampled": "s", "long_sampled": "s"}.get(name)
    n_options, ones = question.channel.counted, 0
    if usual == "d":
        ones = question.channel.d
    elif usual == "s":
        ones = question.channel.sampled
    bits = np.zeros(n_options, dtype=np.uint8)
    bits[:ones] = 1
    usual_code = np.packbits(bits).tobytes() if question.channel.report_bits else bytes(len(first))
    return column_of(question, np.frombuffer(first + usual_code * 899, np.uint8))


@pytest.mark.parametrize(
    ("name", "first", "refusal"),
    [
        ("choice", b"\x04", "column choice: code 4 must be from 0 to 3"),
        ("hours", b"\xff\xff", "column hours: code 65535 must be from 0 to"),
        ("bits", b"\x01", "column bits: byte 0 is 01; a code is 5 bits"),
        ("long_bits", b"\x00\x00\x01", "column long_bits: byte 2 is 01; a code is 23 bits"),
        ("long_sets", b"\x80\x00\x00", "column long_sets: 1 codes are not valid for its subset"),
        ("sampled", b"\xf8\x00", "column sampled: 1 codes are not valid for its bit_vector"),
        # The report names an option that its own list of asked options lacks.
        ("sampled", None, "column sampled: 1 codes are not valid for its bit_vector"),
        ("long_sampled", bytes(6), "column long_sampled: 1 codes are not valid for its bit_vector"),
    ],
)
def test_an_invalid_code_is_rejected_with_its_column(exported, every, engine, name, first, refusal):
    if first is None:
        (question,) = (q for q in every.definition.questions if q.id == name)
        m, sampled = question.channel.m, question.channel.sampled
        bits = np.zeros(2 * m, dtype=np.uint8)
        bits[:sampled] = 1
        bits[2 * m - 1] = 1
        assert sampled < m
        first = np.packbits(bits).tobytes()
    with_column(exported, name, codes(every, name, first))
    with open_reports(exported, engine) as reports, pytest.raises(CountsError, match=refusal):
        reports.tally()


def test_a_missing_code_is_rejected_unless_the_survey_samples_its_questions(exported):
    choice = pa.array([None, *[0] * 899], pa.uint8())
    with_column(exported, "choice", choice)
    with open_reports(exported, "duckdb") as reports, pytest.raises(CountsError, match="1 codes"):
        reports.tally()


def change_manifest(directory, **changed: object) -> None:
    file = directory / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **changed}), encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "refusal"),
    [
        (lambda d: (d / "manifest.json").unlink(), r"is not an export: it has no manifest\.json"),
        (lambda d: (d / "manifest.json").write_text("{"), r"manifest\.json is not JSON"),
        (lambda d: (d / "manifest.json").write_text("[]"), "a manifest of format 1"),
        (lambda d: change_manifest(d, n="many"), "must hold slug, version"),
        (lambda d: change_manifest(d, more=1), "must hold slug, version"),
        (lambda d: change_manifest(d, changed="never"), "must hold slug, version"),
        (lambda d: change_manifest(d, state="gone"), "must hold slug, version"),
        (lambda d: change_manifest(d, parts=["../release-000001-00000.parquet"]), "must hold slug"),
        (lambda d: change_manifest(d, parts=[part_name(9, 0)]), r"-00000\.parquet is missing"),
        (lambda d: change_manifest(d, n=901), "contains 900 reports; its manifest says 901"),
        (lambda d: change_manifest(d, definition="0" * 64), r"definition\.json has the SHA-256"),
        (lambda d: change_manifest(d, slug="other"), "is every version 1; the manifest says other"),
        (lambda d: (d / "definition.json").unlink(), r"definition\.json is missing"),
        (lambda d: (d / "definition.json").write_text("{}"), "has the SHA-256 44136fa355b3678a"),
        (lambda d: part_of(d).write_bytes(b"PAR1 and no more"), "is not Parquet"),
        (lambda d: part_of(d).unlink(), r"\.parquet is missing"),
        (
            lambda d: with_column(d, "choice", pa.array([0] * 900)),
            "column choice is int64, not uint8",
        ),
        (
            lambda d: pq.write_table(pq.read_table(part_of(d)).drop(["mood"]), part_of(d)),
            "has no column mood",
        ),
    ],
)
def test_an_incomplete_export_is_rejected_by_name(exported, spoil, refusal):
    spoil(exported)
    with (
        pytest.raises((StoreError, NotFoundError), match=refusal),
        open_reports(exported, "duckdb"),
    ):
        pass


def test_the_engine_names_a_damaged_part(exported, engine):
    part = part_of(exported)
    content = bytearray(part.read_bytes())
    content[4:600] = bytes(596)
    part.write_bytes(content)
    with pytest.raises(SurveyError, match=engine), open_reports(exported, engine) as reports:
        reports.tally()


def test_an_unknown_engine_is_rejected(exported):
    with (
        pytest.raises(SettingsError, match="'awk' must be one of duckdb, pyspark"),
        open_reports(exported, "awk"),
    ):
        pass


@pytest.mark.parametrize("name", ["choice=1", "_stratum=x"])
def test_a_folder_named_like_a_column_changes_no_count(store, every, tmp_path, engine, name):
    export_reports(store, every, tmp_path / name, lambda n: None)
    with open_reports(tmp_path / name, engine) as reports:
        assert reports.tallies() == store.tallies(every.key)


@pytest.mark.parametrize("name", ["wave[1]", "wave*", "a{b}", "what?"])
def test_a_path_that_engines_read_as_a_pattern_is_rejected(store, every, exported, tmp_path, name):
    with pytest.raises(SettingsError, match="as patterns; choose another name"):
        export_reports(store, every, tmp_path / name, lambda n: None)
    exported.rename(tmp_path / name)
    with (
        pytest.raises(SettingsError, match="as patterns"),
        open_reports(tmp_path / name, "duckdb"),
    ):
        pass


def test_only_the_owner_may_read_an_export(store, every, tmp_path):
    export_reports(store, every, tmp_path / "out", lambda n: None)
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0
