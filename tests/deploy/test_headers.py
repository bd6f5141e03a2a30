"""Headers (security 15): exact values on every route and every status, through the proxy.

Two statuses of the application cannot occur here: 429 follows ten sign-in attempts and is tested in
test_logins.py; 501 means that a part of the installation is missing. nginx closes connections that
are too slow (408) or name another host (444) without a response.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from survey.collect.publication import close
from survey.respond.client import Client
from survey.security import STRICT_TRANSPORT
from tests.api.conftest import make_token
from tests.browser.research import add_released
from tests.conftest import EMAIL, ROOT, TODAY, wait_until
from tests.deploy.headers import (
    TRANSPORT_HEADERS,
    ask_server,
    by_name,
    check_application,
    check_nginx,
    check_server,
    request_head,
    send_bytes,
)
from tests.deploy.proxy import ask_over_http2
from tests.faults.reports import JSON, new_report
from tests.store.databases import DirectAccess
from tests.web.clients import SIGN_IN, Page, WebClient

pytestmark = [pytest.mark.web, pytest.mark.security]

ROUTES = [
    ("GET", "/s/small", 200),
    ("GET", "/s/none", 200),
    ("GET", "/s/none/definition.json", 404),
    ("GET", "/client-manifest.json", 200),
    ("GET", "/s/small/definition.json", 200),
    ("POST", "/s/small/reports", 415),
    ("PUT", "/s/small/reports", 405),
    ("GET", "/s/small/sent", 204),
    ("GET", "/", 200),
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


def without_transport(headers: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the headers that do not depend on the protocol."""
    return {name: values for name, values in headers.items() if name not in TRANSPORT_HEADERS}


def test_headers_are_exact_and_never_doubled_on_every_route_and_status(proxy, serve, small):
    for method, path, status in ROUTES:
        site = proxy.site(path)
        through = site.ask(method, path, headers={"Accept-Encoding": "br"})
        direct = ask_server(site, method, path)
        assert through[0] == status == direct[0], (method, path)
        ours, theirs = by_name(through[1]), by_name(direct[1])
        assert all(len(values) == 1 for name, values in ours.items() if name != "set-cookie")
        for headers in (ours, theirs):
            headers.pop("set-cookie", None)
        expected = {name: value for name, value in theirs.items() if name not in TRANSPORT_HEADERS}
        assert {n: v for n, v in ours.items() if n not in TRANSPORT_HEADERS} == expected, (
            method,
            path,
        )
        assert ours["strict-transport-security"] == [STRICT_TRANSPORT]
        assert ours.get("server", ["nginx"]) == ["nginx"]


REPORTS = "/s/small/reports"
CLIENT = f"/client/{Client.load().sha256}/main.js"
ESTIMATES = "/research/surveys/small/1/estimates.csv"


UNEXPECTED = "/s/unexpected/definition.json"
FAULT = """
from survey.respond import views
original = views.find_survey
def find_survey(store, slug):
    return 1 / 0 if slug == "unexpected" else original(store, slug)
views.find_survey = find_survey
"""
"""Module that adds an error that no route handles; Python imports it at startup."""


def test_headers_are_exact_on_every_status_that_respondents_get(
    start_proxy, store, settings, small, tmp_path
):
    (module_folder := tmp_path / "fault").mkdir()
    (module_folder / "sitecustomize.py").write_text(FAULT)
    proxy = start_proxy(servers=1, PYTHONPATH=f"{module_folder}:{ROOT}")
    report = json.loads(new_report(small))

    def post(**changes: Any) -> bytes:
        return json.dumps({**report, **changes}).encode()

    requests = [
        ("GET", "/s/small", None, {}, 200),
        ("HEAD", "/s/small", None, {}, 200),
        ("GET", "/s/small?q=%C3%BC|^`{}", None, {}, 200),
        ("GET", CLIENT, None, {}, 200),
        ("GET", "/favicon.ico", None, {}, 200),
        ("GET", "/s/small/sent", None, {}, 204),
        ("POST", REPORTS, post(), JSON, 201),
        ("POST", REPORTS, b"{", JSON, 400),
        ("POST", REPORTS, post(), {**JSON, "Sec-Fetch-Site": "cross-site"}, 403),
        ("GET", "/s/none", None, {}, 200),
        ("GET", "/s/none/definition.json", None, {}, 404),
        ("PUT", REPORTS, b"", {}, 405),
        ("POST", REPORTS, post(codes=[1, 1]), JSON, 201),
        ("POST", REPORTS, post(pad="." * 9000), JSON, 413),
        ("POST", REPORTS, b"{}", {}, 415),
        ("POST", REPORTS, post(codes=[9, 9]), JSON, 422),
    ]
    for method, path, body, headers, status in requests:
        answer = proxy.ask(method, path, body, headers)
        check_application(answer, path, status, immutable=path == CLIENT)
    with DirectAccess(settings.database).connection() as lock:
        lock.execute("BEGIN EXCLUSIVE")
        check_application(proxy.ask("POST", REPORTS, new_report(small), JSON), REPORTS, 503)
    # The server that waited for the lock refuses all reports for a moment longer.
    wait_until(lambda: proxy.ask("POST", REPORTS, new_report(small), JSON)[0] == 201)
    close(store, "small", TODAY)
    check_application(proxy.ask("POST", REPORTS, new_report(small), JSON), REPORTS, 410)
    definition = "/s/small/definition.json"
    DirectAccess(settings.database).run("UPDATE survey SET changed = 'no day'")
    check_application(proxy.ask("GET", definition), definition, 503)
    check_application(proxy.ask("GET", UNEXPECTED), UNEXPECTED, 500)


