"""Concurrent requests share a commit; the survey's current state decides each outcome."""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta

import pytest

from survey.collect.incoming_reports import Intake
from survey.collect.invitations import token_hash
from survey.collect.publication import close, publish
from survey.errors import (
    ClosedError,
    ConflictError,
    InvitationError,
    NotFoundError,
    OutdatedError,
    ReportError,
    StoreBusyError,
)
from survey.questionnaire.canonical import read_definition
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.cases import each_case
from tests.conftest import SMALL, TODAY

WAIT = 20.0
TOKENS = [secrets.token_urlsafe(32) for _ in range(8)]


def body(small, codes=(0, 2), *, report_id: str = "", **link: str) -> bytes:
    return report_body(small.sha256, report_id or secrets.token_urlsafe(16), codes, **link)


class HeldStore:
    """A store that begins each commit of reports when the test allows it."""

    def __init__(self, store) -> None:
        self._store = store
        self.started = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)
        self.groups: list[int] = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    def hold_write_lock(self):
        """Let others write while the test holds a commit, as PostgreSQL does."""
        return nullcontext()

    def add_reports(self, reports):
        self.groups.append(len(reports))
        self.started.release()
        assert self.allowed.acquire(timeout=WAIT)
        return self._store.add_reports(reports)


@pytest.fixture
def threads():
    pool = ThreadPoolExecutor(64)
    yield pool
    pool.shutdown()


def send_together(threads, held_store, intake, bodies, slug="small") -> list[Future[None]]:
    """Start the commit of the first report and queue the others behind it in order."""
    first = threads.submit(intake.receive, "small", bodies[0], TODAY)
    assert held_store.started.acquire(timeout=WAIT)
    futures = []
    for number, content in enumerate(bodies[1:], 1):
        futures.append(threads.submit(intake.receive, slug, content, TODAY))
        while len(intake._committer._queue) < number:
            assert not futures[-1].done(), futures[-1].exception()
    held_store.allowed.release(2)
    return [first, *futures]


def test_queued_reports_share_a_commit_and_all_are_stored(threads, store, small):
    held_store = HeldStore(store)
    futures = send_together(
        threads, held_store, Intake(held_store), [body(small) for _ in range(30)]
    )
    for future in futures:
        future.result(WAIT)
    assert held_store.groups == [1, 29]
    assert store.n_pending(small.key) == 30


def test_a_refused_report_does_not_affect_others_in_the_same_commit(threads, store, small):
    held_store = HeldStore(store)
    report_id = secrets.token_urlsafe(16)
    bodies = [
        body(small),
        body(small, report_id=report_id),
        body(small, [1, 1], report_id=report_id),
        body(small, report_id=report_id),
        body(small, invitation=TOKENS[0]),
        body(small),
    ]
    futures = send_together(threads, held_store, Intake(held_store), bodies)
    errors = [type(future.exception(WAIT)) for future in futures]
    nothing = type(None)
    assert errors == [nothing, nothing, nothing, nothing, InvitationError, nothing]
    assert store.n_pending(small.key) == 3


def test_a_survey_closed_between_request_and_commit_accepts_nothing(threads, store, small):
    """A process caches the definition of a survey but never its state."""
    held_store = HeldStore(store)
    intake = Intake(held_store)
    held_store.allowed.release()
    stored_body = body(small)
    intake.receive("small", stored_body, TODAY)
    assert held_store.started.acquire(timeout=WAIT)
    first = threads.submit(intake.receive, "small", body(small), TODAY)
    assert held_store.started.acquire(timeout=WAIT)
    close(store, "small", TODAY)
    held_store.allowed.release(2)
    with pytest.raises(ClosedError):
        first.result(WAIT)
    with pytest.raises(ClosedError):
        intake.receive("small", body(small), TODAY)
    intake.receive("small", stored_body, TODAY)
    assert store.n_pending(small.key) + store.n_released(small.key) == 1


def test_a_version_superseded_twice_accepts_nothing_from_a_process_that_cached_it(store, small):
    intake = Intake(store)
    stored_body = body(small)
    intake.receive("small", stored_body, TODAY)
    for words in ("Both questions", "Just two questions"):
        publish(
            store, load(SMALL.replace("Two questions", words).encode(), "s.toml", Caps()), TODAY
        )
    with pytest.raises(OutdatedError, match="another definition"):
        intake.receive("small", body(small), TODAY)
    intake.receive("small", stored_body, TODAY)
    assert store.n_pending(small.key) == 1


def test_a_version_superseded_long_ago_is_refused_by_the_day_of_the_request(store, small):
    intake = Intake(store)
    changed = load(SMALL.replace("Two questions", "Both questions").encode(), "s.toml", Caps())
    publish(store, changed, TODAY)
    intake.receive("small", body(small), TODAY + timedelta(days=7))
    with pytest.raises(OutdatedError, match="another definition"):
        intake.receive("small", body(small), TODAY + timedelta(days=8))


