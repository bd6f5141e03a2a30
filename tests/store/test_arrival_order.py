"""Nothing stored reveals the order in which reports arrived.

A statistic of dependence must stay below .02. For each promise, a mutant breaks it on purpose and
shows that the statistic detects that.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from survey.collect import release as releasing
from survey.collect.publication import close
from survey.collect.release import compose_release
from survey.disclosure import secure_permutation
from survey.store import ChosenReports, LastBlock, StoredReport, database_file
from survey.store.report_identities import identities_of, identity
from tests.conftest import TODAY
from tests.order import dependence
from tests.store.reports import add, keeper_at, publish_pending, random_reports
from tests.store.test_close import OCTET

N, TIED = 10_000, 21_000
"""Numbers of reports for which .02 is six standard deviations of the statistic, without and with
tied codes."""

COMMIT = 100
"""Reports per transaction, so that transactions have an order too."""

pytestmark = pytest.mark.security


def add_in_order(store, small, n=TIED) -> list[bytes]:
    """Add reports whose codes increase in the order of arrival; return their ids in that order."""
    reports = [StoredReport(os.urandom(16), "", bytes([3 * i // n, 0])) for i in range(n)]
    for start in range(0, n, COMMIT):
        add(store, small, reports[start : start + COMMIT])
    return [item.id for item in reports]


def interleave(n):
    """Return an order that interleaves two halves and preserves the order within each half."""
    return np.argsort(np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)]), kind="stable")


def release_block(n=N) -> np.ndarray:
    """Return the arrival ranks of reports in the order of a released block."""
    pending = [(256 * i // n).to_bytes(1, "big") for i in range(n)]
    columns = list(compose_release([OCTET], ChosenReports("", "", pending, None)).columns)
    return np.frombuffer(b"".join(column.data for column in columns), np.uint8).astype(int)


MUTANTS = {
    "unchanged": np.arange,
    "reversed": lambda n: np.arange(n)[::-1],
    "interleaved halves": interleave,
    "swapped halves": lambda n: np.roll(np.arange(n), n // 2),
}


def test_no_arrival_order_is_in_a_released_block():
    block = release_block()
    assert dependence(np.arange(len(block)), block) < 0.02


@pytest.mark.parametrize("mutant", MUTANTS)
def test_no_arrival_order_in_a_block_escapes_the_statistic(mutant, monkeypatch):
    monkeypatch.setattr(releasing, "secure_permutation", MUTANTS[mutant])
    block = release_block()
    assert dependence(np.arange(len(block)), block) > 0.02


def test_no_arrival_order_can_be_computed_because_each_permutation_is_new(monkeypatch):
    """A constant permutation reveals the order to everybody who knows it."""
    assert dependence(release_block(), release_block()) < 0.02
    monkeypatch.setattr(
        releasing, "secure_permutation", lambda n: np.random.default_rng(0).permutation(n)
    )
    assert dependence(release_block(), release_block()) > 0.4


def test_no_arrival_order_separates_new_reports_from_the_block_they_join():
    n = 20_000
    old = compose_release([OCTET], ChosenReports("", "", [b"\x00"] * n, None)).columns[0].data
    merged = (
        compose_release([OCTET], ChosenReports("", "", [b"\x01"] * n, LastBlock(0, [old])))
        .columns[0]
        .data
    )
    assert abs(np.frombuffer(merged, np.uint8)[:n].mean() - 0.5) < 0.02


def test_no_arrival_order_remains_in_a_secure_permutation():
    assert dependence(np.arange(N), secure_permutation(N)) < 0.02


def released_codes(store, small) -> list[int]:
    columns = store.block_columns(small.key, [0])
    return list(b"".join(column.data for (column,) in columns))


def first_positions(content: bytes, ids: list[bytes]) -> dict[bytes, int]:
    """Return the first position of each id that the content contains."""
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(content, np.uint8), 8)
    begins = np.frombuffer(b"".join(id_[:8] for id_ in ids), np.uint64)
    places: dict[bytes, int] = {}
    id_set = set(ids)
    for at in np.flatnonzero(np.isin(np.ascontiguousarray(windows).view(np.uint64), begins)):
        if (id_ := content[at : at + 16]) in id_set:
            places.setdefault(id_, int(at))
    return places


def test_no_arrival_order_appears_in_batch_names(store, small, direct_access):
    n = 400
    ids = [item.id for item in random_reports(n) if not add(store, small, [item])]
    arrival = {id_: number for number, id_ in enumerate(ids)}
    rows = direct_access.run("SELECT ids FROM pending ORDER BY batch")
    # Six standard deviations: 6 / (3 sqrt(400)) and 6 sqrt(1 / (12 * 400)).
    assert dependence(np.arange(n), [arrival[bytes(id_)] for (id_,) in rows]) < 0.1


def positions_by_storage(settings, ids, direct_access) -> dict[str, tuple[list[int], list[int]]]:
    """Return for each storage the positions of the ids it contains, and their arrival ranks."""
    arrival = {id_: number for number, id_ in enumerate(ids)}
    if file := database_file(settings.database):
        files = sorted(file.parent.glob(f"{file.name}*"))
        content = b"".join(item.read_bytes() for item in files)
        positions = first_positions(content, ids)
        return {"the files": (list(positions.values()), [arrival[id_] for id_ in positions])}
    positions = {}
    arrival = {identity(id_): number for id_, number in arrival.items()}
    pending = [item for (item,) in direct_access.run("SELECT id FROM pending_id ORDER BY ctid")]
    rows = direct_access.run("SELECT survey, first, ids FROM released_ids ORDER BY ctid")
    released = [item for row in rows for item in identities_of(row)]
    for name, identities in (("pending_id", pending), ("released_ids", released)):
        positions[name] = (list(range(len(identities))), [arrival[item] for item in identities])
    return positions


@pytest.mark.web
def test_no_arrival_order_is_in_the_files_or_heaps_after_a_release_and_after_close(
    store, small, settings, direct_access
):
    ids = add_in_order(store, small)
    pending_positions = positions_by_storage(settings, ids, direct_access)
    # The statistic detects the order of pending reports.
    assert max(dependence(*pair) for pair in pending_positions.values() if pair[0]) > 0.02
    assert publish_pending(store, small, 25) == TIED
    for name, (positions, arrivals) in positions_by_storage(settings, ids, direct_access).items():
        assert len(arrivals) in (0, TIED), name
        assert not arrivals or dependence(positions, arrivals) < 0.02, name
    assert dependence(np.arange(TIED), released_codes(store, small)) < 0.02
    close(store, "small", TODAY)
    keeper_at(store, settings).work()
    for name, (positions, arrivals) in positions_by_storage(settings, ids, direct_access).items():
        assert not arrivals or dependence(positions, arrivals) < 0.02, name
    assert dependence(np.arange(TIED), released_codes(store, small)) < 0.02


@pytest.mark.web
def test_no_arrival_order_remains_after_two_releases(store, small):
    """The second release mixes its reports with those of the first."""
    for code in (0, 1):
        add(store, small, [StoredReport(os.urandom(16), "", bytes([code, 0])) for _ in range(TIED)])
        assert publish_pending(store, small, 25) == TIED
    assert dependence(np.arange(2 * TIED), released_codes(store, small)) < 0.02
