"""The store that every database implements, and snapshots of its tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from survey.store.drafts import Drafts
from survey.store.people import People, Teams
from survey.store.pictures import Pictures
from survey.store.presentation import Presentation
from survey.store.releases import Releases
from survey.store.reports import Reports
from survey.store.schema import Table, find_table
from survey.store.sealed_reports import SealedReports
from survey.store.shared_results import SharedResults
from survey.store.sign_ins import SignIns
from survey.store.surveys import Surveys
from survey.store.transactions import Row, Transaction


class Store(
    Surveys,
    Reports,
    SealedReports,
    Releases,
    People,
    Teams,
    SignIns,
    SharedResults,
    Drafts,
    Pictures,
    Presentation,
):
    """All surveys, reports and accounts of an instance, in a database of either kind.

    Each method is one transaction. It raises StoreBusyError if the same call may work later,
    StoreError if the database refuses it, or the errors that it names.
    """

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Open all tables as they are now, for as long as the context lasts."""
        with self._stream() as transaction:
            yield Snapshot(transaction)

    def insert_rows(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows into a table in one transaction, with the database's fastest method.

        Raises NotFoundError for an unknown table, and StoreError if the table rejects a row, for
        example because its key exists.
        """
        target = find_table(table)
        # The rows may come from a slow source: read them before the transaction begins.
        values = list(rows)
        with self._write() as transaction:
            transaction.copy_rows(target, values)

    @contextmanager
    def hold_write_lock(self) -> Iterator[None]:
        """Hold the write lock while the context lasts, in a database with one writer at a time.

        Raises StoreBusyError if other writers hold the lock for too long.
        """
        yield

    @abstractmethod
    def use(self) -> AbstractContextManager[None]:
        """Mark the database as in use while the context lasts; other processes can use it too.

        From then on, all work fails with `StoreReplacedError` if another database takes its place.
        The operating system ends the use if the process is killed. Raises ConflictError while
        another process has reserved the database.
        """

    @abstractmethod
    def reserve(self) -> AbstractContextManager[None]:
        """Prevent servers and keepers from using the database while the context lasts.

        The database need not exist yet. Raises ConflictError if a process uses it or has reserved
        it.
        """

    @abstractmethod
    def migrate(self) -> list[str]:
        """Bring the schema up to date; return the steps that were applied.

        A step and the record that it was applied are one transaction: after an interruption, the
        next run repeats the step.
        """

    @abstractmethod
    def pending_migrations(self) -> list[str]:
        """Return the steps that the database lacks."""

    @abstractmethod
    def find_damage(self, tables: Sequence[str] = ()) -> list[str]:
        """Return the damage that the database's own checks find, if it has such checks.

        If `tables` is empty, they check the whole database, otherwise only these tables.
        """

    @abstractmethod
    def unchecked_content(self) -> str:
        """Return which content can change without any check detecting it; "" if there is none."""

    @abstractmethod
    def repair_pending(self) -> bool:
        """Rewrite all pending batches if their rows are out of order or their index is damaged.

        Return whether they were rewritten. Only SQLite can detect this damage.
        """

    @abstractmethod
    def close_connections(self) -> None:
        """Close the connections of this process, or those of this thread on SQLite."""

    @abstractmethod
    def close_thread_connection(self) -> None:
        """Close the connection that only this thread uses, if there is one."""

    @abstractmethod
    def clean_up_after_release(self, *surveys: int) -> None:
        """Remove traces of the order of arrival from the files of the database.

        Returns at once if a reader prevents that; `retry_clean_up` repeats it.
        """

    @abstractmethod
    def retry_clean_up(self) -> None:
        """Repeat the clean-up for all releases that this process has not yet cleaned up after.

        A reader, an interruption or the end of a command may have prevented the clean-up. A new
        process cleans up after all earlier releases.
        """

    @abstractmethod
    def has_free_pages(self) -> bool:
        """Return whether the files still contain unused space, which may hold deleted rows."""

    @abstractmethod
    def vacuum(self) -> None:
        """Rewrite the tables in the order of their keys, so that they contain no history.

        Raises StoreBusyError if readers prevent that.
        """


class Snapshot:
    """The tables of a store as they were at one moment."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def rows(self, table: str, after: Row | None, limit: int) -> list[Row]:
        """Return up to `limit` rows in key order, starting after the key `after`."""
        source = find_table(table)
        statement = _page_statement(source, has_start=after is not None)
        return self._transaction.rows(statement, [*(after or ()), limit])


# The names of tables and columns in these statements come from the schema, never from a caller.


def _page_statement(table: Table, *, has_start: bool) -> str:
    columns, key = ", ".join(table.column_names), ", ".join(table.key)
    condition = f"WHERE ({key}) > ({', '.join('?' * len(table.key))}) " if has_start else ""
    return (
        f"SELECT {columns} FROM {table.name} "  # noqa: S608
        f"{condition}ORDER BY {key} LIMIT ?"
    )
