"""Trace the system calls of running processes, and list the files and addresses they use."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import wait_until

WRITE_CALLS = (
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "sendfile",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "splice",
)
OPEN_CALLS = (
    "open",
    "openat",
    "openat2",
    "creat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "mknod",
    "mknodat",
)
CONNECT_CALLS = ("connect", "bind")
OUTPUT_CALLS = (*WRITE_CALLS, *OPEN_CALLS, *CONNECT_CALLS)
"""All calls through which data can leave a process."""

CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
PATH_AND_FLAGS = re.compile(r'"(?P<path>[^"]*)"(?P<flags>.*)$')
DESCRIPTOR = re.compile(r"^\d+<(?P<target>.*?)>(?:,|\)| <)")
ADDRESS = re.compile(r'sun_path=@?"[^"]*"|sin6?_addr=[^,}]*|inet_pton\(AF_INET6, "[^"]*"')


@contextmanager
def trace(pids: Sequence[int], output: Path, calls: Sequence[str]) -> Iterator[None]:
    """Write the named system calls of these processes and their children to `output`, in order.

    strace ignores names that this kernel does not know.
    """
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("no strace on the path (apt-get install strace)")
    messages = output.with_suffix(".messages")
    selection = "trace=" + ",".join(f"?{name}" for name in calls)
    attach = [word for pid in pids for word in ("-p", str(pid))]
    with messages.open("wb") as errors:
        tracer = subprocess.Popen(
            [strace, "-f", "-yy", "-s", "256", "-e", selection, "-o", str(output), *attach],
            stderr=errors,
        )
        try:
            wait_until(
                lambda: (
                    all(b"Process %d attached" % pid in messages.read_bytes() for pid in pids)
                    or tracer.poll() is not None
                )
            )
            if tracer.poll() is not None:
                pytest.skip(f"strace cannot attach here: {messages.read_text().strip()}")
            yield
        finally:
            tracer.terminate()
            tracer.wait(60)


def output_targets(trace_file: Path) -> set[str]:
    """Return the files, pipes, sockets and addresses to which the traced processes wrote."""
    targets = set()
    for line in trace_file.read_text(errors="replace").splitlines():
        if call := CALL.match(line):
            targets |= _targets_of_call(call[1], call[2])
    return targets


def _targets_of_call(name: str, arguments: str) -> set[str]:
    if name in WRITE_CALLS:
        descriptor = DESCRIPTOR.match(arguments)
        assert descriptor, arguments
        return {descriptor["target"]}
    if name in CONNECT_CALLS:
        return {f"{name} {address}" for address in ADDRESS.findall(arguments)}
    opening = PATH_AND_FLAGS.search(arguments)
    if name.startswith("open") and opening and not re.search("O_WRONLY|O_RDWR", opening["flags"]):
        return set()
    return set(re.findall(r'"([^"]*)"', arguments))
