"""Editors can download released reports after an explanation; every download is logged."""

from __future__ import annotations

import csv
import io
import sys
from zipfile import ZipFile

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.research.downloads import DOWNLOADS
from survey.results.exports.microdata import write_microdata
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import EMAIL, TODAY
from tests.web.researchers import send, sign_in

PAGE = "/research/surveys/small/1/microdata"
DOCUMENTS = {
    *("README.txt", "channels.json", "channels.csv", "values.csv", "codebook.xml"),
    "definition.json",
}


@pytest.fixture
def editor(client, researcher, small):
    assert sign_in(client).status_code == 302
    return client


def members_of(answer) -> dict[str, bytes]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/zip"
    content = answer.data
    answer.close()
    with ZipFile(io.BytesIO(content)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def test_the_page_explains_why_reports_may_be_published_and_the_consequences(editor, store, small):
    add_released(store, small, 100)
    page = editor.get(PAGE)
    for statement in ("100", "randomized on a device", "by a factor of at most 36", "take back"):
        assert statement in page.text
    # Its report is weakly protected, so the page does not say that no row proves an answer.
    assert "no row proves" not in page.text


HEAD = 'slug = "night"\ntitle = "Nights"\nprefer_not_to_say = false\n'
QUESTION = '[[questions]]\nid = "{0}"\ntype = "yes_no"\ntext = "{0}?"\ntruth_probability = "{1}"\n'
PARTLY_WEAK_SURVEYS = {
    "a weak question": (QUESTION.format("slept", "12/13"), "12", "weak"),
    "a weak topic": (
        "".join(QUESTION.format(name, "0.78") + 'topic = "Nights"\n' for name in ("slept", "hurt")),
        "13",
        "weak",
    ),
    "two questions": (
        "".join(QUESTION.format(name, "0.78") for name in ("slept", "hurt")),
        "13",
        "moderate",
    ),
}


@pytest.mark.parametrize(
    ("questions", "factor", "grade"), PARTLY_WEAK_SURVEYS.values(), ids=PARTLY_WEAK_SURVEYS
)
def test_every_page_and_file_has_the_grade_of_a_report_that_is_weak_only_in_part(
    client, store, researcher, questions, factor, grade
):
    survey = publish(store, load((HEAD + questions).encode(), "night.toml", Caps()), TODAY)
    add_released(store, survey, 100)
    sign_in(client)
    base, is_weak = "/research/surveys/night/1", grade == "weak"
    page, dashboard = (client.get(base + name).text for name in ("/microdata", ""))
    readme = members_of(send(client, f"{base}/microdata", form="csv"))["README.txt"].decode()
    for text in (page, dashboard, readme):
        assert f"({grade})" in text
        assert f"at most {factor}. A" in " ".join(text.split())
    assert f"({grade})" in client.get("/research/").text
    for text in (page, dashboard):
        assert ("only weakly" in text) == is_weak
    assert ("no row proves an answer" in page) != is_weak
    assert ("A report never proves an answer" in readme) != is_weak


def test_the_file_has_a_row_for_each_released_report(editor, store, small):
    add_released(store, small, 100)
    members = members_of(send(editor, PAGE, form="csv"))
    assert set(members) == {*DOCUMENTS, "reports.csv"}
    rows = list(csv.reader(io.StringIO(members["reports.csv"].decode())))
    assert len(rows) == 101


def test_parquet_contains_the_same_reports(editor, store, small, tmp_path):
    add_released(store, small, 100)
    members = members_of(send(editor, PAGE, form="parquet"))
    assert {*DOCUMENTS, "manifest.json"} <= set(members)
    (part,) = (name for name in members if name.endswith(".parquet"))
    table = pq.read_table(io.BytesIO(members[part]))
    assert table.num_rows == 100
    codebook = list(csv.DictReader(io.StringIO(members["codebook.csv"].decode())))
    assert list(dict.fromkeys(row["variable"] for row in codebook)) == table.column_names
    labels = [row["code_label"] for row in codebook if row["variable"] == "pressure"]
    assert labels == [option.label for option in small.definition.questions[1].options]
    rows = list(
        csv.DictReader(
            io.StringIO(members_of(send(editor, PAGE, form="csv"))["reports.csv"].decode())
        )
    )
    names = [question.id for question in small.definition.questions]
    in_parquet = sorted(tuple(str(row[name]) for name in names) for row in table.to_pylist())
    assert in_parquet == sorted(tuple(row[name] for name in names) for row in rows)


def test_the_page_offers_every_format_with_a_sentence_and_each_file_has_the_documents(
    editor, store, small
):
    add_released(store, small, 100)
    page = editor.get(PAGE).text
    for name, form in DOWNLOADS.items():
        assert f'value="{name}"' in page
        assert form.description in page
        members = members_of(send(editor, PAGE, form=name))
        assert set(members) >= DOCUMENTS
        assert any(member.startswith(("reports.", "release-")) for member in members)


@pytest.mark.security
def test_each_download_is_recorded_in_the_activity_log(editor, store, small):
    add_released(store, small, 100)
    members_of(send(editor, PAGE, form="csv"))
    last = store.actions("small", 1)[0]
    assert (last.actor, last.event) == (EMAIL, "downloaded reports")
    assert last.detail == "version 1, 100 as csv"


@pytest.mark.security
def test_opening_the_page_downloads_nothing_and_records_nothing(editor, store, small):
    add_released(store, small, 100)
    before = len(store.actions("small", 100))
    assert editor.get(PAGE).headers["Content-Type"].startswith("text/html")
    assert len(store.actions("small", 100)) == before


def test_before_the_first_release_the_page_says_that_there_is_nothing_to_download(editor):
    page = editor.get(PAGE)
    assert "No responses have been released yet" in page.text
    assert "<form class" not in page.text
    response = send(editor, PAGE, page="/research/account", form="csv")
    assert response.status_code == 422
    assert "nothing to download" in response.text


@pytest.mark.parametrize("form", ["xml", ""])
def test_an_unknown_format_is_rejected_beside_its_field(editor, store, small, form):
    add_released(store, small, 100)
    response = send(editor, PAGE, form=form)
    assert response.status_code == 422
    assert 'class="choices formats wrong"' in response.text


def test_the_command_writes_the_same_file_readable_by_its_owner_only(
    store, small, settings, tmp_path, monkeypatch
):
    add_released(store, small, 60)
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    file = tmp_path / "reports.zip"
    result = CliRunner().invoke(main, ["export", "small", "--microdata", str(file)])
    assert result.exit_code == 0, result.output
    assert "60 released reports" in result.output
    assert file.stat().st_mode & 0o777 == 0o600
    expected = io.BytesIO()
    write_microdata(expected, store, small)
    with ZipFile(file) as exported, ZipFile(expected) as direct:
        assert exported.namelist() == direct.namelist()
        assert exported.read("channels.json") == direct.read("channels.json")
    wrong = CliRunner().invoke(
        main, ["export", "small", "--microdata", str(file), "--level", "0.9"]
    )
    assert wrong.exit_code == 2


def test_the_command_writes_the_formats_of_the_page(store, small, settings, tmp_path, monkeypatch):
    add_released(store, small, 60)
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    file = tmp_path / "reports.zip"
    forms = {name: ["--microdata", str(file), "--format", name] for name in ("labels", "stata")}
    forms["replication"] = ["--replication", str(file)]
    members = {"labels": "codebook.csv", "stata": "reports.dta", "replication": "replicate.R"}
    for name, options in forms.items():
        result = CliRunner().invoke(main, ["export", "small", *options])
        assert result.exit_code == 0, result.output
        with ZipFile(file) as packed:
            assert members[name] in packed.namelist()
    for wrong in (["--format", "spss"], ["--replication", "a.zip", "--parquet", "b"]):
        assert CliRunner().invoke(main, ["export", "small", *wrong]).exit_code == 2


def test_the_command_writes_no_file_without_released_reports_or_after_a_failure(
    store, small, settings, tmp_path, monkeypatch
):
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    file = tmp_path / "reports"
    targets = [["--microdata", file, "--format", name] for name in ("csv", "labels", "stata")]
    for options in (*targets, ["--replication", file], ["--parquet", file]):
        result = CliRunner().invoke(main, ["export", "small", *map(str, options)])
        assert (result.exit_code, file.exists()) == (1, False), options
        assert "small has no released reports yet" in result.output, options
    add_released(store, small, 60)

    def fail(*arguments):
        raise RuntimeError("disk full")

    monkeypatch.setattr("survey.results.exports.formats.read_table", fail)
    file.write_text("an earlier export")
    options = ["--microdata", str(file), "--format", "labels"]
    assert "disk full" in str(CliRunner().invoke(main, ["export", "small", *options]).exception)
    assert file.read_text() == "an earlier export"
    assert list(tmp_path.glob(".*.part")) == []


def test_a_missing_package_is_named_and_leaves_no_file(
    editor, store, small, settings, tmp_path, monkeypatch
):
    add_released(store, small, 60)
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    response = send(editor, PAGE, form="spss")
    assert response.status_code == 422
    assert "ldp-survey[spss]" in response.text
    file = tmp_path / "reports.zip"
    options = ["export", "small", "--microdata", str(file), "--format", "spss"]
    result = CliRunner().invoke(main, options)
    assert result.exit_code == 1
    assert "ldp-survey[spss]" in result.output
    assert not file.exists()
