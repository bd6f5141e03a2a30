"""Group commit: items of many threads are committed together, and answered after the commit.

Threads append items to a queue. One of them leads: it commits the items in the queue and passes
the lead on. No thread waits for ever, a full queue refuses at once, and a leader that fails
answers its followers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from time import monotonic
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from survey.errors import StoreBusyError, SurveyError

Item = TypeVar("Item")
Outcome = SurveyError | None
"""The outcome of one item: None if it is durable, or the error with which it is refused."""

MAX_QUEUED = 256
"""Most items that wait for a commit in one process; more are refused at once."""

MAX_GROUP = 128
"""Most items of one commit: the last item waits for all before it."""

TIMEOUT_SECONDS = 6.0
"""Longest wait for a leader's commit; longer than the store's wait for its lock."""

REFUSAL_SECONDS = 1.0
"""After a commit that took at least this long and failed, new items are refused for as long.

A commit waits seconds for a locked store. Otherwise every group in the queue would wait as long
again, one after the other, for the same refusal.
"""


class _Ticket(Generic[Item]):
    """A thread's item in the queue, and the lock with which the thread waits for its outcome."""

    __slots__ = ("is_answered", "item", "leads", "outcome", "wake_up")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.leads = False
        self.is_answered = False
        self.outcome: Outcome = None
        # Locked until the thread can continue; cheaper than an Event.
        self.wake_up = threading.Lock()
        self.wake_up.acquire()

    def answer(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.is_answered = True
        if not self.leads:
            self.wake_up.release()


class Committer(Generic[Item]):
    """Commits items in groups, one group at a time in this process.

    `commit` makes all items durable in one transaction and returns an outcome for each, in order;
    a SurveyError that it raises is the outcome of all. Each group is taken and committed within
    `turn`, which waits for other processes. A forked child starts with an empty queue.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Item]], Sequence[Outcome]],
        *,
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
        max_queued: int = MAX_QUEUED,
        max_group: int = MAX_GROUP,
        timeout_seconds: float = TIMEOUT_SECONDS,
        refusal_seconds: float = REFUSAL_SECONDS,
    ) -> None:
        self._commit = commit
        self._turn = turn
        self._max_queued = max_queued
        self._max_group = max_group
        self._timeout_seconds = timeout_seconds
        self._refusal_seconds = refusal_seconds
        self.reset()
        _committers.add(self)

    def reset(self) -> None:
        """Replace the queue and its lock, even a locked one, in a process just forked."""
        self._mutex = threading.Lock()
        # A dict keeps the order, and removes a thread that has waited too long in constant time.
        self._queue: dict[_Ticket[Item], None] = {}
        self._has_leader = False
        self._refusal: tuple[float, str] = (0.0, "")

    def add(self, item: Item) -> None:
        """Return when `item` is durable, or raise the error with which it is refused.

        Raises StoreBusyError if the queue is full or the commit takes too long. Then the item may
        or may not be stored, and adding it again must be harmless.
        """
        ticket = self._enqueue(item)
        if not ticket.leads:
            self._wait(ticket)
        if ticket.leads:
            self._lead()
        if not ticket.is_answered:
            raise _interrupted()
        if ticket.outcome is not None:
            raise ticket.outcome

    def _enqueue(self, item: Item) -> _Ticket[Item]:
        ticket = _Ticket(item)
        until, reason = self._refusal
        if monotonic() < until:
            raise StoreBusyError(reason)
        with self._mutex:
            if len(self._queue) >= self._max_queued:
                raise StoreBusyError("too many reports arrive at once; send it again in a moment")
            self._queue[ticket] = None
            ticket.leads = not self._has_leader
            self._has_leader = True
        return ticket

    def _wait(self, ticket: _Ticket[Item]) -> None:
        """Wait until the ticket is answered or leads; raise StoreBusyError after too long."""
        if ticket.wake_up.acquire(timeout=self._timeout_seconds):
            return
        with self._mutex:
            # Either may have happened between the end of the wait and taking the mutex.
            if ticket.leads or ticket.is_answered:
                return
            self._queue.pop(ticket, None)
        raise StoreBusyError("storing takes too long; send the report again in a moment")

    def _lead(self) -> None:
        """Commit the first items of the queue, including this thread's, and pass the lead on."""
        group: list[_Ticket[Item]] = []
        outcomes: Sequence[Outcome] = ()
        start = monotonic()
        try:
            with self._turn():
                # Taken only now, so that items that arrived during the wait share the commit.
                group = self._take(self._max_group)
                # The outcome of all items if this thread ends with an unexpected error.
                outcomes = [_interrupted() for _ in group]
                outcomes = self._try_commit([ticket.item for ticket in group])
        except SurveyError as error:
            # Not logged, because a line would show when somebody sent a report.
            if (now := monotonic()) - start >= self._refusal_seconds:
                self._refusal = (now + self._refusal_seconds, str(error))
            # Items that arrived meanwhile would wait as long for the same refusal.
            group += self._take(self._max_queued)
            outcomes = [type(error)(str(error)) for _ in group]
        finally:
            self._pass_on()
            for ticket, outcome in zip(group, outcomes, strict=True):
                ticket.answer(outcome)

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

    def _pass_on(self) -> None:
        """Give the lead to the first thread in the queue, before answering: the disk stays busy."""
        with self._mutex:
            heir = next(iter(self._queue), None)
            self._has_leader = heir is not None
            if heir is not None:
                heir.leads = True
                heir.wake_up.release()


def _interrupted() -> StoreBusyError:
    return StoreBusyError("storing was interrupted; send the report again in a moment")


_committers: WeakSet[Committer[Any]] = WeakSet()


def _reset() -> None:
    for committer in _committers:
        committer.reset()


os.register_at_fork(after_in_child=_reset)
