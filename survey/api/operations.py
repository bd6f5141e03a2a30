"""The operations of the API in one table: path, scope, parameters and media types of each.

Routes, access control, query parsing and the OpenAPI document are derived from this table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from werkzeug.datastructures import MultiDict

from survey.api import answers
from survey.errors import QueryError
from survey.estimator.core.intervals import DEFAULT_INTERVAL
from survey.estimator.shares.binomial import TARGETS
from survey.results.crosstab.table import CrosstabRow
from survey.results.estimates.table import EstimateRow
from survey.results.exports.microdata import ZIP
from survey.results.exports.xlsx import XLSX
from survey.results.joint_counts import list_variables
from survey.results.options import (
    DEFAULT_LEVEL,
    INTERVAL_CHOICES,
    MAX_LEVEL,
    MIN_LEVEL,
    YES_NO,
)
from survey.store import PublishedSurvey

MAX_QUOTED = 40
"""Characters of a wrong value or name that an error message repeats."""


@dataclass(frozen=True)
class Parameter:
    """A query parameter: its meaning, and the JSON Schema of its values."""

    meaning: str
    schema: Mapping[str, Any]
    required: bool = False


QUESTION: Mapping[str, Any] = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$", "maxLength": 60}

PARAMETERS: Mapping[str, Parameter] = {
    "level": Parameter(
        "Confidence level of each interval, as a decimal number",
        {
            "type": "number",
            "minimum": MIN_LEVEL,
            "maximum": MAX_LEVEL,
            "default": DEFAULT_LEVEL,
        },
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
    "first": Parameter("Id of the question in the rows", QUESTION, required=True),
    "second": Parameter(
        "Id of the question in the columns, different from the first",
        QUESTION,
        required=True,
    ),
}

NOTHING: tuple[str, ...] = ()
ESTIMATES = ("level", "interval", "simultaneous", "target")
CROSSTAB = ("first", "second", "level")


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


PREFIX = "/api/v1"
JSON, CSV = "application/json", "text/csv"


@dataclass(frozen=True)
class Operation:
    """An operation of the API, at a path below `PREFIX`.

    scope    the scope that a token must have (a key of `SCOPES`); None if no token is required
    answers  media types, the default first, with the class of the JSON object or of the CSV rows;
             `object` for other content
    query    names of the query parameters (keys of `PARAMETERS`)
    """

    path: str
    scope: str | None
    summary: str
    answers: Mapping[str, type]
    query: tuple[str, ...] = NOTHING


VERSION = "/surveys/<slug>/versions/<int:version>"

OPERATIONS: Mapping[str, Operation] = {
    "description": Operation("/openapi.json", None, "This description", {JSON: object}),
    "surveys": Operation(
        "/surveys",
        "surveys",
        "The newest version of each survey that you may read, sorted by slug",
        {JSON: answers.Surveys},
    ),
    "survey": Operation(
        "/surveys/<slug>",
        "surveys",
        "All versions of a survey, newest first",
        {JSON: answers.Versions},
    ),
    "version": Operation(VERSION, "surveys", "One version of a survey", {JSON: answers.Version}),
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
        {JSON: answers.Estimates, CSV: EstimateRow},
        ESTIMATES,
    ),
    "crosstab": Operation(
        f"{VERSION}/crosstab",
        "estimates",
        "Cross-tabulation of two questions: joint shares",
        {JSON: answers.Crosstab, CSV: CrosstabRow},
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
