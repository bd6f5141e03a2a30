"""Every address for programs, in one table: what it gives, to whom, and what may be asked of it.

Routes, the check of tokens, the reading of queries and the OpenAPI document are made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from survey.api import answers
from survey.api.queries import CROSSTAB, ESTIMATES, NOTHING
from survey.results.crosstab.compute import CrossedRow
from survey.results.estimates.table import Row
from survey.results.exports.microdata import ZIP
from survey.results.exports.workbook import XLSX

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
