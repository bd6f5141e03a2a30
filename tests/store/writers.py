"""The queue of writers to a SQLite file, seen from another process."""

from __future__ import annotations

import fcntl
from pathlib import Path


def has_waiting_writer(database: Path) -> bool:
    """Return whether the next writer holds the door lock and waits for the current writer."""
    with database.with_name(f"{database.name}.door").open() as door:
        try:
            fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
