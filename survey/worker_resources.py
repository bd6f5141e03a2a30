"""Sockets, counters and signals that the server and its workers share."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory, gettempdir

from survey.ops.metrics import ErrorTime, WorkerExits

MAX_CONNECTIONS = 1024
"""Maximum number of connections that a worker accepts, and of those that wait in its queue."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

DRAIN = signal.SIGUSR1
"""The signal that drains a generation or a worker."""

MAX_FOLDER_BYTES = 80
"""Maximum length of the temporary directory's path; a socket's path can have at most 107 bytes."""

WAKE_UP = signal.SIGURG
"""A signal without other uses here; processes without a handler ignore it."""


@dataclass(frozen=True)
class WorkerResources:
    """The resources that the workers of a server receive from it.

    listeners   listening sockets, one for each worker
    n_workers   number of workers
    address     address of the server, for the check of its configuration
    has_keeper  whether the server is also the keeper
    last_error  time of the last error, shared by all processes
    exits       number of workers that ended unexpectedly, shared by all processes
    """

    listeners: Sequence[socket.socket]
    n_workers: int
    address: str
    has_keeper: bool
    last_error: ErrorTime
    exits: WorkerExits


def socket_folder() -> TemporaryDirectory[str]:
    """Return a new directory for a socket, which no other user can open."""
    is_long = len(os.fsencode(gettempdir())) > MAX_FOLDER_BYTES
    folder = "/tmp" if is_long else None  # noqa: S108  only this user can open the directory
    return TemporaryDirectory(prefix="survey-", dir=folder)


def forward_signals(on_signal: Callable[[int], None]) -> None:
    """Make the main thread run its signal handlers at once, whichever thread gets a signal.

    The system may deliver a signal to any thread, but Python runs handlers only in the main
    thread. While that thread waits for a lock, only a signal sent to it wakes it: on a busy
    machine, 10 of 129 servers did not stop until killed. A separate thread therefore receives each
    signal, calls `on_signal` with its number, and wakes the main thread.

    Call this in the main thread, before or after handlers are set.
    """
    source, target = os.pipe()
    os.set_blocking(target, False)
    signal.signal(WAKE_UP, lambda *_: None)
    signal.set_wakeup_fd(target, warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=[source, on_signal], daemon=True).start()


def _listen(pipe: int, on_signal: Callable[[int], None]) -> None:
    main_thread = threading.main_thread().ident
    while numbers := os.read(pipe, 16):
        # The signal that wakes the main thread arrives here too.
        for number in set(numbers) - {WAKE_UP}:
            on_signal(number)
            if main_thread is not None:
                signal.pthread_kill(main_thread, WAKE_UP)
