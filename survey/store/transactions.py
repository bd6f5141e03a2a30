"""What a database offers to the shared statements: transactions, and locks on surveys.

The statements have `?` for each value and use only SQL that SQLite and PostgreSQL both understand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from survey.errors import ReportError
from survey.store.schema import Table

Values = Sequence[int | str | bytes]
Row = tuple[Any, ...]

MAX_KEYS = 500
"""Maximum number of keys in one query; databases limit the number of values."""

IN_USE = "a server, a keeper or another command uses the database {name}; stop it first"
RESERVED = "a restore, a migration or a copy uses the database {name}; wait until it has finished"

REGISTRY = 0
"""The key of no survey. Locking it admits one writer at a time to surveys, people and drafts."""


@dataclass(frozen=True)
class StoredReport:
    """A report: a random id of 16 bytes, and its codes, which are sealed before they are stored.

    `invitation` is the SHA-256 of the invitation's token, empty for an open link. It is spent
    together with the report.
    """

    id: bytes
    stratum: str
    codes: bytes
    invitation: bytes = b""

    def __post_init__(self) -> None:
        if len(self.id) != 16:
            raise ReportError(f"a report's id must be 16 bytes, not {len(self.id)}")
        if len(self.invitation) not in (0, 32):
            raise ReportError(
                f"an invitation must be a SHA-256 of 32 bytes, not {len(self.invitation)}"
            )
        if "\0" in self.stratum:
            raise ReportError("a stratum must be without the character NUL")


class Transaction(ABC):
    """An open transaction; when it ends, database errors become the project's."""

    @abstractmethod
    def rows(self, statement: str, values: Values = ()) -> list[Row]:
        """Return every row of a query."""

    def row(self, statement: str, values: Values = ()) -> Row | None:
        """Return the first row of a query, or None."""
        return next(iter(self.rows(statement, values)), None)

    def integer(self, statement: str, values: Values = ()) -> int:
        """Return the integer of a query that always has exactly one row."""
        ((value,),) = self.rows(statement, values)
        return int(value)

    @abstractmethod
    def execute(self, statement: str, values: Values = ()) -> int:
        """Write; return the number of rows affected."""

    @abstractmethod
    def execute_many(self, statement: str, rows: Sequence[Values]) -> list[int]:
        """Write once per row, in order; return the number of rows that each affected."""

    @abstractmethod
    def insert_rows(self, table: Table, rows: Sequence[Values], on_conflict: str) -> None:
        """Insert many rows with few statements; `on_conflict` is the clause for existing keys."""

    @abstractmethod
    def copy_rows(self, table: Table, rows: Sequence[Values]) -> None:
        """Insert many rows, whose keys must be new, with the database's fastest method."""

    @abstractmethod
    def insert_ids(self, ids: Sequence[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
        """Record identities of new pending reports of open surveys; return those recorded.

        Skip known identities and those of closed or missing surveys. None may occur twice.
        """

    @abstractmethod
    def replace_pending_ids(
        self, survey: int, released: Sequence[bytes], pending: Sequence[bytes]
    ) -> None:
        """Delete the identities of released reports; rewrite those of reports that stay pending."""

    @abstractmethod
    def released_rows(self, survey: int, identities: Sequence[bytes]) -> list[Row]:
        """Return the rows of `released_ids` that contain or would contain these identities."""

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[None]:
        """Run a part that can fail with the project's errors, and keep what came before it."""

    @abstractmethod
    def lock(self, survey: int, *, shared: bool = False) -> None:
        """Keep others from locking this survey until the transaction ends.

        Transactions that lock it as shared do not exclude each other.
        """


class Transactions(ABC):
    """The four ways in which the shared statements reach a database."""

    @abstractmethod
    def _lookup(self) -> AbstractContextManager[Transaction]:
        """Begin a single query."""

    @abstractmethod
    def _read(self) -> AbstractContextManager[Transaction]:
        """Begin several queries that see the same state."""

    @abstractmethod
    def _stream(self) -> AbstractContextManager[Transaction]:
        """Begin queries that see the same state while this thread runs other transactions."""

    @abstractmethod
    def _write(self) -> AbstractContextManager[Transaction]:
        """Begin writing; changes are durable when the context ends, or undone by an error."""

    def _rows(self, statement: str, values: Values = ()) -> list[Row]:
        """Return every row of a single query."""
        with self._lookup() as transaction:
            return transaction.rows(statement, values)

    def _rows_of_keys(self, query: str, keys: Sequence[int]) -> list[Row]:
        """Return the rows of a query that ends in `key IN`, for any number of keys."""
        rows: list[Row] = []
        for start in range(0, len(keys), MAX_KEYS):
            part = keys[start : start + MAX_KEYS]
            rows += self._rows(f"{query} ({', '.join('?' * len(part))})", part)
        return rows

    def _row(self, statement: str, values: Values = ()) -> Row | None:
        """Return the first row of a single query, or None."""
        with self._lookup() as transaction:
            return transaction.row(statement, values)

    def _integer(self, statement: str, values: Values = ()) -> int:
        """Return the integer of a single query that always has exactly one row."""
        with self._lookup() as transaction:
            return transaction.integer(statement, values)

    def _execute(self, statement: str, values: Values = ()) -> int:
        """Run a single statement that writes; return the number of rows affected."""
        with self._write() as transaction:
            return transaction.execute(statement, values)
