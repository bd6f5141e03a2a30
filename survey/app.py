"""The application: settings, store and pages put together, and its error responses."""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from flask import Flask, Request, Response, current_app, redirect, render_template, request, url_for
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from werkzeug.exceptions import HTTPException
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.routing import MapAdapter
from werkzeug.wrappers import Response as AnyResponse

from survey import api, errors, research, respond
from survey.hosts import SLUGS, Host, Hosts
from survey.progress import PROGRESS, Progress
from survey.research.share import READER_PATHS
from survey.respond.reception import REFUSAL
from survey.respond.views import page_response
from survey.results.estimates.result import ResultCache
from survey.security import API, Framing, Readers, framing_headers, headers, reader_headers
from survey.settings import Settings
from survey.store import Store, open_store

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

logger = logging.getLogger(__name__)

UNEXPECTED = "an unexpected error"

IMMUTABLE_ENDPOINTS = (
    *(
        "respond.client_file",
        "respond.picture",
        "research.asset",
        "research.chart_script",
        "research.contents_script",
        "research.progress_script",
        "reports.stylesheet",
    ),
    *("share.script", "looks.stylesheet", "looks.logo"),
)
"""Files whose addresses contain the hash of their content."""

FIELD_ENDPOINTS = ("respond.field_page", "respond.field_worker")
"""The page and the service worker of field mode."""

FRAMING: Mapping[str, Framing] = {
    "drafts.preview": "frames",
    "drafts.question": "frames",
    "drafts.preview_page": "framed",
    "looks.logo": "isolated",
    "respond.picture": "isolated",
}
"""Pages that show a preview in a frame, the preview itself, and files that researchers upload."""

READERS: Mapping[str, Readers] = {"readers.link": "link", "readers.figure": "figure"}
"""The readers of results, by endpoint, for the headers of its pages."""

RETRY_SECONDS = range(5, 16)
"""Values of Retry-After: a random one for each client, so that they do not all return at once."""

DETAILS: Mapping[HTTPStatus, str] = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address. Check that the link is complete.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The request is larger than this address accepts.",
    HTTPStatus.INTERNAL_SERVER_ERROR: (
        "An error occurred on this server. Nothing from your request was stored."
    ),
    HTTPStatus.BAD_REQUEST: "The request was invalid. If you sent a form, open it again.",
}

ExcInfo = tuple[type, BaseException, TracebackType] | tuple[None, None, None]


class ResearcherSessions(SecureCookieSessionInterface):
    """Sessions that are never read for respondents, not even their cookie."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Return the session of a request; an empty one for respondents' addresses."""
        if request.path.startswith(("/s/", "/client/", "/pictures/")):
            return self.session_class()
        return super().open_session(app, request)


