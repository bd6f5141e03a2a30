"""The store on PostgreSQL, for several application servers: the same promises as in one file."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from select import POLLIN, poll
from typing import Any, cast

import psycopg
from psycopg import Connection, Cursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL, Identifier
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool, PoolTimeout

from survey.errors import (
    ConflictError,
    SettingsError,
    StoreBusyError,
    StoreError,
    StoreReplacedError,
)
from survey.store.interface import Store
from survey.store.migrations import STEPS, check_schema, compute, pending_steps, statements
from survey.store.schema import TYPES, Table
from survey.store.transactions import IN_USE, RESERVED, Row, Transaction, Values

BUSY_SECONDS = 5
"""Longest wait for a connection or a lock; shorter than every server's worker timeout."""

MAX_CONNECTIONS = 8
"""Most connections of a process; a PostgreSQL server accepts a hundred by default."""

SESSION: Mapping[str, str] = {
    "lock_timeout": f"{BUSY_SECONDS}s",
    "statement_timeout": "30s",
    # A reader that stopped between two blocks must not keep its snapshot forever.
    "idle_in_transaction_session_timeout": "10min",
    # A refused report must not appear in the server's log.
    "log_parameter_max_length_on_error": "0",
    # Every statement uses a key. A plan that was made for a small table would otherwise go on
    # reading the whole table after it has grown.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}

READ_COMMITTED = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
"""Each statement sees what was committed before it, also after it waited for a lock."""

ONE_STATE = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

SURVEY_LOCKS = 0x7375727600000000
"""The advisory lock of the survey with key k is this plus k."""

MIGRATION_LOCK = 0x7375727665790000
"""The advisory lock with which one process at a time changes the schema."""

USE_LOCK = 0x7375727675730000
"""The advisory lock that servers and keepers share; a restore holds it exclusively."""

REPLACED = (
    "the database is no longer the one that this process opened: it was renamed or replaced while "
    "in use; restart the server and the keeper, or rename it back"
)

PENDING_TABLES = ("inbox", "pending", "pending_id")
REPORT_TABLES = (*PENDING_TABLES, "released_ids", "block", "counts", "release", "invitation")

LOCK_TIMEOUT = "200ms"
"""Longest wait of a rewrite for a reader: everybody who comes later waits behind it."""

MAX_REWRITTEN_BYTES = 2 * 2**20
"""Maximum size of a table that is rewritten: nobody can write until the rewrite ends."""

ATTEMPTS, PAUSE_SECONDS = 5, 0.3
"""Number of attempts to rewrite all tables, and the pause in which others go first."""

FIRST = (
    "(SELECT first FROM released_ids "
    "WHERE survey = {} AND first BETWEEN substr(new.id, 1, 1) AND new.id "
    "ORDER BY first DESC LIMIT 1)"
)
"""Subquery for the key of the row that contains an identity if its report was released."""

# Runs after the survey is locked, so that it sees every survey that was closed before.
INSERT_IDS = f"""
INSERT INTO pending_id (survey, id)
SELECT survey, id FROM unnest(%b::bigint[], %b::bytea[]) AS new (survey, id)
WHERE EXISTS (SELECT 1 FROM survey WHERE key = new.survey AND state <> 'closed')
    AND NOT EXISTS (
        SELECT 1 FROM released_ids
        WHERE survey = new.survey AND first = {FIRST.format("new.survey")}
            AND position(substr(new.id, 2) IN ids) > 0
    )
ORDER BY survey, id
ON CONFLICT (survey, id) DO NOTHING
RETURNING survey, id
""".encode()  # noqa: S608  constant

RELEASED_ROWS = f"""
SELECT survey, first, ids FROM released_ids WHERE survey = %b
    AND first = ANY (ARRAY(SELECT {FIRST.format("%b")} FROM unnest(%b::bytea[]) AS new (id)))
""".encode()  # noqa: S608  constant

DELETE_IDS = b"DELETE FROM pending_id WHERE survey = %b AND id = ANY (%b::bytea[])"
WRITE_IDS = (
    b"INSERT INTO pending_id (survey, id) "
    b"SELECT %b, id FROM unnest(%b::bytea[]) AS new (id) ORDER BY id"
)


class _Transaction(Transaction):
    """A transaction in PostgreSQL; advisory locks separate releases and closing from reports.

    If `begin` is given, the transaction queues that statement, locks and inserts, and sends them
    with the next statement whose result it needs: a round trip to the database takes longer than
    its work.
    """

    def __init__(self, connection: Connection, begin: bytes = b"") -> None:
        self._connection = connection
        self._can_wait = bool(begin)
        self._waiting: list[tuple[bytes, Sequence[Any]]] = []
        if begin:
            self._waiting.append((begin, ()))

    def rows(self, statement: str, values: Values = ()) -> list[Row]:
        return self._send(_to_psycopg(statement), values).fetchall()

    def execute(self, statement: str, values: Values = ()) -> int:
        return self._send(_to_psycopg(statement), values).rowcount

    def execute_many(self, statement: str, rows: Sequence[Values]) -> list[int]:
        if not rows:
            return []
        with self._connection.cursor() as cursor:
            with self._connection.pipeline():
                self._send_waiting()
                cursor.executemany(_to_psycopg(statement), rows, returning=True)
            affected = [cursor.rowcount]
            while cursor.nextset():
                affected.append(cursor.rowcount)
        return affected

    def insert_rows(self, table: Table, rows: Sequence[Values], on_conflict: str) -> None:
        if rows:
            statement = f"{_insert_statement(table)} {on_conflict}"
            self._send_later(statement.encode(), list(map(list, zip(*rows, strict=True))))

    def copy_rows(self, table: Table, rows: Sequence[Values]) -> None:
        self._send_waiting()
        statement = SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(Identifier(table.name))
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(
                [TYPES["postgresql"][column.kind].split()[0] for column in table.columns]
            )
            for row in rows:
                copy.write_row(row)

    def insert_ids(self, ids: Sequence[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
        # All transactions insert in the order of the ids and so never wait for each other.
        columns = [[survey for survey, _ in ids], [report_id for _, report_id in ids]]
        return cast("set[tuple[int, bytes]]", set(self._send(INSERT_IDS, columns).fetchall()))

    def replace_pending_ids(
        self, survey: int, released: Sequence[bytes], pending: Sequence[bytes]
    ) -> None:
        self._send_later(DELETE_IDS, [survey, [*released, *pending]])
        self._send_later(WRITE_IDS, [survey, list(pending)])

    def released_rows(self, survey: int, identities: Sequence[bytes]) -> list[Row]:
        values = [survey, survey, list(identities)]
        return self._send(RELEASED_ROWS, values).fetchall()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        with named_errors():
            self._send_waiting()
            with self._connection.transaction():
                yield
                self._send_waiting()

    def lock(self, survey: int, *, shared: bool = False) -> None:
        function = b"pg_advisory_xact_lock_shared" if shared else b"pg_advisory_xact_lock"
        self._send_later(b"SELECT " + function + b"(%b)", [SURVEY_LOCKS + survey])

    def commit(self) -> None:
        """Send the queued statements and commit; raise StoreError if the database rolled back."""
        status = self._send(b"COMMIT").statusmessage
        if status != "COMMIT":
            # PostgreSQL rolls a failed transaction back at its COMMIT, without an error.
            raise StoreError(f"the database answered COMMIT with {status}: nothing was stored")

    def _send(self, statement: bytes, values: Sequence[Any] = ()) -> Cursor[Row]:
        """Send the queued statements and then this one; return its result."""
        if not self._waiting:
            return self._connection.execute(statement, values, binary=True)
        with self._connection.pipeline():
            self._send_waiting()
            return self._connection.execute(statement, values, binary=True)

    def _send_later(self, statement: bytes, values: Sequence[Any]) -> None:
        if self._can_wait:
            self._waiting.append((statement, values))
        else:
            self._connection.execute(statement, values)

    def _send_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for statement, values in waiting:
            self._connection.execute(statement, values)


class PostgresStore(Store):
    """A `Store` in the database of a postgresql:// URL; its role needs only its own schema.

    Each process opens a pool of connections at its first use. All work fails if another database
    takes the name of the one that the process opened first.
    """

    def __init__(self, url: str) -> None:
        self._conninfo = _parse(url)
        self._name = str(conninfo_to_dict(self._conninfo).get("dbname", ""))
        self._is_used = False
        # The database opened first, by name; a dict, because its `setdefault` is atomic.
        self._first_database: dict[str, DatabaseIdentity] = {}
        self._is_replaced = False
        self._forget_pool()
        _STORES.add(self)
        # The release of each survey after which this process has cleaned up.
        self._clean_releases: dict[int, int] = {}
        # The number of spent invitations of each survey that the last rewrite found.
        self._n_spent: dict[int, int] = {}

    def _forget_pool(self) -> None:
        """Start without connections: a forked child must not use those of its parent."""
        self._opening = threading.Lock()
        self._pool: ConnectionPool | None = None

    def _open_pool(self) -> ConnectionPool:
        with self._opening:
            if self._pool is None:
                with self._open_connection() as connection:
                    check_schema(read_applied_steps(connection))
                self._pool = ConnectionPool(
                    self._conninfo,
                    kwargs={"autocommit": True},
                    min_size=1,
                    max_size=MAX_CONNECTIONS,
                    timeout=BUSY_SECONDS,
                    # The pool would wait longer after each failed attempt. Instead, the next
                    # caller tries again, so that a server that is back is used at once.
                    reconnect_timeout=1.0,
                    num_workers=1,
                    configure=self._configure,
                    # Replaces connections that a restart of the server has cut.
                    check=_check_open,
                    open=True,
                )
            return self._pool

    def close_thread_connection(self) -> None:
        """Do nothing: all threads share the pool."""

    def close_connections(self) -> None:
        """Close the pool of this process; the next use opens another."""
        with self._opening:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _configure(self, connection: Connection) -> None:
        """Prepare a connection of the pool; it shares the lock while the database is in use."""
        self._check_database(connection)
        _configure(connection)
        if self._is_used and not _try_lock(connection, "pg_try_advisory_lock_shared"):
            raise ConflictError(RESERVED.format(name=self._name))

    def _check_database(self, connection: Connection) -> None:
        """Raise StoreReplacedError unless a new connection leads to the database opened first.

        PostgreSQL cannot rename a database that has connections, so existing ones need no check.
        """
        identity = read_identity(connection)
        self._is_replaced = self._first_database.setdefault(self._name, identity) != identity
        if self._is_replaced:
            raise StoreReplacedError(REPLACED)

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        pool = self._open_pool()
        if self._is_replaced:
            # The pool would retry for seconds, and its error would not state the reason.
            with self._open_connection():
                pass
        try:
            connection = pool.getconn()
        except PoolTimeout:
            if self._is_replaced:
                raise StoreReplacedError(REPLACED) from None
            raise
        try:
            yield connection
        finally:
            pool.putconn(connection)

    @contextmanager
    def _open_connection(self) -> Iterator[Connection]:
        """Open a connection outside the pool, for rare or long work."""
        with psycopg.connect(
            self._conninfo, autocommit=True, connect_timeout=BUSY_SECONDS
        ) as connection:
            self._check_database(connection)
            _configure(connection)
            yield connection

    # -- other processes

    @contextmanager
    def use(self) -> Iterator[None]:
        """Mark the database as in use; raise ConflictError if it is reserved."""
        with named_errors(), self._open_connection() as connection:
            if not _try_lock(connection, "pg_try_advisory_lock_shared"):
                raise ConflictError(RESERVED.format(name=self._name))
            self.close_connections()
            self._is_used = True
            # From here on, the connections of the pool hold the lock, even after they reconnect.
            self._open_pool().wait(BUSY_SECONDS)
        try:
            yield
        finally:
            self._is_used = False
            self.close_connections()

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Prevent servers and keepers from using the database; ConflictError if one uses it."""
        with named_errors(), self._open_connection() as connection:
            if not _try_lock(connection, "pg_try_advisory_lock"):
                raise ConflictError(IN_USE.format(name=self._name))
            yield

    # -- transactions

    @contextmanager
    def _lookup(self) -> Iterator[Transaction]:
        with named_errors(), self._connection() as connection:
            yield _Transaction(connection)

    @contextmanager
    def _read(self) -> Iterator[Transaction]:
        with (
            named_errors(),
            self._connection() as connection,
            _begin(connection, ONE_STATE) as transaction,
        ):
            yield transaction

    _stream = _read

    @contextmanager
    def _write(self) -> Iterator[Transaction]:
        with (
            named_errors(),
            self._connection() as connection,
            _begin(connection, READ_COMMITTED) as transaction,
        ):
            yield transaction

    # -- schema

    def migrate(self) -> list[str]:
        """Bring the schema up to date; return the steps that were applied."""
        with named_errors(), self._open_connection() as connection:
            if connection.execute("SELECT current_schema()").fetchone() == (None,):
                raise StoreError(
                    "the database has no schema for this role: CREATE SCHEMA survey AUTHORIZATION "
                    "role, and ALTER ROLE role SET search_path = survey"
                )
            return [step for step in STEPS if _apply_step(connection, step)]

    def pending_migrations(self) -> list[str]:
        """Return the steps that the database lacks."""
        with named_errors(), self._open_connection() as connection:
            return pending_steps(read_applied_steps(connection))

    def find_damage(self, tables: Sequence[str] = ()) -> list[str]:  # noqa: ARG002
        """Return an empty list: PostgreSQL has no check that this role may run.

        The server verifies the checksum of each page that it reads, if checksums are enabled.
        """
        return []

    def unchecked_content(self) -> str:
        """Return which changes remain undetected if the server's pages have no checksums."""
        with self._lookup() as transaction:
            if transaction.rows("SHOW data_checksums") == [("on",)]:
                return ""
        return (
            "the PostgreSQL server runs with data_checksums = off: this check notices changed "
            "reports, counts, ids, definitions, states and days, but no damage to accounts, "
            "teams, drafts, invitations, plans, links and settings; stop the server and run "
            "pg_checksums --enable, or create it with initdb --data-checksums"
        )

    def repair_pending(self) -> bool:
        """Do nothing: the server does not reveal rows that differ from their index."""
        return False

    # -- traces of a release

    def clean_up_after_release(self, *surveys: int) -> None:
        """Remove the order of arrival from the tables' files.

        A heap keeps rows, even deleted ones, in the order in which they came. A spent invitation
        has the number of the transaction that stored its sealed report. Therefore pending batches
        are rewritten in the order of their random ids, and one transaction rewrites all spent
        invitations.

        Waits only for moments: a reader would block every writer. `retry_clean_up` repeats what
        failed, in this process or another.
        """
        numbers = self._release_numbers()
        with suppress(StoreBusyError), self._open_hurried() as connection:
            self._rewrite_invitations(connection, surveys)
            _rewrite(connection, PENDING_TABLES)
            self._clean_releases |= {survey: numbers.get(survey, 0) for survey in surveys}

    @contextmanager
    def _open_hurried(self) -> Iterator[Connection]:
        """Open a connection that waits for locks only for moments."""
        with named_errors(), self._open_connection() as connection:
            connection.execute("SELECT set_config('lock_timeout', %s, false)", [LOCK_TIMEOUT])
            yield connection

    def _rewrite_invitations(self, connection: Connection, surveys: Sequence[int]) -> None:
        """Rewrite all spent invitations of surveys in one transaction, if there are new ones."""
        spent = "survey = ANY (%s::bigint[]) AND spent = 1"
        rows = connection.execute(
            f"SELECT survey, count(*) FROM invitation WHERE {spent} GROUP BY survey",  # noqa: S608  constant
            [list(surveys)],
        )
        new = {survey: n for survey, n in rows if n != self._n_spent.get(survey)}
        if not new:
            return
        connection.execute(
            f"UPDATE invitation SET spent = 1 WHERE {spent}",  # noqa: S608  constant
            [list(new)],
        )
        _rewrite(connection, ["invitation"])
        self._n_spent |= new

    def retry_clean_up(self) -> None:
        """Clean up after releases for which this process has not done so."""
        changed = [
            survey
            for survey, number in self._release_numbers().items()
            if self._clean_releases.get(survey) != number
        ]
        if changed:
            self.clean_up_after_release(*changed)

    def has_free_pages(self) -> bool:
        """Return whether empty tables still have pages."""
        row = self._row(
            "SELECT 1 WHERE "
            "(pg_relation_size('inbox') > 0 AND NOT EXISTS (SELECT 1 FROM inbox)) OR "
            "(pg_relation_size('pending') > 0 AND NOT EXISTS (SELECT 1 FROM pending)) OR "
            "(pg_relation_size('pending_id') > 0 AND NOT EXISTS (SELECT 1 FROM pending_id)) OR "
            "(pg_relation_size('released_ids') > 0 AND NOT EXISTS (SELECT 1 FROM released_ids))"
        )
        return row is not None

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


def _check_open(connection: Connection) -> None:
    """Raise OperationalError if the server has closed a connection.

    On an idle connection, the server sends nothing except the reason for closing it.
    """
    socket = poll()
    socket.register(connection.fileno(), POLLIN)
    if socket.poll(0):
        ConnectionPool.check_connection(connection)


@contextmanager
def _begin(connection: Connection, begin: str) -> Iterator[Transaction]:
    transaction = _Transaction(connection, begin.encode())
    try:
        yield transaction
        transaction.commit()
    except BaseException:
        if connection.info.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        ):
            connection.execute(b"ROLLBACK")
        raise


def _configure(connection: Connection) -> None:
    """Require durable commits and UTF-8, limit waits, and send all integers as one type."""
    if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
        raise StoreError(
            f"the PostgreSQL database must have the encoding UTF8 (found {encoding}); create it "
            "with: CREATE DATABASE survey ENCODING 'UTF8' TEMPLATE template0"
        )
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.execute(
        "SELECT set_config(name, value, false) "
        "FROM unnest(%s::text[], %s::text[]) AS setting (name, value)",
        [list(SESSION), list(SESSION.values())],
    )
    # Only remote_apply is stronger: it also waits until a standby shows the commit.
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') <> 'remote_apply'"
    )
    if connection.execute("SHOW fsync").fetchone() != ("on",):
        raise StoreError(
            "the PostgreSQL server runs with fsync = off and may lose acknowledged "
            "reports; set fsync = on"
        )


def _try_lock(connection: Connection, function: str) -> bool:
    """Try to take the lock of the database's users; return whether it was free.

    The connection holds the lock until it ends.
    """
    statement = SQL("SELECT {}(%s)").format(Identifier(function))
    ((is_locked,),) = connection.execute(statement, [USE_LOCK])
    return bool(is_locked)


DatabaseIdentity = tuple[int, int]
"""The server's system identifier (0 if this role may not read it) and the database's oid."""


def read_identity(connection: Connection) -> DatabaseIdentity:
    """Return the identity of a connection's database, which no rename or failover changes."""
    ((oid, may_read),) = connection.execute(
        "SELECT oid::bigint, has_function_privilege('pg_control_system()', 'execute') "
        "FROM pg_database WHERE datname = current_database()"
    )
    if not may_read:
        return 0, oid
    ((system,),) = connection.execute("SELECT system_identifier FROM pg_control_system()")
    return system, oid


def _parse(url: str) -> str:
    try:
        return make_conninfo(url, application_name="survey")
    except psycopg.Error:
        # The parser's message repeats the URL, and with it the password.
        raise SettingsError(
            "SURVEY_DATABASE is not a PostgreSQL URL: postgresql://USER:PASSWORD@HOST/DATABASE"
        ) from None


def read_applied_steps(connection: Connection) -> list[str]:
    """Return the steps that a database has; change nothing."""
    if connection.execute("SELECT to_regclass('applied_migration')").fetchone() == (None,):
        return []
    rows = connection.execute("SELECT name FROM applied_migration ORDER BY name").fetchall()
    return [name for (name,) in rows]


@lru_cache(maxsize=256)
def _to_psycopg(statement: str) -> bytes:
    """Return a shared statement with psycopg's mark for values in binary form."""
    return statement.replace("?", "%b").encode()


@lru_cache
def _insert_statement(table: Table) -> str:
    """Return the statement that inserts rows, given as one array of values for each column."""
    names = ", ".join(table.column_names)
    kinds = [TYPES["postgresql"][column.kind].split()[0] for column in table.columns]
    arrays = ", ".join(f"%b::{kind}[]" for kind in kinds)
    return f"INSERT INTO {table.name} ({names}) SELECT * FROM unnest({arrays})"  # noqa: S608  constant


@contextmanager
def named_errors() -> Iterator[None]:
    """Translate PostgreSQL's errors: StoreBusyError for transient ones, StoreError for all others.

    Only the first line of a message is kept: the others may quote the row that was refused.
    """
    try:
        yield
    except psycopg.OperationalError as error:
        raise StoreBusyError(f"the store cannot be used right now: {_first_line(error)}") from None
    except psycopg.Error as error:
        raise StoreError(f"the database refused: {_first_line(error)}") from None


def _first_line(error: psycopg.Error) -> str:
    return error.diag.message_primary or (str(error).splitlines() or [type(error).__name__])[0]


def _rewrite(connection: Connection, tables: Sequence[str]) -> None:
    """Write tables again in the order of their keys, without deleted rows.

    In large tables, only remove deleted rows: this does not block writers.
    """
    connection.execute("SET statement_timeout = 0")
    for table in tables:
        name, key = Identifier(table), Identifier(f"{table}_pkey")
        ((size,),) = connection.execute("SELECT pg_table_size(%s)", [table])
        is_large = size > MAX_REWRITTEN_BYTES
        connection.execute(
            SQL("VACUUM {}").format(name)
            if is_large
            else SQL("CLUSTER {} USING {}").format(name, key)
        )


def _apply_step(connection: Connection, step: str) -> bool:
    """Apply a step unless the database has it; return whether it was applied.

    Processes that migrate at the same time take turns. `connection` is in autocommit mode.
    """
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATION_LOCK])
        connection.execute(
            'CREATE TABLE IF NOT EXISTS applied_migration (name text COLLATE "C" PRIMARY KEY)'
        )
        if step in read_applied_steps(connection):
            return False
        for statement in statements(step, "postgresql"):
            connection.execute(statement.encode())
        compute(step, _Transaction(connection))
        connection.execute("INSERT INTO applied_migration (name) VALUES (%s)", [step])
        return True


_STORES: weakref.WeakSet[PostgresStore] = weakref.WeakSet()


def _forget_pools() -> None:
    for store in _STORES:
        store._forget_pool()


os.register_at_fork(after_in_child=_forget_pools)
