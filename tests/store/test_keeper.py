"""The keeper on both databases: release times, multiples of 25, rotation, closing, lost keys."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count, product
from pathlib import Path
from shutil import copytree

import pytest

from survey.archive import check
from survey.collect.publication import close, publish
from survey.collect.release import SPARE_KEYS
from survey.disclosure import OTHER_GROUPS, n_to_release
from survey.errors import (
    ConflictError,
    SettingsError,
    StoreBusyError,
    StoreError,
    SurveyError,
)
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PrivateKeys, Schedule, StoredReport, open_store
from survey.store.report_identities import identity
from tests.conftest import SMALL, TODAY, wait_until
from tests.store.reports import (
    NOON,
    PRIVATE_KEYS,
    add,
    keeper_at,
    pending_reports,
    publish_pending,
    random_reports,
    report,
)
from tests.store.test_reports import run_together


@pytest.fixture
def portions(store, monkeypatch) -> list[tuple[str, int]]:
    """Return a list of the stratum and the size of each released portion."""
    sizes, write = [], store.release

    def record(survey, content, ids, *args):
        write(survey, content, ids, *args)
        if ids:
            sizes.append((content.columns[0].stratum, len(ids)))

    monkeypatch.setattr(store, "release", record)
    return sizes


# -- the policy


def test_a_release_publishes_a_multiple_of_25_and_leaves_25_to_49_pending(store, settings, small):
    sent, released = Counter(), 0
    for hour, n in enumerate((24, 25, 1, 0, 49, 3, 330), 1):
        batch = random_reports(n)
        add(store, small, batch)
        sent.update(item.codes for item in batch)
        expected = n_to_release(store.n_pending(small.key))
        assert keeper_at(store, settings, hour).work() == expected
        released += expected
        assert store.n_released(small.key) == released == store.tally(small.key).n
        assert store.n_pending(small.key) < 50
    assert (released, store.n_pending(small.key)) == (400, 32)
    close(store, "small", TODAY)
    assert keeper_at(store, settings, 8).work() == 32
    assert store.n_pending(small.key) == 0
    pairs: Counter[bytes] = Counter()
    for columns in store.block_columns(small.key, [0, 1]):
        pairs.update(bytes(pair) for pair in zip(*(c.data for c in columns), strict=True))
    assert pairs == sent


@pytest.mark.security
def test_nothing_is_released_between_two_release_times(store, settings, small):
    add(store, small, random_reports(80))
    assert keeper_at(store, settings, 1).work() == 50
    for minutes in (0, 1, 30, 59):
        add(store, small, random_reports(100))
        # A keeper that has just started knows no more than one that ran.
        assert keeper_at(store, settings, 1 + minutes / 60).work() == 0
    assert store.newest_release(small.key).number == 1
    assert keeper_at(store, settings, 2).work() == 400


@pytest.mark.security
def test_the_report_of_a_victim_may_stay_pending_or_not_whatever_the_ids(store, settings, small):
    """An attacker chooses ids: without a random choice the last id would always stay pending."""
    outcomes = set()
    victim = StoredReport(b"\xff" * 16, "", b"\2\2")
    for hour in range(1, 60):
        survey = publish_copy(store, f"copy-{hour}")
        add(store, survey, [victim, *(report(n) for n in range(49))])
        keeper_at(store, settings, hour).work()
        outcomes.add(store.tally(survey.key).counts[0][2])
        if outcomes == {0, 1}:
            return
    raise AssertionError(outcomes)


def test_an_inbox_larger_than_a_portion_is_released_in_multiples_of_25(
    store, settings, small, portions, monkeypatch
):
    monkeypatch.setattr("survey.collect.release.MAX_RELEASED", 100)
    for _ in range(30):
        add(store, small, random_reports(41))
    assert keeper_at(store, settings, 1).work() == 1200
    assert store.n_pending(small.key) == 30
    assert len(portions) >= 10
    assert {n % 25 for _, n in portions} == {0}
    assert (len(store.batches(small.key, "", 2, 99)), store.tally(small.key).n) == (1, 1200)


@pytest.mark.security
def test_the_last_release_splits_many_reports_into_portions_of_at_least_25(
    store, settings, small, portions, monkeypatch
):
    monkeypatch.setattr("survey.collect.release.MAX_RELEASED", 100)
    for stored in random_reports(205):
        add(store, small, [stored])
    store.close_survey("small", TODAY)
    assert keeper_at(store, settings, 1).work() == 205
    assert portions == [("", 100), ("", 105)]


# -- closing


@pytest.mark.security
def test_the_last_release_publishes_large_groups_and_pools_small_ones(
    store, settings, small, portions
):
    sizes = {"north": 60, "east": 12, "west": 14, "south": 30}
    for stratum, n in sizes.items():
        add(store, small, random_reports(n, stratum))
    add(store, small, random_reports(70))
    keeper_at(store, settings, 1).work()
    assert {key: t.n for key, t in store.tallies(small.key).items()} == {
        ("", ""): 25,
        ("north", ""): 25,
    }
    store.close_survey("small", TODAY)
    keeper_at(store, settings, 2).work()
    assert [n for stratum, n in portions if stratum == OTHER_GROUPS] == [26]
    assert {key: t.n for key, t in store.tallies(small.key).items()} == {
        ("", ""): 70,
        ("north", ""): 60,
        ("south", ""): 30,
        (OTHER_GROUPS, ""): 26,
    }


@pytest.mark.security
def test_closing_deletes_the_reports_of_groups_that_are_too_small_even_together(
    store, settings, small, direct_access
):
    add(store, small, random_reports(1, "north"))
    add(store, small, random_reports(23))
    close(store, "small", TODAY)
    assert keeper_at(store, settings, 1).work() == 0
    assert store.tally(small.key).n == store.n_pending(small.key) == 0
    assert direct_access.run("SELECT count(*) FROM sealing_key WHERE survey > 0") == [(0,)]


def test_a_superseded_version_keeps_its_remainder_until_the_survey_closes(store, settings, small):
    add(store, small, random_reports(60))
    second = publish(store, load(SMALL.replace("Two", "2").encode(), "s.toml", Caps()), TODAY)
    add(store, second, random_reports(26))
    assert keeper_at(store, settings, 1).work() == 25
    assert keeper_at(store, settings, 2).work() == 0
    close(store, "small", TODAY)
    assert keeper_at(store, settings, 2.9).work() == 0
    assert keeper_at(store, settings, 3).work() == 35 + 26


# -- keys


def own_keys(store, survey) -> list[bytes]:
    return [key.public_key for key in store.sealing_keys() if key.survey == survey.key]


def test_a_rotation_seals_the_rest_again_and_destroys_the_old_key(store, settings, small):
    keys = PrivateKeys(Path(settings.keys))
    add(store, small, random_reports(7))
    add(store, small, random_reports(30, "north"))
    (first,) = own_keys(store, small)
    keeper_at(store, settings, 1).work()
    (second,) = own_keys(store, small)
    assert keys.find(first) is None
    assert first.hex() not in str(list(keys.directory.iterdir()))
    assert store.pending_sizes(small.key) == {"": 7, "north": 30}
    assert [len(store.batches(small.key, name, 2, 99)) for name in ("", "north")] == [1, 1]
    # Without arrivals there is nothing to seal again.
    keeper_at(store, settings, 2).work()
    assert own_keys(store, small) == [second]
    add(store, small, random_reports(1))
    keeper_at(store, settings, 3).work()
    assert own_keys(store, small) != [second]


def test_reports_that_arrive_during_a_rotation_are_sealed_with_the_new_key(store, settings, small):
    add(store, small, [report(1)])
    public_key = PrivateKeys(Path(settings.keys)).create()
    new_key = store.rotate_keys({small.key: public_key}, time=0)[small.key]
    add(store, small, [report(2)])
    (batch,) = store.batches(small.key, "", 1, 9)
    assert batch.report_ids == [report(1).id]
    (batch,) = store.batches(small.key, "", new_key.period, 9)
    assert batch.report_ids == [report(2).id]


@pytest.mark.web
def test_reports_survive_a_failure_at_every_step_of_a_rotation(store, settings, small, monkeypatch):
    """After each failure a new keeper finishes: nothing is lost, doubled or released again."""
    monkeypatch.setattr("survey.collect.release.MAX_RELEASED", 40)
    n_sent, n_before, n_failures = 0, 0, 0
    for hour in range(1, 16):
        for _ in range(5):
            add(store, small, random_reports(30))
        n_sent += 150
        with monkeypatch.context() as patch:
            fail_after(patch, store, hour)
            try:
                keeper_at(store, settings, hour).work()
            except StoreBusyError:
                n_failures += 1
                patch.undo()
                n_failed, time = store.n_released(small.key), store.release_times()[small.key]
                keeper_at(store, settings, hour).work()
                # Once a release time is recorded, nothing more is published before the next one.
                assert store.n_released(small.key) == n_failed or time < NOON + 3600 * hour
        assert store.n_released(small.key) + store.n_pending(small.key) == n_sent
        assert (store.n_released(small.key) - n_before) % 25 == 0
        n_before = store.n_released(small.key)
        assert len(own_keys(store, small)) == 1
    assert n_failures >= 8
    close(store, "small", TODAY)
    keeper_at(store, settings, 16).work()
    assert store.tally(small.key).n == n_sent


def fail_after(patch: pytest.MonkeyPatch, store, n: int) -> None:
    """Let the n-th step that changes the database or the keys fail, before or after its effect."""
    steps = count(2)

    def wrap(step):
        def fail(*args, **kwargs):
            number = next(steps)
            if number == n:
                raise StoreBusyError("an interruption before the step")
            outcome = step(*args, **kwargs)
            if number == n - 1 and n % 2:
                raise StoreBusyError("an interruption after the step")
            return outcome

        return fail

    for name in ("rotate_keys", "release", "delete_keys", "unneeded_keys"):
        patch.setattr(store, name, wrap(getattr(store, name)))
    for name in ("create_several", "destroy"):
        original = getattr(PrivateKeys, name)
        patch.setattr(PrivateKeys, name, wrap(original))


def test_reports_whose_key_is_lost_can_be_sent_again(store, settings, small):
    tokens = [bytes([n]) * 32 for n in range(30)]
    store.add_invitations(small.key, "north", tokens)
    invited = [report(n, stratum="north", invitation=tokens[n]) for n in range(30)]
    add(store, small, [*invited, *random_reports(5)])
    other = publish_copy(store, "other")
    add(store, other, random_reports(60))
    keys = PrivateKeys(Path(settings.keys))
    keys.destroy(*own_keys(store, small))
    keeper = keeper_at(store, settings, 1)
    with pytest.raises(StoreError, match="take-over"):
        keeper.work()
    # The other survey was served all the same.
    assert store.n_released(other.key) == 25
    assert keeper.take_over() == 35
    assert store.n_pending(small.key) == 0
    assert keeper_at(store, settings, 2).work() == 0
    add(store, small, invited)
    assert keeper_at(store, settings, 3).work() == 0
    assert store.pending_sizes(small.key) == {"north": 30}


def test_a_key_that_is_lost_during_a_release_is_named_and_no_report_is_deleted(
    store, settings, small, monkeypatch
):
    add(store, small, random_reports(60))
    (key,), keys, rotate = (
        own_keys(store, small),
        PrivateKeys(Path(settings.keys)),
        store.rotate_keys,
    )

    def rotate_and_lose(*arguments):
        new_keys = rotate(*arguments)
        keys.destroy(key)
        return new_keys

    monkeypatch.setattr(store, "rotate_keys", rotate_and_lose)
    with pytest.raises(StoreError, match="take-over"):
        keeper_at(store, settings, 1).work()
    assert (store.n_released(small.key), store.n_pending(small.key)) == (0, 60)


def test_a_survey_published_without_a_spare_key_gets_one(store, settings):
    for key in store.sealing_keys():
        store.delete_keys([key])
    survey = publish_copy(store, "keyless")
    (refusal,) = store.add_reports([(survey.key, report(1))])
    assert isinstance(refusal, StoreBusyError)
    keeper_at(store, settings).work()
    add(store, survey, [report(1)])
    assert len([key for key in store.sealing_keys() if not key.survey]) == SPARE_KEYS


def test_one_keeper_at_a_time_uses_a_directory_of_keys(store, settings):
    keys = PrivateKeys(Path(settings.keys))
    with keys.lock(), pytest.raises(ConflictError, match="another keeper"), keys.lock():
        pass
    keys.directory.chmod(0o750)
    with pytest.raises(SettingsError, match="chmod 700"), keys.lock():
        pass


def test_keepers_with_copies_of_the_keys_release_every_report_once(store, settings, small):
    """Two hosts with mirrored keys: the lock of the directory keeps neither from working."""
    for _ in range(12):
        add(store, small, random_reports(40))
    mirror = Path(settings.keys).with_name("mirror")
    copytree(settings.keys, mirror)
    stores = [open_store(settings.database) for _ in range(2)]
    hosts = [replace(settings, keys=str(keys)) for keys in (settings.keys, mirror)]
    start = threading.Barrier(2)

    def work(place: int) -> None:
        for hour in range(1, 5):
            add(stores[place], small, random_reports(40))
            start.wait(20)
            with suppress(SurveyError):
                keeper_at(stores[place], hosts[place], hour).work()
        stores[place].close_connections()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))
    n = store.n_released(small.key)
    assert (n % 25, n + store.n_pending(small.key), store.tally(small.key).n) == (0, 800, n)
    # Once one host has all keys that either host has created, every report is readable.
    copytree(mirror, settings.keys, dirs_exist_ok=True)
    close(store, "small", TODAY)
    keeper_at(store, settings, 5).work()
    assert (store.n_released(small.key), store.n_pending(small.key)) == (800, 0)
    assert mistakes(store) == ()


def test_no_report_is_sealed_with_a_key_that_another_keeper_has_deleted(
    store, settings, small, monkeypatch
):
    """A keeper whose mirror lacks the newest key replaces it, and deletes it while it is unused."""
    add(store, small, random_reports(80))
    mirror = Path(settings.keys).with_name("mirror")
    copytree(settings.keys, mirror)
    keeper_at(store, settings, 1).work()
    add(store, small, random_reports(80))
    other = keeper_at(store, replace(settings, keys=str(mirror)), 2)
    keeper = keeper_at(store, settings, 2)
    publish_content = keeper._publish

    def run_other_keeper_first(*args):
        with suppress(SurveyError):
            other.work()
        return publish_content(*args)

    with monkeypatch.context() as patch:
        patch.setattr(keeper, "_publish", run_other_keeper_first)
        with pytest.raises(ConflictError, match="deleted the key"):
            keeper.work()
    assert mistakes(store) == ()
    close(store, "small", TODAY)
    assert keeper_at(store, settings, 3).work() == 160 - 50
    assert store.n_released(small.key) == 160


def test_a_keeper_that_reaches_a_release_time_second_leaves_no_private_key(
    store, settings, small, keys, monkeypatch
):
    add(store, small, random_reports(80))
    keeper, rotate = keeper_at(store, settings, 1), store.rotate_keys

    def rotate_second(public_keys, time):
        store.set_release_time(time, *public_keys)
        return rotate(public_keys, time)

    monkeypatch.setattr(store, "rotate_keys", rotate_second)
    before = keys.public_keys()
    with pytest.raises(ConflictError, match="this release time"):
        keeper.work()
    assert keys.public_keys() == before


def test_reports_without_a_public_key_are_not_lost_silently_and_can_be_sent_again(
    store, settings, small, keys, direct_access
):
    """Two keepers at once could store such reports in an earlier version."""

    def lose_key(period: int) -> None:
        which = f"FROM sealing_key WHERE survey = {small.key} AND period = {period}"
        ((public_key,),) = direct_access.run(f"SELECT public_key {which}")
        direct_access.run(f"DELETE {which}")
        keys.destroy(bytes(public_key))

    tokens = [bytes([n]) * 32 for n in range(30)]
    store.add_invitations(small.key, "north", tokens)
    invited = [report(n, stratum="north", invitation=tokens[n]) for n in range(30)]
    add(store, small, invited)
    store.rotate_keys({small.key: keys.create()}, time=0)
    lose_key(1)
    assert keeper_at(store, settings).take_over() == 30
    add(store, small, invited)
    store.rotate_keys({small.key: keys.create()}, time=0)
    lose_key(2)
    close(store, "small", TODAY)
    with pytest.raises(StoreError, match="take-over"):
        keeper_at(store, settings, 1).work()
    assert store.n_pending(small.key) == 30


def test_a_keeper_with_a_wrong_directory_changes_nothing(store, settings, small, tmp_path):
    add(store, small, random_reports(60))
    keys_before = store.sealing_keys()
    wrong = replace(settings, keys=str(tmp_path / "unmounted"))
    with pytest.raises(StoreError, match="check SURVEY_KEYS"):
        keeper_at(store, wrong, 1).work()
    assert store.sealing_keys() == keys_before
    assert keeper_at(store, settings, 1).work() == 25


def test_a_lost_key_is_replaced_before_more_reports_are_sealed_with_it(store, settings, small):
    add(store, small, random_reports(5))
    PrivateKeys(Path(settings.keys)).destroy(*own_keys(store, small))
    with pytest.raises(StoreError, match="take-over"):
        keeper_at(store, settings).work()
    # Later reports are readable, and released although the lost ones are still there.
    add(store, small, random_reports(80))
    with pytest.raises(StoreError, match="take-over"):
        keeper_at(store, settings, 1).work()
    assert store.n_released(small.key) == 50
    assert keeper_at(store, settings, 1).take_over() == 5


def test_the_key_of_a_survey_published_during_a_pass_is_kept(store, settings, small, monkeypatch):
    keeper, copies = keeper_at(store, settings, 1), []
    serve = keeper._serve
    monkeypatch.setattr(
        keeper, "_serve", lambda *a: copies.append(publish_copy(store, "new")) or serve(*a)
    )
    keeper.work()
    add(store, copies[0], random_reports(3))


@pytest.mark.parametrize("read_first", ["sealing_keys", "surveys"])
def test_the_key_of_a_survey_published_while_keys_are_destroyed_is_kept(
    store, settings, small, keys, monkeypatch, read_first
):
    keeper, copies = keeper_at(store, settings, 1), []

    def read_then_publish(read):
        rows = read()
        if not copies:
            copies.append(publish_copy(store, "new"))
        return rows

    for name in ("sealing_keys", "surveys"):
        read = getattr(store, name)
        monkeypatch.setattr(
            store, name, partial(read_then_publish, read) if name == read_first else read
        )
    keeper._destroy_keys()
    (key,) = own_keys(store, copies[0])
    assert keys.find(key) is not None


def test_a_key_is_not_deleted_if_a_report_was_sealed_with_it_after_the_last_check(store, small):
    (key,) = (key for key in store.sealing_keys() if key.survey == small.key)
    assert not store.is_key_needed(key)
    add(store, small, [report(1)])
    with pytest.raises(ConflictError, match="still needs this key"):
        store.delete_keys([key])
    assert pending_reports(store, small) == [report(1)]


@pytest.mark.security
def test_no_two_surveys_share_a_key(store, settings):
    """With a shared key, the reports of one survey would stay readable as long as the other's."""
    tasks = [lambda thread_store, n=n: publish_copy(thread_store, f"copy-{n}") for n in range(8)]
    surveys = run_together(settings, tasks)
    keys = [key.public_key for key in store.sealing_keys()]
    assert set(keys) == set(PRIVATE_KEYS)
    assert len(keys) == len(PRIVATE_KEYS)
    assert {len(own_keys(store, survey)) for survey in surveys} == {1}