class Application(Flask):
    """Flask whose routes depend on the host, without the requested address in its log of errors."""

    session_interface = ResearcherSessions()
    reports: respond.DirectReports
    """Accepts ordinary reports without the framework."""

    def __init__(self, settings: Settings) -> None:
        super().__init__("survey", static_folder=None)
        self.url_map.converters["survey"] = SLUGS[Host.SHARED]
        self.hosts = Hosts(settings, self.url_map)

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Match a request with the routes of its host only, whatever its path and method."""
        adapter = super().create_url_adapter(request)
        if adapter is not None and request is not None:
            adapter.map = self.hosts.routes(self.hosts.kind(request.host))
        return adapter

    def log_exception(self, exc_info: ExcInfo) -> None:
        """Log an unexpected error without anything from the request."""
        logger.error(UNEXPECTED, exc_info=exc_info)


def create_app(settings: Settings | None = None, store: Store | None = None) -> Application:
    """Create the application; settings are read from SURVEY_* unless given."""
    settings = (settings or Settings.from_environment(os.environ)).with_real_secret()
    app = Application(settings)
    app.config.update(
        SECRET_KEY=settings.secret,
        SESSION_COOKIE_NAME="__Host-survey" if settings.secure_cookies else "survey",
        SESSION_COOKIE_SECURE=settings.secure_cookies,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        WTF_CSRF_TIME_LIMIT=None,
        # This check needs the Referer, which our Referrer-Policy omits; token and SameSite remain.
        WTF_CSRF_SSL_STRICT=False,
        MAX_CONTENT_LENGTH=research.MAX_UPLOAD_BYTES,
        # The translation form of sixty questions exceeds the default limits.
        MAX_FORM_MEMORY_SIZE=research.MAX_UPLOAD_BYTES,
        MAX_FORM_PARTS=research.MAX_UPLOAD_BYTES // 100,
    )
    store = store or open_store(settings.database)
    client = respond.Client.load()

    @app.before_request
    def answer_early() -> Response | None:
        if refusal := request.environ.get(REFUSAL):
            raise refusal
        if slow_page := request.environ.get(PROGRESS):
            return _progress_page(slow_page)
        # PostgreSQL rejects texts with NUL, which no address contains.
        if "\0" in request.path:
            raise errors.NotFoundError("there is no page at this address")
        return None

    reception = respond.init_app(app, store, settings, client)
    results = ResultCache(store)
    research.init_app(app, store, results, settings, client.preview)
    api.init_app(app, store, results, settings)
    app.add_url_rule("/", "home", lambda: _home(client))
    app.add_url_rule("/healthz", "healthz", lambda: Response("ok\n", mimetype="text/plain"))
    app.register_error_handler(errors.SurveyError, partial(_survey_error, client))
    app.register_error_handler(HTTPException, partial(_http_error, client))

    @app.after_request
    def add_headers(response: Response) -> Response:
        ok, is_page = response.status_code == HTTPStatus.OK, response.mimetype == "text/html"
        place = (request.host, request.path, request.endpoint)
        response.headers.update(_headers(app.hosts, *place, ok=ok, is_page=is_page))
        return response

    headers_of_report = partial(
        _headers, app.hosts, endpoint="respond.reports", ok=False, is_page=True
    )
    # Outermost, because only this middleware knows which host a request names.
    if n := settings.trusted_proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=n, x_proto=n, x_host=n)  # type: ignore[method-assign]
    app.reports = respond.DirectReports(
        reception, app.hosts.serves_reports, headers_of_report, partial(_behind_proxies, n)
    )
    return app


def _behind_proxies(n: int, environ: WSGIEnvironment) -> WSGIEnvironment:
    """Return the environment of a request that `n` trusted proxies have passed on."""
    if n:
        environ = {**environ}
        ProxyFix(lambda *_: [], x_for=n, x_proto=n, x_host=n)(environ, cast(Any, None))
    return environ


def _headers(
    hosts: Hosts, host: str, path: str, endpoint: str | None, *, ok: bool, is_page: bool
) -> dict[str, str]:
    """Return the security headers of a response: `ok` for status 200, `is_page` for HTML."""
    return {
        **headers(
            path,
            https=hosts.is_https(host),
            immutable=ok and endpoint in IMMUTABLE_ENDPOINTS,
            in_field_mode=endpoint in FIELD_ENDPOINTS,
            for_respondents=hosts.kind(host) is Host.RESPONDENTS,
            onion_url=hosts.onion_url(host, path) if is_page else "",
        ),
        **framing_headers(FRAMING.get(endpoint or "", ""), host),
        **reader_headers(READERS.get(endpoint or ""), ok=ok),
    }


def _host() -> Host:
    """Return the kind of host that the current request names."""
    return cast(Application, current_app).hosts.kind(request.host)


def _home(client: respond.Client) -> AnyResponse | str:
    """Tell respondents to open their link, and researchers to sign in."""
    match _host():
        case Host.RESEARCHERS:
            return redirect(url_for("research.surveys"))
        case Host.RESPONDENTS:
            return page_response(client)
    return render_template("home.html")


def _progress_page(progress: Progress) -> Response:
    """Return a page to show while another one is computed; it requests that page again."""
    variables = {"progress": progress, "reader_paths": READER_PATHS}
    page = render_template("research/progress.html", **variables)
    return Response(page, HTTPStatus.ACCEPTED)


def _survey_error(client: respond.Client, error: errors.SurveyError) -> Response:
    status = errors.STATUS.get(type(error), HTTPStatus.INTERNAL_SERVER_ERROR)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error(UNEXPECTED, exc_info=error)
        return _error_response(client, status, DETAILS[status], "InternalServerError")
    name = type(error).__name__.removesuffix("Error")
    return _error_response(client, status, str(error), name, error.fields)


def _http_error(client: respond.Client, error: HTTPException) -> Response:
    status = HTTPStatus(error.code or 500)
    detail = DETAILS.get(status, status.description)
    response = _error_response(client, status, detail, status.phrase)
    if error.code == HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(sorted(getattr(error, "valid_methods", None) or []))
    return response


def _error_response(
    client: respond.Client,
    status: HTTPStatus,
    detail: str,
    name: str,
    fields: Mapping[str, object] | None = None,
) -> Response:
    """Return an error as problem+json (RFC 9457) for programs, as a page for people."""
    has_page = request.path.startswith("/research") or _wants_page()
    if _is_for_researchers() and has_page:
        response = Response(render_template("error.html", status=status, detail=detail), status)
    elif _wants_page():
        # The client explains; respondents get no bytes that are not in its manifest.
        response = page_response(client, status)
    else:
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in name).split()
        response = _problem(status, detail, "-".join(words), fields or {})
    if status == HTTPStatus.UNAUTHORIZED:
        # Identical for all tokens, so that it does not reveal which ones exist or existed.
        response.headers["WWW-Authenticate"] = 'Bearer realm="survey"'
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = str(secrets.choice(RETRY_SECONDS))
    return response


def _is_for_researchers() -> bool:
    """Return whether a researcher sent the current request: by its host, or else by its path."""
    host = _host()
    return host is Host.RESEARCHERS or (
        host is Host.SHARED and request.path.startswith("/research")
    )


def _wants_page() -> bool:
    """Return whether the request comes from a person: browsers ask for HTML for an address."""
    # An unknown host has no client.
    if _host() is Host.UNKNOWN:
        return False
    is_for_programs = request.path.startswith(API) or request.path.endswith(".json")
    opened = request.method != "POST" and request.accept_mimetypes.accept_html
    return opened and not is_for_programs


def _problem(status: HTTPStatus, detail: str, name: str, fields: Mapping[str, object]) -> Response:
    problem = {"type": f"urn:survey:{name}", "title": status.phrase, "status": int(status)}
    body = json.dumps({**problem, "detail": detail, **fields})
    return Response(body, status, mimetype="application/problem+json")
