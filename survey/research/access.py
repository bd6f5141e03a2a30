"""Access control of the researchers' pages: each route is declared together with its role.

A survey that a researcher is not a member of does not exist for them (404). An action that their
role in a survey does not allow is rejected with the name of the role it requires (403). A form that
is rejected because the session or the role ended is returned with its fields.

`Workspace` holds everything that the pages work with, among it the log of researchers' actions.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from flask import (
    Blueprint,
    Flask,
    Response,
    current_app,
    jsonify,
    redirect,
    render_template,
    request,
    url_for,
)
from flask_wtf import FlaskForm
from flask_wtf.csrf import CSRFError

from survey.errors import CrossSiteError, ForbiddenError, NotFoundError
from survey.questionnaire.definition import Definition
from survey.questionnaire.drafts.preview import Preview
from survey.research.credentials import Passwords, Sessions, public_names
from survey.research.openid_connect import Provider
from survey.research.sign_in_limits import KnownBrowsers, Throttle
from survey.research.two_factor import SecondFactors
from survey.results.estimates.result import ResultCache
from survey.security import check_same_origin
from survey.settings import Settings
from survey.store import ROLES, Action, Researcher, Role, Store, draft_key, team_slug

Access = Literal["anybody", "researcher", "viewer", "editor", "owner", "admin"]
"""Who may open a page: `researcher` is anybody who is signed in; `viewer`, `editor` and `owner` are
the lowest role in the survey or draft that the address names as `<slug>`."""

DRAFT_DELETED = "This draft has been deleted."

BUTTON_FIELDS = ("csrf_token", "revision", "do", "agreed", "submit", "made")
"""Fields of a form that a researcher does not type."""

LONG_FORMS = ("collection.invite", "collection.schedule")
"""Forms outside the builder that take a while to fill in."""

SIGNED_OUT = "you are signed out. Press Save to keep your text."

OPEN_WITHOUT_TWO_FACTOR = ("account.add_two_factor", "accounts.sign_out")
"""Pages that are open to researchers who have yet to set up required two-factor authentication."""

TWO_FACTOR_REQUIRED = (
    "This server now requires two-factor authentication. Set it up on your account page, then "
    "press Save."
)

LOG_LENGTH = 500
"""Number of actions that a log page shows."""

PUBLISHED_ONLY = ("collection", "lifecycle", "share")
"""Sections that exist for published surveys, not for drafts and their test runs."""


def other_definitions(
    store: Store, slug: str, researchers: Iterable[int], visible: Collection[str]
) -> list[Definition]:
    """Return the open and closed surveys that one of the researchers works on, except `slug`.

    Only those in `visible`, so that no warning quotes a survey that its reader may not see.
    """
    teams = {name for researcher in researchers for name in store.roles(researcher)}
    return [
        survey.definition
        for survey in store.surveys()
        if survey.slug in teams and survey.slug in visible and survey.slug != slug
        if survey.state in ("open", "closed") and not survey.is_test_run
    ]


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

    def __init__(self, store: Store, sessions: Sessions, url: str) -> None:
        self._store = store
        self._sessions = sessions
        self._url = url
        self._access: dict[str, Access] = {}

    def add(self, app: Flask, sections: Iterable[Section]) -> None:
        """Register sections with the application and check every request to their pages."""
        for section in sections:
            app.register_blueprint(section)
            self._access |= section.access
        self.check_rules(app)
        app.before_request(self.check)
        app.register_error_handler(CSRFError, self._handle_csrf_error)

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
        slugs = [survey.slug for survey in self._store.survey_heads()]
        slugs += [draft.slug for draft in self._store.draft_heads()]
        return dict.fromkeys(slugs, "owner")

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
            if response := self._return_form("", 401):
                return response
            return redirect(url_for("accounts.sign_in", next=_return_address()))
        may_open = request.endpoint in OPEN_WITHOUT_TWO_FACTOR
        if not may_open and self._store.lacks_two_factor(researcher.key):
            return self._return_form(TWO_FACTOR_REQUIRED, 403) or redirect(
                url_for("account.add_two_factor")
            )
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
        if draft_key(team_slug(slug)) and request.blueprint in unavailable:
            raise NotFoundError("a test run is managed on the pages of its draft")
        if not self.allows(slug, required):
            reason = f"this requires the role {required} in the survey {slug}; ask an owner for it"
            subject = "draft" if draft_key(slug) else "survey"
            changed = f"Your role in this {subject} has changed: {reason}."
            if response := self._return_form(changed, 403):
                return response
            raise ForbiddenError(reason)
        return None

    def _missing(self, slug: str) -> Any:
        """Answer a request for a survey or draft that does not exist for this researcher."""
        survey = self._store.published_slug(key) if (key := draft_key(team_slug(slug))) else ""
        if survey and self.role(survey):
            # Unsaved text is returned; a second press of Publish leads to the published survey.
            reason = f"This draft was published as {survey} in the meantime and cannot be changed."
            return self._return_form(reason, 409) or redirect(
                url_for("results.newest", slug=survey)
            )
        if draft_key(slug) and (response := self._return_form(DRAFT_DELETED, 404)):
            return response
        raise NotFoundError(f'there is no survey "{slug}"')

    def _handle_csrf_error(self, error: CSRFError) -> Any:
        return self._return_form("", 409 if self._sessions.researcher() else 401) or (
            error.get_response()
        )

    def _return_form(self, reason: str, status: int) -> Any:
        """Return the response that shows the fields of a rejected form; None for other requests.

        The server stores nothing of the form. A request from another site gets nothing back: a
        researcher could mistake the fields for their own and send them on.
        """
        endpoint = request.endpoint or ""
        has_text = endpoint.startswith("drafts.") or endpoint in LONG_FORMS
        if request.method != "POST" or not has_text or not _is_same_origin(self._url):
            return None
        fields = list(request.form.items(multi=True))
        typed = [
            (name, text) for name, text in fields if name not in BUTTON_FIELDS and text.strip()
        ]
        if reason and not typed:
            return None
        if request.form.get("do") in ("autosave", "look"):
            return jsonify({"not_saved": reason or SIGNED_OUT}), status
        page = render_template(
            "research/builder/recovery.html",
            signed_in=self._sessions.researcher() is not None,
            reason=reason,
            form=FlaskForm(formdata=None),
            fields=[(name, value) for name, value in fields if name != "csrf_token"],
            typed=typed,
            creates_links=endpoint == "collection.invite",
        )
        return Response(page, status)

    def _exists(self, slug: str) -> bool:
        if key := draft_key(slug):
            return self._store.draft(key) is not None
        return bool(self._store.versions(slug))


def _return_address() -> str:
    """Return the page to open after signing in: for a form, the page that contains it."""
    path, adapter = request.path, current_app.url_map.bind("")
    while path.count("/") > 1 and not adapter.test(path, "GET"):
        path = path.rpartition("/")[0]
    query = request.query_string.decode("ascii", "ignore") if request.method == "GET" else ""
    return f"{path}?{query}" if query else path


def _is_same_origin(url: str) -> bool:
    # The Referrer-Policy makes browsers send the Origin "null" with forms, but also this header.
    if site := request.headers.get("Sec-Fetch-Site"):
        return site == "same-origin"
    try:
        check_same_origin(None, request.headers.get("Origin"), request.host, url)
    except CrossSiteError:
        return False
    return True


class Log:
    """The log of researchers' actions: who did what, and when; never anything of a respondent."""

    def __init__(self, store: Store, sessions: Sessions) -> None:
        self._store = store
        self._sessions = sessions

    def write(self, event: str, slug: str = "", detail: str = "") -> None:
        """Log an action of the researcher who sent this request, after it succeeded."""
        self.write_for(self._sessions.current().email, event, slug, detail)

    def write_for(self, email: str, event: str, slug: str = "", detail: str = "") -> None:
        """Log an action of a researcher who is not signed in yet."""
        self._store.add_action(Action(int(time.time()), email, event, team_slug(slug), detail))

    def read(self, slug: str | None = None) -> list[Action]:
        """Return the latest actions in one survey, or on the whole server."""
        return self._store.actions(slug, LOG_LENGTH)


