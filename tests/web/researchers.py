"""What researchers do without a browser: sign in, send forms."""

from __future__ import annotations

import re
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.conftest import EMAIL, PASSWORD


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
