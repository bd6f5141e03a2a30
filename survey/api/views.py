"""The views of the API: access by token, content negotiation, and the answer of each operation."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Container, Iterable, Sequence
from io import BytesIO
from itertools import groupby
from operator import attrgetter

from flask import Blueprint, Flask, Response, g, request
from werkzeug.datastructures import MIMEAccept

from survey.api.answers import (
    MOST_LISTED,
    Surveys,
    Version,
    Versions,
    crosstab_of,
    estimates_of,
    to_json,
    version_of,
)
from survey.api.openapi import document
from survey.api.operations import CSV, OPERATIONS, PREFIX, checked_query, questions_of
from survey.errors import (
    ChannelError,
    CountsError,
    ForbiddenError,
    NotAcceptableError,
    NotFoundError,
    QueryError,
    UnauthorizedError,
)
from survey.results.crosstab.compute import CrossedQuestions, CrossedRow, crossed
from survey.results.estimates.result import Results
from survey.results.exports.csv import to_csv
from survey.results.exports.microdata import write_microdata
from survey.results.exports.workbook import crossed_workbook, workbook
from survey.results.options import Wanted, wanted_from
from survey.security import API, hash_of
from survey.store import ROLES, Action, ApiToken, PublishedSurvey, Researcher, Store
from survey.version import __version__

NO_TOKEN = (
    "this address wants a token: send the header Authorization: Bearer TOKEN; tokens are made "  # noqa: S105
    "under Account, Programs, on the researchers' pages"
)
"""The same for no token, a wrong one and one that was ended."""


class Gate:
    """Lets through who may, before a view runs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self) -> None:
        """Refuse a request whose token is not good for its address."""
        scope = OPERATIONS[(request.endpoint or "").partition(".")[2]].scope
        if scope is None:
            return
        token = self._token()
        if scope not in token.scopes.split():
            raise ForbiddenError(
                f"this address wants a token with the scope {scope}, which yours has not; "
                "make another one"
            )
        g.reader = self._store.researcher_by_key(token.researcher)

    def surveys(self) -> list[PublishedSurvey]:
        """Every version of every survey that may be read, by slug, the newest first."""
        mine = self._readable()
        return [
            survey
            for survey in self._store.surveys()
            if not survey.is_test_run and (mine is None or survey.slug in mine)
        ]

    def versions(self, slug: str) -> list[PublishedSurvey]:
        """All versions of a survey, the newest first."""
        mine = self._readable()
        found = self._store.versions(slug) if mine is None or slug in mine else []
        if not found or found[0].is_test_run:
            raise NotFoundError(f'there is no survey "{slug}"')
        return found

    def version(self, slug: str, version: int) -> PublishedSurvey:
        """One version of a survey."""
        for survey in self.versions(slug):
            if survey.version == version:
                return survey
        raise NotFoundError(f'there is no survey "{slug}" version {version}')

    def editable(self, slug: str, version: int) -> PublishedSurvey:
        """One version of a survey that the researcher edits: whose rows they may give away."""
        survey = self.version(slug, version)
        reader: Researcher = g.reader
        role = "owner" if reader.is_admin else self._store.roles(reader.key)[slug]
        if ROLES.index(role) < ROLES.index("editor"):
            raise ForbiddenError(f"this needs the role editor in the survey {slug}")
        return survey

    def log(self, what: str, slug: str, detail: str) -> None:
        """Write down what a program did, under its researcher's name."""
        reader: Researcher = g.reader
        self._store.add_action(Action(int(time.time()), reader.email, what, slug, detail))

    def _readable(self) -> Container[str] | None:
        """The slugs of all surveys that may be read; None for every one."""
        reader: Researcher = g.reader
        return None if reader.is_admin else self._store.roles(reader.key)

    def _token(self) -> ApiToken:
        sent = request.authorization
        bearer = sent.token if sent is not None and sent.type == "bearer" else None
        token = self._store.api_token(hash_of(bearer)) if bearer else None
        if token is None:
            raise UnauthorizedError(NO_TOKEN)
        return token


