"""The runbook's restore drill: a server continues with a backup after its database was lost."""

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

from survey.store import PublishedSurvey, Store, open_store
from tests.browser.research import add_released
from tests.conftest import ROOT, long_unless
from tests.faults.load import Load
from tests.faults.reports import send, stored_report
from tests.store.databases import KINDS
from tests.web.clients import SIGN_IN, WebClient

CSV = "/research/surveys/small/1/estimates.csv"
COMMANDS = (
    "survey migrate && survey restore {} && survey check-store && "
    "survey keeper --destroy-unused --yes"
)
"""The commands with which the runbook restores a backup in containers."""


def run(tmp_path: Path, command: str, database: str) -> str:
    """Run a line of the runbook with the `survey` under test; return its output."""
    program = tmp_path / "bin/survey"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m survey.cli "$@"\n')
    program.chmod(0o755)
    process = subprocess.run(
        ["sh", "-ec", command],
        env={
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "SURVEY_DATABASE": database,
            "SURVEY_KEYS": str(tmp_path / "keys"),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def stop(serve) -> None:
    process = serve.processes.pop()
    process.terminate()
    process.communicate(timeout=60)


def web_client(url: str) -> WebClient:
    port = int(url.rpartition(":")[2])
    return WebClient(lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=60))


def read_estimates(client: WebClient) -> list[dict[str, str]]:
    """Return the rows of the CSV of estimates, without the time of its computation."""
    rows = csv.DictReader(io.StringIO(client.get(CSV).text))
    return [{**row, "generated_at": ""} for row in rows]


def n_reports(store: Store, survey: PublishedSurvey) -> int:
    return store.n_released(survey.key) + store.n_pending(survey.key)


@pytest.fixture
def other_database(request: pytest.FixtureRequest, settings, tmp_path: Path):
    """Return the URL of an empty database of the same kind, before its migration."""
    if settings.database.startswith("sqlite"):
        yield f"sqlite:///{tmp_path / 'another.db'}"
        return
    server = request.getfixturevalue("postgresql")
    url = server.create("unmigrated")
    yield url
    server.drop(url)


@pytest.mark.parametrize("settings", long_unless(KINDS[:1], KINDS), indirect=True)
def test_the_restore_drill_brings_back_the_same_pages_and_counts_no_report_twice(
    serve, store, small, researcher, other_database, settings, tmp_path
):
    assert COMMANDS.format("/var/lib/survey/backups/survey-DATE.backup") in (
        ROOT / "deploy/README.md"
    ).read_text(encoding="utf-8")
    add_released(store, small, 1000)
    url = serve()
    with Load(small, [int(url.rpartition(":")[2])]) as load:
        load.wait_for(300)
    first_client = web_client(url)
    assert first_client.sign_in().status == 302
    before = read_estimates(first_client)
    assert len(before) > 6
    file = tmp_path / "nightly.backup"
    run(tmp_path, f"survey backup {file}", settings.database)
    stop(serve)
    store.close_connections()

    run(tmp_path, COMMANDS.format(file), other_database)

    url = serve(SURVEY_DATABASE=other_database)
    client = web_client(url)
    client.cookies |= first_client.cookies
    # Backups contain no sessions: an old cookie no longer works.
    assert client.get(CSV).location.startswith(SIGN_IN)
    assert client.sign_in().status == 302
    assert read_estimates(client) == before
    with closing(
        http.client.HTTPConnection("127.0.0.1", int(url.rpartition(":")[2]))
    ) as connection:
        assert {send(connection, small, body).status for body in load.acknowledged} == {201}
    restored = open_store(other_database)
    for body in load.acknowledged:
        assert restored.has_report(small.key, stored_report(body).id)
    assert n_reports(restored, small) == n_reports(store, small)
    restored.close_connections()
