"""Security headers: exact values on every route, for every method and every status."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask, abort

from survey import errors
from survey.app import create_app
from survey.collect.publication import close
from survey.errors import StoreBusyError
from survey.respond import Client
from survey.settings import Settings
from survey.store import open_store
from tests.api.conftest import make_token
from tests.conftest import EMAIL, SECRET, TODAY
from tests.web.researchers import send, sign_in, token
from tests.web.routes import Routes, add_links

POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'none'; connect-src 'self'; "
    "style-src 'self'; "
    "img-src 'self' data:; form-action {}; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
TRANSPORT = "Strict-Transport-Security"
SOMETIMES = {
    "Allow",
    "Clear-Site-Data",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "ETag",
    "Location",
    "Retry-After",
    "Set-Cookie",
    "Vary",
    "WWW-Authenticate",
}
"""Other permitted headers; none identifies the server or lets other sites read a response."""

IMMUTABLE = ("/client/", "/pictures/", "/research/assets/")


FRAMES = re.compile(r"/research/drafts/[^/]+/(preview|questions/\d+)")
FRAMED = re.compile(r"/research/drafts/[^/]+/preview/page")
"""The only pages that show a frame, and the only one that can be shown in one."""

PUBLIC_FIGURE = re.compile(r"/research/public/[^/]+/\d+/figures/[^/]+\.(svg|png)")
"""The only address whose content other sites can show."""

LOGO = re.compile(r"/research/assets/[^/]+/[^/]+/logo")
"""A file of a researcher, which must not do anything."""

ISOLATED = "default-src 'none'; sandbox"

FIELD = re.compile(r"/field/(index\.html|worker\.js)?")
"""The page of field mode and its service worker; no other page may install one."""

FRAMED_POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'none'; "
    "connect-src {0}/client/ {0}/pictures/; "
    "style-src 'self'; "
    "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; "
    "require-trusted-types-for 'script'"
)


def special_headers(path: str, host: str, status: int) -> dict[str, str]:
    """Return the headers of researchers' addresses that differ from all others."""
    policy = "Content-Security-Policy"
    if FRAMES.fullmatch(path):
        frames = POLICY.format("'self'").replace("form-action", "frame-src 'self'; form-action")
        return {policy: frames}
    if FRAMED.fullmatch(path):
        return {policy: FRAMED_POLICY.format(host), "X-Frame-Options": "SAMEORIGIN"}
    if path.startswith("/research/results/"):
        return {"X-Robots-Tag": "noindex"}
    if PUBLIC_FIGURE.fullmatch(path) and status == 200:
        return {"Cross-Origin-Resource-Policy": "cross-origin"}
    if LOGO.fullmatch(path):
        return {policy: ISOLATED}
    return {}


