"""The stored identities of released reports, compared with a set in memory."""

from __future__ import annotations

import random

from survey.store.report_identities import (
    MAX_IN_ROW,
    add_released,
    identities_of,
    ids_digest,
    released,
)


def test_rows_contain_every_identity_once_in_order_with_their_digest(store, small, direct_access):
    """Half of the identities share their first six bytes, as if an attacker had chosen them."""
    rng, expected = random.Random(7), set()
    for n in (1, 3, 250, 900, 40):
        new = [rng.randbytes(8) for _ in range(n)]
        new += [b"chosen" + rng.randbytes(2) for _ in range(n)]
        with store._write() as transaction:
            add_released(
                transaction,
                small.key,
                [*new, *rng.sample(sorted(expected), n // 4)] if len(expected) > n else new,
            )
        expected |= set(new)
    with store.snapshot() as snapshot:
        rows = snapshot.rows("released_ids", None, 10_000)
    assert [item for row in rows for item in identities_of(row)] == sorted(expected)
    assert max(len(identities_of(row)) for row in rows) <= MAX_IN_ROW
    ((digest,),) = direct_access.run("SELECT ids_digest FROM release")
    assert bytes(digest) == ids_digest(rows)
    absent = [bytes(8), b"chosen\0\0", rng.randbytes(8)]
    with store._read() as transaction:
        known = released(transaction, small.key, [*absent, *expected])
    assert known == expected - (set(absent) - expected)
