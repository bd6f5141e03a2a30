"""Sign-in with an OpenID Connect provider, which runs in a separate process."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pyotp
import pytest
import requests
from authlib.integrations.base_client import sync_openid
from authlib.integrations.flask_client import FlaskOAuth2App
from flask import Flask
from flask.testing import FlaskClient

from survey.app import create_app
from survey.errors import MissingPartError, SettingsError
from survey.research.two_factor import SecondFactors
from survey.settings import Settings
from tests.conftest import EMAIL, SECRET, free_port
from tests.web.providers import ProviderProcess, running_provider
from tests.web.researchers import send, sign_in

pytestmark = pytest.mark.security

BEGIN = "/research/sign-in/provider"
COOKIE = "survey-provider"
CLIENT_SECRET = "the secret that the provider gave"


@pytest.fixture(scope="module")
def provider() -> Iterator[ProviderProcess]:
    with running_provider() as started:
        started.add("ada", email=EMAIL.upper(), email_verified=True)
        yield started


@pytest.fixture
def settings_with_provider(settings, provider) -> Settings:
    return replace(
        settings,
        oidc_issuer=provider.url,
        oidc_client_id="survey",
        oidc_client_secret=CLIENT_SECRET,
    )


@pytest.fixture
def app(settings_with_provider, store) -> Flask:
    return create_app(settings_with_provider, store)


def begin(client: FlaskClient, target: str = "") -> str:
    """Return the provider's address to which the sign-in page leads."""
    response = client.get(f"{BEGIN}?next={target}")
    assert response.status_code == 302, response.text
    return response.location


def test_logins_with_a_provider_open_the_account_of_the_verified_address(
    app, client, store, researcher, provider, monkeypatch
):
    assert "Sign in with localhost" in client.get("/research/sign-in").text
    address = begin(client, "/research/account")
    query = parse_qs(urlsplit(address).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["scope"] == ["openid email"]
    assert len(query["state"][0]) >= 20
    assert len(query["nonce"][0]) >= 20
    sent = record_token_requests(monkeypatch)
    page = client.get(provider.authorize(address, "ada"))
    assert (page.status_code, page.headers["Refresh"]) == (200, "0; url=/research/account")
    assert client.get("/research/account").status_code == 200
    assert client.get_cookie(COOKIE, path=BEGIN) is None
    # PKCE (RFC 7636, 4.6): the provider can compare these two.
    (verifier,) = parse_qs(sent[0])["code_verifier"]
    digest = hashlib.sha256(verifier.encode()).digest()
    assert query["code_challenge"] == [base64.urlsafe_b64encode(digest).decode().rstrip("=")]
    (action, *_) = store.actions(None, 1)
    assert (action.actor, action.detail) == (EMAIL, "with localhost")


def record_token_requests(monkeypatch) -> list[str]:
    """Return a list to which the body of each request to the token endpoint will be added."""
    sent: list[str] = []
    send_request = requests.Session.send

    def record(self, request, **options):
        if request.url.endswith("/token"):
            sent.append(request.body)
        return send_request(self, request, **options)

    monkeypatch.setattr(requests.Session, "send", record)
    return sent


def test_logins_with_a_provider_create_no_account_unless_a_setting_allows_it(
    app, client, store, researcher, provider, settings_with_provider
):
    provider.add("new", email="new@example.org", email_verified=True)
    page = client.get(provider.authorize(begin(client), "new"))
    assert page.status_code == 403
    assert "new@example.org has no account on this server" in page.text
    assert store.researcher("new@example.org") is None
    allowing = create_app(replace(settings_with_provider, oidc_create_accounts=1), store)
    newcomer = allowing.test_client()
    assert newcomer.get(provider.authorize(begin(newcomer), "new")).status_code == 200
    account = store.researcher("new@example.org")
    assert (account.is_admin, store.roles(account.key)) == (False, {})


def test_logins_accounts_of_a_provider_set_up_two_factor_authentication_without_a_password(
    store, researcher, provider, settings_with_provider, monkeypatch
):
    """A recent sign-in replaces the password, also if the server requires two-factor."""
    allowing = create_app(replace(settings_with_provider, oidc_create_accounts=1), store)
    provider.add("newcomer", email="newcomer@example.org", email_verified=True)
    store.set_two_factor_required(required=True)
    browser, setup = allowing.test_client(), "/research/account/second-step"
    browser.get(provider.authorize(begin(browser), "newcomer"))
    page = browser.get(setup)
    assert "Current password" not in page.text
    app_secret = pyotp.TOTP(re.search(r'class="secret">([A-Z2-7]+)<', page.text)[1])
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 599)
    assert "recovery codes" in send(browser, setup, code=app_secret.at(now + 599)).text
    monkeypatch.setattr(time, "time", lambda: now + 620)
    change, new = "/research/account/password", "copper kite unfolds slowly"
    late = send(browser, change, new=new, again=new)
    assert (late.status_code, "needs a recent sign-in" in late.text) == (422, True)
    for password in ("x", new):
        response = sign_in(allowing.test_client(), "newcomer@example.org", password)
        assert response.status_code == 403