def guard(app: Flask) -> None:
    """Stop the start where an address for programs is not in the table, or the table's nowhere."""
    rules = {rule.rule: rule.endpoint for rule in app.url_map.iter_rules()}
    ours = {PREFIX + each.path: f"api.{name}" for name, each in OPERATIONS.items()}
    for rule, endpoint in rules.items():
        if rule.startswith(API) and ours.get(rule) != endpoint:
            raise RuntimeError(f"which token opens {rule} ({endpoint}) is not said")
    for rule in ours:
        if rule not in rules:
            raise RuntimeError(f"{rule} is said to be there and is not")


def chosen(offered: Sequence[str]) -> str:
    """The media type that the reader likes best; the first for whoever takes any.

    Raises NotAcceptableError where none will do.
    """
    asked = request.accept_mimetypes
    if not asked:
        return offered[0]
    # What stands behind a type, such as a charset, is left to us.
    plain = MIMEAccept([(kind.partition(";")[0], quality) for kind, quality in asked])
    if (best := plain.best_match(offered)) is None:
        raise NotAcceptableError(f"this address answers with {' or '.join(offered)}")
    return best


def tag_of(survey: PublishedSurvey, release: int, *reading: object) -> str:
    """The tag of what was read of a release; other code may read it otherwise."""
    parts = (survey.sha256, survey.state, release, __version__, *reading)
    return hashlib.sha256("\n".join(map(str, parts)).encode("utf-8")).hexdigest()[:32]


def whole(body: bytes, media_type: str, tag: str = "") -> Response:
    """An answer that is at hand, tagged by its bytes unless it has a tag already."""
    return _answer(tag or hashlib.sha256(body).hexdigest(), media_type, lambda: body)


def computed(tag: str, media_type: str, body: Callable[[], bytes | str]) -> Response:
    """An answer that is computed only for whoever has not got it.

    The tag is a weak one: each process says in every row when it made them, so that two answers
    say the same of the same release, but not in the same bytes.
    """
    return _answer(tag, media_type, body, weak=True)


def _answer(
    tag: str, media_type: str, body: Callable[[], bytes | str], *, weak: bool = False
) -> Response:
    if request.if_none_match.contains_weak(tag):
        response = Response(status=304)
    else:
        response = Response(body(), content_type=_with_charset(media_type))
    response.set_etag(tag, weak=weak)
    return response


def _with_charset(media_type: str) -> str:
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


def blueprint(store: Store, results: Results, gate: Gate, public_url: str) -> Blueprint:
    """The routes of the table, each to the view of its name."""
    routes = Blueprint("api", __name__, url_prefix=PREFIX)
    pages = _Pages(store, results, gate, public_url)
    routes.before_request(gate.check)
    for name, operation in OPERATIONS.items():
        # Without OPTIONS: other sites' pages ask by it whether they may read, and they never may.
        routes.add_url_rule(
            operation.path, name, getattr(pages, name), provide_automatic_options=False
        )
    return routes


