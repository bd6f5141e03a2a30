"""Group commit: every item gets its response after its commit, even if a commit fails."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from survey.collect import group_commit
from survey.collect.group_commit import Committer, Outcome
from survey.errors import ConflictError, StoreBusyError, StoreError
from tests.conftest import wait_until

WAIT = 20.0
"""Maximum number of seconds that a test waits for an event; not a limit on speed."""


class Disk:
    """A store that commits when the test allows it and lists the durable items."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.durable: set[int] = set()
        self.outcome: Callable[[Sequence[int]], Sequence[Outcome]] = lambda items: (
            [None] * len(items)
        )
        self.started = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)

    def commit(self, items: Sequence[int]) -> Sequence[Outcome]:
        self.groups.append(list(items))
        self.started.release()
        assert self.allowed.acquire(timeout=WAIT)
        outcomes = self.outcome(items)
        self.durable.update(items)
        return outcomes

    def wait_for_begin(self) -> None:
        assert self.started.acquire(timeout=WAIT)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def threads():
    pool = ThreadPoolExecutor(64)
    yield pool
    pool.shutdown()


def queued(committer: Committer[int], n: int) -> None:
    wait_until(lambda: len(committer._queue) == n)


def add(threads, committer, items) -> list[Future[None]]:
    """Add each item in a separate thread, in order; return when the last one is queued."""
    futures = []
    for item in items:
        before = len(committer._queue)
        futures.append(threads.submit(committer.add, item))
        queued(committer, before + 1)
    return futures


def begin(threads, committer, disk, item) -> Future[None]:
    """Let a thread add an item and wait until its commit has begun."""
    first = threads.submit(committer.add, item)
    disk.wait_for_begin()
    return first


def test_no_item_gets_a_response_before_the_commit(threads, disk):
    committer = Committer(disk.commit)
    first = begin(threads, committer, disk, 1)
    followers = add(threads, committer, [2, 3])
    time.sleep(0.05)
    assert not any(future.done() for future in (first, *followers))
    disk.allowed.release(2)
    for future in (first, *followers):
        future.result(WAIT)
    assert disk.durable == {1, 2, 3}


def test_items_queued_during_a_commit_are_committed_together_in_order(threads, disk):
    committer = Committer(disk.commit)
    first = begin(threads, committer, disk, 0)
    followers = add(threads, committer, range(1, 6))
    disk.allowed.release(2)
    for future in (first, *followers):
        future.result(WAIT)
    assert disk.groups == [[0], [1, 2, 3, 4, 5]]


def test_a_report_is_never_acknowledged_by_the_commit_of_another(threads, disk):
    committer = Committer(disk.commit)
    first = begin(threads, committer, disk, 1)
    (follower,) = add(threads, committer, [2])
    disk.allowed.release()
    first.result(WAIT)
    disk.wait_for_begin()
    time.sleep(0.05)
    assert not follower.done()
    disk.allowed.release()
    follower.result(WAIT)


def test_each_commit_has_at_most_the_largest_group(threads, disk):
    committer = Committer(disk.commit, max_group=2)
    first = begin(threads, committer, disk, 0)
    followers = add(threads, committer, range(1, 6))
    disk.allowed.release()
    first.result(WAIT)
    disk.allowed.release(3)
    for future in followers:
        future.result(WAIT)
    assert disk.groups == [[0], [1, 2], [3, 4], [5]]


def test_a_refused_item_does_not_affect_others_in_its_group(threads, disk):
    committer = Committer(disk.commit)
    disk.outcome = lambda items: [ConflictError("not this") if i == 2 else None for i in items]
    first = begin(threads, committer, disk, 0)
    before, refused, after = add(threads, committer, [1, 2, 3])
    disk.allowed.release(2)
    with pytest.raises(ConflictError, match="not this"):
        refused.result(WAIT)
    for future in (first, before, after):
        future.result(WAIT)


def test_after_an_unexpected_failure_all_items_are_answered_and_later_items_committed(
    threads, disk
):
    def die(_: Sequence[int]) -> Sequence[Outcome]:
        raise ZeroDivisionError

    committer = Committer(disk.commit)
    first = begin(threads, committer, disk, 0)
    second, follower = add(threads, committer, [1, 2])
    disk.outcome = die
    disk.allowed.release(2)
    for future in (first, second):
        with pytest.raises(ZeroDivisionError):
            future.result(WAIT)
    with pytest.raises(StoreBusyError, match="interrupted"):
        follower.result(WAIT)
    disk.outcome = lambda items: [None] * len(items)
    disk.allowed.release()
    committer.add(3)
    assert disk.groups[-1] == [3]


