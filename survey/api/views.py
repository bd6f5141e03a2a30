"""The views of the API: access by token, content negotiation, and one view per operation."""

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
    MAX_LISTED,
    Surveys,
    Version,
    Versions,
    crosstab_of,
    estimates_of,
    to_json,
    version_of,
)
from survey.api.openapi import document
from survey.api.operations import CSV, OPERATIONS, PREFIX, check_query, questions_of
from survey.errors import (
    ChannelError,
    CountsError,
    ForbiddenError,
    NotAcceptableError,
    NotFoundError,
    QueryError,
    UnauthorizedError,
)
from survey.results.crosstab.compute import compute_crosstab
from survey.results.crosstab.request import CrosstabRequest
from survey.results.crosstab.table import CrosstabResult, CrosstabRow
from survey.results.estimates.result import ResultCache
from survey.results.exports.csv import to_csv
from survey.results.exports.microdata import write_microdata
from survey.results.exports.xlsx import crosstab_workbook, estimates_workbook
from survey.results.options import IntervalOptions, parse_options
from survey.security import API, hash_of
from survey.store import ROLES, Action, ApiToken, PublishedSurvey, Researcher, Store
from survey.version import __version__

NO_TOKEN = (
    "a token is required: send the header Authorization: Bearer TOKEN; create tokens on your "  # noqa: S105
    "account page under API tokens"
)
"""Identical for a missing, a wrong and a revoked token."""