class Workspace:
    """A store with everything the researchers' pages need to work on it."""

    def __init__(
        self,
        store: Store,
        results: ResultCache,
        settings: Settings,
        preview_page: Callable[[Preview], bytes],
    ) -> None:
        self.store, self.results = store, results
        self.settings = settings
        self.preview_page = preview_page
        self.passwords = Passwords(settings.password_cost, partial(public_names, store, settings))
        self.throttle = Throttle(store, settings.secret)
        self.provider = Provider(settings)
        self.second_factors = SecondFactors(store, settings.secret)
        self.browsers = KnownBrowsers(settings.secret, secure=settings.secure_cookies)
        self.sessions = Sessions(store, self.passwords, self.browsers)
        self.gate = Gate(store, self.sessions, settings.researchers_url)
        self.log = Log(store, self.sessions)


class Pages:
    """Base of the views of one subject."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._store, self._settings = workspace.store, workspace.settings
        self._sessions, self._gate, self._log = workspace.sessions, workspace.gate, workspace.log


JAVASCRIPT = "text/javascript; charset=utf-8"


def static_file(path: Path, content_type: str) -> tuple[str, Callable[[str], Response]]:
    """Return the SHA-256 of a file, and a view that serves it at an address with this hash."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()

    def view(version: str) -> Response:
        if version != digest:
            raise NotFoundError("this file belongs to another version of the page")
        return Response(content, content_type=content_type)

    return digest, view