def test_a_survey_deleted_while_it_closes_does_not_stop_the_keeper(
    store, settings, small, monkeypatch
):
    add(store, small, random_reports(60))
    store.close_survey("small", TODAY)
    sizes = store.pending_sizes

    def delete_then_count(survey: int) -> dict[str, int]:
        before = sizes(survey)
        if store.versions("small"):
            store.delete_survey("small", TODAY)
        return before

    monkeypatch.setattr(store, "pending_sizes", delete_then_count)
    assert keeper_at(store, settings, 1).work() == 0


def test_a_programming_error_in_one_survey_does_not_stop_the_others(
    store, settings, small, monkeypatch
):
    other = publish_copy(store, "zzz")
    for survey in (small, other):
        add(store, survey, random_reports(60))
    sizes = store.pending_sizes
    monkeypatch.setattr(
        store, "pending_sizes", lambda key: 1 // 0 if key == small.key else sizes(key)
    )
    with pytest.raises(ZeroDivisionError):
        keeper_at(store, settings, 1).work()
    assert store.n_released(other.key) == 25


def test_the_keys_of_surveys_change_together_unless_one_of_them_prevents_it(
    store, settings, small, monkeypatch
):
    surveys = [small, publish_copy(store, "second"), publish_copy(store, "third")]
    rotate, rotated = store.rotate_keys, []

    def rotate_others(public_keys, time):
        rotated.append(sorted(public_keys))
        if locked and small.key in public_keys:
            raise StoreBusyError("lock timeout")
        return rotate(public_keys, time)

    monkeypatch.setattr(store, "rotate_keys", rotate_others)
    keys, locked = [survey.key for survey in surveys], True
    for survey in surveys:
        add(store, survey, random_reports(60))
    keeper = keeper_at(store, settings, 1)
    with pytest.raises(StoreBusyError, match="lock timeout"):
        keeper.work()
    assert rotated[0] == keys
    assert sorted(rotated[1:]) == [[key] for key in keys]
    assert [store.n_released(key) for key in keys] == [0, 25, 25]
    assert keeper.failing() == ["small version 1"]
    locked, rotated[:] = False, []
    for survey in surveys:
        add(store, survey, random_reports(60))
    assert keeper_at(store, settings, 2).work() == 75 + 50 + 50
    assert rotated == [keys]
    assert mistakes(store) == ()


