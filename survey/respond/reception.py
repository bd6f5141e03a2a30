"""Reports over HTTP: usual ones are accepted without the framework, whose work costs far more.

For each request, Flask works three times as long as parsing, checking and storing a report takes
(measured). `DirectReports` therefore answers the requests that browsers send when all goes well. It
decides nothing: `Reception` makes the same checks for the framework's view, and the
framework answers every other request and every refusal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import TYPE_CHECKING

from flask import Response
from werkzeug.wsgi import get_host

from survey.collect.incoming_reports import Intake
from survey.collect.invitations import survey_origin
from survey.collect.release import utc_today
from survey.security import check_same_origin, cross_origin_headers
from survey.settings import Settings
from survey.store import Store

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

REPORT_TYPE = "application/json"
"""Media type of a report."""

REFUSAL = "survey.refusal"
"""Key in a request's environment of the error with which the framework must answer it."""

ADDRESS = re.compile(r"/s/(?P<slug>[a-z0-9-]{1,80})/reports")
"""The address of reports for every slug that a survey or a test run can have."""

SHORT = re.compile("[0-9]{1,4}")
"""The length of a body that can be read at once; the intake refuses those that are too large."""


class Reception:
    """The checks of each report that arrives over HTTP, and the intake that stores it."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.intake = Intake(store)
        self._settings = settings
        self._listed_origins = settings.listed_origins

    def receive(self, slug: str, environ: WSGIEnvironment, read: Callable[[], bytes]) -> None:
        """Store the report that `read` returns, or raise the error with which it is refused."""
        self.check_origin(slug, environ)
        self.intake.receive(slug, read(), utc_today())

    def check_origin(self, slug: str, environ: WSGIEnvironment) -> None:
        """Raise CrossSiteError if the page of another site sent a request."""
        site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
        url = survey_origin(slug, self._settings)
        check_same_origin(site, origin, get_host(environ), url, self._listed_origins)

    def cross_origin_headers(self, environ: WSGIEnvironment) -> dict[str, str]:
        """Return the headers with which listed hosts can read a response; none if there is none."""
        if not self._listed_origins:
            return {}
        origin = environ.get("HTTP_ORIGIN")
        return {**cross_origin_headers(origin, self._listed_origins), "Vary": "Origin"}


def accepted() -> Response:
    """Return the response to a stored report, the same for a new and for a repeated one."""
    return Response(status=201)


class DirectReports:
    """WSGI middleware that accepts usual reports; `app` answers all other requests.

    `serves` tells whether a host accepts reports for a slug. `headers` returns the security headers
    of a response to an address of a host.
    """

    def __init__(
        self,
        app: WSGIApplication,
        reception: Reception,
        serves: Callable[[str, str], bool],
        headers: Callable[[str, str], Mapping[str, str]],
    ) -> None:
        self._app, self._reception = app, reception
        self._serves, self._headers = serves, headers
        response = accepted()
        self._status = response.status
        self._own_headers = dict(response.get_wsgi_headers({}))

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        slug = _slug_of_usual_report(environ)
        host = get_host(environ) if slug else ""
        if not (slug and self._serves(host, slug) and self._stores(slug, environ)):
            return self._app(environ, start_response)
        headers = {
            **self._own_headers,
            **self._reception.cross_origin_headers(environ),
            **self._headers(host, environ["PATH_INFO"]),
        }
        start_response(self._status, list(headers.items()))
        return []

    def _stores(self, slug: str, environ: WSGIEnvironment) -> bool:
        """Store the report in a request; return False if the framework must answer instead."""
        length = int(environ["CONTENT_LENGTH"])
        try:
            body: bytes = environ["wsgi.input"].read(length)
        except OSError:
            return False
        if len(body) < length:
            environ["wsgi.input"] = BytesIO(body)
            return False
        try:
            self._reception.receive(slug, environ, lambda: body)
        except Exception as refusal:  # noqa: BLE001  the framework answers and logs every error
            environ[REFUSAL] = refusal
            return False
        return True


def _slug_of_usual_report(environ: WSGIEnvironment) -> str:
    """Return the slug in the address of a short report of known length, otherwise ""."""
    if (
        environ["REQUEST_METHOD"] == "POST"
        and environ.get("CONTENT_TYPE") == REPORT_TYPE
        and "HTTP_TRANSFER_ENCODING" not in environ
        and not environ.get("SCRIPT_NAME")
        and SHORT.fullmatch(environ.get("CONTENT_LENGTH", ""))
        and (match := ADDRESS.fullmatch(environ["PATH_INFO"]))
    ):
        return match["slug"]
    return ""
