"""Digests that show whether a database was changed by a disk, by memory or by hand.

A block and a sealed batch have the digest of their row: of released codes in random order, or
of ciphertext. The rows with the ids of a survey's released reports have one digest together, the
exclusive or of their digests: changed rows are enough to update it. No digest reveals anything that
its rows do not. In SQLite, indexes repeat the rows of all small tables, and SQLite's
own integrity check compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from survey.store.transactions import Row, Transaction

DIGEST_BYTES = 16

NO_ROWS = bytes(DIGEST_BYTES)
"""The combined digest of no rows."""

PAGE = 16
"""Number of rows read at once; a block contains up to 65,536 answers."""


def row_digest(values: Sequence[int | str | bytes]) -> bytes:
    """Return the digest of the values of a row, each preceded by its length.

    >>> row_digest([1, "", b"ab"]) == row_digest([1, "a", b"b"])
    False
    """
    contents = [value if isinstance(value, bytes) else str(value).encode() for value in values]
    joined = b"".join(b"%d:%b" % (len(content), content) for content in contents)
    return sha256(joined).digest()[:DIGEST_BYTES]


def combined_digest(digests: Iterable[bytes], before: bytes = NO_ROWS) -> bytes:
    """Return the exclusive or of digests: adding one, or removing one, is the same operation.

    >>> combined_digest([b"1" * 16], combined_digest([b"2" * 16, b"1" * 16])) == b"2" * 16
    True
    """
    parts = [before, *digests]
    value, n = int.from_bytes(b"".join(parts), "big"), len(parts)
    # Halves of the joined digests are combined at once, ten times as fast as one after another.
    while n > 1:
        bits = 8 * DIGEST_BYTES * (n // 2)
        value = (value >> bits) ^ (value & ((1 << bits) - 1))
        n -= n // 2
    return (value % (1 << 8 * DIGEST_BYTES)).to_bytes(DIGEST_BYTES, "big")


def fill_digests(transaction: Transaction) -> None:
    """Compute the digests of a database of an earlier version, as the step that adds them.

    A later step writes all ids of released reports anew, with their digest.
    """
    block_key = ("survey", "stratum", "bucket", "question", "block")
    _fill_rows(transaction, "block", block_key, ("n", "data"))
    content = ("period", "stratum", "is_resealed", "ids", "invitations", "box")
    _fill_rows(transaction, "pending", ("survey", "batch"), content)


def _fill_rows(
    transaction: Transaction, table: str, key: Sequence[str], content: Sequence[str]
) -> None:
    """Compute the digests of a table's rows in the order of its key, which precedes its content."""
    names, marks = ", ".join(key), ", ".join("?" * len(key))
    same = " AND ".join(f"{column} = ?" for column in key)
    after: Row | None = None
    while True:
        condition = f"WHERE ({names}) > ({marks}) " if after else ""
        rows = transaction.rows(
            f"SELECT {names}, {', '.join(content)} FROM {table} "  # noqa: S608  constant
            f"{condition}ORDER BY {names} LIMIT ?",
            [*(after or ()), PAGE],
        )
        for row in rows:
            transaction.execute(
                f"UPDATE {table} SET digest = ? WHERE {same}",  # noqa: S608  constant
                [row_digest(row), *row[: len(key)]],
            )
        if len(rows) < PAGE:
            return
        after = rows[-1][: len(key)]
