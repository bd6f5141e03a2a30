"""Group commit: what many threads bring is committed together, and answered only after that.

Threads append under a mutex; whoever holds the lead commits what is queued and passes it on.
Nobody waits forever, a full queue refuses at once, and a leader that fails answers its followers.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from time import monotonic
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from survey.errors import StoreBusyError, SurveyError

Item = TypeVar("Item")
Outcome = SurveyError | None
"""What became of one item: None when it is durable, or the refusal that it alone gets."""

MOST_QUEUED = 256
"""Items that may wait for a commit in one process; more are refused at once."""

MOST_TOGETHER = 128
"""Items of one commit: the last of them waits for the first."""

PATIENCE_SECONDS = 6.0
"""Longest wait for another's commit; above the store's own wait for its lock."""

REFUSING_SECONDS = 1.0
"""When a commit failed after a wait as long as this, whoever comes is refused at once as long.

A commit waits seconds for a store that somebody holds. Without this, everybody in the server's own
queue would wait as long again, one group after the other, to hear the same.
"""

SILENT_SECONDS = 10.0
"""Shortest time between two lines of the log that say the same of the store."""

logger = logging.getLogger(__name__)


class _Ticket(Generic[Item]):
    """One thread's item in the queue, and what the thread waits for."""

    __slots__ = ("is_answered", "item", "leads", "outcome", "woken")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.leads = False
        self.is_answered = False
        self.outcome: Outcome = None
        # A lock that is held until the thread has a reason to go on; cheaper than an Event.
        self.woken = threading.Lock()
        self.woken.acquire()

    def answer(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.is_answered = True
        if not self.leads:
            self.woken.release()


class Committer(Generic[Item]):
    """Commits items in groups through `commit`, one group at a time in this process.

    `commit` makes all items durable in one transaction and returns an outcome for each, in
    order; a SurveyError that it raises is the outcome of all. A forked child begins with an
    empty queue: what its parent's threads wait for is their business.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Item]], Sequence[Outcome]],
        *,
        most_queued: int = MOST_QUEUED,
        most_together: int = MOST_TOGETHER,
        patience_seconds: float = PATIENCE_SECONDS,
        refusing_seconds: float = REFUSING_SECONDS,
    ) -> None:
        self._commit = commit
        self._most_queued = most_queued
        self._most_together = most_together
        self._patience = patience_seconds
        self._refusing_seconds = refusing_seconds
        self.begin_anew()
        _committers.add(self)

    def begin_anew(self) -> None:
        """Forget the queue and its lock, whoever holds it; for a process just forked."""
        self._mutex = threading.Lock()
        # A dict keeps the order and lets a thread that has waited too long leave at once.
        self._queue: dict[_Ticket[Item], None] = {}
        self._is_led = False
        self._silent_until = 0.0
        self._refusing: tuple[float, str] = (0.0, "")

    @property
    def queued(self) -> int:
        """Items that wait for the next commit."""
        return len(self._queue)

    def add(self, item: Item) -> None:
        """Return when `item` is durable, or raise the refusal that it got.

        Raises StoreBusyError when the queue is full, or the commit takes too long: whether the
        item is stored is then not known, and sending it again must be harmless.
        """
        ticket = self._enqueue(item)
        if not ticket.leads:
            self._wait(ticket)
        if ticket.leads:
            self._lead()
        if ticket.outcome is not None:
            raise ticket.outcome

    def _enqueue(self, item: Item) -> _Ticket[Item]:
        ticket = _Ticket(item)
        until, reason = self._refusing
        if monotonic() < until:
            raise StoreBusyError(reason)
        with self._mutex:
            if len(self._queue) >= self._most_queued:
                raise StoreBusyError("too many reports arrive at once; send it again in a moment")
            self._queue[ticket] = None
            ticket.leads = not self._is_led
            self._is_led = True
        return ticket

    def _wait(self, ticket: _Ticket[Item]) -> None:
        """Until the ticket is answered or given the lead, or patience ends."""
        if ticket.woken.acquire(timeout=self._patience):
            return
        with self._mutex:
            # Both may have come between the end of the wait and the mutex.
            if ticket.leads or ticket.is_answered:
                return
            self._queue.pop(ticket, None)
        raise StoreBusyError("storing takes too long just now; send the report again in a moment")

    def _lead(self) -> None:
        """Commit the first of the queue, this thread's own among them, and pass the lead on."""
        group = self._take(self._most_together)
        # What followers hear when this thread dies of something that nobody expects.
        outcomes: Sequence[Outcome] = [_unfinished() for _ in group]
        begun = monotonic()
        try:
            outcomes = self._committed([ticket.item for ticket in group])
        except StoreBusyError as error:
            self._say(error)
            if (now := monotonic()) - begun >= self._refusing_seconds:
                self._refusing = (now + self._refusing_seconds, str(error))
            # Whoever came meanwhile would wait as long, to hear the same.
            group += self._take(self._most_queued)
            outcomes = [StoreBusyError(str(error)) for _ in group]
        finally:
            self._pass_on()
            for ticket, outcome in zip(group, outcomes, strict=True):
                ticket.answer(outcome)

    def _say(self, error: StoreBusyError) -> None:
        """Tell who runs the server, not as often as people are told: a full disk holds logs too."""
        now = monotonic()
        if now >= self._silent_until:
            self._silent_until = now + SILENT_SECONDS
            logger.warning("reports are refused for now", exc_info=error)

    def _take(self, most: int) -> list[_Ticket[Item]]:
        with self._mutex:
            group = list(islice(self._queue, most))
            for ticket in group:
                del self._queue[ticket]
        return group

    def _committed(self, items: Sequence[Item]) -> Sequence[Outcome]:
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
        """Give the lead to whoever waits longest, before the answers: the disk need not idle."""
        with self._mutex:
            heir = next(iter(self._queue), None)
            self._is_led = heir is not None
            if heir is not None:
                heir.leads = True
                heir.woken.release()


def _unfinished() -> StoreBusyError:
    return StoreBusyError("storing was interrupted; send the report again in a moment")


_committers: WeakSet[Committer[Any]] = WeakSet()


def _begin_anew() -> None:
    for committer in _committers:
        committer.begin_anew()


os.register_at_fork(after_in_child=_begin_anew)
