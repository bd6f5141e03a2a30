"""Identities of reports, by which the server recognizes a report that a device sends again.

An identity is a part of the hash of a report's id. Each pending report has its identity in a row of
`pending_id`. While a survey is open, the identities of its released reports are stored in
`released_ids`, sorted and concatenated, so that they take up less space than the answers. Each row
contains the identities with one first byte, from `first` up to those of the next row. They are
stored without that byte.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from survey.store.digests import DIGEST_BYTES, NO_ROWS, combined_digest
from survey.store.schema import RELEASED_IDS

if TYPE_CHECKING:
    from survey.store.transactions import Row, Transaction

IDENTITY_BYTES = 8
"""The length of an identity.

A new report has the identity of one of n earlier reports with probability n / 2^64. The server
would mistake it for a repeat. With ten million reports, the probability of any such case is 3e-6.
"""

TAIL_BYTES = IDENTITY_BYTES - 1

MAX_IN_ROW = 110
"""Maximum number of identities in a row; a release rewrites the whole row to add one."""

PAGE = 10_000
"""Number of ids that a migration reads at once."""

Identities = Sequence[bytes]


def identity(report_id: bytes) -> bytes:
    """Return the identity of a report; hashing spreads ids that a program numbers in sequence.

    >>> identity(bytes(16)).hex()
    '374708fff7719dd5'
    """
    return sha256(report_id).digest()[:IDENTITY_BYTES]


def identities_of(row: Row) -> list[bytes]:
    """Return the identities in a row of `released_ids`.

    >>> identities_of((1, b"a", b"1234567abcdefg"))
    [b'a1234567', b'aabcdefg']
    """
    head = row[1][:1]
    return [head + tail for tail in _tails(row)]


def ids_digest(rows: Iterable[Row], before: bytes = NO_ROWS) -> bytes:
    """Return the digest of rows of `released_ids`, combined with the digest `before` of others.

    The order of the rows does not matter. Rows that `before` already includes cancel out.
    """
    contents = (b"%d:%b%b" % (len(first), first, tails) for _, first, tails in rows)
    digests = [sha256(content).digest()[:DIGEST_BYTES] for content in contents]
    return combined_digest(digests, before)


def released(transaction: Transaction, survey: int, identities: Identities) -> set[bytes]:
    """Return which of these identities belong to released reports."""
    wanted = set(identities)
    rows = transaction.released_rows(survey, sorted(wanted))
    return {found for row in rows for found in identities_of(row)} & wanted


def add_released(transaction: Transaction, survey: int, identities: Identities) -> None:
    """Record the identities of released reports, and update their digest."""
    new = sorted(set(identities))
    old_rows = transaction.released_rows(survey, new)
    new_rows = [row for rows in _merge(survey, new, old_rows) for row in rows]
    transaction.insert_rows(
        RELEASED_IDS, new_rows, "ON CONFLICT (survey, first) DO UPDATE SET ids = excluded.ids"
    )
    stored = transaction.row("SELECT ids_digest FROM release WHERE survey = ?", [survey])
    if stored is not None:
        _set_digest(transaction, survey, ids_digest([*old_rows, *new_rows], stored[0]))


def _merge(survey: int, new: Identities, old_rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows that replace each old row, and rows for identities before the first row."""
    old = {row[1]: row for row in old_rows}
    starts = sorted({*old, *(item[:1] for item in new)})
    for start, end in zip(starts, [*starts[1:], b"\xff" * (IDENTITY_BYTES + 1)], strict=True):
        added = new[bisect_left(new, start) : bisect_left(new, end)]
        if added:
            known = _tails(old[start]) if start in old else []
            yield _rows(survey, start, sorted({*known, *(item[1:] for item in added)}))


def _tails(row: Row) -> list[bytes]:
    """Return the identities in a row of `released_ids` without their common first byte."""
    tails = row[2]
    return [tails[start : start + TAIL_BYTES] for start in range(0, len(tails), TAIL_BYTES)]


def _rows(survey: int, first: bytes, tails: Sequence[bytes]) -> list[Row]:
    """Return rows of about equal size for sorted tails of identities with the same first byte."""
    n_rows = -(-len(tails) // MAX_IN_ROW)
    size = -(-len(tails) // n_rows)
    parts = [tails[start : start + size] for start in range(0, len(tails), size)]
    return [
        (survey, first[:1] + part[0] if number else first, b"".join(part))
        for number, part in enumerate(parts)
    ]


def forget_released(transaction: Transaction, survey: int) -> None:
    """Delete the identities of a survey's released reports."""
    transaction.execute("DELETE FROM released_ids WHERE survey = ?", [survey])
    _set_digest(transaction, survey, NO_ROWS)


def _set_digest(transaction: Transaction, survey: int, digest: bytes) -> None:
    transaction.execute("UPDATE release SET ids_digest = ? WHERE survey = ?", [digest, survey])


def shorten_ids(transaction: Transaction) -> None:
    """Replace the ids in a database of an earlier version, for the step that shortens them.

    A server of a version before the keeper could release a report without deleting its pending id.
    """
    for (survey,) in transaction.rows("SELECT key FROM survey ORDER BY key"):
        joined = bytearray()
        for page in _pages_of_ids(transaction, "seen", survey):
            joined += b"".join(map(identity, page))
        _set_digest(transaction, survey, NO_ROWS)
        for part in _sorted_parts(bytes(joined)):
            add_released(transaction, survey, part)
        for page in _pages_of_ids(transaction, "pending_id", survey):
            short = [(survey, identity(report_id)) for report_id in page]
            transaction.execute_many(
                "DELETE FROM pending_id WHERE survey = ? AND id = ?", [(survey, i) for i in page]
            )
            stale = released(transaction, survey, [item for _, item in short])
            transaction.execute_many(
                "INSERT INTO pending_id (survey, id) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [place for place in sorted(short) if place[1] not in stale],
            )


def _pages_of_ids(transaction: Transaction, table: str, survey: int) -> Iterator[list[bytes]]:
    """Yield pages of the full-length ids in a table of an earlier version."""
    after = b""
    statement = (
        f"SELECT id FROM {table} WHERE survey = ? AND id > ? AND length(id) > ? "  # noqa: S608  constant
        "ORDER BY id LIMIT ?"
    )
    while rows := transaction.rows(statement, [survey, after, IDENTITY_BYTES, PAGE]):
        yield [report_id for (report_id,) in rows]
        after = rows[-1][0]


def _sorted_parts(joined: bytes) -> Iterator[list[bytes]]:
    """Yield concatenated identities in sorted parts, so that each part changes adjacent rows."""
    import numpy as np

    ordered = np.sort(np.frombuffer(joined, dtype=f">u{IDENTITY_BYTES}")).tobytes()
    for start in range(0, len(ordered), PAGE * IDENTITY_BYTES):
        part = ordered[start : start + PAGE * IDENTITY_BYTES]
        yield [
            part[place : place + IDENTITY_BYTES] for place in range(0, len(part), IDENTITY_BYTES)
        ]


def sorted_identities(ids: Iterable[bytes]) -> list[bytes]:
    """Return the identities of ids, sorted so that they do not reveal the order of arrival."""
    return sorted(map(identity, ids))
