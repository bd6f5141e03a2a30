"""A backup is one file with all of a moment, made while the store serves, and comes back whole."""

from __future__ import annotations

import sqlite3
import stat
import threading

import pytest

from survey.archive import backup, check, restore
from survey.collect.release import release
from survey.errors import ConflictError, NotFoundError, StoreError
from survey.store import PublishedSurvey, Store, open_store
from tests.archive.interruption import ignored, killed
from tests.archive.whole_store import contents, fill, kept
from tests.conftest import wait_until
from tests.store.databases import KINDS, DirectAccess, PostgresqlServer
from tests.store.reports import add, random_reports, report
from tests.store.test_migrations import fill as fill_m001
from tests.store.test_migrations import schema_of


@pytest.fixture
def filled(store, small) -> Store:
    """A store with rows in every table."""
    fill(store, small)
    return store


@pytest.fixture
def file(tmp_path):
    """Where a backup is to be, in a folder of its own."""
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "backup.db"


@pytest.fixture(params=KINDS)
def new(request, tmp_path, postgresql: PostgresqlServer):
    """A database of either kind without tables, as a store and its url."""
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'new.db'}" if is_sqlite else postgresql.create("unmigrated")
    store = open_store(url)
    yield store, url
    store.close_connections()
    if not is_sqlite:
        postgresql.drop(url)


@pytest.fixture
def sqlite_store(tmp_path):
    """A new store without tables; for what is the same on both databases."""
    store = open_store(f"sqlite:///{tmp_path / 'new.db'}")
    yield store
    store.close_connections()


def files_beside(file) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir())


