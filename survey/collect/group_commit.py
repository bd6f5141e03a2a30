"""Group commit: commit the items of many requests together, and answer them after the commit.

Threads and coroutines append items to a queue, which one thread commits in groups. It wakes the
coroutines of a group with a single call to their event loop. Every item has a time limit, a
full queue rejects further items at once, and a failed commit answers every item of its group.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from time import monotonic, sleep
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from survey.errors import StoreBusyError, SurveyError

Item = TypeVar("Item")
Outcome = SurveyError | None
"""The outcome of one item: None if it is durable, or the error with which it is refused."""

MAX_QUEUED = 1024
"""Maximum number of items that wait for a commit in one process; others are rejected at once.

A worker accepts as many connections, so only clients that send several requests at once over one
connection can exceed this number.
"""

MAX_GROUP = 128
"""Maximum number of items of one commit, because the last item waits for all others."""

GATHER_SECONDS = 0.004
"""Pause before a commit while reports arrive in quick succession, so that more of them share it.

During the pause, the clients that the last commit answered send their next reports. The pause
halved the number of transactions, each of which costs a database server as much as several reports.
"""

TIMEOUT_SECONDS = 6.0
"""Longest wait for a commit; longer than the store's wait for its lock."""

REFUSAL_SECONDS = 1.0
"""After a commit that took at least this long and failed, new items are refused for as long.

A commit waits seconds for a locked store. Otherwise every group in the queue would wait as long
again, one after the other, for the same refusal.
"""


class _Ticket(Generic[Item]):
    """An item in the queue; a thread waits for its outcome with a lock."""

    __slots__ = ("is_answered", "item", "outcome", "wake_up")

    loop: asyncio.AbstractEventLoop | None = None

    def __init__(self, item: Item) -> None:
        self.item = item
        self.is_answered = False
        self.outcome: BaseException | None = None
        # Locked until the thread can continue; cheaper than an Event.
        self.wake_up = threading.Lock()
        self.wake_up.acquire()

    def wake(self) -> None:
        self.wake_up.release()


