"""The store in one SQLite file: a report is acknowledged only after it is on the disk.

A backup is such a file too, whatever database it was made from.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING

from survey.errors import (
    ConflictError,
    NotFoundError,
    StoreBusyError,
    StoreError,
    StoreReplacedError,
)
from survey.store.interface import Store
from survey.store.migrations import (
    STEPS,
    check_not_newer,
    check_schema,
    compute,
    pending_steps,
    statements,
)
from survey.store.report_identities import IDENTITY_BYTES
from survey.store.schema import PENDING, Table
from survey.store.sealed_reports import Batch, found_survey
from survey.store.transactions import IN_USE, RESERVED, Row, Transaction, Values

if TYPE_CHECKING:
    import sqlite_utils


BUSY_SECONDS = 5
"""Longest wait for the write lock; shorter than every server's worker timeout."""

BUSY_TIMEOUT = f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}"

PRAGMAS = (
    BUSY_TIMEOUT,
    # A setting of each connection; NORMAL may lose acknowledged commits in a power failure.
    "PRAGMA synchronous = FULL",
    # Released reports must not stay readable in free pages of the file.
    "PRAGMA secure_delete = ON",
    "PRAGMA foreign_keys = ON",
)

TRANSIENT_ERRORS = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
"""Primary result codes after which the same call may work later, such as a full disk."""

NEW_IDS = """
WITH RECURSIVE position (n) AS (
    SELECT 0 UNION ALL SELECT n + 1 FROM position WHERE n + 1 < length(:ids) / :size
), new (id) AS (SELECT substr(:ids, :size * n + 1, :size) FROM position)
"""

FIRST = (
    "(SELECT max(first) FROM released_ids "
    "WHERE survey = :survey AND first BETWEEN substr(new.id, 1, 1) AND new.id)"
)
"""Subquery for the key of the row that contains an identity if its report was released."""

INSERT_IDS = f"""
{NEW_IDS}
INSERT INTO pending_id (survey, id) SELECT :survey, id FROM new
WHERE EXISTS (SELECT 1 FROM survey WHERE key = :survey AND state <> 'closed')
    AND NOT EXISTS (
        SELECT 1 FROM released_ids WHERE survey = :survey AND first = {FIRST}
            AND instr(ids, substr(new.id, 2))
    )
ON CONFLICT (survey, id) DO NOTHING
RETURNING id
"""  # noqa: S608  constant
"""Inserts all ids in one statement, because between two, this thread may wait for all others."""

RELEASED_ROWS = f"""
{NEW_IDS}
SELECT survey, first, ids FROM released_ids
WHERE survey = :survey AND first IN (SELECT {FIRST} FROM new)
"""  # noqa: S608  constant


