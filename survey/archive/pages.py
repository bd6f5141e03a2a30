"""The rows of a store, page by page, compared with those of another store in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from survey.store import TABLES, Row, Snapshot, Store, Table

EXCLUDED = ("login_session", "sign_in_try")
"""Tables that are not copied: a session that was ended must not become valid again."""

COPIED = (*(name for name in TABLES if name not in (*EXCLUDED, "release")), "release")
"""Tables in the order in which they are written.

A survey gets its row in `release` when it is published; in a copy this row is written last, so
a survey without one identifies an interrupted copy.
"""

PAGE = 5_000
BLOCKS = 16
"""Rows read at once; fewer blocks, because each contains up to 65,536 answers."""


@dataclass(frozen=True)
class Portion:
    """Adjacent rows of a source's table, compared with the target.

    `missing` lists rows that the target lacks, `foreign` rows that only the target has, including
    rows with the same key and other values.
    """

    table: str
    n: int
    missing: list[Row]
    foreign: list[Row]


def pages(snapshot: Snapshot, name: str) -> Iterator[list[Row]]:
    """Yield all rows of a table in the order of its key, page by page."""
    after = None
    while page := snapshot.rows(name, after, _page_size(name)):
        yield page
        after = key_of(TABLES[name], page[-1])


def rows(snapshot: Snapshot, name: str) -> Iterator[Row]:
    """Yield all rows of a table in the order of its key, one by one."""
    for page in pages(snapshot, name):
        yield from page


def key_of(table: Table, row: Row) -> Row:
    """Return the primary key of a row.

    >>> key_of(TABLES["release"], (7, 3, 90))
    (7,)
    """
    return tuple(row[table.column_names.index(column)] for column in table.key)


def portions(source: Snapshot, target: Store) -> Iterator[Portion]:
    """Yield all copied rows of a source, compared with the current rows of the target.

    The target can be written between two portions.
    """
    for name in COPIED:
        after: Row | None = None
        for page in pages(source, name):
            yield _portion(target, name, after, page)
            after = key_of(TABLES[name], page[-1])
        with target.snapshot() as snapshot:
            extra = snapshot.rows(name, after, 1)
        if extra:
            yield Portion(name, 0, [], extra)


def _portion(target: Store, name: str, after: Row | None, page: list[Row]) -> Portion:
    end = key_of(TABLES[name], page[-1])
    with target.snapshot() as snapshot:
        # The source's number of rows is enough: one foreign row among them proves a difference.
        candidates = snapshot.rows(name, after, len(page))
    present = {row for row in candidates if key_of(TABLES[name], row) <= end}
    return Portion(
        name, len(page), [row for row in page if row not in present], list(present.difference(page))
    )


def _page_size(name: str) -> int:
    return BLOCKS if name == "block" else PAGE
