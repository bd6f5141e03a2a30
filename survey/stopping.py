"""How the processes of a server hear that they are to stop, and how a worker ends."""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

STOPPING = {signal.SIGTERM, signal.SIGINT}

NUDGE = signal.SIGURG
"""A signal that means nothing to us, and is ignored where nobody listens to it."""


def hear_signals(heard: Callable[[int], None] = lambda _: None) -> None:
    """Let the main thread run its handlers at once, whichever thread takes a signal.

    The system may hand a signal to any thread, but Python runs its handlers in the main thread
    alone, and while that waits for a lock only a signal of its own wakes it: on a busy machine
    10 of 129 servers that were stopped went on until they were killed. So a thread is told of
    every signal and wakes the main thread. `heard` is called with its number, in that thread.

    To be called by the main thread; handlers may be set before and later.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.signal(NUDGE, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=[read, heard], daemon=True).start()


def _listen(read: int, heard: Callable[[int], None]) -> None:
    waiting = threading.main_thread().ident
    while numbers := os.read(read, 16):
        # What wakes the main thread is told here too.
        for number in set(numbers) - {NUDGE}:
            heard(number)
            if waiting is not None:
                signal.pthread_kill(waiting, NUDGE)


def parting(app: WSGIApplication) -> WSGIApplication:
    """The application of a worker: once told to stop, its next answer on a connection is the last.

    The server asks its connections to end, but one that is never idle may miss that on a busy
    machine, and would hold the worker until it is killed.
    """
    stops = threading.Event()
    # The server's own handlers come later and replace any other.
    hear_signals(lambda number: stops.set() if number in STOPPING else None)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            last = [("Connection", "close")] if stops.is_set() else []
            return start_response(status, [*headers, *last], *rest)

        return app(environ, start)

    return answer


def end_with_parent() -> None:
    """End this worker when the server that started it is gone.

    Orphaned workers would hold the port and take reports that nobody releases.
    """
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=[parent], daemon=True).start()
        atexit.register(_end_now)


def _end_now() -> None:
    """End without taking the interpreter apart, once all that was taken is answered.

    The server's threads outlive it, and the first that looks for it then aborts the process.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_with(parent: BaseProcess) -> None:
    # At once when it is gone, be it before this line: what is acknowledged is on the disk, what
    # is not will be sent again.
    parent.join()
    os._exit(1)
