"""An open transaction on a SQLite connection, and SQLite's errors under the project's names."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from survey.errors import StoreBusyError, StoreError
from survey.store.protocol import Row, StoredReport
from survey.store.sql.transaction import Values

PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
"""Primary result codes after which the same may work later: a full or locked disk."""

ADD = """
INSERT INTO inbox (survey, id, stratum, codes)
SELECT ?1, ?2, ?3, ?4
WHERE EXISTS (SELECT 1 FROM survey WHERE key = ?1 AND state <> 'closed')
    AND NOT EXISTS (SELECT 1 FROM seen WHERE survey = ?1 AND id = ?2)
ON CONFLICT (survey, id) DO NOTHING
"""


class SqliteTransaction:
    """A `Transaction`; while it writes, it is the only one, so that surveys need no locks."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, statement: str, values: Values = ()) -> list[Row]:
        """Every row of an answer."""
        return self._connection.execute(statement, values).fetchall()

    def one(self, statement: str, values: Values = ()) -> Row | None:
        """The first row of an answer, or None."""
        return next(iter(self.all(statement, values)), None)

    def change(self, statement: str, values: Values = ()) -> int:
        """Write; returns how many rows it touched."""
        return self._connection.execute(statement, values).rowcount

    def change_each(self, statement: str, rows: Sequence[Values]) -> list[int]:
        """Write once per row, in order; returns how many rows each touched."""
        execute = self._connection.execute
        return [execute(statement, row).rowcount for row in rows]

    def insert_waiting(self, reports: Sequence[tuple[int, StoredReport]]) -> set[tuple[int, bytes]]:
        """Put new reports of open surveys into the inbox; returns those that are in it only now."""
        execute = self._connection.execute
        return {
            (survey, report.id)
            for survey, report in reports
            if execute(ADD, (survey, report.id, report.stratum, report.codes)).rowcount
        }

    @contextmanager
    def apart(self) -> Iterator[None]:
        """A part that can fail alone."""
        self._connection.execute("SAVEPOINT apart")
        try:
            with named_errors():
                yield
        except StoreError:
            self._connection.execute("ROLLBACK TO apart")
            raise
        finally:
            # A full disk may have rolled back all of it.
            if self._connection.in_transaction:
                self._connection.execute("RELEASE apart")

    def share(self, surveys: Collection[int]) -> None:
        """Nothing to do: whoever writes is alone."""

    def hold(self, survey: int) -> None:
        """Nothing to do: whoever writes is alone."""


@contextmanager
def named_errors() -> Iterator[None]:
    """SQLite's errors as ours: what may pass is 'come again later', all else is refused."""
    try:
        yield
    except sqlite3.Error as error:
        # The primary result code is in the lowest eight bits.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in PASSING:
            raise StoreBusyError(f"the store cannot be used right now: {error}") from error
        raise StoreError(f"the database refused: {error}") from error
