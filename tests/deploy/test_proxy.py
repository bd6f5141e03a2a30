"""Reports pass through the shipped nginx exactly once, and nothing bypasses its rules."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from contextlib import closing

import pytest

from tests.deploy.headers import PROXY_HEADERS, by_name, check_nginx
from tests.deploy.proxy import HOST, nginx
from tests.deploy.stub_server import stub_server
from tests.faults.reports import JSON, new_report

pytestmark = [pytest.mark.web, pytest.mark.security]


def test_a_chunked_report_is_rejected_because_nginx_could_buffer_it_in_a_file(proxy, small):
    body = new_report(small)
    with closing(proxy.connect()) as connection:
        chunks = (body[place : place + 1] for place in range(len(body)))
        connection.request("POST", "/s/small/reports", chunks, JSON, encode_chunked=True)
        response = connection.getresponse()
        check_nginx((response.status, response.getheaders(), response.read()), 411)
    assert not any(path.is_file() for path in (proxy.directory / "temporary").rglob("*"))


def test_only_reports_are_retried_on_the_other_server(tmp_path):
    (directory := tmp_path / "twice").mkdir()
    with (
        stub_server(drops=True) as first,
        stub_server(drops=True) as second,
        nginx(directory, [first.server_port, second.server_port]) as proxy,
    ):
        for path in ("/research/surveys/small/invite", "/api/v1/x", "/s/small/reports"):
            check_nginx(proxy.ask("POST", path, b"{}", JSON), 503)
            # nginx avoids failed servers for more than two whole seconds.
            time.sleep(3.1)
        paths = [request.path for request in first.requests + second.requests]
    assert paths.count("/research/surveys/small/invite") == paths.count("/api/v1/x") == 1
    assert paths.count("/s/small/reports") == 2


def test_the_loss_of_one_server_costs_no_report(proxy, serve, store, small):
    serve.processes[0].kill()
    serve.processes[0].communicate()
    statuses = [
        proxy.ask("POST", "/s/small/reports", new_report(small), JSON)[0] for _ in range(20)
    ]
    assert set(statuses) == {201}
    assert store.n_pending(small.key) == 20


def test_http_redirects_to_https_and_other_hosts_get_nothing(proxy):
    plain = http.client.HTTPConnection("127.0.0.1", proxy.plain_port, timeout=30)
    with closing(plain):
        plain.request("GET", "/s/small?x=1", headers={"Host": "evil.example"})
        answer = plain.getresponse()
        assert answer.status == 301
        assert answer.getheader("Location") == f"https://{HOST}/s/small?x=1"
        headers = by_name(answer.getheaders())
        for name in PROXY_HEADERS.keys() - {"Strict-Transport-Security"}:
            assert headers[name.lower()] == [PROXY_HEADERS[name]], name
    with pytest.raises(http.client.RemoteDisconnected):
        proxy.ask("GET", "/", headers={"Host": "evil.example"})
    context = proxy.context()
    context.check_hostname = False
    with (
        socket.create_connection(("127.0.0.1", proxy.port)) as send_bytes,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(send_bytes, server_hostname="evil.example")


def test_identifying_headers_of_respondents_do_not_reach_the_server(tmp_path):
    (directory := tmp_path / "headers").mkdir()
    identifying = {"User-Agent": "planted", "Cookie": "planted=1", "Referer": "https://planted/"}
    with stub_server() as server, nginx(directory, [server.server_port]) as proxy:
        for path in ("/", "/s/small", "/client/x/main.js", "/research/"):
            assert proxy.ask("GET", path, headers=identifying)[0] == 200
        *respondents, researcher = [request.headers for request in server.requests]
    for headers in respondents:
        assert not {"user-agent", "cookie", "referer", "x-forwarded-for"} & set(headers)
        assert "planted" not in str(headers)
    assert len(respondents) == 3
    assert researcher["cookie"] == "planted=1"
    assert researcher["x-forwarded-for"] == "127.0.0.1"
