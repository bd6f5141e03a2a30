"""Through the shipped nginx configuration: the same headers, the limits, and no way round it."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from survey.security import COMMON, NO_STORE, STRICT_TRANSPORT, content_security_policy
from tests.deploy.proxy import DEPLOY, HOST, Answer, Proxy, nginx, over_http2
from tests.faults.reports import new_body

pytestmark = [pytest.mark.web, pytest.mark.security]

JSON = {"Content-Type": "application/json"}
OWN = {
    **COMMON,
    "Content-Security-Policy": content_security_policy("'none'"),
    "Cache-Control": NO_STORE,
    "Strict-Transport-Security": STRICT_TRANSPORT,
}
"""What each answer that nginx gives by itself carries, as the server's own do."""

BY_NGINX = {"date", "server", "connection", "content-length", "transfer-encoding", "keep-alive"}
"""Headers of the transport, which whoever answers sets."""

ROUTES = [
    ("GET", "/s/small", 200),
    ("GET", "/s/none", 404),
    ("GET", "/s/small/definition.json", 200),
    ("POST", "/s/small/reports", 415),
    ("PUT", "/s/small/reports", 405),
    ("GET", "/s/small/sent", 204),
    ("GET", "/", 404),
    ("GET", "/healthz", 200),
    ("GET", "/readyz", 404),
    ("GET", "/metrics", 404),
    ("GET", "/favicon.ico", 200),
    ("GET", "/client/0/main.js", 404),
    ("GET", "/research/", 302),
    ("GET", "/research/sign-in", 200),
    ("POST", "/research/sign-in", 400),
    ("GET", "/research/none", 404),
    ("GET", "/api/v1/openapi.json", 200),
    ("GET", "/api/v1/surveys", 401),
]


EMPTY = {"content-length": "0"}


