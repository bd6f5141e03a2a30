"""Reports pass through the shipped nginx exactly once, and nothing bypasses its rules."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import closing

import pytest

from survey.security import headers as application_headers
from tests.conftest import ONION
from tests.deploy.headers import PROXY_HEADERS, by_name, check_headers, check_nginx
from tests.deploy.proxy import DEPLOY, HOST, RESEARCH_HOST, Answer, Proxy, nginx
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
            check_nginx(proxy.site(path).ask("POST", path, b"{}", JSON), 503)
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
            assert proxy.site(path).ask("GET", path, headers=identifying)[0] == 200
        *respondents, researcher = [request.headers for request in server.requests]
    for headers in respondents:
        assert not {"user-agent", "cookie", "referer", "x-forwarded-for"} & set(headers)
        assert "planted" not in str(headers)
    assert len(respondents) == 3
    assert researcher["cookie"] == "planted=1"
    assert researcher["x-forwarded-for"] == "127.0.0.1"


def test_each_origin_answers_its_own_addresses_only(proxy, small):
    for path in (
        "/research/",
        "/research",
        "//research/sign-in",
        "/%72esearch/",
        "/api/v1/surveys",
    ):
        check_nginx(proxy.ask("GET", path), 404)
    for path in ("/s/small", "/s/small/definition.json", "//s/small", "/s/%73mall"):
        check_nginx(proxy.research.ask("GET", path), 404)
    # The application answers these, and finds no test run.
    for site in (proxy, proxy.research):
        answer = site.ask("GET", "/s/trial-1-none/definition.json")
        assert (answer[0], b"survey" in answer[2]) == (404, True)
    assert proxy.research.ask("GET", "/research/sign-in")[0] == 200
    assert by_name(proxy.research.ask("GET", "/")[1])["location"] == ["/research/"]


def test_http_redirects_to_the_same_host_over_https(proxy):
    for host in (HOST, RESEARCH_HOST):
        plain = http.client.HTTPConnection("127.0.0.1", proxy.plain_port, timeout=30)
        with closing(plain):
            plain.request("GET", "/x", headers={"Host": host})
            assert plain.getresponse().getheader("Location") == f"https://{host}/x"


def ask_onion(proxy: Proxy, method: str, path: str, body: bytes = b"", host: str = "") -> Answer:
    """Send a request as Tor does, with the headers of Tor Browser."""
    host = host or ONION.removeprefix("http://")
    headers = {**JSON, "Host": host, "Origin": f"http://{host}", "Cookie": "planted=1"}
    with closing(http.client.HTTPConnection("127.0.0.1", proxy.onion_port, timeout=30)) as tor:
        tor.request(method, path, body or None, headers)
        response = tor.getresponse()
        return response.status, response.getheaders(), response.read()


def test_the_onion_service_answers_only_respondents_over_http(proxy, store, small):
    for path, status in (("/s/small", 200), ("/s/small/definition.json", 200), ("/", 200)):
        answer = ask_onion(proxy, "GET", path)
        assert answer[0] == status, path
        headers = by_name(answer[1])
        # Browsers would refuse an onion address without https after this header.
        assert not {"strict-transport-security", "onion-location", "location"} & headers.keys()
        check_headers(answer, application_headers(path, https=False, immutable=False))
        assert b"https://" not in answer[2]
    assert ask_onion(proxy, "POST", "/s/small/reports", new_report(small))[0] == 201
    assert store.n_pending(small.key) == 1
    for path in ("/research/sign-in", "/api/v1/openapi.json"):
        check_nginx(ask_onion(proxy, "GET", path), 404, https=False)
    # Another name on this port, such as the researchers' host, opens nothing.
    for host in (RESEARCH_HOST, "evil.example"):
        for path in ("/s/small", "/research/sign-in"):
            assert ask_onion(proxy, "GET", path, host=host)[0] == 404, (host, path)


def test_the_public_origin_names_the_onion_address_of_each_page(proxy, small):
    for path, onion in (("/s/small", [f"{ONION}/s/small"]), ("/s/small/definition.json", None)):
        assert by_name(proxy.ask("GET", path)[1]).get("onion-location") == onion
    assert "onion-location" not in by_name(proxy.research.ask("GET", "/research/sign-in")[1])


def test_tor_accepts_the_configuration_and_forwards_to_the_onion_server_only(tmp_path):
    executable = shutil.which("tor", path="/usr/sbin:/usr/bin")
    assert executable, "no tor on the path (apt-get install tor)"
    text = (DEPLOY / "torrc").read_text(encoding="utf-8")
    # The shipped directory belongs to Tor's own user.
    adapted = text.replace("/var/lib/tor/survey", str(tmp_path / "survey"))
    for file, is_valid in ((adapted, True), (adapted + "\nHiddenServiceVersoin 3\n", False)):
        (tmp_path / "torrc").write_text(file)
        command = [executable, "--verify-config", "-f", str(tmp_path / "torrc"), "--quiet"]
        process = subprocess.run(
            [*command, "--DataDirectory", str(tmp_path / "data")], capture_output=True, text=True
        )
        assert (process.returncode == 0) == is_valid, process.stdout + process.stderr
    assert re.findall(r"^HiddenServicePort (.*)$", text, re.M) == ["80 127.0.0.1:8080"]
    nginx_conf = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    assert nginx_conf.count("listen 127.0.0.1:8080") == nginx_conf.count(":8080") == 1
