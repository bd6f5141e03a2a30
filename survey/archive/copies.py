"""Copies of a whole store: into another database, into a backup file, and back.

A copy can be interrupted at any point. Only rows that the target lacks are written, so a second
run continues where the first one stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from survey.archive.consistency import CheckResult, check, key_of, pages
from survey.errors import ConflictError, StoreError
from survey.store import TABLES, Row, Snapshot, Store
from survey.store.migrations import FIRST_STEP
from survey.store.sqlite import create_file, open_file

Watch = Callable[[int, int], None]
"""Called repeatedly with the number of finished rows and the total."""


def copy_store(source: Store, target: Store, watch: Watch) -> CheckResult:
    """Copy a store that accepts no reports meanwhile into an empty one, or continue such a copy.

    Sessions are not copied, so everybody signs in again. Returns the result of the source's
    check. Raises ConflictError if the target contains anything that the source does not, or if
    the source has changed during the copy, and StoreError if the source contradicts itself or
    the target differs from what was written.
    """
    with source.snapshot() as snapshot:
        result = copy_snapshot(snapshot, target, watch)
    # A new snapshot, because reports acknowledged during the copy would be lost with the source.
    with source.snapshot() as now:
        if table := difference(now, target):
            raise ConflictError(
                f'the source has changed while it was copied (its table "{table}"): stop '
                "serving from it, empty the target, and copy again"
            )
    return result


def copy_snapshot(source: Snapshot, target: Store, watch: Watch) -> CheckResult:
    """Bring a target to the state of a snapshot and compare every row, as `copy_store` does."""
    result = check(source).require_consistency()
    # An older database is in use and stays unchanged.
    if FIRST_STEP in target.pending_migrations():
        target.migrate()
    total, copied = rows_to_copy(source, target), 0
    for portion in portions(source, target):
        _refuse_foreign(portion)
        if portion.missing:
            target.insert_rows(portion.table, portion.missing)
        copied += portion.n
        watch(copied, total)
    if table := difference(source, target):
        raise StoreError(f'the copy differs from what was written: its table "{table}" differs')
    return result


def rows_to_copy(source: Snapshot, target: Store) -> int:
    """Return the number of rows of a copy; ConflictError before anything is written.

    This also reads the whole source, so that unreadable rows raise here.
    """
    for name in EXCLUDED:
        with target.snapshot() as snapshot:
            if snapshot.rows(name, None, 1):
                raise _foreign(name)
    n = 0
    for portion in portions(source, target):
        _refuse_foreign(portion)
        n += portion.n
    return n


def difference(source: Snapshot, target: Store) -> str | None:
    """Return the first table in which a target differs from the source, or None."""
    for portion in portions(source, target):
        if portion.missing or portion.foreign:
            return portion.table
    return None


def _refuse_foreign(portion: Portion) -> None:
    if portion.foreign:
        raise _foreign(portion.table)


def _foreign(table: str) -> ConflictError:
    return ConflictError(
        f'the target is not empty: its table "{table}" has rows that the source does not have. It '
        "is another instance's database or a copy of an earlier state; choose an empty one"
    )


def backup(store: Store, file: Path, watch: Watch) -> CheckResult:
    """Write the current state of a store to a new file, while the store may keep serving.

    The file has every report acknowledged before, pending or released, and the ids that identify
    repeated reports. Raises ConflictError if the file exists, and StoreError without writing a
    file if the store contradicts itself.
    """
    if os.path.lexists(file):
        raise _file_exists(file)
    # Only the owner may read this directory, so the database's temporary files are private too.
    with TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as directory:
        partial = Path(directory) / "partial.db"
        with create_file(partial) as target, store.snapshot() as snapshot:
            result = copy_snapshot(snapshot, target, watch)
        _synchronize(partial)
        try:
            # Unlike a rename, a link never replaces a file that has appeared meanwhile.
            os.link(partial, file)
        except FileExistsError:
            raise _file_exists(file) from None
    _synchronize(file.parent)
    return result


def restore(file: Path, store: Store, watch: Watch) -> CheckResult:
    """Restore a backup into an empty database, migrated or not.

    Restoring the same file again continues an interrupted run. The file is not changed; a file
    with an older schema is upgraded in a copy. Raises ConflictError if the database contains
    anything else, and StoreError for a file that is not a store, has a newer schema, or
    contradicts itself.
    """
    with open_file(file) as source, source.snapshot() as snapshot:
        return copy_snapshot(snapshot, store, watch)


def _file_exists(file: Path) -> ConflictError:
    return ConflictError(f"{file} already exists; a backup never replaces a file")


def _synchronize(path: Path) -> None:
    """Wait until a file, or the names in a directory, are written to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


EXCLUDED = ("login_session", "sign_in_try")
"""Tables that are not copied: a session that was ended must not become valid again."""

COPIED = (*(name for name in TABLES if name not in (*EXCLUDED, "release")), "release")
"""Tables in the order in which they are written.

A survey gets its row in `release` when it is published; in a copy this row is written last, so
a survey without one identifies an interrupted copy.
"""


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
