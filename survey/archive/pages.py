"""The rows of a store, page by page, beside those of another: little memory, however many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from survey.store import TABLES, Row, Snapshot, Store, Table

LEFT_OUT = ("login_session", "sign_in_try")
"""Not copied and not kept: a session that has been ended since must not come back to life."""

COPIED = (*(name for name in TABLES if name not in (*LEFT_OUT, "release")), "release")
"""Tables in the order in which they are written.

A survey gets its row of `release` as it is published; here it comes last. So a copy that was
interrupted is known by surveys without one.
"""

PAGE = 5_000
BLOCKS = 16
"""Rows read at once; of blocks so few because each holds up to 65,536 answers."""


@dataclass(frozen=True)
class Portion:
    """Neighbouring rows of a source's table.

    `missing` are those that the target lacks. `foreign` are the target's that the source lacks:
    also rows of which only something beside their key differs.
    """

    table: str
    n: int
    missing: list[Row]
    foreign: list[Row]


def pages(snapshot: Snapshot, name: str) -> Iterator[list[Row]]:
    """All rows of a table in the order of its key."""
    after = None
    while page := snapshot.rows(name, after, _page(name)):
        yield page
        after = key_of(TABLES[name], page[-1])


def rows(snapshot: Snapshot, name: str) -> Iterator[Row]:
    """All rows of a table in the order of its key, one by one."""
    for page in pages(snapshot, name):
        yield from page


def key_of(table: Table, row: Row) -> Row:
    """The primary key of a row.

    >>> key_of(TABLES["release"], (7, 3, 90))
    (7,)
    """
    return tuple(row[table.column_names.index(column)] for column in table.key)


def portions(source: Snapshot, target: Store) -> Iterator[Portion]:
    """All that is copied of a source, beside what the target holds of it at that moment.

    The target may be written between one portion and the next.
    """
    for name in COPIED:
        after: Row | None = None
        for page in pages(source, name):
            yield _portion(target, name, after, page)
            after = key_of(TABLES[name], page[-1])
        with target.snapshot() as held:
            beyond = held.rows(name, after, 1)
        if beyond:
            yield Portion(name, 0, [], beyond)


def _portion(target: Store, name: str, after: Row | None, page: list[Row]) -> Portion:
    end = key_of(TABLES[name], page[-1])
    with target.snapshot() as held:
        # If there are more in this range than in the source's page, these show it already.
        found = held.rows(name, after, len(page))
    present = {row for row in found if key_of(TABLES[name], row) <= end}
    return Portion(
        name, len(page), [row for row in page if row not in present], list(present.difference(page))
    )


def _page(name: str) -> int:
    return BLOCKS if name == "block" else PAGE
