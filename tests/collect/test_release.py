"""Each report is released once, in a portion, into the bucket of its day."""

from __future__ import annotations

import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from functools import partial

import numpy as np
import pytest

from survey.collect.publication import publish
from survey.collect.release import BLOCK_SIZE, ReleaseLoop, compose_release, release
from survey.errors import DefinitionError, StoreBusyError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import N_ASKED, LastBlock, PendingReports, StoredReport, open_store
from tests.conftest import SMALL, TODAY

SUNDAY, MONDAY = date(2027, 1, 3), date(2027, 1, 4)


def fill(store, survey, n: int, codes: bytes = b"\0\2") -> None:
    reports = [(survey.key, StoredReport(os.urandom(16), "", codes)) for _ in range(n)]
    assert store.add_reports(reports) == [None] * n


def bucketed(store, bucket: str):
    content = f'bucket = "{bucket}"\n{SMALL}'.encode()
    return publish(store, load(content, "small.toml", Caps()), TODAY)


def blocks(store, survey) -> dict[str, list[int]]:
    """Return the sizes of the blocks in each bucket."""
    sizes_by_bucket: dict[str, list[int]] = {}
    for (block,) in store.block_columns(survey.key, [0]):
        sizes_by_bucket.setdefault(block.bucket, []).append(block.n)
    return sizes_by_bucket


# -- blocks


def pending_reports(codes: np.ndarray, last: LastBlock | None = None) -> PendingReports:
    return PendingReports("north", "2026-W47", [row.tobytes() for row in codes], last)


def test_a_block_grows_to_its_size_before_the_next_begins(small):
    questions = small.definition.questions
    rng = np.random.default_rng(7)
    last, columns = None, {}
    for n in (30, 40_000, 40_000, 60_000):
        content = compose_release(
            questions, [pending_reports(rng.integers(0, 3, (n, 2), np.uint8), last)]
        )
        columns |= {(c.block, c.question): c for c in content.columns}
        newest = max(block for block, _ in columns)
        last = LastBlock(newest, [columns[newest, question].data for question in (0, 1)])
    sizes = [columns[block, 0].n for block in range(newest + 1)]
    assert sizes == [BLOCK_SIZE, BLOCK_SIZE, 140_030 - 2 * BLOCK_SIZE]
    assert {(c.stratum, c.bucket) for c in columns.values()} == {("north", "2026-W47")}


def test_a_release_keeps_the_codes_of_a_report_together_and_counts_only_new_reports(small):
    rng = np.random.default_rng(8)
    old, new = (rng.integers(0, 3, (n, 2), np.uint8) for n in (1000, 500))
    last = LastBlock(4, [old[:, question].tobytes() for question in (0, 1)])
    content = compose_release(small.definition.questions, [pending_reports(new, last)])
    first, second = (np.frombuffer(c.data, np.uint8) for c in content.columns)
    assert {c.block for c in content.columns} == {4}
    expected = Counter(map(tuple, np.concatenate([old, new]).tolist()))
    assert Counter(zip(first.tolist(), second.tolist(), strict=True)) == expected
    assert content.counts["north", "2026-W47", 0, N_ASKED] == 500
    for option in range(3):
        assert content.counts["north", "2026-W47", 1, option] == (new[:, 1] == option).sum()


# -- portions


def test_pending_reports_are_released_in_portions_and_cleaned_up_once(store, small, monkeypatch):
    portions, cleaned_up = [], []
    original_release, clean_up = store.release, store.clean_up_after_release

    def release_portion(*args, **kwargs):
        portions.append(original_release(*args, **kwargs, maximum=100))
        return portions[-1]

    monkeypatch.setattr(store, "release", release_portion)
    monkeypatch.setattr(
        store, "clean_up_after_release", lambda key: cleaned_up.append(key) or clean_up(key)
    )
    fill(store, small, 330)
    assert release(store, small, 25) == 330
    assert len(portions) >= 3
    assert sum(portions) == 330
    assert min(portions) >= 25
    assert cleaned_up == [small.key]
    assert (store.n_pending(small.key), store.tally(small.key).n) == (0, 330)
    assert blocks(store, small) == {"": [330]}


def test_a_release_ends_although_reports_keep_arriving(store, small, monkeypatch):
    original_release = store.release

    def add_and_release(*args, **kwargs):
        fill(store, small, 50)
        return original_release(*args, **kwargs, maximum=50)

    monkeypatch.setattr(store, "release", add_and_release)
    fill(store, small, 100)
    assert 100 <= release(store, small, 25) <= 200


def test_fewer_reports_than_the_minimum_stay_unreadable(store, small):
    fill(store, small, 24)
    assert release(store, small, 25) == 0
    assert store.tally(small.key).n == 0
    assert release(store, small, 1) == 24


# -- buckets


@pytest.mark.parametrize(
    ("bucket", "expected"),
    [
        ("none", {"": [60]}),
        ("day", {"2027-01-03": [30], "2027-01-04": [30]}),
        ("week", {"2026-W53": [30], "2027-W01": [30]}),
    ],
)
def test_reports_of_each_day_or_week_of_release_have_separate_blocks(store, bucket, expected):
    survey = bucketed(store, bucket)
    for day in (SUNDAY, MONDAY):
        fill(store, survey, 30)
        assert release(store, survey, 25, clock=lambda day=day: day) == 30
    assert blocks(store, survey) == expected
    assert store.tally(survey.key).n == 60
    assert {place: tally.n for place, tally in store.tallies(survey.key).items()} == {
        ("", name): sum(sizes) for name, sizes in expected.items()
    }


