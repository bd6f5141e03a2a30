"""Tokens by which programs read for a researcher: only their hashes are kept."""

from __future__ import annotations

from typing import cast

from survey.store.people import ApiToken
from survey.store.protocol import Row
from survey.store.sql.transaction import SqlTransactions

TOKENS = "SELECT token_hash, researcher, name, scopes, created FROM api_token "


class SqlTokens(SqlTransactions):
    """The part of a `Store` that knows programs."""

    def add_api_token(self, token: ApiToken) -> None:
        """Let a program in from now on."""
        with self._writing() as transaction:
            transaction.change(
                "INSERT INTO api_token (token_hash, researcher, name, scopes, created) "
                "VALUES (?, ?, ?, ?, ?)",
                [token.token_hash, token.researcher, token.name, token.scopes, token.created],
            )

    def api_token(self, token_hash: bytes) -> ApiToken | None:
        """What a token is good for, None when it is unknown or was ended."""
        with self._looking() as transaction:
            row = transaction.one(f"{TOKENS}WHERE token_hash = ?", [token_hash])
        return _token(row) if row else None

    def api_tokens(self, researcher: int) -> list[ApiToken]:
        """A researcher's tokens, the newest first."""
        with self._looking() as transaction:
            rows = transaction.all(
                f"{TOKENS}WHERE researcher = ? ORDER BY created DESC, token_hash", [researcher]
            )
        return [_token(row) for row in rows]

    def end_api_token(self, researcher: int, token_hash: bytes) -> None:
        """Let a program of a researcher in no more."""
        with self._writing() as transaction:
            transaction.change(
                "DELETE FROM api_token WHERE researcher = ? AND token_hash = ?",
                [researcher, token_hash],
            )


def _token(row: Row) -> ApiToken:
    return ApiToken(*cast("tuple[bytes, int, str, str, int]", row))
