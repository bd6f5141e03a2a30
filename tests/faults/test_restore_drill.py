"""The runbook's restore drill: the database is lost, a backup comes back, the server goes on."""

from __future__ import annotations

import csv
import http.client
import io
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from survey.collect.release import release
from survey.store import PublishedSurvey, Store, open_store
from tests.browser.research import add_released
from tests.conftest import ROOT, TODAY
from tests.faults.load import Load
from tests.faults.reports import send, stored_report
from tests.web.clients import SIGN_IN, WebClient

CSV = "/research/surveys/small/1/estimates.csv"
COMMANDS = "survey migrate && survey restore {} && survey check-store"
"""As the runbook has them."""


def run(tmp_path: Path, command: str, database: str) -> str:
    """What a line of the runbook prints; its `survey` is the one under test."""
    program = tmp_path / "bin/survey"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m survey.cli "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-ec", command],
        env={
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "SURVEY_DATABASE": database,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def stop(serve) -> None:
    process = serve.processes.pop()
    process.terminate()
    process.communicate(timeout=60)


def visiting(url: str) -> WebClient:
    port = int(url.rpartition(":")[2])
    return WebClient(lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=60))


def estimates(visit: WebClient) -> list[dict[str, str]]:
    """What the survey's file says, but when it was made."""
    rows = csv.DictReader(io.StringIO(visit.get(CSV).text))
    return [{**row, "generated_at": ""} for row in rows]


def reports_in(store: Store, survey: PublishedSurvey) -> int:
    return store.n_released(survey.key) + store.n_pending(survey.key)


@pytest.fixture
def another(request: pytest.FixtureRequest, settings, tmp_path: Path):
    """An empty database of the same kind, on which nothing was done yet."""
    if settings.database.startswith("sqlite"):
        yield f"sqlite:///{tmp_path / 'another.db'}"
        return
    server = request.getfixturevalue("postgresql")
    url = server.create("unmigrated")
    yield url
    server.drop(url)


@pytest.mark.parametrize("settings", ["sqlite", "postgresql"], indirect=True)
def test_the_restore_drill_brings_back_the_same_pages_and_counts_no_report_twice(
    serve, store, small, researcher, another, settings, tmp_path
):
    assert COMMANDS.format("/var/lib/survey/backups/survey-DATE.backup") in (
        ROOT / "deploy/README.md"
    ).read_text(encoding="utf-8")
    add_released(store, small, 1000)
    url = serve()
    with Load(small, [int(url.rpartition(":")[2])]) as load:
        load.wait_for(300)
    release(store, small, settings.release_minimum, clock=lambda: TODAY)
    visit = visiting(url)
    assert visit.sign_in().status == 302
    before = estimates(visit)
    assert len(before) > 6
    file = tmp_path / "nightly.backup"
    run(tmp_path, f"survey backup {file}", settings.database)
    stop(serve)
    store.close_connections()

    run(tmp_path, COMMANDS.format(file), another)

    url = serve(SURVEY_DATABASE=another)
    back = visiting(url)
    back.cookies |= visit.cookies
    # Sessions are in no backup: whoever took one of these cookies is out.
    assert back.get(CSV).location.startswith(SIGN_IN)
    assert back.sign_in().status == 302
    assert estimates(back) == before
    with closing(http.client.HTTPConnection("127.0.0.1", int(url.rpartition(":")[2]))) as again:
        assert {send(again, small, body).status for body in load.acknowledged} == {201}
    restored = open_store(another)
    for body in load.acknowledged:
        assert restored.has_report(small.key, stored_report(body))
    assert reports_in(restored, small) == reports_in(store, small)
    restored.close_connections()
