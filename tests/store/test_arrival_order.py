"""Nothing that is kept tells in which order reports came: the statistic is .50 +- .02.

For each promise there is a mutant that breaks it, so that the statistic is known to see it.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from survey.collect import release as releasing
from survey.collect.publication import close
from survey.collect.release import compose_release, release
from survey.disclosure import secure_permutation
from survey.store import LastBlock, PendingReports, StoredReport, database_file
from tests.conftest import TODAY
from tests.order import dependence
from tests.store.reports import add
from tests.store.test_closing import OCTET

N, TIED = 10_000, 21_000
"""Reports; .02 is then six standard deviations of the statistic, also of codes of three kinds."""

COMMIT = 100
"""Reports of one transaction, so that there is an order of transactions too."""

pytestmark = pytest.mark.security


def arrived(store, small, n=TIED) -> list[bytes]:
    """Reports whose codes rise with their arrival, and their ids in that order."""
    reports = [StoredReport(os.urandom(16), "", bytes([3 * i // n, 0])) for i in range(n)]
    for start in range(0, n, COMMIT):
        add(store, small, reports[start : start + COMMIT])
    return [each.id for each in reports]


def riffled(n):
    """Two halves laid into each other, the order in each kept: neighbours tell nothing."""
    return np.argsort(np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)]), kind="stable")


def sealed(n=N) -> np.ndarray:
    """The order of arrival of reports, as a sealed block has them."""
    waiting = [(256 * i // n).to_bytes(1, "big") for i in range(n)]
    columns = list(compose_release([OCTET], [PendingReports("", "", waiting, None)]).columns)
    return np.frombuffer(b"".join(column.data for column in columns), np.uint8).astype(int)


MUTANTS = {
    "as they came": np.arange,
    "the other way round": lambda n: np.arange(n)[::-1],
    "two halves laid into each other": riffled,
    "the first half behind the second": lambda n: np.roll(np.arange(n), n // 2),
}


def test_no_arrival_order_is_in_a_sealed_block():
    block = sealed()
    assert dependence(np.arange(len(block)), block) < 0.02


@pytest.mark.parametrize("mutant", MUTANTS)
def test_no_arrival_order_would_stay_unseen_in_a_block(mutant, monkeypatch):
    monkeypatch.setattr(releasing, "secure_permutation", MUTANTS[mutant])
    block = sealed()
    assert dependence(np.arange(len(block)), block) > 0.02


def test_no_arrival_order_can_be_computed_for_no_order_is_used_twice(monkeypatch):
    """A constant order has nothing of arrival in it, and yet tells all to who knows it."""
    assert dependence(sealed(), sealed()) < 0.02
    monkeypatch.setattr(
        releasing, "secure_permutation", lambda n: np.random.default_rng(0).permutation(n)
    )
    assert dependence(sealed(), sealed()) > 0.4


def test_no_arrival_order_is_between_new_reports_and_the_block_they_join():
    n = 20_000
    old = compose_release([OCTET], [PendingReports("", "", [b"\x00"] * n, None)]).columns[0].data
    joined = (
        compose_release([OCTET], [PendingReports("", "", [b"\x01"] * n, LastBlock(0, [old]))])
        .columns[0]
        .data
    )
    assert abs(np.frombuffer(joined, np.uint8)[:n].mean() - 0.5) < 0.02


def test_no_arrival_order_is_left_by_an_order_of_random_keys():
    assert dependence(np.arange(N), secure_permutation(N)) < 0.02


def codes_kept(store, small) -> list[int]:
    columns = store.block_columns(small.key, [0])
    return list(b"".join(column.data for (column,) in columns))


def found(content: bytes, ids: list[bytes]) -> dict[bytes, int]:
    """Where each id that is there stands first."""
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(content, np.uint8), 8)
    begins = np.frombuffer(b"".join(id_[:8] for id_ in ids), np.uint64)
    places: dict[bytes, int] = {}
    wanted = set(ids)
    for at in np.flatnonzero(np.isin(np.ascontiguousarray(windows).view(np.uint64), begins)):
        if (id_ := content[at : at + 16]) in wanted:
            places.setdefault(id_, int(at))
    return places


def places(settings, ids, direct_access) -> dict[str, tuple[list[int], list[int]]]:
    """For each kind of place: where the ids are that are there, and when each arrived."""
    arrival = {id_: number for number, id_ in enumerate(ids)}
    if file := database_file(settings.database):
        files = sorted(file.parent.glob(f"{file.name}*"))
        content = b"".join(each.read_bytes() for each in files)
        there = found(content, ids)
        return {"the files": (list(there.values()), [arrival[id_] for id_ in there])}
    kept = {}
    for table in ("inbox", "seen"):
        rows = direct_access.run(f"SELECT id FROM {table} ORDER BY ctid")
        kept[table] = (list(range(len(rows))), [arrival[id_] for (id_,) in rows])
    return kept


def test_no_arrival_order_is_in_the_files_or_heaps_after_a_release_and_after_close(
    store, small, settings, direct_access
):
    ids = arrived(store, small)
    afraid = places(settings, ids, direct_access)
    assert (
        max(dependence(*each) for each in afraid.values() if each[0]) > 0.02
    )  # pending reports do
    assert release(store, small, 25) == TIED
    for name, (where, arrivals) in places(settings, ids, direct_access).items():
        assert len(arrivals) in (0, TIED), name
        assert not arrivals or dependence(where, arrivals) < 0.02, name
    assert dependence(np.arange(TIED), codes_kept(store, small)) < 0.02
    close(store, "small", TODAY)
    for name, (where, arrivals) in places(settings, ids, direct_access).items():
        assert not arrivals or dependence(where, arrivals) < 0.02, name
    assert dependence(np.arange(TIED), codes_kept(store, small)) < 0.02


def test_no_arrival_order_is_left_by_releases_in_turn(store, small):
    """The reports of the first lie among those of the second."""
    for code in (0, 1):
        add(store, small, [StoredReport(os.urandom(16), "", bytes([code, 0])) for _ in range(TIED)])
        assert release(store, small, 25) == TIED
    assert dependence(np.arange(2 * TIED), codes_kept(store, small)) < 0.02
