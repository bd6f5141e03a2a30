"""Whatever happens to a store in whatever order: each acknowledged report is there exactly once."""

from __future__ import annotations

import secrets
from collections.abc import Callable
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
from survey.collect.release import release
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import Store, open_store
from tests.archive.interruption import check_progress
from tests.conftest import SECRET, TODAY, long_unless
from tests.faults.reports import JSON, number_survey
from tests.store.databases import KINDS, PostgresqlServer

MOST_AT_ONCE = 30
STEPS = 20


class History(RuleBasedStateMachine):
    """Reports with a code of their own each, sent to a server whose store has a history."""

    def __init__(self, fresh: Callable[[], str], folder: Path) -> None:
        super().__init__()
        self.fresh = fresh
        self.folder = folder
        self.accepted: dict[int, bytes] = {}
        self.is_open = True

    @initialize()
    def begin(self) -> None:
        self.database = self.fresh()
        self.survey = publish(self.opened(), load(number_survey(999), "small.toml", Caps()), TODAY)

    def opened(self) -> Store:
        """The store as a process that has just started sees it, with its server."""
        self.store = open_store(self.database)
        self.store.migrate()
        settings = Settings(secret=SECRET, database=self.database, password_cost=1)
        self.client = create_app(settings, self.store).test_client()
        return self.store

    def body(self, code: int) -> bytes:
        length = self.survey.definition.report_bytes
        return report_body(self.survey.sha256, secrets.token_urlsafe(16), [code], length=length)

    def sent(self, body: bytes) -> int:
        found = self.client.post(f"/s/{self.survey.slug}/reports", data=body, headers=JSON)
        return found.status_code

    @rule(n=st.integers(1, MOST_AT_ONCE))
    def upload(self, n: int) -> None:
        for _ in range(n):
            code = len(self.accepted)
            body = self.body(code)
            assert self.sent(body) == (201 if self.is_open else 410)
            if self.is_open:
                self.accepted[code] = body

    @precondition(lambda self: self.accepted)
    @rule(data=st.data())
    def resend(self, data: st.DataObject) -> None:
        code = data.draw(st.sampled_from(sorted(self.accepted)))
        assert self.sent(self.accepted[code]) == 201

    @rule(minimum=st.sampled_from([1, 25]))
    def release(self, minimum: int) -> None:
        waiting = self.store.n_pending(self.survey.key)
        released = release(self.store, self.survey, minimum, clock=lambda: TODAY)
        assert released == (waiting if waiting >= minimum else 0)

    @precondition(lambda self: self.accepted)
    @rule()
    def close(self) -> None:
        close(self.store, self.survey.slug, TODAY)
        self.is_open = False
        assert self.store.n_pending(self.survey.key) == 0

    @rule()
    def vacuum(self) -> None:
        self.store.vacuum()

    @rule()
    def restart(self) -> None:
        self.store.close_connections()
        self.opened()

    @rule()
    def go_on_from_a_backup(self) -> None:
        file = self.folder / secrets.token_hex(4)
        backup(self.store, file, check_progress)
        self.store.close_connections()
        self.database = self.fresh()
        restore(file, self.opened(), check_progress)

    @rule()
    def move_to_another_database(self) -> None:
        source = self.store
        self.database = self.fresh()
        copy_store(source, self.opened(), check_progress)
        source.close_connections()

    @invariant()
    def every_report_is_there_once(self) -> None:
        key = self.survey.key
        waiting, tally = self.store.n_pending(key), self.store.tally(key)
        assert waiting + tally.n == len(self.accepted)
        # A two would be a report that was counted twice.
        counts = tally.counts[0] if tally.n else []
        assert sum(counts) == tally.n
        assert max(counts, default=0) <= 1
        if not waiting:
            assert all(counts[code] for code in self.accepted)

    @invariant()
    def every_count_agrees(self) -> None:
        with self.store.snapshot() as snapshot:
            assert check(snapshot).mistakes == ()

    def teardown(self) -> None:
        # Also of a closed survey: a device whose answer was lost sends again.
        for body in self.accepted.values():
            assert self.sent(body) == 201
        self.every_report_is_there_once()
        self.store.close_connections()


@pytest.mark.parametrize("kind", long_unless(KINDS[:1], KINDS))
@pytest.mark.parametrize("examples", long_unless([3], [3, 100]))
def test_every_acknowledged_report_is_there_once_whatever_happens(
    request, tmp_path, kind, examples
):
    made: list[str] = []

    def fresh() -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path / secrets.token_hex(6)}.db"
        server: PostgresqlServer = request.getfixturevalue("postgresql")
        made.append(server.create())
        return made[-1]

    # As it was found: to make it shorter would take minutes, and the steps are printed.
    settings = hypothesis.settings(
        hypothesis.settings.default,
        max_examples=examples,
        stateful_step_count=STEPS,
        phases=[hypothesis.Phase.generate],
    )
    try:
        run_state_machine_as_test(lambda: History(fresh, tmp_path), settings=settings)
    finally:
        for url in made:
            request.getfixturevalue("postgresql").drop(url)
