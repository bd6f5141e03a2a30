"""Connections to one SQLite file: durable by default, owner-only, one per thread."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlite_utils import Database

from survey.errors import StoreBusyError, StoreError
from survey.store.migrations import migrations

BUSY_SECONDS = 5
"""Longest wait for the write lock; below every server's worker timeout."""

BUSY_TIMEOUT = f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}"

PRAGMAS = (
    BUSY_TIMEOUT,
    # Per connection: NORMAL may lose acknowledged commits when the power fails.
    "PRAGMA synchronous = FULL",
    # What left the inbox must not stay readable in the file's free pages.
    "PRAGMA secure_delete = ON",
    "PRAGMA foreign_keys = ON",
)


class SqliteConnections:
    """One connection per thread and process to the file at `path`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._local = threading.local()
        # Threads queue here, fairly; SQLite's own lock, for other processes, polls.
        self._writing = threading.Lock()
        self._log_pending = False

    # -- connections and transactions

    def _database(self, *, create: bool = False) -> Database:
        """This thread's connection; a forked child never uses its parent's."""
        local = self._local
        if getattr(local, "process", None) != os.getpid():
            if create:
                self._make_file()
            elif not self.path.exists():
                raise StoreError(f"there is no database at {self.path}; run: survey migrate")
            local.database = Database(_connect(self.path))
            local.process = os.getpid()
            if not create:
                self._check_migrated(local)
        database: Database = local.database
        return database

    def _check_migrated(self, local: threading.local) -> None:
        pending = [step.name for step in migrations.pending(local.database)]
        if pending:
            self.close_connections()
            raise StoreError(f"the database lacks {', '.join(pending)}; run: survey migrate")

    def _make_file(self) -> None:
        """Create the file readable by its owner alone; SQLite's other files copy its mode."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A writing transaction that takes its lock at once: a deferred one fails under writers."""
        with self._writing, self._begin("IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _begin(self, mode: str) -> Iterator[sqlite3.Connection]:
        with named_errors():
            connection: sqlite3.Connection = self._database().conn
            connection.execute(f"BEGIN {mode}")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # Also after a COMMIT that failed: an open transaction would block this thread.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close_connections(self) -> None:
        """Close this thread's connection."""
        if getattr(self._local, "process", None) == os.getpid():
            self._local.database.close()
            self._local.process = None

    def migrate(self) -> list[str]:
        """Bring the schema up to date; returns the steps applied."""
        with named_errors():
            database = self._database(create=True)
            # Kept in the file; switching needs the file alone, so never at an ordinary start.
            database.execute("PRAGMA journal_mode = WAL").fetchall()
            pending = [step.name for step in migrations.pending(database)]
            migrations.apply(database)
            return pending

    def pending_migrations(self) -> list[str]:
        """Steps that this database lacks."""
        if not self.path.exists():
            # Looking must not create a database.
            with closing(Database(memory=True)) as empty:
                return [step.name for step in migrations.pending(empty)]
        with named_errors():
            return [step.name for step in migrations.pending(self._database(create=True))]

    def truncate_log(self, *, only_pending: bool = False) -> None:
        """Move the log into the file and empty it, unless somebody is reading just now.

        It never waits: a reader would otherwise hold up every writer. What could not be cut is
        remembered, and `only_pending` tries again only then.
        """
        if only_pending and not self._log_pending:
            return
        with named_errors():
            database = self._database()
            database.execute("PRAGMA busy_timeout = 0")
            try:
                row = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                database.execute(BUSY_TIMEOUT)
            self._log_pending = bool(row[0])

    def has_free_pages(self) -> bool:
        """Whether something was deleted since the file was last rewritten."""
        with named_errors():
            row = self._database().execute("PRAGMA freelist_count").fetchone()
            return bool(row[0])

    def vacuum(self) -> None:
        """Rewrite the file, so that the layout of its pages tells nothing of its history."""
        with named_errors():
            self._database().execute("VACUUM")
        self.truncate_log()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        for pragma in PRAGMAS:
            connection.execute(pragma).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def named_errors() -> Iterator[None]:
    """SQLite's operational errors as ours: a full or locked disk is 'come again later'."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreBusyError(f"the store cannot be used right now: {error}") from error
    except sqlite3.DatabaseError as error:
        raise StoreError(f"the database refused: {error}") from error
