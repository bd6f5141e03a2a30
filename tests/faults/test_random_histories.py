"""Random histories of a store: it contains each acknowledged report exactly once."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from survey.app import create_app
from survey.archive import backup, check, copy_store, restore
from survey.collect.publication import close, publish
from survey.disclosure import MINIMUM_REPORTS, n_to_release
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import PrivateKeys, Store, open_store
from tests.archive.interruption import check_progress
from tests.conftest import SECRET, TODAY, long_unless
from tests.faults.reports import JSON, number_survey
from tests.store.databases import KINDS, PostgresqlServer
from tests.store.reports import keeper_at

MAX_UPLOADED = 30
STEPS = 20


class History(RuleBasedStateMachine):
    """Reports with different codes, sent to a server whose store has a random history."""

    def __init__(self, new_database: Callable[[], str], folder: Path) -> None:
        super().__init__()
        self.new_database = new_database
        self.folder = folder
        self.settings = Settings(secret=SECRET, keys=str(folder / secrets.token_hex(4)))
        self.accepted: dict[int, bytes] = {}
        self.hour = 0
        self.is_open = True

    @initialize()
    def publish_survey(self) -> None:
        self.database = self.new_database()
        self.survey = publish(
            self.open_server(), load(number_survey(999), "small.toml", Caps()), TODAY
        )
        self.work()

    def open_server(self) -> Store:
        """Open the store and a server, as a process that has just started."""
        self.store = open_store(self.database)
        self.store.migrate()
        settings = replace(self.settings, database=self.database, password_cost=1)
        self.client = create_app(settings, self.store).test_client()
        self.keys = PrivateKeys(Path(self.settings.keys))
        return self.store

    def body(self, code: int) -> bytes:
        length = self.survey.definition.report_bytes
        return report_body(self.survey.sha256, secrets.token_urlsafe(16), [code], length=length)

    def send(self, body: bytes) -> int:
        response = self.client.post(f"/s/{self.survey.slug}/reports", data=body, headers=JSON)
        return response.status_code

    @rule(n=st.integers(1, MAX_UPLOADED))
    def upload(self, n: int) -> None:
        for _ in range(n):
            code = len(self.accepted)
            body = self.body(code)
            assert self.send(body) == (201 if self.is_open else 410)
            if self.is_open:
                self.accepted[code] = body

    @precondition(lambda self: self.accepted)
    @rule(data=st.data())
    def resend(self, data: st.DataObject) -> None:
        code = data.draw(st.sampled_from(sorted(self.accepted)))
        assert self.send(self.accepted[code]) == 201

    @rule(hours=st.sampled_from([0, 1]))
    def release(self, hours: int) -> None:
        self.hour += hours
        n_due = n_to_release(self.store.n_pending(self.survey.key)) if hours else 0
        assert self.work() == (n_due if self.is_open else 0)

    def work(self) -> int:
        return keeper_at(self.store, self.settings, self.hour).work()

    @precondition(lambda self: self.accepted)
    @rule()
    def close(self) -> None:
        close(self.store, self.survey.slug, TODAY)
        self.is_open = False
        self.hour += 1
        self.work()
        assert self.store.n_pending(self.survey.key) == 0

    @rule()
    def vacuum(self) -> None:
        self.store.vacuum()

    @rule()
    def restart(self) -> None:
        self.store.close_connections()
        self.open_server()

    @rule()
    def continue_with_a_backup(self) -> None:
        file = self.folder / secrets.token_hex(4)
        backup(self.store, file, check_progress)
        self.store.close_connections()
        self.database = self.new_database()
        restore(file, self.open_server(), self.keys, check_progress)
        self.start_keeper()

    @rule()
    def move_to_another_database(self) -> None:
        source = self.store
        self.database = self.new_database()
        copy_store(source, self.open_server(), self.keys, check_progress)
        source.close_connections()
        self.start_keeper()

    def start_keeper(self) -> None:
        """Run the first pass of a keeper, which provides a key for each survey without one."""
        assert self.work() == 0

    @invariant()
    def every_report_is_stored_once(self) -> None:
        key = self.survey.key
        n_pending, tally = self.store.n_pending(key), self.store.tally(key)
        if not self.is_open and len(self.accepted) < MINIMUM_REPORTS:
            assert n_pending == tally.n == 0
            return
        assert n_pending + tally.n == len(self.accepted)
        # A count of two would mean that a report was counted twice.
        counts = tally.counts[0] if tally.n else []
        assert sum(counts) == tally.n
        assert max(counts, default=0) <= 1
        if not n_pending:
            assert all(counts[code] for code in self.accepted)

    @invariant()
    def every_count_agrees(self) -> None:
        with self.store.snapshot() as snapshot:
            assert check(snapshot).mistakes == ()

    def teardown(self) -> None:
        # Closed surveys too: a device that missed the response sends its report again.
        for body in self.accepted.values():
            assert self.send(body) == 201
        self.every_report_is_stored_once()
        self.store.close_connections()


@pytest.mark.parametrize("kind", long_unless(KINDS[:1], KINDS))
@pytest.mark.parametrize("examples", long_unless([3], [3, 100]))
def test_every_acknowledged_report_is_stored_once_after_any_history(
    request, tmp_path, kind, examples
):
    urls: list[str] = []

    def new_database() -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path / secrets.token_hex(6)}.db"
        server: PostgresqlServer = request.getfixturevalue("postgresql")
        urls.append(server.create("unmigrated"))
        return urls[-1]

    # No shrinking: that would take minutes, and the steps of a failure are printed.
    settings = hypothesis.settings(
        hypothesis.settings.default,
        max_examples=examples,
        stateful_step_count=STEPS,
        phases=[hypothesis.Phase.generate],
    )
    try:
        run_state_machine_as_test(lambda: History(new_database, tmp_path), settings=settings)
    finally:
        for url in urls:
            request.getfixturevalue("postgresql").drop(url)
