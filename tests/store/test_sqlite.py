"""Tests of SQLite alone: its disk, its files and its queue of writers."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from survey.collect.publication import close
from survey.errors import StoreBusyError, StoreError
from survey.store import open_store, sqlite
from survey.store.sqlite import WriteLock
from tests.conftest import ROOT, TODAY
from tests.store.reports import add, keeper_at, publish_pending, random_reports, report
from tests.store.writers import has_waiting_writer

HOLDING = """
import sys
from pathlib import Path
from survey.store.sqlite import WriteLock
with WriteLock(Path(sys.argv[1])).acquire(5):
    print("taken", flush=True)
    sys.stdin.read()
"""

WRITING_ONCE = """
import sys
from pathlib import Path
from survey.store.sqlite import WriteLock
with WriteLock(Path(sys.argv[1])).acquire(60), open(sys.argv[2], "a") as log:
    log.write("other ")
"""

FORKING = """
import os, sys
from survey.store import StoredReport, open_store
store = open_store(sys.argv[1])
key = store.surveys()[0].key
one, other = StoredReport(bytes(16), "", bytes(2)), StoredReport(b"\\1" * 16, "", bytes(2))
assert store.add_reports([(key, one)]) == [None]
child = os.fork()
if child == 0:
    ended = store.add_reports([(key, other)]) == [None] and store.has_report(key, one.id)
    os._exit(0 if ended else 1)
assert os.waitpid(child, 0)[1] == 0
assert store.has_report(key, other.id) and store.n_pending(key) == 2
store.close_connections()
"""


@pytest.fixture
def settings(sqlite_settings):
    return sqlite_settings


@pytest.fixture
def path(settings) -> Path:
    return Path(settings.database.removeprefix("sqlite:///"))


@pytest.fixture
def impatient(monkeypatch) -> None:
    """Make writers give up at once."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.2)
    monkeypatch.setattr(
        sqlite,
        "PRAGMAS",
        ("PRAGMA busy_timeout = 100", *sqlite.PRAGMAS[1:]),
    )


# -- the disk and the files


def test_every_connection_waits_for_the_disk(store, small):
    with store._lookup() as lookup, store._stream() as stream:
        for transaction in (lookup, stream):
            assert transaction.row("PRAGMA synchronous") == (2,)
            assert transaction.row("PRAGMA journal_mode") == ("wal",)
            assert transaction.row("PRAGMA secure_delete") == (1,)
            assert transaction.row("PRAGMA foreign_keys") == (1,)


@pytest.mark.security
def test_only_the_owner_can_read_the_database(path, store, small):
    add(store, small, [report(1)])
    files = list(path.parent.glob(f"{path.name}*"))
    assert {file.name for file in files} == {
        path.name + end for end in ("", "-wal", "-shm", ".lock", ".door")
    }
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.security
def test_a_group_shares_the_database_in_a_directory_that_it_shares(tmp_path):
    """The keeper and the server are different users: each must write what the other created."""
    tmp_path.chmod(0o2770)
    old = os.umask(0o077)
    try:
        shared = open_store(f"sqlite:///{tmp_path / 'survey.db'}")
        shared.migrate()
        shared.add_spare_key(bytes(32))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(old)
        shared.close_connections()
    assert len(modes) == 5
    assert set(modes.values()) == {0o660}


def test_a_missing_or_outdated_database_is_refused_with_the_command_to_run(tmp_path):
    missing = open_store(f"sqlite:///{tmp_path / 'none.db'}")
    assert missing.pending_migrations()
    with pytest.raises(StoreError, match="survey migrate"):
        missing.surveys()
    assert not (tmp_path / "none.db").exists()
    outdated = tmp_path / "empty.db"
    outdated.touch(mode=0o600)
    with pytest.raises(StoreError, match="survey migrate"):
        open_store(f"sqlite:///{outdated}").surveys()


def test_a_file_that_is_not_a_database_is_refused(tmp_path):
    (tmp_path / "text.db").write_text("not a database, and longer than a header " * 20)
    store = open_store(f"sqlite:///{tmp_path / 'text.db'}")
    for use in (store.surveys, store.migrate, store.pending_migrations):
        with pytest.raises(StoreError, match="not a database"):
            use()


@pytest.mark.security
def test_insert_or_replace_does_not_replace_a_definition(direct_access, small):
    with pytest.raises(sqlite3.IntegrityError, match="never replaced"):
        direct_access.run("INSERT OR REPLACE INTO survey SELECT * FROM survey")


@pytest.mark.security
def test_report_tables_have_no_time_no_address_and_no_order(direct_access, store):
    tables = ("inbox", "pending", "pending_id", "released_ids", "block", "counts", "invitation")
    for table in tables:
        ((statement,),) = direct_access.run("SELECT sql FROM sqlite_master WHERE name = ?", [table])
        assert "WITHOUT ROWID" in statement
        names = {row[1] for row in direct_access.run(f"PRAGMA table_info({table})")}
        assert names <= {
            *("survey", "id", "stratum", "codes", "bucket", "question", "block", "n", "data"),
            *("option", "token_hash", "spent", "batch", "period", "is_resealed", "ids"),
            *("invitations", "box", "digest", "first"),
        }


