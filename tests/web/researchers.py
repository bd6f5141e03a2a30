"""Send researchers' requests without a browser: sign in and submit forms."""

from __future__ import annotations

import re
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from survey.store import Role, Store
from tests.conftest import EMAIL, PASSWORD, hashed_password


def token(page: TestResponse) -> str:
    """Return the CSRF token of a page's forms."""
    match = re.search(r'name="csrf_token" type="hidden" value="([^"]+)"', page.text)
    assert match, page.text[:2000]
    return match[1]


def sign_in(
    client: FlaskClient, email: str = EMAIL, password: str = PASSWORD, next_page: str = ""
) -> TestResponse:
    """Send the sign-in form."""
    return send(client, f"/research/sign-in?next={next_page}", email=email, password=password)


def send(client: FlaskClient, path: str, *, page: str = "", **data: Any) -> TestResponse:
    """Send a form with the CSRF token of its page, by default the page at the same path."""
    csrf_token = token(client.get(page or path))
    return client.post(path, data={"csrf_token": csrf_token, **data})


PEOPLE = ("anonymous", "stranger", "viewer", "editor", "owner", "admin")
ROLES: tuple[Role, ...] = ("viewer", "editor", "owner")


class People(dict[str, FlaskClient]):
    """Map each person's name to a client that signs in on first use.

    Viewer, editor and owner have these roles in the small survey. The fixture's researcher is the
    administrator.
    """

    def __init__(self, app: Flask, store: Store) -> None:
        super().__init__()
        self._app = app
        self.team: dict[int, Role] = {}
        for name in PEOPLE[1:-1]:
            key = store.add_researcher(f"{name}@example.org", hashed_password()).key
            if name in ROLES:
                store.set_role("small", key, name)
                self.team[key] = name

    def __missing__(self, name: str) -> FlaskClient:
        client = self[name] = self._app.test_client()
        if name != "anonymous":
            email = EMAIL if name == "admin" else f"{name}@example.org"
            assert sign_in(client, email).status_code == 302
        return client
