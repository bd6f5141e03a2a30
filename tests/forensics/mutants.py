"""Programs that keep what they should not; the forensic tests must find each of them out."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable

from survey.store import reports, sealing

Patch = Callable[[object, str, object], None]
"""Replaces an attribute of an object: `setattr`, or that of a test's `monkeypatch`."""


def keep_private_keys(patch: Patch) -> None:
    """Forget the public key of a finished period, but not the private one."""
    patch(sealing.PrivateKeys, "destroy", lambda self, public_key: None)


def unlink_private_keys(patch: Patch) -> None:
    """Delete private keys without overwriting them."""

    def destroy(self: sealing.PrivateKeys, public_key: bytes) -> None:
        self._path(public_key).unlink(missing_ok=True)

    patch(sealing.PrivateKeys, "destroy", destroy)


def print_private_keys(patch: Patch) -> None:
    """Print each private key that opens a batch."""
    find = sealing.PrivateKeys.find

    def find_and_print(self: sealing.PrivateKeys, public_key: bytes) -> object:
        private_key = find(self, public_key)
        print(bytes(private_key or b"").hex(), file=sys.stderr, flush=True)
        return private_key

    patch(sealing.PrivateKeys, "find", find_and_print)


def store_codes(patch: Patch) -> None:
    """Store the codes in plain text beside the ids."""
    _store_beside_ids(patch, lambda report: report.codes)


def store_digest(patch: Patch) -> None:
    """Store a digest of the codes beside the ids, from which a few guesses find a code."""
    _store_beside_ids(patch, lambda report: hashlib.sha256(report.id + report.codes).digest())


def name_batches_after_codes(patch: Patch) -> None:
    """Derive the random names of batches from the codes in them."""
    seal = sealing.seal

    def seal_and_name(key, members, **options):
        codes = b"".join(report.codes for report in members)
        return [
            sealing.Batch(**{**vars(batch), "batch": hashlib.sha256(batch.ids + codes).digest()})
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


MUTANTS: dict[str, Callable[[Patch], None]] = {
    mutant.__name__: mutant
    for mutant in (
        keep_private_keys,
        unlink_private_keys,
        print_private_keys,
        store_codes,
        store_digest,
        name_batches_after_codes,
    )
}
