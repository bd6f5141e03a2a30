"""The store on PostgreSQL, for several application servers: the same promises as in one file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from psycopg import Connection
from psycopg.sql import SQL, Identifier

from survey.errors import StoreBusyError, StoreError
from survey.store.migrations import STEPS, pending_steps, statements
from survey.store.postgres_connections import (
    PostgresConnections,
    named_errors,
    read_applied_steps,
)
from survey.store.store import Store

MIGRATION_LOCK = 0x7375727665790000
"""The advisory lock with which one process at a time changes the schema."""

REPORT_TABLES = ("inbox", "seen", "block", "counts", "release", "invitation")

LOCK_TIMEOUT = "200ms"
"""Longest wait of a rewrite for a reader: everybody who comes later waits behind it."""

ATTEMPTS, PAUSE_SECONDS = 5, 0.3
"""Number of attempts to rewrite all tables, and the pause in which others go first."""


class PostgresStore(PostgresConnections, Store):
    """A `Store` in the database of a postgresql:// URL; its role needs only its own schema."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        # The release of each survey after which this process has cleaned up.
        self._clean_releases: dict[int, int] = {}
        # The number of spent invitations of each survey that the last rewrite found.
        self._n_spent: dict[int, int] = {}

    # -- schema

    def migrate(self) -> list[str]:
        """Bring the schema up to date; return the steps that were applied."""
        with named_errors(), self._open_connection() as connection:
            return _apply_steps(connection)

    def pending_migrations(self) -> list[str]:
        """Return the steps that the database lacks."""
        with named_errors(), self._open_connection() as connection:
            return pending_steps(read_applied_steps(connection))

    # -- traces of a release

    def clean_up_after_release(self, survey: int) -> None:
        """Remove the order of arrival from the tables' files.

        A heap keeps rows, even deleted ones, in the order in which they came. A spent invitation
        has the number of the transaction that stored its report. Therefore the inbox is rewritten
        in the order of its random ids, and one transaction rewrites all spent invitations.

        Waits only for moments: a reader would block every writer. `retry_clean_up` repeats what
        failed, in this process or another.
        """
        release = self._release_numbers().get(survey, 0)
        with suppress(StoreBusyError), self._open_hurried() as connection:
            self._rewrite_invitations(connection, survey)
            _rewrite(connection, ["inbox"])
            self._clean_releases[survey] = release

    @contextmanager
    def _open_hurried(self) -> Iterator[Connection]:
        """Open a connection that waits for locks only for moments."""
        with named_errors(), self._open_connection() as connection:
            connection.execute("SELECT set_config('lock_timeout', %s, false)", [LOCK_TIMEOUT])
            yield connection

    def _rewrite_invitations(self, connection: Connection, survey: int) -> None:
        """Rewrite all spent invitations in one transaction, if there are new ones."""
        n = _count_spent(connection, survey)
        if n == self._n_spent.get(survey, 0):
            return
        connection.execute(
            "UPDATE invitation SET spent = 1 WHERE survey = %s AND spent = 1", [survey]
        )
        _rewrite(connection, ["invitation"])
        self._n_spent[survey] = n

    def retry_clean_up(self) -> None:
        """Clean up after releases for which this process has not done so."""
        for survey, number in self._release_numbers().items():
            if self._clean_releases.get(survey) != number:
                self.clean_up_after_release(survey)

    def has_free_pages(self) -> bool:
        """Return whether empty tables still have pages."""
        with self._lookup() as transaction:
            return (
                transaction.row(
                    "SELECT 1 WHERE "
                    "(pg_relation_size('inbox') > 0 AND NOT EXISTS (SELECT 1 FROM inbox)) OR "
                    "(pg_relation_size('seen') > 0 AND NOT EXISTS (SELECT 1 FROM seen))"
                )
                is not None
            )

    def vacuum(self) -> None:
        """Rewrite the tables in the order of their keys, so that they contain no history.

        Raises StoreBusyError if readers prevent that in several short attempts; one long attempt
        would block everybody behind it.
        """
        for remaining in reversed(range(ATTEMPTS)):
            try:
                with self._open_hurried() as connection:
                    _rewrite(connection, REPORT_TABLES)
                return
            except StoreBusyError:
                if not remaining:
                    raise
                time.sleep(PAUSE_SECONDS)


def _count_spent(connection: Connection, survey: int) -> int:
    row = connection.execute(
        "SELECT count(*) FROM invitation WHERE survey = %s AND spent = 1", [survey]
    ).fetchone()
    return row[0] if row else 0


def _rewrite(connection: Connection, tables: Sequence[str]) -> None:
    """Write tables again in the order of their keys, without deleted rows."""
    connection.execute("SET statement_timeout = 0")
    for table in tables:
        connection.execute(
            SQL("CLUSTER {} USING {}").format(Identifier(table), Identifier(f"{table}_pkey"))
        )


def _apply_steps(connection: Connection) -> list[str]:
    """Apply the pending steps, each in its own transaction; return their names.

    A step and the record that it was applied are one transaction. Processes that migrate at the
    same time take turns. `connection` is in autocommit mode.
    """
    if connection.execute("SELECT current_schema()").fetchone() == (None,):
        raise StoreError(
            "the database has no schema for this role: CREATE SCHEMA survey AUTHORIZATION role, "
            "and ALTER ROLE role SET search_path = survey"
        )
    return [step for step in STEPS if _apply_step(connection, step)]


def _apply_step(connection: Connection, step: str) -> bool:
    """Apply a step unless the database has it; return whether it was applied."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATION_LOCK])
        connection.execute(
            'CREATE TABLE IF NOT EXISTS applied_migration (name text COLLATE "C" PRIMARY KEY)'
        )
        if step in read_applied_steps(connection):
            return False
        for statement in statements(step, "postgresql"):
            connection.execute(statement.encode())
        connection.execute("INSERT INTO applied_migration (name) VALUES (%s)", [step])
        return True
