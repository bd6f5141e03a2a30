"""The endpoints of the API: one table of operations, and a view for each.

Routes, token scopes, query parsing and the OpenAPI document are derived from the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from itertools import groupby
from operator import attrgetter
from typing import Any

from flask import Blueprint, Flask, Response, request
from werkzeug.datastructures import MIMEAccept, MultiDict

from survey.api.openapi import (
    CSV,
    JSON,
    MAX_LISTED,
    PREFIX,
    Crosstab,
    Estimates,
    Operation,
    Parameter,
    Surveys,
    Version,
    Versions,
    crosstab_of,
    document,
    estimates_of,
    to_json,
    version_of,
)
from survey.api.tokens import Gate
from survey.errors import ChannelError, CountsError, NotAcceptableError, QueryError
from survey.estimator.core.intervals import DEFAULT_INTERVAL
from survey.estimator.shares.proportions import TARGETS
from survey.questionnaire.schema import definition_schema
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab
from survey.results.crosstab.table import CrosstabRow
from survey.results.estimates.result import ResultCache
from survey.results.estimates.table import EstimateRow
from survey.results.exports.csv import to_csv
from survey.results.exports.microdata import ZIP, write_microdata
from survey.results.exports.xlsx import XLSX, crosstab_workbook, estimates_workbook
from survey.results.joint_counts import list_variables
from survey.results.request import (
    DEFAULT_LEVEL,
    INTERVAL_CHOICES,
    MAX_LEVEL,
    MIN_LEVEL,
    YES_NO,
    parse_options,
)
from survey.security import API
from survey.store import PublishedSurvey, Store
from survey.version import __version__

MAX_QUOTED = 40
"""Characters of a wrong value or name that an error message repeats."""

QUESTION: Mapping[str, Any] = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$", "maxLength": 60}

MAX_AFTER = 60
"""Maximum length of a slug."""

PARAMETERS: Mapping[str, Parameter] = {
    "level": Parameter(
        "Confidence level of each interval, as a decimal number",
        {"type": "number", "minimum": MIN_LEVEL, "maximum": MAX_LEVEL, "default": DEFAULT_LEVEL},
    ),
    "interval": Parameter(
        f"Interval method; with the target respondents only {DEFAULT_INTERVAL}",
        {"type": "string", "enum": list(INTERVAL_CHOICES), "default": DEFAULT_INTERVAL},
    ),
    "simultaneous": Parameter(
        "1: the intervals cover all shares of a question simultaneously",
        {"type": "string", "enum": list(YES_NO), "default": "0"},
    ),
    "target": Parameter(
        "Shares of the population, or of these respondents only, without sampling error",
        {"type": "string", "enum": list(TARGETS), "default": TARGETS[0]},
    ),
    "after": Parameter(
        "Slug after which the list begins: the last one of the page before",
        {"type": "string", "maxLength": MAX_AFTER},
    ),
    "first": Parameter("Id of the question in the rows", QUESTION, required=True),
    "second": Parameter(
        "Id of the question in the columns, different from the first", QUESTION, required=True
    ),
}

ESTIMATES = ("level", "interval", "simultaneous", "target")
CROSSTAB = ("first", "second", "level")

VERSION = "/surveys/<slug>/versions/<int:version>"

OPERATIONS: Mapping[str, Operation] = {
    "description": Operation("/openapi.json", None, "This description", {JSON: object}),
    "definition_schema": Operation(
        "/definition-schema.json", None, "The JSON Schema of definition files", {JSON: object}
    ),
    "surveys": Operation(
        "/surveys",
        "surveys",
        f"The newest version of each survey that you may read, sorted by slug, {MAX_LISTED} a page",
        {JSON: Surveys},
        ("after",),
    ),
    "survey": Operation(
        "/surveys/<slug>",
        "surveys",
        "All versions of a survey, newest first",
        {JSON: Versions},
    ),
    "version": Operation(VERSION, "surveys", "One version of a survey", {JSON: Version}),
    "definition": Operation(
        f"{VERSION}/definition",
        "surveys",
        "The published definition, byte for byte; the ETag is its SHA-256",
        {JSON: object},
    ),
    "estimates": Operation(
        f"{VERSION}/estimates",
        "estimates",
        "Estimates: the rows of the results page and its CSV",
        {JSON: Estimates, CSV: EstimateRow},
        ESTIMATES,
    ),
    "crosstab": Operation(
        f"{VERSION}/crosstab",
        "estimates",
        "Cross-tabulation of two questions: joint shares",
        {JSON: Crosstab, CSV: CrosstabRow},
        CROSSTAB,
    ),
    "estimates_xlsx": Operation(
        f"{VERSION}/exports/estimates.xlsx",
        "exports",
        "Estimates, codebook and methods as a workbook",
        {XLSX: object},
        ESTIMATES,
    ),
    "crosstab_xlsx": Operation(
        f"{VERSION}/exports/crosstab.xlsx",
        "exports",
        "Cross-tabulation, codebook and methods as a workbook",
        {XLSX: object},
        CROSSTAB,
    ),
    "reports_zip": Operation(
        f"{VERSION}/exports/reports.zip",
        "exports",
        "Released reports, as randomized on the devices, with their channels; for editors",
        {ZIP: object},
    ),
}
"""Operations by the name of their endpoint, which is also the name of the view."""


def guard(app: Flask) -> None:
    """Raise RuntimeError for an API address that is not in the table, or the reverse."""
    rules = app.url_map.iter_rules()
    routes = {(rule.rule, rule.endpoint) for rule in rules if rule.rule.startswith(API)}
    declared = {(PREFIX + operation.path, f"api.{name}") for name, operation in OPERATIONS.items()}
    for rule, endpoint in routes ^ declared:
        raise RuntimeError(f"{rule} ({endpoint}) must be both a route and in the table")


def check_query(query: MultiDict[str, str], names: Sequence[str]) -> dict[str, str]:
    """Return the parameters of a query.

    Raises QueryError for a parameter that is unknown, repeated or missing.
    """
    for name in query:
        if name not in names:
            allowed = f"allowed: {', '.join(names)}" if names else "none is allowed here"
            raise QueryError(f"{name[:MAX_QUOTED]!r} is an unknown parameter; {allowed}")
        if len(query.getlist(name)) > 1:
            raise QueryError(f"the parameter {name} is given more than once")
    for name in names:
        if PARAMETERS[name].required and not query.get(name):
            raise QueryError(f"the parameter {name} is missing: {PARAMETERS[name].meaning.lower()}")
    return query.to_dict()


def questions_of(query: Mapping[str, str], survey: PublishedSurvey) -> list[str]:
    """Return the ids of the two questions of a crosstab query; QueryError for unknown ids."""
    question_ids = [item.question.id for item in list_variables(survey)]
    names = [query["first"], query["second"]]
    for name in names:
        if name not in question_ids:
            raise QueryError(
                f"{name[:MAX_QUOTED]!r} is not a question of {survey.slug}; "
                f"its questions are {', '.join(question_ids)}"
            )
    return names


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


def respond(
    tag: str, media_type: str, body: Callable[[], bytes | str], *, weak: bool = False
) -> Response:
    """Return a response, or 304 without computing the body if the client has the same tag.

    A weak tag says that responses are equivalent, but not equal byte for byte.
    """
    if request.if_none_match.contains_weak(tag):
        response = Response(status=304)
    else:
        charset = "; charset=utf-8" if media_type.startswith("text/") else ""
        response = Response(body(), content_type=media_type + charset)
    response.set_etag(tag, weak=weak)
    return response


def respond_json(content: object) -> Response:
    """Return an object of `schemas`, tagged with the hash of its bytes."""
    body = to_json(content)
    return respond(hashlib.sha256(body).hexdigest(), JSON, lambda: body)


def blueprint(store: Store, results: ResultCache, gate: Gate, server_url: str) -> Blueprint:
    """Create the routes of all operations, each with the view of the same name."""
    routes = Blueprint("api", __name__, url_prefix=PREFIX)
    views = _Views(store, results, gate, server_url)

    def add_route(name: str, operation: Operation) -> None:
        view: Callable[..., Response] = getattr(views, name)

        def check_and_view(**path: Any) -> Response:
            media_type = negotiate(tuple(operation.answers))
            return view(media_type, check_query(request.args, operation.query), **path)

        # No OPTIONS: browsers send it to ask whether another site may read, which none may.
        routes.add_url_rule(operation.path, name, check_and_view, provide_automatic_options=False)

    for name, operation in OPERATIONS.items():
        add_route(name, operation)

    @routes.before_request
    def check_token() -> None:
        scope = OPERATIONS[(request.endpoint or "").partition(".")[2]].scope
        if scope is not None:
            gate.check(scope)

    return routes


Query = Mapping[str, str]


class _Views:
    """A view for each operation of the table, given the media type and the query of a request."""

    def __init__(self, store: Store, results: ResultCache, gate: Gate, server_url: str) -> None:
        self._store, self._results, self._gate = store, results, gate
        self._server_url = server_url

    @cached_property
    def _document(self) -> bytes:
        return document(OPERATIONS, PARAMETERS, self._server_url)

    def description(self, media_type: str, _: Query) -> Response:
        tag = hashlib.sha256(self._document).hexdigest()
        return respond(tag, media_type, lambda: self._document)

    def definition_schema(self, media_type: str, _: Query) -> Response:
        body = json.dumps(definition_schema()).encode("utf-8")
        return respond(hashlib.sha256(body).hexdigest(), media_type, lambda: body)

    def surveys(self, _: str, query: Query) -> Response:
        groups = groupby(self._gate.surveys(), key=attrgetter("slug"))
        # Sorted here, because a database may ignore hyphens when it sorts.
        newest = sorted((next(versions) for _, versions in groups), key=attrgetter("slug"))
        after = query.get("after", "")
        if len(after) > MAX_AFTER:
            raise QueryError(f"after = {after!r} must have at most {MAX_AFTER} characters")
        page = [survey for survey in newest if survey.slug > after]
        return respond_json(Surveys(len(newest), self._describe(page[:MAX_LISTED])))

    def survey(self, *_: object, slug: str) -> Response:
        return respond_json(Versions(slug, self._describe(self._gate.versions(slug))))

    def version(self, *_: object, slug: str, version: int) -> Response:
        (described,) = self._describe([self._gate.version(slug, version)])
        return respond_json(described)

    def definition(self, media_type: str, _: Query, slug: str, version: int) -> Response:
        survey = self._gate.version(slug, version)
        return respond(survey.sha256, media_type, lambda: survey.canonical)

    def estimates(self, media_type: str, query: Query, slug: str, version: int) -> Response:
        survey, options = self._gate.version(slug, version), parse_options(query)

        def body() -> bytes | str:
            result = self._results.result(survey, options)
            if media_type == XLSX:
                return estimates_workbook(result)
            return to_csv(result.rows) if media_type == CSV else to_json(estimates_of(result))

        return self._respond_computed(survey, media_type, body, options)

    def crosstab(self, media_type: str, query: Query, slug: str, version: int) -> Response:
        survey, options = self._gate.version(slug, version), parse_options(query)
        first, second = questions_of(query, survey)

        def body() -> bytes | str:
            try:
                questions = CrosstabRequest(first, second)
                table = self._results.analysis(compute_crosstab, survey, questions, options)
            except (ChannelError, CountsError) as error:
                raise QueryError(str(error)) from None
            if media_type == XLSX:
                return crosstab_workbook(table)
            is_csv = media_type == CSV
            return to_csv(table.rows, CrosstabRow) if is_csv else to_json(crosstab_of(table))

        return self._respond_computed(survey, media_type, body, first, second, options)

    estimates_xlsx, crosstab_xlsx = estimates, crosstab

    def reports_zip(self, media_type: str, _: Query, slug: str, version: int) -> Response:
        survey = self._gate.editable(slug, version)

        def body() -> bytes:
            file = BytesIO()
            n = write_microdata(file, self._store, survey)
            # The log of the survey records each download.
            detail = f"version {version}, {n} with an API token"
            self._gate.log("downloaded reports", slug, detail)
            return file.getvalue()

        return self._respond_computed(survey, media_type, body)

    def _describe(self, surveys: Iterable[PublishedSurvey]) -> tuple[Version, ...]:
        archived, newest = self._store.archived_slugs(), self._store.newest_release
        return tuple(
            version_of(survey, newest(survey.key), archived=survey.slug in archived)
            for survey in surveys
        )

    def _respond_computed(
        self,
        survey: PublishedSurvey,
        media_type: str,
        body: Callable[[], bytes | str],
        *parameters: object,
    ) -> Response:
        """Return a result, computed only if the client lacks that of the newest release.

        The tag changes with the release and the version of this code. It is weak, because each row
        contains the time of its computation.
        """
        # Only the release number is read, so that a current response costs no computation.
        release = self._store.newest_release(survey.key).number
        parts = (survey.sha256, survey.state, release, __version__, media_type, *parameters)
        tag = hashlib.sha256("\n".join(map(str, parts)).encode("utf-8")).hexdigest()[:32]
        return respond(tag, media_type, body, weak=True)
