"""The description of the API (OpenAPI 3.1), made from the tables that the addresses run on."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from survey.api.answers import Problem, schemas
from survey.api.operations import CSV, JSON, OPERATIONS, PARAMETERS, PREFIX, Operation
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

VERSION = "3.1.1"

ABOUT = """What surveys were published here, and what can be estimated from their released reports:
the rows of the dashboard and its CSV, read by programs. The server holds random answers only; see
`flag` of every row for what is suppressed, and the project's README for the columns.

Tokens are made under Account, Programs, on the researchers' pages, and read what their researcher
may read. Every answer has an ETag: sent back in If-None-Match it is answered with 304 as long as
nothing else was released. Refusals are problem+json (RFC 9457). Nothing is paged: estimates are as
many as the CSV has rows, and the limits of lists and tables are in the schemas.
"""

REFUSALS: dict[type[SurveyError], str] = {
    UnauthorizedError: "No token, or one that is not good any more",
    ForbiddenError: "The token lacks the scope that is named",
    NotFoundError: "There is none, or your researcher may not read it",
    NotAcceptableError: "Not a media type of this address",
    QueryError: "A key or value of the query that is out of range; the detail says what is right",
    StoreBusyError: "The database is busy; come again after Retry-After seconds",
}
"""What each refusal of the API means; its status is the one of the table of errors."""

PATHS: dict[str, dict[str, Any]] = {
    "slug": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": 60},
    "version": {"type": "integer", "minimum": 1},
}


@cache
def document(public_url: str) -> bytes:
    """The document as JSON."""
    made = {
        "openapi": VERSION,
        "info": {"title": "Survey", "version": __version__, "description": ABOUT},
        "servers": [{"url": public_url.rstrip("/")}],
        "paths": {
            _path(operation): {"get": _operation(name, operation)}
            for name, operation in OPERATIONS.items()
        },
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": _scopes()}
            },
        },
    }
    return json.dumps(made, ensure_ascii=False).encode("utf-8")


def _path(operation: Operation) -> str:
    return PREFIX + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", operation.path)


def _scopes() -> str:
    return "; ".join(f"{scope}: {meaning}" for scope, meaning in SCOPES.items())


def _operation(name: str, operation: Operation) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": operation.summary,
        "parameters": _parameters(operation),
        "responses": {
            "200": _answer(operation),
            "304": {"description": "Nothing changed since the answer with this ETag"},
            **dict(_refusal(error, REFUSALS[error]) for error in _refusals(operation)),
        },
        "security": [{"token": [operation.scope]}] if operation.scope else [],
    }


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    within = [
        {"name": name, "in": "path", "required": True, "schema": PATHS[name]}
        for name in re.findall(r"<(?:\w+:)?(\w+)>", operation.path)
    ]
    asked = [
        {
            "name": name,
            "in": "query",
            "required": PARAMETERS[name].required,
            "description": PARAMETERS[name].meaning,
            "schema": PARAMETERS[name].schema,
        }
        for name in operation.query
    ]
    return [*within, *asked]


def _answer(operation: Operation) -> dict[str, Any]:
    return {
        "description": operation.summary,
        "headers": {
            "ETag": {"description": "The tag of this answer", "schema": {"type": "string"}}
        },
        "content": {kind: {"schema": _schema(kind, of)} for kind, of in operation.answers.items()},
    }


def _schema(media_type: str, of: type) -> dict[str, Any]:
    """Of JSON its class; of a CSV its columns; of other files nothing."""
    if media_type == CSV:
        names = ", ".join(column_names(of))
        return {"type": "string", "description": f"A header and a line per row: {names}"}
    if media_type != JSON:
        return {}
    return {"type": "object"} if of is object else {"$ref": f"#/components/schemas/{of.__name__}"}


def _refusals(operation: Operation) -> list[type[SurveyError]]:
    """What may be refused at an address."""
    never = {
        UnauthorizedError: operation.scope is None,
        ForbiddenError: operation.scope is None,
        NotFoundError: "<" not in operation.path,
        StoreBusyError: operation.scope is None,
    }
    return [error for error in REFUSALS if not never.get(error)]


def _refusal(error: type[SurveyError], meaning: str) -> tuple[str, dict[str, Any]]:
    schema = {"$ref": f"#/components/schemas/{Problem.__name__}"}
    content = {"application/problem+json": {"schema": schema}}
    return str(int(STATUS[error])), {"description": meaning, "content": content}
