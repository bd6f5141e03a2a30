"""Reception of reports over HTTP, without the framework for ordinary reports.

According to measurements, Flask takes three times as long for a request as parsing, checking and
storing its report. `DirectReports` therefore answers the requests that browsers normally send. It
uses the checks of `Reception`, as the framework's view does. The framework answers every other
request and every rejected report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
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
    from _typeshed.wsgi import WSGIEnvironment

REPORT_TYPE = "application/json"
"""Media type of a report."""

REFUSAL = "survey.refusal"
"""Key in a request's environment for the error with which the framework must answer it."""

ADDRESS = re.compile(r"/s/(?P<slug>[a-z0-9-]{1,80})/reports")
"""The path of reports, for every slug that a survey or a test run can have."""

SHORT = re.compile("[0-9]{1,4}")
"""The length of a body that can be read at once; the intake rejects bodies that are too large."""


MAX_ADDRESSES = 256
"""Maximum number of addresses with cached headers, because requests can name any host."""


class Reception:
    """The checks of each report that arrives over HTTP, and the intake that stores it."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.intake = Intake(store)
        self._settings = settings
        self._listed_origins = settings.listed_origins

    def receive(self, slug: str, environ: WSGIEnvironment, read: Callable[[], bytes]) -> None:
        """Store the report that `read` returns, or raise the error that rejects it."""
        self.check_origin(slug, environ, get_host(environ))
        self.intake.receive(slug, read(), utc_today())

    async def receive_in_loop(
        self, slug: str, environ: WSGIEnvironment, host: str, body: bytes
    ) -> bool:
        """Store a report as `receive` does; return False if that would block the event loop."""
        self.check_origin(slug, environ, host)
        return await self.intake.receive_in_loop(slug, body, utc_today())

    def check_origin(self, slug: str, environ: WSGIEnvironment, host: str) -> None:
        """Raise CrossSiteError if the page of another site sent a request to a host."""
        site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
        url = survey_origin(slug, self._settings)
        check_same_origin(site, origin, host, url, self._listed_origins)

    def cross_origin_headers(self, environ: WSGIEnvironment) -> dict[str, str]:
        """Return the headers that let listed hosts read a response; none without listed hosts."""
        if not self._listed_origins:
            return {}
        origin = environ.get("HTTP_ORIGIN")
        return {**cross_origin_headers(origin, self._listed_origins), "Vary": "Origin"}


def accepted() -> Response:
    """Return the response to a stored report, identical for new and for repeated reports."""
    return Response(status=201)


class DirectReports:
    """Accepts ordinary reports in the event loop of a worker.

    `serves` returns whether a host accepts reports for a slug. `headers` returns the security
    headers of a response to an address of a host. `fix` changes the environment of a request behind
    a proxy in the same way as for the framework.
    """

    def __init__(
        self,
        reception: Reception,
        serves: Callable[[str, str], bool],
        headers: Callable[[str, str], Mapping[str, str]],
        fix: Callable[[WSGIEnvironment], WSGIEnvironment],
    ) -> None:
        self._reception, self._serves, self._headers, self._fix = reception, serves, headers, fix
        response = accepted()
        self.status = response.status_code
        self._own_headers = dict(response.get_wsgi_headers({}))
        self._cached_headers = lru_cache(MAX_ADDRESSES)(self._headers_of_address)

    def n_body_bytes(self, environ: WSGIEnvironment) -> int | None:
        """Return the length of an ordinary report, or None for all other requests."""
        return int(environ["CONTENT_LENGTH"]) if _slug_of_ordinary_report(environ) else None

    async def accept(self, environ: WSGIEnvironment, body: bytes) -> dict[str, str] | None:
        """Store an ordinary report; return the headers of the response.

        Return None if the framework must answer instead.
        """
        slug, fixed = _slug_of_ordinary_report(environ), self._fix(environ)
        host = get_host(fixed)
        if (headers := self._cached_headers(host, slug)) is None:
            return None
        try:
            if not await self._reception.receive_in_loop(slug, fixed, host, body):
                return None
        except Exception as refusal:  # noqa: BLE001  the framework answers and logs every error
            environ[REFUSAL] = refusal
            return None
        return {**headers, **self._reception.cross_origin_headers(fixed)}

    def _headers_of_address(self, host: str, slug: str) -> dict[str, str] | None:
        """Return the headers for all reports to an address; None if its host accepts no reports."""
        if not self._serves(host, slug):
            return None
        return {**self._own_headers, **self._headers(host, f"/s/{slug}/reports")}


def _slug_of_ordinary_report(environ: WSGIEnvironment) -> str:
    """Return the slug in the address of a short report of known length, otherwise ""."""
    if (
        environ["REQUEST_METHOD"] == "POST"
        and environ.get("CONTENT_TYPE") == REPORT_TYPE
        and "HTTP_TRANSFER_ENCODING" not in environ
        and SHORT.fullmatch(environ.get("CONTENT_LENGTH", ""))
        and (match := ADDRESS.fullmatch(environ["PATH_INFO"]))
    ):
        return match["slug"]
    return ""
