"""One network cannot use up nginx's connections: idle and slow clients are disconnected."""

from __future__ import annotations

import resource
import select
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.conftest import wait_until
from tests.deploy.headers import check_nginx, read_answer
from tests.deploy.proxy import HOST

pytestmark = [pytest.mark.web, pytest.mark.security]

IDLE = 3_000
"""Idle connections from one address; each of two nginx workers may open 1,024 files."""

PATIENT = (
    ("client_header_timeout 10s", "client_header_timeout 1h"),
    ("client_body_timeout 10s", "client_body_timeout 1h"),
)
"""Time-outs long enough that no client is disconnected while others connect."""

PATIENT_TWO_WORKERS = (("worker_processes auto", "worker_processes 2"), *PATIENT)
"""Time-outs as above, with two workers as on a machine with two cores."""

MAX_SIMULTANEOUS = 200
"""Maximum number of simultaneous requests from one network."""

TLS_1_2 = ssl.TLSVersion.TLSv1_2
"""This version sends no session tickets: readable data are a response or the end."""

OTHER_NETWORK = "127.0.0.2"
HEAD = f"POST /s/small/reports HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 999\r\n\r\n".encode()
LARGE = 30_000_000
"""Size in bytes of a response that exceeds all buffers."""

TIMEOUTS = {
    "sends nothing": (10, b"", 0),
    "sends part of a head": (10, HEAD[:40], 0),
    "sends part of a body": (10, HEAD + b"x", 0),
    "stays idle after a response": (
        15,
        f"GET /s/small HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode(),
        1,
    ),
    "does not read the response": (
        10,
        f"GET /s/big HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode(),
        0,
    ),
}
"""For each client: seconds until nginx disconnects it, bytes it sends, responses it reads."""


@pytest.fixture
def many_files() -> Iterator[None]:
    """Raise this process's limit of open files to what the test needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, IDLE + 2_000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# nginx may replace the oldest connection that sent nothing; one that sent a byte keeps its slot.
@pytest.mark.parametrize("greeting", [b"", b"\x16"])
def test_thousands_of_idle_connections_from_one_address_exclude_no_other_client(
    stub_proxy, many_files, greeting
):
    proxy, _ = stub_proxy(*PATIENT_TWO_WORKERS)
    with ExitStack() as stack:
        for _ in range(IDLE):
            connection = stack.enter_context(proxy.tcp())
            connection.sendall(greeting)
        for _ in range(20):
            assert proxy.ask("GET", "/s/small", source=OTHER_NETWORK)[0] == 200


def test_one_network_may_send_few_slow_bodies_and_others_are_served(stub_proxy):
    high_rates = ("rate=50r/s", "rate=5000r/s"), ("burst=200", "burst=5000")
    proxy, server = stub_proxy(*PATIENT, *high_rates)
    with ExitStack() as stack:
        slow = [
            stack.enter_context(proxy.tls(newest=TLS_1_2)) for _ in range(MAX_SIMULTANEOUS + 50)
        ]
        for connection in slow:
            connection.sendall(HEAD + b"x")
        wait_until(lambda: len(readable(slow)) >= 50)
        rejected = readable(slow)
        for connection in rejected:
            check_nginx(read_answer(connection), 429)
        assert len(rejected) == 50
        assert proxy.ask("GET", "/s/small")[0] == 429
        assert proxy.ask("GET", "/s/small", source=OTHER_NETWORK)[0] == 200
    assert {request.method for request in server.requests} == {"GET"}
    # Their slots are free again once they disconnect.
    wait_until(lambda: proxy.ask("GET", "/s/small")[0] == 200)


def readable(connections: list[ssl.SSLSocket]) -> list[ssl.SSLSocket]:
    """Return the connections that have data to read."""
    return select.select(connections, [], [], 0)[0]


def test_slow_clients_are_disconnected_after_the_stated_seconds_and_no_sooner(stub_proxy):
    proxy, server = stub_proxy(body=b"x" * LARGE)
    with ExitStack() as stack:
        open_connections, durations = {}, {}
        poll = select.poll()
        for client, (_, request, answers) in TIMEOUTS.items():
            # Start the clock before nginx does, in case this process is suspended.
            start = time.monotonic()
            connection = stack.enter_context(proxy.tls(newest=TLS_1_2) if request else proxy.tcp())
            connection.sendall(request)
            for _ in range(answers):
                assert read_answer(connection)[0] == 200
            open_connections[connection.fileno()] = client, start
            # A client that does not read can only notice that the connection broke.
            poll.register(connection, 0 if "/big" in str(request) else select.POLLIN)
        deadline = time.monotonic() + 90
        while open_connections and time.monotonic() < deadline:
            for descriptor, _ in poll.poll(100):
                client, start = open_connections.pop(descriptor)
                durations[client] = time.monotonic() - start
                poll.unregister(descriptor)
    assert durations.keys() == TIMEOUTS.keys()
    for client, (seconds, _, _) in TIMEOUTS.items():
        assert seconds - 1 < durations[client] < seconds + 10, client
    assert {request.path for request in server.requests} == {"/s/small", "/s/big"}
