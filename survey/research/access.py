"""Access control of the researchers' pages: each route is declared together with its role.

A survey that a researcher is not a member of does not exist for them (404). An action that their
role in a survey does not allow is rejected with the name of the role it requires (403).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, NoReturn

from flask import Blueprint, Flask, current_app, redirect, request, url_for

from survey.errors import ForbiddenError, NotFoundError
from survey.research.sessions import Sessions
from survey.store import ROLES, Researcher, Role, Store, draft_key, team_slug

Access = Literal["anybody", "researcher", "viewer", "editor", "owner", "admin"]
"""Who may open a page: `researcher` is anybody who is signed in; `viewer`, `editor` and `owner` are
the lowest role in the survey or draft that the address names as `<slug>`."""

DRAFT_DELETED = "This draft has been deleted."

PUBLISHED_ONLY = ("collection", "lifecycle")
"""Sections that exist for published surveys, not for drafts and their test runs."""


class Route(NamedTuple):
    """A researchers' page.

    methods  HTTP methods, separated by spaces
    path     address, below the prefix of its section
    access   who may open it
    view     the function that answers; its name is the endpoint's name unless `name` is given
    """

    methods: str
    path: str
    access: Access
    view: Callable[..., Any]
    name: str = ""


class Section(Blueprint):
    """Researchers' pages about one subject, under one prefix.

    `access` maps each endpoint to who may open it. Pages are declared as `Route` only, so no page
    can exist without an access rule.
    """

    def __init__(self, name: str, prefix: str, routes: Iterable[Route]) -> None:
        super().__init__(name, __name__, url_prefix=prefix)
        self.access: dict[str, Access] = {}
        for route in routes:
            endpoint = route.name or route.view.__name__
            self.access[f"{name}.{endpoint}"] = route.access
            super().add_url_rule(route.path, endpoint, route.view, methods=route.methods.split())

    def add_url_rule(self, *_args: Any, **_options: Any) -> NoReturn:
        """Reject a page that is not declared as a `Route`: it would have no access rule."""
        raise TypeError(f"declare the pages of {self.name} as Route, with their access")


class Gate:
    """Checks who may open a page before its view runs."""

    def __init__(self, store: Store, sessions: Sessions) -> None:
        self._store = store
        self._sessions = sessions
        self._access: dict[str, Access] = {}
        self.return_form: Callable[[str, int], Any] = lambda _reason, _status: None
        """Builds the response that returns a form which cannot be saved, or None for other
        requests; takes the reason and the HTTP status."""

    def add(self, app: Flask, sections: Iterable[Section]) -> None:
        """Register sections with the application and check every request to their pages."""
        for section in sections:
            app.register_blueprint(section)
            self._access |= section.access
        self.check_rules(app)
        app.before_request(self.check)

    def check_rules(self, app: Flask) -> None:
        """Raise RuntimeError for a researchers' page without an access rule."""
        for rule in app.url_map.iter_rules():
            if rule.rule.startswith("/research") and rule.endpoint not in self._access:
                raise RuntimeError(f"{rule.rule} ({rule.endpoint}) has no access rule")

    def researcher(self) -> Researcher:
        """Return the researcher who sent this request."""
        return self._sessions.current()

    def roles(self) -> Mapping[str, Role]:
        """Return the researcher's roles by the slugs of the surveys and drafts they may see."""
        researcher = self._sessions.current()
        if not researcher.is_admin:
            return self._store.roles(researcher.key)
        surveys = [survey.slug for survey in self._store.surveys()]
        return dict.fromkeys([*surveys, *(draft.slug for draft in self._store.drafts())], "owner")

    def role(self, slug: str) -> Role | None:
        """Return the researcher's role in a survey or draft, None if they are no member."""
        researcher = self._sessions.current()
        if researcher.is_admin:
            return "owner"
        return self._store.roles(researcher.key).get(team_slug(slug))

    def allows(self, slug: str, required: Role) -> bool:
        """Return whether the researcher has at least the required role."""
        role = self.role(slug)
        return role is not None and ROLES.index(role) >= ROLES.index(required)

    def opens(self, endpoint: str, slug: str) -> bool:
        """Return whether the researcher may open this page of a survey or draft."""
        access = self._access[endpoint]
        return access in ROLES and self.allows(slug, access)

    def check(self) -> Any:
        """Return the response that stops the current request, or None to let it through.

        Raises NotFoundError or ForbiddenError for pages that the researcher may not open.
        """
        access = self._access.get(request.endpoint or "", "anybody")
        if access == "anybody":
            return None
        researcher = self._sessions.researcher()
        if researcher is None:
            if response := self.return_form("", 401):
                return response
            return redirect(url_for("accounts.sign_in", next=_return_address()))
        if access == "admin" and not researcher.is_admin:
            raise NotFoundError("there is nothing at this address")
        if access in ROLES:
            return self._check_role(str((request.view_args or {})["slug"]), access)
        return None

    def _check_role(self, slug: str, required: Role) -> Any:
        if self.role(slug) is None or not self._exists(slug):
            return self._missing(slug)
        # A test run is managed on its draft's pages, under the draft's slug.
        unavailable = PUBLISHED_ONLY if draft_key(slug) else (*PUBLISHED_ONLY, "team")
        if draft_key(team_slug(slug)) and (request.blueprint or "") in unavailable:
            raise NotFoundError("a test run is managed on the pages of its draft")
        if not self.allows(slug, required):
            reason = f"this requires the role {required} in the survey {slug}; ask an owner for it"
            subject = "draft" if draft_key(slug) else "survey"
            changed = f"Your role in this {subject} has changed: {reason}."
            if response := self.return_form(changed, 403):
                return response
            raise ForbiddenError(reason)
        return None

    def _missing(self, slug: str) -> Any:
        """Answer a request for a survey or draft that does not exist for this researcher."""
        survey = self._store.published_slug(key) if (key := draft_key(team_slug(slug))) else ""
        if survey and self.role(survey):
            # Unsaved text is returned; a second press of Publish leads to the published survey.
            reason = f"This draft was published as {survey} in the meantime and cannot be changed."
            return self.return_form(reason, 409) or redirect(url_for("results.newest", slug=survey))
        if draft_key(slug) and (response := self.return_form(DRAFT_DELETED, 404)):
            return response
        raise NotFoundError(f'there is no survey "{slug}"')

    def _exists(self, slug: str) -> bool:
        if key := draft_key(slug):
            return self._store.draft(key) is not None
        return bool(self._store.versions(slug))


def _return_address() -> str:
    """Return the page to open after signing in: for a form, the page that contains it."""
    page = _page_of(request.path)
    query = request.query_string.decode("ascii", "ignore") if request.method == "GET" else ""
    return f"{page}?{query}" if query else page


def _page_of(path: str) -> str:
    """Return the path, or its nearest parent that answers GET."""
    adapter = current_app.url_map.bind("")
    while path.count("/") > 1 and not adapter.test(path, "GET"):
        path = path.rpartition("/")[0]
    return path
