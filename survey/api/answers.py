"""What programs get as JSON: frozen classes whose fields are the keys, and the schemas of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from survey.estimator import Disclosure
from survey.results.crosstab.compute import MOST_ROWS, CrossedQuestions, CrossedRow
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import Row
from survey.results.options import Wanted
from survey.store import PublishedSurvey, Release, State

MOST_LISTED = 500
"""Surveys in one list; an instance with more has them at their own addresses still."""


@dataclass(frozen=True)
class Version:
    """A published version of a survey.

    changed        UTC day of its last change of state
    opens, closes  first and last UTC day on which it takes reports; null without such a limit
    most           reports that it takes at most; 0 for any number
    sha256         SHA-256 of the definition, in hex
    epsilon        of everything one respondent sends, rounded up
    languages      those it is written in, its own first
    archived       whether researchers' lists leave the survey out
    release        number of the newest release: as long as it stays, estimates stay
    released       reports that have been released; estimates are made from these alone
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
    languages: tuple[str, ...]
    archived: bool
    release: int
    released: int


@dataclass(frozen=True)
class Surveys:
    """The surveys that the token's researcher may read.

    total    how many there are; where it is more than are listed, the others have their addresses
    surveys  by slug, each by its newest version
    """

    total: int
    surveys: Annotated[tuple[Version, ...], Field(max_length=MOST_LISTED)]


@dataclass(frozen=True)
class Versions:
    """All versions of a survey, the newest first."""

    slug: str
    versions: tuple[Version, ...]


@dataclass(frozen=True)
class Estimates:
    """All rows of a version after a release: those of the dashboard's CSV, under its names.

    sha256    of the definition that the reports answer to
    release   number of the release that was read
    released  reports that had been released by then
    wanted    the way of reading that was asked for
    """

    slug: str
    version: int
    sha256: str
    release: int
    released: int
    wanted: Wanted
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class PearsonTest:
    """Whether the reports to two questions are related at all.

    small_expected  whether expected counts are too small for the p-value to be trusted
    """

    statistic: float
    df: int
    p_value: float
    small_expected: bool


@dataclass(frozen=True)
class Crosstab:
    """Two questions crossed: a row per cell, shown or hidden whole.

    n      released reports that hold both
    shown  show, caution or hide; then no cell has numbers
    test   null where there is none: hidden tables, reports of sets, reports that are all the same
    """

    slug: str
    version: int
    sha256: str
    n: int
    shown: Disclosure
    test: PearsonTest | None
    rows: Annotated[tuple[CrossedRow, ...], Field(max_length=MOST_ROWS)]


@dataclass(frozen=True)
class Problem:
    """A refusal (RFC 9457); `detail` says which value was wrong and what would be right."""

    type: str
    title: str
    status: int
    detail: str


def version_of(survey: PublishedSurvey, release: Release, *, archived: bool) -> Version:
    """What is said of a version without its reports."""
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
        languages=definition.languages,
        archived=archived,
        release=release.number,
        released=release.n,
    )


def estimates_of(result: SurveyResult) -> Estimates:
    """A result's rows, and what they are rows of."""
    survey = result.survey
    return Estimates(
        survey.slug,
        survey.version,
        survey.sha256,
        result.release,
        result.n,
        result.wanted,
        tuple(result.rows),
    )


def crosstab_of(found: CrossedQuestions) -> Crosstab:
    """A table's rows, and the test of its reports."""
    survey, test = found.survey, found.test
    return Crosstab(
        survey.slug,
        survey.version,
        survey.sha256,
        found.table.n,
        found.shown,
        PearsonTest(test.statistic, test.df, test.p_value, test.small_expected) if test else None,
        tuple(found.rows),
    )


ADAPTERS: Mapping[type, TypeAdapter[Any]] = {
    kind: TypeAdapter(kind) for kind in (Surveys, Versions, Version, Estimates, Crosstab, Problem)
}
"""What writes each answer, and knows its schema."""


def to_json(answer: object) -> bytes:
    """An answer as UTF-8; numbers that are none are null."""
    return ADAPTERS[type(answer)].dump_json(answer)


class _Plain(GenerateJsonSchema):
    """Schemas without a title for every key: the key is one."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  pydantic's
        return False


def schemas() -> dict[str, Any]:
    """The JSON Schema of each answer and of all within it, by name; other keys are none of it."""
    _, found = TypeAdapter.json_schemas(
        [(kind.__name__, "serialization", adapter) for kind, adapter in ADAPTERS.items()],
        ref_template="#/components/schemas/{model}",
        schema_generator=_Plain,
    )
    return {name: _closed(schema) for name, schema in found["$defs"].items()}


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An object's schema that allows no other key; examples for Python are left out."""
    description = schema["description"].partition(">>>")[0].rstrip()
    return {**schema, "description": description, "additionalProperties": False}
