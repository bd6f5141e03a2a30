"""Two origins and an onion address: every route, by every method, on every host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask

from survey.app import create_app
from survey.collect.simulation import make_test_run
from survey.hosts import hosts_of
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.loading import load, source_of
from survey.respond import Client
from survey.settings import Caps
from survey.store import PublishedSurvey
from tests.conftest import EMAIL, ONION, PASSWORD, SMALL, TODAY
from tests.web.researchers import token
from tests.web.routes import Routes, add_links
from tests.web.test_headers import check_headers

pytestmark = pytest.mark.security

PUBLIC, RESEARCH = "https://survey.example.org", "https://research.example.org"
UNKNOWN = "https://evil.example"
ORIGINS = (PUBLIC, RESEARCH, UNKNOWN, ONION)

RESPONDENTS = {"respond", "home", "healthz"}
RESEARCHERS = {
    *("accounts", "account", "tokens", "team", "people", "research", "drafts", "collection"),
    *("lifecycle", "results", "microdata", "reports", "api", "home", "healthz"),
    *("share", "readers", "versions", "looks", "handbook", "questionnaires"),
}
"""Parts of the application for each audience; on purpose, this repeats the application's table."""

SHARED = {"respond.client_file", "respond.favicon", "respond.picture"}
"""Files for respondents that test runs need as well."""

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")


@pytest.fixture
def two_origins(store, settings) -> Flask:
    """Return the application with two origins and an onion address."""
    separate = replace(settings, public_url=PUBLIC, research_url=RESEARCH, onion_url=ONION)
    return create_app(separate, store)


@pytest.fixture
def run(store, small, researcher) -> PublishedSurvey:
    """Return a test run of a draft."""
    content = draft_from(source_of(small.definition))
    draft = store.add_draft(content.to_json(), EMAIL, 1, {store.researcher(EMAIL).key: "owner"})
    return make_test_run(store, load(SMALL.encode(), "s.toml", Caps()), draft, TODAY)


def expected_origins(endpoint: str) -> set[str]:
    """Return the origins that must answer an endpoint for a survey that is not a test run."""
    part = endpoint.partition(".")[0]
    origins = {PUBLIC, ONION} if part in RESPONDENTS else set()
    if part in RESEARCHERS or endpoint in SHARED:
        origins.add(RESEARCH)
    return origins | ({UNKNOWN} if endpoint == "healthz" else set())


def check_missing(response: Any, place: object) -> None:
    """Check that a response reveals nothing about the route of another host."""
    assert response.status_code == 404, place
    assert not {"Allow", "Set-Cookie", "Location"} & set(response.headers.keys()), place
    if "evil" not in response.request.host:
        is_research = response.request.host == RESEARCH.partition("://")[2]
        is_https = response.request.scheme == "https"
        check_headers(response, https=is_https, for_respondents=not is_research)


def requests(app: Flask, routes: Routes) -> Iterator[tuple[str, str, str]]:
    """Yield every route's endpoint and address with every method."""
    for rule in app.url_map.iter_rules():
        for method in METHODS:
            yield rule.endpoint, routes.address(rule), method


@pytest.mark.web
def test_every_route_answers_on_the_hosts_of_its_audience_only(
    two_origins, store, small, researcher
):
    add_links(store, small)
    client = two_origins.test_client()
    routes = Routes(two_origins, store, small, EMAIL)
    for endpoint, address, method in requests(two_origins, routes):
        expected = expected_origins(endpoint)
        assert expected, endpoint
        for origin in ORIGINS:
            response = client.open(address, method=method, base_url=origin)
            place = (method, origin, address, response.status)
            if origin not in expected:
                check_missing(response, place)
            else:
                assert response.status_code != 404, place


def test_addresses_that_redirect_elsewhere_are_missing_on_the_respondents_host(two_origins):
    client = two_origins.test_client()
    for origin in (PUBLIC, ONION, UNKNOWN):
        for path in ("/research", "//research/sign-in", "/api/v1//surveys", "/none"):
            check_missing(client.get(path, base_url=origin), (origin, path))