class _Transaction(Transaction):
    """A transaction in SQLite; only one writes at a time, so surveys need no locks."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Values = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def execute(self, statement: str, values: Values = ()) -> int:
        return self._connection.execute(statement, values).rowcount

    def execute_many(self, statement: str, rows: Sequence[Values]) -> list[int]:
        execute = self._connection.execute
        return [execute(statement, row).rowcount for row in rows]

    def insert_rows(self, table: Table, rows: Sequence[Values], on_conflict: str) -> None:
        self._connection.executemany(f"{table.insert} {on_conflict}", rows)

    def copy_rows(self, table: Table, rows: Sequence[Values]) -> None:
        self._connection.executemany(table.insert, rows)

    def insert_ids(self, ids: Sequence[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
        new: set[tuple[int, bytes]] = set()
        for survey in {survey for survey, _ in ids}:
            joined = b"".join(sorted(report_id for key, report_id in ids if key == survey))
            values = {"survey": survey, "ids": joined, "size": IDENTITY_BYTES}
            new |= {(survey, row[0]) for row in self._connection.execute(INSERT_IDS, values)}
        return new

    def replace_pending_ids(
        self,
        survey: int,
        released: Sequence[bytes],
        pending: Sequence[bytes],  # noqa: ARG002  a table without rowid has no order but its key's
    ) -> None:
        rows = [(survey, item) for item in sorted(released)]
        self._connection.executemany("DELETE FROM pending_id WHERE survey = ? AND id = ?", rows)

    def released_rows(self, survey: int, identities: Sequence[bytes]) -> list[Row]:
        values = {"survey": survey, "ids": b"".join(identities), "size": IDENTITY_BYTES}
        return self._connection.execute(RELEASED_ROWS, values).fetchall()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._connection.execute("SAVEPOINT part")
        try:
            with named_errors():
                yield
        except StoreError:
            self._connection.execute("ROLLBACK TO part")
            raise
        finally:
            # A full disk may have rolled back the whole transaction.
            if self._connection.in_transaction:
                self._connection.execute("RELEASE part")

    def lock(self, survey: int, *, shared: bool = False) -> None:
        pass


class SqliteStore(Store):
    """A `Store` in the file at `path`, with one connection per thread and process.

    All work fails if another file takes the place of the one that the process opened first: data
    written to a file that was moved away would be lost.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        # The file opened first, by path; a dict, because its `setdefault` is atomic.
        self._first_file: dict[Path, FileIdentity] = {}
        self._local = threading.local()
        self._lock: WriteLock | None = None
        self._lock_process = 0
        # The releases after which this process has emptied the write-ahead log.
        self._clean_releases: dict[int, int] = {}

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection; a forked child never uses its parent's."""
        if getattr(self._local, "process", None) == os.getpid():
            cached: sqlite3.Connection = self._local.connection
            self._check_file()
            return cached
        with named_file_errors():
            identity = file_identity(self.path)
        if identity is None:
            self._check_file()
            raise StoreError(f"there is no database at {self.path}; run: survey migrate")
        self._first_file.setdefault(self.path, identity)
        # SQLite would write changes from the log of the first file into the new file.
        self._check_file()
        connection = connect(self.path)
        try:
            # The file may have been replaced just before it was opened.
            self._check_file()
            check_schema(read_applied_steps(connection))
        except BaseException:
            connection.close()
            raise
        # One damaged text must not make all others unreadable. Snapshots and copies reject it.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        self._local.connection, self._local.process = connection, os.getpid()
        return connection

    @property
    def _real_path(self) -> Path:
        """The path without symbolic links; logs and lock files are next to it."""
        return Path(os.path.realpath(self.path))

    def _exists(self) -> bool:
        # Python raises an error for a file in a folder that this user may not enter.
        with named_file_errors():
            return self.path.exists()

    def _check_file(self) -> None:
        """Raise StoreReplacedError unless the path still names the file that was opened first."""
        first = self._first_file.get(self.path)
        with named_file_errors():
            if first is None or file_identity(self.path) == first:
                return
        raise StoreReplacedError(
            "the database's file is no longer the one that this process opened: it was moved or "
            "replaced while in use; restart the server and the keeper, or move the first file back"
        )

    def close_connections(self) -> None:
        """Close this thread's connection."""
        if getattr(self._local, "process", None) == os.getpid():
            self._local.connection.close()
            self._local.process = None

    close_thread_connection = close_connections

    # -- transactions

    @contextmanager
    def _lookup(self) -> Iterator[Transaction]:
        with named_errors():
            yield _Transaction(self._connection())

    @contextmanager
    def _read(self) -> Iterator[Transaction]:
        with named_errors(), _begin(self._connection(), "DEFERRED") as transaction:
            yield transaction

    @contextmanager
    def _stream(self) -> Iterator[Transaction]:
        with named_errors():
            # Checks that there is a database of this schema.
            self._connection()
            with (
                closing(connect(self.path)) as connection,
                _begin(connection, "DEFERRED") as transaction,
            ):
                self._check_file()
                yield transaction

    @contextmanager
    def _write(self) -> Iterator[Transaction]:
        """Take SQLite's lock at the start: a transaction that reads first fails under load."""
        with named_errors():
            connection = self._connection()
            with (
                self._write_lock().acquire(BUSY_SECONDS),
                _begin(connection, "IMMEDIATE") as transaction,
            ):
                yield transaction
            # If the file was moved away during the commit, nothing may be acknowledged.
            self._check_file()

    @contextmanager
    def hold_write_lock(self) -> Iterator[None]:
        """Hold the write lock, so that transactions of this thread need not wait for it."""
        with self._write_lock().acquire(BUSY_SECONDS):
            yield

    def _write_lock(self) -> WriteLock:
        """Return this process's lock; a forked child opens its own."""
        if self._lock is None or self._lock_process != os.getpid():
            with named_file_errors():
                self._lock = WriteLock(self._real_path)
            self._lock_process = os.getpid()
        return self._lock

    # -- other processes

    @contextmanager
    def use(self) -> Iterator[None]:
        """Mark the database as in use; raise ConflictError if it is reserved."""
        with self._use_lock(fcntl.LOCK_SH, RESERVED):
            with named_errors():
                self._connection()
            yield

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Prevent servers and keepers from using the database; ConflictError if one uses it."""
        if not self.path.parent.is_dir():
            raise _no_directory(self.path.parent)
        with self._use_lock(fcntl.LOCK_EX, IN_USE):
            yield

    @contextmanager
    def _use_lock(self, kind: int, refusal: str) -> Iterator[None]:
        """Hold the lock of the file's users, which the system releases if the process is killed."""
        with named_file_errors():
            path = self._real_path
            lock = FileLock(path.with_name(path.name + ".use"), file_rights(path))
        if not lock.try_lock(kind):
            raise ConflictError(refusal.format(name=self.path))
        try:
            yield
        finally:
            lock.release()

    # -- schema

    def migrate(self) -> list[str]:
        """Bring the schema up to date; return the steps that were applied."""
        # Imported here: sqlite-utils imports pandas where it is installed, which takes a second.
        from sqlite_utils import Database, Migrations

        migrations = Migrations("survey")
        for step in STEPS:
            migrations(name=step)(_migration(step))
        with named_file_errors():
            self._create_file()
        with (
            named_errors(),
            self._write_lock().acquire(BUSY_SECONDS),
            closing(Database(connect(self.path))) as database,
        ):
            # The file remembers this mode. Changing it needs the file alone, hence only here.
            database.execute("PRAGMA journal_mode = WAL").fetchall()
            pending = [step.name for step in migrations.pending(database)]
            migrations.apply(database)
            return pending

    def pending_migrations(self) -> list[str]:
        """Return the steps that the database lacks."""
        # Connecting would create the file.
        self._check_file()
        if not self._exists():
            return list(STEPS)
        with named_errors(), closing(connect(self.path)) as connection:
            return pending_steps(read_applied_steps(connection))

    def _create_file(self) -> None:
        """Create the file with the mode of `file_mode`, which SQLite copies to its other files."""
        if not (directory := self.path.parent).is_dir():
            raise _no_directory(directory)
        is_new = not self.path.exists()
        log = self._real_path.with_name(self._real_path.name + "-wal")
        if is_new and log.exists():
            # SQLite would write the changes of the other database into the new one.
            raise StoreError(
                f"{log} belongs to a database that was moved away; move the log to that database"
            )
        file = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
        if is_new:
            # At creation, the umask would restrict the mode.
            os.fchmod(file, file_mode(directory))
        os.close(file)

    def find_damage(self, tables: Sequence[str] = ()) -> list[str]:
        """Return the damage that SQLite's own checks find.

        Without `tables`, also check references between tables, and compare the schema with that of
        a new database.
        """
        with self._read() as transaction:
            if tables:
                checks = [f"PRAGMA integrity_check({table})" for table in tables]
                rows = [row for check in checks for row in transaction.rows(check)]
                return _integrity_mistakes(rows)
            damage = _integrity_mistakes(transaction.rows("PRAGMA integrity_check"))
            for table, *_ in transaction.rows("PRAGMA foreign_key_check"):
                damage.append(f'a row of the table "{table}" refers to a row that does not exist')
            found = set(transaction.rows(SCHEMA_OBJECTS))
            if tuple(transaction.rows(STEP_COLUMNS)) != RECORD_OF_STEPS:
                damage.append('the schema of "_sqlite_migrations" is not that of sqlite-utils')
        for _, name, _ in sorted(found ^ _expected_schema(), key=str):
            damage.append(f'the schema of "{name}" is not that of this version')
        return damage

    def unchecked_content(self) -> str:
        """Return "": SQLite's integrity check compares the rows of small tables with an index."""
        return ""

    def repair_pending(self) -> bool:
        """Rewrite all pending batches if the order of their keys or their index is damaged."""
        with self._read() as transaction:
            if transaction.rows("PRAGMA integrity_check(pending)") == [("ok",)]:
                return False
        columns = ", ".join(PENDING.column_names)
        with self._write() as transaction:
            # Look-ups would miss the rows that are out of order.
            rows = transaction.rows(f"SELECT {columns} FROM pending NOT INDEXED")  # noqa: S608
            surveys = [int(key) for (key,) in transaction.rows("SELECT key FROM survey")]
            found = [found_survey(Batch.from_row(row), surveys) for row in rows]
            # Drop the table, because a deletion would also miss rows that are out of order.
            schema = transaction.rows(
                "SELECT sql FROM sqlite_master WHERE tbl_name = 'pending' AND sql IS NOT NULL "
                "ORDER BY type DESC"
            )
            transaction.execute("DROP TABLE pending")
            for (statement,) in schema:
                transaction.execute(statement)
            # The batches of a missing survey are lost, because nothing could release them.
            kept = [(*batch.row[:-1], batch.digest) for batch in found if batch.survey in surveys]
            transaction.insert_rows(PENDING, kept, "")
        return True

    # -- traces of a release

    def clean_up_after_release(self, *surveys: int) -> None:  # noqa: ARG002  the log has all surveys
        """Empty the write-ahead log, which contains sealed reports in the order of arrival.

        Never waits: a reader would block every writer. `retry_clean_up` repeats what failed.
        """
        releases = self._release_numbers()
        if self._truncate_log():
            self._clean_releases = releases

    def retry_clean_up(self) -> None:
        """Empty the log if there was a release since this process last did so."""
        if self._release_numbers() != self._clean_releases:
            self.clean_up_after_release(0)

    def _truncate_log(self) -> bool:
        """Empty the log; return whether that succeeded."""
        with self._lookup() as transaction:
            transaction.execute("PRAGMA busy_timeout = 0")
            try:
                (row,) = transaction.rows("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                transaction.execute(BUSY_TIMEOUT)
        return not row[0]

    def write_copy(self, path: Path, without: Sequence[str]) -> None:
        """Write the current state to a new file, without the rows of some tables.

        Only the owner can read the file. SQLite writes the rows in the order of their keys, so that
        the layout of the pages reveals no history. Other processes can write during the copy.
        """
        with named_file_errors():
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        with named_errors():
            connection = self._connection()
            connection.execute("VACUUM INTO ?", [str(path)])
            self._check_file()
            with closing(connect(path)) as copy:
                # The journal would contain the deleted rows.
                copy.execute("PRAGMA journal_mode = MEMORY")
                for table in without:
                    copy.execute(f"DELETE FROM {table}")  # noqa: S608  names of the schema

    def has_free_pages(self) -> bool:
        """Return whether the file still contains space of deleted rows."""
        with self._lookup() as transaction:
            return transaction.row("PRAGMA freelist_count") != (0,)

    def vacuum(self) -> None:
        """Rewrite the file, so that the layout of its pages contains no history."""
        with named_errors():
            connection = self._connection()
            with self._write_lock().acquire(BUSY_SECONDS):
                connection.execute("VACUUM")
        self._truncate_log()


SCHEMA_OBJECTS = (
    "SELECT type, name, sql FROM sqlite_master "
    "WHERE sql IS NOT NULL AND tbl_name <> '_sqlite_migrations'"
)
"""All tables, indexes and triggers except the table in which sqlite-utils records migrations."""

STEP_COLUMNS = "SELECT name, type FROM pragma_table_info('_sqlite_migrations')"
RECORD_OF_STEPS = (
    *(("id", "INTEGER"), ("migration_set", "TEXT"), ("name", "TEXT"), ("applied_at", "TEXT")),
)
"""The columns of the table with which sqlite-utils records migrations; its layout may vary."""


def _integrity_mistakes(rows: Iterable[Row]) -> list[str]:
    return [f"SQLite's integrity check: {line}" for (line,) in rows if line != "ok"]


def _expected_schema() -> set[Row]:
    """Return the schema of a new database."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for step in STEPS:
            for statement in statements(step, "sqlite"):
                connection.execute(statement)
        return set(connection.execute(SCHEMA_OBJECTS))


@contextmanager
def _begin(connection: sqlite3.Connection, mode: str) -> Iterator[Transaction]:
    connection.execute(f"BEGIN {mode}")
    try:
        yield _Transaction(connection)
        connection.execute("COMMIT")
    except BaseException:
        # Also after a COMMIT that failed: an open transaction would block this thread.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _no_directory(directory: Path) -> StoreError:
    # A mistyped path must not create a second, empty database in new directories.
    return StoreError(f"there is no directory {directory}; create it first")


FileIdentity = tuple[int, int]
"""The device and the inode of a file."""


def file_identity(path: Path) -> FileIdentity | None:
    """Return the identity of the file at a path, or None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def file_mode(directory: Path) -> int:
    """Return the mode of a database's files: private to the owner, unless a group shares them.

    The keeper and the server are users of one group and share a database in a directory that
    this group can write to and that gives new files to the group (its setgid bit).
    """
    shared = stat.S_ISGID | stat.S_IWGRP
    return 0o660 if directory.stat().st_mode & shared == shared else 0o600


Rights = tuple[int, int, int]
"""The user, the group and the mode of a file."""


def file_rights(database: Path) -> Rights:
    """Return the rights of a database, or those that it will have when it is created."""
    if database.exists():
        status = database.stat()
        return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)
    status = database.parent.stat()
    return status.st_uid, status.st_gid, file_mode(database.parent)


