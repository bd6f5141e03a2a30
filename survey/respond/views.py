"""The respondents' routes. They read no cookie, no language, no network address and no clock."""

from __future__ import annotations

from functools import cache
from pathlib import PurePath

from flask import Blueprint, Flask, Response, request

from survey.collect.incoming_reports import refusal
from survey.collect.release import utc_today
from survey.errors import NotFoundError, ReportTooLargeError, UnsupportedMediaError
from survey.questionnaire.definition import MAX_REPORT_BYTES
from survey.questionnaire.texts import PICTURE_TYPE
from survey.respond.client import CONTENT_TYPES, ICON, MANIFEST, Client, Compressed, compress
from survey.respond.reception import REPORT_TYPE, Reception, accepted
from survey.settings import Settings
from survey.store import Store, find_survey
from survey.store.field_boxes import OVERHEAD


def init_app(app: Flask, store: Store, settings: Settings, client: Client) -> Reception:
    """Register the respondents' routes with the application; return what receives reports."""
    routes = Blueprint("respond", __name__)
    reception = Reception(store, settings)
    _add_survey_routes(routes, store, reception, client)
    _add_report_routes(routes, store, reception)
    _add_file_routes(routes, client)
    app.register_blueprint(routes)
    return reception


def page_response(client: Client, status: int = 200) -> Response:
    """Return the page, which has the same bytes for every survey and every wrong address."""
    return compress(client.page).response(CONTENT_TYPES[".html"], status)


UPLOADED_SLOTS = 25
"""Slots in one upload from field mode (`fieldwork-upload.js`)."""

HASH_BYTES = 32
"""Length of the definition's hash, with which an upload begins."""

MAX_FIELD_UPLOAD = HASH_BYTES + UPLOADED_SLOTS * (MAX_REPORT_BYTES + OVERHEAD)

CROSS_ORIGIN_ENDPOINTS = (
    *("respond.definition", "respond.reports", "respond.field_reports"),
    "respond.picture",
)
"""Endpoints that copies of the page on other hosts use; all other files are in the copy."""


def _add_survey_routes(
    routes: Blueprint, store: Store, reception: Reception, client: Client
) -> None:
    @routes.after_request
    def allow_listed_hosts(response: Response) -> Response:
        if request.endpoint in CROSS_ORIGIN_ENDPOINTS:
            vary = list(response.vary)
            response.headers.update(reception.cross_origin_headers(request.environ))
            response.vary.update(vary)
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
            # The page names the survey, so that respondents know whom to contact.
            error.fields = {**error.fields, **survey.definition.names}
            raise error
        return compress(survey.canonical).response("application/json")

    @routes.get("/pictures/<sha256>")
    def picture(sha256: str) -> Response:
        # The address contains the hash of the content, so all visitors always get the same bytes.
        content = store.picture(sha256)
        if content is None:
            raise NotFoundError("there is no picture at this address")
        return Response(content, content_type=PICTURE_TYPE)


def _add_report_routes(routes: Blueprint, store: Store, reception: Reception) -> None:
    @routes.post("/s/<survey:slug>/reports")
    def reports(slug: str) -> Response:
        reception.receive(slug, request.environ, lambda: _body(REPORT_TYPE, MAX_REPORT_BYTES))
        return accepted()

    @routes.post("/s/<survey:slug>/field")
    def field_reports(slug: str) -> Response:
        reception.check_origin(slug, request.environ, request.host)
        body = _body("application/octet-stream", MAX_FIELD_UPLOAD)
        sha256, boxes = body[:HASH_BYTES].hex(), body[HASH_BYTES:]
        reception.intake.receive_boxes(slug, sha256, boxes, utc_today())
        return accepted()

    @routes.get("/s/<survey:slug>/sent")
    def sent(slug: str) -> Response:
        # Clear only the cached files: cookies and storage belong to the whole site.
        find_survey(store, slug)
        answer = Response(status=204, headers={"Clear-Site-Data": '"cache"'})
        # An empty answer has no content type; the proxy drops it over HTTP/2 as well.
        del answer.headers["Content-Type"]
        return answer


def _add_file_routes(routes: Blueprint, client: Client) -> None:
    # Compress each file at its first request: all of them together take half a second.
    @cache
    def compressed(name: str) -> Compressed:
        return Compressed.from_bytes(client.files[name])

    @routes.get("/client/<version>/<name>")
    def client_file(version: str, name: str) -> Response:
        if version != client.sha256 or name not in client.files:
            raise NotFoundError("this file belongs to another version of the page; reload the page")
        return compressed(name).response(CONTENT_TYPES[PurePath(name).suffix])

    @routes.get(f"/{MANIFEST}")
    def client_manifest() -> Response:
        return compress(client.manifest_bytes).response(CONTENT_TYPES[".json"])

    # Verifying programs open the second address, which the manifest names.
    @routes.get("/field/")
    @routes.get("/field/index.html")
    def field_page() -> Response:
        return compress(client.field_page).response(CONTENT_TYPES[".html"])

    @routes.get("/field/worker.js")
    def field_worker() -> Response:
        return compress(client.field_worker).response(CONTENT_TYPES[".js"])

    @routes.get("/favicon.ico")
    def favicon() -> Response:
        return compressed(ICON).response(CONTENT_TYPES[".svg"])


def _body(media_type: str, maximum: int) -> bytes:
    """Return the body of a request, without parsing a form or reading more than the maximum."""
    if request.mimetype != media_type:
        raise UnsupportedMediaError(f"send a report as {media_type}, not as a form")
    if (request.content_length or 0) <= maximum:
        body = request.stream.read(maximum + 1)
        if len(body) <= maximum:
            return body
    raise ReportTooLargeError(f"a report has at most {maximum:,} bytes")
