"""The respondents' routes. They read no cookie, no network address and no time of day."""

from __future__ import annotations

from pathlib import PurePath

from flask import Blueprint, Flask, Response, render_template, request

from survey.collect.incoming_reports import Intake, refusal
from survey.collect.release import utc_today
from survey.errors import (
    STATUS,
    NotFoundError,
    ReportTooLargeError,
    UnsupportedMediaError,
)
from survey.questionnaire.definition import MAX_REPORT_BYTES
from survey.respond.client import CONTENT_TYPES, Client, Compressed, compress, texts_file
from survey.respondent_texts import LANGUAGES, SOURCE, closest_language, say
from survey.security import check_same_origin
from survey.settings import Settings
from survey.store import Store, find_survey

HTML = "text/html; charset=utf-8"


def init_app(app: Flask, store: Store, settings: Settings, client: Client) -> None:
    """Register the respondents' routes with the application."""
    routes = Blueprint("respond", __name__)
    _add_survey_routes(routes, store, settings, Pages(client))
    _add_file_routes(routes, client)
    app.register_blueprint(routes)


def _add_survey_routes(routes: Blueprint, store: Store, settings: Settings, pages: Pages) -> None:
    intake = Intake(store)

    @routes.get("/s/<slug>")
    def page(slug: str) -> Response:
        # A closed survey's page still opens: a person may return to see whether a report arrived.
        survey = find_survey(store, slug)
        error = refusal(store, survey, utc_today())
        status = STATUS[type(error)] if error else 200
        return pages.page(survey.definition.languages, request_language()).response(
            HTML, status, vary="Accept-Language"
        )

    @routes.get("/s/<slug>/definition.json")
    def definition(slug: str) -> Response:
        survey = find_survey(store, slug)
        if error := refusal(store, survey, utc_today()):
            raise error
        return compress(survey.canonical).response("application/json")

    @routes.post("/s/<slug>/reports")
    def reports(slug: str) -> Response:
        site, origin = map(request.headers.get, ("Sec-Fetch-Site", "Origin"))
        check_same_origin(site, origin, request.host, settings.public_url)
        intake.receive(slug, _report_body(), utc_today())
        # A repeated report gets the same answer as a new one.
        return Response(status=201)

    @routes.get("/s/<slug>/sent")
    def sent(slug: str) -> Response:
        # Clear only the cached files: cookies and storage belong to the whole site.
        find_survey(store, slug)
        answer = Response(status=204, headers={"Clear-Site-Data": '"cache"'})
        # An empty answer has no content type; the proxy drops it over HTTP/2 as well.
        del answer.headers["Content-Type"]
        return answer


def _add_file_routes(routes: Blueprint, client: Client) -> None:
    client_hash = client.sha256
    files = {name: compress(content) for name, content in client.files.items()}

    @routes.get("/client/<version>/<name>")
    def client_file(version: str, name: str) -> Response:
        if version != client_hash or name not in files:
            raise NotFoundError("this file belongs to another version of the page; reload the page")
        return files[name].response(CONTENT_TYPES[PurePath(name).suffix])

    @routes.get("/favicon.ico")
    def favicon() -> Response:
        return files["favicon.svg"].response(CONTENT_TYPES[".svg"])


class Pages:
    """The page that opens every survey, rendered once per choice of languages."""

    def __init__(self, client: Client) -> None:
        self._files = client.files
        self._hash = client.sha256
        self._rendered: dict[tuple[str, ...], Compressed] = {}

    def page(self, languages: tuple[str, ...], preferred: str) -> Compressed:
        """Return the page with the texts of these languages, opening in the preferred one.

        The page contains all texts: a device that fetched one language would reveal its choice.
        """
        available = dict.fromkeys(closest_language(language) or SOURCE for language in languages)
        language = preferred if preferred in available else next(iter(available))
        if (key := (language, *available)) not in self._rendered:
            content = self._render(language, list(available)).encode("utf-8")
            self._rendered[key] = Compressed.from_bytes(content)
        return self._rendered[key]

    def _render(self, language: str, languages: list[str]) -> str:
        return render_template(
            "respond/page.html",
            client_base=f"/client/{self._hash}",
            client_hash=self._hash,
            # Inline, because every further file is one more request on a slow connection.
            icon=self._files["favicon.svg"].decode("utf-8"),
            # Listed in the page, or the browser would find imports one level at a time.
            modules=[name for name in self._files if name.endswith(".js") and name != "main.js"],
            texts={tag: self._files[texts_file(tag)].decode("utf-8") for tag in languages},
            language=language,
            say=lambda key: say(language, key),
        )


def request_language() -> str:
    """Return the interface language that the browser prefers, or else the source language."""
    return request.accept_languages.best_match(LANGUAGES, SOURCE) or SOURCE


def _report_body() -> bytes:
    """Return the body of a report; never parse a form or read more than the maximum."""
    if request.mimetype != "application/json":
        raise UnsupportedMediaError("send a report as application/json, not as a form")
    if (request.content_length or 0) <= MAX_REPORT_BYTES:
        body = request.stream.read(MAX_REPORT_BYTES + 1)
        if len(body) <= MAX_REPORT_BYTES:
            return body
    raise ReportTooLargeError(f"a report has at most {MAX_REPORT_BYTES:,} bytes")