class _Connection(sqlite3.Connection):
    """A connection that closes when its thread ends; Python 3.13 warns of one left open."""

    def __del__(self) -> None:
        self.close()


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection whose commits wait for the disk; create the file if there is none."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, factory=_Connection
    )
    try:
        for pragma in PRAGMAS:
            connection.execute(pragma).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def read_applied_steps(connection: sqlite3.Connection) -> list[str]:
    """Return the steps that a database has, as sqlite-utils records them; change nothing."""
    table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '_sqlite_migrations'"
    if connection.execute(table).fetchone() is None:
        return []
    rows = connection.execute(
        "SELECT name FROM _sqlite_migrations WHERE migration_set = 'survey' ORDER BY rowid"
    )
    return [name for (name,) in rows]


@contextmanager
def named_errors() -> Iterator[None]:
    """Translate SQLite's errors: StoreBusyError for transient ones, StoreError for all others."""
    try:
        yield
    except sqlite3.Error as error:
        # The primary result code is in the lowest eight bits.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in TRANSIENT_ERRORS:
            raise StoreBusyError(f"the store cannot be used right now: {error}") from error
        raise StoreError(f"the database refused: {error}") from error
    except UnicodeDecodeError as error:
        # Python decodes the texts of a damaged file, and SQLite's messages about them.
        raise StoreError("the database is damaged: it contains text that is not UTF-8") from error


