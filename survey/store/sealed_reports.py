"""Sealed pending reports: ciphertext in the database, private keys in files outside the database.

Each survey has its own key pair for each period. A commit stores one sealed box per survey and
group. Only the keeper can open it, because only the keeper has the private keys. Beside a box, only
random ids and the hashes of spent invitations are readable, each list sorted.

The boxes are libsodium's sealed boxes (an ephemeral X25519 key, XSalsa20-Poly1305):
https://doc.libsodium.org/public-key_cryptography/sealed_boxes
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from survey.errors import (
    ConflictError,
    DamagedBatchError,
    NotFoundError,
    SettingsError,
    StoreBusyError,
    StoreError,
)
from survey.store.digests import row_digest
from survey.store.report_identities import add_released, identity, released, sorted_identities
from survey.store.schema import DAMAGED_BATCH, PENDING, SEALING_KEY
from survey.store.transactions import MAX_KEYS, Row, StoredReport, Transaction, Transactions

ID_BYTES, HASH_BYTES, KEY_BYTES = 16, 32, 32

BOX_OVERHEAD = 48
"""Bytes that a sealed box adds to its content: the ephemeral public key and the authenticator."""

UNASSIGNED = 0
"""The survey number of spare keys, which the next published surveys take; no survey has it."""

UNASSIGNED_FIELD = -1
"""The survey number of spare field-mode keys. When a survey takes a key, the key's row is deleted,
because the survey's definition then contains the key."""

PAGE = 64
"""Number of batches read at once."""

MAX_WRITERS = 16
"""Maximum number of files of private keys that are written at once."""

_NEXT_BATCHES = (
    f"SELECT {', '.join(PENDING.column_names)} FROM pending "  # noqa: S608  constant
    "WHERE survey = ? AND stratum = ? AND period = ? AND batch > ? ORDER BY batch LIMIT ?"
)


@dataclass(frozen=True)
class SealingKey:
    """A public key of a survey; arriving reports are sealed with the key of the newest period."""

    survey: int
    period: int
    public_key: bytes


@dataclass(frozen=True)
class Batch:
    """Pending reports of one survey and group in one sealed box.

    `ids` and `invitations` are sorted and concatenated. `is_resealed` is true for a batch that
    the keeper has sealed again, and false for a batch of arriving reports. `digest` is the
    stored digest of the row.
    """

    survey: int
    batch: bytes
    period: int
    stratum: str
    is_resealed: bool
    ids: bytes
    invitations: bytes
    box: bytes
    digest: bytes = b""

    @classmethod
    def from_row(cls, row: Row) -> Batch:
        """Return the batch that a row of `pending` contains."""
        survey, batch, period, stratum, is_resealed, *content = row
        return cls(survey, batch, period, stratum, bool(is_resealed), *content)

    @property
    def row(self) -> Row:
        """The batch as a row of `pending`."""
        return (*self._content, row_digest(self._content))

    @property
    def _content(self) -> tuple[int | str | bytes, ...]:
        return (
            *(self.survey, self.batch, self.period, self.stratum, int(self.is_resealed)),
            *(self.ids, self.invitations, self.box),
        )

    @property
    def is_intact(self) -> bool:
        """Whether a stored batch matches its stored digest."""
        return self.digest == row_digest(self._content)

    @property
    def report_ids(self) -> list[bytes]:
        """The ids of the reports."""
        return list(_split(self.ids, ID_BYTES))

    @property
    def n(self) -> int:
        """The number of reports."""
        return len(self.ids) // ID_BYTES

    def mistake(self, report_bytes: int) -> str | None:
        """Return which length of a batch is wrong, or None; each report has `report_bytes`."""
        if len(self.batch) != ID_BYTES or not self.ids or len(self.ids) % ID_BYTES:
            return "a sealed batch has an id or report ids of the wrong length"
        n_invited, rest = divmod(len(self.invitations), HASH_BYTES)
        if rest or n_invited not in (0, self.n):
            return "a sealed batch has invitations of the wrong length"
        if len(self.box) != BOX_OVERHEAD + self.n * (ID_BYTES + report_bytes) + len(
            self.invitations
        ):
            return "a sealed batch has a box of the wrong length"
        return None


