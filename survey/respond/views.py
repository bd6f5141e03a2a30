"""Respondents' addresses. Nothing here reads a cookie, an address or a clock time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath

from flask import Blueprint, Response, render_template, request

from survey.collect.submission import Intake
from survey.errors import ClosedError, NotFoundError, ReportTooLargeError, UnsupportedMediaError
from survey.questionnaire.definition import MAX_REPORT_BYTES
from survey.respond.client import TYPES, Client
from survey.security import check_same_origin
from survey.settings import Settings
from survey.store import Store, find_survey


def blueprint(store: Store, client: Client, settings: Settings) -> Blueprint:
    """The respondents' routes over one store and one client."""
    routes = Blueprint("respond", __name__)
    intake = Intake(store)
    client_hash = client.sha256
    client_base = f"/client/{client_hash}"
    # In the page itself: every further file is one more that a slow connection waits for.
    icon = client.files["favicon.svg"].decode("utf-8")

    @routes.get("/s/<slug>")
    def page(slug: str) -> tuple[str, int]:
        # Also for a closed survey: someone may come back to learn whether a report arrived.
        closed = find_survey(store, slug).state == "closed"
        shell = render_template(
            "respond/page.html", client_base=client_base, client_hash=client_hash, icon=icon
        )
        return shell, 410 if closed else 200

    @routes.get("/s/<slug>/definition.json")
    def definition(slug: str) -> Response:
        survey = find_survey(store, slug)
        if survey.state == "closed":
            raise ClosedError("this survey is closed and takes no more answers")
        return Response(survey.canonical, mimetype="application/json")

    @routes.post("/s/<slug>/reports")
    def reports(slug: str) -> Response:
        check_same_origin(
            request.headers.get("Sec-Fetch-Site"),
            request.headers.get("Origin"),
            request.host,
            settings.public_url,
        )
        intake.receive(slug, _body(), datetime.now(UTC).date())
        # The same answer for a new report and for one that was here before.
        return Response(status=201)

    _add_files(routes, client)
    return routes


def _add_files(routes: Blueprint, client: Client) -> None:
    client_hash = client.sha256

    @routes.get("/client/<version>/<name>")
    def client_file(version: str, name: str) -> Response:
        if version != client_hash or name not in client.files:
            raise NotFoundError("this file belongs to another version of the page; load it again")
        return Response(client.files[name], content_type=TYPES[PurePath(name).suffix])

    @routes.get("/favicon.ico")
    def favicon() -> Response:
        return Response(client.files["favicon.svg"], content_type=TYPES[".svg"])


def _body() -> bytes:
    """The body of a report request; forms are never parsed, large ones never read."""
    if request.mimetype != "application/json":
        raise UnsupportedMediaError("a report is sent as application/json, never as a form")
    if (request.content_length or 0) > MAX_REPORT_BYTES:
        raise ReportTooLargeError(f"a report has at most {MAX_REPORT_BYTES:,} bytes")
    body = request.stream.read(MAX_REPORT_BYTES + 1)
    if len(body) > MAX_REPORT_BYTES:
        raise ReportTooLargeError(f"a report has at most {MAX_REPORT_BYTES:,} bytes")
    return body
