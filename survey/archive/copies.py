"""Copies of a whole store: into another database, into a backup file, and back.

A copy can be interrupted at any point. Only rows that the target lacks are written, so a second
run continues where the first one stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from survey.archive.consistency import Checked, check
from survey.archive.pages import LEFT_OUT, Portion, portions
from survey.errors import ConflictError, StoreError
from survey.store import Snapshot, Store
from survey.store.migrations import FIRST_STEP
from survey.store.sqlite import create_file, open_file

Watch = Callable[[int, int], None]
"""Is told again and again how many rows are done, and of how many."""


def copy_store(source: Store, target: Store, watch: Watch) -> Checked:
    """Copy a store that takes no reports meanwhile into an empty one, or go on with that.

    Sessions are left out: everybody signs in again. Returns what the source's check found.

    Raises ConflictError when the target holds anything that the source does not, or when the
    source has changed while it was copied; StoreError when the source contradicts itself or the
    target does not hold what was written.
    """
    with source.snapshot() as moment:
        checked = copy_snapshot(moment, target, watch)
    # Anew: what was acknowledged since the beginning would be lost with the source.
    with source.snapshot() as now:
        if differing := difference(now, target):
            raise ConflictError(
                f'the source has changed while it was copied (its table "{differing}"): stop '
                "serving from it, empty the target, and copy again"
            )
    return checked


def copy_snapshot(source: Snapshot, target: Store, watch: Watch) -> Checked:
    """Bring a target to the state of a snapshot, and compare every row; as `copy_store`."""
    checked = check(source).or_refused()
    make_tables(target)
    total, done = rows_to_copy(source, target), 0
    for portion in portions(source, target):
        _refuse_foreign(portion)
        if portion.missing:
            target.insert_rows(portion.table, portion.missing)
        done += portion.n
        watch(done, total)
    if differing := difference(source, target):
        raise StoreError(f'the copy is not what was written: its table "{differing}" differs')
    return checked


def make_tables(target: Store) -> None:
    """Migrate a database that has no tables yet; an older one is somebody's and stays as it is."""
    if FIRST_STEP in target.pending_migrations():
        target.migrate()


def rows_to_copy(source: Snapshot, target: Store) -> int:
    """How many rows a copy consists of; ConflictError before anything is written.

    What cannot be read of the source shows here as well.
    """
    for name in LEFT_OUT:
        with target.snapshot() as held:
            if held.rows(name, None, 1):
                raise _foreign(name)
    n = 0
    for portion in portions(source, target):
        _refuse_foreign(portion)
        n += portion.n
    return n


def difference(source: Snapshot, target: Store) -> str | None:
    """The first table in which a target is not exactly the source; None when there is none."""
    for portion in portions(source, target):
        if portion.missing or portion.foreign:
            return portion.table
    return None


def _refuse_foreign(portion: Portion) -> None:
    if portion.foreign:
        raise _foreign(portion.table)


def _foreign(table: str) -> ConflictError:
    return ConflictError(
        f'the target is not empty: its table "{table}" holds what the source does not. It is '
        "another instance's database, or a copy of an earlier state; name an empty one"
    )


def backup(store: Store, file: Path, watch: Watch) -> Checked:
    """Write the state of a store at this moment to a new file; the store may go on serving.

    Every report that was acknowledged before is in it, waiting or released, and the ids by which
    a report that is sent again is known. Raises ConflictError when the file exists, StoreError
    when the store contradicts itself: then there is no file.
    """
    if os.path.lexists(file):
        raise _exists(file)
    # Made for its owner alone, and with it the files that the database has beside it meanwhile.
    with TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as directory:
        partial = Path(directory) / "partial.db"
        with create_file(partial) as target, store.snapshot() as moment:
            checked = copy_snapshot(moment, target, watch)
        _synchronize(partial)
        try:
            # Unlike a renaming, it never replaces what came under this name meanwhile.
            os.link(partial, file)
        except FileExistsError:
            raise _exists(file) from None
    _synchronize(file.parent)
    return checked


def restore(file: Path, store: Store, watch: Watch) -> Checked:
    """Bring the state that a backup holds into an empty database, migrated or not.

    Interrupted, it is gone on with by restoring the same file again. The file is not changed; one
    of an older schema is upgraded in a copy. Raises ConflictError when the database holds anything
    else, StoreError for a file that is no store, of a newer schema, or contradicts itself.
    """
    with open_file(file) as source, source.snapshot() as moment:
        return copy_snapshot(moment, store, watch)


def _exists(file: Path) -> ConflictError:
    return ConflictError(f"{file} exists already; a backup never replaces a file")


def _synchronize(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