def test_logins_with_a_provider_never_create_the_first_account(
    store, provider, settings_with_provider
):
    """The first account becomes the administrator, so any visitor could take that role."""
    allowing = create_app(replace(settings_with_provider, oidc_create_accounts=1), store)
    client = allowing.test_client()
    assert client.get(provider.authorize(begin(client), "ada")).status_code == 403
    assert store.researchers() == []


@pytest.mark.parametrize(
    "claims",
    [
        {"email": EMAIL},
        {"email": EMAIL, "email_verified": False},
        {"email": EMAIL, "email_verified": "true"},
        {"email_verified": True},
        {"email": [EMAIL], "email_verified": True},
    ],
)
def test_logins_with_a_provider_need_a_verified_address(
    client, store, researcher, provider, claims
):
    provider.add("mallory", **claims)
    page = client.get(provider.authorize(begin(client), "mallory"))
    assert page.status_code == 403
    assert "does not state a verified email address" in page.text
    assert client.get("/research/account").status_code == 302


def test_logins_with_a_provider_end_only_where_they_began(app, client, researcher, provider):
    """Neither a link nor a used code can sign a user in to another account."""
    answer = provider.authorize(begin(client), "ada")
    victim = app.test_client()
    assert victim.get(answer).status_code == 403
    begin(victim)
    assert victim.get(answer).status_code == 403
    state = parse_qs(urlsplit(answer).query)["state"][0]
    for wrong in (
        answer.replace(state, "another"),
        answer.replace("code=", "code=x"),
        f"{answer}&iss=https://other.example",
        answer.partition("?")[0],
        f"{answer.partition('?')[0]}?state={state}&error=access_denied",
    ):
        assert client.get(wrong).status_code == 403, wrong
    cookie = client.get_cookie(COOKIE, path=BEGIN).value
    assert client.get(answer).status_code == 200
    client.set_cookie(COOKIE, cookie, path=BEGIN)
    assert client.get(answer).status_code == 403


def test_logins_with_a_provider_reject_a_token_for_another_sign_in(
    app, client, researcher, provider, monkeypatch
):
    """The nonce binds the provider's token to the sign-in that asked for it."""
    address = begin(client)
    nonce = parse_qs(urlsplit(address).query)["nonce"][0]
    answer = provider.authorize(address.replace(nonce, "of-another-sign-in"), "ada")
    assert client.get(answer).status_code == 403


def test_logins_with_a_provider_accept_a_token_only_for_this_server_and_sign_in(
    app, researcher, provider, monkeypatch
):
    """Each claim is altered after the signature was checked, as if the provider had signed it."""
    altered: dict[str, object] = {}
    decode = sync_openid.jwt.decode

    def decode_altered(*args, **options):
        token = decode(*args, **options)
        token.claims = {**token.claims, **altered}
        token.claims = {name: value for name, value in token.claims.items() if value is not None}
        return token

    monkeypatch.setattr(sync_openid.jwt, "decode", decode_altered)
    for claims, status in (
        ({"aud": ["survey", "other"], "azp": "survey"}, 200),
        ({"aud": ["survey", "other"]}, 403),
        ({"aud": "survey", "azp": "other"}, 403),
        ({"aud": ["other"], "azp": "survey"}, 403),
        ({"aud": None, "azp": "survey"}, 403),
        ({"iss": None}, 403),
        ({"iss": f"{provider.url}/other"}, 403),
        ({"nonce": None}, 403),
        ({"nonce": "of-another-sign-in"}, 403),
    ):
        altered.clear()
        altered |= claims
        browser = app.test_client()
        answer = browser.get(provider.authorize(begin(browser), "ada"))
        assert answer.status_code == status, claims


