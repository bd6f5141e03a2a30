"""Digests that show whether a database was changed by a disk, by memory or by hand.

A block and a sealed batch have the digest of their own row: of released codes in random order, or
of ciphertext. The ids of a survey's released reports have one digest together, the exclusive or of
all ids: it does not depend on their order, and new ids are enough to update it. No digest reveals
anything that its rows do not. In SQLite, indexes repeat the rows of all small tables, and SQLite's
own integrity check compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from survey.store.transactions import Row, Transaction

DIGEST_BYTES = 16

NO_IDS = bytes(DIGEST_BYTES)
"""The digest of no ids."""

PAGE = 16
"""Number of rows read at once; a block contains up to 65,536 answers."""

PAGE_OF_IDS = 10_000


def row_digest(values: Sequence[int | str | bytes]) -> bytes:
    """Return the digest of the values of a row, each preceded by its length.

    >>> row_digest([1, "", b"ab"]) == row_digest([1, "a", b"b"])
    False
    """
    contents = [value if isinstance(value, bytes) else str(value).encode() for value in values]
    joined = b"".join(b"%d:%b" % (len(content), content) for content in contents)
    return sha256(joined).digest()[:DIGEST_BYTES]


def ids_digest(ids: Iterable[bytes], before: bytes = NO_IDS) -> bytes:
    """Return the digest of ids that are added to a set with the digest `before`.

    >>> ids_digest([b"1" * 16], ids_digest([b"2" * 16])) == ids_digest([b"2" * 16, b"1" * 16])
    True
    """
    parts = [before, *ids]
    value, n = int.from_bytes(b"".join(parts), "big"), len(parts)
    # Halves of the joined ids are combined at once, ten times as fast as one id after another.
    while n > 1:
        bits = 8 * DIGEST_BYTES * (n // 2)
        value = (value >> bits) ^ (value & ((1 << bits) - 1))
        n -= n // 2
    return (value % (1 << 8 * DIGEST_BYTES)).to_bytes(DIGEST_BYTES, "big")


def add_released_ids(transaction: Transaction, survey: int, ids: Sequence[bytes]) -> None:
    """Update the digest after these ids, unknown until now, were recorded as released."""
    row = transaction.row("SELECT ids_digest FROM release WHERE survey = ?", [survey])
    if ids and row is not None:
        _set_ids_digest(transaction, survey, ids_digest(ids, row[0]))


def renew_ids_digest(transaction: Transaction, survey: int) -> None:
    """Compute the digest of a survey's released ids from all of them."""
    digest = NO_IDS
    for page in _pages_of_ids(transaction, survey):
        digest = ids_digest(page, digest)
    _set_ids_digest(transaction, survey, digest)


def _set_ids_digest(transaction: Transaction, survey: int, digest: bytes) -> None:
    transaction.execute("UPDATE release SET ids_digest = ? WHERE survey = ?", [digest, survey])


def _pages_of_ids(transaction: Transaction, survey: int) -> Iterator[list[bytes]]:
    after = b""
    statement = "SELECT id FROM seen WHERE survey = ? AND id > ? ORDER BY id LIMIT ?"
    while rows := transaction.rows(statement, [survey, after, PAGE_OF_IDS]):
        yield [report_id for (report_id,) in rows]
        after = rows[-1][0]


def fill_digests(transaction: Transaction) -> None:
    """Compute the digests of a database of an earlier version, as the step that adds them."""
    block_key = ("survey", "stratum", "bucket", "question", "block")
    _fill_rows(transaction, "block", block_key, ("n", "data"))
    content = ("period", "stratum", "is_resealed", "ids", "invitations", "box")
    _fill_rows(transaction, "pending", ("survey", "batch"), content)
    for (survey,) in transaction.rows("SELECT survey FROM release ORDER BY survey"):
        renew_ids_digest(transaction, int(survey))


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
