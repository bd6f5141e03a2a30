"""Who may download the released reports, what they are told before, and that it is written down."""

from __future__ import annotations

import csv
import io
from zipfile import ZipFile

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.results.exports.microdata import write_microdata
from tests.browser.research import add_released
from tests.conftest import EMAIL
from tests.web.researchers import send, sign_in

PAGE = "/research/surveys/small/1/microdata"


@pytest.fixture
def editor(client, researcher, small):
    assert sign_in(client).status_code == 302
    return client


def opened(answer) -> dict[str, bytes]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/zip"
    content = answer.data
    answer.close()
    with ZipFile(io.BytesIO(content)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def test_the_page_says_why_the_reports_may_be_given_away_and_what_it_means(editor, store, small):
    add_released(store, small, 100)
    page = editor.get(PAGE)
    for wanted in ("100", "randomized on a device", "no row proves an answer", "taken back"):
        assert wanted in page.text


def test_the_file_has_a_row_for_each_released_report(editor, store, small):
    add_released(store, small, 100)
    members = opened(send(editor, PAGE, form="csv"))
    assert set(members) == {"README.txt", "channels.json", "definition.json", "reports.csv"}
    rows = list(csv.reader(io.StringIO(members["reports.csv"].decode())))
    assert len(rows) == 101


def test_parquet_holds_the_same_reports(editor, store, small, tmp_path):
    add_released(store, small, 100)
    members = opened(send(editor, PAGE, form="parquet"))
    assert {"README.txt", "channels.json", "definition.json", "manifest.json"} <= set(members)
    (part,) = (name for name in members if name.endswith(".parquet"))
    table = pq.read_table(io.BytesIO(members[part]))
    assert table.num_rows == 100
    rows = list(
        csv.DictReader(io.StringIO(opened(send(editor, PAGE, form="csv"))["reports.csv"].decode()))
    )
    names = [question.id for question in small.definition.questions]
    kept = sorted(tuple(str(row[name]) for name in names) for row in table.to_pylist())
    assert kept == sorted(tuple(row[name] for name in names) for row in rows)


@pytest.mark.security
def test_each_download_is_in_the_log_of_the_survey(editor, store, small):
    add_released(store, small, 100)
    opened(send(editor, PAGE, form="csv"))
    last = store.actions("small", 1)[0]
    assert (last.actor, last.event) == (EMAIL, "downloaded reports")
    assert last.detail == "version 1, 100 as csv"


@pytest.mark.security
def test_opening_the_page_downloads_nothing_and_writes_nothing_down(editor, store, small):
    add_released(store, small, 100)
    before = len(store.actions("small", 100))
    assert editor.get(PAGE).headers["Content-Type"].startswith("text/html")
    assert len(store.actions("small", 100)) == before


def test_without_a_release_there_is_nothing_to_download_and_the_page_says_so(editor):
    page = editor.get(PAGE)
    assert "No report is released yet" in page.text
    assert "<form class" not in page.text
    answer = send(editor, PAGE, page="/research/account", form="csv")
    assert answer.status_code == 422
    assert "nothing to download" in answer.text


@pytest.mark.parametrize("form", ["xml", ""])
def test_a_form_that_there_is_not_is_refused_beside_its_field(editor, store, small, form):
    add_released(store, small, 100)
    answer = send(editor, PAGE, form=form)
    assert answer.status_code == 422
    assert 'class="choices wrong"' in answer.text


def test_the_command_writes_the_same_file_for_its_owner_alone(
    store, small, settings, tmp_path, monkeypatch
):
    add_released(store, small, 60)
    monkeypatch.setenv("SURVEY_DATABASE", settings.database)
    file = tmp_path / "reports.zip"
    ran = CliRunner().invoke(main, ["export", "small", "--microdata", str(file)])
    assert ran.exit_code == 0, ran.output
    assert "60 released reports" in ran.output
    assert file.stat().st_mode & 0o777 == 0o600
    same = io.BytesIO()
    write_microdata(same, store, small)
    with ZipFile(file) as one, ZipFile(same) as other:
        assert one.namelist() == other.namelist()
        assert one.read("channels.json") == other.read("channels.json")
    wrong = CliRunner().invoke(
        main, ["export", "small", "--microdata", str(file), "--level", "0.9"]
    )
    assert wrong.exit_code == 2
