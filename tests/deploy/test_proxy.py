"""Through the shipped nginx configuration: reports arrive once, and there is no way round it."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from contextlib import closing

import pytest

from tests.deploy.headers import OWN, check_own, named
from tests.deploy.proxy import HOST, nginx
from tests.deploy.stand_in import standing_in
from tests.faults.reports import JSON, new_body

pytestmark = [pytest.mark.web, pytest.mark.security]


def test_a_report_in_pieces_is_refused_for_it_would_lie_in_a_file(proxy, small):
    body = new_body(small)
    with closing(proxy.connect()) as connection:
        pieces = (body[place : place + 1] for place in range(len(body)))
        connection.request("POST", "/s/small/reports", pieces, JSON, encode_chunked=True)
        response = connection.getresponse()
        check_own((response.status, response.getheaders(), response.read()), 411)
    assert not any(path.is_file() for path in (proxy.directory / "temporary").rglob("*"))


def test_a_report_may_go_to_the_other_server_and_nothing_else_is_done_twice(tmp_path):
    (directory := tmp_path / "twice").mkdir()
    with (
        standing_in(leaves=True) as one,
        standing_in(leaves=True) as other,
        nginx(directory, [one.server_port, other.server_port]) as proxy,
    ):
        for path in ("/research/surveys/small/invite", "/api/v1/x", "/s/small/reports"):
            check_own(proxy.ask("POST", path, b"{}", JSON), 503)
            # So long nginx leaves servers alone that were gone: more than two whole seconds.
            time.sleep(3.1)
        heard = [request.path for request in one.heard + other.heard]
    assert heard.count("/research/surveys/small/invite") == heard.count("/api/v1/x") == 1
    assert heard.count("/s/small/reports") == 2


def test_one_server_that_is_gone_costs_no_report(proxy, serve, store, small):
    serve.processes[0].kill()
    serve.processes[0].communicate()
    sent = [proxy.ask("POST", "/s/small/reports", new_body(small), JSON)[0] for _ in range(20)]
    assert set(sent) == {201}
    assert store.n_pending(small.key) == 20


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
    (directory := tmp_path / "told").mkdir()
    telling = {"User-Agent": "planted", "Cookie": "planted=1", "Referer": "https://planted/"}
    with standing_in() as server, nginx(directory, [server.server_port]) as proxy:
        for path in ("/s/small", "/client/x/main.js", "/research/"):
            assert proxy.ask("GET", path, headers=telling)[0] == 200
        *respondents, researcher = [request.headers for request in server.heard]
    for headers in respondents:
        assert not {"user-agent", "cookie", "referer", "x-forwarded-for"} & set(headers)
        assert "planted" not in str(headers)
    assert len(respondents) == 2
    assert researcher["cookie"] == "planted=1"
    assert researcher["x-forwarded-for"] == "127.0.0.1"