def test_too_few_outcomes_are_an_error(threads, disk):
    committer = Committer(disk.commit)
    disk.outcome = lambda items: [None] * (len(items) - 1)
    disk.allowed.release()
    with pytest.raises(RuntimeError, match="0 outcomes for 1 items"):
        committer.add(1)


def test_an_error_of_the_whole_commit_refuses_each_item(threads, disk):
    def refuse(_: Sequence[int]) -> Sequence[Outcome]:
        raise StoreError("the database lacks m002")

    committer = Committer(disk.commit)
    disk.outcome = refuse
    first = begin(threads, committer, disk, 0)
    followers = add(threads, committer, [1, 2])
    disk.allowed.release(2)
    errors = [future.exception(WAIT) for future in (first, *followers)]
    assert [str(error) for error in errors] == ["the database lacks m002"] * 3
    assert len({id(error) for error in errors}) == 3


@pytest.mark.parametrize("error", [StoreBusyError("locked"), StoreError("no file")])
def test_an_item_is_rejected_if_waiting_for_the_write_lock_fails(disk, error):
    @contextmanager
    def write_lock():
        raise error
        yield

    committer = Committer(disk.commit, write_lock=write_lock)
    for _ in range(2):
        with pytest.raises(type(error), match=str(error)):
            committer.add(1)
    assert disk.groups == []


def test_a_busy_store_refuses_all_waiting_items_at_once(threads, disk):
    def busy(_: Sequence[int]) -> Sequence[Outcome]:
        raise StoreBusyError("disk full")

    committer = Committer(disk.commit, max_group=1, refusal_seconds=WAIT)
    disk.outcome = busy
    first = begin(threads, committer, disk, 0)
    followers = add(threads, committer, [1, 2, 3])
    disk.allowed.release()
    for future in (first, *followers):
        with pytest.raises(StoreBusyError, match="disk full"):
            future.result(WAIT)
    assert disk.groups == [[0]]
    disk.outcome = lambda items: [None] * len(items)
    disk.allowed.release()
    committer.add(4)


def test_a_full_queue_refuses_at_once_and_accepts_again_when_it_has_room(threads, disk):
    committer = Committer(disk.commit, max_queued=2)
    first = begin(threads, committer, disk, 0)
    followers = add(threads, committer, [1, 2])
    with pytest.raises(StoreBusyError, match="too many reports"):
        committer.add(3)
    disk.allowed.release(3)
    for future in (first, *followers):
        future.result(WAIT)
    committer.add(4)
    assert disk.durable == {0, 1, 2, 4}


def test_no_thread_waits_too_long_and_an_item_that_left_the_queue_is_not_stored(threads, disk):
    committer = Committer(disk.commit, timeout_seconds=0.05)
    first = begin(threads, committer, disk, 0)
    (second,) = add(threads, committer, [1])
    for future in (first, second):
        with pytest.raises(StoreBusyError, match="too long"):
            future.result(WAIT)
    disk.allowed.release(2)
    wait_until(lambda: not committer._is_committing)
    committer.add(2)
    assert disk.groups == [[0], [2]]


