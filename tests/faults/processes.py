"""The child processes of a server, from /proc."""

from __future__ import annotations

from pathlib import Path


def child_pids(pid: int) -> list[int]:
    """Return the ids of the processes that a process started."""
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            children.append(int(stat.parent.name))
    return children


def generation_pids(pid: int) -> list[int]:
    """Return the ids of the processes that started a server's workers."""
    return [child for child in child_pids(pid) if is_spawned(child)]


def worker_pids(pid: int) -> set[int]:
    """Return the ids of a server's worker processes, also of those that drain."""
    return {
        child
        for generation in generation_pids(pid)
        for child in child_pids(generation)
        if is_spawned(child)
    }


def is_spawned(pid: int) -> bool:
    """Return whether a child process belongs to the server, rather than to a library."""
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