@pytest.mark.security
def test_a_survey_has_its_first_release_at_the_next_time_and_survives_a_clock_that_was_ahead(
    store, settings
):
    survey = publish_copy(store, "late")
    keeper = keeper_at(store, settings, 1.3)
    store.set_release_time(0, survey.key)
    add(store, survey, random_reports(60))
    assert keeper.work() == 0
    assert keeper_at(store, settings, 2).work() == 25
    add(store, survey, random_reports(60))
    assert keeper_at(store, settings, 24 * 365).work() == 50
    add(store, survey, random_reports(60))
    assert keeper_at(store, settings, 3).work() == 0
    assert keeper_at(store, settings, 4).work() == 75


# -- the loop


@pytest.mark.parametrize("error", [StoreBusyError("disk full"), ZeroDivisionError("a mistake")])
def test_the_keeper_survives_an_error_and_logs_it_once_until_it_recurs(
    store, settings, monkeypatch, caplog, error
):
    stop, calls = threading.Event(), []

    def fail() -> int:
        calls.append(1)
        if len(calls) == 5:
            stop.set()
        if len(calls) in (3, 5):
            return 0
        raise error

    keeper = keeper_at(store, settings)
    monkeypatch.setattr(keeper, "work", fail)
    monkeypatch.setattr("survey.collect.release.POLL_SECONDS", 0.001)
    runner = threading.Thread(target=keeper.run, args=[stop])
    runner.start()
    runner.join(20)
    assert len(calls) == 5
    assert caplog.text.count("the keeper failed and will retry") == 2


