"""A backup that is taken while reports come in holds every one acknowledged before it began."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from survey.archive import check
from survey.cli import main
from survey.store import open_store
from tests.conftest import long_unless
from tests.faults.load import Load
from tests.faults.reports import stored_report
from tests.store.databases import KINDS


def command(*arguments: str, **variables: str) -> str:
    done = CliRunner(env=variables).invoke(main, [*arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("settings", long_unless(KINDS[:1], KINDS), indirect=True)
@pytest.mark.parametrize("reports", [400, pytest.param(20_000, marks=pytest.mark.long)])
def test_a_backup_during_load_holds_every_report_acknowledged_before_it_began(
    serve, small, settings, tmp_path, reports
):
    port = int(serve("--workers", "2").rpartition(":")[2])
    file, elsewhere = tmp_path / "backup.db", f"sqlite:///{tmp_path / 'restored.db'}"
    with Load(small, [port]) as load:
        load.wait_for(reports, 300)
        before = list(load.acknowledged)
        command("backup", str(file), SURVEY_DATABASE=settings.database)
        during = len(load.acknowledged)
        load.wait_for(20)
    assert load.statuses.keys() == {201}
    assert load.n_broken == 0
    restored = open_store(elsewhere)
    restored.migrate()
    command("restore", str(file), SURVEY_DATABASE=elsewhere)
    assert all(restored.has_report(small.key, stored_report(body)) for body in before)
    there = restored.n_pending(small.key) + restored.n_released(small.key)
    assert len(before) <= there <= during + load.max_unacknowledged
    with restored.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    restored.close_connections()
    assert len({json.loads(body)["report_id"] for body in load.acknowledged}) == len(
        load.acknowledged
    )
