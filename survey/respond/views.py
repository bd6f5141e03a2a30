"""Respondents' addresses. Nothing here reads a cookie, an address or a clock time."""

from __future__ import annotations

from pathlib import PurePath

from flask import Blueprint, Response, render_template, request

from survey.collect.admission import refusal
from survey.collect.intake import Intake, IntakeMetrics
from survey.collect.release import utc_today
from survey.errors import (
    STATUS,
    NotFoundError,
    ReportTooLargeError,
    SurveyError,
    UnsupportedMediaError,
)
from survey.questionnaire.definition import MAX_REPORT_BYTES
from survey.respond.client import TYPES, Client, words_file
from survey.respond.compressed import Compressed, compressed
from survey.respond.languages import spoken
from survey.security import check_same_origin
from survey.settings import Settings
from survey.store import Store, find_survey
from survey.words import SOURCE, closest, say

HTML = "text/html; charset=utf-8"


def blueprint(
    store: Store, client: Client, settings: Settings, figures: IntakeMetrics
) -> Blueprint:
    """The respondents' routes over one store and one client."""
    routes = Blueprint("respond", __name__)
    intake = Intake(store, figures)
    pages = Pages(client)

    @routes.get("/s/<slug>")
    def page(slug: str) -> Response:
        # Also for a closed survey: someone may come back to learn whether a report arrived.
        survey = find_survey(store, slug)
        refused = refusal(store, survey, utc_today())
        status = STATUS[type(refused)] if refused else 200
        return pages.of(survey.definition.languages, spoken()).response(
            HTML, status, vary="Accept-Language"
        )

    @routes.get("/s/<slug>/definition.json")
    def definition(slug: str) -> Response:
        survey = find_survey(store, slug)
        if refused := refusal(store, survey, utc_today()):
            raise refused
        return compressed(survey.canonical).response("application/json")

    @routes.post("/s/<slug>/reports")
    def reports(slug: str) -> Response:
        try:
            _check_origin(settings)
            intake.receive(slug, _body(), utc_today())
        except SurveyError as error:
            figures.refused(error)
            raise
        # The same answer for a new report and for one that was here before.
        return Response(status=201)

    @routes.get("/s/<slug>/sent")
    def sent(slug: str) -> Response:
        # The page's files need not stay on the device. What else it keeps is the whole site's.
        find_survey(store, slug)
        answer = Response(status=204, headers={"Clear-Site-Data": '"cache"'})
        # Of nothing there is no kind; over HTTP 2 the proxy leaves it out by itself.
        del answer.headers["Content-Type"]
        return answer

    _add_files(routes, client)
    return routes


class Pages:
    """The page that every survey opens with, made once for each choice of languages."""

    def __init__(self, client: Client) -> None:
        self._files = client.files
        self._hash = client.sha256
        self._made: dict[tuple[str, ...], Compressed] = {}

    def of(self, languages: tuple[str, ...], preferred: str) -> Compressed:
        """The page with the words of these languages, opening in the one its reader prefers.

        All words come with it: a device that fetched those of a language would tell its choice.
        """
        known = dict.fromkeys(closest(language) or SOURCE for language in languages)
        shown = preferred if preferred in known else next(iter(known))
        if (key := (shown, *known)) not in self._made:
            self._made[key] = Compressed.of(self._render(shown, list(known)).encode("utf-8"))
        return self._made[key]

    def _render(self, shown: str, languages: list[str]) -> str:
        return render_template(
            "respond/page.html",
            client_base=f"/client/{self._hash}",
            client_hash=self._hash,
            # In the page itself: every further file is one more that a slow connection waits for.
            icon=self._files["favicon.svg"].decode("utf-8"),
            modules=[name for name in self._files if name.endswith(".js") and name != "main.js"],
            words={each: self._files[words_file(each)].decode("utf-8") for each in languages},
            language=shown,
            say=lambda key: say(shown, key),
        )


def _check_origin(settings: Settings) -> None:
    """Refuse a report that another site's page sends."""
    check_same_origin(
        request.headers.get("Sec-Fetch-Site"),
        request.headers.get("Origin"),
        request.host,
        settings.public_url,
    )


def _add_files(routes: Blueprint, client: Client) -> None:
    client_hash = client.sha256
    files = {name: compressed(content) for name, content in client.files.items()}

    @routes.get("/client/<version>/<name>")
    def client_file(version: str, name: str) -> Response:
        if version != client_hash or name not in files:
            raise NotFoundError("this file belongs to another version of the page; load it again")
        return files[name].response(TYPES[PurePath(name).suffix])

    @routes.get("/favicon.ico")
    def favicon() -> Response:
        return files["favicon.svg"].response(TYPES[".svg"])


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
