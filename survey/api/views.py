"""The addresses for programs: surveys, definitions, estimates, cross-tabs, files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import groupby
from operator import attrgetter

from flask import Blueprint, Response, request

from survey.api.access import Gate
from survey.api.answers import (
    MOST_LISTED,
    Surveys,
    Version,
    Versions,
    crosstab_of,
    estimates_of,
    to_json,
    version_of,
)
from survey.api.openapi import document
from survey.api.operations import CSV, OPERATIONS, PREFIX
from survey.api.queries import checked_query, questions_of
from survey.api.representations import chosen, computed, tag_of, whole
from survey.errors import ChannelError, CountsError, QueryError
from survey.results.crosstab.compute import CrossedQuestions, CrossedRow, crossed
from survey.results.estimates.result import Results
from survey.results.exports.csv import to_csv
from survey.results.exports.microdata import write_microdata
from survey.results.exports.workbook import crossed_workbook, workbook
from survey.results.options import Wanted, wanted_from
from survey.store import PublishedSurvey, Store


def blueprint(store: Store, results: Results, gate: Gate, public_url: str) -> Blueprint:
    """The routes of the table, each to the view of its name."""
    routes = Blueprint("api", __name__, url_prefix=PREFIX)
    pages = _Pages(store, results, gate, public_url)
    routes.before_request(gate.check)
    for name, operation in OPERATIONS.items():
        # Without OPTIONS: other sites' pages ask by it whether they may read, and they never may.
        routes.add_url_rule(
            operation.path, name, getattr(pages, name), provide_automatic_options=False
        )
    return routes


class _Pages:
    """A view for every endpoint of the table; what each takes and gives stands there."""

    def __init__(self, store: Store, results: Results, gate: Gate, public_url: str) -> None:
        self._store, self._results, self._gate = store, results, gate
        self._public_url = public_url

    def description(self) -> Response:
        """The OpenAPI document."""
        kind, _ = _asked("description")
        return whole(document(self._public_url), kind)

    def surveys(self) -> Response:
        """The newest version of each survey."""
        kind, _ = _asked("surveys")
        groups = groupby(self._gate.surveys(), key=attrgetter("slug"))
        newest = [next(versions) for _, versions in groups]
        listed = self._described(newest[:MOST_LISTED])
        return whole(to_json(Surveys(len(newest), listed)), kind)

    def survey(self, slug: str) -> Response:
        """All versions of one survey."""
        kind, _ = _asked("survey")
        return whole(to_json(Versions(slug, self._described(self._gate.versions(slug)))), kind)

    def version(self, slug: str, version: int) -> Response:
        """One version."""
        kind, _ = _asked("version")
        (described,) = self._described([self._gate.version(slug, version)])
        return whole(to_json(described), kind)

    def definition(self, slug: str, version: int) -> Response:
        """The bytes that every device reads."""
        kind, _ = _asked("definition")
        survey = self._gate.version(slug, version)
        return whole(survey.canonical, kind, survey.sha256)

    def estimates(self, slug: str, version: int) -> Response:
        """The rows of the dashboard."""
        kind, query = _asked("estimates")
        survey, wanted = self._gate.version(slug, version), wanted_from(query)

        def body() -> bytes | str:
            result = self._results.of(survey, wanted)
            return to_csv(result.rows) if kind == CSV else to_json(estimates_of(result))

        return computed(self._tag(survey, kind, wanted), kind, body)

    def crosstab(self, slug: str, version: int) -> Response:
        """Two questions crossed."""
        kind, query = _asked("crosstab")
        survey, wanted = self._gate.version(slug, version), wanted_from(query)
        names = questions_of(query, survey)

        def body() -> bytes | str:
            found = self._crossed(survey, names, wanted)
            return to_csv(found.rows, CrossedRow) if kind == CSV else to_json(crosstab_of(found))

        return computed(self._tag(survey, kind, *names, wanted), kind, body)

    def estimates_xlsx(self, slug: str, version: int) -> Response:
        """The workbook of the dashboard."""
        kind, query = _asked("estimates_xlsx")
        survey, wanted = self._gate.version(slug, version), wanted_from(query)
        return computed(
            self._tag(survey, kind, wanted),
            kind,
            lambda: workbook(self._results.of(survey, wanted)),
        )

    def crosstab_xlsx(self, slug: str, version: int) -> Response:
        """The workbook of a cross-tab."""
        kind, query = _asked("crosstab_xlsx")
        survey, wanted = self._gate.version(slug, version), wanted_from(query)
        names = questions_of(query, survey)
        return computed(
            self._tag(survey, kind, *names, wanted),
            kind,
            lambda: crossed_workbook(self._crossed(survey, names, wanted)),
        )

    def reports_zip(self, slug: str, version: int) -> Response:
        """The released reports, of which each download is in the survey's log."""
        kind, _ = _asked("reports_zip")
        survey = self._gate.editable(slug, version)

        def body() -> bytes:
            file = BytesIO()
            n = write_microdata(file, self._store, survey)
            self._gate.log("downloaded reports", slug, f"version {version}, {n} by a program")
            return file.getvalue()

        return computed(self._tag(survey, kind), kind, body)

    def _described(self, surveys: Iterable[PublishedSurvey]) -> tuple[Version, ...]:
        archived = self._store.archived()
        return tuple(
            version_of(
                survey, self._store.newest_release(survey.key), archived=survey.slug in archived
            )
            for survey in surveys
        )

    def _crossed(
        self, survey: PublishedSurvey, names: Sequence[str], wanted: Wanted
    ) -> CrossedQuestions:
        try:
            return crossed(self._store, survey, names, wanted)
        except (ChannelError, CountsError) as error:
            raise QueryError(str(error)) from None

    def _tag(self, survey: PublishedSurvey, *reading: object) -> str:
        # The number of the release alone: what a reader has already is not counted again.
        return tag_of(survey, self._store.newest_release(survey.key).number, *reading)


def _asked(name: str) -> tuple[str, dict[str, str]]:
    """The media type and the query of a request, as its address takes them."""
    operation = OPERATIONS[name]
    return chosen(tuple(operation.answers)), checked_query(request.args, operation.query)
