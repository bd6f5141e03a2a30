"""The OpenAPI 3.1 document of the API, generated from a table of operations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from survey.api.schemas import Problem, schemas
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
from survey.results.exports.csv import column_names
from survey.store import SCOPES
from survey.version import __version__

PREFIX = "/api/v1"
JSON, CSV = "application/json", "text/csv"

OPENAPI_VERSION = "3.1.1"

ABOUT = """The published surveys of this server, and the estimates from their released reports: the
same rows as on the results page and in its CSV. The server stores randomized answers only. The
`flag` of a row says whether it is suppressed; the README of the project explains all columns.

Researchers create tokens on their account page under API tokens. A token can read what its
researcher can read. Every response has an ETag; send it in If-None-Match to get 304 until the next
release. Errors are problem+json (RFC 9457). There is no paging: the number of estimates is the
number of CSV rows, and the schemas give the limits of lists and tables.
"""

ERRORS: dict[type[SurveyError], str] = {
    UnauthorizedError: "There is no token, or it is not valid",
    ForbiddenError: "The token lacks the scope named in the detail",
    NotFoundError: "It does not exist, or the researcher of the token may not read it",
    NotAcceptableError: "The address does not offer this media type",
    QueryError: "A query parameter is invalid; the detail says what would be right",
    StoreBusyError: "The database is busy; try again after Retry-After seconds",
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
    operations: Mapping[str, Operation], parameters: Mapping[str, Parameter], public_url: str
) -> bytes:
    """Return the document as JSON; both tables are keyed by name."""
    scopes = "; ".join(f"{scope}: {meaning}" for scope, meaning in SCOPES.items())
    contents = {
        "openapi": OPENAPI_VERSION,
        "info": {"title": "Survey", "version": __version__, "description": ABOUT},
        "servers": [{"url": public_url.rstrip("/")}],
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
