"""Security headers: exact strings on every route and every status."""

from __future__ import annotations

import pytest

from survey.app import create_app
from survey.collect.publication import close
from survey.errors import StoreBusyError
from survey.settings import Settings
from survey.store import open_store
from tests.conftest import SECRET, TODAY

POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; "
    "img-src 'self' data:; form-action {}; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
REQUESTS = [
    ("get", "/s/small", 200),
    ("get", "/s/none", 404),
    ("get", "/s/small/definition.json", 200),
    ("post", "/s/small/reports", 415),
    ("put", "/s/small/reports", 405),
    ("get", "/", 404),
    ("get", "/healthz", 200),
    ("get", "/favicon.ico", 200),
    ("get", "/client/0/main.js", 404),
    ("get", "/research/", 302),
    ("get", "/research/sign-in", 200),
    ("post", "/research/sign-in", 400),
    ("get", "/research/none", 404),
    ("get", "/research/surveys/small/1/estimates.csv", 302),
    ("get", "/%00%ff", 404),
]


REPORTS = [
    ({}, 201),
    ({"codes": [1, 1]}, 409),
    ({"codes": [9, 9]}, 422),
    ({"pad": "." * 9000}, 413),
]


@pytest.mark.security
@pytest.mark.parametrize(("method", "path", "status"), REQUESTS)
def test_every_route_and_status_carries_the_exact_headers(client, small, method, path, status):
    response = getattr(client, method)(path)
    assert response.status_code == status
    check_headers(response, path)


@pytest.mark.security
def test_every_answer_to_a_report_carries_the_exact_headers(client, store, small, monkeypatch):
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
        check_headers(response, path)
    close(store, "small", TODAY)
    closed = client.post(path, json={**form, "report_id": "C" + "A" * 21})
    assert closed.status_code == 410
    check_headers(closed, path)

    def busy(*_):
        raise StoreBusyError("busy")

    monkeypatch.setattr(store, "versions", busy)
    refused = client.post(path, json=form)
    assert refused.status_code == 503
    check_headers(refused, path)


def check_headers(response, path):
    form_action = "'self'" if path.startswith("/research") else "'none'"
    assert response.headers["Content-Security-Policy"] == POLICY.format(form_action)
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Frame-Options"] == "DENY"
    assert response.headers["Permissions-Policy"] == (
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()"
    )
    assert "Strict-Transport-Security" not in response.headers  # http on loopback


@pytest.mark.security
def test_an_internal_error_has_the_headers_and_no_detail(app, small, store, monkeypatch, caplog):
    def broken(_):
        raise RuntimeError("inner detail")

    monkeypatch.setattr(store, "versions", broken)
    response = app.test_client().get("/s/small")
    assert response.status_code == 500
    assert "inner detail" not in response.text
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.security
def test_client_files_are_immutable_under_the_hash_of_them_all(client, small):
    page = client.get("/s/small").text
    base = page.split('src="')[1].split("/main.js")[0]
    script = client.get(f"{base}/main.js")
    assert script.status_code == 200
    assert script.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert script.mimetype == "text/javascript"
    assert len(base.removeprefix("/client/")) == 64


@pytest.mark.security
def test_over_https_cookies_are_host_bound_and_transport_is_strict(tmp_path):
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