class _Pages:
    """A view for every endpoint of the table; what each takes and gives stands there."""

    def __init__(self, store: Store, results: Results, gate: Gate, public_url: str) -> None:
        self._store, self._results, self._gate = store, results, gate
        self._public_url = public_url

    def description(self) -> Response:
        """The OpenAPI document."""
        kind, _ = _asked("description")
        return whole(document(self._public_url), kind)

    def surveys(self) -> Response:
        """The newest version of each survey."""
        kind, _ = _asked("surveys")
        groups = groupby(self._gate.surveys(), key=attrgetter("slug"))
        newest = [next(versions) for _, versions in groups]
        listed = self._described(newest[:MOST_LISTED])
        return whole(to_json(Surveys(len(newest), listed)), kind)

    def survey(self, slug: str) -> Response:
        """All versions of one survey."""
        kind, _ = _asked("survey")
        return whole(to_json(Versions(slug, self._described(self._gate.versions(slug)))), kind)

    def version(self, slug: str, version: int) -> Response:
        """One version."""
        kind, _ = _asked("version")
        (described,) = self._described([self._gate.version(slug, version)])
        return whole(to_json(described), kind)

    def definition(self, slug: str, version: int) -> Response:
        """The bytes that every device reads."""
        kind, _ = _asked("definition")
        survey = self._gate.version(slug, version)
        return whole(survey.canonical, kind, survey.sha256)

    def estimates(self, slug: str, version: int) -> Response:
        """The rows of the dashboard."""
        kind, query = _asked("estimates")
        survey, wanted = self._gate.version(slug, version), wanted_from(query)

        def body() -> bytes | str:
            result = self._results.of(survey, wanted)
            return to_csv(result.rows) if kind == CSV else to_json(estimates_of(result))

        return computed(self._tag(survey, kind, wanted), kind, body)

    def crosstab(self, slug: str, version: int) -> Response:
        """Two questions crossed."""
        kind, query = _asked("crosstab")
        survey, wanted = self._gate.version(slug, version), wanted_from(query)
        names = questions_of(query, survey)

        def body() -> bytes | str:
            found = self._crossed(survey, names, wanted)
            return to_csv(found.rows, CrossedRow) if kind == CSV else to_json(crosstab_of(found))

        return computed(self._tag(survey, kind, *names, wanted), kind, body)

    def estimates_xlsx(self, slug: str, version: int) -> Response:
        """The workbook of the dashboard."""
        kind, query = _asked("estimates_xlsx")
        survey, wanted = self._gate.version(slug, version), wanted_from(query)
        return computed(
            self._tag(survey, kind, wanted),
            kind,
            lambda: workbook(self._results.of(survey, wanted)),
        )

    def crosstab_xlsx(self, slug: str, version: int) -> Response:
        """The workbook of a cross-tab."""
        kind, query = _asked("crosstab_xlsx")
        survey, wanted = self._gate.version(slug, version), wanted_from(query)
        names = questions_of(query, survey)
        return computed(
            self._tag(survey, kind, *names, wanted),
            kind,
            lambda: crossed_workbook(self._crossed(survey, names, wanted)),
        )

    def reports_zip(self, slug: str, version: int) -> Response:
        """The released reports, of which each download is in the survey's log."""
        kind, _ = _asked("reports_zip")
        survey = self._gate.editable(slug, version)

        def body() -> bytes:
            file = BytesIO()
            n = write_microdata(file, self._store, survey)
            self._gate.log("downloaded reports", slug, f"version {version}, {n} by a program")
            return file.getvalue()

        return computed(self._tag(survey, kind), kind, body)

    def _described(self, surveys: Iterable[PublishedSurvey]) -> tuple[Version, ...]:
        archived = self._store.archived_slugs()
        return tuple(
            version_of(
                survey, self._store.newest_release(survey.key), archived=survey.slug in archived
            )
            for survey in surveys
        )

    def _crossed(
        self, survey: PublishedSurvey, names: Sequence[str], wanted: Wanted
    ) -> CrossedQuestions:
        try:
            return crossed(self._store, survey, names, wanted)
        except (ChannelError, CountsError) as error:
            raise QueryError(str(error)) from None

    def _tag(self, survey: PublishedSurvey, *reading: object) -> str:
        # The number of the release alone: what a reader has already is not counted again.
        return tag_of(survey, self._store.newest_release(survey.key).number, *reading)


def _asked(name: str) -> tuple[str, dict[str, str]]:
    """The media type and the query of a request, as its address takes them."""
    operation = OPERATIONS[name]
    return chosen(tuple(operation.answers)), checked_query(request.args, operation.query)
