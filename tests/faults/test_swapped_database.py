"""A server whose database was replaced acknowledges no reports and gives the reason."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from survey.archive import backup as write_backup
from survey.cli import main
from survey.collect.release import POLL_SECONDS
from survey.store import database_file, open_store
from tests.conftest import free_port, long_unless, wait_until
from tests.faults.load import Load
from tests.faults.reports import check_stored_once
from tests.ops.test_health import fetch
from tests.store.databases import DirectAccess


def move(directory: Path, old: str, new: str) -> None:
    """Move a database with its log, as an operator would."""
    for end in ("", "-wal", "-shm"):
        if (part := directory / f"{old}{end}").exists():
            part.rename(directory / f"{new}{end}")


@pytest.mark.parametrize("times", long_unless([1], [1, 20]))
def test_no_report_is_acknowledged_after_the_database_was_replaced(
    serve, store, small, settings, migrated_file, times
):
    file, internal = database_file(settings.database), free_port()
    port = int(serve("--workers", "2", SURVEY_INTERNAL=f"127.0.0.1:{internal}").rpartition(":")[2])
    store.close_connections()
    with Load(small, [port]) as load:
        for _ in range(times):
            load.wait_for(100)
            move(file.parent, file.name, "moved.db")
            shutil.copy(migrated_file, file)
            before = load.statuses[503]
            wait_until(lambda n=before: load.statuses[503] > n + 10)
            n_acknowledged = len(load.acknowledged)
            # The keeper detects the change within a second, before this test reads /readyz.
            time.sleep(2 * POLL_SECONDS)
            assert len(load.acknowledged) == n_acknowledged
            status, body = fetch(f"http://127.0.0.1:{internal}/readyz")
            assert (status, json.loads(body)["writable"]) == (503, "StoreReplacedError")
            file.unlink()
            move(file.parent, "moved.db", file.name)
    assert load.statuses.keys() == {201, 503}
    assert load.n_broken == 0
    # No report was lost or doubled, because the devices sent their reports again.
    check_stored_once(store, small, load.acknowledged, load.max_unacknowledged)
    process = serve.processes.pop()
    process.terminate()
    assert '"errors": ["StoreReplacedError"]' in process.communicate(timeout=90)[0]


def test_commands_that_need_exclusive_access_reject_a_database_in_use(
    serve, store, small, settings, tmp_path
):
    def run(*arguments: str) -> str:
        environment = {"SURVEY_DATABASE": settings.database, "SURVEY_KEYS": str(tmp_path / "other")}
        result = CliRunner(env=environment).invoke(main, [*arguments])
        assert result.exit_code == 1
        return result.stderr

    backup = str(tmp_path / "backup.db")
    write_backup(store, Path(backup), lambda *_: None)
    serve()
    target = f"sqlite:///{tmp_path / 'target.db'}"
    open_store(target).migrate()
    for command in (
        ["restore", backup],
        ["copy-store", settings.database, target],
        ["copy-store", target, settings.database],
    ):
        assert "a server, a keeper or another command uses the database" in run(*command)
    DirectAccess(settings.database).run(
        "DELETE FROM _sqlite_migrations WHERE name = 'm008_pictures'"
    )
    assert "a server, a keeper or another command uses the database" in run("migrate")