def test_errors_of_the_keeper_are_logged_even_if_a_survey_fails(
    store, settings, small, monkeypatch, caplog
):
    keeper, stop = keeper_at(store, settings), threading.Event()
    monkeypatch.setattr("survey.collect.release.POLL_SECONDS", 0.001)
    monkeypatch.setattr(keeper, "_serve", lambda *_: 1 / 0)
    runner = threading.Thread(target=keeper.run, args=[stop])
    runner.start()
    wait_until(lambda: "a survey cannot be served" in caplog.text)
    for file in Path(settings.keys).glob("*.key"):
        file.unlink()
    wait_until(lambda: "none of this database's private keys" in caplog.text)
    stop.set()
    runner.join(20)
    assert "division" not in caplog.text.partition("the keeper failed and will retry")[2]


def test_the_keeper_logs_that_no_report_can_be_stored_before_any_arrives(
    store, settings, monkeypatch, caplog
):
    """The servers log no rejected report: a line would show when a device sent one."""
    stop = threading.Event()

    def refuse() -> None:
        stop.set()
        raise StoreBusyError("locked")

    monkeypatch.setattr(store, "check_writable", refuse)
    keeper_at(store, settings).run(stop)
    assert caplog.messages == ["reports cannot be stored for now"]


def add_plain(direct_access, survey, reports, *, is_migrated=True) -> None:
    """Store unsealed reports as a server of an earlier version, before or after the migration."""
    for item in reports:
        values = [survey.key, item.id, item.stratum, item.codes]
        direct_access.run("INSERT INTO inbox VALUES (?, ?, ?, ?)", values)
        if is_migrated:
            place = [survey.key, identity(item.id)]
            direct_access.run("INSERT INTO pending_id VALUES (?, ?)", place)


