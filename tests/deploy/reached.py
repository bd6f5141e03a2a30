"""What processes write, and to whom they speak, as the kernel is asked for it."""

from __future__ import annotations

import re
from pathlib import Path

WRITING = (
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
OPENING = (
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
CONNECTING = ("connect", "bind")
LEAVING = (*WRITING, *OPENING, *CONNECTING)
"""All calls by which something can leave a process."""

CALL = re.compile(r"^\d+ +(\w+)\((.*)$")
OPENED = re.compile(r'"(?P<path>[^"]*)"(?P<flags>.*)$')
TARGET = re.compile(r"^\d+<(?P<target>.*?)>(?:,|\)| <)")
NAMED = re.compile(r'sun_path=@?"[^"]*"|sin6?_addr=[^,}]*|inet_pton\(AF_INET6, "[^"]*"')


def reached(seen: Path) -> set[str]:
    """Files that were opened to be written, and files, pipes and sockets that were written to."""
    found = set()
    for line in seen.read_text(errors="replace").splitlines():
        if call := CALL.match(line):
            found |= _reached(call[1], call[2])
    return found


def _reached(name: str, arguments: str) -> set[str]:
    if name in WRITING:
        target = TARGET.match(arguments)
        assert target, arguments
        return {target["target"]}
    if name in CONNECTING:
        return {f"{name} {address}" for address in NAMED.findall(arguments)}
    opened = OPENED.search(arguments)
    if name.startswith("open") and opened and not re.search("O_WRONLY|O_RDWR", opened["flags"]):
        return set()
    return set(re.findall(r'"([^"]*)"', arguments))