def test_a_cached_definition_is_neither_read_nor_parsed_again(store, small, monkeypatch):
    lookups = Counter()
    versions = store.versions
    intake = Intake(store)
    intake.receive("small", body(small), TODAY)
    monkeypatch.setattr(store, "versions", lambda slug: lookups.update([slug]) or versions(slug))
    read_definition.cache_clear()
    for _ in range(5):
        intake.receive("small", body(small), TODAY)
    # Each commit reads the state of the survey.
    assert lookups == {"small": 5}
    assert read_definition.cache_info().misses == 0


def test_a_definition_is_not_accepted_under_another_survey_s_address(store, small):
    intake = Intake(store)
    intake.receive("small", body(small), TODAY)
    second_survey = load(SMALL.replace('"small"', '"other"').encode(), "s.toml", Caps())
    publish(store, second_survey, TODAY)
    with pytest.raises(OutdatedError, match="another definition"):
        intake.receive("other", body(small), TODAY)
    with pytest.raises(NotFoundError):
        intake.receive("none", body(small), TODAY)


@pytest.mark.security
def test_exactly_once_also_from_64_threads_at_once(threads, store, small):
    intake = Intake(store)
    for _ in range(20):
        start = threading.Barrier(64)
        content = body(small)

        def send(content: bytes = content, start: threading.Barrier = start) -> None:
            start.wait(WAIT)
            intake.receive("small", content, TODAY)

        for future in [threads.submit(send) for _ in range(64)]:
            future.result(WAIT)
    assert store.n_pending(small.key) == 20


def test_a_store_that_cannot_be_used_is_busy_for_all_and_works_again_afterwards(
    threads, store, small, monkeypatch
):
    def full(*_):
        raise StoreBusyError("disk full")

    intake = Intake(store)
    with monkeypatch.context() as patched:
        patched.setattr(store, "add_reports", full)
        futures = [threads.submit(intake.receive, "small", body(small), TODAY) for _ in range(20)]
        assert all(isinstance(future.exception(WAIT), StoreBusyError) for future in futures)
    intake.receive("small", body(small), TODAY)
    assert store.n_pending(small.key) == 1


# -- invitations


@pytest.fixture
def invited(store, small):
    """Return the survey with four invitations for the north and four for the south."""
    store.add_invitations(small.key, "north", [token_hash(token) for token in TOKENS[:4]])
    store.add_invitations(small.key, "south", [token_hash(token) for token in TOKENS[4:]])
    return small


def test_an_invitation_admits_one_report_and_its_copies(store, invited):
    intake = Intake(store)
    report = body(invited, stratum="north", invitation=TOKENS[0])
    intake.receive("small", report, TODAY)
    intake.receive("small", report, TODAY)
    assert store.n_pending(invited.key) == 1


def test_invalid_invitations_are_refused_and_spend_nothing(store, invited):
    intake = Intake(store)
    intake.receive("small", body(invited, stratum="north", invitation=TOKENS[0]), TODAY)

    @each_case(
        ("link", "error"),
        [
            ({"stratum": "north", "invitation": TOKENS[0]}, InvitationError),  # spent
            ({"stratum": "south", "invitation": TOKENS[1]}, InvitationError),  # another stratum's
            ({"stratum": "", "invitation": TOKENS[1]}, InvitationError),
            ({"stratum": "north", "invitation": "A" * 43}, InvitationError),  # unknown
            ({"stratum": "north", "invitation": ""}, ReportError),
            ({"stratum": "north", "invitation": "A" * 42}, ReportError),
            ({"stratum": "north", "invitation": "A" * 42 + "B"}, ReportError),  # not canonical
            ({"stratum": "north", "invitation": "A" * 42 + "\n"}, ReportError),
            ({"stratum": "n" * 61, "invitation": TOKENS[1]}, ReportError),
            ({"stratum": "north\0", "invitation": TOKENS[1]}, ReportError),
        ],
    )
    def check(link, error):
        with pytest.raises(error):
            intake.receive("small", body(invited, **link), TODAY)
        assert store.n_pending(invited.key) == 1

    check()
    intake.receive("small", body(invited, stratum="north", invitation=TOKENS[1]), TODAY)
    assert store.n_pending(invited.key) == 2


@pytest.mark.security
def test_invitations_one_that_32_devices_send_at_once_admits_one_report(threads, store, invited):
    intake = Intake(store)
    futures = [
        threads.submit(
            intake.receive, "small", body(invited, stratum="south", invitation=TOKENS[4]), TODAY
        )
        for _ in range(32)
    ]
    refusals = [future for future in futures if isinstance(future.exception(WAIT), ConflictError)]
    assert len(refusals) == 31
    assert store.n_pending(invited.key) == 1


def test_no_refusal_of_an_invitation_repeats_it(store, invited):
    for link in (
        {"stratum": "north", "invitation": "A" * 43},
        {"stratum": "secret-stratum", "invitation": ""},
        {"stratum": "secret-stratum", "invitation": TOKENS[0]},
        {"stratum": "", "invitation": "secret-token"},
    ):
        with pytest.raises((ConflictError, ReportError)) as refused:
            Intake(store).receive("small", body(invited, **link), TODAY)
        for text in ("A" * 20, "secret", TOKENS[0]):
            assert text not in json.dumps(str(refused.value))
