"""The application: settings, store and pages put together, and the answers to errors."""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType

from flask import Flask, Response, render_template, request
from werkzeug.exceptions import HTTPException
from werkzeug.middleware.proxy_fix import ProxyFix

from survey import api, errors, research, respond
from survey.catalogue import SOURCE, say
from survey.ops.metrics import Metrics
from survey.respond.views import request_language
from survey.results.estimates.result import Results
from survey.security import API, headers
from survey.settings import Settings
from survey.store import Store, open_store

logger = logging.getLogger(__name__)

UNEXPECTED = "an error that no address expects"

ExcInfo = tuple[type, BaseException, TracebackType] | tuple[None, None, None]

RETRY_SECONDS = range(5, 16)
"""When to come again: each is told a time of its own, or all would come again at once."""


class Application(Flask):
    """Flask, whose own line about an error would name the address that was asked for."""

    def log_exception(self, exc_info: ExcInfo) -> None:
        """Tell of an error that nothing expects, and nothing of the request."""
        logger.error(UNEXPECTED, exc_info=exc_info)


def create_app(settings: Settings | None = None, store: Store | None = None) -> Flask:
    """Make the WSGI application; settings come from SURVEY_* unless given."""
    settings = (settings or Settings.from_environment(os.environ)).with_real_secret()
    app = Application("survey", static_folder=None)
    app.config.update(
        SECRET_KEY=settings.secret,
        SESSION_COOKIE_NAME="__Host-survey" if settings.secure_cookies else "survey",
        SESSION_COOKIE_SECURE=settings.secure_cookies,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        WTF_CSRF_TIME_LIMIT=None,
        # Our own Referrer-Policy withholds what this check asks for; token and SameSite remain.
        WTF_CSRF_SSL_STRICT=False,
        MAX_CONTENT_LENGTH=research.MAX_UPLOAD_BYTES,
        # Sixty questions with their options in one language are more fields than is usual.
        MAX_FORM_MEMORY_SIZE=research.MAX_UPLOAD_BYTES,
        MAX_FORM_PARTS=research.MAX_UPLOAD_BYTES // 100,
    )
    if settings.trusted_proxies:
        n = settings.trusted_proxies
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=n, x_proto=n, x_host=n)  # type: ignore[method-assign]
    store = store or open_store(settings.database)
    client = respond.Client.load()
    respond.init_app(app, store, settings, client, Metrics(settings.release_minimum))
    results = Results(store)
    research.init_app(app, store, results, settings, client.sha256)
    api.init_app(app, store, results, settings)
    app.add_url_rule(
        "/healthz", view_func=lambda: Response("ok\n", mimetype="text/plain"), endpoint="healthz"
    )
    app.register_error_handler(errors.SurveyError, _refused)
    app.register_error_handler(HTTPException, _http_error)

    @app.after_request
    def secure(response: Response) -> Response:
        immutable = response.status_code == HTTPStatus.OK and request.endpoint in (
            "respond.client_file",
            "research.asset",
            "reporting.stylesheet",
        )
        response.headers.update(
            headers(request.path, https=settings.secure_cookies, immutable=immutable)
        )
        return response

    return app


def _refused(error: errors.SurveyError) -> Response:
    status = errors.STATUS.get(type(error), HTTPStatus.INTERNAL_SERVER_ERROR)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error(UNEXPECTED, exc_info=error)
        return _error_response(status, DETAILS[status], "InternalServerError")
    more = {"opens": error.opens.isoformat()} if isinstance(error, errors.NotOpenError) else {}
    return _error_response(status, str(error), type(error).__name__.removesuffix("Error"), more)


def _http_error(error: HTTPException) -> Response:
    status = HTTPStatus(error.code or 500)
    response = _error_response(status, DETAILS.get(status, status.description), status.phrase)
    if error.code == HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(sorted(getattr(error, "valid_methods", None) or []))
    return response


HEADINGS: Mapping[HTTPStatus, str] = {
    HTTPStatus.NOT_FOUND: "error.headingMissing",
    HTTPStatus.SERVICE_UNAVAILABLE: "error.headingBusy",
}

EXPLANATIONS: Mapping[HTTPStatus, str] = {
    HTTPStatus.NOT_FOUND: "error.missing",
    HTTPStatus.SERVICE_UNAVAILABLE: "error.busy",
}
"""What respondents are told; researchers and programs get the refusal's own words."""

DETAILS: Mapping[HTTPStatus, str] = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address. Check that the link is complete.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "What was sent is larger than this address takes.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong here. Nothing of the request is kept.",
    HTTPStatus.BAD_REQUEST: "The request could not be read. If you sent a form, open it again.",
}


def _error_response(
    status: HTTPStatus, detail: str, name: str, more: Mapping[str, str] | None = None
) -> Response:
    """An error as problem+json (RFC 9457) for programs, as a page for people."""
    if _wants_page():
        response = Response(_page(status, detail), status)
    else:
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in name).split()
        response = _problem(status, detail, "-".join(words), more or {})
    if status == HTTPStatus.UNAUTHORIZED:
        # The same whatever was sent: it tells nothing of which tokens there are or were.
        response.headers["WWW-Authenticate"] = 'Bearer realm="survey"'
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = str(secrets.choice(RETRY_SECONDS))
    return response


def _page(status: HTTPStatus, detail: str) -> str:
    researcher_side = request.path.startswith("/research")
    language = SOURCE if researcher_side else request_language()
    explanation = say(language, EXPLANATIONS.get(status, "error.other"))
    return render_template(
        "error.html",
        status=status,
        language=language,
        heading=say(language, HEADINGS.get(status, "error.heading")),
        detail=detail if researcher_side else explanation,
        researcher_side=researcher_side,
        say=lambda key: say(language, key),
    )


def _wants_page() -> bool:
    """Whether a person is looking: browsers ask for HTML when they open an address."""
    if request.path.startswith(API):
        return False
    opened = request.method != "POST" and request.accept_mimetypes.accept_html
    return request.path.startswith("/research") or (opened and not request.path.endswith(".json"))


def _problem(status: HTTPStatus, detail: str, name: str, more: Mapping[str, str]) -> Response:
    body = json.dumps(
        {
            "type": f"urn:survey:{name}",
            "title": status.phrase,
            "status": int(status),
            "detail": detail,
            **more,
        }
    )
    return Response(body, status, mimetype="application/problem+json")
