"""Researchers: accounts, sessions, second factors, API tokens and attempts to sign in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from survey.errors import ConflictError, NotFoundError
from survey.store.transactions import REGISTRY, Row, Transaction, Transactions, single_integer

MAX_ATTEMPT_ROWS = 10_000
"""Most rows of attempts to sign in; a flood of names deletes them all instead of filling a disk."""

SCOPES: Mapping[str, str] = {
    "surveys": "list your surveys and read their definitions",
    "estimates": "read estimates and cross-tabs",
    "exports": "download exports",
}
"""The scopes of an API token, and what each one permits."""

RESEARCHERS = (
    "SELECT researcher.key, email, password_hash, admin.researcher IS NOT NULL "
    "FROM researcher LEFT JOIN admin ON admin.researcher = researcher.key "
)
API_TOKENS = "SELECT token_hash, researcher, name, scopes, created FROM api_token "


@dataclass(frozen=True)
class Researcher:
    """A person with an account; an administrator has every right in every survey."""

    key: int
    email: str
    password_hash: str = field(repr=False)
    is_admin: bool


@dataclass(frozen=True)
class SecondFactor:
    """The secret of a researcher's authentication codes, and the last time step that was used."""

    secret: str = field(repr=False)
    step: int


@dataclass(frozen=True)
class LoginSession:
    """An open session; `started` and `used` are seconds since 1970."""

    token_hash: bytes
    started: int
    used: int


@dataclass(frozen=True)
class ApiToken:
    """What a program may do for a researcher: `scopes` are words separated by spaces."""

    token_hash: bytes
    researcher: int
    name: str
    scopes: str
    created: int


