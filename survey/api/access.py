"""Which program may read what: a token's scopes, and the surveys of the researcher it reads for.

A survey that the researcher may not see does not exist for the program (404); what its token is
not good for is refused by the scope's name (403).
"""

from __future__ import annotations

import time
from collections.abc import Container

from flask import Flask, g, request

from survey.api.operations import OPERATIONS, PREFIX
from survey.errors import ForbiddenError, NotFoundError, UnauthorizedError
from survey.security import API, hash_of
from survey.store import ROLES, Action, ApiToken, PublishedSurvey, Researcher, Store

NO_TOKEN = (
    "this address wants a token: send the header Authorization: Bearer TOKEN; tokens are made "  # noqa: S105
    "under Account, Programs, on the researchers' pages"
)
"""The same for no token, a wrong one and one that was ended."""


class Gate:
    """Lets through who may, before a view runs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self) -> None:
        """Refuse a request whose token is not good for its address."""
        scope = OPERATIONS[(request.endpoint or "").partition(".")[2]].scope
        if scope is None:
            return
        token = self._token()
        if scope not in token.scopes.split():
            raise ForbiddenError(
                f"this address wants a token with the scope {scope}, which yours has not; "
                "make another one"
            )
        g.reader = self._store.researcher_of(token.researcher)

    def surveys(self) -> list[PublishedSurvey]:
        """Every version of every survey that may be read, by slug, the newest first."""
        mine = self._readable()
        return [
            survey
            for survey in self._store.surveys()
            if not survey.is_trial and (mine is None or survey.slug in mine)
        ]

    def versions(self, slug: str) -> list[PublishedSurvey]:
        """All versions of a survey, the newest first."""
        mine = self._readable()
        found = self._store.versions(slug) if mine is None or slug in mine else []
        if not found or found[0].is_trial:
            raise NotFoundError(f'there is no survey "{slug}"')
        return found

    def version(self, slug: str, version: int) -> PublishedSurvey:
        """One version of a survey."""
        for survey in self.versions(slug):
            if survey.version == version:
                return survey
        raise NotFoundError(f'there is no survey "{slug}" version {version}')

    def editable(self, slug: str, version: int) -> PublishedSurvey:
        """One version of a survey that the researcher edits: whose rows they may give away."""
        survey = self.version(slug, version)
        reader: Researcher = g.reader
        role = "owner" if reader.is_admin else self._store.roles(reader.key)[slug]
        if ROLES.index(role) < ROLES.index("editor"):
            raise ForbiddenError(f"this needs the role editor in the survey {slug}")
        return survey

    def log(self, what: str, slug: str, detail: str) -> None:
        """Write down what a program did, under its researcher's name."""
        reader: Researcher = g.reader
        self._store.add_action(Action(int(time.time()), reader.email, what, slug, detail))

    def _readable(self) -> Container[str] | None:
        """The slugs of all surveys that may be read; None for every one."""
        reader: Researcher = g.reader
        return None if reader.is_admin else self._store.roles(reader.key)

    def _token(self) -> ApiToken:
        sent = request.authorization
        bearer = sent.token if sent is not None and sent.type == "bearer" else None
        token = self._store.api_token(hash_of(bearer)) if bearer else None
        if token is None:
            raise UnauthorizedError(NO_TOKEN)
        return token


def guard(app: Flask) -> None:
    """Stop the start where an address for programs is not in the table, or the table's nowhere."""
    rules = {rule.rule: rule.endpoint for rule in app.url_map.iter_rules()}
    ours = {PREFIX + each.path: f"api.{name}" for name, each in OPERATIONS.items()}
    for rule, endpoint in rules.items():
        if rule.startswith(API) and ours.get(rule) != endpoint:
            raise RuntimeError(f"which token opens {rule} ({endpoint}) is not said")
    for rule in ours:
        if rule not in rules:
            raise RuntimeError(f"{rule} is said to be there and is not")
