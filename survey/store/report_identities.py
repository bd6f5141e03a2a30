"""The identities of reports, by which the server recognizes a report that is sent again.

An identity is a part of the hash of a report's id. The identity of a pending report is a row of
`pending_id`. The identities of released reports are kept as long as the survey is open, sorted and
joined in rows of `released_ids`, so that they take less room than the answers: a row contains the
identities with the same first byte from `first` on, up to those of the next row, each without its
first byte.
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

Among n reports, a new one has the identity of another one, and would be taken for its copy, with
probability n / 2^64: with ten million reports, the probability that this ever happens is 3e-6.
"""

TAIL_BYTES = IDENTITY_BYTES - 1

MAX_IN_ROW = 110
"""Maximum number of identities in a row: a release writes the whole row for each new one."""

PAGE = 10_000
"""Number of ids that a migration reads at once."""

Identities = Sequence[bytes]


def identity(report_id: bytes) -> bytes:
    """Return the identity of a report; hashing spreads ids that a program has numbered.

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
    """Return the digest of a survey's rows of `released_ids`, after rows with the digest `before`.

    It does not depend on their order. Rows that were counted before cancel out.
    """
    contents = (b"%d:%b%b" % (len(first), first, tails) for _, first, tails in rows)
    digests = [sha256(content).digest()[:DIGEST_BYTES] for content in contents]
    return combined_digest(digests, before)


def released(transaction: Transaction, survey: int, identities: Identities) -> set[bytes]:
    """Return which of these identities are those of released reports."""
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
    """Yield the rows that replace each old row, and those of identities before the first row."""
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
    """Return rows of about equal size for the sorted tails of identities with one first byte."""
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
    """Replace the ids of a database of an earlier version, as the step that shortens them.

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
    """Yield the whole ids of a table of an earlier version."""
    after = b""
    statement = (
        f"SELECT id FROM {table} WHERE survey = ? AND id > ? AND length(id) > ? "  # noqa: S608  constant
        "ORDER BY id LIMIT ?"
    )
    while rows := transaction.rows(statement, [survey, after, IDENTITY_BYTES, PAGE]):
        yield [report_id for (report_id,) in rows]
        after = rows[-1][0]


def _sorted_parts(joined: bytes) -> Iterator[list[bytes]]:
    """Yield joined identities in order, in parts: their rows follow each other in the table."""
    import numpy as np

    ordered = np.sort(np.frombuffer(joined, dtype=f">u{IDENTITY_BYTES}")).tobytes()
    for start in range(0, len(ordered), PAGE * IDENTITY_BYTES):
        part = ordered[start : start + PAGE * IDENTITY_BYTES]
        yield [
            part[place : place + IDENTITY_BYTES] for place in range(0, len(part), IDENTITY_BYTES)
        ]


def sorted_identities(ids: Iterable[bytes]) -> list[bytes]:
    """Return the identities of ids, sorted, so that they do not show the order of arrival."""
    return sorted(map(identity, ids))
