"""One network cannot hold all places of the shipped nginx: the silent and the slow are sent away."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.deploy.proxy import HOST, Proxy

pytestmark = [pytest.mark.web, pytest.mark.security]

SILENT = 6_000
"""Connections of one address that say nothing; a service may open 1,024 files by itself."""

AT_ONCE = 200
"""Requests of one network that may be under way."""

SLOW_HEAD, SLOW_BODY, SLOW_READER, IDLE = 10, 10, 10, 15
"""Seconds after which each is sent away."""

BEGUN = f"POST /s/small/reports HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 9\r\n\r\nx".encode()
OTHER = "127.0.0.2"


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process may hold as many connections as the test needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = SILENT + 2_000
    assert hard == resource.RLIM_INFINITY or hard >= wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("said", [b"", b"\x16"])
def test_thousands_of_silent_connections_of_one_address_shut_nobody_out(
    behind: Callable[..., Proxy], small, many_files, said
):
    proxy = behind(servers=1)
    with ExitStack() as stack:
        for _ in range(SILENT):
            stack.enter_context(connection := proxy.tcp()).sendall(said)
        for _ in range(20):
            asked = time.monotonic()
            assert proxy.ask("GET", "/s/small", source=OTHER)[0] == 200
            assert time.monotonic() - asked < 5
