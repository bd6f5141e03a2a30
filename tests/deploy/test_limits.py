"""nginx limits the rate and size of requests per network; tests of the limits and of networks."""

from __future__ import annotations

import http.client
import time
from contextlib import closing
from ipaddress import IPv6Address
from itertools import product

import pytest

from tests.conftest import free_port
from tests.deploy.headers import check_nginx, request_head, send_bytes
from tests.deploy.proxy import DEPLOY
from tests.faults.reports import JSON, new_report

pytestmark = [pytest.mark.web, pytest.mark.security]

MAX_REQUESTS = 4_000
"""Number of requests after which every limit must have applied (the highest needs 250)."""

RATES = {
    "/s/small": (50, 200),
    "/s/small/field": (50, 200),
    "/client/0/main.js": (50, 200),
    "/favicon.ico": (50, 200),
    "/research/": (20, 100),
    "/api/v1/surveys": (20, 100),
    "/elsewhere": (50, 200),
    "/research/sign-in": (20 / 60, 20),
    "/research/sign-in/code": (20 / 60, 20),
}
"""Requests per second and burst for each path."""


@pytest.mark.parametrize("path", RATES)
def test_no_client_exceeds_the_stated_rate(stub_proxy, path):
    proxy, server = stub_proxy()
    proxy = proxy.site(path)
    rate, burst = RATES[path]
    start = time.monotonic()
    accepted = 0
    with closing(proxy.connect()) as connection:
        for _ in range(MAX_REQUESTS):
            connection.request("GET", path)
            response = connection.getresponse()
            answer = response.status, response.getheaders(), response.read()
            if answer[0] == 429:
                break
            accepted += 1
    check_nginx(answer, 429)
    assert burst + 1 <= accepted <= burst + 1 + rate * (time.monotonic() - start) + 1
    assert len(server.requests) == accepted
    assert proxy.ask("GET", path, source="127.9.9.9")[0] == 200


SIZES = {
    "/s/small/reports": 16 * 1024,
    "/s/small/field": 256 * 1024,
    "/research/surveys/small/grouping": 2 * 1024 * 1024,
    "/api/v1/x": 2 * 1024 * 1024,
    "/elsewhere": 16 * 1024,
    "/research/sign-in": 16 * 1024,
}


@pytest.mark.parametrize("path", SIZES)
def test_larger_bodies_are_rejected_without_contacting_a_server(stub_proxy, path):
    proxy, server = stub_proxy()
    proxy = proxy.site(path)
    length = b"Content-Length: %d" % (SIZES[path] + 1)
    check_nginx(
        send_bytes(proxy, request_head(path.encode(), length, method=b"POST", host=proxy.host)), 413
    )
    assert server.requests == []
    assert proxy.ask("POST", path, b"x" * SIZES[path])[0] == 200
    (request,) = server.requests
    assert request.headers["content-length"] == str(SIZES[path])


def test_sign_in_attempts_are_limited_and_reports_of_a_campus_are_not(proxy, small):
    answers = [proxy.research.ask("POST", "/research/sign-in") for _ in range(40)]
    assert {status for status, *_ in answers} == {400, 429}
    for answer in answers:
        if answer[0] == 429:
            check_nginx(answer, 429)
    statuses = [
        proxy.ask("POST", "/s/small/reports", new_report(small), JSON)[0] for _ in range(60)
    ]
    assert set(statuses) == {201}
    assert proxy.research.ask("GET", "/research/sign-in", source="127.9.9.9")[0] == 200


NETWORK_ECHO = (
    "    # Redirect http",
    """    server {{
        listen 127.0.0.1:{port};
        set_real_ip_from 127.0.0.1;
        real_ip_header X-Address;
        location / {{ return 200 $network; }}
    }}
    # Redirect http""",
)
"""An additional server that takes an address from a header and responds with its network."""


def test_limits_treat_an_ipv6_network_as_one_client_and_two_networks_as_two(stub_proxy):
    port = free_port()
    stub_proxy((NETWORK_ECHO[0], NETWORK_ECHO[1].format(port=port)))
    networks: dict[int, set[bytes]] = {}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        # Try every pattern of zero groups: nginx abbreviates the longest run, wherever it is.
        for groups in product(*([0, digit] for digit in (0x2001, 0xDB8, 1, 2, 3, 4, 5, 0xFFFF))):
            number = sum(group << 16 * (7 - place) for place, group in enumerate(groups))
            connection.request("GET", "/", headers={"X-Address": str(IPv6Address(number))})
            networks.setdefault(number >> 64, set()).add(connection.getresponse().read())
        ipv4_keys = set()
        for address in ("203.0.113.9", "203.0.113.10"):
            connection.request("GET", "/", headers={"X-Address": address})
            ipv4_keys.add(connection.getresponse().read())
    # Some addresses of network 0 look like IPv4; no client has such an address.
    assert all(networks.pop(0))
    assert all(len(keys) == 1 for keys in networks.values())
    keys = [key for network_keys in networks.values() for key in network_keys]
    assert len(set(keys)) == len(networks) == 15
    assert all(keys)
    assert ipv4_keys == {b"\xcb\x00\x71\x09", b"\xcb\x00\x71\x0a"}


TRUSTED_ADDRESS = (
    "    server_tokens off;",
    "    server_tokens off; set_real_ip_from 127.0.0.1; real_ip_header X-Planted;",
)


@pytest.mark.parametrize("network", ["2001:db8::", "2001::", "::9:0:0:0:0", "2001:db8:1:2::"])
def test_sign_in_attempts_from_anywhere_in_an_ipv6_network_are_counted_together(
    stub_proxy, network
):
    proxy, _ = stub_proxy(TRUSTED_ADDRESS)
    first = int(IPv6Address(network))

    def ask(address: int) -> int:
        headers = {"X-Planted": str(IPv6Address(address))}
        return proxy.research.ask("GET", "/research/sign-in", headers=headers)[0]

    statuses = [ask(first + (place << (place % 64))) for place in range(1, 41)]
    assert {200, 429} == set(statuses)
    # nginx accepts one every three seconds; it would accept all ten from a new network.
    assert 429 in [ask(first) for _ in range(10)]
    assert ask(first + (1 << 64)) == 200


@pytest.mark.parametrize("zone", ["limit_req_zone", "limit_conn_zone"])
def test_every_limit_counts_networks(zone):
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    assert text.count(f"{zone} $network ") == text.count(f"{zone} ") > 0
