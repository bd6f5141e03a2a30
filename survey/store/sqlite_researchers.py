"""Researchers and their sessions in SQLite."""

from __future__ import annotations

import sqlite3

from survey.errors import ConflictError, NotFoundError
from survey.store.protocol import Researcher
from survey.store.sqlite_connections import SqliteConnections, named_errors


class SqliteResearchers(SqliteConnections):
    """The part of a `Store` that knows who may sign in."""

    def add_researcher(self, email: str, password_hash: str) -> None:
        """Add someone who may sign in; ConflictError when the address is taken."""
        with self._transaction() as connection:
            try:
                connection.execute(
                    "INSERT INTO researcher (email, password_hash) VALUES (?, ?)",
                    [email, password_hash],
                )
            except sqlite3.IntegrityError:
                raise ConflictError(f"{email} is a researcher already") from None

    def set_password(self, email: str, password_hash: str) -> None:
        """Replace a password and end every session that was opened with the old one."""
        with self._transaction() as connection:
            row = connection.execute(
                "UPDATE researcher SET password_hash = ? WHERE email = ? RETURNING key",
                [password_hash, email],
            ).fetchone()
            if row is None:
                raise NotFoundError(f"there is no researcher {email}")
            connection.execute("DELETE FROM login_session WHERE researcher = ?", [row[0]])

    def researcher(self, email: str) -> Researcher | None:
        """The researcher of an address, whatever its case."""
        with named_errors():
            row = (
                self._database()
                .execute(
                    "SELECT key, email, password_hash FROM researcher WHERE email = ?", [email]
                )
                .fetchone()
            )
            return Researcher(*row) if row else None

    def start_session(self, token_hash: bytes, researcher: int, now: int, absolute: int) -> None:
        """Open a session, of which only the token's hash is kept; outdated ones are deleted."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM login_session WHERE started < ?", [now - absolute])
            connection.execute(
                "INSERT INTO login_session VALUES (?, ?, ?, ?)", [token_hash, researcher, now, now]
            )

    def session_researcher(
        self, token_hash: bytes, now: int, idle: int, absolute: int
    ) -> Researcher | None:
        """Whose session this is, or None when it ended; times in seconds.

        The last use is written once a minute at most: reading a page costs no disk write.
        """
        with named_errors():
            row = (
                self._database()
                .execute(
                    "SELECT researcher.key, email, password_hash, started, used FROM login_session "
                    "JOIN researcher ON researcher.key = login_session.researcher "
                    "WHERE token_hash = ?",
                    [token_hash],
                )
                .fetchone()
            )
        if row is None or row[3] < now - absolute or row[4] < now - idle:
            return None
        if now - row[4] >= 60:
            with self._transaction() as connection:
                connection.execute(
                    "UPDATE login_session SET used = ? WHERE token_hash = ?", [now, token_hash]
                )
        return Researcher(*row[:3])

    def end_session(self, token_hash: bytes) -> None:
        """Close a session for good."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM login_session WHERE token_hash = ?", [token_hash])
