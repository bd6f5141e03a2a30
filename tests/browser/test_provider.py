"""Sign-in with an OpenID Connect provider in a browser, which decides which cookies it sends.

The provider is at `localhost` and the server at 127.0.0.1, which are two sites.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.conftest import EMAIL
from tests.web.providers import running_provider

pytestmark = [pytest.mark.web, pytest.mark.security]


def test_logins_with_a_provider_work_although_session_cookies_are_strict(serve, researcher, device):
    with running_provider() as provider:
        provider.add("ada", email=EMAIL, email_verified=True)
        url = serve(
            SURVEY_OIDC_ISSUER=provider.url,
            SURVEY_OIDC_CLIENT_ID="survey",
            SURVEY_OIDC_CLIENT_SECRET="the secret that the provider gave",
        )
        page = device.open(f"{url}/research/account")
        page.get_by_role("link", name="Sign in with localhost").click()
        assert page.url.startswith(f"{provider.url}/oauth2/authorize?")
        page.locator("input[name=sub]").fill("ada")
        page.locator("input[name=sub]").press("Enter")
        page.wait_for_url(f"{url}/research/account")
        expect(page.get_by_role("heading", name="Account")).to_be_visible()
        same_site = {cookie["name"]: cookie["sameSite"] for cookie in device.context.cookies()}
        assert same_site == {"survey": "Strict", "survey-browser": "Strict"}