@contextmanager
def named_file_errors() -> Iterator[None]:
    """Translate the system's errors: StoreBusyError for a full disk, StoreError for all others."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreBusyError(f"the store cannot be used right now: {error}") from error
        raise StoreError(f"the database's files cannot be used: {error}") from error


def _migration(step: str) -> Callable[[sqlite_utils.Database], None]:
    def apply(database: sqlite_utils.Database) -> None:
        for statement in statements(step, "sqlite"):
            database.execute(statement)
        compute(step, _Transaction(database.conn))

    return apply


@contextmanager
def create_file(path: Path) -> Iterator[Store]:
    """Create a store at `path` for its owner only; it is one file when the context has ended.

    Only this thread may use it: the file is incomplete while another program has it open.
    """
    store = SqliteStore(path)
    try:
        store.migrate()
        yield store
    finally:
        store.close_connections()
    # Move the log into the file, and let nobody who opens the file write a log again.
    with named_errors(), closing(connect(path)) as connection:
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    if mode != ("delete",):
        raise StoreBusyError(f"{path} is open in another program; close it until the copy is done")


@contextmanager
def open_file(path: Path) -> Iterator[Store]:
    """Open the store in the file at `path` without changing it: an older one is migrated in a copy.

    Raises NotFoundError if there is no file, StoreError if it contains no store or a newer one.
    """
    if not path.is_file():
        raise NotFoundError(f"there is no file {path}")
    if _has_pending_steps(path):
        with TemporaryDirectory() as directory:
            migrated = Path(directory) / "migrated.db"
            copyfile(path, migrated)
            with create_file(migrated) as store:
                yield store
        return
    store = SqliteStore(path)
    try:
        yield store
    finally:
        store.close_connections()


def _has_pending_steps(path: Path) -> bool:
    """Return whether a store has an older schema."""
    with named_errors(), closing(connect(path)) as connection:
        applied = read_applied_steps(connection)
    if not applied:
        raise StoreError(f"{path} is not a store: it has none of a store's tables")
    check_not_newer(applied, str(path))
    return bool(pending_steps(applied))


class WriteLock:
    """The lock of the writers of a file: first threads queue for it, then processes, each in turn.

    SQLite polls its own lock, so that under load the process that has just written gets it again
    and again. Here, processes sleep in the kernel until it is their turn, with locks on two files.
    The process that waits for the lock itself holds the door; all later ones queue at the door.

    A thread that holds the lock can acquire it again. Each process must create its own lock: a
    parent and its child would both hold an inherited one.
    """

    def __init__(self, database: Path) -> None:
        rights = file_rights(database)
        self._threads = threading.Lock()
        self._holder = 0
        self._door = FileLock(database.with_name(database.name + ".door"), rights)
        self._lock = FileLock(database.with_name(database.name + ".lock"), rights)

    @contextmanager
    def acquire(self, seconds: float) -> Iterator[None]:
        """Hold the lock; raise StoreBusyError if it is not free within `seconds`."""
        if self._holder == threading.get_ident():
            yield
            return
        deadline = monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            raise StoreBusyError("the store is busy: other writers took too long")
        try:
            self._door.acquire(deadline)
            try:
                self._lock.acquire(deadline)
            finally:
                self._door.release()
            self._holder = threading.get_ident()
            try:
                yield
            finally:
                self._holder = 0
                self._lock.release()
        finally:
            self._threads.release()


class FileLock:
    """A lock on a file with a database's rights; one thread uses it at a time."""

    def __init__(self, path: Path, rights: Rights) -> None:
        user, group, mode = rights
        self._path = path
        self._wait: LockWait | None = None
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        weakref.finalize(self, os.close, self._file)
        own = os.fstat(self._file)
        if os.geteuid() == 0:
            # A command that root runs must not lock out the user who owns the database.
            os.fchown(self._file, user, group)
        if os.geteuid() in (0, own.st_uid):
            os.fchmod(self._file, mode & 0o660)

    def acquire(self, deadline: float) -> None:
        """Wait for the exclusive lock; raise StoreBusyError if it is not free by `deadline`."""
        if self._wait is not None and not self._wait.resume():
            self._wait = None
        if self._wait is None:
            if self.try_lock(fcntl.LOCK_EX):
                return
            self._wait = LockWait(self._file)
        if not self._wait.ends_with_lock(max(0.0, deadline - monotonic())):
            raise StoreBusyError(f"the store is busy: another process keeps {self._path.name}")
        self._wait = None

    def try_lock(self, kind: int) -> bool:
        """Try to take a LOCK_EX or LOCK_SH lock; return whether it was free."""
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock; releasing a lock that is not held changes nothing."""
        fcntl.flock(self._file, fcntl.LOCK_UN)


class LockWait:
    """A thread that sleeps until it has locked a file: the kernel's wait has no deadline.

    If the lock is no longer needed when it comes, it is released at once.
    """

    def __init__(self, file: int) -> None:
        # A second descriptor of the same open file: the lock belongs to the open file.
        self._file = os.dup(file)
        self._changed = threading.Condition()
        self._is_locked = False
        self._is_over = False
        self._is_needed = True
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._changed:
            self._is_locked = self._is_needed
            if not self._is_needed:
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self._is_over = True
            os.close(self._file)
            self._changed.notify()

    def ends_with_lock(self, seconds: float) -> bool:
        """Wait for the lock; return False, and no longer need it, after `seconds`."""
        with self._changed:
            self._is_needed = self._changed.wait_for(lambda: self._is_locked, seconds)
            return self._is_needed

    def resume(self) -> bool:
        """Need the lock again after giving up; return False if it has been released since."""
        with self._changed:
            self._is_needed = not self._is_over
            return self._is_needed
