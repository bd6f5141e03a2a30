"""Whole tables: read in portions from one state, written so that a repetition changes nothing.

Names of tables and columns come from `tables` alone, never from a caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from survey.store.protocol import Row, Snapshot
from survey.store.sql.transaction import SqlTransactions, Transaction
from survey.store.tables import Table
from survey.store.tables import table as table_of


class SqlCopying(SqlTransactions):
    """The part of a `Store` that backups, copies and checks stand on."""

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Everything as it stands now, for as long as the context lasts."""
        with self._streaming() as transaction:
            yield SqlSnapshot(transaction)

    def insert_rows(self, table: str, rows: Iterable[Row]) -> None:
        """Write rows of a table, in one transaction; those whose key is there are left alone.

        Raises NotFoundError for a table that no store has, StoreError for rows that it refuses.
        """
        into = table_of(table)
        keys = [into.columns.index(column) for column in into.key]
        statement = _insert_statement(into)
        # Before the transaction begins: rows may come from somewhere slow.
        written = [(*row, *(row[place] for place in keys)) for row in rows]
        with self._writing() as transaction:
            transaction.change_each(statement, written)


class SqlSnapshot:
    """A `Snapshot` over an open transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def rows(self, table: str, after: Row | None, limit: int) -> list[Row]:
        """Up to `limit` rows whose primary key comes after `after`, in its order."""
        source = table_of(table)
        return self._transaction.all(
            _page_statement(source, beyond=after is not None), [*(after or ()), limit]
        )


def _insert_statement(into: Table) -> str:
    columns, marks = ", ".join(into.columns), ", ".join("?" * len(into.columns))
    same_key = " AND ".join(f"{column} = ?" for column in into.key)
    return (
        f"INSERT INTO {into.name} ({columns}) SELECT {marks} "  # noqa: S608  names are ours
        f"WHERE NOT EXISTS (SELECT 1 FROM {into.name} WHERE {same_key})"
    )


def _page_statement(source: Table, *, beyond: bool) -> str:
    columns, key = ", ".join(source.columns), ", ".join(source.key)
    condition = f"WHERE ({key}) > ({', '.join('?' * len(source.key))}) " if beyond else ""
    return (
        f"SELECT {columns} FROM {source.name} "  # noqa: S608  names are ours
        f"{condition}ORDER BY {key} LIMIT ?"
    )
