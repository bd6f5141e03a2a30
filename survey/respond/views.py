"""The respondents' routes. They read no cookie, no language, no network address and no clock."""

from __future__ import annotations

from pathlib import PurePath

from flask import Blueprint, Flask, Response, request

from survey.collect.incoming_reports import Intake, refusal
from survey.collect.invitations import survey_origin
from survey.collect.release import utc_today
from survey.errors import NotFoundError, ReportTooLargeError, UnsupportedMediaError
from survey.questionnaire.definition import MAX_REPORT_BYTES
from survey.respond.client import CONTENT_TYPES, ICON, MANIFEST, Client, compress
from survey.security import check_same_origin, cross_origin_headers
from survey.settings import Settings
from survey.store import Store, find_survey


def init_app(app: Flask, store: Store, settings: Settings, client: Client) -> None:
    """Register the respondents' routes with the application."""
    routes = Blueprint("respond", __name__)
    _add_survey_routes(routes, store, settings, client)
    _add_file_routes(routes, client)
    app.register_blueprint(routes)


def page_response(client: Client, status: int = 200) -> Response:
    """Return the page, which has the same bytes for every survey and every wrong address."""
    return compress(client.page).response(CONTENT_TYPES[".html"], status)


CROSS_ORIGIN_ENDPOINTS = ("respond.definition", "respond.reports")
"""Endpoints that copies of the page on other hosts use; all other files are in the copy."""


def _add_survey_routes(routes: Blueprint, store: Store, settings: Settings, client: Client) -> None:
    intake = Intake(store)

    @routes.after_request
    def allow_listed_hosts(response: Response) -> Response:
        if settings.listed_origins and request.endpoint in CROSS_ORIGIN_ENDPOINTS:
            origin = request.headers.get("Origin")
            response.headers.update(cross_origin_headers(origin, settings.listed_origins))
            response.vary.add("Origin")
        return response

    # People and programs that copy a link may add a slash; the page accepts it.
    @routes.get("/s/<survey:slug>", strict_slashes=False)
    def page(slug: str) -> Response:  # noqa: ARG001  the page does not depend on it
        # The definition request shows whether the survey is open. If the page depended on that, it
        # could not be compared with the published bytes.
        return page_response(client)

    @routes.get("/s/<survey:slug>/definition.json")
    def definition(slug: str) -> Response:
        survey = find_survey(store, slug)
        if error := refusal(store, survey, utc_today()):
            raise error
        return compress(survey.canonical).response("application/json")

    @routes.post("/s/<survey:slug>/reports")
    def reports(slug: str) -> Response:
        site, origin = map(request.headers.get, ("Sec-Fetch-Site", "Origin"))
        hosts = (request.host, survey_origin(slug, settings), settings.listed_origins)
        check_same_origin(site, origin, *hosts)
        intake.receive(slug, _report_body(), utc_today())
        # A repeated report gets the same answer as a new one.
        return Response(status=201)

    @routes.get("/s/<survey:slug>/sent")
    def sent(slug: str) -> Response:
        # Clear only the cached files: cookies and storage belong to the whole site.
        find_survey(store, slug)
        answer = Response(status=204, headers={"Clear-Site-Data": '"cache"'})
        # An empty answer has no content type; the proxy drops it over HTTP/2 as well.
        del answer.headers["Content-Type"]
        return answer


def _add_file_routes(routes: Blueprint, client: Client) -> None:
    files = {name: compress(content) for name, content in client.files.items()}
    manifest = compress(client.manifest_bytes)

    @routes.get("/client/<version>/<name>")
    def client_file(version: str, name: str) -> Response:
        if version != client.sha256 or name not in files:
            raise NotFoundError("this file belongs to another version of the page; reload the page")
        return files[name].response(CONTENT_TYPES[PurePath(name).suffix])

    @routes.get(f"/{MANIFEST}")
    def client_manifest() -> Response:
        return manifest.response(CONTENT_TYPES[".json"])

    @routes.get("/favicon.ico")
    def favicon() -> Response:
        return files[ICON].response(CONTENT_TYPES[".svg"])


def _report_body() -> bytes:
    """Return the body of a report; never parse a form or read more than the maximum."""
    if request.mimetype != "application/json":
        raise UnsupportedMediaError("send a report as application/json, not as a form")
    if (request.content_length or 0) <= MAX_REPORT_BYTES:
        body = request.stream.read(MAX_REPORT_BYTES + 1)
        if len(body) <= MAX_REPORT_BYTES:
            return body
    raise ReportTooLargeError(f"a report has at most {MAX_REPORT_BYTES:,} bytes")
