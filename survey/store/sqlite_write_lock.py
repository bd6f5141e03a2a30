"""The lock of the writers of a file: first threads queue for it, then processes, each in turn.

SQLite polls its own lock, so that under load the process that has just written gets it again and
again. Here, processes sleep in the kernel until it is their turn, with locks on two files. The
process that waits for the lock itself holds the door; all later ones queue at the door.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from survey.errors import StoreBusyError


class WriteLock:
    """The right to write, among the threads of this process and among processes.

    Each process makes its own: parent and child would hold an inherited lock together.
    """

    def __init__(self, database: Path) -> None:
        owner = database.stat()
        self._threads = threading.Lock()
        self._door = FileLock(database.with_name(database.name + ".door"), owner)
        self._lock = FileLock(database.with_name(database.name + ".lock"), owner)

    @contextmanager
    def acquire(self, seconds: float) -> Iterator[None]:
        """Hold the lock; raise StoreBusyError if it is not free within `seconds`."""
        deadline = monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            raise StoreBusyError("the store is busy: other writers took too long")
        try:
            self._door.acquire(deadline)
            try:
                self._lock.acquire(deadline)
            finally:
                self._door.release()
            try:
                yield
            finally:
                self._lock.release()
        finally:
            self._threads.release()


class FileLock:
    """An exclusive lock on a file that only its owner can open; one thread uses it at a time."""

    def __init__(self, path: Path, owner: os.stat_result) -> None:
        self._path = path
        self._wait: LockWait | None = None
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        weakref.finalize(self, os.close, self._file)
        if os.geteuid() == 0:
            # A command of root must not lock out the server that owns the database.
            os.fchown(self._file, owner.st_uid, owner.st_gid)

    def acquire(self, deadline: float) -> None:
        """Sleep until the lock is free; raise StoreBusyError if it is not by `deadline`."""
        if self._wait is not None and not self._wait.resume():
            self._wait = None
        if self._wait is None:
            if self._try():
                return
            self._wait = LockWait(self._file)
        if not self._wait.ends_with_lock(max(0.0, deadline - monotonic())):
            raise StoreBusyError(f"the store is busy: another process keeps {self._path.name}")
        self._wait = None

    def _try(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock; releasing a lock that is not held changes nothing."""
        fcntl.flock(self._file, fcntl.LOCK_UN)


class LockWait:
    """A thread that sleeps until it has locked a file: the kernel's wait has no deadline.

    If the lock is no longer needed when it comes, it is released at once.
    """

    def __init__(self, file: int) -> None:
        # A second descriptor of the same open file: the lock belongs to the open file.
        self._file = os.dup(file)
        self._changed = threading.Condition()
        self._is_locked = False
        self._is_over = False
        self._is_needed = True
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._changed:
            self._is_locked = self._is_needed
            if not self._is_needed:
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self._is_over = True
            os.close(self._file)
            self._changed.notify()

    def ends_with_lock(self, seconds: float) -> bool:
        """Wait for the lock; return False, and no longer need it, after `seconds`."""
        with self._changed:
            self._is_needed = self._changed.wait_for(lambda: self._is_locked, seconds)
            return self._is_needed

    def resume(self) -> bool:
        """Need the lock again after giving up; return False if it has been released since."""
        with self._changed:
            self._is_needed = not self._is_over
            return self._is_needed