def named(headers: list[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value)
    return found


@pytest.fixture
def proxy(behind: Callable[..., Proxy], small) -> Proxy:
    return behind()


def test_headers_are_exact_and_never_doubled_on_every_route_and_status(proxy, serve, small):
    for method, path, status in ROUTES:
        through = proxy.ask(method, path, headers={"Accept-Encoding": "br"})
        direct = at_the_server(upstream_port(proxy), method, path)
        assert through[0] == status == direct[0], (method, path)
        ours, theirs = named(through[1]), named(direct[1])
        assert all(len(values) == 1 for name, values in ours.items() if name != "set-cookie")
        for headers in (ours, theirs):
            headers.pop("set-cookie", None)
        kept = {name: value for name, value in theirs.items() if name not in BY_NGINX}
        assert {n: v for n, v in ours.items() if n not in BY_NGINX} == kept, (method, path)
        assert ours["strict-transport-security"] == [STRICT_TRANSPORT]
        assert ours.get("server", ["nginx"]) == ["nginx"]


def at_the_server(port: int, method: str, path: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with closing(connection):
        connection.request(method, path, headers={"Host": HOST, "Accept-Encoding": "br"})
        response = connection.getresponse()
        return response.status, response.getheaders(), response.read()


def upstream_port(proxy: Proxy) -> int:
    first = (proxy.directory / "upstream.conf").read_text().split("127.0.0.1:")[1]
    return int(first.split()[0])


def check_own(answer: Answer, status: int, *, https: bool = True) -> None:
    assert answer[0] == status
    found = named(answer[1])
    for name, value in OWN.items():
        told = https or name != "Strict-Transport-Security"
        assert found.get(name.lower(), []) == ([value] if told else []), name
    assert found["content-type"] == ["application/problem+json"]
    assert json.loads(answer[2])["status"] == status


def raw(proxy: Proxy, sent: bytes, *, encrypted: bool = True) -> Answer:
    """What is answered to bytes that no library sends."""
    with (
        socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as plain,
        (
            proxy.context().wrap_socket(plain, server_hostname=HOST) if encrypted else plain
        ) as connection,
    ):
        connection.sendall(sent)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, response.getheaders(), response.read()


def test_what_nginx_refuses_by_itself_carries_the_same_headers(proxy, serve, small):
    check_own(proxy.ask("POST", "/s/small/reports", b"x" * 20_000, JSON), 413)
    check_own(proxy.ask("GET", "/s/" + "a" * 9_000), 414)
    check_own(proxy.ask("GET", "/s/small", headers={"X-Long": "a" * 40_000}), 400)
    check_own(proxy.ask("TRACE", "/s/small"), 405)
    host = f"Host: {HOST}\r\n".encode()
    check_own(raw(proxy, b"CONNECT x:1 HTTP/1.1\r\n" + host + b"\r\n"), 400)
    coded = b"POST /s/small/reports HTTP/1.1\r\n" + host + b"Transfer-Encoding: foo\r\n\r\n"
    check_own(raw(proxy, coded), 501)
    check_own(raw(proxy, b"GET / HTTP/9.9\r\n" + host + b"\r\n"), 505)
    check_own(raw(proxy, b"GET / HTTP/1.1\r\n" + host + b"\r\n", encrypted=False), 400, https=False)
    for process in serve.processes:
        process.kill()
        process.communicate()
    away = proxy.ask("GET", "/s/small")
    check_own(away, 503)
    assert named(away[1])["retry-after"] == ["10"]


def test_headers_are_the_same_over_the_protocol_that_browsers_speak(proxy, node, small, tmp_path):
    asked = [
        *(
            {"method": method, "path": path, "headers": EMPTY if method == "POST" else {}}
            for method, path, _ in ROUTES
        ),
        {
            "method": "POST",
            "path": "/s/small/reports",
            "body": "x" * 20_000,
            "headers": {"content-length": "20000"},
        },
        {"method": "POST", "path": "/s/small/reports", "body": "of no said length"},
        {"method": "TRACE", "path": "/s/small"},
    ]
    answers = over_http2(proxy, node, asked)
    for (method, path, status), (found, headers, _) in zip(ROUTES, answers, strict=False):
        assert found == status, (method, path)
        ours = named(proxy.ask(method, path, headers={"Accept-Encoding": "br"})[1])
        theirs = named(headers)
        for headers in (ours, theirs):
            headers.pop("set-cookie", None)
        kept = {name: value for name, value in theirs.items() if name not in BY_NGINX}
        assert kept == {n: v for n, v in ours.items() if n not in BY_NGINX}, (method, path)
    for answer, status in zip(answers[len(ROUTES) :], (413, 411, 405), strict=True):
        check_own(answer, status)


def test_a_report_in_pieces_is_refused_for_it_would_lie_in_a_file(proxy, small):
    body = new_body(small)
    with closing(proxy.connect()) as connection:
        pieces = (body[place : place + 1] for place in range(len(body)))
        connection.request("POST", "/s/small/reports", pieces, JSON, encode_chunked=True)
        response = connection.getresponse()
        check_own((response.status, response.getheaders(), response.read()), 411)
    assert not any(path.is_file() for path in (proxy.directory / "temporary").rglob("*"))


def test_a_report_may_go_to_the_other_server_and_nothing_else_is_done_twice(tmp_path):
    heard: list[str] = []

    class Leaves(BaseHTTPRequestHandler):
        """Takes a request, does what it asks, and is gone before the answer."""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            heard.append(self.path)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    servers = [HTTPServer(("127.0.0.1", 0), Leaves) for _ in range(2)]
    for server in servers:
        Thread(target=server.serve_forever, daemon=True).start()
    (directory := tmp_path / "twice").mkdir()
    with nginx(directory, [server.server_port for server in servers]) as proxy:
        for path in ("/research/surveys/small/invite", "/api/v1/x", "/s/small/reports"):
            check_own(proxy.ask("POST", path, b"{}", JSON), 503)
            # So long nginx leaves servers alone that were gone.
            time.sleep(2.5)
    for server in servers:
        server.shutdown()
        server.server_close()
    assert heard.count("/research/surveys/small/invite") == heard.count("/api/v1/x") == 1
    assert heard.count("/s/small/reports") == 2


NETWORKS = {
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2:",
    "2001:db8:1:2::6": "2001:db8:1:2:",
    "2001:db8::1:2": "2001:db8",
    "2001:db8::1": "2001:db8",
    "::1": "",
}


def test_addresses_of_one_network_of_version_6_are_counted_as_one():
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    patterns = [
        re.compile(found.replace("?<", "?P<"))
        for found in re.findall(r'^ +"~(\S+)" \$\w+;$', text, re.M)
    ]
    assert len(patterns) == 2
    assert text.count("limit_req_zone $network ") == text.count("limit_req_zone ")
    found = {}
    for address in NETWORKS:
        matches = (pattern.search(address) for pattern in patterns)
        found[address] = next(match[1] for match in matches if match)
    assert found == NETWORKS
    assert not any(pattern.search("203.0.113.9") for pattern in patterns)


def test_tries_to_sign_in_are_few_and_reports_of_a_campus_are_not(proxy, small):
    statuses = [proxy.ask("POST", "/research/sign-in")[0] for _ in range(40)]
    assert set(statuses) == {400, 429}
    refused = proxy.ask("POST", "/research/sign-in")
    check_own(refused, 429)
    assert named(refused[1])["retry-after"] == ["10"]
    sent = [proxy.ask("POST", "/s/small/reports", new_body(small), JSON)[0] for _ in range(60)]
    assert set(sent) == {201}
    assert proxy.ask("GET", "/research/sign-in", source="127.9.9.9")[0] == 200


def test_one_server_that_is_gone_costs_no_report(proxy, serve, store, small):
    serve.processes[0].kill()
    serve.processes[0].communicate()
    sent = [proxy.ask("POST", "/s/small/reports", new_body(small), JSON)[0] for _ in range(20)]
    assert set(sent) == {201}
    assert store.waiting(small.key) == 20


def test_plain_http_leads_to_https_and_other_hosts_get_nothing(proxy):
    plain = http.client.HTTPConnection("127.0.0.1", proxy.plain_port, timeout=30)
    with closing(plain):
        plain.request("GET", "/s/small?x=1", headers={"Host": "evil.example"})
        answer = plain.getresponse()
        assert answer.status == 301
        assert answer.getheader("Location") == f"https://{HOST}/s/small?x=1"
        found = named(answer.getheaders())
        for name in OWN.keys() - {"Strict-Transport-Security"}:
            assert found[name.lower()] == [OWN[name]], name
    with pytest.raises(http.client.RemoteDisconnected):
        proxy.ask("GET", "/", headers={"Host": "evil.example"})
    context = proxy.context()
    context.check_hostname = False
    with (
        socket.create_connection(("127.0.0.1", proxy.port)) as raw,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(raw, server_hostname="evil.example")


def test_what_a_respondent_s_browser_tells_of_itself_does_not_reach_the_server(tmp_path):
    # A server in the survey's place that tells what arrives.
    seen: list[dict[str, str]] = []

    class Tell(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Tell)
    Thread(target=server.serve_forever, daemon=True).start()
    directory = tmp_path / "told"
    directory.mkdir()
    telling = {"User-Agent": "planted", "Cookie": "planted=1", "Referer": "https://planted/"}
    with nginx(directory, [server.server_port]) as proxy:
        for path in ("/s/small", "/client/x/main.js"):
            assert proxy.ask("GET", path, headers=telling)[0] == 204
        assert proxy.ask("GET", "/research/", headers=telling)[0] == 204
    server.shutdown()
    server.server_close()
    *respondents, researcher = seen
    for headers in respondents:
        assert not {"user-agent", "cookie", "referer", "x-forwarded-for"} & set(headers)
        assert "planted" not in str(headers)
    assert researcher["cookie"] == "planted=1"
    assert researcher["x-forwarded-for"] == "127.0.0.1"