class Gate:
    """Checks the token of a request and which surveys it may read.

    A survey that the researcher may not read does not exist for the program (404). A scope that the
    token lacks is named (403).
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self) -> None:
        """Raise UnauthorizedError or ForbiddenError if the token does not allow this operation."""
        scope = OPERATIONS[(request.endpoint or "").partition(".")[2]].scope
        if scope is None:
            return
        token = self._token()
        if scope not in token.scopes.split():
            raise ForbiddenError(
                f"this address requires a token with the scope {scope}, which yours lacks; "
                "create another one"
            )
        g.reader = self._store.researcher_by_key(token.researcher)

    def surveys(self) -> list[PublishedSurvey]:
        """Return all versions of all surveys that may be read, by slug, newest first."""
        slugs = self._readable_slugs()
        return [
            survey
            for survey in self._store.surveys()
            if not survey.is_test_run and (slugs is None or survey.slug in slugs)
        ]

    def versions(self, slug: str) -> list[PublishedSurvey]:
        """Return all versions of a survey, newest first."""
        slugs = self._readable_slugs()
        versions = self._store.versions(slug) if slugs is None or slug in slugs else []
        if not versions or versions[0].is_test_run:
            raise NotFoundError(f'there is no survey "{slug}"')
        return versions

    def version(self, slug: str, version: int) -> PublishedSurvey:
        """Return one version of a survey."""
        for survey in self.versions(slug):
            if survey.version == version:
                return survey
        raise NotFoundError(f'there is no survey "{slug}" version {version}')

    def editable(self, slug: str, version: int) -> PublishedSurvey:
        """Return a version of a survey whose reports the researcher may download as an editor."""
        survey = self.version(slug, version)
        reader: Researcher = g.reader
        role = "owner" if reader.is_admin else self._store.roles(reader.key)[slug]
        if ROLES.index(role) < ROLES.index("editor"):
            raise ForbiddenError(f"this requires the role editor in the survey {slug}")
        return survey

    def log(self, event: str, slug: str, detail: str) -> None:
        """Log an action of a program under the name of its researcher."""
        reader: Researcher = g.reader
        self._store.add_action(Action(int(time.time()), reader.email, event, slug, detail))

    def _readable_slugs(self) -> Container[str] | None:
        """Return the slugs of all surveys that may be read, None for all surveys."""
        reader: Researcher = g.reader
        return None if reader.is_admin else self._store.roles(reader.key)

    def _token(self) -> ApiToken:
        authorization = request.authorization
        bearer = (
            authorization.token
            if authorization is not None and authorization.type == "bearer"
            else None
        )
        token = self._store.api_token(hash_of(bearer)) if bearer else None
        if token is None:
            raise UnauthorizedError(NO_TOKEN)
        return token


def guard(app: Flask) -> None:
    """Raise RuntimeError for an API address that is not in the table, or the reverse."""
    rules = {rule.rule: rule.endpoint for rule in app.url_map.iter_rules()}
    declared = {PREFIX + operation.path: f"api.{name}" for name, operation in OPERATIONS.items()}
    for rule, endpoint in rules.items():
        if rule.startswith(API) and declared.get(rule) != endpoint:
            raise RuntimeError(f"{rule} ({endpoint}) is not in the table of operations")
    for rule in declared:
        if rule not in rules:
            raise RuntimeError(f"{rule} is in the table of operations but has no route")


def negotiate(media_types: Sequence[str]) -> str:
    """Return the media type that the client prefers; the first one by default.

    Raises NotAcceptableError if the client accepts none of them.
    """
    accepted = request.accept_mimetypes
    if not accepted:
        return media_types[0]
    # Parameters such as a charset are ignored.
    plain = MIMEAccept([(kind.partition(";")[0], quality) for kind, quality in accepted])
    if (best := plain.best_match(media_types)) is None:
        raise NotAcceptableError(f"this address offers {' or '.join(media_types)}")
    return best


def tag_of(survey: PublishedSurvey, release: int, *key: object) -> str:
    """Return the ETag of a result, which changes with the release and the version of this code."""
    parts = (survey.sha256, survey.state, release, __version__, *key)
    return hashlib.sha256("\n".join(map(str, parts)).encode("utf-8")).hexdigest()[:32]


def complete(body: bytes, media_type: str, tag: str = "") -> Response:
    """Return a response that is already known; its tag is the hash of its bytes by default."""
    return _response(tag or hashlib.sha256(body).hexdigest(), media_type, lambda: body)


def computed(tag: str, media_type: str, body: Callable[[], bytes | str]) -> Response:
    """Return a response that is computed only if the client does not have it.

    The tag is weak, because each row contains the time of its computation: two responses for the
    same release are equivalent, but not equal byte for byte.
    """
    return _response(tag, media_type, body, weak=True)


def _response(
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


def blueprint(store: Store, results: ResultCache, gate: Gate, public_url: str) -> Blueprint:
    """Create the routes of all operations, each with the view of the same name."""
    routes = Blueprint("api", __name__, url_prefix=PREFIX)
    pages = _Pages(store, results, gate, public_url)
    routes.before_request(gate.check)
    for name, operation in OPERATIONS.items():
        # No OPTIONS: browsers send it to ask whether another site may read, which none may.
        routes.add_url_rule(
            operation.path, name, getattr(pages, name), provide_automatic_options=False
        )
    return routes


class _Pages:
    """One view for each operation of the table."""

    def __init__(self, store: Store, results: ResultCache, gate: Gate, public_url: str) -> None:
        self._store, self._results, self._gate = store, results, gate
        self._public_url = public_url

    def description(self) -> Response:
        """Return the OpenAPI document."""
        kind, _ = _parse_request("description")
        return complete(document(self._public_url), kind)

    def surveys(self) -> Response:
        """Return the newest version of each survey."""
        kind, _ = _parse_request("surveys")
        groups = groupby(self._gate.surveys(), key=attrgetter("slug"))
        newest = [next(versions) for _, versions in groups]
        listed = self._described(newest[:MAX_LISTED])
        return complete(to_json(Surveys(len(newest), listed)), kind)

    def survey(self, slug: str) -> Response:
        """Return all versions of a survey."""
        kind, _ = _parse_request("survey")
        return complete(to_json(Versions(slug, self._described(self._gate.versions(slug)))), kind)

    def version(self, slug: str, version: int) -> Response:
        """Return a version of a survey."""
        kind, _ = _parse_request("version")
        (described,) = self._described([self._gate.version(slug, version)])
        return complete(to_json(described), kind)

    def definition(self, slug: str, version: int) -> Response:
        """Return the definition exactly as respondents' devices read it."""
        kind, _ = _parse_request("definition")
        survey = self._gate.version(slug, version)
        return complete(survey.canonical, kind, survey.sha256)

    def estimates(self, slug: str, version: int) -> Response:
        """Return the estimates of a version."""
        kind, query = _parse_request("estimates")
        survey, options = self._gate.version(slug, version), parse_options(query)

        def body() -> bytes | str:
            result = self._results.result(survey, options)
            return to_csv(result.rows) if kind == CSV else to_json(estimates_of(result))

        return computed(self._tag(survey, kind, options), kind, body)

    def crosstab(self, slug: str, version: int) -> Response:
        """Return a cross-tabulation."""
        kind, query = _parse_request("crosstab")
        survey, options = self._gate.version(slug, version), parse_options(query)
        names = questions_of(query, survey)

        def body() -> bytes | str:
            table = self._crossed(survey, names, options)
            return to_csv(table.rows, CrosstabRow) if kind == CSV else to_json(crosstab_of(table))

        return computed(self._tag(survey, kind, *names, options), kind, body)

    def estimates_xlsx(self, slug: str, version: int) -> Response:
        """Return the workbook of the estimates."""
        kind, query = _parse_request("estimates_xlsx")
        survey, options = self._gate.version(slug, version), parse_options(query)
        return computed(
            self._tag(survey, kind, options),
            kind,
            lambda: estimates_workbook(self._results.result(survey, options)),
        )

    def crosstab_xlsx(self, slug: str, version: int) -> Response:
        """Return the workbook of a cross-tabulation."""
        kind, query = _parse_request("crosstab_xlsx")
        survey, options = self._gate.version(slug, version), parse_options(query)
        names = questions_of(query, survey)
        return computed(
            self._tag(survey, kind, *names, options),
            kind,
            lambda: crosstab_workbook(self._crossed(survey, names, options)),
        )

    def reports_zip(self, slug: str, version: int) -> Response:
        """Return the released reports; the log of the survey records each download."""
        kind, _ = _parse_request("reports_zip")
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
        self, survey: PublishedSurvey, names: Sequence[str], options: IntervalOptions
    ) -> CrosstabResult:
        try:
            request = CrosstabRequest(names[0], names[1])
            return compute_crosstab(self._store, survey, request, options)
        except (ChannelError, CountsError) as error:
            raise QueryError(str(error)) from None

    def _tag(self, survey: PublishedSurvey, *key: object) -> str:
        # Only the release number is read, so that a current response costs no computation.
        return tag_of(survey, self._store.newest_release(survey.key).number, *key)


def _parse_request(name: str) -> tuple[str, dict[str, str]]:
    """Return the media type and the query of a request to an operation."""
    operation = OPERATIONS[name]
    return negotiate(tuple(operation.answers)), check_query(request.args, operation.query)
