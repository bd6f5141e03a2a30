"""Processes watched at work: what they ask of the kernel."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import wait_until


@contextmanager
def watched(pids: Sequence[int], seen: Path, calls: Sequence[str]) -> Iterator[None]:
    """Write what these processes, and all that they start, ask of the kernel into a file.

    Only the calls named here, in the order in which they happened; a name that this kernel
    does not know is passed over.
    """
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("no strace on the path (apt-get install strace)")
    said = seen.with_suffix(".said")
    traced = "trace=" + ",".join(f"?{name}" for name in calls)
    attached = [word for pid in pids for word in ("-p", str(pid))]
    with said.open("wb") as errors:
        watcher = subprocess.Popen(
            [strace, "-f", "-yy", "-s", "256", "-e", traced, "-o", str(seen), *attached],
            stderr=errors,
        )
        try:
            wait_until(
                lambda: (
                    all(b"Process %d attached" % pid in said.read_bytes() for pid in pids)
                    or watcher.poll() is not None
                )
            )
            if watcher.poll() is not None:
                pytest.skip(f"no process can be watched here: {said.read_text().strip()}")
            yield
        finally:
            watcher.terminate()
            watcher.wait(60)
