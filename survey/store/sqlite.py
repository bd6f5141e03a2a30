"""The store in one SQLite file: a report is acknowledged only after it is on the disk.

A backup is such a file too, whatever database it was made from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from survey.errors import NotFoundError, StoreBusyError, StoreError
from survey.store.migrations import STEPS, check_not_newer, pending_steps, statements
from survey.store.sqlite_connections import (
    BUSY_SECONDS,
    BUSY_TIMEOUT,
    SqliteConnections,
    connect,
    named_errors,
    named_file_errors,
    read_applied_steps,
)
from survey.store.store import Store

if TYPE_CHECKING:
    import sqlite_utils


class SqliteStore(SqliteConnections, Store):
    """A `Store` in the file at `path`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        # The releases after which this process has emptied the write-ahead log.
        self._clean_releases: dict[int, int] = {}

    # -- schema

    def migrate(self) -> list[str]:
        """Bring the schema up to date; return the steps that were applied."""
        # Imported here: sqlite-utils imports pandas where it is installed, which takes a second.
        from sqlite_utils import Database, Migrations

        migrations = Migrations("survey")
        for step in STEPS:
            migrations(name=step)(_migration(step))
        with named_file_errors():
            self._create_file()
        with (
            named_errors(),
            self._write_lock().acquire(BUSY_SECONDS),
            closing(Database(connect(self.path))) as database,
        ):
            # The file remembers this mode. Changing it needs the file alone, hence only here.
            database.execute("PRAGMA journal_mode = WAL").fetchall()
            pending = [step.name for step in migrations.pending(database)]
            migrations.apply(database)
            return pending

    def pending_migrations(self) -> list[str]:
        """Return the steps that the database lacks."""
        # Connecting would create the file.
        if not self._exists():
            return list(STEPS)
        with named_errors(), closing(connect(self.path)) as connection:
            return pending_steps(read_applied_steps(connection))

    def _create_file(self) -> None:
        """Create the file for its owner only; SQLite gives its other files the same mode."""
        if not (directory := self.path.parent).is_dir():
            # A mistyped path must not create a second, empty database in new directories.
            raise StoreError(f"there is no directory {directory}; create it first")
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))

    # -- traces of a release

    def clean_up_after_release(self, survey: int) -> None:  # noqa: ARG002  the log has all surveys
        """Empty the write-ahead log, which contains single reports in the order of arrival.

        Never waits: a reader would block every writer. `retry_clean_up` repeats what failed.
        """
        releases = self._release_numbers()
        if self._truncate_log():
            self._clean_releases = releases

    def retry_clean_up(self) -> None:
        """Empty the log if there was a release since this process last did so."""
        if self._release_numbers() != self._clean_releases:
            self.clean_up_after_release(survey=0)

    def _truncate_log(self) -> bool:
        """Empty the log; return whether that succeeded."""
        with self._lookup() as transaction:
            transaction.execute("PRAGMA busy_timeout = 0")
            try:
                (row,) = transaction.rows("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                transaction.execute(BUSY_TIMEOUT)
        return not row[0]

    def has_free_pages(self) -> bool:
        """Return whether the file still contains space of deleted rows."""
        with self._lookup() as transaction:
            return transaction.row("PRAGMA freelist_count") != (0,)

    def vacuum(self) -> None:
        """Rewrite the file, so that the layout of its pages contains no history."""
        with named_errors():
            connection = self._connection()
            with self._write_lock().acquire(BUSY_SECONDS):
                connection.execute("VACUUM")
        self._truncate_log()


def _migration(step: str) -> Callable[[sqlite_utils.Database], None]:
    def apply(database: sqlite_utils.Database) -> None:
        for statement in statements(step, "sqlite"):
            database.execute(statement)

    return apply


@contextmanager
def create_file(path: Path) -> Iterator[Store]:
    """Create a store at `path` for its owner only; it is one file when the context has ended.

    Only this thread may use it: the file is incomplete while another program has it open.
    """
    store = SqliteStore(path)
    try:
        store.migrate()
        yield store
    finally:
        store.close_connections()
    _remove_log(path)


def _remove_log(path: Path) -> None:
    """Move the log into the file, and let nobody who opens the file write a log again."""
    with named_errors(), closing(connect(path)) as connection:
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    if mode != ("delete",):
        raise StoreBusyError(f"{path} is open in another program; close it until the copy is done")


@contextmanager
def open_file(path: Path) -> Iterator[Store]:
    """Open the store in the file at `path` without changing it: an older one is migrated in a copy.

    Raises NotFoundError if there is no file, StoreError if it contains no store or a newer one.
    """
    if not path.is_file():
        raise NotFoundError(f"there is no file {path}")
    if _has_pending_steps(path):
        with TemporaryDirectory() as directory:
            migrated = Path(directory) / "migrated.db"
            copyfile(path, migrated)
            with create_file(migrated) as store:
                yield store
        return
    store = SqliteStore(path)
    try:
        yield store
    finally:
        store.close_connections()


def _has_pending_steps(path: Path) -> bool:
    """Return whether a store has an older schema."""
    with named_errors(), closing(connect(path)) as connection:
        applied = read_applied_steps(connection)
    if not applied:
        raise StoreError(f"{path} is not a store: it has none of a store's tables")
    check_not_newer(applied, str(path))
    return bool(pending_steps(applied))