@pytest.mark.security
def test_no_single_report_is_left_in_the_files_after_close(store, path, small, settings):
    reports = random_reports(60)
    add(store, small, reports)
    close(store, "small", TODAY)
    keeper_at(store, settings, 1).work()
    store.forget_ids(small.key)
    store.vacuum()
    files = [file for file in path.parent.iterdir() if file.is_file()]
    content = b"".join(file.read_bytes() for file in files)
    assert not [item for item in reports if item.id in content]


def test_rewriting_leaves_no_free_pages(store, small):
    add(store, small, random_reports(3000))
    assert publish_pending(store, small, 25) == 3000
    assert store.has_free_pages()
    store.vacuum()
    assert not store.has_free_pages()


def test_a_reader_does_not_block_a_release_and_the_log_is_emptied_later(
    store, small, path, direct_access
):
    add(store, small, [report(number) for number in range(30)])
    log = path.with_name(path.name + "-wal")
    with direct_access.connection() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM released_ids").fetchone()
        assert publish_pending(store, small, 25) == 30
        assert log.stat().st_size > 0
    store.retry_clean_up()
    assert log.stat().st_size == 0


@pytest.mark.security
@pytest.mark.parametrize("ended", ["by a reader", "killed"])
def test_the_server_empties_the_log_after_another_process_s_release(
    store, small, path, settings, direct_access, ended
):
    loop = keeper_at(store, settings)
    loop.clean_up(TODAY)
    command_store = open_store(settings.database)
    add(command_store, small, [report(number) for number in range(30)])
    log = path.with_name(path.name + "-wal")
    with direct_access.connection() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM released_ids").fetchone()
        if ended == "killed":
            command_store.clean_up_after_release = lambda survey: None
        assert publish_pending(command_store, small, 25) == 30
        # The command's process ends here and forgets the clean-up that it missed.
        command_store.close_connections()
        assert log.stat().st_size > 0
    loop.clean_up(TODAY)
    assert log.stat().st_size == 0


# -- locks


def test_a_database_locked_from_outside_is_busy_and_nothing_is_stored(
    impatient, store, direct_access, small
):
    with direct_access.connection() as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError, match="locked"):
            store.add_reports([(small.key, report(1))])
    assert store.n_pending(small.key) == 0
    add(store, small, [report(1)])


def test_a_writer_that_keeps_the_lock_makes_others_busy_until_it_is_killed(
    impatient, store, path, small
):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout.readline() == b"taken\n"
        for _ in range(2):
            with pytest.raises(StoreBusyError, match="another process"):
                store.add_reports([(small.key, report(1))])
        assert store.n_pending(small.key) == 0  # readers are not blocked
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    for number in range(3):
        add(store, small, [report(number)])
    assert store.n_pending(small.key) == 3


def test_a_lock_acquired_after_its_waiter_gave_up_is_released(store, path):
    first, second, third = (WriteLock(path) for _ in "123")
    with first.acquire(1):
        for _ in range(2):
            with pytest.raises(StoreBusyError), second.acquire(0.05):
                pass
    with third.acquire(5), pytest.raises(StoreBusyError), second.acquire(0.05):
        pass
    with second.acquire(5):
        pass


def test_threads_of_a_process_wait_only_until_their_deadline(store, path):
    turn = WriteLock(path)
    with turn.acquire(1):
        failures: list[Exception] = []

        def wait() -> None:
            try:
                with turn.acquire(0.05):
                    pass
            except StoreBusyError as busy:
                failures.append(busy)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert len(failures) == 1


def test_a_process_that_has_just_written_queues_behind_a_waiting_one(store, path, tmp_path):
    log = tmp_path / "turns"
    turn = WriteLock(path)
    with turn.acquire(60):
        waiting_process = subprocess.Popen(
            [sys.executable, "-c", WRITING_ONCE, path, log], cwd=ROOT
        )
        while not has_waiting_writer(path):
            assert waiting_process.poll() is None
            time.sleep(0.01)
        log.write_text("one ")
    # Without the door lock, this process would get the lock again before the other one wakes up.
    with turn.acquire(60), log.open("a") as turns:
        turns.write("one ")
    assert waiting_process.wait() == 0
    assert log.read_text() == "one other one "


def test_a_forked_child_does_not_use_its_parent_s_connections(settings, store, small):
    subprocess.run([sys.executable, "-c", FORKING, settings.database], cwd=ROOT, check=True)


def test_a_closed_thread_connects_again(store, small):
    store.close_connections()
    store.close_connections()
    assert store.surveys() == [small]
