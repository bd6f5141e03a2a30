"""Broken versions of the program; the tests of disks must find each of them out."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from nacl.public import PrivateKey

from survey.collect import release
from survey.store import reports, sealed_reports
from survey.store.sealed_reports import Batch, PrivateKeys

SITE = Path(__file__).parent / "site"
"""The folder that, on PYTHONPATH, breaks a program as SURVEY_TEST_MUTANT says."""

Patch = Callable[[object, str, object], None]
"""Replaces an attribute of an object: `setattr`, or that of a test's `monkeypatch`."""


def keep_private_keys(patch: Patch) -> None:
    """Forget the public key of a finished period, but not the private one."""
    patch(PrivateKeys, "destroy", lambda self, *public_keys: None)


def unlink_private_keys(patch: Patch) -> None:
    """Delete private keys without overwriting them."""

    def destroy(self: PrivateKeys, *public_keys: bytes) -> None:
        for public_key in public_keys:
            self._path(public_key).unlink(missing_ok=True)

    patch(PrivateKeys, "destroy", destroy)


def print_private_keys(patch: Patch) -> None:
    """Print each private key that opens a batch."""
    find = PrivateKeys.find

    def find_and_print(self: PrivateKeys, public_key: bytes) -> object:
        private_key = find(self, public_key)
        print(bytes(private_key or b"").hex(), file=sys.stderr, flush=True)
        return private_key

    patch(PrivateKeys, "find", find_and_print)


def release_in_order_of_ids(patch: Patch) -> None:
    """Publish reports in the order of their ids, which other tables contain."""
    open_all = release.Keeper._open

    def open_and_sort(self, survey, private_keys, batches):
        opened, reports = open_all(self, survey, private_keys, batches)
        return opened, sorted(reports, key=lambda report: report.id)

    patch(release.Keeper, "_open", open_and_sort)
    patch(release, "secure_permutation", np.arange)


def store_codes(patch: Patch) -> None:
    """Store the codes in plain text beside the ids."""
    _store_beside_ids(patch, lambda report: report.codes)


def store_digest(patch: Patch) -> None:
    """Store a digest of the codes beside the ids, from which a few guesses find a code."""
    _store_beside_ids(patch, lambda report: hashlib.sha256(report.id + report.codes).digest())


def name_batches_after_codes(patch: Patch) -> None:
    """Derive the random names of batches from the codes in them."""
    seal = sealed_reports.seal

    def seal_and_name(key, members, **options):
        codes = b"".join(report.codes for report in members)
        return [
            Batch(**{**vars(batch), "batch": hashlib.sha256(batch.ids + codes).digest()})
            for batch in seal(key, members, **options)
        ]

    patch(reports, "seal", seal_and_name)


def _store_beside_ids(patch: Patch, content: Callable) -> None:
    add = reports._add

    def add_and_store(transaction, arriving):
        arriving = list(arriving)
        transaction.execute("CREATE TABLE IF NOT EXISTS beside (id bytea, content bytea)")
        transaction.execute_many(
            "INSERT INTO beside (id, content) VALUES (?, ?)",
            [(report.id, content(report)) for _, report in arriving],
        )
        return add(transaction, arriving)

    patch(reports, "_add", add_and_store)


def skip_file_sync(patch: Patch) -> None:
    """Leave it to the system when the bytes of a private key reach the disk."""

    def sync_directories(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.fsync(descriptor)

    patch(sealed_reports, "os", SimpleNamespace(**{**vars(os), "fsync": sync_directories}))


def skip_directory_sync(patch: Patch) -> None:
    """Leave it to the system when the name of a private key reaches the disk."""
    patch(PrivateKeys, "_synchronize_names", lambda self: None)


def publish_keys_first(patch: Patch) -> None:
    """Write a private key only when it is needed, after its public key was published."""
    unwritten: dict[bytes, PrivateKey] = {}
    find = PrivateKeys.find

    def create_several(self: PrivateKeys, n: int) -> list[bytes]:
        new = [PrivateKey.generate() for _ in range(n)]
        unwritten.update((bytes(key.public_key), key) for key in new)
        return [bytes(key.public_key) for key in new]

    def write_all_and_find(self: PrivateKeys, public_key: bytes) -> PrivateKey | None:
        while unwritten:
            name, private_key = unwritten.popitem()
            with self._path(name).open("xb") as file:
                file.write(bytes(private_key))
                file.flush()
                os.fsync(file.fileno())
            self._synchronize_names()
        return find(self, public_key)

    patch(PrivateKeys, "create_several", create_several)
    patch(PrivateKeys, "find", write_all_and_find)


def destroy_keys_early(patch: Patch) -> None:
    """Destroy the private key of a period as soon as its batches are open."""
    open_all = release.Keeper._open

    def open_and_destroy(self, survey, private_keys, batches):
        opened = open_all(self, survey, private_keys, batches)
        for _, private_key in sorted(private_keys.items())[:-1]:
            self._keys.destroy(bytes(private_key.public_key))
        return opened

    patch(release.Keeper, "_open", open_and_destroy)


MUTANTS: dict[str, Callable[[Patch], None]] = {
    mutant.__name__: mutant
    for mutant in (
        keep_private_keys,
        unlink_private_keys,
        print_private_keys,
        release_in_order_of_ids,
        store_codes,
        store_digest,
        name_batches_after_codes,
        skip_file_sync,
        skip_directory_sync,
        publish_keys_first,
        destroy_keys_early,
    )
}
