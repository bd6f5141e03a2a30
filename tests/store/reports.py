"""Reports for tests of the store, the keys of test databases, and releases without the policy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from nacl.public import PrivateKey

from survey.collect.release import Keeper, bucket_of, compose_release
from survey.settings import Settings
from survey.store import ChosenReports, PrivateKeys, PublishedSurvey, Store, StoredReport
from survey.store.sealed_reports import open_batch

PRIVATE_KEYS = {
    bytes(key.public_key): key for key in (PrivateKey(bytes([n]) * 32) for n in range(1, 25))
}
"""The spare keys of every migrated test database, so that publishing needs no keeper."""


def add_spare_keys(store: Store) -> None:
    """Give a database the spare keys that a keeper would give it."""
    for public_key in PRIVATE_KEYS:
        store.add_spare_key(public_key)


def write_spare_keys(directory: Path) -> None:
    """Write the private keys of a test database for its keeper."""
    directory.mkdir(mode=0o700)
    for public_key, private_key in PRIVATE_KEYS.items():
        (directory / f"{public_key.hex()}.key").write_bytes(bytes(private_key))


def report(number: int, codes: bytes = b"\x00\x01", **fields: object) -> StoredReport:
    return StoredReport(number.to_bytes(16, "big"), **{"stratum": "", "codes": codes, **fields})


def random_reports(n: int, stratum: str = "") -> list[StoredReport]:
    return [StoredReport(os.urandom(16), stratum, bytes([i % 3, i // 3 % 3])) for i in range(n)]


def add(store: Store, survey: PublishedSurvey, reports: Sequence[StoredReport]) -> None:
    """Store reports; raise the first error."""
    for error in store.add_reports([(survey.key, report) for report in reports]):
        if error is not None:
            raise error


def pending_reports(store: Store, survey: PublishedSurvey) -> list[StoredReport]:
    """Open all pending reports, as the keeper of a test database can."""
    keys = {key.period: key.public_key for key in store.sealing_keys() if key.survey == survey.key}
    return [
        stored
        for stratum, n in store.pending_sizes(survey.key).items()
        for period in keys
        for batch in store.batches(survey.key, stratum, period, n)
        for stored in open_batch(PRIVATE_KEYS[keys[batch.period]], batch)
    ]


def publish_pending(
    store: Store,
    survey: PublishedSurvey,
    minimum: int = 25,
    *,
    day: date = date(2026, 11, 21),
    bucket: str | None = None,
    maximum: int = 2**31,
) -> int:
    """Publish up to `maximum` reports of each stratum with at least `minimum`; return the number.

    Unlike the keeper, this needs no release time and leaves nothing pending on purpose.
    """
    keys = {key.period: key.public_key for key in store.sealing_keys() if key.survey == survey.key}
    bucket = bucket_of(survey, day) if bucket is None else bucket
    n = 0
    for stratum, size in store.pending_sizes(survey.key).items():
        if size < minimum:
            continue
        batches = [
            batch
            for period in keys
            for batch in store.batches(survey.key, stratum, period, min(size, maximum))
        ]
        stored = [
            item
            for batch in batches
            for item in open_batch(PRIVATE_KEYS[keys[batch.period]], batch)
        ]
        last = store.last_blocks(survey.key, [stratum], bucket).get(stratum)
        content = compose_release(
            survey.definition.questions,
            ChosenReports(stratum, bucket, [item.codes for item in stored], last),
        )
        store.release(survey.key, content, [item.id for item in stored], batches)
        n += len(stored)
    if n:
        store.clean_up_after_release(survey.key)
    return n


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()
"""A release time on the tests' day."""

YEARS_LATER = 24 * 3650
"""Hours after noon at which a release is due, whatever the machine's clock says."""


def keeper_at(store: Store, settings: Settings, hour: float = 0) -> Keeper:
    """Return a keeper that releases every hour, whose clock stands at an hour after noon."""
    keys = PrivateKeys(Path(settings.keys))
    keys.directory.mkdir(mode=0o700, exist_ok=True)
    for survey, time in store.release_times().items():
        if not time:
            # Otherwise, the first release of a new survey would be an hour later.
            store.set_release_time(int(NOON), survey)
    return Keeper(store, keys, 3600, clock=lambda: NOON + 3600 * hour)
