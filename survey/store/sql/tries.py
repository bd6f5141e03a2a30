"""Tries to sign in, counted for all workers and servers together, under keyed hashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from survey.store.sql.transaction import SqlTransactions

MOST_REMEMBERED = 10_000
"""Hashes that are kept; a flood of names begins anew, and fills no disk."""


class SqlTries(SqlTransactions):
    """The part of a `Store` that slows guessing down."""

    def count_try(self, limits: Mapping[bytes, int], now: int, seconds: int) -> bool:
        """Count a try for each of these hashes; False when one has had more than its limit.

        A hash begins anew `seconds` after its first try. What is older is forgotten on the way.
        """
        with self._writing() as transaction:
            transaction.change("DELETE FROM sign_in_try WHERE since <= ?", [now - seconds])
            (kept,) = cast("tuple[int]", transaction.one("SELECT count(*) FROM sign_in_try"))
            if kept > MOST_REMEMBERED:
                transaction.change("DELETE FROM sign_in_try")
            # In one order, or two that count at once could wait for each other.
            tries = {}
            for hashed in sorted(limits):
                transaction.change(
                    "INSERT INTO sign_in_try (hash, tries, since) VALUES (?, 1, ?) "
                    "ON CONFLICT (hash) DO UPDATE SET tries = sign_in_try.tries + 1",
                    [hashed, now],
                )
                found = transaction.one("SELECT tries FROM sign_in_try WHERE hash = ?", [hashed])
                (tries[hashed],) = cast("tuple[int]", found)
        return all(tries[hashed] <= limit for hashed, limit in limits.items())

    def forget_tries(self, hashed: bytes) -> None:
        """Tries of this hash no longer count."""
        with self._writing() as transaction:
            transaction.change("DELETE FROM sign_in_try WHERE hash = ?", [hashed])
