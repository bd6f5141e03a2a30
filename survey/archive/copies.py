"""Copies of a whole store: into another database, into a backup file, and back.

A copy can be interrupted at any point. Only rows that the target lacks are written, so a second
run continues where the first one stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from survey.archive.consistency import CheckResult, check, key_of, pages, rows
from survey.errors import ConflictError, StoreError
from survey.store import TABLES, Batch, PrivateKeys, Row, SealingKey, Snapshot, Store
from survey.store.migrations import FIRST_STEP
from survey.store.sealed_reports import (
    forget_unreadable,
    lost_keys,
    open_batch,
    require_key,
    seal,
)
from survey.store.sqlite import SqliteStore, create_file, open_file

Watch = Callable[[int, int], None]
"""Called repeatedly with the number of finished rows and the total."""


def copy_store(source: Store, target: Store, keys: PrivateKeys, watch: Watch) -> CheckResult:
    """Copy a store into an empty one, or continue such a copy; the source must accept no reports.

    Pending reports are sealed again with new keys, which are stored in `keys`. The caller must lock
    `keys`; otherwise a keeper could destroy keys during the copy. Sessions are not copied, so all
    researchers must sign in again. Returns the result of the source's check. Raises ConflictError
    if the target contains anything that the source does not, or if the source has changed during
    the copy, and StoreError if the source contradicts itself, a private key is missing, or the
    target differs from what was written.
    """
    _require_undamaged(source)
    with source.snapshot() as snapshot:
        result = copy_snapshot(snapshot, target, watch, keys)
    # A new snapshot detects reports acknowledged during the copy, which the target lacks.
    with source.snapshot() as now:
        if table := difference(now, target, is_resealed=True):
            raise ConflictError(
                f'the source has changed while it was copied (its table "{table}"): stop '
                "serving from it, empty the target, and copy again"
            )
    return result


def _require_undamaged(source: Store) -> None:
    """Raise StoreError if the database's own checks find damage that a copy would hide."""
    CheckResult(0, 0, tuple(source.find_damage(UNVERIFIED))).require_consistency()


def copy_snapshot(
    source: Snapshot, target: Store, watch: Watch, keys: PrivateKeys | None = None
) -> CheckResult:
    """Bring a target to the state of a snapshot and compare every row, as `copy_store` does.

    Without `keys`, sealed reports and their public keys are copied unchanged.
    """
    is_resealed = keys is not None
    result = check(source).require_consistency()
    # An older database is in use and stays unchanged.
    if FIRST_STEP in target.pending_migrations():
        target.migrate()
    total, copied = rows_to_copy(source, target, is_resealed=is_resealed), 0
    for portion in portions(source, target, is_resealed=is_resealed):
        _refuse_foreign(portion)
        if portion.missing and portion.table == "pending" and keys:
            _seal_for(target, keys, source, portion.missing)
        elif portion.missing:
            target.insert_rows(portion.table, portion.missing)
        copied += portion.n
        watch(copied, total)
    if table := difference(source, target, is_resealed=is_resealed):
        raise StoreError(f'the copy differs from what was written: its table "{table}" differs')
    return result


def _seal_for(target: Store, keys: PrivateKeys, source: Snapshot, batches: Sequence[Row]) -> None:
    """Seal the reports of batches with the target's keys, each batch as one new batch."""
    periods = {row[:2]: SealingKey(*row) for row in rows(source, "sealing_key")}
    current = {key.survey: key for key in target.sealing_keys()}
    for batch in map(Batch.from_row, batches):
        if batch.survey not in current:
            key = SealingKey(batch.survey, 1, keys.create())
            target.insert_rows("sealing_key", [(key.survey, key.period, key.public_key)])
            current[batch.survey] = key
        opened = open_batch(require_key(keys, periods[batch.survey, batch.period]), batch)
        sealed = seal(current[batch.survey], opened, is_resealed=batch.is_resealed)
        target.insert_rows("pending", [new.row for new in sealed])


def rows_to_copy(source: Snapshot, target: Store, *, is_resealed: bool) -> int:
    """Return the number of rows of a copy; ConflictError before anything is written.

    This also reads the whole source, so that unreadable rows raise here.
    """
    for name in EXCLUDED:
        with target.snapshot() as snapshot:
            if snapshot.rows(name, None, 1):
                raise _foreign(name)
    n = 0
    for portion in portions(source, target, is_resealed=is_resealed):
        _refuse_foreign(portion)
        n += portion.n
    return n


