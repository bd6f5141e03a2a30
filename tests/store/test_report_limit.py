"""A survey never exceeds its maximum number of reports; each commit counts them once."""

from __future__ import annotations

import threading

import pytest

from survey.collect.incoming_reports import Intake
from survey.collect.release import release
from survey.errors import FullError, StoreError
from survey.store import Schedule, open_store
from tests.collect.test_incoming_reports import body
from tests.conftest import TODAY
from tests.store.reports import add, random_reports, report
from tests.store.test_reports import REFUSING


def test_pending_reports_are_counted_once_for_each_commit(store, small, monkeypatch):
    store.set_schedule(small.key, Schedule(maximum=1_000))
    with store._lookup() as transaction:
        kind = type(transaction)
    statements: list[str] = []
    commits: list[int] = []

    def record_statements(run):
        def rows(self, statement, values=()):
            statements.append(statement)
            return run(self, statement, values)

        return rows

    def record_commits(run):
        def add_reports(reports, *maxima):
            commits.append(len(reports))
            return run(reports, *maxima)

        return add_reports

    monkeypatch.setattr(kind, "rows", record_statements(kind.rows))
    monkeypatch.setattr(store, "add_reports", record_commits(store.add_reports))
    intake = Intake(store)
    threads = [
        threading.Thread(target=intake.receive, args=["small", body(small), TODAY])
        for _ in range(64)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(commits) == 64
    assert sum("count(*) FROM inbox" in text for text in statements) == len(commits) < 64


def test_a_group_that_exceeds_the_maximum_is_stored_up_to_it(store, small):
    reports = random_reports(40)
    addressed = [(small.key, item) for item in reports]
    assert store.add_reports(addressed[:10], {small.key: 25}) == [None] * 10
    verdicts = store.add_reports([*addressed, addressed[30]], {small.key: 25})
    assert [verdict is None for verdict in verdicts] == [True] * 25 + [False] * 16
    assert {type(verdict) for verdict in verdicts[25:]} == {FullError}
    assert store.n_pending(small.key) == 25
    # Released reports count too; a resent report that is stored is acknowledged.
    assert release(store, small, 25) == 25
    assert store.add_reports(addressed[:25], {small.key: 25}) == [None] * 25
    assert isinstance(store.add_reports(addressed[25:26], {small.key: 25})[0], FullError)
    assert store.add_reports(addressed[25:26], {small.key: 26}) == [None]


def test_without_a_maximum_nothing_is_counted(store, small, monkeypatch):
    monkeypatch.setattr("survey.store.reports._n_stored", lambda *_: pytest.fail("counted"))
    add(store, small, random_reports(3))
    assert store.add_reports([(small.key, random_reports(1)[0])], {small.key: 0}) == [None]


def test_several_stores_together_never_exceed_the_maximum(store, small, settings):
    def send() -> None:
        thread_store = open_store(settings.database)
        for _ in range(6):
            thread_store.add_reports(
                [(small.key, item) for item in random_reports(7)], {small.key: 100}
            )
        thread_store.close_connections()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.n_pending(small.key) == 100


def test_a_report_that_the_database_refuses_leaves_room_for_another(
    store, small, settings, direct_access
):
    for statement in REFUSING[settings.database.partition(":")[0]]:
        direct_access.run(statement)
    reports = [report(1), report(2, b"\xee\xee"), report(3), report(4)]
    verdicts = store.add_reports([(small.key, item) for item in reports], {small.key: 2})
    assert [type(verdict) for verdict in verdicts] == [
        type(None),
        StoreError,
        type(None),
        FullError,
    ]
