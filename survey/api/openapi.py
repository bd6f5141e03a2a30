"""The JSON objects of the API, and its OpenAPI 3.1 document.

The objects are frozen classes whose fields are the keys; a table lists the operations.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from survey.errors import (
    STATUS,
    ForbiddenError,
    NotAcceptableError,
    NotFoundError,
    QueryError,
    StoreBusyError,
    SurveyError,
    UnauthorizedError,
)
from survey.estimator import Disclosure
from survey.results.crosstab.compute import MAX_CELLS
from survey.results.crosstab.table import CrosstabResult, CrosstabRow
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import EstimateRow
from survey.results.exports.csv import column_names
from survey.results.request import IntervalOptions
from survey.store import SCOPES, PublishedSurvey, Release, State
from survey.version import __version__

MAX_LISTED = 500
"""Surveys on one page of the list."""


@dataclass(frozen=True)
class Version:
    """A published version of a survey.

    changed        UTC day of the last change of state
    opens, closes  first and last UTC day on which reports are accepted; null for no limit
    most           maximum number of reports; 0 for no limit
    sha256         SHA-256 of the definition, in hexadecimal
    epsilon        privacy loss of one complete report, rounded up
    odds_factor    maximum factor by which one complete report changes the odds of a guess about
                   its respondent: e to the power of the exact epsilon, rounded up
    languages      languages of the survey, its own first
    archived       whether the survey is hidden from researchers' lists
    release        number of the newest release; estimates change only with a new release
    released       number of released reports, from which all estimates are computed
    """

    slug: str
    version: int
    title: str
    state: State
    changed: date
    opens: date | None
    closes: date | None
    most: int
    sha256: str
    epsilon: float
    odds_factor: int
    languages: tuple[str, ...]
    archived: bool
    release: int
    released: int


@dataclass(frozen=True)
class Surveys:
    """The surveys that the researcher of the token may read.

    total    number of surveys on all pages
    surveys  newest version of each survey, sorted by slug; the parameter `after` gets the next page
    """

    total: int
    surveys: Annotated[tuple[Version, ...], Field(max_length=MAX_LISTED)]


@dataclass(frozen=True)
class Versions:
    """All versions of a survey, newest first."""

    slug: str
    versions: tuple[Version, ...]


@dataclass(frozen=True)
class Estimates:
    """The estimates of a version: the rows and column names of the CSV.

    sha256    SHA-256 of the definition
    release   number of the newest release in the estimates
    released  number of reports in the estimates
    wanted    interval options of the request
    """

    slug: str
    version: int
    sha256: str
    release: int
    released: int
    wanted: IntervalOptions
    rows: tuple[EstimateRow, ...]


@dataclass(frozen=True)
class PearsonTest:
    """A chi-squared test of whether the reports on two questions are related.

    small_expected  whether expected counts are too small for a reliable p-value
    """

    statistic: float
    df: int
    p_value: float
    small_expected: bool


@dataclass(frozen=True)
class Crosstab:
    """A cross-tabulation of two questions, with one row per cell.

    n      number of released reports with both questions
    shown  show, caution or hide; if hide, all cells are suppressed
    test   null for suppressed tables, reports of sets, and reports that are all equal
    """

    slug: str
    version: int
    sha256: str
    n: int
    shown: Disclosure
    test: PearsonTest | None
    rows: Annotated[tuple[CrosstabRow, ...], Field(max_length=MAX_CELLS)]


@dataclass(frozen=True)
class Problem:
    """An error (RFC 9457); `detail` says which value is wrong and what would be right."""

    type: str
    title: str
    status: int
    detail: str


def version_of(survey: PublishedSurvey, release: Release, *, archived: bool) -> Version:
    """Describe a version of a survey."""
    definition, schedule = survey.definition, survey.schedule
    return Version(
        slug=survey.slug,
        version=survey.version,
        title=definition.title,
        state=survey.state,
        changed=survey.changed,
        opens=schedule.opens,
        closes=schedule.closes,
        most=schedule.maximum,
        sha256=survey.sha256,
        epsilon=definition.epsilon,
        odds_factor=math.ceil(definition.ratio),
        languages=definition.languages,
        archived=archived,
        release=release.number,
        released=release.n,
    )


def estimates_of(result: SurveyResult) -> Estimates:
    """Return the estimates of a version with their release."""
    slug, version, sha256 = result.survey.slug, result.survey.version, result.survey.sha256
    rows = tuple(result.rows)
    return Estimates(slug, version, sha256, result.release, result.n, result.options, rows)


def crosstab_of(table: CrosstabResult) -> Crosstab:
    """Return the rows of a cross-tabulation and its test."""
    slug, version, sha256 = table.survey.slug, table.survey.version, table.survey.sha256
    test: PearsonTest | None = None
    if result := table.test:
        test = PearsonTest(result.statistic, result.df, result.p_value, result.small_expected)
    rows = tuple(table.rows)
    return Crosstab(slug, version, sha256, table.table.n, table.disclosure, test, rows)


ADAPTERS: Mapping[type, TypeAdapter[Any]] = {
    kind: TypeAdapter(kind) for kind in (Surveys, Versions, Version, Estimates, Crosstab, Problem)
}
"""The serializer and the schema of each class."""


def to_json(answer: object) -> bytes:
    """Serialize an object as JSON in UTF-8; NaN becomes null."""
    return ADAPTERS[type(answer)].dump_json(answer)


class _UntitledSchema(GenerateJsonSchema):
    """Schemas without titles, which would repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  pydantic's
        return False