class _LoopTicket(_Ticket[Item]):
    """An item in the queue; a coroutine waits for its outcome with a future."""

    __slots__ = ("future", "loop")

    def __init__(self, item: Item, loop: asyncio.AbstractEventLoop) -> None:
        self.item = item
        self.is_answered = False
        self.outcome = None
        self.loop = loop
        self.future = loop.create_future()

    def wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Committer(Generic[Item]):
    """Commits items in groups, one group at a time in this process.

    `commit` makes all items durable in one transaction and returns an outcome for each, in order;
    a SurveyError that it raises is the outcome of all. Each group is taken and committed within
    `write_lock`, which waits for other processes. A forked child starts with an empty queue.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Item]], Sequence[Outcome]],
        *,
        write_lock: Callable[[], AbstractContextManager[None]] = nullcontext,
        max_queued: int = MAX_QUEUED,
        max_group: int = MAX_GROUP,
        timeout_seconds: float = TIMEOUT_SECONDS,
        refusal_seconds: float = REFUSAL_SECONDS,
    ) -> None:
        self._commit = commit
        self._write_lock = write_lock
        self._max_queued = max_queued
        self._max_group = max_group
        self._timeout_seconds = timeout_seconds
        self._refusal_seconds = refusal_seconds
        self.reset()
        _committers.add(self)

    def reset(self) -> None:
        """Replace the queue, the lock (even if held) and the thread in a newly forked process."""
        self._mutex = threading.Lock()
        # A dict keeps the order, and removes an item that has waited too long in constant time.
        self._queue: dict[_Ticket[Item], None] = {}
        self._is_committing = False
        self._must_gather = False
        self._refusal: tuple[float, str] = (0.0, "")
        # The executor starts its thread with the first item, and ends it with this object.
        self._thread = ThreadPoolExecutor(1, "commit")

    def add(self, item: Item) -> None:
        """Return when `item` is durable, or raise the error with which it is refused.

        Raises StoreBusyError if the queue is full or the commit takes too long. Then the item may
        or may not be stored, and adding it again must be harmless.
        """
        ticket = _Ticket(item)
        self._enqueue(ticket)
        if not ticket.wake_up.acquire(timeout=self._timeout_seconds):
            self._give_up(ticket)
        if ticket.outcome is not None:
            raise ticket.outcome

    async def add_from_loop(self, item: Item) -> None:
        """Add an item as `add` does, but in a coroutine and without blocking its event loop."""
        loop = asyncio.get_running_loop()
        ticket = _LoopTicket(item, loop)
        self._enqueue(ticket)
        timer = loop.call_later(self._timeout_seconds, ticket.wake)
        try:
            await ticket.future
        finally:
            timer.cancel()
        if not ticket.is_answered:
            self._give_up(ticket)
        if ticket.outcome is not None:
            raise ticket.outcome

    def _enqueue(self, ticket: _Ticket[Item]) -> None:
        until, reason = self._refusal
        if monotonic() < until:
            raise StoreBusyError(reason)
        with self._mutex:
            if len(self._queue) >= self._max_queued:
                raise StoreBusyError("too many reports arrive at once; send it again in a moment")
            self._queue[ticket] = None
            must_start = not self._is_committing
            self._is_committing = True
        if must_start:
            self._thread.submit(self._commit_all)

    def _give_up(self, ticket: _Ticket[Item]) -> None:
        """Remove a ticket from the queue after its time limit, and raise StoreBusyError."""
        with self._mutex:
            # The answer may have arrived between the time limit and taking the mutex.
            if ticket.is_answered:
                return
            self._queue.pop(ticket, None)
        raise StoreBusyError("storing takes too long; send the report again in a moment")

    def _commit_all(self) -> None:
        """Commit groups until the queue is empty."""
        while True:
            with self._mutex:
                self._is_committing = bool(self._queue)
            if not self._is_committing:
                return
            self._commit_group()

    def _commit_group(self) -> None:
        """Commit the first items of the queue, and answer them."""
        group: list[_Ticket[Item]] = []
        outcomes: Sequence[BaseException | None] = ()
        if self._must_gather:
            sleep(GATHER_SECONDS)
        start = monotonic()
        try:
            with self._write_lock():
                # Take items only now, so that those that arrived during the wait share the commit.
                group = self._take(self._max_group)
                outcomes = self._try_commit([ticket.item for ticket in group])
        except SurveyError as error:
            # Not logged, because a line would show when a respondent sent a report.
            if (now := monotonic()) - start >= self._refusal_seconds:
                self._refusal = (now + self._refusal_seconds, str(error))
            # Items that arrived in the meantime would wait as long for the same error.
            group += self._take(self._max_queued)
            outcomes = [type(error)(str(error)) for _ in group]
        except BaseException as error:  # noqa: BLE001  the first request raises and logs it
            group = group or self._take(1)
            outcomes = [error if n == 0 else _interrupted() for n, _ in enumerate(group)]
        self._must_gather = len(group) > 1
        self._answer(group, outcomes)

    def _take(self, maximum: int) -> list[_Ticket[Item]]:
        with self._mutex:
            group = list(islice(self._queue, maximum))
            for ticket in group:
                del self._queue[ticket]
        return group

    def _try_commit(self, items: Sequence[Item]) -> Sequence[Outcome]:
        try:
            outcomes = self._commit(items)
        except StoreBusyError:
            raise
        except SurveyError as error:
            return [type(error)(str(error)) for _ in items]
        if len(outcomes) != len(items):
            raise RuntimeError(f"{len(outcomes)} outcomes for {len(items)} items")
        return outcomes

    def _answer(
        self, group: Iterable[_Ticket[Item]], outcomes: Iterable[BaseException | None]
    ) -> None:
        """Give each ticket its outcome; wake the coroutines of a loop with one call."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Ticket[Item]]] = {}
        with self._mutex:
            for ticket, outcome in zip(group, outcomes, strict=True):
                ticket.outcome = outcome
                ticket.is_answered = True
        for ticket in group:
            if ticket.loop is None:
                ticket.wake()
            else:
                by_loop.setdefault(ticket.loop, []).append(ticket)
        for loop, tickets in by_loop.items():
            # A closed loop has no waiting coroutines.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_wake_all, tickets)


def _wake_all(tickets: Iterable[_Ticket[Any]]) -> None:
    for ticket in tickets:
        ticket.wake()


def _interrupted() -> StoreBusyError:
    return StoreBusyError("storing was interrupted; send the report again in a moment")


_committers: WeakSet[Committer[Any]] = WeakSet()


def _reset() -> None:
    for committer in _committers:
        committer.reset()


os.register_at_fork(after_in_child=_reset)
