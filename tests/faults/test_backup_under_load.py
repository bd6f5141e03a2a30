"""A backup under load contains every report that was acknowledged before it began."""

from __future__ import annotations

import json
from shutil import copytree

import pytest
from click.testing import CliRunner

from survey.archive import check
from survey.cli import main
from survey.store import open_store
from tests.conftest import long_unless
from tests.faults.load import Load
from tests.faults.reports import stored_report
from tests.store.databases import KINDS


def run_command(*arguments: str, **variables: str) -> str:
    result = CliRunner(env=variables).invoke(main, [*arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("settings", long_unless(KINDS[:1], KINDS), indirect=True)
@pytest.mark.parametrize("reports", [400, pytest.param(20_000, marks=pytest.mark.long)])
def test_a_backup_under_load_contains_every_report_acknowledged_before_it_began(
    serve, small, settings, tmp_path, reports
):
    port = int(serve("--workers", "2").rpartition(":")[2])
    file, restored_url = tmp_path / "backup.db", f"sqlite:///{tmp_path / 'restored.db'}"
    with Load(small, [port]) as load:
        load.wait_for(reports, 300)
        acknowledged_before = list(load.acknowledged)
        run_command("backup", str(file), SURVEY_DATABASE=settings.database)
        n_after_backup = len(load.acknowledged)
        load.wait_for(20)
    assert load.statuses.keys() == {201}
    assert load.n_broken == 0
    restored = open_store(restored_url)
    restored.migrate()
    # The running keeper has locked its own directory.
    keys = copytree(settings.keys, tmp_path / "copied-keys")
    run_command("restore", str(file), SURVEY_DATABASE=restored_url, SURVEY_KEYS=str(keys))
    assert all(
        restored.has_report(small.key, stored_report(body).id) for body in acknowledged_before
    )
    n_restored = restored.n_pending(small.key) + restored.n_released(small.key)
    assert len(acknowledged_before) <= n_restored <= n_after_backup + load.max_unacknowledged
    with restored.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    restored.close_connections()
    assert len({json.loads(body)["report_id"] for body in load.acknowledged}) == len(
        load.acknowledged
    )