@pytest.mark.parametrize("path", ["/s//small", "/s/small//definition.json", "/client//x/main.js"])
@pytest.mark.parametrize("origin", [PUBLIC, ONION])
def test_repeated_slashes_lead_to_no_page_of_the_framework(two_origins, small, path, origin):
    answer = two_origins.test_client().get(path, base_url=origin, headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert answer.mimetype == "application/problem+json" or answer.data == Client.load().page


def test_a_test_run_opens_on_the_researchers_host_only(two_origins, run, small):
    client = two_origins.test_client()
    for suffix, status in (
        ("", 200),
        ("/", 200),
        ("/definition.json", 200),
        ("/sent", 204),
        ("/x", 404),
    ):
        for slug, own, others in (
            (run.slug, [RESEARCH], [PUBLIC, ONION, UNKNOWN]),
            (small.slug, [PUBLIC, ONION], [RESEARCH, UNKNOWN]),
        ):
            address = f"/s/{slug}{suffix}"
            for origin in own:
                assert client.get(address, base_url=origin).status_code == status, address
            for origin in others:
                check_missing(client.get(address, base_url=origin), (origin, address))
    # Percent-encoding and repeated slashes do not change the audience.
    for path in ("/s/%74rial-1", f"//s//{run.slug}", f"/s/%74{run.slug[1:]}"):
        check_missing(client.get(path, base_url=PUBLIC), path)


def test_a_route_without_a_declared_audience_answers_on_no_host(two_origins, app):
    for application in (two_origins, app):
        application.add_url_rule("/new", "new.page", lambda: "new")
    for origin in ORIGINS:
        check_missing(two_origins.test_client().get("/new", base_url=origin), origin)
    assert hosts_of("new.page") == frozenset()
    assert app.test_client().get("/new").text == "new"


def test_host_names_are_compared_without_case_and_with_their_port(two_origins):
    client = two_origins.test_client()
    for host, status in (
        ("SURVEY.example.org", 200),
        ("survey.example.org:443", 200),
        ("survey.example.org:8443", 404),
        ("survey.example.org.", 404),
        ("survey.example.org@evil.example", 404),
        ("", 404),
    ):
        response = client.get("/", base_url=PUBLIC, headers={"Host": host})
        assert response.status_code == status, host


@pytest.mark.parametrize(
    ("public", "research"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8001"),
        ("http://127.0.0.1:8000", "http://localhost:8000"),
        ("http://[::1]:8000", "http://[::1]:8001"),
    ],
)
def test_two_loopback_addresses_are_two_origins(store, settings, small, public, research):
    app = create_app(replace(settings, public_url=public, research_url=research), store)
    client = app.test_client()
    for path, origin in (("/s/small", public), ("/research/sign-in", research)):
        other = research if origin == public else public
        assert client.get(path, base_url=origin).status_code == 200
        assert client.get(path, base_url=other).status_code == 404


def test_each_host_has_a_separate_start_page(two_origins):
    client = two_origins.test_client()
    for origin in (PUBLIC, ONION):
        assert client.get("/", base_url=origin).data == Client.load().page
    start = client.get("/", base_url=RESEARCH)
    assert (start.status_code, start.location) == (302, "/research/")


def test_error_pages_speak_to_the_audience_of_the_host(two_origins):
    client = two_origins.test_client()
    html = {"Accept": "text/html"}
    for path in ("/none", "/research/none", "/s/none/x"):
        for origin in (PUBLIC, ONION):
            page = client.get(path, base_url=origin, headers=html)
            assert (page.status_code, page.data) == (404, Client.load().page)
        page = client.get(path, base_url=UNKNOWN, headers=html)
        assert (page.status_code, page.mimetype) == (404, "application/problem+json")
        page = client.get(path, base_url=RESEARCH, headers=html)
        assert 'href="/research/"' in page.text


def test_a_page_of_the_other_origin_can_send_neither_reports_nor_researchers_forms(
    two_origins, store, small, run, researcher
):
    client = two_origins.test_client()
    report = {"Content-Type": "application/json"}
    for path, own, other in (
        ("/s/small/reports", PUBLIC, RESEARCH),
        ("/s/small/reports", ONION, PUBLIC.replace("survey", "other")),
        (f"/s/{run.slug}/reports", RESEARCH, PUBLIC),
    ):
        for origin, is_rejected in ((own, False), (other, True)):
            headers = {**report, "Origin": origin}
            response = client.post(path, base_url=own, data="{", headers=headers)
            assert ("this site's own page" in response.text) == is_rejected, (path, origin)
    # A form that comes from the respondents' page gets none of its fields back.
    form = {"title": "typed"}
    address = f"/research/drafts/{store.drafts()[0].slug}/texts"
    for origin, status in ((RESEARCH, 401), (PUBLIC, 302)):
        headers = {"Origin": origin}
        response = client.post(address, base_url=RESEARCH, data=form, headers=headers)
        assert response.status_code in (status, 400), origin
        assert ("typed" in response.text) == (origin == RESEARCH)


def test_links_lead_to_the_host_that_answers_them(two_origins, store, small, run, researcher):
    client = two_origins.test_client()
    page = client.get("/research/sign-in", base_url=RESEARCH)
    assert page.headers["Set-Cookie"].startswith("__Host-survey=")
    form = {"csrf_token": token(page), "email": EMAIL, "password": PASSWORD}
    assert client.post("/research/sign-in", base_url=RESEARCH, data=form).status_code == 302
    collect = client.get("/research/surveys/small/collect", base_url=RESEARCH).text
    assert f"{PUBLIC}/s/small#" in collect
    draft = run.slug.rpartition("-")[0]
    test_page = client.get(f"/research/drafts/{draft}/try", base_url=RESEARCH).text
    assert f"{RESEARCH}/s/{run.slug}#" in test_page
    api = client.get("/api/v1/openapi.json", base_url=RESEARCH).json
    assert api["servers"] == [{"url": RESEARCH}]


def test_transport_security_and_the_onion_address_appear_where_they_apply(two_origins, small):
    client = two_origins.test_client()
    for origin, path, expected in (
        (PUBLIC, "/s/small", f"{ONION}/s/small"),
        (PUBLIC, "/", f"{ONION}/"),
        (PUBLIC, "/s/a%20b%0Ac", f"{ONION}/s/a%20b%0Ac"),
        (PUBLIC, "/s/small/definition.json", None),
        (PUBLIC, "/research/", None),
        (RESEARCH, "/research/sign-in", None),
        (UNKNOWN, "/", None),
        (ONION, "/s/small", None),
    ):
        headers = {"Accept": "text/html"}
        response = client.get(path, base_url=origin, headers=headers)
        assert response.headers.get("Onion-Location") == expected, (origin, path)
        assert ("Strict-Transport-Security" in response.headers) == (origin != ONION)
        assert "Set-Cookie" not in response.headers or origin == RESEARCH


def test_with_one_address_the_onion_address_still_answers_respondents_only(store, settings, small):
    app = create_app(replace(settings, public_url=PUBLIC, onion_url=ONION), store)
    client = app.test_client()
    assert client.get("/s/small", base_url=ONION).status_code == 200
    for path in ("/research/sign-in", "/api/v1/openapi.json"):
        assert client.get(path, base_url=ONION).status_code == 404
        response = client.get(path, base_url=PUBLIC)
        assert response.status_code == 200
        assert "Onion-Location" not in response.headers
    assert client.get("/s/small", base_url=PUBLIC).headers["Onion-Location"] == f"{ONION}/s/small"
    report = client.post("/s/small/reports", base_url=ONION, headers={"Origin": ONION})
    assert report.status_code == 415