class LateLock:
    """A lock whose wait times out just before another thread releases it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def acquire(self, timeout: float) -> bool:
        assert self._lock.acquire(timeout=WAIT)
        self._lock.release()
        return False

    def release(self) -> None:
        self._lock.release()


class LateTicket(group_commit._Ticket[int]):
    def __init__(self, item: int) -> None:
        super().__init__(item)
        self.wake_up = LateLock()


def test_an_answer_at_the_time_limit_is_not_lost(threads, disk, monkeypatch):
    monkeypatch.setattr(group_commit, "_Ticket", LateTicket)
    committer = Committer(disk.commit)
    first = begin(threads, committer, disk, 0)
    followers = add(threads, committer, [1, 2])
    disk.allowed.release(3)
    for future in (first, *followers):
        future.result(WAIT)
    committer.add(3)
    assert disk.groups == [[0], [1, 2], [3]]


def test_coroutines_are_answered_after_the_commit_with_one_call_to_their_loop(disk):
    async def send() -> list[BaseException | None]:
        loop = asyncio.get_running_loop()
        tasks = [asyncio.ensure_future(committer.add_from_loop(0))]
        await asyncio.to_thread(disk.wait_for_begin)
        tasks += [asyncio.ensure_future(committer.add_from_loop(item)) for item in range(1, 6)]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in tasks)
        wake_ups: list[object] = []
        wake = loop.call_soon_threadsafe

        def count(*call, **options):
            wake_ups.append(call)
            return wake(*call, **options)

        loop.call_soon_threadsafe = count
        disk.allowed.release(2)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert len(wake_ups) == 2
        return outcomes

    committer = Committer(disk.commit)
    disk.outcome = lambda items: [ConflictError("not this") if i == 3 else None for i in items]
    outcomes = asyncio.run(send())
    assert [i for i, outcome in enumerate(outcomes) if isinstance(outcome, ConflictError)] == [3]
    assert disk.groups == [[0], [1, 2, 3, 4, 5]]


def test_coroutines_time_out_without_disturbing_later_commits(disk):
    async def send() -> list[BaseException | None]:
        waits = [committer.add_from_loop(item) for item in (0, 1)]
        return await asyncio.gather(*waits, return_exceptions=True)

    committer = Committer(disk.commit, timeout_seconds=0.05)
    outcomes = asyncio.run(send())
    assert ["too long" in str(outcome) for outcome in outcomes] == [True, True]
    # The loop of the item that is being committed is closed now.
    disk.allowed.release(2)
    wait_until(lambda: not committer._is_committing)
    committer.add(2)
    assert disk.groups[-1] == [2]


def test_every_item_is_answered_and_committed_at_most_once(monkeypatch):
    """Many threads add items in groups of every size, and some give up during a commit."""
    monkeypatch.setattr(group_commit, "GATHER_SECONDS", 0)
    durable: list[tuple[int, int]] = []
    acknowledged: set[tuple[int, int]] = set()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def commit(items: Sequence[tuple[int, int]]) -> Sequence[Outcome]:
        durable.extend(items)
        time.sleep(len(items) % 3 / 4000)
        return [None] * len(items)

    committer = Committer(commit, max_queued=8, max_group=4, timeout_seconds=0.002)

    def send(thread: int) -> None:
        for number in range(150):
            with suppress(StoreBusyError):
                committer.add((thread, number))
                acknowledged.add((thread, number))

    try:
        with ThreadPoolExecutor(16) as pool:
            for future in [pool.submit(send, thread) for thread in range(16)]:
                future.result(WAIT)
    finally:
        sys.setswitchinterval(interval)
    assert len(set(durable)) == len(durable)
    assert acknowledged <= set(durable)
    assert len(acknowledged) > 100
    assert not committer._queue
    wait_until(lambda: not committer._is_committing)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_commits_while_its_parent_is_committing(threads, disk):
    committer = Committer(disk.commit)
    first = begin(threads, committer, disk, 0)
    followers = add(threads, committer, [1])
    with committer._mutex:
        child = os.fork()
        if child == 0:
            disk.allowed.release()
            committer.add(2)
            os._exit(0 if disk.groups[-1] == [2] and committer._queue == {} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    disk.allowed.release(2)
    for future in (first, *followers):
        future.result(WAIT)
    assert disk.durable == {0, 1}


@pytest.mark.security
def test_no_log_tells_when_a_report_was_refused(disk, caplog):
    def refuse(_: Sequence[int]) -> Sequence[Outcome]:
        raise StoreBusyError("disk full")

    committer = Committer(refuse)
    for item in range(5):
        with pytest.raises(StoreBusyError):
            committer.add(item)
    assert caplog.messages == []


def test_after_a_long_wait_for_a_locked_store_new_items_are_refused_at_once_for_a_while(
    monkeypatch,
):
    group_sizes: list[int] = []
    now = [1_000.0]
    monkeypatch.setattr(group_commit, "monotonic", lambda: now[0])

    def locked_once(items):
        group_sizes.append(len(items))
        if len(group_sizes) == 1:
            now[0] += 0.2
            raise StoreBusyError("held")
        return [None for _ in items]

    committer = Committer(locked_once, refusal_seconds=0.2)
    with pytest.raises(StoreBusyError, match="held"):
        committer.add(1)
    with pytest.raises(StoreBusyError, match="held"):
        committer.add(2)
    assert group_sizes == [1]
    now[0] += 0.25
    committer.add(3)
    assert group_sizes == [1, 1]


def test_a_store_that_refuses_without_a_wait_is_tried_again_at_once():
    answers = iter([StoreBusyError("full"), None])

    def full_once(items):
        if (answer := next(answers)) is not None:
            raise answer
        return [None for _ in items]

    committer = Committer(full_once)
    with pytest.raises(StoreBusyError, match="full"):
        committer.add(1)
    committer.add(2)
