"""Files of released reports, read for notebooks, give the numbers of the dashboard."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import asdict
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import survey as project
from survey.collect.publication import publish
from survey.errors import (
    ChannelError,
    CountsError,
    DesignError,
    MissingPartError,
    NotFoundError,
    StoreError,
)
from survey.parquet import export_reports
from survey.questionnaire.loading import load
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab
from survey.results.estimates.result import ResultCache
from survey.results.exports.microdata import write_microdata
from survey.results.groups import tallies_by_link
from survey.results.request import DEFAULT_OPTIONS, IntervalOptions
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY
from tests.parquet.reports import fill
from tests.surveys import EVERY_TYPE

SAMPLED = SMALL.replace('"3/4"', '"3/4"\nquestions_per_person = 1')


def publish_text(store, text):
    return publish(store, load(text.encode(), "s.toml", Caps()), TODAY)


@pytest.fixture
def every_type(store):
    survey = publish_text(store, EVERY_TYPE.replace("epsilon = 0.5", "epsilon = 2.5"))
    add_released(store, survey, 400, stratum="north")
    add_released(store, survey, 300, stratum="=south")
    return survey


def write(store, survey, directory: Path) -> Path:
    path = directory / "reports.zip"
    with path.open("wb") as file:
        write_microdata(file, store, survey)
    return path


@pytest.fixture
def read(store, tmp_path):
    """Return a function that exports a survey as ZIP and as Parquet, and reads both."""

    def read_both(survey):
        export_reports(store, survey, tmp_path / "parquet", lambda n: None)
        zipped = project.read_microdata(write(store, survey, tmp_path))
        return zipped, project.read_parquet(tmp_path / "parquet")

    return read_both


def altered(path: Path, member: str, content: bytes | None) -> Path:
    """Copy a ZIP with other content of one member, or without the member."""
    target = path.with_name("altered.zip")
    with ZipFile(path) as source, ZipFile(target, "w") as copy:
        for name in source.namelist():
            if name != member:
                copy.writestr(name, source.read(name))
        if content is not None:
            copy.writestr(member, content)
    return target


def numbers(row):
    return {k: v for k, v in asdict(row).items() if k != "generated_at"}


@pytest.mark.web
def test_the_counts_of_either_file_are_those_of_the_store(store, every_type, read):
    for data in read(every_type):
        assert data.tally(0).counts == store.tally(every_type.key).counts
        assert data.tallies(0).keys() == store.tallies(every_type.key).keys()
        for cell, tally in store.tallies(every_type.key).items():
            assert data.tallies(0)[cell].counts == tally.counts


@pytest.mark.web
def test_all_rows_of_the_results_page_follow_from_the_file(store, every_type, read):
    data, _ = read(every_type)
    page = ResultCache(store).result(every_type)
    rows = data.results().rows
    assert list(map(numbers, rows)) == list(map(numbers, page.rows))
    assert any(row.estimate is not None for row in rows)


def test_questions_that_only_some_are_asked_give_the_numbers_of_the_page(store, read):
    survey = publish_text(store, SAMPLED)
    fill(store, survey, 600, drawn=0.5)
    for data in read(survey):
        page = ResultCache(store).result(survey)
        for options in ({}, {"level": 0.9, "simultaneous": True}):
            shown = ResultCache(store).result(survey, IntervalOptions(**options))
            assert [*map(numbers, data.results(**options).rows)] == [*map(numbers, shown.rows)]
        for question in survey.definition.questions:
            unasked = int((data.reports[question.id] == -1).sum())
            assert data.n - unasked == page.question(question.id).n_asked < data.n


@pytest.mark.web
def test_shares_of_each_group_have_labels_and_the_numbers_of_the_page(store, every_type, read):
    tallies = tallies_by_link(store, every_type)
    place = [q.id for q in every_type.definition.questions].index("reasons")
    for data in read(every_type):
        whole = data.proportions("reasons")
        page = ResultCache(store).result(every_type).question("reasons")
        assert whole.estimate.tolist() == [row.estimate for row in page.shares]
        assert whole.to_pandas().index.tolist() == [row.option_label for row in page.shares]
        groups = data.proportions("reasons", by="stratum")
        assert list(groups) == list(tallies) == ["north", "=south"]
        for name, tally in tallies.items():
            assert groups[name].n == tally.n_asked[place]
        frame = groups.to_pandas()
        assert frame.loc["=south"]["estimate"].tolist() == groups["=south"].estimate.tolist()
        assert frame.index.names == ["stratum", "option"]


@pytest.mark.web
def test_means_and_tables_are_those_of_the_page(store, every_type, read):
    mean_row = next(
        row
        for row in ResultCache(store).result(every_type).question("hours").rows
        if row.statistic == "mean"
    )
    pair = ["mood", "tools"]
    expected = compute_crosstab(store, every_type, CrosstabRequest(*pair), DEFAULT_OPTIONS).table
    for data in read(every_type):
        mean = data.mean("hours")
        assert (mean.estimate, mean.conf_low) == (mean_row.estimate, mean_row.conf_low)
        means = data.mean("hours", by="stratum")
        assert means.to_pandas()["estimate"].to_dict() == {
            name: mean.estimate for name, mean in means.items()
        }
        assert means.plot().to_dict()["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 80]
        table = data.crosstab(*pair)
        assert table.estimate.tolist() == expected.estimate.tolist()
        assert table.conf_high.tolist() == expected.conf_high.tolist()
        assert table.to_pandas().index.names == pair
        with pytest.raises(ChannelError, match="reasons has no mean"):
            data.mean("reasons")


def test_reports_as_a_frame_name_answers_and_bits(store, small, read):
    add_released(store, small, 300)
    (data, _) = read(small)
    frame = data.to_pandas()
    assert list(frame.columns) == ["stratum", "bucket", "fell_asleep", "pressure"]
    table = data.to_arrow()
    assert table.column_names == list(frame.columns)
    assert table["pressure"].to_pylist() == frame["pressure"].tolist()
    assert "Did you fall asleep at work?" in data._repr_html_()
    labels = [option.label for option in small.definition.questions[1].options]
    counts = frame["pressure"].value_counts()
    assert counts.reindex(labels).tolist() == list(store.tally(small.key).counts[1])
    from survey.estimator import proportions

    by_hand = proportions(counts, data.channels["pressure"], labels=labels)
    assert by_hand.estimate.tolist() == data.proportions("pressure").estimate.tolist()


def test_questions_named_like_the_groups_get_a_number_in_the_frame(store, read):
    text = SMALL.replace('"pressure"', '"stratum"').replace('"fell_asleep"', '"stratum_2"')
    survey = publish_text(store, text)
    add_released(store, survey, 100, stratum="north")
    (data, _) = read(survey)
    frame = data.to_pandas()
    assert list(frame.columns) == ["stratum", "bucket", "stratum_2", "stratum_3"]
    assert set(frame["stratum"]) == {"north"}
    assert frame["stratum_3"].value_counts().sum() == 100


def test_each_bit_of_a_multiple_choice_is_a_column_of_the_frame(store, read):
    survey = publish_text(store, EVERY_TYPE)
    add_released(store, survey, 100)
    for data in read(survey):
        frame = data.to_pandas()
        bits = [name for name in frame if name.startswith("reasons.")]
        assert frame[bits].sum().tolist() == data.tally(0).counts[0]
        assert len(bits) == data.channels["reasons"].report_bits > 0


def test_a_question_that_was_not_asked_is_missing_in_the_frame(store, read):
    survey = publish_text(store, SAMPLED)
    fill(store, survey, 200, drawn=0.5)
    (data, _) = read(survey)
    missing = data.to_pandas()["pressure"].isna().sum()
    assert missing == (data.reports["pressure"] == -1).sum() > 0


def test_unknown_files_are_ignored_and_wrong_ones_are_named(store, small, tmp_path):
    add_released(store, small, 50)
    path = write(store, small, tmp_path)
    with ZipFile(path) as archive:
        rows = archive.read("reports.csv").decode()
        definition = archive.read("definition.json")
    extended = altered(path, "reports.sav", b"\x00not read")
    assert project.read_microdata(extended).n == 50
    for member, content, message in (
        ("reports.csv", None, "contains no reports.csv"),
        ("channels.json", b"[]", "channels.json does not describe a survey"),
        ("channels.json", b"[" * 200_000, "channels.json does not describe a survey"),
        ("definition.json", definition + b" ", "definition.json has the SHA-256"),
        ("reports.csv", rows.replace("pressure", "stress", 1).encode(), "must have the columns"),
        ("reports.csv", rows.rsplit(",", 1)[0].encode(), "row 51: 3 cells, not 4"),
        ("reports.csv", (rows.rsplit(",", 1)[0] + ",7").encode(), "row 51: pressure = '7'"),
        ("reports.csv", (rows.rsplit(",", 1)[0] + ",").encode(), "row 51: pressure = ''"),
        ("reports.csv", b"\xff\xfe", "not a ZIP of microdata"),
        ("reports.csv", rows.encode() + b"1,1," * 2**19, "row 52: 524289 cells"),
    ):
        with pytest.raises(StoreError, match=message):
            project.read_microdata(altered(path, member, content))
    with pytest.raises(StoreError, match="not a ZIP"):
        project.read_microdata(io.BytesIO(b"PK nothing"))
    with pytest.raises(NotFoundError, match=r"missing\.zip does not exist"):
        project.read_microdata(tmp_path / "missing.zip")


def test_wrong_requests_name_what_would_be_right(store, small, read):
    add_released(store, small, 50)
    data, _ = read(small)
    for error, request, message in (
        (NotFoundError, lambda: data.proportions("sleep"), "choose one of fell_asleep, pressure"),
        (DesignError, lambda: data.proportions("pressure", by="age"), "'stratum' or 'bucket'"),
        (DesignError, lambda: data.proportions("pressure", levels=1), "among level, interval"),
        (DesignError, lambda: data.proportions("pressure", level=2), "level = 2 must be from"),
        (DesignError, lambda: data.proportions("pressure", base="x"), "'all' or 'answered'"),
        (ChannelError, lambda: data.proportions("pressure", base="answered"), "no shares among"),
        (CountsError, lambda: data.crosstab("pressure", "pressure"), "two different questions"),
        (CountsError, lambda: data.proportions("pressure", by="bucket"), "not record the bucket"),
    ):
        with pytest.raises(error, match=message):
            request()


def test_charts_and_html_of_a_results_page_leave_out_suppressed_rows(store, small, read):
    add_released(store, small, 3000)
    table = read(small)[0].results()
    marks = table.plot("fell_asleep").to_dict()["data"]["values"]
    shares = [row for row in table.question("fell_asleep").rows if row.base == "all"]
    assert [mark["estimate"] for mark in marks] == [row.estimate for row in shares]
    assert "Did you fall asleep at work?" in table._repr_html_()
    assert table.to_pandas()["estimate"].notna().any()
    assert table.to_arrow().num_rows == len(table.rows)


def test_parquet_needs_its_extra_and_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingPartError, match=r"ldp-survey\[notebook\]"):
        project.read_parquet(tmp_path)


def test_a_wrong_code_in_a_parquet_file_is_named(store, small, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    add_released(store, small, 50)
    export_reports(store, small, tmp_path / "out", lambda n: None)
    (part,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(part)
    wrong = pa.array(np.full(50, 9, dtype=np.uint8))
    pq.write_table(table.set_column(table.column_names.index("pressure"), "pressure", wrong), part)
    with pytest.raises(StoreError, match="column pressure: must be an integer from 0 to 2"):
        project.read_parquet(tmp_path / "out")


def test_the_rows_of_the_file_are_those_of_the_frame(store, small, tmp_path):
    add_released(store, small, 100)
    path = write(store, small, tmp_path)
    with ZipFile(path) as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("reports.csv").decode())))
    data = project.read_microdata(path)
    assert data.reports["pressure"].tolist() == [int(row["pressure"]) for row in rows]
