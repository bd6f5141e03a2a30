"""One network cannot hold all places of the shipped nginx: who is silent or slow is sent away."""

from __future__ import annotations

import resource
import select
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.conftest import wait_until
from tests.deploy.headers import check_own, read
from tests.deploy.proxy import HOST

pytestmark = [pytest.mark.web, pytest.mark.security]

SILENT = 3_000
"""Connections of one address that say nothing; each of two workers may open 1,024 files."""

UNHURRIED = (
    ("client_header_timeout 10s", "client_header_timeout 1h"),
    ("client_body_timeout 10s", "client_body_timeout 1h"),
)
"""Long enough for none to be sent away while the others come."""

LASTING = (("worker_processes auto", "worker_processes 2"), *UNHURRIED)
"""As on two cores, too."""

AT_ONCE = 200
"""Requests of one network that may be under way."""

QUIET = ssl.TLSVersion.TLSv1_2
"""In it nothing comes but answers: what arrives is one, or the end."""

OTHER = "127.0.0.2"
HEAD = f"POST /s/small/reports HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 999\r\n\r\n".encode()
BIG = 30_000_000
"""Bytes of an answer that fit into no buffer on the way."""

SENT_AWAY = {
    "says nothing": (10, b"", 0),
    "has not said all it asks": (10, HEAD[:40], 0),
    "has not sent all": (10, HEAD + b"x", 0),
    "asks no more": (15, f"GET /s/small HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode(), 1),
    "does not read": (10, f"GET /s/big HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode(), 0),
}
"""Seconds after which nginx closes, what was said before, and how many answers are read."""


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process may hold as many connections as a test needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, SILENT + 2_000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# With nothing said nginx may close the oldest for a new one; with one byte it must have the room.
@pytest.mark.parametrize("said", [b"", b"\x16"])
def test_thousands_of_silent_connections_of_one_address_shut_nobody_out(stood_in, many_files, said):
    proxy, _ = stood_in(*LASTING)
    with ExitStack() as stack:
        for _ in range(SILENT):
            connection = stack.enter_context(proxy.tcp())
            connection.sendall(said)
        for _ in range(20):
            assert proxy.ask("GET", "/s/small", source=OTHER)[0] == 200


def test_slow_bodies_of_one_network_are_few_at_once_and_others_are_heard(stood_in):
    often = ("rate=50r/s", "rate=5000r/s"), ("burst=200", "burst=5000")
    proxy, server = stood_in(*UNHURRIED, *often)
    with ExitStack() as stack:
        slow = [stack.enter_context(proxy.tls(newest=QUIET)) for _ in range(AT_ONCE + 50)]
        for connection in slow:
            connection.sendall(HEAD + b"x")
        wait_until(lambda: len(answered(slow)) >= 50)
        refused = [check_too_many(connection) for connection in answered(slow)]
        assert len(refused) == 50
        assert proxy.ask("GET", "/s/small")[0] == 429
        assert proxy.ask("GET", "/s/small", source=OTHER)[0] == 200
    assert {request.method for request in server.heard} == {"GET"}
    # Their places are free again as soon as they are gone.
    wait_until(lambda: proxy.ask("GET", "/s/small")[0] == 200)


def answered(connections: list[ssl.SSLSocket]) -> list[ssl.SSLSocket]:
    """Those on which something arrived."""
    return select.select(connections, [], [], 0)[0]


def check_too_many(connection: ssl.SSLSocket) -> None:
    check_own(read(connection), 429)


def test_whoever_is_slow_is_sent_away_after_the_stated_seconds_and_no_sooner(stood_in):
    proxy, server = stood_in(body=b"x" * BIG)
    with ExitStack() as stack:
        began, left = {}, {}
        poll = select.poll()
        for who, (_, said, answers) in SENT_AWAY.items():
            # Before nginx begins to count, however late this process is heard again.
            came = time.monotonic()
            connection = stack.enter_context(proxy.tls(newest=QUIET) if said else proxy.tcp())
            connection.sendall(said)
            for _ in range(answers):
                assert read(connection)[0] == 200
            began[connection.fileno()] = who, came
            # Of one that does not read it is seen alone that the connection was broken.
            poll.register(connection, 0 if "/big" in str(said) else select.POLLIN)
        deadline = time.monotonic() + 90
        while began and time.monotonic() < deadline:
            for descriptor, _ in poll.poll(100):
                who, since = began.pop(descriptor)
                left[who] = time.monotonic() - since
                poll.unregister(descriptor)
    assert left.keys() == SENT_AWAY.keys()
    for who, (seconds, _, _) in SENT_AWAY.items():
        assert seconds - 1 < left[who] < seconds + 10, who
    assert {request.path for request in server.heard} == {"/s/small", "/s/big"}
