"""Access to the API: tokens, their scopes, and the teams of their researchers."""

from __future__ import annotations

import pytest

from survey.api.endpoints import OPERATIONS, guard
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import SCOPES
from tests.api.conftest import LATEST, PATHS, Program, make_token
from tests.conftest import EMAIL, PASSWORD, SMALL, TODAY
from tests.web.researchers import send, sign_in

pytestmark = pytest.mark.security

INVALID_AUTHORIZATIONS = [
    "",
    "Bearer",
    "Bearer nonsense",
    "Basic {}",
    "Digest {}",
    "{}",
    "Bearer é",
    "\x7f",
]


def test_every_request_without_a_valid_token_gets_the_same_response(program, small):
    paths = [PATHS[name] for name, operation in OPERATIONS.items() if operation.scope]
    responses = set()
    for authorization in INVALID_AUTHORIZATIONS:
        for path in paths:
            headers = {"Authorization": authorization.format(program.token)}
            response = program.client.get(f"/api/v1{path}", headers=headers)
            program.check(response)
            assert response.status_code == 401
            responses.add((response.data, response.headers["WWW-Authenticate"]))
    assert len(responses) == 1
    assert next(iter(responses))[1] == 'Bearer realm="survey"'


def test_object_access_each_address_requires_and_names_its_scope(client, store, reader, filled):
    for granted in SCOPES:
        program = Program(client, make_token(store, reader, granted))
        for name, operation in OPERATIONS.items():
            response = program.get(PATHS[name])
            if operation.scope in (None, granted):
                assert response.status_code == 200
            else:
                assert response.status_code == 403
                assert f"the scope {operation.scope}" in response.get_json()["detail"]


def test_object_access_surveys_of_others_are_visible_to_admins_only(
    client, store, admin, reader, filled
):
    publish(store, load(SMALL.replace('"small"', '"theirs"').encode(), "s.toml", Caps()), TODAY)
    stranger = store.add_researcher("stranger@example.org", "hash").key
    of_admin, of_stranger, of_reader = (
        Program(client, make_token(store, key)) for key in (admin, stranger, reader)
    )
    for name, path in PATHS.items():
        within = "/surveys/small" in path
        assert of_admin.get(path).status_code == 200
        assert of_stranger.get(path).status_code == (404 if within else 200), name
    existing, absent = (
        of_reader.get(f"/surveys/{slug}").get_json() for slug in ("theirs", "absent")
    )
    assert existing["detail"].replace("theirs", "absent") == absent["detail"]
    assert of_stranger.get("/surveys").get_json()["total"] == 0
    assert of_admin.get("/surveys").get_json()["total"] == 2


def test_a_revoked_token_is_rejected(program, store, reader, small):
    (token,) = store.api_tokens(reader)
    assert program.get(LATEST).status_code == 200
    store.revoke_api_token(reader, token.token_hash)
    assert program.get(LATEST).status_code == 401


def test_session_cookies_are_ignored_and_never_set(client, store, researcher, filled):
    assert sign_in(client).status_code == 302
    assert client.get("/research/").status_code == 200
    anonymous = Program(client)
    for name, operation in OPERATIONS.items():
        response = anonymous.get(PATHS[name])
        assert response.status_code == (401 if operation.scope else 200)
        assert "Set-Cookie" not in response.headers
    token = make_token(store, store.researcher(EMAIL).key)
    for path in PATHS.values():
        response = Program(client, token).get(path)
        assert response.status_code == 200
        assert "Set-Cookie" not in response.headers


def test_a_token_does_not_open_researchers_pages(program, filled):
    headers = {"Authorization": f"Bearer {program.token}"}
    page = program.client.get("/research/surveys/small/1", headers=headers)
    assert page.status_code == 302


def test_a_new_password_revokes_every_token(client, store, researcher, small):
    key = store.researcher(EMAIL).key
    program = Program(client, make_token(store, key))
    sign_in(client)
    assert program.get("/surveys").status_code == 200
    response = send(
        client,
        "/research/account/password",
        current=PASSWORD,
        new="cloud ladder sixty fern",
        again="cloud ladder sixty fern",
    )
    assert response.status_code == 302
    assert program.get("/surveys").status_code == 401


def test_a_token_is_never_logged(program, store, small, caplog, monkeypatch):
    def fail(_):
        raise RuntimeError("inner detail")

    with caplog.at_level("DEBUG"):
        assert program.get("/surveys").status_code == 200
        monkeypatch.setattr(store, "versions", fail)
        response = program.client.get(
            f"/api/v1{LATEST}", headers={"Authorization": f"Bearer {program.token}"}
        )
    assert (response.status_code, response.mimetype) == (500, "application/problem+json")
    assert "inner detail" not in response.text
    assert "inner detail" in caplog.text
    assert program.token not in caplog.text


def test_object_access_an_address_missing_from_the_table_prevents_startup(app):
    app.add_url_rule("/api/v1/more", endpoint="more", view_func=lambda: "")
    with pytest.raises(RuntimeError, match="/api/v1/more"):
        guard(app)


def test_headers_of_api_responses_match_those_of_other_responses(program, client, filled):
    of_pages = dict(client.get("/healthz").headers)
    for name in PATHS:
        response = program.get(PATHS[name])
        for header, value in of_pages.items():
            if header not in ("Content-Type", "Content-Length", "Cache-Control"):
                assert response.headers[header] == value
        assert response.headers["Cache-Control"] == "private, no-cache"
        assert response.headers["Vary"] == "Accept, Authorization"
