"""The JSON objects of the API, as frozen classes whose fields are the keys, and their schemas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from survey.estimator import Disclosure
from survey.results.crosstab.compute import MAX_CELLS
from survey.results.crosstab.table import CrosstabResult, CrosstabRow
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import EstimateRow
from survey.results.request import IntervalOptions
from survey.store import PublishedSurvey, Release, State

MAX_LISTED = 500
"""Surveys in one list; others are still available at their own addresses."""


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

    total    number of surveys; if more than are listed, use the address of each survey
    surveys  newest version of each survey, sorted by slug
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
