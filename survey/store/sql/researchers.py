"""Researchers and their sessions."""

from __future__ import annotations

from typing import cast

from survey.errors import ConflictError, NotFoundError
from survey.store.protocol import Researcher, Row
from survey.store.sql.surveys import PUBLISHING
from survey.store.sql.transaction import SqlTransactions, whole_number


class SqlResearchers(SqlTransactions):
    """The part of a `Store` that knows who may sign in."""

    def add_researcher(self, email: str, password_hash: str) -> None:
        """Add someone who may sign in; ConflictError when the address is taken."""
        with self._writing() as transaction:
            # Keys are counted up: two who add at once must not count to the same number.
            transaction.hold(PUBLISHING)
            key = whole_number(transaction.one("SELECT coalesce(max(key), 0) + 1 FROM researcher"))
            added = transaction.change(
                "INSERT INTO researcher (key, email, password_hash) VALUES (?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                [key, email, password_hash],
            )
            if not added:
                raise ConflictError(f"{email} is a researcher already")

    def set_password(self, email: str, password_hash: str) -> None:
        """Replace a password and end every session that was opened with the old one."""
        with self._writing() as transaction:
            row = transaction.one(
                "UPDATE researcher SET password_hash = ? WHERE lower(email) = lower(?) "
                "RETURNING key",
                [password_hash, email],
            )
            if row is None:
                raise NotFoundError(f"there is no researcher {email}")
            transaction.change("DELETE FROM login_session WHERE researcher = ?", [row[0]])

    def researcher(self, email: str) -> Researcher | None:
        """The researcher of an address, whatever its case."""
        with self._looking() as transaction:
            row = transaction.one(
                "SELECT key, email, password_hash FROM researcher WHERE lower(email) = lower(?)",
                [email],
            )
        return _researcher(row) if row else None

    def start_session(self, token_hash: bytes, researcher: int, now: int, absolute: int) -> None:
        """Open a session, of which only the token's hash is kept; outdated ones are deleted."""
        with self._writing() as transaction:
            transaction.change("DELETE FROM login_session WHERE started < ?", [now - absolute])
            transaction.change(
                "INSERT INTO login_session (token_hash, researcher, started, used) "
                "VALUES (?, ?, ?, ?)",
                [token_hash, researcher, now, now],
            )

    def session_researcher(
        self, token_hash: bytes, now: int, idle: int, absolute: int
    ) -> Researcher | None:
        """Whose session this is, or None when it ended; times in seconds.

        The last use is written once a minute at most: reading a page costs no disk write.
        """
        with self._looking() as transaction:
            row = transaction.one(
                "SELECT researcher.key, email, password_hash, started, used FROM login_session "
                "JOIN researcher ON researcher.key = login_session.researcher "
                "WHERE token_hash = ?",
                [token_hash],
            )
        if row is None or int(row[3]) < now - absolute or int(row[4]) < now - idle:
            return None
        if now - int(row[4]) >= 60:
            with self._writing() as transaction:
                transaction.change(
                    "UPDATE login_session SET used = ? WHERE token_hash = ?", [now, token_hash]
                )
        return _researcher(row[:3])

    def end_session(self, token_hash: bytes) -> None:
        """Close a session for good."""
        with self._writing() as transaction:
            transaction.change("DELETE FROM login_session WHERE token_hash = ?", [token_hash])


def _researcher(row: Row) -> Researcher:
    key, email, password_hash = row
    return Researcher(cast("int", key), cast("str", email), cast("str", password_hash))