def check_page(page: Page, path: str, status: int) -> None:
    check_application((page.status, page.headers, page.text.encode()), path, status)


def test_headers_are_exact_on_every_status_that_researchers_and_the_api_get(
    proxy, store, small, researcher
):
    add_released(store, small, 100)
    visit = WebClient(proxy.research.connect)
    check_page(visit.post(SIGN_IN), SIGN_IN, 400)
    check_page(visit.sign_in(password="not this one, surely"), SIGN_IN, 403)
    check_page(visit.sign_in(), SIGN_IN, 302)
    for page in ("", "account", "surveys/small/1", "surveys/small/collect"):
        check_page(visit.get(f"/research/{page}"), f"/research/{page}", 200)
    signed_in = {"Cookie": visit.cookie}
    for path in (ESTIMATES, ESTIMATES.replace(".csv", ".xlsx")):
        answer = proxy.research.ask("GET", path, headers=signed_in)
        check_application(answer, path, 200)
        assert "attachment" in by_name(answer[1])["content-disposition"][0]
    (style,) = set(re.findall(r'href="(/research/\S+?\.css)"', visit.get("/research/").text))
    check_application(proxy.research.ask("GET", style), style, 200, immutable=True)
    token = {"Authorization": f"Bearer {make_token(store, store.researcher(EMAIL).key)}"}
    path = "/api/v1/surveys/small/versions/1/definition"
    api = proxy.research
    check_application(api.ask("GET", path), path, 401)
    answer = api.ask("GET", path, headers=token)
    check_application(answer, path, 200)
    conditional = {**token, "If-None-Match": by_name(answer[1])["etag"][0]}
    check_application(api.ask("GET", path, headers=conditional), path, 304)
    check_application(api.ask("GET", path, headers={**token, "Accept": "image/png"}), path, 406)
    wrong = f"{path.replace('definition', 'estimates')}?level=7"
    check_application(api.ask("GET", wrong, headers=token), path, 422)


def test_headers_are_exact_on_every_error_of_nginx(proxy, serve, small):
    check_nginx(proxy.ask("POST", REPORTS, b"x" * 20_000, JSON), 413)
    check_nginx(proxy.ask("GET", "/s/" + "a" * 9_000), 414)
    check_nginx(proxy.ask("GET", "/s/small", headers={"X-Long": "a" * 40_000}), 400)
    check_nginx(proxy.ask("TRACE", "/s/small"), 405)
    check_nginx(send_bytes(proxy, request_head(b"x:1", method=b"CONNECT")), 400)
    check_nginx(send_bytes(proxy, request_head(b"/%00")), 400)
    check_nginx(send_bytes(proxy, request_head(REPORTS.encode(), method=b"POST")), 411)
    coded = request_head(REPORTS.encode(), b"Transfer-Encoding: foo", method=b"POST")
    check_nginx(send_bytes(proxy, coded), 501)
    check_nginx(send_bytes(proxy, request_head(b"/", version=b"9.9")), 505)
    check_nginx(send_bytes(proxy, request_head(b"/"), encrypted=False), 400, https=False)
    cut = request_head(b"/", b"X-Long: " + b"a" * 40_000)
    check_nginx(send_bytes(proxy, cut, encrypted=False, port=proxy.plain_port), 400, https=False)
    for internal in ("away", "too-many", "none", "", "anything"):
        check_nginx(proxy.ask("GET", f"/nginx/{internal}"), 404)
        check_nginx(proxy.ask("GET", f"//%6eginx/{internal}"), 404)
    for process in serve.processes:
        process.kill()
        process.communicate()
    check_nginx(proxy.ask("GET", "/s/small"), 503)


TOO_MANY_HEADERS = [b"x-%d: 1" % number for number in range(110)]


def test_headers_are_exact_when_the_server_does_not_call_the_application(proxy):
    for path in (b"/s/small", b"/research/"):
        host = proxy.site(path.decode()).host
        check_server(send_bytes(proxy, request_head(path, *TOO_MANY_HEADERS, host=host)), 431)
    for path in (b"/s/small", b"/research/", b"/api/v1/surveys", b"/"):
        host = proxy.site(path.decode()).host
        check_server(send_bytes(proxy, request_head(path + b"?x=\xff", host=host)), 400)
    check_server(send_bytes(proxy, request_head(b'/s/small?a="<>')), 400)


def test_headers_are_the_same_over_http2(proxy, node, small):
    for site in (proxy, proxy.research):
        routes = [route for route in ROUTES if proxy.site(route[1]).host == site.host]
        requests = [
            {"method": method, "path": path, "headers": EMPTY if method == "POST" else {}}
            for method, path, _ in routes
        ]
        answers = ask_over_http2(site, node, requests)
        for (method, path, status), (actual, headers, _) in zip(routes, answers, strict=True):
            assert actual == status, (method, path)
            ours = by_name(site.ask(method, path, headers={"Accept-Encoding": "br"})[1])
            theirs = by_name(headers)
            for headers in (ours, theirs):
                headers.pop("set-cookie", None)
            assert without_transport(theirs) == without_transport(ours), (method, path)
    requests = [
        {
            "method": "POST",
            "path": "/s/small/reports",
            "body": "x" * 20_000,
            "headers": {"content-length": "20000"},
        },
        {"method": "POST", "path": "/s/small/reports", "body": "without a length"},
        {"method": "TRACE", "path": "/s/small"},
        {"method": "GET", "path": "/nginx/away"},
    ]
    answers = ask_over_http2(proxy, node, requests)
    for answer, status in zip(answers, (413, 411, 405, 404), strict=True):
        check_nginx(answer, status)