class People(Transactions):
    """The part of a `Store` that holds researchers."""

    def add_researcher(
        self, email: str, password_hash: str, *, is_admin: bool = False
    ) -> Researcher:
        """Add an account, the first as an administrator; raise ConflictError if it exists."""
        with self._write() as transaction:
            # Two accounts added at once must not get the same key.
            transaction.lock(REGISTRY)
            key = single_integer(
                transaction.row("SELECT coalesce(max(key), 0) + 1 FROM researcher")
            )
            inserted = transaction.execute(
                "INSERT INTO researcher (key, email, password_hash) VALUES (?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                [key, email, password_hash],
            )
            if not inserted:
                raise ConflictError(f"{email} already has an account")
            is_first = single_integer(transaction.row("SELECT count(*) FROM admin")) == 0
            if is_admin or is_first:
                transaction.execute("INSERT INTO admin (researcher) VALUES (?)", [key])
            return Researcher(key, email, password_hash, is_admin or is_first)

    def set_password(self, email: str, password_hash: str) -> None:
        """Replace a password, and end the sessions and API tokens opened with the old one."""
        with self._write() as transaction:
            row = transaction.row(
                "UPDATE researcher SET password_hash = ? WHERE lower(email) = lower(?) "
                "RETURNING key",
                [password_hash, email],
            )
            if row is None:
                raise NotFoundError(f"there is no researcher {email}")
            for table in ("login_session", "api_token"):
                transaction.execute(f"DELETE FROM {table} WHERE researcher = ?", [row[0]])  # noqa: S608

    def renew_hash(self, researcher: Researcher, password_hash: str) -> None:
        """Replace the hash of an unchanged password, unless the password was changed meanwhile."""
        with self._write() as transaction:
            transaction.execute(
                "UPDATE researcher SET password_hash = ? WHERE key = ? AND password_hash = ?",
                [password_hash, researcher.key, researcher.password_hash],
            )

    def researcher(self, email: str) -> Researcher | None:
        """Return the researcher with an e-mail address, in upper or lower case."""
        with self._lookup() as transaction:
            row = transaction.row(RESEARCHERS + "WHERE lower(email) = lower(?)", [email])
        return _researcher(row) if row else None

    def researcher_by_key(self, key: int) -> Researcher | None:
        """Return the researcher with a key."""
        with self._lookup() as transaction:
            row = transaction.row(RESEARCHERS + "WHERE researcher.key = ?", [key])
        return _researcher(row) if row else None

    def researchers(self) -> list[Researcher]:
        """Return all researchers, by e-mail address."""
        with self._lookup() as transaction:
            return [_researcher(row) for row in transaction.rows(RESEARCHERS + "ORDER BY email")]

    def start_session(self, token_hash: bytes, researcher: int, now: int, absolute: int) -> None:
        """Open a session, given the hash of its token; delete those that have expired."""
        with self._write() as transaction:
            transaction.execute("DELETE FROM login_session WHERE started < ?", [now - absolute])
            transaction.execute(
                "INSERT INTO login_session (token_hash, researcher, started, used) "
                "VALUES (?, ?, ?, ?)",
                [token_hash, researcher, now, now],
            )

    def session_researcher(
        self, token_hash: bytes, now: int, idle: int, absolute: int
    ) -> Researcher | None:
        """Return the researcher of a session, or None if it has ended; times are in seconds.

        Its last use is stored at most once a minute, so that reading pages writes nothing.
        """
        with self._lookup() as transaction:
            row = transaction.row(
                "SELECT researcher, started, used FROM login_session WHERE token_hash = ?",
                [token_hash],
            )
            if row is None or int(row[1]) < now - absolute or int(row[2]) < now - idle:
                return None
            owner = transaction.row(RESEARCHERS + "WHERE researcher.key = ?", [row[0]])
        if now - int(row[2]) >= 60:
            with self._write() as transaction:
                transaction.execute(
                    "UPDATE login_session SET used = ? WHERE token_hash = ?", [now, token_hash]
                )
        return _researcher(owner) if owner else None

    def sessions(self, researcher: int) -> list[LoginSession]:
        """Return a researcher's sessions, most recently used first."""
        with self._lookup() as transaction:
            rows = transaction.rows(
                "SELECT token_hash, started, used FROM login_session WHERE researcher = ? "
                "ORDER BY used DESC, started DESC, token_hash",
                [researcher],
            )
        return [LoginSession(*cast("tuple[bytes, int, int]", row)) for row in rows]

    def end_session(self, token_hash: bytes) -> None:
        """End a session."""
        with self._write() as transaction:
            transaction.execute("DELETE FROM login_session WHERE token_hash = ?", [token_hash])

    def second_factor(self, researcher: int) -> SecondFactor | None:
        """Return a researcher's second factor, or None if a password is enough."""
        with self._lookup() as transaction:
            row = transaction.row(
                "SELECT secret, step FROM second_factor WHERE researcher = ?", [researcher]
            )
        return SecondFactor(*cast("tuple[str, int]", row)) if row else None

    def set_second_factor(self, researcher: int, secret: str, code_hashes: Sequence[bytes]) -> None:
        """Replace a second factor and its recovery codes; an empty secret removes them."""
        with self._write() as transaction:
            _delete_second_factor(transaction, researcher)
            if not secret:
                return
            transaction.execute(
                "INSERT INTO second_factor (researcher, secret, step) VALUES (?, ?, 0)",
                [researcher, secret],
            )
            for code_hash in code_hashes:
                transaction.execute(
                    "INSERT INTO recovery_code (researcher, code_hash) VALUES (?, ?)",
                    [researcher, code_hash],
                )

    def use_step(self, researcher: int, step: int) -> bool:
        """Use a time step and all before it; return False if it was used already."""
        with self._write() as transaction:
            return bool(
                transaction.execute(
                    "UPDATE second_factor SET step = ? WHERE researcher = ? AND step < ?",
                    [step, researcher, step],
                )
            )

    def use_recovery_code(self, researcher: int, code_hash: bytes) -> bool:
        """Use a recovery code; return False if there is no such code."""
        with self._write() as transaction:
            return bool(
                transaction.execute(
                    "DELETE FROM recovery_code WHERE researcher = ? AND code_hash = ?",
                    [researcher, code_hash],
                )
            )

    def n_recovery_codes(self, researcher: int) -> int:
        """Return the number of unused recovery codes."""
        with self._lookup() as transaction:
            return single_integer(
                transaction.row(
                    "SELECT count(*) FROM recovery_code WHERE researcher = ?", [researcher]
                )
            )

    def add_api_token(self, token: ApiToken) -> None:
        """Store an API token."""
        with self._write() as transaction:
            transaction.execute(
                "INSERT INTO api_token (token_hash, researcher, name, scopes, created) "
                "VALUES (?, ?, ?, ?, ?)",
                [token.token_hash, token.researcher, token.name, token.scopes, token.created],
            )

    def api_token(self, token_hash: bytes) -> ApiToken | None:
        """Return an API token, or None if it is unknown or revoked."""
        with self._lookup() as transaction:
            row = transaction.row(f"{API_TOKENS}WHERE token_hash = ?", [token_hash])
        return _token(row) if row else None

    def api_tokens(self, researcher: int) -> list[ApiToken]:
        """Return a researcher's API tokens, newest first."""
        with self._lookup() as transaction:
            rows = transaction.rows(
                f"{API_TOKENS}WHERE researcher = ? ORDER BY created DESC, token_hash", [researcher]
            )
        return [_token(row) for row in rows]

    def end_api_token(self, researcher: int, token_hash: bytes) -> None:
        """Revoke an API token of a researcher."""
        with self._write() as transaction:
            transaction.execute(
                "DELETE FROM api_token WHERE researcher = ? AND token_hash = ?",
                [researcher, token_hash],
            )

    def count_attempt(self, limits: Sequence[tuple[bytes, int]], now: int, seconds: int) -> bool:
        """Count an attempt for each hash in `limits`; return False once one exceeds its limit.

        The hashes after that one are not counted, so that repeated attempts add no rows. Callers
        give hashes in the same order, or two of them could wait for each other. A hash is
        forgotten `seconds` after its first attempt.
        """
        with self._write() as transaction:
            transaction.execute("DELETE FROM sign_in_try WHERE since <= ?", [now - seconds])
            (n_rows,) = cast("tuple[int]", transaction.row("SELECT count(*) FROM sign_in_try"))
            if n_rows > MAX_ATTEMPT_ROWS:
                transaction.execute("DELETE FROM sign_in_try")
            return all(
                _count_attempt(transaction, hashed, now) <= limit for hashed, limit in limits
            )

    def forget_attempts(self, hashed: bytes) -> None:
        """Forget the attempts of a hash."""
        with self._write() as transaction:
            transaction.execute("DELETE FROM sign_in_try WHERE hash = ?", [hashed])


def _delete_second_factor(transaction: Transaction, researcher: int) -> None:
    for table in ("second_factor", "recovery_code"):
        transaction.execute(f"DELETE FROM {table} WHERE researcher = ?", [researcher])  # noqa: S608


def _researcher(row: Row) -> Researcher:
    key, email, password_hash, is_admin = row
    return Researcher(
        cast("int", key), cast("str", email), cast("str", password_hash), bool(is_admin)
    )


def _token(row: Row) -> ApiToken:
    return ApiToken(*cast("tuple[bytes, int, str, str, int]", row))


def _count_attempt(transaction: Transaction, hashed: bytes, now: int) -> int:
    """Add an attempt to a hash and return its number of attempts."""
    transaction.execute(
        "INSERT INTO sign_in_try (hash, tries, since) VALUES (?, 1, ?) "
        "ON CONFLICT (hash) DO UPDATE SET tries = sign_in_try.tries + 1",
        [hashed, now],
    )
    row = transaction.row("SELECT tries FROM sign_in_try WHERE hash = ?", [hashed])
    (tries,) = cast("tuple[int]", row)
    return tries
