"""What processes write, and to whom they speak, as the kernel is asked for it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import wait_until

WRITING = "write,writev,pwrite64,pwritev,pwritev2,sendfile,sendto,sendmsg,sendmmsg,splice"
OPENING = "open,openat,openat2,creat,rename,renameat,renameat2,link,linkat,mknod,mknodat"
CONNECTING = "connect,bind"

CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
OPENED = re.compile(r'"(?P<path>[^"]*)"(?P<flags>.*)$')
TARGET = re.compile(r"^\d+<(?P<target>.*?)>(?:,|\)| <)")
NAMED = re.compile(r'sun_path=@?"[^"]*"|sin6?_addr=[^,}]*|inet_pton\(AF_INET6, "[^"]*"')


@contextmanager
def watched(pids: Sequence[int], seen: Path) -> Iterator[None]:
    """Write what these processes, and all that they start, ask of the kernel into a file."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("no strace on the path (apt-get install strace)")
    said = seen.with_suffix(".said")
    calls = ",".join(f"?{name}" for name in f"{WRITING},{OPENING},{CONNECTING}".split(","))
    attached = [word for pid in pids for word in ("-p", str(pid))]
    with said.open("wb") as errors:
        watcher = subprocess.Popen(
            [strace, "-f", "-yy", "-s", "256", "-e", f"trace={calls}", "-o", str(seen), *attached],
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
            watcher.wait(20)


def reached(seen: Path) -> set[str]:
    """Files that were opened to be written, and files, pipes and sockets that were written to."""
    found = set()
    for line in seen.read_text(errors="replace").splitlines():
        if call := CALL.match(line):
            found |= _reached(call[1], call[2])
    return found


def _reached(name: str, arguments: str) -> set[str]:
    if name in WRITING.split(","):
        target = TARGET.match(arguments)
        assert target, arguments
        return {target["target"]}
    if name in CONNECTING.split(","):
        return {f"{name} {address}" for address in NAMED.findall(arguments)}
    opened = OPENED.search(arguments)
    if name.startswith("open") and opened and not re.search("O_WRONLY|O_RDWR", opened["flags"]):
        return set()
    return set(re.findall(r'"([^"]*)"', arguments))