@pytest.mark.parametrize("is_closed", [False, True])
def test_unsealed_reports_with_and_without_a_recorded_id_are_sealed_once(
    store, settings, small, direct_access, is_closed
):
    migrated, resent = random_reports(30), random_reports(1)
    add_plain(direct_access, small, migrated)
    add(store, small, resent)
    add_plain(direct_access, small, [*random_reports(12), *resent], is_migrated=False)
    if is_closed:
        store.close_survey("small", TODAY)
    else:
        assert keeper_at(store, settings, 1).work() == 0
        assert mistakes(store) == ()
        assert store.n_pending(small.key) == 30 + 12 + 1
        close(store, "small", TODAY)
    assert keeper_at(store, settings, 2).work() == 30 + 12 + 1
    assert store.n_released(small.key) == 30 + 12 + 1
    assert direct_access.run("SELECT count(*) FROM inbox") == [(0,)]
    assert mistakes(store) == ()


def test_reports_of_an_earlier_version_are_sealed_with_a_new_key_if_the_old_one_is_lost(
    store, settings, small, keys, direct_access
):
    add_plain(direct_access, small, random_reports(30))
    store.close_survey("small", TODAY)
    keys.destroy(*own_keys(store, small))
    assert keeper_at(store, settings, 1).work() == 30


