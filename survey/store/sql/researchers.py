"""Researchers, their sessions and their second factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from survey.errors import ConflictError, NotFoundError
from survey.store.people import LoginSession, Researcher, SecondFactor
from survey.store.protocol import Row
from survey.store.sql.surveys import PUBLISHING
from survey.store.sql.transaction import SqlTransactions, Transaction, whole_number

RESEARCHERS = (
    "SELECT researcher.key, email, password_hash, admin.researcher IS NOT NULL "
    "FROM researcher LEFT JOIN admin ON admin.researcher = researcher.key "
)


class SqlResearchers(SqlTransactions):
    """The part of a `Store` that knows who may sign in."""

    def add_researcher(
        self, email: str, password_hash: str, *, is_admin: bool = False
    ) -> Researcher:
        """Add someone who may sign in, the first as an admin; ConflictError when it is taken."""
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
            first = whole_number(transaction.one("SELECT count(*) FROM admin")) == 0
            if is_admin or first:
                transaction.change("INSERT INTO admin (researcher) VALUES (?)", [key])
            return Researcher(key, email, password_hash, is_admin or first)

    def set_password(self, email: str, password_hash: str) -> None:
        """Replace a password; what was opened with the old one, sessions and tokens, ends."""
        with self._writing() as transaction:
            row = transaction.one(
                "UPDATE researcher SET password_hash = ? WHERE lower(email) = lower(?) "
                "RETURNING key",
                [password_hash, email],
            )
            if row is None:
                raise NotFoundError(f"there is no researcher {email}")
            for table in ("login_session", "api_token"):
                transaction.change(f"DELETE FROM {table} WHERE researcher = ?", [row[0]])  # noqa: S608

    def renew_hash(self, researcher: Researcher, password_hash: str) -> None:
        """Keep the same password by another hash, unless it was changed meanwhile."""
        with self._writing() as transaction:
            transaction.change(
                "UPDATE researcher SET password_hash = ? WHERE key = ? AND password_hash = ?",
                [password_hash, researcher.key, researcher.password_hash],
            )

    def researcher(self, email: str) -> Researcher | None:
        """The researcher of an address, whatever its case."""
        with self._looking() as transaction:
            row = transaction.one(RESEARCHERS + "WHERE lower(email) = lower(?)", [email])
        return _researcher(row) if row else None

    def researcher_by_key(self, key: int) -> Researcher | None:
        """The researcher of a key."""
        with self._looking() as transaction:
            row = transaction.one(RESEARCHERS + "WHERE researcher.key = ?", [key])
        return _researcher(row) if row else None

    def researchers(self) -> list[Researcher]:
        """Everybody who may sign in, by address."""
        with self._looking() as transaction:
            return [_researcher(row) for row in transaction.all(RESEARCHERS + "ORDER BY email")]

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
                "SELECT researcher, started, used FROM login_session WHERE token_hash = ?",
                [token_hash],
            )
            if row is None or int(row[1]) < now - absolute or int(row[2]) < now - idle:
                return None
            found = transaction.one(RESEARCHERS + "WHERE researcher.key = ?", [row[0]])
        if now - int(row[2]) >= 60:
            with self._writing() as transaction:
                transaction.change(
                    "UPDATE login_session SET used = ? WHERE token_hash = ?", [now, token_hash]
                )
        return _researcher(found) if found else None

    def sessions(self, researcher: int) -> list[LoginSession]:
        """Somebody's sessions, the one used last first."""
        with self._looking() as transaction:
            rows = transaction.all(
                "SELECT token_hash, started, used FROM login_session WHERE researcher = ? "
                "ORDER BY used DESC, started DESC, token_hash",
                [researcher],
            )
        return [LoginSession(*cast("tuple[bytes, int, int]", row)) for row in rows]

    def end_session(self, token_hash: bytes) -> None:
        """Close a session for good."""
        with self._writing() as transaction:
            transaction.change("DELETE FROM login_session WHERE token_hash = ?", [token_hash])

    def second_factor(self, researcher: int) -> SecondFactor | None:
        """What somebody's codes are made with, or None when a password is enough."""
        with self._looking() as transaction:
            row = transaction.one(
                "SELECT secret, step FROM second_factor WHERE researcher = ?", [researcher]
            )
        return SecondFactor(*cast("tuple[str, int]", row)) if row else None

    def set_second_factor(self, researcher: int, secret: str, code_hashes: Sequence[bytes]) -> None:
        """Replace somebody's second factor and recovery codes; an empty secret takes it away."""
        with self._writing() as transaction:
            _forget_second_factor(transaction, researcher)
            if not secret:
                return
            transaction.change(
                "INSERT INTO second_factor (researcher, secret, step) VALUES (?, ?, 0)",
                [researcher, secret],
            )
            for code_hash in code_hashes:
                transaction.change(
                    "INSERT INTO recovery_code (researcher, code_hash) VALUES (?, ?)",
                    [researcher, code_hash],
                )

    def use_step(self, researcher: int, step: int) -> bool:
        """Use up a time step and all before it; False when that was done already."""
        with self._writing() as transaction:
            return bool(
                transaction.change(
                    "UPDATE second_factor SET step = ? WHERE researcher = ? AND step < ?",
                    [step, researcher, step],
                )
            )

    def use_recovery_code(self, researcher: int, code_hash: bytes) -> bool:
        """Use up a recovery code; False when there is none such."""
        with self._writing() as transaction:
            return bool(
                transaction.change(
                    "DELETE FROM recovery_code WHERE researcher = ? AND code_hash = ?",
                    [researcher, code_hash],
                )
            )

    def n_recovery_codes(self, researcher: int) -> int:
        """How many recovery codes somebody has not used."""
        with self._looking() as transaction:
            return whole_number(
                transaction.one(
                    "SELECT count(*) FROM recovery_code WHERE researcher = ?", [researcher]
                )
            )


def _forget_second_factor(transaction: Transaction, researcher: int) -> None:
    for table in ("second_factor", "recovery_code"):
        transaction.change(f"DELETE FROM {table} WHERE researcher = ?", [researcher])  # noqa: S608


def _researcher(row: Row) -> Researcher:
    key, email, password_hash, is_admin = row
    return Researcher(
        cast("int", key), cast("str", email), cast("str", password_hash), bool(is_admin)
    )