def check_headers(response: Any, *, https: bool = False, for_respondents: bool = False) -> None:
    """Check that a response has each expected header once, with its exact value."""
    path = response.request.path
    expected = {**ALWAYS, "Cache-Control": "no-store"}
    expected["Content-Security-Policy"] = POLICY.format(
        "'self'"
        if path.startswith(("/research", "/handbook")) and not for_respondents
        else "'none'"
    )
    if FIELD.fullmatch(path) and response.status_code == 200:
        policy = POLICY.format("'none'").replace("worker-src 'none'", "worker-src 'self'")
        expected["Content-Security-Policy"] = policy
    if not for_respondents and response.status_code != 405:
        expected |= special_headers(path, response.request.host, response.status_code)
    if path.startswith("/pictures/") and response.status_code != 405:
        expected["Content-Security-Policy"] = ISOLATED
    if path.startswith(IMMUTABLE) and response.status_code == 200:
        expected["Cache-Control"] = "public, max-age=31536000, immutable"
    if path.startswith("/api/"):
        expected |= {"Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
    if https:  # over HTTP, on loopback, the header would make browsers insist on HTTPS
        expected[TRANSPORT] = "max-age=63072000; includeSubDomains"
    at = f"{response.request.method} {path} -> {response.status_code}"
    for name, value in expected.items():
        assert response.headers.getlist(name) == [value], (at, name)
    assert set(response.headers.keys()) <= {*expected, *SOMETIMES}, at


# -- every route, by every method


PARTS = [
    ("", "respond", "accounts", "account", "tokens", "handbook"),
    ("team", "looks", "people", "collection", "lifecycle", "microdata"),
    ("share", "readers"),
    ("drafts",),
    ("reports", "questionnaires"),
    ("research",),
    ("results", "versions"),
    ("api",),
]
NOT_200 = {
    "accounts.authentication_code": 302,
    "accounts.provider": 302,
    "accounts.provider_return": 302,  # no client has passed only the first step
    "results.newest": 302,
    "results.explore": 302,
    "respond.sent": 204,
}
"""Status of each accessible page whose status is not 200."""

NOT_TAKEN = "PUT"


@pytest.fixture
def https_app(store, settings) -> Flask:
    """Return the application as served behind a proxy, over HTTPS."""
    public = replace(settings, public_url="https://survey.example.org")
    app = create_app(public, store)
    app.config["PREFERRED_URL_SCHEME"] = "https"  # the scheme of the test client's requests
    return app


def part_of(endpoint: str) -> str:
    return endpoint.rpartition(".")[0]


@pytest.mark.security
def test_headers_are_tested_on_every_part_of_the_application(app):
    listed = [part for parts in PARTS for part in parts]
    assert sorted(listed) == sorted({part_of(rule.endpoint) for rule in app.url_map.iter_rules()})


def answers(app: Flask, client: Any, routes: Routes, parts: tuple[str, ...], **options: Any) -> Any:
    """Yield the response of every route of these parts to each allowed method and one other."""
    for rule in app.url_map.iter_rules():
        if part_of(rule.endpoint) not in parts:
            continue
        for method in [*sorted(rule.methods), NOT_TAKEN]:
            data = {"csrf_token": token(client.get("/research/sign-in"))}
            response = client.open(routes.address(rule), method=method, data=data, **options)
            assert (response.status_code == 405) == (method == NOT_TAKEN), rule
            yield rule, method, response
            if rule.endpoint == "accounts.sign_out" and options:
                sign_in(client)


@pytest.mark.web
@pytest.mark.security
@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: parts[-1])
def test_headers_are_exact_on_every_route_by_every_method_signed_in_and_not(
    https_app, store, small, researcher, parts
):
    add_links(store, small)
    routes = Routes(https_app, store, small, EMAIL)
    stranger, admin = https_app.test_client(), https_app.test_client()
    for _, _, response in answers(https_app, stranger, routes, parts):
        check_headers(response, https=True)
    assert sign_in(admin).status_code == 302
    authorization = {"Authorization": f"Bearer {make_token(store, store.researcher(EMAIL).key)}"}
    for rule, method, response in answers(https_app, admin, routes, parts, headers=authorization):
        check_headers(response, https=True)
        if method in ("GET", "HEAD"):
            assert response.status_code == NOT_200.get(rule.endpoint, 200), (method, rule)


# -- every status


def refusals() -> Iterator[errors.SurveyError]:
    """Yield one error of every class of the project."""
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.SurveyError):
            arguments = {
                errors.DefinitionError: ([("title", "is missing")],),
                errors.FieldError: ("penalty", "is unknown"),
                errors.NotOpenError: (TODAY,),
            }
            yield kind(*arguments.get(kind, ("a reason",)))


REFUSALS = {type(error).__name__: error for error in refusals()}
STATUSES = (400, 401, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417)
MORE_STATUSES = (422, 423, 428, 429, 431, 451, 500, 501, 502, 503, 504)
PLACES = ["/raised", "/s/raised", "/client/raised", "/research/raised", "/api/v1/raised"]


def raise_error(name: str) -> None:
    """Raise the error of this class name or HTTP status, or else an unexpected error."""
    if name.isdigit():
        abort(int(name))
    raise REFUSALS.get(name) or RuntimeError("inner detail")


@pytest.mark.security
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("https", [False, True], ids=["http", "https"])
def test_headers_are_exact_on_every_error_status(app, https_app, place, https):
    tested_app = https_app if https else app
    tested_app.add_url_rule(f"{place}/<name>", "raised", raise_error, methods=["GET", "POST"])
    client = tested_app.test_client()
    expected = {name: errors.STATUS.get(type(error), 500) for name, error in REFUSALS.items()}
    expected |= {str(status): status for status in (*STATUSES, *MORE_STATUSES)}
    assert {401, 403, 413, 429, 500, 503} <= set(expected.values())
    for name, status in {**expected, "RuntimeError": 500}.items():
        for accept in ("text/html", "*/*"):
            response = client.get(f"{place}/{name}", headers={"Accept": accept})
            assert response.status_code == status, name
            assert "inner detail" not in response.text
            check_headers(response, https=https)


REQUESTS = [
    ("get", "/s/small", 200),
    ("get", "/s/none", 200),
    ("get", "/s/none/definition.json", 404),
    ("get", "/client-manifest.json", 200),
    ("get", "/s/small/definition.json", 200),
    ("post", "/s/small/reports", 415),
    ("put", "/s/small/reports", 405),
    ("get", "/", 200),
    ("get", "/healthz", 200),
    ("get", "/favicon.ico", 200),
    ("get", "/client/0/main.js", 404),
    ("get", "/research/", 302),
    ("get", "/research/sign-in", 200),
    ("post", "/research/sign-in", 400),
    ("get", "/research/none", 404),
    ("get", "/research/assets/0/research.css", 404),
    ("get", "/research/surveys/small/1/estimates.csv", 302),
    ("get", "/api/v1/surveys", 401),
    ("get", "/api/v1/none", 404),
    ("get", "/%00%ff", 404),
]