def test_reports_of_an_earlier_version_are_sealed_and_released(
    store, settings, small, direct_access
):
    plain = random_reports(60)
    add_plain(direct_access, small, plain)
    assert keeper_at(store, settings, 1).work() == 25
    assert direct_access.run("SELECT count(*) FROM inbox") == [(0,)]
    assert store.n_pending(small.key) == 35
    add(store, small, plain)
    assert store.n_pending(small.key) == 35


@pytest.mark.security
def test_cells_of_an_earlier_version_with_too_few_reports_are_merged_once(store, settings):
    """They were merged whenever they were read; the keeper now merges them for good."""
    content = f'bucket = "day"\n{SMALL}'.encode()
    survey = publish(store, load(content, "s.toml", Caps()), TODAY)
    days = [f"2026-11-0{day}" for day in range(1, 6)]
    sizes = {"north": (40, 30, 9, 20, 3), "south": (30, 0, 50, 0, 0), "east": (9, 7, 0, 5, 2)}
    for stratum, numbers in {**sizes, "west": (0, 4, 0, 0, 0)}.items():
        for day, n in zip(days, numbers, strict=True):
            add(store, survey, random_reports(n, stratum))
            publish_pending(store, survey, 1, bucket=day)
    before, rows = store.tally(survey.key), released_codes(store, survey)
    assert mistakes(store) == ()
    keeper_at(store, settings, 0).work()
    merged = store.cell_sizes(survey.key)
    assert merged == {
        ("north", "2026-11-01/2026-11-05"): 102,
        ("south", "2026-11-01/2026-11-05"): 80,
        (OTHER_GROUPS, "2026-11-01/2026-11-05"): 27,
    }
    assert mistakes(store) == ()
    after = store.tally(survey.key)
    assert (after.n, after.n_asked, after.counts) == (before.n, before.n_asked, before.counts)
    assert after.release > before.release
    assert released_codes(store, survey) == rows
    # Once merged, and with the releases of this version, nothing is merged again.
    add(store, survey, random_reports(60, "north"))
    keeper_at(store, settings, 1).work()
    number = store.newest_release(survey.key).number
    keeper_at(store, settings, 1).work()
    assert store.newest_release(survey.key).number == number
    assert store.cell_sizes(survey.key) == {**merged, ("north", "2026-11-21"): 25}