def difference(source: Snapshot, target: Store, *, is_resealed: bool) -> str | None:
    """Return the first table in which a target differs from the source, or None."""
    for portion in portions(source, target, is_resealed=is_resealed):
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

    The file contains every report acknowledged before, pending or released, and the ids that
    identify repeated reports. This function checks the small tables of the store, copies the store,
    and checks the copy, so that it does not delay releases. It also writes the backup of a damaged
    store, because it may be the last possible one; the result names the mistakes. Raises
    ConflictError if the file exists.
    """
    if os.path.lexists(file):
        raise _file_exists(file)
    # Only the owner may read this directory, so the database's temporary files are private too.
    with TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as directory:
        partial = Path(directory) / "partial.db"
        # Check the source: the copy has new indexes, which agree even with damaged rows.
        damage = store.find_damage(UNVERIFIED)
        if isinstance(store, SqliteStore):
            store.write_copy(partial, EXCLUDED)
        else:
            _write_tables(store, partial)
        watch(1, 2)
        try:
            with open_file(partial) as copy, copy.snapshot() as snapshot:
                result = check(snapshot)
        except StoreError as error:
            # The check cannot read all rows.
            result = CheckResult(surveys=0, reports=0, mistakes=(str(error),))
        result = replace(result, mistakes=(*damage, *result.mistakes))
        watch(2, 2)
        _synchronize(partial)
        try:
            # Unlike a rename, a link never replaces a file that has appeared meanwhile.
            os.link(partial, file)
        except FileExistsError:
            raise _file_exists(file) from None
    _synchronize(file.parent)
    return result


def _write_tables(store: Store, file: Path) -> None:
    """Write a snapshot of a store to a new SQLite file."""
    with create_file(file) as target, store.snapshot() as source:
        for name in COPIED:
            for page in pages(source, name):
                target.insert_rows(name, page)


def restore(
    file: Path, store: Store, keys: PrivateKeys, watch: Watch, *, may_lose_all: bool = False
) -> tuple[CheckResult, int]:
    """Restore a backup into an empty database, migrated or not.

    The caller must lock `keys`; otherwise a keeper could destroy keys during the restore.

    Returns the result of the backup's check, and the number of pending reports whose private key
    is destroyed. These are omitted, and their ids and invitations become unused again, so devices
    can resend the reports. Restoring the same file again continues an interrupted run. The file is
    not changed; a file with an older schema is upgraded in a copy. Raises ConflictError if the
    database contains anything else, and StoreError for a file that is not a store, has a newer
    schema, or contradicts itself. Without `may_lose_all`, it also raises StoreError if `keys` has
    none of the backup's private keys, because an unmounted key volume looks the same.
    """
    # Beside an SQLite database, whose disk has room for a copy.
    place = store.path.parent if isinstance(store, SqliteStore) else None
    with open_file(file) as source, TemporaryDirectory(dir=place) as directory:
        _require_undamaged(source)
        lost = lost_keys(source, keys)
        if not lost:
            with source.snapshot() as snapshot:
                return copy_snapshot(snapshot, store, watch), 0
        has_some_keys = len(lost) < len(source.sealing_keys())
        if not has_some_keys and not may_lose_all and any(map(source.is_key_needed, lost)):
            raise StoreError(
                f"{keys.directory} has none of this backup's private keys, so all pending reports "
                "would be omitted; check that SURVEY_KEYS names the right directory and that its "
                "volume is mounted. If the keys are permanently lost, add --yes"
            )
        # In a copy of the file, so that a second run starts from the same rows.
        with create_file(Path(directory) / "readable.db") as readable:
            with source.snapshot() as snapshot:
                copy_snapshot(snapshot, readable, lambda *_: None)
            n_lost = forget_unreadable(readable, keys)
            with readable.snapshot() as snapshot:
                return copy_snapshot(snapshot, store, watch), n_lost


def _file_exists(file: Path) -> ConflictError:
    return ConflictError(f"{file} already exists; a backup never replaces a file")


def _synchronize(path: Path) -> None:
    """Wait until a file, or the names in a directory, are written to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


VERIFIED = ("block", "counts", "pending", "pending_id", "released_ids")
"""Large tables in which `check` detects damage by digests, or by rebuilding them."""

UNVERIFIED = tuple(name for name in TABLES if name not in VERIFIED)
"""Small tables, in which only the database's own checks detect damage."""

EXCLUDED = ("login_session", "sign_in_try", "failed_sign_in")
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


def portions(source: Snapshot, target: Store, *, is_resealed: bool) -> Iterator[Portion]:
    """Yield all copied rows of a source, compared with the current rows of the target.

    The target can be written between two portions. If pending reports are sealed again, batches
    are compared without their keys and boxes.
    """
    for name in COPIED:
        if is_resealed and name == "sealing_key":
            continue
        if is_resealed and name == "pending":
            yield from _resealed_portions(source, target)
            continue
        after: Row | None = None
        for page in pages(source, name):
            yield _portion(target, name, after, page)
            after = key_of(TABLES[name], page[-1])
        with target.snapshot() as snapshot:
            extra = snapshot.rows(name, after, 1)
        if extra:
            yield Portion(name, 0, [], extra)


def _resealed_portions(source: Snapshot, target: Store) -> Iterator[Portion]:
    """Yield the pending batches of a source, compared with those of the target by their ids."""
    with target.snapshot() as snapshot:
        foreign = {_readable_part(row): row for row in rows(snapshot, "pending")}
    for page in pages(source, "pending"):
        missing = [row for row in page if _readable_part(row) not in foreign]
        for row in page:
            foreign.pop(_readable_part(row), None)
        yield Portion("pending", len(page), missing, [])
    if foreign:
        yield Portion("pending", 0, [], list(foreign.values()))


def _readable_part(row: Row) -> tuple[int, str, bytes, bytes]:
    """Return the part of a batch that is readable without a key and unchanged by resealing."""
    batch = Batch.from_row(row)
    return batch.survey, batch.stratum, batch.ids, batch.invitations


def _portion(target: Store, name: str, after: Row | None, page: list[Row]) -> Portion:
    end = key_of(TABLES[name], page[-1])
    with target.snapshot() as snapshot:
        # The source's number of rows is enough: one foreign row among them proves a difference.
        candidates = snapshot.rows(name, after, len(page))
    present = {row for row in candidates if key_of(TABLES[name], row) <= end}
    return Portion(
        name, len(page), [row for row in page if row not in present], list(present.difference(page))
    )
