"""An open transaction on a PostgreSQL connection, and its errors under the project's names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import cast

import psycopg
from psycopg import Connection

from survey.errors import StoreBusyError, StoreError
from survey.store.protocol import Row, StoredReport
from survey.store.sql.transaction import Values

SURVEY_LOCKS = 0x7375727600000000
"""The advisory lock of survey number k is this plus k."""

# Locks first, then this: it sees every release that was finished before.
ADD = b"""
INSERT INTO inbox (survey, id, stratum, codes)
SELECT survey, id, stratum, codes
FROM unnest(%b::bigint[], %b::bytea[], %b::text[], %b::bytea[])
    AS sent (survey, id, stratum, codes)
WHERE EXISTS (SELECT 1 FROM survey WHERE key = sent.survey AND state <> 'closed')
    AND NOT EXISTS (SELECT 1 FROM seen WHERE seen.survey = sent.survey AND seen.id = sent.id)
ORDER BY survey, id
ON CONFLICT (survey, id) DO NOTHING
RETURNING survey, id
"""


class PostgresTransaction:
    """A `Transaction`; advisory locks keep releases and closing apart from incoming reports."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, statement: str, values: Values = ()) -> list[Row]:
        """Every row of an answer."""
        cursor = self._connection.execute(_translated(statement), values, binary=True)
        return cursor.fetchall()

    def one(self, statement: str, values: Values = ()) -> Row | None:
        """The first row of an answer, or None."""
        return next(iter(self.all(statement, values)), None)

    def change(self, statement: str, values: Values = ()) -> int:
        """Write; returns how many rows it touched."""
        return self._connection.execute(_translated(statement), values).rowcount

    def change_each(self, statement: str, rows: Sequence[Values]) -> list[int]:
        """Write once per row, in order and in one go; returns how many rows each touched."""
        if not rows:
            return []
        with self._connection.cursor() as cursor:
            cursor.executemany(_translated(statement), rows, returning=True)
            touched = [cursor.rowcount]
            while cursor.nextset():
                touched.append(cursor.rowcount)
        return touched

    def insert_waiting(self, reports: Sequence[tuple[int, StoredReport]]) -> set[tuple[int, bytes]]:
        """Put new reports of open surveys into the inbox; returns those that are in it only now.

        Two who add the same ids take them in one order, so that they never wait for each other.
        """
        columns = [
            [survey for survey, _ in reports],
            [report.id for _, report in reports],
            [report.stratum for _, report in reports],
            [report.codes for _, report in reports],
        ]
        rows = self._connection.execute(ADD, columns, binary=True).fetchall()
        return cast("set[tuple[int, bytes]]", set(rows))

    @contextmanager
    def apart(self) -> Iterator[None]:
        """A part that can fail alone."""
        with named_errors(), self._connection.transaction():
            yield

    def share(self, surveys: Collection[int]) -> None:
        """Until the end, nobody else holds these surveys alone."""
        for survey in sorted(surveys):
            self._connection.execute(
                b"SELECT pg_advisory_xact_lock_shared(%b)", [SURVEY_LOCKS + survey]
            )

    def hold(self, survey: int) -> None:
        """Until the end, nobody else shares or holds this survey."""
        self._connection.execute(b"SELECT pg_advisory_xact_lock(%b)", [SURVEY_LOCKS + survey])


@lru_cache(maxsize=256)
def _translated(statement: str) -> bytes:
    """A shared statement with psycopg's mark of a value, sent in binary form."""
    return statement.replace("?", "%b").encode()


@contextmanager
def named_errors() -> Iterator[None]:
    """PostgreSQL's errors as ours: what may pass is 'come again later', all else is refused.

    Only the first line is told: the others may show the row that was refused.
    """
    try:
        yield
    except psycopg.OperationalError as error:
        raise StoreBusyError(f"the store cannot be used right now: {_first_line(error)}") from None
    except psycopg.Error as error:
        raise StoreError(f"the database refused: {_first_line(error)}") from None


def _first_line(error: psycopg.Error) -> str:
    return error.diag.message_primary or (str(error).splitlines() or [type(error).__name__])[0]
