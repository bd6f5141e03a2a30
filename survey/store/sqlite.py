"""The store on one SQLite file: a report is acknowledged only after it is on the disk.

sqlite-utils makes the schema; everything else is plain sqlite3, because `INSERT OR IGNORE` of
sqlite-utils needs rowids and tables of reports have none.
"""

from __future__ import annotations

import os
from contextlib import closing

from sqlite_utils import Database

from survey.errors import StoreError
from survey.store.sql import SqlStore
from survey.store.sqlite_connections import (
    BUSY_SECONDS,
    BUSY_TIMEOUT,
    SqliteConnections,
    connect,
    named_file_errors,
)
from survey.store.sqlite_migrations import migrations, pending_steps
from survey.store.sqlite_transaction import named_errors


class SqliteStore(SqliteConnections, SqlStore):
    """A `Store` in the file at `path`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._tidied: dict[int, int] = {}
        """Releases after which this process has seen the log empty."""

    # -- schema

    def migrate(self) -> list[str]:
        """Bring the schema up to date; returns the steps applied.

        A step and the note that it was applied are one transaction: killed, it is done again.
        """
        with named_file_errors():
            self._make_file()
        with (
            named_errors(),
            self._write_turn().taken(BUSY_SECONDS),
            closing(Database(connect(self.path))) as database,
        ):
            # Kept in the file; switching needs the file alone, so never at an ordinary start.
            database.execute("PRAGMA journal_mode = WAL").fetchall()
            pending = pending_steps(database)
            migrations.apply(database)
            return pending

    def pending_migrations(self) -> list[str]:
        """Steps that this database lacks."""
        with named_errors():
            # Looking must not create a database.
            empty = not self._is_there()
            with closing(Database(memory=True) if empty else Database(connect(self.path))) as found:
                return pending_steps(found)

    def _make_file(self) -> None:
        """Create the file readable by its owner alone; SQLite's other files copy its mode."""
        if not (directory := self.path.parent).is_dir():
            # A mistyped path must not create a second, empty database in new directories.
            raise StoreError(f"there is no directory {directory}; create it first")
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))

    # -- what a release leaves behind

    def clean_up_after_release(self, survey: int) -> None:  # noqa: ARG002  the protocol's
        """Empty the log, which would go on holding single reports in the order of arrival.

        It never waits: a reader would hold up every writer. What could not be done just now is
        left to `retry_clean_up`, of this process or of another. The log is one for all surveys.
        """
        released = self._release_numbers()
        if self._truncate_log():
            self._tidied = released

    def _truncate_log(self) -> bool:
        """Whether the log is empty now."""
        with self._looking() as transaction:
            transaction.change("PRAGMA busy_timeout = 0")
            try:
                (row,) = transaction.all("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                transaction.change(BUSY_TIMEOUT)
        return not row[0]

    def retry_clean_up(self) -> None:
        """Tidy after releases that this process has not seen tidied, whoever made them.

        A reader may have kept it from tidying, or a command, or a server that was killed; at its
        start it has seen nothing.
        """
        if self._release_numbers() != self._tidied:
            self.clean_up_after_release(survey=0)

    def has_free_pages(self) -> bool:
        """Whether something was deleted since the file was last rewritten."""
        with self._looking() as transaction:
            return transaction.one("PRAGMA freelist_count") != (0,)

    def vacuum(self) -> None:
        """Rewrite the file, so that the layout of its pages tells nothing of its history."""
        with named_errors():
            connection = self._database().conn
            with self._write_turn().taken(BUSY_SECONDS):
                connection.execute("VACUUM")
        self._truncate_log()
