"""The report address: documented status codes and problem+json bodies, never a 5xx."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import flask
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as run
from hypothesis import strategies as st

from survey.app import create_app
from survey.collect.publication import close, publish
from survey.errors import StoreBusyError
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.conftest import SMALL


def body(small, **changes) -> dict:
    return {
        "definition": small.sha256,
        "report_id": "AAAAAAAAAAAAAAAAAAAAAA",
        "stratum": "",
        "codes": [0, 2],
        "invitation": "",
        "pad": "",
        **changes,
    }


def problem(response) -> dict:
    assert response.mimetype == "application/problem+json"
    form = json.loads(response.data)
    assert form["status"] == response.status_code
    assert set(form) == {"type", "title", "status", "detail"}
    return form


def test_a_new_report_and_its_repetition_get_the_same_empty_201(client, store, small):
    first = client.post("/s/small/reports", json=body(small))
    again = client.post("/s/small/reports", json=body(small))
    assert first.status_code == again.status_code == 201
    assert first.data == again.data == b""
    assert dict(first.headers) == dict(again.headers)
    assert store.n_pending(small.key) == 1


@pytest.mark.security
def test_the_same_id_gets_the_same_201_whatever_its_codes(client, store, small):
    """A different answer to a copy with other codes would let its sender guess them."""
    first = client.post("/s/small/reports", json=body(small))
    again = client.post("/s/small/reports", json=body(small, codes=[1, 2]))
    assert (again.status_code, again.data) == (201, first.data)
    assert store.n_pending(small.key) == 1


def test_an_unknown_survey_is_404(client, small):
    assert client.post("/s/other/reports", json=body(small)).status_code == 404


def test_a_report_for_another_definition_is_409(client, small):
    response = client.post("/s/small/reports", json=body(small, definition="0" * 64))
    assert response.status_code == 409
    assert "another definition" in problem(response)["detail"]


def test_reports_for_the_previous_version_are_accepted_for_7_days(client, store, small):
    changed = load(SMALL.replace("Two questions", "Both questions").encode(), "s.toml", Caps())
    today = datetime.now(UTC).date()
    publish(store, changed, today - timedelta(days=7))
    assert client.post("/s/small/reports", json=body(small)).status_code == 201
    assert store.n_pending(small.key) == 1


def test_reports_for_the_previous_version_are_rejected_after_8_days(client, store, small):
    changed = load(SMALL.replace("Two questions", "Both questions").encode(), "s.toml", Caps())
    today = datetime.now(UTC).date()
    publish(store, changed, today - timedelta(days=8))
    assert client.post("/s/small/reports", json=body(small)).status_code == 409


def test_a_stored_report_of_an_old_version_still_gets_its_201(client, store, small):
    client.post("/s/small/reports", json=body(small))
    today = datetime.now(UTC).date()
    for number, words in enumerate(("Both questions", "Just two questions")):
        changed = load(SMALL.replace("Two questions", words).encode(), "s.toml", Caps())
        publish(store, changed, today - timedelta(days=30 - number))
    assert client.post("/s/small/reports", json=body(small)).status_code == 201
    second_report = body(small, report_id="BAAAAAAAAAAAAAAAAAAAAA")
    assert client.post("/s/small/reports", json=second_report).status_code == 409


def test_a_closed_survey_is_410_but_a_known_report_still_gets_its_201(client, store, small):
    client.post("/s/small/reports", json=body(small))
    close(store, "small", datetime.now(UTC).date())
    assert client.post("/s/small/reports", json=body(small)).status_code == 201
    second_report = body(small, report_id="BAAAAAAAAAAAAAAAAAAAAA")
    response = client.post("/s/small/reports", json=second_report)
    assert response.status_code == 410
    assert "closed" in problem(response)["detail"]
    assert client.get("/s/small/definition.json").status_code == 410
    assert store.n_pending(small.key) == 1


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ([7, 0], "code 1 (fell_asleep) must be an integer from 0 to 2"),
        ([0], "codes must have 2 entries"),
        ([0, 0, 0], "codes must have 2 entries"),
    ],
)
def test_codes_out_of_range_missing_or_extra_are_422_naming_the_first(client, small, codes, words):
    response = client.post("/s/small/reports", json=body(small, codes=codes))
    assert response.status_code == 422
    assert words in problem(response)["detail"]


def test_a_body_over_8_kb_is_413(client, small):
    large = body(small, pad="." * 8200)
    assert client.post("/s/small/reports", json=large).status_code == 413


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain", ""]
)
def test_anything_but_json_is_415_and_is_not_parsed(client, store, small, kind):
    response = client.post("/s/small/reports", data=json.dumps(body(small)), content_type=kind)
    assert response.status_code == 415
    assert store.n_pending(small.key) == 0


def test_invalid_json_is_400(client, small):
    response = client.post("/s/small/reports", data=b"{", content_type="application/json")
    assert response.status_code == 400


def test_the_page_of_another_site_cannot_send_reports(client, store, small):
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": ""},
        {"Origin": "http://a]b"},
    ):
        response = client.post("/s/small/reports", json=body(small), headers=headers)
        assert response.status_code == 403, headers
        assert store.n_pending(small.key) == 0, headers


def test_a_proxy_that_hides_the_host_does_not_make_a_report_foreign(store, settings, small):
    public = replace(settings, public_url="https://survey.example.org")
    client = create_app(public, store).test_client()
    headers = {"Origin": "https://survey.example.org", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/s/small/reports", json=body(small), headers=headers).status_code == 201
    headers = {"Origin": "https://survey.example.org.evil.example"}
    assert client.post("/s/small/reports", json=body(small), headers=headers).status_code == 403


def test_a_busy_store_is_503_with_retry_after(client, store, small, monkeypatch):
    def busy(*_):
        raise StoreBusyError("the store cannot be used right now: database or disk is full")

    monkeypatch.setattr(store, "add_reports", busy)
    response = client.post("/s/small/reports", json=body(small))
    assert response.status_code == 503
    assert response.headers["Retry-After"].isdigit()


@pytest.mark.parametrize("method", ["get", "put", "delete", "patch"])
def test_other_methods_are_405(client, small, method):
    assert getattr(client, method)("/s/small/reports").status_code == 405


def test_a_rejection_never_echoes_the_input(client, small):
    marker = "marker-that-must-not-return"
    for changes in (
        {"pad": marker, "codes": [9, 9]},
        {"stratum": marker},
        {marker: 1},
        {"definition": marker},
        {"report_id": marker},
        {"codes": [marker, 0]},
    ):
        response = client.post("/s/small/reports", json=body(small, **changes))
        assert 400 <= response.status_code < 500
        assert marker not in response.text


@pytest.mark.security
def test_no_respondents_answer_sets_a_cookie(client, small):
    for response in (
        client.get("/s/small"),
        client.get("/s/small/definition.json"),
        client.post("/s/small/reports", json=body(small)),
        client.get("/s/none/definition.json"),
    ):
        assert "Set-Cookie" not in response.headers


@pytest.mark.security
def test_frozen_definition_50_different_clients_get_identical_bytes(client, small):
    answers = {
        client.get(
            "/s/small/definition.json",
            headers={
                "User-Agent": f"agent {i}",
                "Cookie": f"a={i}",
                "Accept-Language": f"l{i}",
                "X-Forwarded-For": f"203.0.113.{i}",
            },
        ).data
        for i in range(50)
    }
    assert answers == {small.canonical}


@pytest.mark.security
@run(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(
    data=st.binary(max_size=400),
    kind=st.sampled_from(
        ["application/json", "application/json; charset=latin-1", "text/plain", "", "a/b; =\x00"]
    ),
)
def test_strict_payloads_no_bytes_of_any_type_cause_a_5xx(client, small, data, kind):
    response = client.post("/s/small/reports", data=data, content_type=kind)
    assert 400 <= response.status_code < 500


HOST = "https://union.example"


@pytest.fixture
def split_client(store, settings):
    """Return a client of a server that lists one other host."""
    return create_app(replace(settings, client_origins=HOST), store).test_client()


def cross_origin(client, method: str, path: str, origin: str, **options):
    headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
    return client.open(path, method=method, headers=headers, **options)


@pytest.mark.security
def test_only_the_page_of_a_listed_host_may_load_a_definition_and_send(split_client, small):
    definition, reports = "/s/small/definition.json", "/s/small/reports"
    for origin in (HOST, "https://union.example.org", "http://union.example", "null"):
        is_listed = origin == HOST
        asked = cross_origin(split_client, "OPTIONS", reports, origin)
        loaded = cross_origin(split_client, "GET", definition, origin)
        missing = cross_origin(split_client, "GET", "/s/none/definition.json", origin)
        sent = cross_origin(split_client, "POST", reports, origin, json=body(small))
        assert (loaded.status_code, missing.status_code) == (200, 404)
        assert sent.status_code == (201 if is_listed else 403)
        for response in (asked, loaded, missing, sent):
            allowed = response.headers.get("Access-Control-Allow-Origin")
            assert allowed == (HOST if is_listed else None)
            assert "Access-Control-Allow-Credentials" not in response.headers
            assert "Origin" in response.headers["Vary"]
        assert (asked.headers.get("Access-Control-Allow-Headers") == "Content-Type") is is_listed


@pytest.mark.security
def test_no_other_address_may_be_read_by_the_page_of_another_host(split_client, small):
    page = split_client.get("/s/small").text
    file = re.findall(r'src="([^"]+)"', page)[0]
    for path in ("/s/small", "/s/small/sent", file, "/client-manifest.json", "/research/sign-in"):
        response = cross_origin(split_client, "GET", path, HOST)
        assert "Access-Control-Allow-Origin" not in response.headers, path


@pytest.mark.security
def test_without_listed_hosts_no_response_allows_another_origin(client, small):
    for method in ("OPTIONS", "GET"):
        response = cross_origin(client, method, "/s/small/definition.json", HOST)
        assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.security
def test_respondents_addresses_read_and_change_no_session(client, small):
    with client.session_transaction() as session:
        session["name"] = "a researcher"
    with client:
        client.get("/research/sign-in")
        assert flask.session["name"] == "a researcher"
        for path in ("/s/small", "/s/small/definition.json", "/client/0/main.js"):
            response = client.get(path)
            assert not flask.session
            assert "Set-Cookie" not in response.headers
            assert "Cookie" not in response.headers.get("Vary", "")
