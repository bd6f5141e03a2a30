"""The store on PostgreSQL, for several application servers: the same promises as on one file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from psycopg import Connection
from psycopg.sql import SQL, Identifier

from survey.errors import StoreBusyError
from survey.store.postgres_connections import PostgresConnections
from survey.store.postgres_migrations import apply_steps, pending_steps
from survey.store.postgres_transaction import named_errors
from survey.store.sql import SqlStore

REWRITTEN_AT_CLOSE = ("inbox", "seen", "block", "counts", "release", "invitation")

PATIENCE = "200ms"
"""Longest that a rewriting waits for a reader: everyone who comes after waits as well."""

TRIES, PAUSE_SECONDS = 5, 0.3
"""How often all tables are tried to be rewritten, and how long others are let go first."""


class PostgresStore(PostgresConnections, SqlStore):
    """A `Store` in the database that a postgresql:// url names.

    Its role needs nothing beyond a schema of its own.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._tidied: dict[int, int] = {}
        """Releases after which this process has tidied."""
        self._spent: dict[int, int] = {}

    # -- schema

    def migrate(self) -> list[str]:
        """Bring the schema up to date; returns the steps applied."""
        with named_errors(), self._alone() as connection:
            return apply_steps(connection)

    def pending_migrations(self) -> list[str]:
        """Steps that this database lacks."""
        with named_errors(), self._alone() as connection:
            return pending_steps(connection)

    # -- what a release leaves behind

    def clean_up_after_release(self, survey: int) -> None:
        """Take the order of arrival out of what the database keeps.

        A heap keeps rows, also deleted ones, in the order in which they came; and a spent
        invitation bears the number of the transaction that stored its report. The inbox is
        rewritten in the order of its random ids, and all spent invitations by one transaction.

        It hardly waits: a reader would hold up every writer. What could not be done just now is
        left to `retry_clean_up`, of this process or of another.
        """
        released = self._release_numbers().get(survey, 0)
        with suppress(StoreBusyError), self._impatient() as connection:
            self._tidy_invitations(connection, survey)
            _rewrite(connection, ["inbox"])
            self._tidied[survey] = released

    @contextmanager
    def _impatient(self) -> Iterator[Connection]:
        """A connection that waits for a lock for moments only."""
        with named_errors(), self._alone() as connection:
            connection.execute("SELECT set_config('lock_timeout', %s, false)", [PATIENCE])
            yield connection

    def _tidy_invitations(self, connection: Connection, survey: int) -> None:
        """Rewrite all spent invitations by one transaction, if any were spent since the last."""
        spent = _spent(connection, survey)
        if spent == self._spent.get(survey, 0):
            return
        connection.execute(
            "UPDATE invitation SET spent = 1 WHERE survey = %s AND spent = 1", [survey]
        )
        _rewrite(connection, ["invitation"])
        self._spent[survey] = spent

    def retry_clean_up(self) -> None:
        """Tidy after releases that this process has not seen tidied, whoever made them.

        A reader may have kept it from tidying, or a command, or a server that was killed; at its
        start it has seen nothing.
        """
        for survey, number in self._release_numbers().items():
            if self._tidied.get(survey) != number:
                self.clean_up_after_release(survey)

    def has_free_pages(self) -> bool:
        """Whether tables that have been emptied still hold pages."""
        with self._looking() as transaction:
            return (
                transaction.one(
                    "SELECT 1 WHERE "
                    "(pg_relation_size('inbox') > 0 AND NOT EXISTS (SELECT 1 FROM inbox)) OR "
                    "(pg_relation_size('seen') > 0 AND NOT EXISTS (SELECT 1 FROM seen))"
                )
                is not None
            )

    def vacuum(self) -> None:
        """Rewrite the tables in the order of their keys: nothing in them tells their history.

        Raises StoreBusyError while somebody reads them, after a few tries of moments: whoever
        comes after one that waits would wait as well.
        """
        for left in reversed(range(TRIES)):
            try:
                with self._impatient() as connection:
                    _rewrite(connection, REWRITTEN_AT_CLOSE)
                return
            except StoreBusyError:
                if not left:
                    raise
                time.sleep(PAUSE_SECONDS)


def _spent(connection: Connection, survey: int) -> int:
    row = connection.execute(
        "SELECT count(*) FROM invitation WHERE survey = %s AND spent = 1", [survey]
    ).fetchone()
    return row[0] if row else 0


def _rewrite(connection: Connection, tables: Sequence[str]) -> None:
    """Write tables anew in the order of their keys, without what was deleted; empty ones vanish."""
    connection.execute("SET statement_timeout = 0")
    for table in tables:
        connection.execute(
            SQL("CLUSTER {} USING {}").format(Identifier(table), Identifier(f"{table}_pkey"))
        )
