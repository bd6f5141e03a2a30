"""The store's contract on both databases: portions, buckets, blocks and counts of a release."""

from __future__ import annotations

from collections import Counter

import pytest

from survey.errors import NotFoundError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import N_ASKED, Release, ReleaseContent, StoredReport
from survey.store.releases import portion_size
from tests.conftest import SMALL
from tests.store.reports import add, random_reports, release_in_order, report


def test_nothing_is_readable_before_25_reports_are_released_together(store, small):
    add(store, small, [report(number) for number in range(24)])
    assert store.release(small.key, 25, release_in_order) == 0
    assert (store.tally(small.key).n, store.n_released(small.key)) == (0, 0)
    assert list(store.block_columns(small.key, [0])) == []
    assert store.tallies(small.key) == {}
    add(store, small, [report(24)])
    assert store.release(small.key, 25, release_in_order) == 25
    assert store.tally(small.key).counts == [[25, 0, 0], [0, 25, 0]]
    assert store.n_pending(small.key) == 0


def test_a_release_without_anything_to_release_does_nothing(store, small):
    assert store.release(small.key, 0, release_in_order) == 0
    assert store.tally(small.key).release == 0
    assert store.newest_release(small.key) == Release(number=0, n=0)


def test_the_newest_release_can_be_read_without_its_counts(store, small):
    add(store, small, [report(number) for number in range(30)])
    store.release(small.key, 25, release_in_order)
    tally = store.tally(small.key)
    assert store.newest_release(small.key) == Release(tally.release, tally.n) == Release(1, 30)


def test_a_portion_has_the_first_ids_and_leaves_enough_for_another(store, small):
    add(store, small, [report(number) for number in range(101)])
    portions = []
    while n := store.release(small.key, 25, release_in_order, maximum=40):
        portions.append(n)
        assert store.n_pending(small.key) == 101 - sum(portions)
        are_known = [store.has_report(small.key, report(number)) for number in range(101)]
        assert all(are_known)
    assert portions == [34, 34, 33]
    assert (store.tally(small.key).n, store.tally(small.key).release) == (101, 3)


@pytest.mark.parametrize("minimum", [1, 25, 30_000, 65_536])
@pytest.mark.parametrize("maximum", [25, 16_384])
def test_a_portion_never_leaves_fewer_pending_reports_than_the_minimum(minimum, maximum):
    for n_pending in [*range(1, 200), *range(60_000, 140_000, 977)]:
        n = portion_size(n_pending, minimum, maximum)
        remainder = n_pending - n
        assert remainder == n_pending if n_pending < minimum else minimum <= n
        assert remainder == 0 or remainder >= minimum or n_pending < minimum
        assert n <= max(maximum, 2 * minimum)


def test_a_release_gets_the_pending_reports_and_the_newest_block_of_a_stratum(store, small):
    store.add_invitations(small.key, "north", [bytes(31) + b"\x01"])
    calls = []

    def record_groups(groups) -> ReleaseContent:
        calls.append(list(groups))
        return release_in_order(groups)

    north = report(9, b"\x02\x02", stratum="north", invitation=bytes(31) + b"\x01")
    add(store, small, [report(2, b"\x01\x01"), report(1, b"\x00\x02"), north])
    for _ in range(2):
        store.release(small.key, 1, record_groups, bucket="2026-11-21")
    add(store, small, [report(3, b"\x02\x00")])
    store.release(small.key, 1, record_groups, bucket="2026-11-21")
    add(store, small, [report(4, b"\x02\x01")])
    store.release(small.key, 1, record_groups, bucket="2026-11-22")
    ((first,), (north_group,), (again,), (next_day,)) = calls
    assert (first.stratum, first.bucket, first.last) == ("", "2026-11-21", None)
    assert list(first.codes) == [b"\x00\x02", b"\x01\x01"]
    assert (north_group.stratum, list(north_group.codes)) == ("north", [b"\x02\x02"])
    assert (again.last.number, list(again.last.columns)) == (0, [b"\x00\x01", b"\x02\x01"])
    assert next_day.last is None


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
        for _ in range(2):
            store.release(small.key, 25, release_in_order, bucket=bucket)
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