def test_a_backup_is_one_file_of_its_owners_with_every_row_but_sessions(filled, file):
    before = contents(filled)
    found = backup(filled, file, ignored)
    assert (found.surveys, found.reports) == (1, 44)
    assert files_beside(file) == ["backup.db"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    # Read as on a medium that nobody can write to.
    with sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    copy = open_store(f"sqlite:///{file}")
    assert contents(copy) == kept(filled)
    assert contents(filled) == before
    copy.close_connections()


def test_a_restored_store_is_the_one_that_was_backed_up_and_knows_its_reports(
    filled, small, file, new
):
    store, _ = new
    backup(filled, file, ignored)
    before = file.read_bytes()
    found = restore(file, store, ignored)
    assert (found.surveys, found.reports) == (1, 44)
    assert contents(store) == kept(filled)
    assert store.tallies(small.key) == filled.tallies(small.key)
    for number in range(4):
        again = report(number, stratum="north", invitation=number.to_bytes(32, "big"))
        assert store.has_report(small.key, again)
    add(store, small, random_reports(30))
    assert release(store, small, 25) == 45
    assert (file.read_bytes(), files_beside(file)) == (before, ["backup.db"])


def test_a_backup_never_replaces_a_file(filled, file):
    for make in (lambda: file.write_text("mine"), lambda: file.symlink_to("nowhere")):
        make()
        with pytest.raises(ConflictError, match="already exists"):
            backup(filled, file, ignored)
        assert files_beside(file) == ["backup.db"]
        file.unlink()


def test_a_file_that_comes_while_a_backup_is_made_is_not_replaced(filled, file):
    with pytest.raises(ConflictError, match="already exists"):
        backup(filled, file, lambda done, total: file.write_text("mine"))
    assert (file.read_text(), files_beside(file)) == ("mine", ["backup.db"])


def test_a_store_that_contradicts_itself_gives_no_backup(filled, direct_access, file):
    direct_access.run("UPDATE release SET n = n + 1")
    with pytest.raises(StoreError, match="contradicts itself"):
        backup(filled, file, ignored)
    assert files_beside(file) == []


def test_a_backup_that_was_killed_has_no_name_and_another_can_be_made(filled, settings, file):
    killed(4, "backup", str(file), SURVEY_DATABASE=settings.database)
    assert not file.exists()
    backup(filled, file, ignored)
    assert file.exists()


def test_a_backup_under_load_holds_every_report_acknowledged_before_it_began(
    store, small, settings, tmp_path
):
    acknowledged: list[object] = []
    stop = threading.Event()

    def serve() -> None:
        server = open_store(settings.database)
        while not stop.is_set():
            some = random_reports(10)
            add(server, small, some)
            acknowledged.extend(some)
            release(server, small, 25)
        server.close_connections()

    server = threading.Thread(target=serve)
    server.start()
    try:
        before = [_backup_of(store, tmp_path / f"{n}.db", acknowledged) for n in range(4)]
        # The server lived through it.
        wait_until(lambda: len(acknowledged) > before[-1])
    finally:
        stop.set()
        server.join()
    for n, many in enumerate(before):
        _check_holds(tmp_path / f"{n}.db", small, acknowledged[:many])


def _backup_of(store: Store, file, acknowledged: list[object]) -> int:
    many = len(acknowledged)
    backup(store, file, ignored)
    return many


def _check_holds(file, survey: PublishedSurvey, reports: list[object]) -> None:
    copy = open_store(f"sqlite:///{file}")
    with copy.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    assert all(copy.has_report(survey.key, each) for each in reports)
    total = copy.n_released(survey.key) + copy.n_pending(survey.key)
    assert total >= len(reports)
    assert total % 10 == 0
    copy.close_connections()


@pytest.mark.long
@pytest.mark.parametrize("settings", KINDS, indirect=True)
@pytest.mark.parametrize("new", KINDS, indirect=True)
def test_a_restore_that_was_killed_is_gone_on_with_by_restoring_again(filled, file, new):
    store, url = new
    backup(filled, file, ignored)
    for commits in (0, 5):
        killed(commits, "restore", str(file), SURVEY_DATABASE=url)
        half = contents(store)
        assert bool(half["survey"]) == (commits > 0)
        assert half["release"] == []
    restore(file, store, ignored)
    assert contents(store) == kept(filled)


def test_a_database_with_anything_of_its_own_is_not_restored_into(filled, file, sqlite_store):
    store = sqlite_store
    backup(filled, file, ignored)
    store.migrate()
    store.add_researcher("eve@example.org", "hash")
    before = contents(store)
    with pytest.raises(ConflictError, match=r'not empty: its table "researcher"'):
        restore(file, store, ignored)
    assert contents(store) == before


def test_a_backup_of_an_older_schema_is_upgraded_as_it_is_restored(file, sqlite_store):
    store = sqlite_store
    older = f"sqlite:///{file}"
    schema_of("m001", older)
    before = fill_m001(older)
    bytes_before = file.read_bytes()
    restore(file, store, ignored)
    rows = contents(store)
    assert {table: rows[table] for table in before} == before
    assert rows["invitation"] == []
    assert (file.read_bytes(), files_beside(file)) == (bytes_before, ["backup.db"])


def test_a_backup_of_a_newer_schema_is_refused_by_name(filled, file, sqlite_store):
    store = sqlite_store
    backup(filled, file, ignored)
    DirectAccess(f"sqlite:///{file}").run(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
        "VALUES ('survey', 'm999_everything', '')"
    )
    with pytest.raises(StoreError, match="newer version: it has m999_everything"):
        restore(file, store, ignored)
    assert store.pending_migrations() != []


def test_a_damaged_backup_is_refused_before_anything_is_written(filled, file, sqlite_store):
    store = sqlite_store
    backup(filled, file, ignored)
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    file.write_bytes(content)
    with pytest.raises(StoreError):
        restore(file, store, ignored)
    assert store.pending_migrations() or not any(contents(store).values())


@pytest.mark.parametrize("content", [b"", b"not a database at all, but a text of some length" * 90])
def test_a_file_that_is_no_backup_is_refused(content, tmp_path, file, sqlite_store):
    store = sqlite_store
    with pytest.raises(NotFoundError, match="there is no file"):
        restore(file, store, ignored)
    file.write_bytes(content)
    with pytest.raises(StoreError, match=r"not a store|not a database"):
        restore(file, store, ignored)
    assert not (tmp_path / "new.db").exists()
