"""A database in use cannot be restored, and its processes detect that it was replaced."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from survey.collect.publication import close
from survey.errors import ConflictError, StoreReplacedError
from survey.store import database_file, open_store
from tests.conftest import TODAY
from tests.store.databases import DirectAccess
from tests.store.reports import add, random_reports, report

USING = """
import sys
from survey.store import open_store
with open_store(sys.argv[1]).use():
    print("used", flush=True)
    sys.stdin.read()
"""

CUT = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = %s AND pid <> pg_backend_pid()
"""


@pytest.fixture
def second_store(settings):
    """Return a second store of the same database, like that of another process."""
    opened = open_store(settings.database)
    yield opened
    opened.close_connections()


@pytest.fixture
def move(request, settings, migrated_file) -> Callable[[str, str], None]:
    """Return a function that moves a database as an operator would, even while it is in use."""
    file = database_file(settings.database)
    if file is not None:

        def move_file(old: str, new: str) -> None:
            for end in ("", "-wal", "-shm"):
                if (part := file.with_name(f"{old}{end}")).exists():
                    part.rename(file.with_name(f"{new}{end}"))

        return move_file
    server = request.getfixturevalue("postgresql")

    def rename(old: str, new: str) -> None:
        with server.administrator() as connection:
            # The pool of a store would connect again before the database is renamed.
            connection.execute(f"ALTER DATABASE {old} ALLOW_CONNECTIONS false")
            connection.execute(CUT, [old])
            connection.execute(f"ALTER DATABASE {old} RENAME TO {new}")
            connection.execute(f"ALTER DATABASE {new} ALLOW_CONNECTIONS true")

    return rename


@pytest.fixture
def copy(request, settings, migrated_file) -> Callable[[str], None]:
    """Return a function that puts an empty, migrated database at a name."""
    file = database_file(settings.database)
    if file is not None:
        return lambda name: file.with_name(name).write_bytes(migrated_file.read_bytes()) and None
    return lambda name: request.getfixturevalue("postgresql")._copy("migrated", name)


@pytest.fixture
def name(settings) -> str:
    file = database_file(settings.database)
    return file.name if file else psycopg.conninfo.conninfo_to_dict(settings.database)["dbname"]


@contextmanager
def used_by_a_process(url: str):
    process = subprocess.Popen(
        [sys.executable, "-c", USING, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "used\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_database_that_a_process_uses_is_reserved_only_after_that_process_was_killed(
    store, settings, second_store
):
    with used_by_a_process(settings.database) as process:
        with pytest.raises(ConflictError, match="a server, a keeper or another command uses"):
            second_store.reserve().__enter__()
        with second_store.use():
            pass
        process.kill()
        process.wait()
        for _ in range(100):
            try:
                with second_store.reserve():
                    break
            except ConflictError:
                # PostgreSQL notices the end of the connection a moment later.
                subprocess.run(["sleep", "0.05"], check=True)
        else:
            raise AssertionError("the database is still in use")


def test_no_process_uses_a_reserved_database(store, second_store):
    with store.reserve():
        for refused in (second_store.use(), second_store.reserve()):
            with pytest.raises(ConflictError):
                refused.__enter__()
    with second_store.use():
        assert second_store.surveys() == []


def test_a_file_in_use_is_reserved_and_locked_under_each_of_its_names(store, settings, tmp_path):
    file = database_file(settings.database)
    if file is None:
        return
    (link := tmp_path / "link.db").symlink_to(file)
    linked = open_store(f"sqlite:///{link}")
    for first, second_store in ((store, linked), (linked, store)):
        with first.use(), pytest.raises(ConflictError):
            second_store.reserve().__enter__()
    linked.add_spare_key(bytes(32))
    linked.close_connections()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("link")] == ["link.db"]


@pytest.mark.web
def test_a_database_that_replaced_the_first_one_receives_no_report(store, small, name, move, copy):
    add(store, small, [report(1)])
    first = f"{name}_first"
    move(name, first)
    copy(name)
    for write in (
        lambda: store.add_reports([(small.key, report(2))]),
        lambda: close(store, small.slug, TODAY),
        store.check_writable,
        store.surveys,
        lambda: store.snapshot().__enter__(),
    ):
        with pytest.raises(StoreReplacedError, match="replaced while in use"):
            write()
    move(name, f"{name}_second")
    move(first, name)
    add(store, small, [report(2)])
    assert store.n_pending(small.key) == 2


def test_a_new_thread_or_connection_also_detects_that_the_database_was_replaced(
    store, small, name, move, copy
):
    assert store.versions("small")
    move(name, f"{name}_first")
    copy(name)
    # As a new thread would, connect again.
    store.close_connections()
    with pytest.raises(StoreReplacedError):
        store.add_reports([(small.key, report(2))])
    move(name, f"{name}_second")
    move(f"{name}_first", name)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_commit_to_a_file_that_was_moved_is_not_acknowledged(store, small, name, move):
    def write():
        with store._write() as transaction:
            transaction.execute("DELETE FROM schedule")
            move(name, f"{name}_first")

    with pytest.raises(StoreReplacedError):
        write()


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_new_database_does_not_get_the_log_of_one_that_was_moved_away(store, small, settings):
    add(store, small, random_reports(1))
    file = Path(database_file(settings.database))
    file.rename(file.with_name("moved.db"))
    with pytest.raises(Exception, match="belongs to a database that was moved away"):
        open_store(settings.database).migrate()


@pytest.mark.web
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_postgresql_renames_no_database_that_has_connections(store, name, postgresql):
    assert store.surveys() == []
    with postgresql.administrator() as connection, pytest.raises(psycopg.errors.ObjectInUse):
        connection.execute(f"ALTER DATABASE {name} RENAME TO {name}_renamed")


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_database_stays_in_use_after_its_connections_were_cut(
    store, second_store, name, postgresql, settings
):
    with store.use():
        with postgresql.administrator() as connection:
            connection.execute(CUT, [name])
        assert store.surveys() == []
        with pytest.raises(ConflictError):
            second_store.reserve().__enter__()
    assert DirectAccess(settings.database).run("SELECT 1") == [(1,)]
