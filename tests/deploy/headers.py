"""The exact headers of every answer that leaves the proxy, whoever gave it."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from contextlib import closing

from survey.security import COMMON, NO_STORE, STRICT_TRANSPORT, content_security_policy, headers
from tests.deploy.proxy import HOST, Answer, Proxy

OWN = {
    **COMMON,
    "Content-Security-Policy": content_security_policy("'none'"),
    "Cache-Control": NO_STORE,
    "Strict-Transport-Security": STRICT_TRANSPORT,
}
"""What each answer carries that the application did not give, as its own do."""

BY_NGINX = {"date", "server", "connection", "content-length", "transfer-encoding", "keep-alive"}
"""Headers of the transport, which whoever answers sets."""

OF_CONTENT = {
    *("accept-ranges", "allow", "clear-site-data", "content-disposition", "content-encoding"),
    *("content-type", "etag", "location", "retry-after", "set-cookie", "vary", "www-authenticate"),
}
"""Headers that say what an answer is."""


def named(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    """All values of each header, by its name in small letters."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name.lower(), []).append(value)
    return found


def check_exact(answer: Answer, expected: Mapping[str, str]) -> None:
    """These headers, each once and with this value, and beside them what says what it is."""
    found = named(answer[1])
    for name, value in expected.items():
        assert found.pop(name.lower(), []) == [value], name
    assert found.keys() <= BY_NGINX | OF_CONTENT
    assert all(len(values) == 1 for values in found.values())
    assert found.get("server", ["nginx"]) == ["nginx"]


def check_application_s(answer: Answer, path: str, status: int, *, immutable: bool = False) -> None:
    """An answer of the application, with all its headers and none of the proxy's."""
    assert answer[0] == status, (path, answer[0], answer[2][:200])
    check_exact(answer, headers(path, https=True, immutable=immutable))


def check_bare(answer: Answer, status: int) -> None:
    """An answer of the server's, given before its application is asked."""
    assert answer[0] == status
    check_exact(answer, OWN)
    assert answer[2] == b""


def check_own(answer: Answer, status: int, *, https: bool = True) -> None:
    """An answer of nginx's, in the form of the server's refusals."""
    assert answer[0] == status
    left_out = () if https else ("Strict-Transport-Security",)
    check_exact(answer, {name: value for name, value in OWN.items() if name not in left_out})
    found = named(answer[1])
    assert found.keys() - BY_NGINX - {name.lower() for name in OWN} <= {
        *("content-type", "retry-after")
    }
    assert found["content-type"] == ["application/problem+json"]
    assert found.get("retry-after", []) == (["10"] if status in (429, 503) else [])
    assert json.loads(answer[2])["status"] == status


def raw(proxy: Proxy, sent: bytes, *, encrypted: bool = True, port: int = 0) -> Answer:
    """What is answered to bytes that no library sends."""
    with proxy.tls() if encrypted else proxy.tcp(port=port) as connection:
        connection.sendall(sent)
        return read(connection)


def read(connection: socket.socket) -> Answer:
    """The next answer on a connection."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, response.getheaders(), response.read()


def asked_for(path: bytes, *more: bytes, method: bytes = b"GET", version: bytes = b"1.1") -> bytes:
    """The head of a request, with whatever bytes."""
    lines = [method + b" " + path + b" HTTP/" + version, b"Host: " + HOST.encode(), *more]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def at_the_server(proxy: Proxy, method: str, path: str) -> Answer:
    """The same request past the proxy."""
    first = (proxy.directory / "upstream.conf").read_text().split("127.0.0.1:")[1]
    connection = http.client.HTTPConnection("127.0.0.1", int(first.split()[0]), timeout=30)
    with closing(connection):
        connection.request(method, path, headers={"Host": HOST, "Accept-Encoding": "br"})
        response = connection.getresponse()
        return response.status, response.getheaders(), response.read()
