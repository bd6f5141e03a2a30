"""Tries to sign in, counted for all workers and servers together, under keyed hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from survey.store.sql.transaction import SqlTransactions, Transaction

MOST_REMEMBERED = 10_000
"""Hashes that are kept; a flood of names begins anew, and fills no disk."""


class SqlTries(SqlTransactions):
    """The part of a `Store` that slows guessing down."""

    def count_attempt(self, limits: Sequence[tuple[bytes, int]], now: int, seconds: int) -> bool:
        """Count a try for each of these hashes, until one has had more than its limit.

        Returns whether none has. What is refused by the first adds no row of the others: nobody
        can flood the table by going on. Two that count at once must name what they share in the
        same order, or they could wait for each other. A hash begins anew `seconds` after its
        first try; what is older is forgotten on the way.
        """
        with self._writing() as transaction:
            transaction.change("DELETE FROM sign_in_try WHERE since <= ?", [now - seconds])
            (kept,) = cast("tuple[int]", transaction.one("SELECT count(*) FROM sign_in_try"))
            if kept > MOST_REMEMBERED:
                transaction.change("DELETE FROM sign_in_try")
            return all(_counted(transaction, hashed, now) <= limit for hashed, limit in limits)

    def forget_attempts(self, hashed: bytes) -> None:
        """Tries of this hash no longer count."""
        with self._writing() as transaction:
            transaction.change("DELETE FROM sign_in_try WHERE hash = ?", [hashed])


def _counted(transaction: Transaction, hashed: bytes, now: int) -> int:
    """Tries of this hash, this one among them."""
    transaction.change(
        "INSERT INTO sign_in_try (hash, tries, since) VALUES (?, 1, ?) "
        "ON CONFLICT (hash) DO UPDATE SET tries = sign_in_try.tries + 1",
        [hashed, now],
    )
    found = transaction.one("SELECT tries FROM sign_in_try WHERE hash = ?", [hashed])
    (tries,) = cast("tuple[int]", found)
    return tries
