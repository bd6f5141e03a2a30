"""API tokens on the account pages: created with the password, shown once, revoked."""

from __future__ import annotations

import re

import pytest

from survey.research.accounts import MAX_TOKENS
from survey.security import hash_of
from survey.store import ApiToken
from tests.conftest import EMAIL, PASSWORD, hashed_password
from tests.web.researchers import send, sign_in

pytestmark = pytest.mark.security

PAGE = "/research/account/programs"


@pytest.fixture
def reader(client, researcher, small):
    assert sign_in(client).status_code == 302
    return client


def make(client, name="R at home", scopes=("surveys", "estimates"), current=PASSWORD):
    return send(client, PAGE, name=name, scopes=list(scopes), current=current)


def token_in(page) -> str:
    return re.search(r"<code>(survey_[\w-]{43})</code>", page.text)[1]


def test_a_token_is_shown_once_and_the_example_beside_it_works(reader, app, store):
    page = make(reader)
    assert page.status_code == 200
    token = token_in(page)
    header, url = re.search(r'curl -H "(.*?)" (\S+)</code>', page.text).groups()
    name, _, value = header.partition(": ")
    response = app.test_client().get(url, headers={name: value})
    assert (response.status_code, response.get_json()["total"]) == (200, 1)
    again = reader.get(PAGE)
    assert "R at home" in again.text
    assert token not in again.text
    (stored,) = store.api_tokens(store.researcher(EMAIL).key)
    assert (stored.token_hash, stored.scopes) == (hash_of(token), "surveys estimates")


def test_creating_a_token_requires_the_password(reader, store):
    for current, words in (("", "Enter your password"), ("wrong", "This password is wrong")):
        response = make(reader, current=current)
        assert response.status_code == 422
        assert words in response.text
        # The form returns every field except the password.
        assert 'value="R at home"' in response.text
        assert response.text.count(" checked") == 2
    assert store.api_tokens(store.researcher(EMAIL).key) == []


def test_a_token_requires_a_name_and_valid_scopes(reader, store):
    for name, scopes, words in (
        ("", ["surveys"], "Enter a name"),
        ("   ", ["surveys"], "Enter a name"),
        ("x" * 61, ["surveys"], "at most 60"),
        ("a\x00b", ["surveys"], "the name on one line"),
        ("R", [], "Select at least one"),
        ("R", ["surveys", "everything"], "everything"),
    ):
        response = make(reader, name, scopes)
        assert response.status_code == 422, (name, scopes)
        assert words in response.text, (name, scopes)
        assert store.api_tokens(store.researcher(EMAIL).key) == [], (name, scopes)


def test_mistakes_are_listed_in_the_order_of_the_page(reader):
    page = make(reader, name="", scopes=(), current="").text
    anchors = re.findall(r'<li><a href="#(\w+)">', page)
    assert anchors == ["name", "scopes", "current"]
    assert all(f'id="{place}"' in page for place in anchors)


def test_a_form_sent_twice_creates_one_token(reader, store):
    assert make(reader).status_code == 200
    twice = make(reader)
    assert twice.status_code == 422
    assert "already have a token with this name" in twice.text
    assert len(store.api_tokens(store.researcher(EMAIL).key)) == 1


def test_the_number_of_tokens_has_a_maximum(reader, store):
    key = store.researcher(EMAIL).key
    for n in range(MAX_TOKENS):
        store.add_api_token(ApiToken(bytes([n]) * 32, key, f"R {n}", "surveys", n))
    response = make(reader)
    assert response.status_code == 422
    assert f"You have {MAX_TOKENS} tokens" in response.text


def test_only_its_researcher_can_revoke_a_token(reader, app, store):
    token = token_in(make(reader))
    authorization = {"Authorization": f"Bearer {token}"}
    store.add_researcher("ben@example.org", hashed_password())
    client = app.test_client()
    sign_in(client, "ben@example.org")
    expected = hash_of(token).hex()
    send(client, f"{PAGE}/end", page=PAGE, token=expected)
    assert app.test_client().get("/api/v1/surveys", headers=authorization).status_code == 200
    assert "R at home" not in client.get(PAGE).text
    response = send(reader, f"{PAGE}/end", page=PAGE, token=expected)
    assert response.status_code == 302
    assert "has been revoked" in reader.get(PAGE).text
    assert app.test_client().get("/api/v1/surveys", headers=authorization).status_code == 401


def test_the_log_contains_name_and_scopes_but_never_the_token(reader, store):
    token = token_in(make(reader))
    send(reader, f"{PAGE}/end", page=PAGE, token=hash_of(token).hex())
    ended, created, *_ = store.actions(None, 10)
    assert (created.event, created.detail) == (
        "created an API token",
        "R at home: surveys estimates",
    )
    assert (ended.event, ended.detail) == ("revoked an API token", "R at home")
    for action in store.actions(None, 10):
        assert token not in repr(action)
        assert hash_of(token).hex() not in repr(action)


def test_the_page_warns_that_a_new_password_revokes_tokens(reader):
    assert "all your tokens are revoked" in " ".join(reader.get(PAGE).text.split())
    assert "revokes all your API tokens" in reader.get("/research/account").text


def test_html_in_a_token_name_is_shown_as_text(reader):
    make(reader, name="<b>R</b>")
    assert "&lt;b&gt;R&lt;/b&gt;" in reader.get(PAGE).text