def mistakes(store) -> tuple[str, ...]:
    with store.snapshot() as snapshot:
        return check(snapshot).mistakes


def released_codes(store, survey) -> Counter[bytes]:
    cells = store.cell_sizes(survey.key)
    return Counter(code for cell in cells for code in store.cell_codes(survey.key, cell))


@pytest.mark.security
@pytest.mark.parametrize("strata", [[""], ["north", "south"]])
def test_a_survey_of_an_earlier_version_with_fewer_than_25_reports_becomes_one_cell(
    store, settings, small, strata
):
    for stratum, bucket in product(strata, ["2026-W40", "2026-W41"]):
        add(store, small, random_reports(5, stratum))
        publish_pending(store, small, 1, bucket=bucket)
    keeper_at(store, settings, 0).work()
    name = strata[0] if len(strata) == 1 else OTHER_GROUPS
    assert store.cell_sizes(small.key) == {(name, "2026-W40/2026-W41"): 10 * len(strata)}


def test_reports_whose_sealing_fails_survive_a_closing(
    store, settings, small, direct_access, monkeypatch
):
    add_plain(direct_access, small, random_reports(30))
    store.close_survey("small", TODAY)
    with monkeypatch.context() as patch:
        patch.setattr(store, "seal_unsealed_reports", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            keeper_at(store, settings, 1).work()
    assert keeper_at(store, settings, 1).work() == 30


def publish_copy(store, slug: str):
    content = SMALL.replace('"small"', f'"{slug}"').encode()
    return publish(store, load(content, "copy.toml", Caps()), TODAY)


def test_a_keeper_skips_passes_only_while_nothing_has_changed(
    store, settings, small, direct_access, monkeypatch
):
    keeper, passes, check_complete = keeper_at(store, settings), [], store.check_complete
    monkeypatch.setattr(store, "check_complete", lambda: (passes.append(1), check_complete()))
    (key,) = [key for key in store.sealing_keys() if key.survey == small.key]
    changes = {
        "the keeper starts": lambda: None,
        "a key is lost": Path(settings.keys, f"{key.public_key.hex()}.key").unlink,
        "an older server stores a report": lambda: direct_access.run(
            "INSERT INTO inbox VALUES (?, ?, '', ?)", [small.key, bytes(16), b"\0\1"]
        ),
        "another survey": lambda: publish_copy(store, "another"),
        "the last day has passed": lambda: store.set_schedule(
            small.key, Schedule(closes=TODAY - timedelta(days=1))
        ),
        "a survey is closed": lambda: close(store, "another", TODAY),
        "a survey is deleted": lambda: store.delete_survey("another", TODAY),
    }
    for name, change in changes.items():
        change()
        for _ in range(5):
            keeper.work()
        assert passes, name
        passes.clear()
        keeper.work()
        assert not passes, name
    assert store.versions("small")[0].state == "closed"
