"""What a database must offer for the shared statements: transactions, and locks on surveys.

Statements are written with `?` for each value and use only what SQLite and PostgreSQL both
understand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from survey.store.protocol import Row, StoredReport, Value

Values = Sequence[Value]


class Transaction(Protocol):
    """An open transaction; its errors become the project's when it ends."""

    def all(self, statement: str, values: Values = ()) -> list[Row]:
        """Every row of an answer."""
        ...

    def one(self, statement: str, values: Values = ()) -> Row | None:
        """The first row of an answer, or None."""
        ...

    def change(self, statement: str, values: Values = ()) -> int:
        """Write; returns how many rows it touched."""
        ...

    def change_each(self, statement: str, rows: Sequence[Values]) -> list[int]:
        """Write once per row, in order; returns how many rows each touched."""
        ...

    def insert_waiting(self, reports: Sequence[tuple[int, StoredReport]]) -> set[tuple[int, bytes]]:
        """Put new reports of open surveys into the inbox; returns those that are in it only now.

        Left out are ids that wait already or were seen, and surveys that are closed or missing.
        """
        ...

    def apart(self) -> AbstractContextManager[None]:
        """A part that can fail alone, with the project's errors; what came before it stays."""
        ...

    def share(self, surveys: Collection[int]) -> None:
        """Until the end, nobody else holds these surveys alone."""
        ...

    def hold(self, survey: int) -> None:
        """Until the end, nobody else shares or holds this survey."""
        ...


class SqlTransactions(ABC):
    """The four ways in which the shared statements reach a database."""

    @abstractmethod
    def _looking(self) -> AbstractContextManager[Transaction]:
        """For one reading statement."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Transaction]:
        """For several reading statements that must see one state."""

    @abstractmethod
    def _streaming(self) -> AbstractContextManager[Transaction]:
        """As `_reading`, for a reader between whose statements others of its thread may come."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Transaction]:
        """For writing; what it did is durable when it ends, or gone when it ends by an error."""


def whole_number(row: Row | None) -> int:
    """The number that a statement with exactly one answer gave."""
    if row is None:
        raise LookupError("a statement that always answers gave no row")
    return int(row[0])
