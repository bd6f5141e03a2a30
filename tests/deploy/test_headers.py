"""Headers (security 15): exact strings on every route and every status, through the proxy.

Two cannot be caused here. 429 of the application comes after ten tries to sign in, and is looked at
in test_logins.py; its 501 says that a part of the installation is missing, and here none is. nginx
closes without an answer on whoever is too slow (408) or asks for another host (444).
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
from tests.conftest import EMAIL, TODAY
from tests.deploy.headers import (
    BY_NGINX,
    asked_for,
    at_the_server,
    check_application_s,
    check_bare,
    check_own,
    named,
    raw,
)
from tests.deploy.proxy import over_http2
from tests.faults.reports import JSON, new_body
from tests.store.databases import Outside
from tests.web.visits import SIGN_IN, Page, Visit

pytestmark = [pytest.mark.web, pytest.mark.security]

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


def test_headers_are_exact_and_never_doubled_on_every_route_and_status(proxy, serve, small):
    for method, path, status in ROUTES:
        through = proxy.ask(method, path, headers={"Accept-Encoding": "br"})
        direct = at_the_server(proxy, method, path)
        assert through[0] == status == direct[0], (method, path)
        ours, theirs = named(through[1]), named(direct[1])
        assert all(len(values) == 1 for name, values in ours.items() if name != "set-cookie")
        for headers in (ours, theirs):
            headers.pop("set-cookie", None)
        kept = {name: value for name, value in theirs.items() if name not in BY_NGINX}
        assert {n: v for n, v in ours.items() if n not in BY_NGINX} == kept, (method, path)
        assert ours["strict-transport-security"] == [STRICT_TRANSPORT]
        assert ours.get("server", ["nginx"]) == ["nginx"]


REPORTS = "/s/small/reports"
CLIENT = f"/client/{Client.load().sha256}/main.js"
ESTIMATES = "/research/surveys/small/1/estimates.csv"


def test_headers_are_exact_on_every_status_that_the_application_gives_a_respondent(
    proxy, store, settings, small
):
    report = json.loads(new_body(small))

    def post(**changes: Any) -> bytes:
        return json.dumps({**report, **changes}).encode()

    asked = [
        ("GET", "/s/small", None, {}, 200),
        ("HEAD", "/s/small", None, {}, 200),
        ("GET", "/s/small?q=%C3%BC|^`{}", None, {}, 200),
        ("GET", CLIENT, None, {}, 200),
        ("GET", "/favicon.ico", None, {}, 200),
        ("GET", "/s/small/sent", None, {}, 204),
        ("POST", REPORTS, post(), JSON, 201),
        ("POST", REPORTS, b"{", JSON, 400),
        ("POST", REPORTS, post(), {**JSON, "Sec-Fetch-Site": "cross-site"}, 403),
        ("GET", "/s/none", None, {}, 404),
        ("PUT", REPORTS, b"", {}, 405),
        ("POST", REPORTS, post(codes=[1, 1]), JSON, 409),
        ("POST", REPORTS, post(pad="." * 9000), JSON, 413),
        ("POST", REPORTS, b"{}", {}, 415),
        ("POST", REPORTS, post(codes=[9, 9]), JSON, 422),
    ]
    for method, path, body, telling, status in asked:
        answer = proxy.ask(method, path, body, telling)
        check_application_s(answer, path, status, immutable=path == CLIENT)
    with Outside(settings.database).connection() as held:
        held.execute("BEGIN EXCLUSIVE")
        check_application_s(proxy.ask("POST", REPORTS, new_body(small), JSON), REPORTS, 503)
    close(store, "small", TODAY)
    check_application_s(proxy.ask("POST", REPORTS, new_body(small), JSON), REPORTS, 410)
    # What no code of ours writes: an error that no address expects.
    Outside(settings.database).run("UPDATE survey SET changed = 'no day'")
    check_application_s(proxy.ask("GET", "/s/small"), "/s/small", 500)


def check_page(page: Page, path: str, status: int) -> None:
    check_application_s((page.status, page.headers, page.text.encode()), path, status)


def test_headers_are_exact_on_every_status_that_researchers_and_their_programs_see(
    proxy, store, small, researcher
):
    add_released(store, small, 100)
    visit = Visit(proxy.connect)
    check_page(visit.post(SIGN_IN), SIGN_IN, 400)
    check_page(visit.sign_in(password="not this one, surely"), SIGN_IN, 403)
    check_page(visit.sign_in(), SIGN_IN, 302)
    for page in ("", "account", "surveys/small/1", "surveys/small/collect"):
        check_page(visit.get(f"/research/{page}"), f"/research/{page}", 200)
    signed_in = {"Cookie": visit.cookie}
    for path in (ESTIMATES, ESTIMATES.replace(".csv", ".xlsx")):
        answer = proxy.ask("GET", path, headers=signed_in)
        check_application_s(answer, path, 200)
        assert "attachment" in named(answer[1])["content-disposition"][0]
    (style,) = set(re.findall(r'href="(/research/\S+?\.css)"', visit.get("/research/").text))
    check_application_s(proxy.ask("GET", style), style, 200, immutable=True)
    token = {"Authorization": f"Bearer {make_token(store, store.researcher(EMAIL).key)}"}
    path = "/api/v1/surveys/small/versions/1/definition"
    check_application_s(proxy.ask("GET", path), path, 401)
    found = proxy.ask("GET", path, headers=token)
    check_application_s(found, path, 200)
    kept = {**token, "If-None-Match": named(found[1])["etag"][0]}
    check_application_s(proxy.ask("GET", path, headers=kept), path, 304)
    check_application_s(proxy.ask("GET", path, headers={**token, "Accept": "image/png"}), path, 406)
    wrong = f"{path.replace('definition', 'estimates')}?level=7"
    check_application_s(proxy.ask("GET", wrong, headers=token), path, 422)


def test_headers_are_exact_on_what_nginx_refuses_by_itself(proxy, serve, small):
    check_own(proxy.ask("POST", REPORTS, b"x" * 20_000, JSON), 413)
    check_own(proxy.ask("GET", "/s/" + "a" * 9_000), 414)
    check_own(proxy.ask("GET", "/s/small", headers={"X-Long": "a" * 40_000}), 400)
    check_own(proxy.ask("TRACE", "/s/small"), 405)
    check_own(raw(proxy, asked_for(b"x:1", method=b"CONNECT")), 400)
    check_own(raw(proxy, asked_for(b"/%00")), 400)
    check_own(raw(proxy, asked_for(REPORTS.encode(), method=b"POST")), 411)
    coded = asked_for(REPORTS.encode(), b"Transfer-Encoding: foo", method=b"POST")
    check_own(raw(proxy, coded), 501)
    check_own(raw(proxy, asked_for(b"/", version=b"9.9")), 505)
    check_own(raw(proxy, asked_for(b"/"), encrypted=False), 400, https=False)
    cut = asked_for(b"/", b"X-Long: " + b"a" * 40_000)
    check_own(raw(proxy, cut, encrypted=False, port=proxy.plain_port), 400, https=False)
    for internal in ("away", "too-many", "none", "", "anything"):
        check_own(proxy.ask("GET", f"/nginx/{internal}"), 404)
        check_own(proxy.ask("GET", f"//%6eginx/{internal}"), 404)
    for process in serve.processes:
        process.kill()
        process.communicate()
    check_own(proxy.ask("GET", "/s/small"), 503)


MANY = [b"x-%d: 1" % number for number in range(110)]


def test_headers_are_exact_where_the_server_answers_before_its_application(proxy):
    for path in (b"/s/small", b"/research/"):
        check_bare(raw(proxy, asked_for(path, *MANY)), 431)
    for path in (b"/s/small", b"/research/", b"/api/v1/surveys", b"/"):
        check_bare(raw(proxy, asked_for(path + b"?x=\xff")), 400)
    check_bare(raw(proxy, asked_for(b'/s/small?a="<>')), 400)


def test_headers_are_the_same_over_the_protocol_that_browsers_speak(proxy, node, small):
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
        {"method": "GET", "path": "/nginx/away"},
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
    for answer, status in zip(answers[len(ROUTES) :], (413, 411, 405, 404), strict=True):
        check_own(answer, status)
