"""The exact headers of every response that leaves the proxy, whichever program produced it."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Mapping
from contextlib import closing

from survey.security import COMMON, NO_STORE, STRICT_TRANSPORT, content_security_policy, headers
from tests.conftest import ONION
from tests.deploy.proxy import HOST, Answer, Proxy

PROXY_HEADERS = {
    **COMMON,
    "Content-Security-Policy": content_security_policy("'none'"),
    "Cache-Control": NO_STORE,
    "Strict-Transport-Security": STRICT_TRANSPORT,
}
"""Headers of responses that do not come from the application."""

TRANSPORT_HEADERS = {
    *("date", "server", "connection", "content-length", "transfer-encoding", "keep-alive"),
}
"""Headers of the transport, which every server sets."""

CONTENT_HEADERS = {
    *("accept-ranges", "allow", "clear-site-data", "content-disposition", "content-encoding"),
    *("content-type", "etag", "location", "retry-after", "set-cookie", "vary", "www-authenticate"),
}
"""Headers that describe a response's content."""


def by_name(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return all values of each header by its lower-case name."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name.lower(), []).append(value)
    return values


def check_headers(answer: Answer, expected: Mapping[str, str]) -> None:
    """Check that the expected headers appear once each, with no others but content headers."""
    actual = by_name(answer[1])
    for name, value in expected.items():
        assert actual.pop(name.lower(), []) == [value], name
    assert actual.keys() <= TRANSPORT_HEADERS | CONTENT_HEADERS
    assert all(len(values) == 1 for name, values in actual.items() if name != "set-cookie")
    assert actual.get("server", ["nginx"]) == ["nginx"]


def check_application(answer: Answer, path: str, status: int, *, immutable: bool = False) -> None:
    """Check a response of the application: all of its headers, none of the proxy's."""
    assert answer[0] == status, (path, answer[0], answer[2][:200])
    is_page = ("content-type", "text/html; charset=utf-8") in [
        (name.lower(), value) for name, value in answer[1]
    ]
    path = path.partition("?")[0]
    onion_url = ONION if is_page and re.fullmatch("/s/[^/]+", path) else ""
    check_headers(answer, headers(path, https=True, immutable=immutable, onion_url=onion_url))


def check_server(answer: Answer, status: int) -> None:
    """Check a response that the server sends without calling the application."""
    assert answer[0] == status
    check_headers(answer, PROXY_HEADERS)
    assert answer[2] == b""


def check_nginx(answer: Answer, status: int, *, https: bool = True) -> None:
    """Check a response of nginx itself, which has the format of the application's errors."""
    assert answer[0] == status
    omitted = () if https else ("Strict-Transport-Security",)
    check_headers(answer, {k: v for k, v in PROXY_HEADERS.items() if k not in omitted})
    actual = by_name(answer[1])
    assert actual.keys() - TRANSPORT_HEADERS - {name.lower() for name in PROXY_HEADERS} <= {
        *("content-type", "retry-after")
    }
    assert actual["content-type"] == ["application/problem+json"]
    assert actual.get("retry-after", []) == (["10"] if status in (429, 503) else [])
    assert json.loads(answer[2])["status"] == status


def send_bytes(proxy: Proxy, request: bytes, *, encrypted: bool = True, port: int = 0) -> Answer:
    """Send bytes that no HTTP library would send, and return the response."""
    with proxy.tls() if encrypted else proxy.tcp(port=port) as connection:
        connection.sendall(request)
        return read_answer(connection)


def read_answer(connection: socket.socket) -> Answer:
    """Read the next response on a connection."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, response.getheaders(), response.read()


def request_head(
    path: bytes,
    *lines: bytes,
    method: bytes = b"GET",
    version: bytes = b"1.1",
    host: str = HOST,
) -> bytes:
    """Return a request line and headers made of arbitrary bytes."""
    head = [method + b" " + path + b" HTTP/" + version, b"Host: " + host.encode(), *lines]
    return b"\r\n".join(head) + b"\r\n\r\n"


def ask_server(proxy: Proxy, method: str, path: str) -> Answer:
    """Send a request to the first server, bypassing the proxy."""
    first = (proxy.directory / "upstream.conf").read_text().split("127.0.0.1:")[1]
    connection = http.client.HTTPConnection("127.0.0.1", int(first.split()[0]), timeout=30)
    with closing(connection):
        connection.request(method, path, headers={"Host": proxy.host, "Accept-Encoding": "br"})
        response = connection.getresponse()
        return response.status, response.getheaders(), response.read()
