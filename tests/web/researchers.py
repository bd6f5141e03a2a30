"""What researchers do without a browser: sign in, send forms."""

from __future__ import annotations

import re
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from survey.store import Role, Store
from tests.conftest import EMAIL, PASSWORD, hashed_password


def token(page: TestResponse) -> str:
    """The token of a page's forms."""
    found = re.search(r'name="csrf_token" type="hidden" value="([^"]+)"', page.text)
    assert found, page.text[:2000]
    return found[1]


def sign_in(
    client: FlaskClient, email: str = EMAIL, password: str = PASSWORD, next_page: str = ""
) -> TestResponse:
    """Send the form to sign in."""
    return send(client, f"/research/sign-in?next={next_page}", email=email, password=password)


def send(client: FlaskClient, path: str, *, page: str = "", **data: Any) -> TestResponse:
    """Send a form; its token is one of the page it stands on."""
    found = token(client.get(page or path))
    return client.post(path, data={"csrf_token": found, **data})


PEOPLE = ("anonymous", "stranger", "viewer", "editor", "owner", "admin")
ROLES: tuple[Role, ...] = ("viewer", "editor", "owner")


class People(dict[str, FlaskClient]):
    """A client for everybody there can be, signed in when first asked for.

    The roles are those in the small survey; who was there before is the admin.
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
