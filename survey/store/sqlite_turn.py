"""The turn to write to a file: threads queue for it, then processes, and nobody waits forever.

SQLite's own lock is polled: under load the process that just wrote gets it again and again. Here
processes sleep in the kernel until their turn, by locks on two files of their own: who waits for
the turn itself keeps the door, so that whoever just wrote has to queue behind.
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


class WriteTurn:
    """Who may write, among the threads of this process and among processes.

    Made once per process: a lock that was inherited would belong to parent and child together.
    """

    def __init__(self, database: Path) -> None:
        owner = database.stat()
        self._threads = threading.Lock()
        self._door = FileLock(database.with_name(database.name + ".door"), owner)
        self._turn = FileLock(database.with_name(database.name + ".lock"), owner)

    @contextmanager
    def taken(self, seconds: float) -> Iterator[None]:
        """Hold the turn; StoreBusyError when it does not come within `seconds`."""
        deadline = monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            raise StoreBusyError("the store is busy: other writers took too long")
        try:
            with self._door.held(deadline):
                self._turn.take(deadline)
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._threads.release()


class FileLock:
    """An exclusive lock on a file of its own, readable by its owner alone; one thread at a time."""

    def __init__(self, path: Path, owner: os.stat_result) -> None:
        self._path = path
        self._wait: LockWait | None = None
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        weakref.finalize(self, os.close, self._file)
        if os.geteuid() == 0:
            # A command of root's must not shut out the server, who owns the database.
            os.fchown(self._file, owner.st_uid, owner.st_gid)

    @contextmanager
    def held(self, deadline: float) -> Iterator[None]:
        """Hold the lock for the length of the context."""
        self.take(deadline)
        try:
            yield
        finally:
            self.release()

    def take(self, deadline: float) -> None:
        """Sleep until the lock is ours; StoreBusyError when it is not by `deadline`."""
        if self._wait is not None and not self._wait.is_wanted_again():
            self._wait = None
        if self._wait is None:
            if self._is_free():
                return
            self._wait = LockWait(self._file)
        if not self._wait.ends_with_lock(max(0.0, deadline - monotonic())):
            raise StoreBusyError(f"the store is busy: another process keeps {self._path.name}")
        self._wait = None

    def _is_free(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Give the lock to whoever waits for it."""
        fcntl.flock(self._file, fcntl.LOCK_UN)


class LockWait:
    """A thread that sleeps until a file is locked for us: the kernel's wait knows no deadline.

    When nobody wants the lock any more as it comes, it is given on at once.
    """

    def __init__(self, file: int) -> None:
        # Its own number for the same open file: the lock is the file's, not the number's.
        self._file = os.dup(file)
        self._changed = threading.Condition()
        self._is_locked = False
        self._is_over = False
        self._is_wanted = True
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._changed:
            self._is_locked = self._is_wanted
            if not self._is_wanted:
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self._is_over = True
            os.close(self._file)
            self._changed.notify()

    def ends_with_lock(self, seconds: float) -> bool:
        """Wait for the lock; False when it does not come within `seconds`: then nobody wants it."""
        with self._changed:
            self._is_wanted = self._changed.wait_for(lambda: self._is_locked, seconds)
            return self._is_wanted

    def is_wanted_again(self) -> bool:
        """Take up a wait that was given up; False when its lock has come and gone since."""
        with self._changed:
            self._is_wanted = not self._is_over
            return self._is_wanted
