"""Each report is released once, at a release time, in a multiple of 25, into its bucket."""

from __future__ import annotations

import os
from collections import Counter
from datetime import date

import numpy as np
import pytest

from survey.collect.publication import publish
from survey.collect.release import BLOCK_SIZE, compose_release
from survey.errors import (
    DefinitionError,
)
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import N_ASKED, ChosenReports, LastBlock, StoredReport
from tests.conftest import SMALL, TODAY
from tests.store.reports import publish_pending

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


def chosen_reports(codes: np.ndarray, last: LastBlock | None = None) -> ChosenReports:
    return ChosenReports("north", "2026-W47", [row.tobytes() for row in codes], last)


def test_a_block_grows_to_its_size_before_the_next_begins(small):
    questions = small.definition.questions
    rng = np.random.default_rng(7)
    last, columns = None, {}
    for n in (30, 40_000, 40_000, 60_000):
        content = compose_release(
            questions, chosen_reports(rng.integers(0, 3, (n, 2), np.uint8), last)
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
    content = compose_release(small.definition.questions, chosen_reports(new, last))
    first, second = (np.frombuffer(c.data, np.uint8) for c in content.columns)
    assert {c.block for c in content.columns} == {4}
    expected = Counter(map(tuple, np.concatenate([old, new]).tolist()))
    assert Counter(zip(first.tolist(), second.tolist(), strict=True)) == expected
    assert content.counts["north", "2026-W47", 0, N_ASKED] == 500
    for option in range(3):
        assert content.counts["north", "2026-W47", 1, option] == (new[:, 1] == option).sum()


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
        assert publish_pending(store, survey, day=day) == 30
    assert blocks(store, survey) == expected
    assert store.tally(survey.key).n == 60
    assert {place: tally.n for place, tally in store.tallies(survey.key).items()} == {
        ("", name): sum(sizes) for name, sizes in expected.items()
    }


def test_a_second_release_of_a_day_grows_its_block(store):
    survey = bucketed(store, "day")
    for day in (SUNDAY, MONDAY, MONDAY):
        fill(store, survey, 30)
        publish_pending(store, survey, day=day)
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