def seal(
    key: SealingKey, reports: Sequence[StoredReport], *, is_resealed: bool = False
) -> list[Batch]:
    """Seal reports: one box per group, and a separate box for reports with invitations."""

    def kind(report: StoredReport) -> tuple[str, bool]:
        return report.stratum, bool(report.invitation)

    box = SealedBox(PublicKey(key.public_key))
    # Sorted by random ids, so that a box does not reveal the order of arrival.
    ordered = sorted(reports, key=lambda report: (*kind(report), report.id))
    batches: list[Batch] = []
    for (stratum, _), group in groupby(ordered, key=kind):
        members = list(group)
        content = b"".join(report.id + report.invitation + report.codes for report in members)
        batch = Batch(
            *(key.survey, secrets.token_bytes(ID_BYTES), key.period, stratum, is_resealed),
            ids=b"".join(report.id for report in members),
            invitations=b"".join(sorted(report.invitation for report in members)),
            box=box.encrypt(content),
        )
        # The keeper opens these batches again in the next portion of a release.
        batches.append(replace(batch, digest=batch.row[-1]))
    return batches


def open_batch(private_key: PrivateKey, batch: Batch) -> list[StoredReport]:
    """Return the reports in a box; raise DamagedBatchError if it does not open or match."""
    try:
        content = SealedBox(private_key).decrypt(batch.box)
    except CryptoError:
        raise DamagedBatchError(
            "a sealed batch cannot be opened with the key of its period"
        ) from None
    codes_from = ID_BYTES + (HASH_BYTES if batch.invitations else 0)
    codes_bytes = len(content) - batch.n * codes_from
    if mistake := batch.mistake(max(codes_bytes, 0) // max(batch.n, 1)):
        raise DamagedBatchError(mistake)
    length = len(content) // batch.n
    reports = [
        StoredReport(
            id=content[start : start + ID_BYTES],
            stratum=batch.stratum,
            codes=content[start + codes_from : start + length],
            invitation=content[start + ID_BYTES : start + codes_from],
        )
        for start in range(0, len(content), length)
    ]
    if b"".join(report.id for report in reports) != batch.ids:
        raise DamagedBatchError("a sealed batch has other ids than its box")
    if b"".join(sorted(report.invitation for report in reports)) != batch.invitations:
        raise DamagedBatchError("a sealed batch has other invitations than its box")
    return reports


def recover_batch(
    private_keys: Mapping[int, PrivateKey], strata: Iterable[str], batch: Batch
) -> Batch | None:
    """Return the original state of a damaged batch, or None if it cannot be recovered.

    The box, the digest and the random key of the batch must be intact. The box contains the ids and
    invitations; the digest confirms the period and one of the `strata`.
    """
    for period, private_key in private_keys.items():
        try:
            content = SealedBox(private_key).decrypt(batch.box)
        except CryptoError:
            continue
        length = len(content) // max(batch.n, 1)
        parts = list(_split(content, length)) if length else []
        has_invitations = (b"", b"".join(sorted(part[ID_BYTES:][:HASH_BYTES] for part in parts)))
        for stratum, invitations, is_resealed in product(strata, has_invitations, (True, False)):
            candidate = replace(
                batch,
                period=period,
                stratum=stratum,
                is_resealed=is_resealed,
                ids=b"".join(part[:ID_BYTES] for part in parts),
                invitations=invitations,
            )
            if candidate.is_intact:
                return candidate
    return None


def found_survey(batch: Batch, surveys: Iterable[int]) -> Batch:
    """Return a batch with the survey that its digest confirms, or unchanged if none fits."""
    candidates = (replace(batch, survey=survey) for survey in (batch.survey, *surveys))
    return next((candidate for candidate in candidates if candidate.is_intact), batch)


class SealedReports(Transactions):
    """The part of a `Store` that holds public keys and sealed batches, mostly for the keeper."""

    def sealing_keys(self) -> list[SealingKey]:
        """Return all public keys by survey and period; spare keys have the survey `UNASSIGNED`."""
        rows = self._rows(
            "SELECT survey, period, public_key FROM sealing_key WHERE survey >= 0 "
            "ORDER BY survey, period, public_key"
        )
        return [SealingKey(*row) for row in rows]

    def spare_field_keys(self) -> list[SealingKey]:
        """Return the spare public keys of field mode."""
        rows = self._rows(
            "SELECT survey, period, public_key FROM sealing_key WHERE survey = ? "
            "ORDER BY public_key",
            [UNASSIGNED_FIELD],
        )
        return [SealingKey(*row) for row in rows]

    def add_spare_key(self, public_key: bytes, survey: int = UNASSIGNED) -> None:
        """Store a spare public key for a survey that is published later, or for its field mode."""
        with self._write() as transaction:
            transaction.execute(SEALING_KEY.insert, [survey, 0, public_key])

    def rotate_keys(self, public_keys: Mapping[int, bytes], time: int) -> dict[int, SealingKey]:
        """Seal all later reports of surveys with new keys, for the release at `time`.

        When this returns, no running transaction seals with an older key. Pass `time=0` for a
        rotation without a release. Surveys for which another keeper has already processed this
        release time keep their key, and are missing from the result.
        """
        surveys = sorted(public_keys)
        marks = ", ".join("?" * len(surveys))
        with self._write() as transaction:
            for survey in surveys:
                transaction.lock(survey)
            processed = transaction.execute_many(
                "UPDATE release SET time = ? WHERE survey = ? AND time < ?",
                [(time, survey, time) for survey in surveys],
            )
            rows = transaction.rows(
                f"SELECT survey, max(period) FROM sealing_key WHERE survey IN ({marks}) "  # noqa: S608
                "GROUP BY survey",
                surveys,
            )
            periods = {int(survey): int(period) for survey, period in rows}
            keys = {
                survey: SealingKey(survey, periods.get(survey, 0) + 1, public_keys[survey])
                for survey, n in zip(surveys, processed, strict=True)
                if n or not time
            }
            new = [(key.survey, key.period, key.public_key) for key in keys.values()]
            transaction.insert_rows(SEALING_KEY, new, "")
        return keys

    def delete_keys(self, keys: Collection[SealingKey]) -> None:
        """Delete public keys whose private keys are destroyed.

        Raises ConflictError, after deleting the others, if a box needs one of them.
        """
        if not keys:
            return
        with self._write() as transaction:
            # Wait for commits that still seal with these keys.
            for survey in sorted({key.survey for key in keys}):
                transaction.lock(survey)
            deleted = transaction.execute_many(
                "DELETE FROM sealing_key WHERE survey = ? AND period = ? AND public_key = ? "
                "AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.survey = sealing_key.survey "
                "AND pending.period = sealing_key.period)",
                [(key.survey, key.period, key.public_key) for key in keys],
            )
            kept = [key for key, n in zip(keys, deleted, strict=True) if not n]
            is_needed = any(_is_needed(transaction, key) for key in kept)
        if is_needed:
            raise ConflictError("a sealed batch still needs this key")

    def unneeded_keys(self) -> list[SealingKey]:
        """Return the public keys of surveys with which no pending reports are sealed."""
        rows = self._rows(
            "SELECT survey, period, public_key FROM sealing_key WHERE survey > 0 AND NOT EXISTS "
            "(SELECT 1 FROM pending WHERE pending.survey = sealing_key.survey "
            "AND pending.period = sealing_key.period) ORDER BY survey, period"
        )
        return [SealingKey(*row) for row in rows]

    def is_key_needed(self, key: SealingKey) -> bool:
        """Return whether pending reports are sealed with a key."""
        with self._lookup() as transaction:
            return _is_needed(transaction, key)

    def n_pending(self, survey: int) -> int:
        """Return the number of pending reports, for the keeper and tests; no page may show it."""
        return sum(self.pending_sizes(survey).values())

    def pending_sizes(self, survey: int) -> dict[str, int]:
        """Return the number of pending reports for each stratum that has any."""
        rows = self._rows(
            "SELECT stratum, CAST(sum(length(ids)) AS BIGINT) FROM pending "
            "WHERE survey = ? GROUP BY stratum ORDER BY stratum",
            [survey],
        )
        return {str(stratum): int(n) // ID_BYTES for stratum, n in rows}

    def has_arrivals(self, survey: int) -> bool:
        """Return whether reports have arrived since the survey's last rotation."""
        row = self._row(
            "SELECT 1 FROM pending WHERE survey = ? AND is_resealed = 0 LIMIT 1", [survey]
        )
        return row is not None

    def batches(self, survey: int, stratum: str, period: int, n: int) -> list[Batch]:
        """Return batches of a period with at least n reports, in random order.

        If fewer than n reports are pending, return all their batches.
        """
        batches: list[Batch] = []
        size = 0
        while size < n:
            after = batches[-1].batch if batches else b""
            rows = self._rows(_NEXT_BATCHES, [survey, stratum, period, after, PAGE])
            for batch in map(Batch.from_row, rows):
                batches.append(batch)
                size += batch.n
                if size >= n:
                    break
            if len(rows) < PAGE:
                break
        return batches

    def all_batches(
        self, survey: int, strata: Sequence[str], periods: Sequence[int]
    ) -> list[Batch]:
        """Return all batches of these strata and periods."""
        if not periods:
            return []
        rows = self._rows(
            f"SELECT {', '.join(PENDING.column_names)} FROM pending WHERE survey = ? "  # noqa: S608  marks
            f"AND stratum IN ({', '.join('?' * len(strata))}) "
            f"AND period IN ({', '.join('?' * len(periods))})",
            [survey, *strata, *periods],
        )
        return list(map(Batch.from_row, rows))

    def arrived_batches(self, survey: int, period: int) -> list[Batch]:
        """Return up to `PAGE` batches of a period that no keeper has sealed again."""
        rows = self._rows(
            f"SELECT {', '.join(PENDING.column_names)} FROM pending "  # noqa: S608  constant
            "WHERE survey = ? AND period = ? AND is_resealed = 0 ORDER BY batch LIMIT ?",
            [survey, period, PAGE],
        )
        return list(map(Batch.from_row, rows))

    def replace_boxes(
        self,
        key: SealingKey,
        opened: Sequence[Batch],
        reports: Sequence[StoredReport],
        invalid_ids: Collection[bytes],
    ) -> None:
        """Replace batches of boxes from field mode with the reports that they contained.

        Keep the ids of boxes without a report like those of released ones: if they were unknown
        again, anyone with a tablet's file could ask the server which of its slots contain reports.
        """
        with self._write() as transaction:
            transaction.lock(key.survey)
            delete_batches(transaction, opened)
            if invalid := sorted_identities(invalid_ids):
                add_released(transaction, key.survey, invalid)
                transaction.replace_pending_ids(key.survey, invalid, [])
            insert_keeper_batches(transaction, seal(key, reports, is_resealed=True))

    def delete_pending(self, survey: int) -> None:
        """Delete the pending reports that a closed survey does not publish.

        Their ids are recorded as long as those of released reports, so repeats are recognized.
        """
        with self._write() as transaction:
            transaction.lock(survey)
            if transaction.row("SELECT 1 FROM inbox WHERE survey = ? LIMIT 1", [survey]):
                # Their sealing failed, and without their ids it would drop these reports.
                return
            rows = transaction.rows("SELECT id FROM pending_id WHERE survey = ?", [survey])
            if rows:
                add_released(transaction, survey, [item for (item,) in rows])
            for table in ("pending", "pending_id"):
                transaction.execute(f"DELETE FROM {table} WHERE survey = ?", [survey])  # noqa: S608

    def set_aside(self, batch: Batch) -> None:
        """Set a damaged batch aside, so that the keeper can release the others.

        Its ids and invitations become unused again, so that devices can resend the reports. If its
        ids are damaged, all recorded ids that no other batch contains become unused too. Raises
        ConflictError if another keeper has deleted the batch.
        """
        with self._write() as transaction:
            transaction.lock(batch.survey)
            delete_batches(transaction, [batch])
            transaction.execute(DAMAGED_BATCH.insert, batch.row[:-1])
            _free(
                transaction, batch.survey, batch.report_ids, _split(batch.invitations, HASH_BYTES)
            )
            _free_orphans(transaction, batch.survey)

    def repair_batch(self, damaged: Batch, recovered: Batch) -> None:
        """Replace a damaged row by the recovered one with the same key.

        Raises ConflictError if another keeper has deleted it, or the key of its period.
        """
        with self._write() as transaction:
            transaction.lock(damaged.survey)
            delete_batches(transaction, [damaged])
            insert_keeper_batches(transaction, [recovered])

    def repair_key(self, key: SealingKey) -> None:
        """Store a public key with the survey and the period of the batches sealed with it."""
        with self._write() as transaction:
            transaction.lock(key.survey)
            transaction.execute("DELETE FROM sealing_key WHERE public_key = ?", [key.public_key])
            transaction.execute(SEALING_KEY.insert, [key.survey, key.period, key.public_key])

    def unreachable_batches(self, survey: int) -> list[Batch]:
        """Return the batches whose period has no key, or whose stratum cannot be read.

        Each such batch, or the row of its key, is damaged.
        """
        columns = ", ".join(PENDING.column_names)
        rows = self._rows(
            f"SELECT {columns} FROM pending WHERE survey = ? "  # noqa: S608  constant
            "AND period NOT IN (SELECT period FROM sealing_key WHERE survey = ?)",
            [survey, survey],
        )
        strata = list(self.pending_sizes(survey))
        # SQLite compares the stored bytes, which are not valid UTF-8, with the decoded text.
        if any("\ufffd" in stratum for stratum in strata):
            marks = ", ".join("?" * len(strata))
            rows += self._rows(
                f"SELECT {columns} FROM pending WHERE survey = ? AND stratum NOT IN ({marks})",  # noqa: S608
                [survey, *strata],
            )
        return list(map(Batch.from_row, rows))

    def n_damaged(self) -> dict[int, int]:
        """Return the number of batches set aside for each survey that has any."""
        rows = self._rows("SELECT survey, count(*) FROM damaged_batch GROUP BY survey")
        return {int(survey): int(n) for survey, n in rows}

    def forget_pending(self, key: SealingKey) -> int:
        """Delete the pending reports that were sealed with a lost key; return their number.

        Their ids and invitations become unused again, so devices can resend the reports.
        """
        with self._write() as transaction:
            transaction.lock(key.survey)
            rows = transaction.rows(
                "SELECT ids, invitations FROM pending WHERE survey = ? AND period = ?",
                [key.survey, key.period],
            )
            ids = [part for row in rows for part in _split(row[0], ID_BYTES)]
            invitations = [part for row in rows for part in _split(row[1], HASH_BYTES)]
            _free(transaction, key.survey, ids, invitations)
            transaction.execute(
                "DELETE FROM pending WHERE survey = ? AND period = ?", [key.survey, key.period]
            )
            transaction.execute(
                "DELETE FROM sealing_key WHERE survey = ? AND period = ? AND public_key = ?",
                [key.survey, key.period, key.public_key],
            )
        return len(ids)

    def forget_arrivals(self, survey: int) -> int:
        """Delete the boxes of field mode that nobody can open; return their number."""
        with self._write() as transaction:
            transaction.lock(survey)
            arrived = "WHERE survey = ? AND is_resealed = 0"
            rows = transaction.rows(f"SELECT ids FROM pending {arrived}", [survey])  # noqa: S608
            ids = [part for row in rows for part in _split(row[0], ID_BYTES)]
            _free(transaction, survey, ids, [])
            transaction.execute(f"DELETE FROM pending {arrived}", [survey])  # noqa: S608
        return len(ids)

    def missing_keys(self) -> list[SealingKey]:
        """Return the keys of sealed batches whose public key is missing from the database.

        Their `public_key` is empty. `release` and `delete_key` prevent such batches.
        """
        rows = self._rows(
            "SELECT DISTINCT survey, period FROM pending WHERE NOT EXISTS "
            "(SELECT 1 FROM sealing_key WHERE sealing_key.survey = pending.survey "
            "AND sealing_key.period = pending.period) ORDER BY survey, period"
        )
        return [SealingKey(survey, period, b"") for survey, period in rows]

    def surveys_with_unsealed_reports(self) -> list[int]:
        """Return the surveys with unsealed reports of an earlier version."""
        rows = self._rows("SELECT DISTINCT survey FROM inbox ORDER BY survey")
        return [int(survey) for (survey,) in rows]

    def unsealed_reports(self, survey: int, n: int) -> list[StoredReport]:
        """Return up to n unsealed reports of a survey."""
        rows = self._rows(
            "SELECT id, stratum, codes FROM inbox WHERE survey = ? ORDER BY id LIMIT ?",
            [survey, n],
        )
        return [StoredReport(*row) for row in rows]

    def unsealed_ids(self, survey: int) -> set[bytes]:
        """Return the recorded ids of a survey's unsealed reports that no sealed batch contains."""
        with self._read() as transaction:
            recorded = transaction.rows("SELECT id FROM pending_id WHERE survey = ?", [survey])
            unsealed = transaction.rows("SELECT id FROM inbox WHERE survey = ?", [survey])
            batches = transaction.rows("SELECT ids FROM pending WHERE survey = ?", [survey])
        sealed = {report_id for (ids,) in batches for report_id in _split(ids, ID_BYTES)}
        recorded_ids = {item for (item,) in recorded}
        return {i for (i,) in unsealed if identity(i) in recorded_ids} - sealed

    def seal_unsealed_reports(
        self, key: SealingKey, reports: Sequence[StoredReport], accepted_ids: Collection[bytes]
    ) -> None:
        """Replace unsealed reports with sealed ones, whatever the state of the survey.

        `accepted_ids` are the `unsealed_ids` of the survey, read after it was migrated. A report
        whose id is recorded but not in `accepted_ids` duplicates a sealed or released report, so it
        is dropped.
        """
        with self._write() as transaction:
            transaction.lock(key.survey)
            ids = [report.id for report in reports]
            places = [(key.survey, report_id) for report_id in ids]
            require_all_deleted(
                transaction.execute_many("DELETE FROM inbox WHERE survey = ? AND id = ?", places)
            )
            known = released(transaction, key.survey, sorted_identities(ids))
            new = [report for report in reports if identity(report.id) not in known]
            inserted = transaction.execute_many(
                "INSERT INTO pending_id (survey, id) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [(key.survey, identity(report.id)) for report in new],
            )
            accepted = [
                report
                for report, n in zip(new, inserted, strict=True)
                if n or report.id in accepted_ids
            ]
            insert_keeper_batches(transaction, seal(key, accepted))


def current_key(transaction: Transaction, survey: int) -> SealingKey | None:
    """Return the key that seals a survey's arriving reports, or None if there is none yet."""
    row = transaction.row(
        "SELECT survey, period, public_key FROM sealing_key WHERE survey = ? "
        "ORDER BY period DESC LIMIT 1",
        [survey],
    )
    return SealingKey(*row) if row else None


def take_spare_key(transaction: Transaction, survey: int) -> None:
    """Give a new survey a spare key; if there is none, the keeper gives it a new key."""
    spare = current_key(transaction, UNASSIGNED)
    if spare is not None:
        transaction.execute(
            "UPDATE sealing_key SET survey = ?, period = 1 WHERE survey = ? AND public_key = ?",
            [survey, UNASSIGNED, spare.public_key],
        )


def take_spare_field_key(transaction: Transaction, public_key: bytes) -> None:
    """Give a spare key of field mode to a survey; ConflictError if another survey has it."""
    n = transaction.execute(
        "DELETE FROM sealing_key WHERE survey = ? AND public_key = ?",
        [UNASSIGNED_FIELD, public_key],
    )
    if n != 1:
        raise ConflictError("another survey was published at the same time; publish this one again")


def _free(
    transaction: Transaction, survey: int, ids: Iterable[bytes], invitations: Iterable[bytes]
) -> None:
    """Make the ids and invitations of lost reports unused again."""
    transaction.execute_many(
        "DELETE FROM pending_id WHERE survey = ? AND id = ?",
        [(survey, item) for item in sorted_identities(ids)],
    )
    transaction.execute_many(
        "UPDATE invitation SET spent = 0 WHERE survey = ? AND token_hash = ?",
        [(survey, token) for token in invitations],
    )


def _free_orphans(transaction: Transaction, survey: int) -> None:
    """Delete the recorded ids that no pending report has, so that devices can resend the reports.

    Only the ids of a damaged batch have lost their report, because one transaction writes both.
    """
    batches = transaction.rows("SELECT ids FROM pending WHERE survey = ?", [survey])
    known = {identity(report_id) for (ids,) in batches for report_id in _split(ids, ID_BYTES)}
    unsealed = transaction.rows("SELECT id FROM inbox WHERE survey = ?", [survey])
    known.update(identity(report_id) for (report_id,) in unsealed)
    recorded = transaction.rows("SELECT id FROM pending_id WHERE survey = ?", [survey])
    transaction.execute_many(
        "DELETE FROM pending_id WHERE survey = ? AND id = ?",
        [(survey, item) for (item,) in recorded if item not in known],
    )


def insert_batches(transaction: Transaction, batches: Sequence[Batch]) -> None:
    """Insert sealed batches."""
    transaction.insert_rows(PENDING, [batch.row for batch in batches], "")


def insert_keeper_batches(transaction: Transaction, batches: Sequence[Batch]) -> None:
    """Insert batches that the keeper sealed before the transaction began.

    Raises ConflictError if another keeper has deleted their key since: nobody could open them.
    """
    for place in {(batch.survey, batch.period) for batch in batches}:
        if not transaction.row(
            "SELECT 1 FROM sealing_key WHERE survey = ? AND period = ? LIMIT 1", place
        ):
            raise ConflictError("another keeper has deleted the key of these reports")
    insert_batches(transaction, batches)


def delete_batches(transaction: Transaction, batches: Sequence[Batch]) -> None:
    """Delete batches; raise ConflictError if another keeper has deleted one of them."""
    for survey in {batch.survey for batch in batches}:
        names = [batch.batch for batch in batches if batch.survey == survey]
        for start in range(0, len(names), MAX_KEYS):
            part = names[start : start + MAX_KEYS]
            n = transaction.execute(
                f"DELETE FROM pending WHERE survey = ? AND batch IN ({', '.join('?' * len(part))})",  # noqa: S608  marks
                [survey, *part],
            )
            require_all_deleted([n == len(part)])


def require_all_deleted(deleted: Sequence[int]) -> None:
    """Raise ConflictError unless each statement deleted its row: no report may count twice."""
    if any(n != 1 for n in deleted):
        raise ConflictError("another keeper has released or sealed the same reports")


def _is_needed(transaction: Transaction, key: SealingKey) -> bool:
    row = transaction.row(
        "SELECT 1 FROM pending WHERE survey = ? AND period = ? LIMIT 1", [key.survey, key.period]
    )
    return row is not None


def _split(joined: bytes, size: int) -> Iterator[bytes]:
    return (joined[start : start + size] for start in range(0, len(joined), size))


class PrivateKeys:
    """The private keys in a directory that no backup, snapshot or database log covers.

    Each key is a file named after its public key. New files and their names are on the disk before
    `create_several` returns. `destroy` overwrites a file on the disk before it removes the name.
    """

    SUFFIX = ".key"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Reserve this directory for one keeper; raise ConflictError if another one uses it."""
        with self._named_errors():
            if not self.directory.exists():
                self.directory.mkdir(mode=0o700, exist_ok=True)
                # Otherwise a power failure could lose the new directory and its first keys.
                _synchronize(self.directory.parent)
            if self.directory.stat().st_mode & 0o077:
                raise SettingsError(
                    f"other users can read the private keys in {self.directory}; "
                    f"run: chmod 700 {self.directory}"
                )
            descriptor = os.open(self.directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConflictError(
                    f"another keeper uses the private keys in {self.directory}"
                ) from None
            yield
        finally:
            os.close(descriptor)

    def create(self) -> bytes:
        """Create a key pair and write its private key to the disk; return the public key."""
        return self.create_several(1)[0]

    def create_several(self, n: int) -> list[bytes]:
        """Create n key pairs and write their private keys together; return the public keys."""
        if n < 1:
            return []
        pairs = [self._generate() for _ in range(n)]
        with self._named_errors():
            try:
                _together(self._write, pairs)
            except OSError:
                # The volume may be full. Nothing refers to these keys yet.
                for public_key, _ in pairs:
                    self._path(public_key).unlink(missing_ok=True)
                raise
            self._synchronize_names()
        return [public_key for public_key, _ in pairs]

    def _generate(self) -> tuple[bytes, bytes]:
        """Return the public and the private key of a new pair."""
        private_key = PrivateKey.generate()
        return bytes(private_key.public_key), bytes(private_key)

    def _write(self, pair: tuple[bytes, bytes]) -> None:
        public_key, secret = pair
        descriptor = os.open(self._path(public_key), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(descriptor, secret)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, public_key: bytes) -> bytes:
        with self._named_errors():
            return self._path(public_key).read_bytes()

    def find(self, public_key: bytes) -> PrivateKey | None:
        """Return the private key for a public key, or None if this directory lacks it."""
        try:
            secret = self._read(public_key)
        except NotFoundError:
            return None
        # After a crash of the machine a file may be empty or overwritten.
        if len(secret) != KEY_BYTES or bytes(PrivateKey(secret).public_key) != public_key:
            return None
        return PrivateKey(secret)

    def destroy(self, *public_keys: bytes) -> None:
        """Overwrite and delete private keys; do nothing for those that do not exist."""
        with self._named_errors():
            paths = [path for path in map(self._path, public_keys) if path.exists()]
            if not paths:
                return
            _together(_overwrite, paths)
            for path in paths:
                path.unlink()
            self._synchronize_names()

    def public_keys(self) -> list[bytes]:
        """Return the public keys of all private keys in the directory."""
        return [bytes.fromhex(name) for name in self._names() if re.fullmatch("[0-9a-f]{64}", name)]

    def _names(self) -> list[str]:
        with self._named_errors():
            return sorted(path.stem for path in self.directory.glob(f"*{self.SUFFIX}"))

    def _path(self, public_key: bytes) -> Path:
        return self.directory / f"{public_key.hex()}{self.SUFFIX}"

    def _synchronize_names(self) -> None:
        _synchronize(self.directory)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise NotFoundError(f"there is no {error.filename}") from None
        except OSError as error:
            raise StoreBusyError(
                f"the private keys in {self.directory} cannot be used: {error.strerror}"
            ) from error


def _together(work: Callable[[Any], None], items: Sequence[Any]) -> None:
    """Call a function for each item in threads, so that the disk writes many files at once."""
    with ThreadPoolExecutor(MAX_WRITERS) as pool:
        list(pool.map(work, items))


def _overwrite(path: Path) -> None:
    """Replace the content of a private key's file on the disk."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, bytes(KEY_BYTES))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _synchronize(directory: Path) -> None:
    """Wait until the names in a directory are written to the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def require_key(keys: PrivateKeys, key: SealingKey) -> PrivateKey:
    """Return the private key of a survey's public key; raise StoreError if it is lost."""
    private_key = keys.find(key.public_key)
    if private_key is None:
        raise StoreError(
            "the private key of pending reports is missing; if it is permanently lost, "
            "run `survey keeper --take-over`, so that devices can send these reports again"
        )
    return private_key


def lost_keys(store: SealedReports, keys: PrivateKeys) -> list[SealingKey]:
    """Return the keys of a store whose private keys are missing from `keys`."""
    known = (*store.sealing_keys(), *store.missing_keys())
    return [key for key in known if keys.find(key.public_key) is None]


def forget_unreadable(store: SealedReports, keys: PrivateKeys) -> int:
    """Delete pending reports whose private key is lost; return their number."""
    return sum(store.forget_pending(key) for key in lost_keys(store, keys))
