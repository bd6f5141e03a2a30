"""The turn to write to a SQLite file, seen from outside."""

from __future__ import annotations

import fcntl
from pathlib import Path


def somebody_waits(database: Path) -> bool:
    """Whether somebody stands at the door: the next to write, while another one does."""
    with database.with_name(f"{database.name}.door").open() as door:
        try:
            fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
