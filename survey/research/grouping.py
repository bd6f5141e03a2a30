"""One question in the groups that are openly known: by link, by time of release, by version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flask import Response, render_template, request

from survey.collect.release import utc_today
from survey.errors import DesignError, NotFoundError
from survey.research.access import Route, Section
from survey.research.downloads import CSV, download, file_name
from survey.research.reading import Page, choices, version_choices
from survey.research.workspace import Workspace
from survey.results.charts import LOOKS, has_numbers
from survey.results.estimates.result import Split, SurveyResult, asks
from survey.results.exports.csv import to_csv
from survey.results.exports.figures import FORMATS, chart_file
from survey.results.grouped import KEPT, MONTH, WEEK, by_bucket, by_month, by_stratum, by_week
from survey.results.options import Wanted, query_of, wanted_from
from survey.results.trend.chart import compared_specification, compared_svg
from survey.results.trend.compute import (
    PARTS,
    Compared,
    Over,
    compared,
    over_links,
    over_time,
    over_versions,
    part_of,
    parts_of,
)
from survey.store import PublishedSurvey, find_survey

OVER: dict[str, Over] = {"links": "links", "trend": "time", "versions": "versions"}
"""The pages, by the end of their addresses, and what tells their groups apart."""

PER: dict[str, Split] = {KEPT: by_bucket, WEEK: by_week, MONTH: by_month}
"""Lengths of time that a link can ask for."""

PER_NAMES = {
    "day": {KEPT: "day", WEEK: "week", MONTH: "month"},
    "week": {KEPT: "week", MONTH: "month"},
}
"""Lengths of time that are offered, by what the survey keeps."""

MOST_TIMES = 60
"""Times up to which a length is chosen unasked: more are slow to estimate and hard to read."""


def sections(workspace: Workspace) -> list[Section]:
    """The pages of groups; a link reproduces its view."""
    pages = _Pages(workspace)
    routes = [
        Route("GET", "/links", "viewer", pages.links),
        Route("GET", "/trend", "viewer", pages.trend),
        Route("GET", "/versions", "viewer", pages.versions),
        Route("GET", "/<over>.csv", "viewer", pages.as_csv),
        Route("GET", "/<over>-chart-<look>.svg", "viewer", pages.chart),
        Route("GET", "/<over>-figure.<kind>", "viewer", pages.figure),
    ]
    return [Section("grouping", "/research/surveys/<slug>/<int:version>", routes)]


class _Asked(NamedTuple):
    """What a link asks for, and what was found; no groups where there is nothing to tell apart."""

    survey: PublishedSurvey
    wanted: Wanted
    every: SurveyResult
    question: str
    per: str
    found: Compared | None
    said: list[str]

    @property
    def query(self) -> dict[str, str]:
        """The query that reproduces it, but for the way of reading."""
        part = self.found.part if self.found else ""
        named = {"question": self.question, "part": part, "per": self.per}
        return {name: value for name, value in named.items() if value}

    @property
    def shown(self) -> Compared:
        """The groups; NotFoundError where there are none."""
        if self.found is None:
            raise NotFoundError(f"{self.survey.slug} has no groups of this kind")
        return self.found


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._results = workspace.store, workspace.results

    def links(self, slug: str, version: int) -> str:
        """The shares of those who came by each link."""
        return self._page(slug, version, "links")

    def trend(self, slug: str, version: int) -> str:
        """The shares of each day, week or month of release."""
        return self._page(slug, version, "trend")

    def versions(self, slug: str, version: int) -> str:
        """The shares of each version that asked the same."""
        return self._page(slug, version, "versions")

    def as_csv(self, slug: str, version: int, over: str) -> Response:
        """The rows of the table."""
        asked = self._asked(slug, version, over)
        name = file_name(asked.survey, f"{asked.question}-{over}.csv")
        return download(to_csv(asked.shown.rows), CSV, name)

    def chart(self, slug: str, version: int, over: str, look: str) -> Response:
        """The chart as the page shows it."""
        if look not in LOOKS:
            raise NotFoundError(f"there is no chart in {look}")
        found = _charted(self._asked(slug, version, over))
        return Response(compared_svg(found, look), content_type=FORMATS["svg"])

    def figure(self, slug: str, version: int, over: str, kind: str) -> Response:
        """The chart as a file."""
        if kind not in FORMATS:
            raise NotFoundError(f"there is no figure as {kind}")
        asked = self._asked(slug, version, over)
        drawn = chart_file(asked.survey, compared_specification(_charted(asked)), kind)
        name = file_name(asked.survey, f"{asked.question}-{over}.{kind}")
        return download(drawn, FORMATS[kind], name)

    def _page(self, slug: str, version: int, over: str) -> str:
        asked = self._asked(slug, version, over)
        page = Page(f"grouping.{over}", slug, version, asked.query)
        versions = self._store.versions(slug)
        definition = asked.survey.definition
        return render_template(
            "research/groups.html",
            survey=asked.survey,
            definition=definition,
            result=asked.every,
            over=over,
            asked=asked,
            found=asked.found,
            is_drawn=asked.found is not None and has_numbers(asked.found.rows),
            parts={name: PARTS[name] for name in parts_of(asked.every.question(asked.question))},
            lengths=PER_NAMES.get(definition.bucket, {}),
            at={"slug": slug, "version": version},
            query=query_of(asked.wanted),
            view={**asked.query, **query_of(asked.wanted)},
            choices=choices(page, asked.wanted),
            versions=version_choices(page, asked.wanted, _asking(versions, asked.question)),
        )

    def _asked(self, slug: str, version: int, over: str) -> _Asked:
        if over not in OVER:
            raise NotFoundError(f"there is no page {over}; there are {', '.join(OVER)}")
        survey, wanted = find_survey(self._store, slug, version), wanted_from(request.args)
        every = self._results.of(survey, wanted)
        question = request.args.get("question") or survey.definition.questions[0].id
        per = self._per(survey, wanted) if over == "trend" else ""
        part = request.args.get("part", "")
        if part:
            part_of(every.question(question), part)
        named, said = self._groups(every, over, question, per)
        found = compared(OVER[over], named, question, part, utc_today()) if named else None
        return _Asked(survey, wanted, every, question, per, found, said)

    def _per(self, survey: PublishedSurvey, wanted: Wanted) -> str:
        """The length of time that the link asks for, or else the shortest without too many."""
        asked = request.args.get("per", "")
        if asked and asked not in PER:
            raise DesignError(f"per = {asked[:40]!r} must be one of {', '.join(PER)}")
        if asked:
            return asked
        for length in PER_NAMES.get(survey.definition.bucket, (KEPT,)):
            if len(self._results.by(survey, PER[length], wanted)) <= MOST_TIMES:
                return length
        return MONTH

    def _groups(
        self, every: SurveyResult, over: str, question: str, per: str
    ) -> tuple[Sequence[tuple[str, SurveyResult]], list[str]]:
        """The groups by name, and what is to be said of them."""
        survey, wanted = every.survey, every.wanted
        if over == "links":
            return over_links(every, self._results.by(survey, by_stratum, wanted)), []
        if over == "trend":
            return over_time(self._results.by(survey, PER[per], wanted)), []
        others = [each for each in self._store.versions(survey.slug) if each.key != survey.key]
        return over_versions(
            [every, *(self._results.of(other, wanted) for other in others)], question
        )


def _charted(asked: _Asked) -> Compared:
    """The groups whose chart is asked for; there is none where all are hidden."""
    if not has_numbers(asked.shown.rows):
        raise NotFoundError(f"the question {asked.question} shows no figure of groups")
    return asked.shown


def _asking(versions: Sequence[PublishedSurvey], question: str) -> list[PublishedSurvey]:
    return [survey for survey in versions if asks(survey, question)]