def test_logins_with_a_provider_that_sends_its_issuer_require_it(
    app, client, researcher, provider, monkeypatch
):
    """RFC 9207: a missing issuer would let another provider's answer pass."""
    load = FlaskOAuth2App.load_server_metadata
    announced = {"authorization_response_iss_parameter_supported": True}

    def load_announced(self):
        metadata = load(self)
        metadata |= announced
        return metadata

    monkeypatch.setattr(FlaskOAuth2App, "load_server_metadata", load_announced)
    answer = provider.authorize(begin(client), "ada").partition("&iss=")[0]
    assert client.get(answer).status_code == 403
    assert client.get(f"{answer}&iss={provider.url}").status_code == 200


def test_logins_with_a_provider_still_need_the_code_of_a_second_factor(
    client, store, researcher, provider
):
    secret = pyotp.random_base32()
    SecondFactors(store, SECRET).set_up(store.researcher(EMAIL).key, secret, 0)
    page = client.get(provider.authorize(begin(client, "/research/account"), "ada"))
    code_page = "/research/sign-in/code?next=/research/account"
    assert page.headers["Refresh"] == f"0; url={code_page}"
    assert client.get("/research/account").status_code == 302
    response = send(client, code_page, code=pyotp.TOTP(secret).now())
    assert response.location == "/research/account"


def test_logins_with_a_provider_that_does_not_answer_are_explained(
    store, researcher, settings_with_provider
):
    down = replace(settings_with_provider, oidc_issuer=f"http://localhost:{free_port()}")
    page = create_app(down, store).test_client().get(BEGIN)
    assert page.status_code == 502
    assert "does not answer" in page.text


def test_logins_with_a_provider_are_offered_on_the_researchers_host_only(
    store, settings_with_provider
):
    split = replace(
        settings_with_provider,
        public_url="http://127.0.0.1:8000",
        research_url="http://127.0.0.1:8001",
    )
    client = create_app(split, store).test_client()
    public = client.get(BEGIN, base_url=split.public_url, headers={"Accept": "*/*"})
    assert public.status_code == 404
    response = client.get(BEGIN, base_url=split.research_url)
    assert response.status_code == 302
    back = parse_qs(urlsplit(response.location).query)["redirect_uri"]
    assert back == [f"{split.research_url}{BEGIN}/return"]
    assert "form-action 'self'" in response.headers["Content-Security-Policy"]


def test_a_server_without_a_provider_has_no_such_page(store, settings):
    client = create_app(settings, store).test_client()
    for path in (BEGIN, f"{BEGIN}/return"):
        assert client.get(path).location == "/research/sign-in"
    assert "Sign in with" not in client.get("/research/sign-in").text


def test_a_server_with_a_provider_does_not_start_without_the_extra(
    store, settings_with_provider, monkeypatch
):
    monkeypatch.setitem(sys.modules, "authlib.integrations.flask_client", None)
    with pytest.raises(MissingPartError, match=r"ldp-survey\[oidc\]"):
        create_app(settings_with_provider, store)


def test_settings_of_a_provider_are_complete_and_its_address_is_safe(tmp_path):
    file = tmp_path / "secret"
    file.write_text(f"{CLIENT_SECRET}\n")
    complete = {
        "SURVEY_OIDC_ISSUER": "https://login.example.org/realms/staff",
        "SURVEY_OIDC_CLIENT_ID": "survey",
        "SURVEY_OIDC_CLIENT_SECRET_FILE": str(file),
    }
    settings = Settings.from_environment(complete)
    assert settings.oidc_client_secret == CLIENT_SECRET
    assert CLIENT_SECRET not in repr(settings)
    for changes, reason in (
        ({"SURVEY_OIDC_CLIENT_ID": ""}, "also needs"),
        ({"SURVEY_OIDC_ISSUER": "http://login.example.org"}, "must be the https:// address"),
        ({"SURVEY_OIDC_ISSUER": "login.example.org"}, "must be the https:// address"),
        ({"SURVEY_OIDC_CLIENT_SECRET": "x"}, "both set"),
        ({"SURVEY_OIDC_CREATE_ACCOUNTS": "2"}, "must be from 0 to 1"),
    ):
        with pytest.raises(SettingsError, match=reason):
            Settings.from_environment({**complete, **changes})
