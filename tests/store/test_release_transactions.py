"""The store's contract on both databases: portions, buckets, blocks and counts of a release."""

from __future__ import annotations

from collections import Counter

import pytest

from survey.errors import ConflictError, NotFoundError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import N_ASKED, Release, ReleaseContent, StoredReport
from tests.conftest import SMALL
from tests.store.reports import add, publish_pending, random_reports, report


def test_the_newest_release_can_be_read_without_its_counts(store, small):
    add(store, small, [report(number) for number in range(30)])
    publish_pending(store, small, 25)
    tally = store.tally(small.key)
    assert store.newest_release(small.key) == Release(tally.release, tally.n) == Release(1, 30)


def test_tallies_by_stratum_and_bucket_add_up_to_the_tally(store, small):
    tokens = [number.to_bytes(32, "big") for number in range(50)]
    store.add_invitations(small.key, "north", tokens)
    for bucket in ("2026-W47", "2026-W48"):
        first = 0 if bucket == "2026-W47" else 25
        add(store, small, random_reports(30))
        invited = range(first, first + 25)
        add(
            store,
            small,
            [report(n, bytes([n % 3, 0]), stratum="north", invitation=tokens[n]) for n in invited],
        )
        publish_pending(store, small, 25, bucket=bucket)
    tallies = store.tallies(small.key)
    assert {group: tally.n for group, tally in tallies.items()} == {
        ("", "2026-W47"): 30,
        ("", "2026-W48"): 30,
        ("north", "2026-W47"): 25,
        ("north", "2026-W48"): 25,
    }
    whole = store.tally(small.key)
    for question in (0, 1):
        assert whole.n_asked[question] == sum(t.n_asked[question] for t in tallies.values()) == 110
        for option in range(3):
            parts = sum(t.counts[question][option] for t in tallies.values())
            assert whole.counts[question][option] == parts
    assert {tally.release for tally in tallies.values()} == {whole.release} == {4}


def test_counts_and_blocks_agree_after_many_releases(store, small):
    added = Counter()
    for step in range(6):
        batch = random_reports(25 + 10 * step)
        add(store, small, batch)
        added.update(item.codes for item in batch)
        publish_pending(store, small, 25)
    pairs: Counter[bytes] = Counter()
    for first, second in store.block_columns(small.key, [0, 1]):
        assert (first.question, second.question, first.block) == (0, 1, second.block)
        pairs.update(bytes(pair) for pair in zip(first.data, second.data, strict=True))
    assert pairs == added
    tally = store.tally(small.key)
    assert tally.n == added.total()
    for question in (0, 1):
        code_counts = Counter(
            code for (b,) in store.block_columns(small.key, [question]) for code in b.data
        )
        assert tally.counts[question] == [code_counts[option] for option in range(3)]


def test_block_columns_come_in_the_requested_order(store, small):
    add(store, small, [report(1, b"\x01\x02")])
    publish_pending(store, small, 1)
    assert [
        [(column.question, column.data) for column in columns]
        for columns in store.block_columns(small.key, [1, 0, 1])
    ] == [[(1, b"\x02"), (0, b"\x01"), (1, b"\x02")]]
    with pytest.raises(NotFoundError, match="question 7"):
        list(store.block_columns(small.key, [0, 7]))


def test_a_stream_of_blocks_ignores_later_releases(store, small):
    add(store, small, [report(1, b"\x01\x02")])
    publish_pending(store, small, 1, bucket="a")
    add(store, small, [report(2, b"\x01\x02")])
    publish_pending(store, small, 1, bucket="b")
    stream = store.block_columns(small.key, [0])
    blocks = [next(stream)]
    # The thread adds and releases reports before it has read the whole stream.
    add(store, small, [report(number) for number in range(3, 40)])
    publish_pending(store, small, 1, bucket="b")
    blocks += list(stream)
    assert [(column.bucket, column.n) for (column,) in blocks] == [("a", 1), ("b", 1)]
    assert [block.n for (block,) in store.block_columns(small.key, [0])] == [1, 38]


def test_a_release_of_replaced_batches_changes_nothing(store, small):
    add(store, small, random_reports(30))
    opened = store.batches(small.key, "", 1, 30)
    assert publish_pending(store, small) == 30
    tally = store.tally(small.key)
    with pytest.raises(ConflictError, match="another keeper"):
        store.release(small.key, ReleaseContent([], {}), [bytes(16)], opened)
    assert (store.tally(small.key), store.n_pending(small.key)) == (tally, 0)


def test_each_survey_is_released_separately(store, small):
    second_survey = store.publish(small_of_another_slug(), small.changed)
    add(store, small, [report(number) for number in range(30)])
    add(store, second_survey, [report(number, b"\x02\x02") for number in range(26)])
    assert publish_pending(store, small, 25) == 30
    assert (store.n_pending(second_survey.key), store.tally(second_survey.key).n) == (26, 0)
    assert publish_pending(store, second_survey, 25) == 26
    assert store.tally(second_survey.key).counts[0] == [0, 0, 26]
    store.forget_ids(small.key)
    assert store.has_report(second_survey.key, report(1, b"\x02\x02").id)


def small_of_another_slug():
    text = SMALL.replace('slug = "small"', 'slug = "other"')
    return freeze(load(text.encode(), "other.toml", Caps()), 1)


def test_cleaning_up_and_rewriting_lose_nothing(store, small):
    for first in (0, 30):
        add(store, small, [report(number) for number in range(first, first + 30)])
    assert publish_pending(store, small, 25, maximum=30) == 30
    store.clean_up_after_release(small.key)
    store.retry_clean_up()
    store.vacuum()
    assert (store.n_pending(small.key), store.tally(small.key).n) == (30, 30)
    assert store.tally(small.key).n_asked == [30, 30]
    assert [block.n for (block,) in store.block_columns(small.key, [1])] == [30]
    assert all(store.has_report(small.key, report(number).id) for number in range(60))


def test_counts_have_the_positions_of_the_channel_and_n_asked(store, small, direct_access):
    add(store, small, [StoredReport(bytes(16), "", b"\x02\x01")])
    publish_pending(store, small, 1)
    rows = direct_access.run("SELECT question, option, n FROM counts ORDER BY question, option")
    assert rows == [(0, N_ASKED, 1), (0, 2, 1), (1, N_ASKED, 1), (1, 1, 1)]