def schemas() -> dict[str, Any]:
    """Return the JSON Schemas of all classes by name; none allows other keys."""
    _, schemas = TypeAdapter.json_schemas(
        [(kind.__name__, "serialization", adapter) for kind, adapter in ADAPTERS.items()],
        ref_template="#/components/schemas/{model}",
        schema_generator=_UntitledSchema,
    )
    return {name: _closed(schema) for name, schema in schemas["$defs"].items()}


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Forbid other keys, and omit Python examples from the description."""
    description = schema["description"].partition(">>>")[0].rstrip()
    return {**schema, "description": description, "additionalProperties": False}


PREFIX = "/api/v1"
JSON, CSV = "application/json", "text/csv"

OPENAPI_VERSION = "3.1.1"

ABOUT = """The published surveys of this server, and the estimates from their released reports: the
same rows as on the results page and in its CSV. The server stores randomized answers only. The
`flag` of a row says whether it is suppressed; the handbook (/handbook) explains all columns.

Researchers create tokens on their account page under API tokens. A token can read what its
researcher can read. Every response has an ETag; send it in If-None-Match to get 304 until the next
release. Errors are problem+json (RFC 9457). Only the list of surveys has pages: the number of
estimates is the number of CSV rows, and the schemas give the limits of lists and tables.
"""

ERRORS: dict[type[SurveyError], str] = {
    UnauthorizedError: "There is no token, or it is not valid",
    ForbiddenError: "The token lacks the scope named in the detail",
    NotFoundError: "It does not exist, or the researcher of the token may not read it",
    NotAcceptableError: "The address does not offer this media type",
    QueryError: "A query parameter is invalid; the detail says what would be right",
    StoreBusyError: "The server is busy; try again after Retry-After seconds",
}
"""The meaning of each error in the API; its status is in `survey.errors.STATUS`."""

PATHS: dict[str, dict[str, Any]] = {
    "slug": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": 60},
    "version": {"type": "integer", "minimum": 1},
}

PATH_PARAMETER = r"<(?:\w+:)?(\w+)>"


@dataclass(frozen=True)
class Operation:
    """An operation of the API, at a path below `PREFIX`.

    scope    key of `SCOPES` that a token must have; None if no token is required
    answers  media types, the default first, with the class of the JSON object or of the CSV rows;
             `object` for other content
    query    names of the query parameters
    """

    path: str
    scope: str | None
    summary: str
    answers: Mapping[str, type]
    query: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A query parameter: its meaning, and the JSON Schema of its values."""

    meaning: str
    schema: Mapping[str, Any]
    required: bool = False


def document(
    operations: Mapping[str, Operation], parameters: Mapping[str, Parameter], server_url: str
) -> bytes:
    """Return the document as JSON; both tables are keyed by name."""
    scopes = "; ".join(f"{scope}: {meaning}" for scope, meaning in SCOPES.items())
    contents = {
        "openapi": OPENAPI_VERSION,
        "info": {"title": "Survey", "version": __version__, "description": ABOUT},
        "servers": [{"url": server_url.rstrip("/")}],
        "paths": {
            PREFIX + re.sub(PATH_PARAMETER, r"{\1}", operation.path): {
                "get": _operation(name, operation, parameters)
            }
            for name, operation in operations.items()
        },
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": scopes}
            },
        },
    }
    return json.dumps(contents, ensure_ascii=False).encode("utf-8")


def _operation(
    name: str, operation: Operation, parameters: Mapping[str, Parameter]
) -> dict[str, Any]:
    path_parameters = [
        {"name": part, "in": "path", "required": True, "schema": PATHS[part]}
        for part in re.findall(PATH_PARAMETER, operation.path)
    ]
    query_parameters = [
        {
            "name": part,
            "in": "query",
            "required": parameters[part].required,
            "description": parameters[part].meaning,
            "schema": parameters[part].schema,
        }
        for part in operation.query
    ]
    return {
        "operationId": name,
        "summary": operation.summary,
        "parameters": [*path_parameters, *query_parameters],
        "responses": {
            "200": {
                "description": operation.summary,
                "headers": {
                    "ETag": {"description": "Tag of this response", "schema": {"type": "string"}}
                },
                "content": {
                    media_type: {"schema": _schema(media_type, content)}
                    for media_type, content in operation.answers.items()
                },
            },
            "304": {"description": "The response with this ETag is still current"},
            **{str(int(STATUS[error])): _error_response(error) for error in _errors(operation)},
        },
        "security": [{"token": [operation.scope]}] if operation.scope else [],
    }


def _schema(media_type: str, content: type) -> dict[str, Any]:
    """Return the schema of a JSON class, the columns of a CSV, or nothing for other files."""
    if media_type == CSV:
        names = ", ".join(column_names(content))
        return {"type": "string", "description": f"A header and one line per row: {names}"}
    if media_type != JSON:
        return {}
    if content is object:
        return {"type": "object"}
    return {"$ref": f"#/components/schemas/{content.__name__}"}


def _errors(operation: Operation) -> list[type[SurveyError]]:
    """Return the errors that an operation can raise."""
    impossible: set[type[SurveyError]] = set()
    if operation.scope is None:
        impossible |= {UnauthorizedError, ForbiddenError, StoreBusyError}
    if "<" not in operation.path:
        impossible.add(NotFoundError)
    return [error for error in ERRORS if error not in impossible]


def _error_response(error: type[SurveyError]) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": _schema(JSON, Problem)}}
    return {"description": ERRORS[error], "content": content}
