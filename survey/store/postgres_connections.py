"""Connections to one PostgreSQL database: durable, bounded in time, pooled once per process."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from psycopg import Connection
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool

from survey.errors import SettingsError, StoreError
from survey.store.postgres_migrations import STEPS, applied_steps
from survey.store.postgres_transaction import PostgresTransaction, named_errors
from survey.store.schema import check_schema
from survey.store.sql.transaction import SqlTransactions

BUSY_SECONDS = 5
"""Longest wait for a connection or a lock; below every server's worker timeout."""

MOST_CONNECTIONS = 8
"""Per process; a server takes a hundred unless it is told otherwise."""

SESSION: Mapping[str, str] = {
    "lock_timeout": f"{BUSY_SECONDS}s",
    "statement_timeout": "30s",
    # A reader that died between two blocks of a long reading must not keep its snapshot.
    "idle_in_transaction_session_timeout": "10min",
    # A refused report must not appear in the server's log.
    "log_parameter_max_length_on_error": "0",
    # Every statement goes by a key. A plan made while a table was small would otherwise read the
    # whole table when it has grown.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}

READ_COMMITTED = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
"""Each statement sees what was committed before it: what a lock kept waiting sees the result."""

ONE_STATE = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresConnections(SqlTransactions):
    """A pool, opened at its first use in each process, to the database that `url` names."""

    def __init__(self, url: str) -> None:
        self._conninfo = _checked(url)
        self._forget_pool()
        _STORES.add(self)

    def _forget_pool(self) -> None:
        """Start without connections: in a forked child those of its parent are not ours."""
        self._opening = threading.Lock()
        self._pool: ConnectionPool | None = None

    def _open_pool(self) -> ConnectionPool:
        with self._opening:
            if self._pool is None:
                self._check_migrated()
                self._pool = ConnectionPool(
                    self._conninfo,
                    kwargs={"autocommit": True},
                    min_size=1,
                    max_size=MOST_CONNECTIONS,
                    timeout=BUSY_SECONDS,
                    # The pool asks a server that is gone ever more seldom; instead, who comes next
                    # asks anew, so that a server that is back is used at once.
                    reconnect_timeout=1.0,
                    num_workers=1,
                    configure=_configure,
                    # Finds connections that a restart of the server has cut, and replaces them.
                    check=ConnectionPool.check_connection,
                    open=True,
                )
            return self._pool

    def _check_migrated(self) -> None:
        with self._alone() as connection:
            check_schema(applied_steps(connection), list(STEPS))

    def close_thread_connection(self) -> None:
        """Close what this thread alone holds: nothing, for the pool is everybody's."""

    def close_connections(self) -> None:
        """Close this process's pool; the next use opens another."""
        with self._opening:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        pool = self._open_pool()
        connection = pool.getconn()
        try:
            yield connection
        finally:
            pool.putconn(connection)

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        """A connection outside the pool, for what is done once or may take long."""
        with psycopg.connect(
            self._conninfo, autocommit=True, connect_timeout=BUSY_SECONDS
        ) as connection:
            _configure(connection)
            yield connection

    # -- transactions

    @contextmanager
    def _looking(self) -> Iterator[PostgresTransaction]:
        with named_errors(), self._connection() as connection:
            yield PostgresTransaction(connection)

    @contextmanager
    def _reading(self) -> Iterator[PostgresTransaction]:
        with named_errors(), self._connection() as connection, _transaction(connection, ONE_STATE):
            yield PostgresTransaction(connection)

    _streaming = _reading

    @contextmanager
    def _writing(self) -> Iterator[PostgresTransaction]:
        with (
            named_errors(),
            self._connection() as connection,
            _transaction(connection, READ_COMMITTED),
        ):
            yield PostgresTransaction(connection)


@contextmanager
def _transaction(connection: Connection, begin: str) -> Iterator[None]:
    connection.execute(begin.encode())
    try:
        yield
        ended = connection.execute(b"COMMIT").statusmessage
    except BaseException:
        if connection.info.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        ):
            connection.execute(b"ROLLBACK")
        raise
    if ended != "COMMIT":
        # PostgreSQL answers the commit of a failed transaction by rolling it back, without error.
        raise StoreError(f"the database answered COMMIT with {ended}: nothing was stored")


def _configure(connection: Connection) -> None:
    """Insist on what acknowledged means, bound every wait, and send all integers as one type."""
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.execute(
        "SELECT set_config(name, value, false) "
        "FROM unnest(%s::text[], %s::text[]) AS setting (name, value)",
        [list(SESSION), list(SESSION.values())],
    )
    # Stronger than `on` is only to wait until the standby shows it as well.
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') <> 'remote_apply'"
    )
    if connection.execute("SHOW fsync").fetchone() != ("on",):
        raise StoreError(
            "the PostgreSQL server runs with fsync = off and may lose acknowledged "
            "reports; set fsync = on"
        )


def _checked(url: str) -> str:
    try:
        return make_conninfo(url, application_name="survey")
    except psycopg.Error:
        # The parser's own words repeat the url, and with it the password.
        raise SettingsError(
            "SURVEY_DATABASE is not a PostgreSQL url: postgresql://USER:PASSWORD@HOST/DATABASE"
        ) from None


_STORES: weakref.WeakSet[PostgresConnections] = weakref.WeakSet()


def _forget_pools() -> None:
    for store in _STORES:
        store._forget_pool()


os.register_at_fork(after_in_child=_forget_pools)
