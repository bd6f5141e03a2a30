"""Connections to one SQLite file: durable by default, owner-only, one per thread."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlite_utils import Database

from survey.errors import StoreBusyError, StoreError
from survey.store.schema import check_schema
from survey.store.sql.transaction import SqlTransactions
from survey.store.sqlite_migrations import all_steps, applied_steps
from survey.store.sqlite_transaction import SqliteTransaction, named_errors
from survey.store.sqlite_turn import WriteTurn

BUSY_SECONDS = 5
"""Longest wait for the turn to write; below every server's worker timeout."""

BUSY_TIMEOUT = f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}"

PRAGMAS = (
    BUSY_TIMEOUT,
    # Per connection: NORMAL may lose acknowledged commits when the power fails.
    "PRAGMA synchronous = FULL",
    # What left the inbox must not stay readable in the file's free pages.
    "PRAGMA secure_delete = ON",
    "PRAGMA foreign_keys = ON",
)


class SqliteConnections(SqlTransactions):
    """One connection per thread and process to the file at `path`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._local = threading.local()
        self._turn: WriteTurn | None = None
        self._turn_process = 0

    def _database(self) -> Database:
        """This thread's connection; a forked child never uses its parent's."""
        if getattr(self._local, "process", None) != os.getpid():
            if not self._is_there():
                raise StoreError(f"there is no database at {self.path}; run: survey migrate")
            database = Database(connect(self.path))
            try:
                check_schema(applied_steps(database), all_steps())
            except StoreError:
                database.close()
                raise
            self._local.database = database
            self._local.process = os.getpid()
        found: Database = self._local.database
        return found

    def _is_there(self) -> bool:
        # A folder that may not be entered does not say.
        with named_file_errors():
            return self.path.exists()

    def close_thread_connection(self) -> None:
        """Close what this thread alone holds."""
        self.close_connections()

    def close_connections(self) -> None:
        """Close this thread's connection."""
        if getattr(self._local, "process", None) == os.getpid():
            self._local.database.close()
            self._local.process = None

    # -- transactions

    @contextmanager
    def _looking(self) -> Iterator[SqliteTransaction]:
        with named_errors():
            yield SqliteTransaction(self._database().conn)

    @contextmanager
    def _reading(self) -> Iterator[SqliteTransaction]:
        with named_errors(), _transaction(self._database().conn, "DEFERRED") as transaction:
            yield transaction

    @contextmanager
    def _streaming(self) -> Iterator[SqliteTransaction]:
        with named_errors():
            self._database()
            with (
                closing(connect(self.path)) as connection,
                _transaction(connection, "DEFERRED") as transaction,
            ):
                yield transaction

    @contextmanager
    def _writing(self) -> Iterator[SqliteTransaction]:
        """It takes SQLite's lock at once: a transaction that began by reading fails under load."""
        with named_errors():
            connection = self._database().conn
            with (
                self._write_turn().taken(BUSY_SECONDS),
                _transaction(connection, "IMMEDIATE") as transaction,
            ):
                yield transaction

    def _write_turn(self) -> WriteTurn:
        """This process's place in the queue of writers; a forked child queues for itself."""
        if self._turn is None or self._turn_process != os.getpid():
            with named_file_errors():
                self._turn = WriteTurn(self.path)
            self._turn_process = os.getpid()
        return self._turn


@contextmanager
def _transaction(connection: sqlite3.Connection, mode: str) -> Iterator[SqliteTransaction]:
    connection.execute(f"BEGIN {mode}")
    try:
        yield SqliteTransaction(connection)
        connection.execute("COMMIT")
    except BaseException:
        # Also after a COMMIT that failed: an open transaction would block this thread.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def connect(path: Path) -> sqlite3.Connection:
    """A connection that waits for the disk; it creates the file when there is none."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        for pragma in PRAGMAS:
            connection.execute(pragma).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def named_file_errors() -> Iterator[None]:
    """The system's errors as ours: a full disk is 'come again later', all else is refused."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreBusyError(f"the store cannot be used right now: {error}") from error
        raise StoreError(f"the database's files cannot be used: {error}") from error