def test_reports_of_a_small_stratum_stay_pending_until_there_are_enough(store, small):
    tokens = [number.to_bytes(32, "big") for number in range(40)]
    store.add_invitations(small.key, "north", tokens)

    def north(numbers) -> list[StoredReport]:
        return [report(n, stratum="north", invitation=tokens[n]) for n in numbers]

    add(store, small, [*random_reports(60), *north(range(24))])
    assert store.release(small.key, 25, release_in_order) == 60
    assert store.release(small.key, 25, release_in_order) == 0
    assert set(store.tallies(small.key)) == {("", "")}
    add(store, small, north(range(24, 26)))
    assert store.release(small.key, 25, release_in_order) == 26
    assert store.tallies(small.key)["north", ""].n == 26
    add(store, small, north(range(26, 30)))
    assert store.release(small.key, 25, release_in_order) == 0
    # The close releases all remaining reports, even fewer than the minimum.
    assert store.release(small.key, 1, release_in_order) == 4


def test_counts_and_blocks_agree_after_many_releases(store, small):
    added = Counter()
    for step in range(6):
        batch = random_reports(25 + 10 * step)
        add(store, small, batch)
        added.update(item.codes for item in batch)
        store.release(small.key, 25, release_in_order)
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
    store.release(small.key, 1, release_in_order)
    assert [
        [(column.question, column.data) for column in columns]
        for columns in store.block_columns(small.key, [1, 0, 1])
    ] == [[(1, b"\x02"), (0, b"\x01"), (1, b"\x02")]]
    with pytest.raises(NotFoundError, match="question 7"):
        list(store.block_columns(small.key, [0, 7]))


def test_a_stream_of_blocks_ignores_later_releases(store, small):
    add(store, small, [report(1, b"\x01\x02")])
    store.release(small.key, 1, release_in_order, bucket="a")
    add(store, small, [report(2, b"\x01\x02")])
    store.release(small.key, 1, release_in_order, bucket="b")
    stream = store.block_columns(small.key, [0])
    blocks = [next(stream)]
    # The thread adds and releases reports before it has read the whole stream.
    add(store, small, [report(number) for number in range(3, 40)])
    store.release(small.key, 1, release_in_order, bucket="b")
    blocks += list(stream)
    assert [(column.bucket, column.n) for (column,) in blocks] == [("a", 1), ("b", 1)]
    assert [block.n for (block,) in store.block_columns(small.key, [0])] == [1, 38]


def test_a_release_that_fails_leaves_all_reports_pending(store, small):
    add(store, small, [report(number) for number in range(30)])

    def fails(groups):
        raise MemoryError

    with pytest.raises(MemoryError):
        store.release(small.key, 25, fails)
    assert store.n_pending(small.key) == 30
    assert store.tally(small.key).release == 0
    assert store.release(small.key, 25, release_in_order) == 30


def test_each_survey_is_released_separately(store, small):
    second_survey = store.publish(small_of_another_slug(), small.changed)
    add(store, small, [report(number) for number in range(30)])
    add(store, second_survey, [report(number, b"\x02\x02") for number in range(26)])
    assert store.release(small.key, 25, release_in_order) == 30
    assert (store.n_pending(second_survey.key), store.tally(second_survey.key).n) == (26, 0)
    assert store.release(second_survey.key, 25, release_in_order) == 26
    assert store.tally(second_survey.key).counts[0] == [0, 0, 26]
    store.forget_ids(small.key)
    assert store.has_report(second_survey.key, report(1, b"\x02\x02"))


def small_of_another_slug():
    text = SMALL.replace('slug = "small"', 'slug = "other"')
    return freeze(load(text.encode(), "other.toml", Caps()), 1)


def test_cleaning_up_and_rewriting_lose_nothing(store, small):
    add(store, small, [report(number) for number in range(60)])
    assert store.release(small.key, 25, release_in_order, maximum=30) == 30
    store.clean_up_after_release(small.key)
    store.retry_clean_up()
    store.vacuum()
    assert (store.n_pending(small.key), store.tally(small.key).n) == (30, 30)
    assert store.tally(small.key).n_asked == [30, 30]
    assert [block.n for (block,) in store.block_columns(small.key, [1])] == [30]
    assert all(store.has_report(small.key, report(number)) for number in range(60))


def test_counts_have_the_positions_of_the_channel_and_n_asked(store, small, direct_access):
    add(store, small, [StoredReport(bytes(16), "", b"\x02\x01")])
    store.release(small.key, 1, release_in_order)
    rows = direct_access.run("SELECT question, option, n FROM counts ORDER BY question, option")
    assert rows == [(0, N_ASKED, 1), (0, 2, 1), (1, N_ASKED, 1), (1, 1, 1)]