@pytest.mark.security
def test_headers_are_exact_over_http_and_on_missing_pages(client, small):
    for method, path, status in REQUESTS:
        response = getattr(client, method)(path)
        assert response.status_code == status, (method, path)
        check_headers(response)


@pytest.mark.security
def test_headers_are_exact_on_failed_and_throttled_attempts_to_sign_in(client, researcher):
    for status in [403] * 10 + [429]:
        response = sign_in(client, password="wrong")
        assert response.status_code == status
        check_headers(response)


@pytest.mark.security
def test_headers_are_exact_for_an_insufficient_role_and_an_expired_session(
    client, store, small, researcher
):
    key = store.researcher(EMAIL).key  # the first researcher is the administrator and adds a viewer
    viewer = store.add_researcher("viewer@example.org", store.researcher(EMAIL).password_hash)
    draft = Routes(client.application, store, small, EMAIL).draft({key: "owner"})
    store.set_role("small", viewer.key, "viewer")
    sign_in(client, "viewer@example.org")
    forbidden = client.get("/research/surveys/small/collect")
    assert forbidden.status_code == 403
    check_headers(forbidden)
    client.delete_cookie("survey")
    expired = send(
        client, f"/research/drafts/{draft}/texts", page="/research/sign-in", title="Mine"
    )
    assert expired.status_code == 401
    check_headers(expired)


REPORTS = [
    ({}, 201),
    ({"codes": [1, 1]}, 201),
    ({"definition": "0" * 64}, 409),
    ({"codes": [9, 9]}, 422),
    ({"pad": "." * 9000}, 413),
]


@pytest.mark.security
def test_headers_are_exact_on_every_response_to_a_report(client, store, small, monkeypatch):
    path = "/s/small/reports"
    form = {
        "definition": small.sha256,
        "report_id": "A" * 22,
        "stratum": "",
        "codes": [0, 2],
        "invitation": "",
        "pad": "",
    }
    for changes, status in REPORTS:
        response = client.post(path, json={**form, **changes})
        assert response.status_code == status
        check_headers(response)
    close(store, "small", TODAY)
    closed = client.post(path, json={**form, "report_id": "C" + "A" * 21})
    assert closed.status_code == 410
    check_headers(closed)

    def busy(*_):
        raise StoreBusyError("busy")

    monkeypatch.setattr(store, "versions", busy)
    refused = client.post(path, json=form)
    assert refused.status_code == 503
    check_headers(refused)


@pytest.mark.security
def test_headers_are_exact_on_an_internal_error_whose_page_reveals_no_detail(
    app, small, store, monkeypatch, caplog
):
    def fail(_):
        raise RuntimeError("inner detail")

    monkeypatch.setattr(store, "versions", fail)
    response = app.test_client().get("/s/small/definition.json")
    assert response.status_code == 500
    assert "inner detail" not in response.text
    check_headers(response)


@pytest.mark.security
def test_headers_let_client_files_be_cached_forever(client, small):
    types = {
        "js": "text/javascript",
        "css": "text/css",
        "svg": "image/svg+xml",
        "json": "application/json",
    }
    page = client.get("/s/small").text
    base = page.partition("/main.js")[0].rpartition('"')[2]
    assert len(base.removeprefix("/client/")) == 64
    for name in sorted(Client.load().files):
        file = client.get(f"{base}/{name}")
        assert file.status_code == 200, name
        check_headers(file)
        assert file.mimetype == types[name.rpartition(".")[2]], name


@pytest.mark.security
def test_headers_over_https_bind_cookies_to_the_host_and_transport_is_strict(tmp_path):
    settings = Settings(
        secret=SECRET,
        database=f"sqlite:///{tmp_path / 'x.db'}",
        public_url="https://survey.example.org",
        password_cost=1,
    )
    store = open_store(settings.database)
    store.migrate()
    response = (
        create_app(settings, store)
        .test_client()
        .get("/research/sign-in", base_url="https://survey.example.org")
    )
    cookie = response.headers["Set-Cookie"]
    assert cookie.startswith("__Host-survey=")
    for flag in ("Secure", "HttpOnly", "SameSite=Strict", "Path=/"):
        assert flag in cookie
    assert "Domain" not in cookie
    assert response.headers["Strict-Transport-Security"] == "max-age=63072000; includeSubDomains"
    store.close_connections()


@pytest.mark.security
def test_the_home_page_explains_the_server_and_sets_no_cookie(client):
    response = client.get("/")
    assert response.status_code == 200
    check_headers(response)
    assert "Set-Cookie" not in response.headers
    assert "open the link or the QR code that you received" in response.text
    assert 'href="/research/sign-in"' in response.text
    addresses = re.findall(r'(?:href|src|action)="([^"]*)"', response.text)
    assert all(address.startswith("/") for address in addresses)
