"""API tokens: the check of a token and its scopes, and the surveys that its researcher may read."""

from __future__ import annotations

import time
from collections.abc import Container

from flask import g, request

from survey.errors import ForbiddenError, NotFoundError, UnauthorizedError
from survey.security import hash_of
from survey.store import ROLES, Action, ApiToken, PublishedSurvey, Researcher, Store

NO_TOKEN = (
    "a token is required: send the header Authorization: Bearer TOKEN; create tokens on your "  # noqa: S105
    "account page under API tokens"
)
"""Identical for a missing, a wrong and a revoked token."""


class Gate:
    """Checks the token of a request and which surveys it may read.

    A survey that the researcher may not read does not exist for the program (404). A scope that the
    token lacks is named (403).
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self, scope: str) -> None:
        """Raise UnauthorizedError or ForbiddenError if the request's token lacks the scope."""
        token = self._token()
        if scope not in token.scopes.split():
            raise ForbiddenError(
                f"this address requires a token with the scope {scope}, which yours lacks; "
                "create another one"
            )
        g.reader = self._store.researcher_by_key(token.researcher)

    def surveys(self) -> list[PublishedSurvey]:
        """Return all versions of all surveys that may be read, by slug, newest first."""
        slugs = self._readable_slugs()
        return [
            survey
            for survey in self._store.surveys()
            if not survey.is_test_run and (slugs is None or survey.slug in slugs)
        ]

    def versions(self, slug: str) -> list[PublishedSurvey]:
        """Return all versions of a survey, newest first."""
        slugs = self._readable_slugs()
        versions = self._store.versions(slug) if slugs is None or slug in slugs else []
        if not versions or versions[0].is_test_run:
            raise NotFoundError(f'there is no survey "{slug}"')
        return versions

    def version(self, slug: str, version: int) -> PublishedSurvey:
        """Return one version of a survey."""
        for survey in self.versions(slug):
            if survey.version == version:
                return survey
        raise NotFoundError(f'there is no survey "{slug}" version {version}')

    def editable(self, slug: str, version: int) -> PublishedSurvey:
        """Return a version of a survey whose reports the researcher may download as an editor."""
        survey = self.version(slug, version)
        reader: Researcher = g.reader
        role = "owner" if reader.is_admin else self._store.roles(reader.key)[slug]
        if ROLES.index(role) < ROLES.index("editor"):
            raise ForbiddenError(f"this requires the role editor in the survey {slug}")
        return survey

    def log(self, event: str, slug: str, detail: str) -> None:
        """Log a request under the name of its researcher."""
        reader: Researcher = g.reader
        self._store.add_action(Action(int(time.time()), reader.email, event, slug, detail))

    def _readable_slugs(self) -> Container[str] | None:
        """Return the slugs of all surveys that may be read, None for all surveys."""
        reader: Researcher = g.reader
        return None if reader.is_admin else self._store.roles(reader.key)

    def _token(self) -> ApiToken:
        authorization = request.authorization
        is_bearer = authorization is not None and authorization.type == "bearer"
        bearer = authorization.token if authorization and is_bearer else None
        token = self._store.api_token(hash_of(bearer)) if bearer else None
        if token is None:
            raise UnauthorizedError(NO_TOKEN)
        return token
