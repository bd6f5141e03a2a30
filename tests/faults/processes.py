"""The processes of a server: its workers, seen from outside."""

from __future__ import annotations

from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Processes started by a process, from /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def workers_of(pid: int) -> set[int]:
    """The processes of a server that answer requests."""
    return {child for child in children_of(pid) if is_worker(child)}


def is_worker(pid: int) -> bool:
    """Whether a process answers requests; the others look after resources."""
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
