"""The contract of a store: exactly once, nothing readable before release, frozen definitions."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from survey.collect.publication import close, publish
from survey.collect.release import BLOCK_SIZE, ReleaseLoop, release, seal
from survey.errors import (
    ClosedError,
    ConflictError,
    NotFoundError,
    SettingsError,
    StoreBusyError,
    StoreError,
)
from survey.mechanism import grr
from survey.questionnaire.definition import freeze
from survey.questionnaire.native import load
from survey.questionnaire.published import PublishedQuestion
from survey.settings import Caps
from survey.store import ASKED, LastBlock, StoredReport, Waiting, open_store
from survey.store.migrations import migrations
from tests.conftest import SMALL, TODAY


def report(number: int, codes: bytes = b"\x00\x01") -> StoredReport:
    return StoredReport(number.to_bytes(16, "big"), "", codes)


def random_reports(n: int) -> list[StoredReport]:
    return [StoredReport(os.urandom(16), "", bytes([i % 3, i // 3 % 3])) for i in range(n)]


def path_of(settings) -> str:
    return settings.database.removeprefix("sqlite:///")


def raw(settings) -> sqlite3.Connection:
    return sqlite3.connect(path_of(settings), isolation_level=None)


# -- frozen definitions


@pytest.mark.security
@pytest.mark.parametrize("column", ["slug", "version", "definition", "sha256", "key"])
def test_the_database_refuses_any_change_of_a_published_definition(settings, small, column):
    connection = raw(settings)
    value = {"version": 7, "key": 7, "definition": b"{}"}.get(column, "other")
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        connection.execute(f"UPDATE survey SET {column} = ?", [value])
    with pytest.raises(sqlite3.IntegrityError, match="never replaced"):
        connection.execute("INSERT OR REPLACE INTO survey SELECT * FROM survey")
    connection.close()


def test_the_same_definition_is_published_once(store, small):
    with pytest.raises(ConflictError, match="version 1"):
        publish(store, load(SMALL.encode(), "small.toml", Caps()), TODAY)


def test_a_changed_definition_becomes_the_next_version(store, small):
    changed = load(SMALL.replace("Two questions", "Two short questions").encode(), "s.toml", Caps())
    second = publish(store, changed, TODAY)
    assert second.version == 2
    assert [(s.version, s.state) for s in store.versions("small")] == [
        (2, "open"),
        (1, "superseded"),
    ]


def test_two_people_publishing_at_once_get_no_hole_and_no_double(store, small):
    definition = freeze(load(SMALL.encode(), "small.toml", Caps()), 5)
    with pytest.raises(ConflictError, match="the next is 2"):
        store.publish(definition, TODAY)


# -- reports


def test_a_resent_report_is_stored_once(store, small):
    for _ in range(3):
        store.add_report(small.key, report(1))
    assert store.waiting(small.key) == 1


@pytest.mark.parametrize("other", [b"\x01\x01", b"\x00\x00"])
def test_the_same_id_with_other_codes_is_a_conflict_and_changes_nothing(store, small, other):
    store.add_report(small.key, report(1))
    with pytest.raises(ConflictError):
        store.add_report(small.key, report(1, other))
    assert store.waiting(small.key) == 1


def test_a_released_report_is_still_known_by_its_id(store, small):
    for number in range(30):
        store.add_report(small.key, report(number))
    assert release(store, small, 25) == 30
    store.add_report(small.key, report(3))
    assert store.waiting(small.key) == 0
    assert store.tally(small.key).n == 30


def test_the_same_report_from_64_threads_at_once_is_one_row(store, settings, small):
    failures: list[Exception] = []

    def send(number: int) -> None:
        own = open_store(settings.database)
        try:
            for i in range(5):
                own.add_report(small.key, report(i))
        except Exception as error:  # noqa: BLE001  whatever it is, the test shows it
            failures.append(error)
        finally:
            own.close_connections()

    threads = [threading.Thread(target=send, args=[i]) for i in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert store.waiting(small.key) == 5


def test_a_closed_survey_takes_no_more_reports_and_releases_what_waits(store, small):
    for number in range(7):
        store.add_report(small.key, report(number))
    assert close(store, "small", TODAY) == 1
    with pytest.raises(ClosedError):
        store.add_report(small.key, report(8))
    store.add_report(small.key, report(3))  # known: its sender learns that it arrived
    assert store.tally(small.key).n == 7
    assert close(store, "small", TODAY) == 0


def test_a_close_that_was_interrupted_is_finished_by_closing_again(store, small, settings):
    for number in range(7):
        store.add_report(small.key, report(number))
    store.close_survey("small", TODAY)  # and then the power failed
    assert store.tally(small.key).n == 0
    assert close(store, "small", TODAY)
    assert store.tally(small.key).n == 7


def test_a_close_whose_rewriting_failed_is_finished_by_closing_again(store, small, monkeypatch):
    for each in random_reports(3000):
        store.add_report(small.key, each)
    vacuum = store.vacuum

    def fails_once():
        monkeypatch.setattr(store, "vacuum", vacuum)
        raise StoreBusyError("full")

    monkeypatch.setattr(store, "vacuum", fails_once)
    with pytest.raises(StoreBusyError):
        close(store, "small", TODAY)
    assert store.has_free_pages()
    close(store, "small", TODAY)
    assert not store.has_free_pages()


def test_a_close_that_was_interrupted_is_finished_by_the_release_loop(store, small, settings):
    store.add_report(small.key, report(1))
    store.close_survey("small", TODAY)
    assert ReleaseLoop(store, settings).look(0.0) == 1


def test_a_reader_never_holds_up_a_release_and_the_log_is_cut_afterwards(store, small, settings):
    for number in range(30):
        store.add_report(small.key, report(number))
    reader = raw(settings)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM inbox").fetchone()
    log = Path(path_of(settings) + "-wal")
    assert release(store, small, 25) == 30
    assert log.stat().st_size > 0
    reader.execute("COMMIT")
    reader.close()
    ReleaseLoop(store, settings).tidy(TODAY)
    assert log.stat().st_size == 0


def test_the_release_loop_survives_a_store_that_fails_for_a_while(store, small, settings, caplog):
    loop = ReleaseLoop(store, settings)
    stop = threading.Event()
    failures = iter([StoreError("the database refused: disk I/O error"), StoreBusyError("full")])

    def look(_):
        failure = next(failures, None)
        if failure is None:
            stop.set()
            return 0
        raise failure

    loop.look = look
    loop.run(stop)
    assert "disk I/O error" in caplog.text
    assert "full" in caplog.text


def test_a_published_survey_is_not_deleted_before_its_reports(store, small, settings):
    store.add_report(small.key, report(1))
    connection = raw(settings)
    with pytest.raises(sqlite3.IntegrityError, match="after its reports"):
        connection.execute("DELETE FROM survey")
    connection.close()


@pytest.mark.security
def test_no_arrival_order_in_the_files_pages_after_close(store, small, settings):
    """Reports come in the order of their codes; the file holds them in no order: .50 +- .02."""
    for i in range(4000):
        code = bytes([i // 1400, 0])
        store.add_report(small.key, StoredReport(os.urandom(16), "", code))
    close(store, "small", TODAY)
    connection = raw(settings)
    (data,) = connection.execute("SELECT data FROM block WHERE question = 0").fetchone()
    connection.close()
    codes = np.frombuffer(data, np.uint8).astype(int)
    steps = np.diff(codes)
    assert abs((steps > 0).sum() / (steps != 0).sum() - 0.5) < 0.02
    # A file that kept the order would have two steps up and none down.
    assert (steps != 0).sum() > 1000


def test_ids_are_forgotten_when_nobody_will_send_them_again(store, small, settings):
    store.add_report(small.key, report(1))
    close(store, "small", TODAY)
    loop = ReleaseLoop(store, settings)
    loop.tidy(TODAY + timedelta(days=7))
    assert store.knows_report(small.key, report(1))
    loop.tidy(TODAY + timedelta(days=8))
    assert not store.knows_report(small.key, report(1))


# -- release


def test_nothing_is_readable_before_25_reports_are_released_together(store, small):
    for number in range(24):
        store.add_report(small.key, report(number))
    assert release(store, small, 25) == 0
    assert (store.tally(small.key).n, store.released(small.key)) == (0, 0)
    assert store.blocks(small.key, 0) == []
    store.add_report(small.key, report(24))
    assert release(store, small, 25) == 25
    assert store.tally(small.key).counts == [[25, 0, 0], [0, 25, 0]]


def test_counts_and_blocks_agree_after_many_releases(store, small):
    sent = Counter()
    for step in range(6):
        for each in random_reports(25 + 10 * step):
            store.add_report(small.key, each)
            sent[each.codes] += 1
        release(store, small, 25)
    columns = [
        np.frombuffer(b"".join(b.data for b in store.blocks(small.key, question)), np.uint8)
        for question in (0, 1)
    ]
    # Codes of one report stay together through every shuffle: cross-tabs are the sent ones.
    pairs = Counter(bytes(pair) for pair in np.stack(columns, axis=1))
    assert pairs == sent
    tally = store.tally(small.key)
    assert tally.n == sent.total()
    assert tally.counts == [np.bincount(column, minlength=3).tolist() for column in columns]


def test_no_report_is_doubled_or_lost_between_senders_and_releases(store, settings, small):
    """Each report is sent twice while another thread releases."""
    reports = random_reports(200)
    done = threading.Event()

    def keep_releasing() -> None:
        own = open_store(settings.database)
        while not done.is_set():
            release(own, small, 25)
        own.close_connections()

    releasing = threading.Thread(target=keep_releasing)
    releasing.start()
    for each in reports + reports:
        store.add_report(small.key, each)
    done.set()
    releasing.join()
    close(store, "small", TODAY)
    assert store.tally(small.key).n == 200


def question_of(k: int) -> PublishedQuestion:
    return PublishedQuestion(
        id="q",
        type="single_choice",
        text="Q?",
        options=(),
        grid=None,
        max_ticks=0,
        alone=0,
        opt_out="",
        not_applicable="",
        ask_if=None,
        mechanism="grr",
        stated={},
        channel=grr(k, "3/4"),
        nullable=False,
    )


OCTET = [question_of(256)]
"""One question whose codes fill a byte."""


def test_blocks_grow_to_their_size_and_then_a_new_one_begins():
    full = [bytes([1]) * (BLOCK_SIZE - 10)]
    sealed = seal(OCTET, [Waiting("", [b"\x02"] * 30, LastBlock(4, full))])
    assert [(c.block, c.n) for c in sealed.columns] == [(4, BLOCK_SIZE), (5, 20)]
    assert sealed.counts == {("", 0, ASKED): 30, ("", 0, 2): 30}
    exact = [bytes([1]) * BLOCK_SIZE]
    assert [
        c.block for c in seal(OCTET, [Waiting("", [b"\x02"], LastBlock(4, exact))]).columns
    ] == [5]


@pytest.mark.security
def test_a_release_leaves_no_trace_of_the_order_of_arrival():
    """Order statistic: for how many neighbours does the later one come later? .50 +- .02."""
    n = 20_000
    waiting = [(i // 100).to_bytes(1, "big") for i in range(n)]
    column = next(iter(seal(OCTET, [Waiting("", waiting, None)]).columns)).data
    codes = np.frombuffer(column, np.uint8).astype(int)
    steps = np.diff(codes)
    assert abs((steps > 0).sum() / (steps != 0).sum() - 0.5) < 0.02
    # New reports do not stay at the end of the block they join.
    old = seal(OCTET, [Waiting("", [b"\x00"] * n, None)]).columns[0].data
    mixed = np.frombuffer(
        seal(OCTET, [Waiting("", [b"\x01"] * n, LastBlock(0, [old]))]).columns[0].data, np.uint8
    )
    assert abs(mixed[:n].mean() - 0.5) < 0.02


@pytest.mark.security
def test_nothing_of_single_reports_stays_in_the_files_after_close(store, settings, small):
    reports = random_reports(60)
    for each in reports:
        store.add_report(small.key, each)
    close(store, "small", TODAY)
    ReleaseLoop(store, settings).tidy(TODAY + timedelta(days=8))
    content = b"".join(file.read_bytes() for file in Path(path_of(settings)).parent.iterdir())
    assert not [each for each in reports if each.id in content]


def test_the_release_loop_releases_what_is_due_and_only_that(store, settings, small):
    loop = ReleaseLoop(store, settings)
    for number in range(24):
        store.add_report(small.key, report(number))
    assert loop.look(0.0) == 0
    store.add_report(small.key, report(24))
    assert loop.look(1.0) == 25
    for number in range(100, 125):
        store.add_report(small.key, report(number))
    assert loop.look(2.0) == 25  # 25 are 100% of what is released


@pytest.mark.security
def test_report_tables_have_no_clock_no_address_and_no_order(settings, store):
    connection = raw(settings)
    for table in ("inbox", "seen", "block", "counts"):
        (statement,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = ?", [table]
        ).fetchone()
        assert "WITHOUT ROWID" in statement
        names = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        assert names <= {
            "survey",
            "id",
            "stratum",
            "codes",
            "bucket",
            "question",
            "block",
            "n",
            "data",
            "option",
        }
    connection.close()


# -- the file


def test_every_connection_waits_for_the_disk(store, small):
    connection = store._database().conn
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)


@pytest.mark.security
def test_the_database_is_readable_by_its_owner_alone(settings, store, small):
    store.add_report(small.key, report(1))
    path = path_of(settings)
    for end in ("", "-wal", "-shm"):
        assert stat.S_IMODE(Path(path + end).stat().st_mode) == 0o600


def test_a_locked_database_is_busy_and_nothing_is_stored(store, settings, small, monkeypatch):
    store._database().conn.execute("PRAGMA busy_timeout = 50")
    blocker = raw(settings)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError):
        store.add_report(small.key, report(1))
    blocker.execute("ROLLBACK")
    blocker.close()
    assert store.waiting(small.key) == 0
    store.add_report(small.key, report(1))


def test_a_missing_or_outdated_database_is_refused_with_the_command_to_run(tmp_path):
    missing = open_store(f"sqlite:///{tmp_path / 'none.db'}")
    assert missing.pending_migrations()
    with pytest.raises(StoreError, match="survey migrate"):
        missing.surveys()
    assert not (tmp_path / "none.db").exists()
    outdated = tmp_path / "empty.db"
    outdated.touch(mode=0o600)
    with pytest.raises(StoreError, match="survey migrate"):
        open_store(f"sqlite:///{outdated}").surveys()


def test_migrating_twice_does_nothing_the_second_time(tmp_path):
    fresh = open_store(f"sqlite:///{tmp_path / 'x.db'}")
    assert fresh.migrate() == [step.name for step in migrations._migrations]
    assert fresh.migrate() == []
    fresh.close_connections()


@pytest.mark.parametrize("url", ["postgresql://x", "sqlite:///", "sqlite://x", "survey.db"])
def test_a_database_url_of_another_kind_is_refused(url):
    with pytest.raises(SettingsError, match="sqlite:///PATH"):
        open_store(url)


def test_a_survey_that_is_not_there_is_named(store):
    with pytest.raises(NotFoundError):
        store.tally(99)
    with pytest.raises(NotFoundError):
        close(store, "nothing", TODAY)
