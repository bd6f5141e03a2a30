"""What one network may ask of the shipped nginx: how often, how much, and what a network is."""

from __future__ import annotations

import http.client
import time
from contextlib import closing
from ipaddress import IPv6Address
from itertools import product

import pytest

from tests.conftest import free_port
from tests.deploy.headers import asked_for, check_own, raw
from tests.deploy.proxy import DEPLOY
from tests.faults.reports import JSON, new_body

pytestmark = [pytest.mark.web, pytest.mark.security]

MOST = 4_000
"""Requests in which a limit must be met; the highest is met after 250 in no time."""

RATES = {
    "/s/small": (50, 200),
    "/client/0/main.js": (50, 200),
    "/favicon.ico": (50, 200),
    "/research/": (20, 100),
    "/api/v1/surveys": (20, 100),
    "/elsewhere": (20, 100),
    "/research/sign-in": (20 / 60, 20),
    "/research/sign-in/code": (20 / 60, 20),
}
"""Requests a second, and how many more at once."""


@pytest.mark.parametrize("path", RATES)
def test_nobody_asks_more_often_than_the_stated_rate(stood_in, path):
    proxy, server = stood_in()
    rate, burst = RATES[path]
    began = time.monotonic()
    heard = 0
    with closing(proxy.connect()) as connection:
        for _ in range(MOST):
            connection.request("GET", path)
            response = connection.getresponse()
            answer = response.status, response.getheaders(), response.read()
            if answer[0] == 429:
                break
            heard += 1
    check_own(answer, 429)
    assert burst + 1 <= heard <= burst + 1 + rate * (time.monotonic() - began) + 1
    assert len(server.heard) == heard
    assert proxy.ask("GET", path, source="127.9.9.9")[0] == 200


SIZES = {
    "/s/small/reports": 16 * 1024,
    "/research/surveys/small/grouping": 2 * 1024 * 1024,
    "/api/v1/x": 2 * 1024 * 1024,
    "/elsewhere": 16 * 1024,
    "/research/sign-in": 16 * 1024,
}


@pytest.mark.parametrize("path", SIZES)
def test_larger_bodies_are_refused_before_a_server_hears_of_them(stood_in, path):
    proxy, server = stood_in()
    length = b"Content-Length: %d" % (SIZES[path] + 1)
    check_own(raw(proxy, asked_for(path.encode(), length, method=b"POST")), 413)
    assert server.heard == []
    assert proxy.ask("POST", path, b"x" * SIZES[path])[0] == 200
    (heard,) = server.heard
    assert heard.headers["content-length"] == str(SIZES[path])


def test_tries_to_sign_in_are_few_and_reports_of_a_campus_are_not(proxy, small):
    answers = [proxy.ask("POST", "/research/sign-in") for _ in range(40)]
    assert {status for status, *_ in answers} == {400, 429}
    for answer in answers:
        if answer[0] == 429:
            check_own(answer, 429)
    sent = [proxy.ask("POST", "/s/small/reports", new_body(small), JSON)[0] for _ in range(60)]
    assert set(sent) == {201}
    assert proxy.ask("GET", "/research/sign-in", source="127.9.9.9")[0] == 200


TELLING = (
    "    # Old addresses lead",
    """    server {{
        listen 127.0.0.1:{port};
        set_real_ip_from 127.0.0.1;
        real_ip_header X-Address;
        location / {{ return 200 $network; }}
    }}
    # Old addresses lead""",
)
"""A server beside the shipped ones that takes an address from a header, and says its network."""


def test_addresses_of_one_network_of_version_6_are_counted_as_one_and_of_two_as_two(stood_in):
    port = free_port()
    stood_in((TELLING[0], TELLING[1].format(port=port)))
    networks: dict[int, set[bytes]] = {}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        # Each group zero or not: nginx hides the longest row of zeros, wherever it is.
        for groups in product(*([0, digit] for digit in (0x2001, 0xDB8, 1, 2, 3, 4, 5, 0xFFFF))):
            number = sum(group << 16 * (7 - place) for place, group in enumerate(groups))
            connection.request("GET", "/", headers={"X-Address": str(IPv6Address(number))})
            networks.setdefault(number >> 64, set()).add(connection.getresponse().read())
        version_4 = set()
        for address in ("203.0.113.9", "203.0.113.10"):
            connection.request("GET", "/", headers={"X-Address": address})
            version_4.add(connection.getresponse().read())
    # Of network 0 some are written with dots, as of version 4; nobody comes from there.
    assert all(networks.pop(0))
    assert all(len(keys) == 1 for keys in networks.values())
    keys = [key for each in networks.values() for key in each]
    assert len(set(keys)) == len(networks) == 15
    assert all(keys)
    assert version_4 == {b"\xcb\x00\x71\x09", b"\xcb\x00\x71\x0a"}


COMING_FROM = (
    "    server_tokens off;",
    "    server_tokens off; set_real_ip_from 127.0.0.1; real_ip_header X-Planted;",
)


@pytest.mark.parametrize("network", ["2001:db8::", "2001::", "::9:0:0:0:0", "2001:db8:1:2::"])
def test_tries_to_sign_in_from_all_over_a_network_of_version_6_are_counted_together(
    stood_in, network
):
    proxy, _ = stood_in(COMING_FROM)
    first = int(IPv6Address(network))

    def ask(address: int) -> int:
        telling = {"X-Planted": str(IPv6Address(address))}
        return proxy.ask("GET", "/research/sign-in", headers=telling)[0]

    statuses = [ask(first + (place << (place % 64))) for place in range(1, 41)]
    assert {200, 429} == set(statuses)
    # One is let in every three seconds; of a network that has not asked yet all ten would be.
    assert 429 in [ask(first) for _ in range(10)]
    assert ask(first + (1 << 64)) == 200


@pytest.mark.parametrize("zone", ["limit_req_zone", "limit_conn_zone"])
def test_every_limit_counts_networks(zone):
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    assert text.count(f"{zone} $network ") == text.count(f"{zone} ") > 0
