"""Every operation of the API in one table: its address, its scope, its parameters and its answers.

The routes, the check of tokens, the parsing of queries and the OpenAPI document are made from it.
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
from survey.results.crosstab.compute import CrossedRow
from survey.results.estimates.table import Row
from survey.results.exports.microdata import ZIP
from survey.results.exports.workbook import XLSX
from survey.results.options import (
    LEAST_LEVEL,
    MOST_LEVEL,
    OFFERED,
    USUAL_LEVEL,
    YES_NO,
)
from survey.results.variables import items_of
from survey.store import PublishedSurvey

LONGEST_SHOWN = 40
"""Characters of a wrong value or key that a refusal repeats."""


@dataclass(frozen=True)
class Parameter:
    """A key of a query: what it means, and the JSON Schema of its values."""

    meaning: str
    schema: Mapping[str, Any]
    required: bool = False


QUESTION: Mapping[str, Any] = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$", "maxLength": 60}

PARAMETERS: Mapping[str, Parameter] = {
    "level": Parameter(
        "How often an interval covers, as a decimal number",
        {
            "type": "number",
            "minimum": LEAST_LEVEL,
            "maximum": MOST_LEVEL,
            "default": USUAL_LEVEL,
        },
    ),
    "interval": Parameter(
        f"Of shares that have a choice; only {DEFAULT_INTERVAL} with the target respondents",
        {"type": "string", "enum": list(OFFERED), "default": DEFAULT_INTERVAL},
    ),
    "simultaneous": Parameter(
        "1: all shares of a question are covered at once",
        {"type": "string", "enum": list(YES_NO), "default": "0"},
    ),
    "target": Parameter(
        "Shares of the population, or of these respondents alone, without the sampling",
        {"type": "string", "enum": list(TARGETS), "default": TARGETS[0]},
    ),
    "first": Parameter("The id of the question in the rows", QUESTION, required=True),
    "second": Parameter(
        "The id of the question in the columns, another one", QUESTION, required=True
    ),
}

NOTHING: tuple[str, ...] = ()
ESTIMATES = ("level", "interval", "simultaneous", "target")
CROSSTAB = ("first", "second", "level")


def checked_query(asked: MultiDict[str, str], names: Sequence[str]) -> dict[str, str]:
    """What was asked, of the keys that an address takes.

    Raises QueryError for another key, one that stands twice, or one that is missing.
    """
    for name in asked:
        if name not in names:
            takes = f"what can be asked is {', '.join(names)}" if names else "nothing can be asked"
            raise QueryError(f"{name[:LONGEST_SHOWN]!r} means nothing here; {takes}")
        if len(asked.getlist(name)) > 1:
            raise QueryError(f"{name} stands in the query more than once")
    for name in names:
        if PARAMETERS[name].required and not asked.get(name):
            raise QueryError(f"{name} is missing: {PARAMETERS[name].meaning.lower()}")
    return asked.to_dict()


def questions_of(query: Mapping[str, str], survey: PublishedSurvey) -> list[str]:
    """The ids of the two questions that a checked query names; QueryError for any other word."""
    known = [item.question.id for item in items_of(survey)]
    names = [query["first"], query["second"]]
    for name in names:
        if name not in known:
            raise QueryError(
                f"{name[:LONGEST_SHOWN]!r} is no question of {survey.slug}; "
                f"there are {', '.join(known)}"
            )
    return names


PREFIX = "/api/v1"
JSON, CSV = "application/json", "text/csv"


@dataclass(frozen=True)
class Operation:
    """One address, below `PREFIX`.

    scope    what a token must be good for (one of `SCOPES`); None where no token is needed
    answers  what is given as each media type, the usual one first: the class of a JSON answer or
             of a CSV's rows, `object` for any other
    query    names of what may be asked, all of `queries.PARAMETERS`
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
        "The surveys you may read, by slug, each by its newest version",
        {JSON: answers.Surveys},
    ),
    "survey": Operation(
        "/surveys/<slug>",
        "surveys",
        "All versions of a survey, the newest first",
        {JSON: answers.Versions},
    ),
    "version": Operation(VERSION, "surveys", "One version of a survey", {JSON: answers.Version}),
    "definition": Operation(
        f"{VERSION}/definition",
        "surveys",
        "The published definition, byte for byte; the SHA-256 of its bytes is the ETag",
        {JSON: object},
    ),
    "estimates": Operation(
        f"{VERSION}/estimates",
        "estimates",
        "The rows of the dashboard and its CSV",
        {JSON: answers.Estimates, CSV: Row},
        ESTIMATES,
    ),
    "crosstab": Operation(
        f"{VERSION}/crosstab",
        "estimates",
        "Joint shares of the answers to two questions",
        {JSON: answers.Crosstab, CSV: CrossedRow},
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
        "Joint shares, codebook and methods as a workbook",
        {XLSX: object},
        CROSSTAB,
    ),
    "reports_zip": Operation(
        f"{VERSION}/exports/reports.zip",
        "exports",
        "The released reports, randomized as they were sent, with their channels; for editors",
        {ZIP: object},
    ),
}
"""By the name of the endpoint, which is also that of its view."""
