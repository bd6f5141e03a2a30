"""Backups: a whole store in one file for its owner alone, made while it serves, and brought back.

A file that bears its name is whole: it is written under another one, compared and only then named.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from survey.archive.check import Checked
from survey.archive.copying import Watch, copy_snapshot
from survey.errors import ConflictError
from survey.store import Store
from survey.store.single_file import created, opened


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
        with created(partial) as target, store.snapshot() as moment:
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
    with opened(file) as source, source.snapshot() as moment:
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
