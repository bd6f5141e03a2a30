"""Wire the parts together; there is no logic here."""

from __future__ import annotations

import os
from http import HTTPStatus

from flask import Flask, Response, request
from werkzeug.middleware.proxy_fix import ProxyFix

from survey import api, problems, research, respond
from survey.ops.metrics import Metrics
from survey.results.estimates.result import Results
from survey.security import headers
from survey.settings import Settings
from survey.store import Store, open_store


def create_app(settings: Settings | None = None, store: Store | None = None) -> Flask:
    """Make the WSGI application; settings come from SURVEY_* unless given."""
    settings = (settings or Settings.from_environment(os.environ)).with_real_secret()
    app = problems.Application("survey", static_folder=None)
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
    client = respond.Client.find()
    respond.init_app(app, store, settings, client, Metrics(settings.release_minimum))
    results = Results(store)
    research.init_app(app, store, results, settings, client.sha256)
    api.init_app(app, store, results, settings)
    app.add_url_rule(
        "/healthz", view_func=lambda: Response("ok\n", mimetype="text/plain"), endpoint="healthz"
    )
    problems.init_app(app)

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
