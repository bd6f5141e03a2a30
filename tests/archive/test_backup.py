"""Backups of a store that keeps serving, and their restoration."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import threading

import pytest

from survey.archive import backup, check, restore
from survey.errors import ConflictError, NotFoundError, StoreError
from survey.store import PrivateKeys, PublishedSurvey, Store, open_store
from survey.store.sqlite import open_file
from tests.archive.interruption import check_progress, run_killed
from tests.archive.whole_store import contents, copied_rows, fill
from tests.conftest import wait_until
from tests.store.databases import KINDS, DirectAccess, PostgresqlServer
from tests.store.reports import add, keeper_at, publish_pending, random_reports, report
from tests.store.test_migrations import create_schema
from tests.store.test_migrations import fill as fill_m001
from tests.system_calls import WRITE_CALLS, trace


@pytest.fixture
def filled(store, small) -> Store:
    """Return a store with rows in every table."""
    fill(store, small)
    return store


@pytest.fixture
def file(tmp_path):
    """Return the path of a backup in an empty folder."""
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "backup.db"


@pytest.fixture(params=KINDS)
def new(request, tmp_path, postgresql: PostgresqlServer):
    """Return a store of either kind without tables, and its URL."""
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'new.db'}" if is_sqlite else postgresql.create("unmigrated")
    store = open_store(url)
    yield store, url
    store.close_connections()
    if not is_sqlite:
        postgresql.drop(url)


@pytest.fixture
def sqlite_store(tmp_path):
    """Return a new SQLite store without tables, for behavior that both databases share."""
    store = open_store(f"sqlite:///{tmp_path / 'new.db'}")
    yield store
    store.close_connections()


def files_beside(file) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir())


def test_a_backup_is_one_file_readable_by_its_owner_with_every_row_but_sessions(filled, file):
    before = contents(filled)
    result = backup(filled, file, check_progress)
    assert (result.surveys, result.reports) == (1, 44)
    assert files_beside(file) == ["backup.db"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    # Read the file as if it were on a read-only medium.
    with sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    copy = open_store(f"sqlite:///{file}")
    assert contents(copy) == copied_rows(filled)
    assert contents(filled) == before
    copy.close_connections()


@pytest.mark.security
def test_a_backup_contains_no_byte_of_a_session_or_of_deleted_rows(filled, file):
    planted = [os.urandom(32) for _ in range(2)]
    for token in planted:
        filled.start_session(token, filled.researcher("ada@example.org").key, 5, 100)
    filled.end_session(planted[0])
    backup(filled, file, check_progress)
    assert not any(token in file.read_bytes() for token in planted)


def test_a_restored_store_equals_the_original_and_recognizes_its_reports(
    filled, small, file, new, keys
):
    store, _ = new
    backup(filled, file, check_progress)
    before = file.read_bytes()
    result, n_lost = restore(file, store, keys, check_progress)
    assert (result.surveys, result.reports, n_lost) == (1, 44, 0)
    assert contents(store) == copied_rows(filled)
    assert store.tallies(small.key) == filled.tallies(small.key)
    for number in range(4):
        again = report(number, stratum="north", invitation=number.to_bytes(32, "big"))
        assert store.has_report(small.key, again.id)
    add(store, small, random_reports(30))
    assert publish_pending(store, small, 25) == 45
    assert (file.read_bytes(), files_beside(file)) == (before, ["backup.db"])


@pytest.mark.security
def test_a_restore_leaves_out_what_no_key_opens_so_that_devices_send_it_again(
    store, small, settings, keys, file, new
):
    tokens = [bytes([n]) * 32 for n in range(60)]
    store.add_invitations(small.key, "north", tokens)
    invited = [report(n, stratum="north", invitation=tokens[n]) for n in range(60)]
    add(store, small, [*invited, *random_reports(30)])
    keeper_at(store, settings, 1).work()
    add(store, small, random_reports(3))
    backup(store, file, check_progress)
    add(store, small, random_reports(1))
    # A period later, the keys that the backup needs are destroyed.
    keeper_at(store, settings, 2).work()
    copy, _ = new
    for _ in range(2):
        result, n_lost = restore(file, copy, keys, check_progress)
        assert (result.reports, n_lost) == (25, 35 + 33)
    assert copy.n_pending(small.key) == 0
    with copy.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    keeper_at(copy, settings, 3).work()
    add(copy, small, invited)
    assert copy.n_pending(small.key) == 35


@pytest.mark.security
def test_a_restore_without_any_key_needs_confirmation_to_omit_pending_reports(
    filled, small, file, sqlite_store, tmp_path
):
    """A directory of keys that is not mounted looks like one whose keys are destroyed."""
    store, unmounted = sqlite_store, PrivateKeys(tmp_path / "unmounted")
    backup(filled, file, check_progress)
    n_sealed = filled.n_pending(small.key)
    with pytest.raises(StoreError, match="none of this backup's private keys"):
        restore(file, store, unmounted, check_progress)
    assert store.pending_migrations()
    result, n_lost = restore(file, store, unmounted, check_progress, may_lose_all=True)
    assert (result.reports, n_lost, store.n_pending(small.key)) == (44, n_sealed, 0)


def test_a_backup_never_replaces_a_file(filled, file):
    for make in (lambda: file.write_text("mine"), lambda: file.symlink_to("nowhere")):
        make()
        with pytest.raises(ConflictError, match="already exists"):
            backup(filled, file, check_progress)
        assert files_beside(file) == ["backup.db"]
        file.unlink()


def test_a_backup_does_not_replace_a_file_that_appears_meanwhile(filled, file):
    with pytest.raises(ConflictError, match="already exists"):
        backup(filled, file, lambda n_copied, total: file.write_text("mine"))
    assert (file.read_text(), files_beside(file)) == ("mine", ["backup.db"])


def test_a_backup_of_a_damaged_store_is_written_and_reports_the_damage(filled, direct_access, file):
    direct_access.run("UPDATE release SET n = n + 1")
    assert "were released" in backup(filled, file, check_progress).mistakes[0]
    with open_file(file) as copy, copy.snapshot() as content:
        assert len(list(content.rows("pending", None, 9))) > 0


@pytest.mark.security
@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_backup_is_synced_before_its_name_appears_and_then_the_name_is_synced(
    filled, file, tmp_path
):
    calls = tmp_path / "calls"
    with trace([os.getpid()], calls, (*WRITE_CALLS, "fsync", "fdatasync", "link", "linkat")):
        backup(filled, file, check_progress)
    lines = calls.read_text(errors="replace").splitlines()
    (name,) = (place for place, line in enumerate(lines) if "link(" in line or "linkat(" in line)
    (*_, last) = (line for line in lines[:name] if "/partial.db>" in line)
    # SQLite calls fdatasync, but only at commits: the backup itself must sync the file at the end.
    assert re.search(r"\bfsync\(", last), "the file was written after it was synced"
    assert any("fsync(" in line and f"<{file.parent}>" in line for line in lines[name:])


@pytest.mark.web
def test_a_killed_backup_leaves_no_file_and_can_be_repeated(filled, settings, file):
    run_killed(4, "backup", str(file), SURVEY_DATABASE=settings.database)
    assert not file.exists()
    backup(filled, file, check_progress)
    assert file.exists()


def test_a_backup_under_load_contains_every_report_acknowledged_before_it_began(
    store, small, settings, tmp_path
):
    acknowledged: list[object] = []
    stop = threading.Event()

    def serve() -> None:
        server = open_store(settings.database)
        while not stop.is_set():
            batch = random_reports(10)
            add(server, small, batch)
            acknowledged.extend(batch)
            publish_pending(server, small, 25)
        server.close_connections()

    server = threading.Thread(target=serve)
    server.start()
    try:
        counts = [_backup_of(store, tmp_path / f"{n}.db", acknowledged) for n in range(4)]
        # The server still stores reports after the backups.
        wait_until(lambda: len(acknowledged) > counts[-1])
    finally:
        stop.set()
        server.join()
    for n, n_before in enumerate(counts):
        _check_backup(tmp_path / f"{n}.db", small, acknowledged[:n_before])


def _backup_of(store: Store, file, acknowledged: list[object]) -> int:
    n_before = len(acknowledged)
    backup(store, file, check_progress)
    return n_before


def _check_backup(file, survey: PublishedSurvey, reports: list[object]) -> None:
    copy = open_store(f"sqlite:///{file}")
    with copy.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    assert all(copy.has_report(survey.key, item.id) for item in reports)
    total = copy.n_released(survey.key) + copy.n_pending(survey.key)
    assert total >= len(reports)
    assert total % 10 == 0
    copy.close_connections()


@pytest.mark.long
@pytest.mark.parametrize("settings", KINDS, indirect=True)
@pytest.mark.parametrize("new", KINDS, indirect=True)
def test_a_killed_restore_continues_when_it_is_repeated(filled, file, new, keys):
    store, url = new
    backup(filled, file, check_progress)
    for commits in (0, 5):
        run_killed(
            commits, "restore", str(file), SURVEY_DATABASE=url, SURVEY_KEYS=str(keys.directory)
        )
        half = contents(store)
        assert bool(half["survey"]) == (commits > 0)
        assert half["release"] == []
    restore(file, store, keys, check_progress)
    assert contents(store) == copied_rows(filled)


def test_a_backup_is_not_restored_into_a_database_with_other_rows(filled, file, sqlite_store, keys):
    store = sqlite_store
    backup(filled, file, check_progress)
    store.migrate()
    store.add_researcher("eve@example.org", "hash")
    before = contents(store)
    with pytest.raises(ConflictError, match=r'not empty: its table "researcher"'):
        restore(file, store, keys, check_progress)
    assert contents(store) == before


def test_restoring_upgrades_a_backup_of_an_older_schema(file, sqlite_store, keys):
    store = sqlite_store
    older = f"sqlite:///{file}"
    create_schema("m001", older)
    before = fill_m001(older)
    bytes_before = file.read_bytes()
    restore(file, store, keys, check_progress)
    rows = contents(store)
    rows["survey"] = [row[:7] for row in rows["survey"]]
    rows["release"] = [row[:3] for row in rows["release"]]
    rows["block"] = [row[3:7] for row in rows["block"]]
    assert {table: rows[table] for table in before} == before
    assert rows["invitation"] == []
    assert (file.read_bytes(), files_beside(file)) == (bytes_before, ["backup.db"])


def test_a_backup_of_a_newer_schema_is_rejected_by_name(filled, file, sqlite_store, keys):
    store = sqlite_store
    backup(filled, file, check_progress)
    DirectAccess(f"sqlite:///{file}").run(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
        "VALUES ('survey', 'm999_everything', '')"
    )
    with pytest.raises(StoreError, match="newer version: it has m999_everything"):
        restore(file, store, keys, check_progress)
    assert store.pending_migrations() != []


def test_a_damaged_backup_is_rejected_before_anything_is_written(filled, file, sqlite_store, keys):
    store = sqlite_store
    backup(filled, file, check_progress)
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    file.write_bytes(content)
    with pytest.raises(StoreError):
        restore(file, store, keys, check_progress)
    assert store.pending_migrations() or not any(contents(store).values())


@pytest.mark.parametrize("content", [b"", b"not a database at all, but a text of some length" * 90])
def test_a_file_that_is_not_a_backup_is_rejected(content, tmp_path, file, sqlite_store, keys):
    store = sqlite_store
    with pytest.raises(NotFoundError, match="there is no file"):
        restore(file, store, keys, check_progress)
    file.write_bytes(content)
    with pytest.raises(StoreError, match=r"not a store|not a database"):
        restore(file, store, keys, check_progress)
    assert not (tmp_path / "new.db").exists()
