"""API clients with tokens, which validate every response against the OpenAPI document."""

from __future__ import annotations

import json
import secrets

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from werkzeug.exceptions import NotFound

from survey.api.endpoints import OPERATIONS
from survey.api.openapi import PREFIX
from survey.security import hash_of
from survey.store import SCOPES, ApiToken
from tests.browser.research import add_released
from tests.conftest import hashed_password

LATEST = "/surveys/small/versions/1"
CROSSED = f"{LATEST}/crosstab?first=fell_asleep&second=pressure"


class Program:
    """A client of the API with a token, or without any."""

    def __init__(self, client: FlaskClient, token: str = "") -> None:
        self.client, self.token = client, token
        self.document = json.loads(client.get(f"{PREFIX}/openapi.json").data)

    def get(self, path: str, *, accept: str = "", tag: str = "", method: str = "GET", **headers):
        """Request a path below the prefix of the API and validate the response."""
        optional = {"Authorization": f"Bearer {self.token}", "Accept": accept, "If-None-Match": tag}
        request_headers = {
            name: value for name, value in optional.items() if value not in ("", "Bearer ")
        }
        response = self.client.open(
            PREFIX + path, method=method, headers={**request_headers, **headers}
        )
        if method == "GET":
            self.check(response)
        return response

    def check(self, response) -> None:
        """Check that the document describes the status, media type and body of a response."""
        addresses = self.client.application.url_map.bind("localhost")
        try:
            endpoint, _ = addresses.match(response.request.path)
        except NotFound:
            assert (response.status_code, response.mimetype) == (404, "application/problem+json")
            return
        described = self.responses_of(endpoint)[str(response.status_code)]
        if response.status_code == 304:
            assert response.data == b""
            return
        schema = described["content"][response.mimetype]["schema"]
        is_csv = response.mimetype == "text/csv"
        body = response.text if is_csv else response.get_json(silent=True)
        if schema:
            self.validator(schema).validate(body)

    def responses_of(self, endpoint: str):
        name = endpoint.partition(".")[2]
        (responses,) = (
            item["get"]["responses"]
            for item in self.document["paths"].values()
            if item["get"]["operationId"] == name
        )
        return responses

    def validator(self, schema) -> Draft202012Validator:
        return Draft202012Validator({**schema, "components": self.document["components"]})


def make_token(store, researcher: int, scopes: str = " ".join(SCOPES)) -> str:
    token = secrets.token_urlsafe(32)
    store.add_api_token(ApiToken(hash_of(token), researcher, f"R {token[:5]}", scopes, 10))
    return token


@pytest.fixture
def filled(store, small):
    """Add released reports to the small survey."""
    add_released(store, small, 3000)
    return small


@pytest.fixture
def admin(store):
    return store.add_researcher("admin@example.org", hashed_password()).key


@pytest.fixture
def reader(store, small, admin):
    key = store.add_researcher("reader@example.org", hashed_password()).key
    store.set_role("small", key, "editor")
    return key


@pytest.fixture
def program(client, store, reader) -> Program:
    """Return a client with the rights of an editor of the small survey."""
    return Program(client, make_token(store, reader))


PATHS = {
    "description": "/openapi.json",
    "definition_schema": "/definition-schema.json",
    "surveys": "/surveys",
    "survey": "/surveys/small",
    "version": LATEST,
    "definition": f"{LATEST}/definition",
    "estimates": f"{LATEST}/estimates",
    "crosstab": CROSSED,
    "estimates_xlsx": f"{LATEST}/exports/estimates.xlsx",
    "crosstab_xlsx": f"{LATEST}/exports/crosstab.xlsx?first=fell_asleep&second=pressure",
    "reports_zip": f"{LATEST}/exports/reports.zip",
}
"""A path of each operation whose status is 200 once reports are released."""

assert set(PATHS) == set(OPERATIONS)