def test_a_second_release_of_a_day_grows_its_block(store):
    survey = bucketed(store, "day")
    for day in (SUNDAY, MONDAY, MONDAY):
        fill(store, survey, 30)
        release(store, survey, 25, clock=lambda day=day: day)
    assert blocks(store, survey) == {"2027-01-03": [30], "2027-01-04": [60]}


def test_a_survey_without_a_bucket_keeps_its_hash():
    plain = load(SMALL.encode(), "small.toml", Caps())
    none = load(f'bucket = "none"\n{SMALL}'.encode(), "small.toml", Caps())
    week = load(f'bucket = "week"\n{SMALL}'.encode(), "small.toml", Caps())
    assert freeze(plain, 1).canonical == freeze(none, 1).canonical
    assert b"bucket" not in freeze(plain, 1).canonical
    assert b'"bucket":"week"' in freeze(week, 1).canonical
    assert (freeze(plain, 1).bucket, freeze(week, 1).bucket) == ("none", "week")


def test_an_unknown_bucket_is_refused_with_its_place():
    with pytest.raises(DefinitionError) as caught:
        load(f'bucket = "hour"\n{SMALL}'.encode(), "small.toml", Caps())
    ((place, _),) = caught.value.mistakes
    assert place == "bucket"


# -- release loop


def test_the_loop_releases_reports_that_are_due_by_share_or_by_time(store, settings, small):
    loop = ReleaseLoop(store, settings)
    fill(store, small, 5000)
    assert loop.release_due(0.0) == 5000
    fill(store, small, 49)
    assert loop.release_due(59.0) == 0
    fill(store, small, 1)
    assert loop.release_due(59.0) == 50
    fill(store, small, 25)
    assert loop.release_due(118.0) == 0
    assert loop.release_due(119.0) == 25


def test_the_waiting_time_restarts_after_another_server_s_release(store, settings, small):
    ours, theirs = ReleaseLoop(store, settings), ReleaseLoop(store, settings)
    fill(store, small, 5000)
    assert ours.release_due(0.0) == 5000
    fill(store, small, 30)
    theirs.release_due(0.0)
    assert theirs.release_due(60.0) == 30
    assert ours.release_due(61.0) == 0
    fill(store, small, 30)
    assert ours.release_due(100.0) == 0
    assert ours.release_due(121.0) == 30


def test_two_loops_at_once_release_every_report_once(settings, store, small):
    """Each loop has separate connections, as on two servers."""
    stores = [open_store(settings.database) for _ in range(2)]
    start = threading.Barrier(2)

    def run(loop_store) -> int:
        loop, n = ReleaseLoop(loop_store, settings), 0
        for second in range(20):
            start.wait(20)
            fill(loop_store, small, 40)
            n += loop.release_due(float(second))
        loop_store.close_connections()
        return n

    with ThreadPoolExecutor(2) as pool:
        released = sum(pool.map(run, stores))
    released += release(store, small, 1)
    assert released == store.n_released(small.key) == store.tally(small.key).n == 1600
    assert sum(blocks(store, small)[""]) == 1600


def test_a_failing_release_does_not_stop_those_of_other_surveys(
    store, settings, small, monkeypatch
):
    second_survey = publish(
        store, load(SMALL.replace('"small"', '"other"').encode(), "s.toml", Caps()), TODAY
    )
    original_release = store.release

    def fail_second(key, *args, **kwargs):
        if key == second_survey.key:
            raise StoreBusyError("locked")
        return original_release(key, *args, **kwargs)

    monkeypatch.setattr(store, "release", fail_second)
    for survey in (small, second_survey):
        fill(store, survey, 30)
    with pytest.raises(StoreBusyError, match="locked"):
        ReleaseLoop(store, settings).release_due(0.0)
    assert (store.n_released(small.key), store.n_released(second_survey.key)) == (30, 0)


@pytest.mark.parametrize("error", [StoreBusyError("disk full"), ZeroDivisionError("a mistake")])
def test_the_release_loop_survives_and_logs_every_error(
    store, settings, small, monkeypatch, caplog, error
):
    stop, calls = threading.Event(), []

    def fail_twice(now: float) -> int:
        calls.append(now)
        if len(calls) == 3:
            stop.set()
            return 0
        raise error

    loop = ReleaseLoop(store, settings, clock=lambda: TODAY)
    monkeypatch.setattr(loop, "release_due", fail_twice)
    monkeypatch.setattr("survey.collect.release.POLL_SECONDS", 0.001)
    runner = threading.Thread(target=loop.run, args=[stop])
    runner.start()
    runner.join(20)
    assert len(calls) == 3
    assert caplog.text.count("no release this time") == 2


def test_a_failing_release_leaves_pending_reports_untouched(store, settings, small):
    fill(store, small, 30)

    def fail(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.release(small.key, 25, fail)
    assert (store.n_pending(small.key), store.n_released(small.key)) == (30, 0)
    questions = small.definition.questions
    assert store.release(small.key, 25, partial(compose_release, questions)) == 30


def test_a_higher_release_minimum_is_respected(store, settings, small):
    loop = ReleaseLoop(store, replace(settings, release_minimum=100))
    fill(store, small, 99)
    assert loop.release_due(0.0) == loop.release_due(500.0) == 0
    fill(store, small, 1)
    assert loop.release_due(500.0) == 100
