"""A survey on paper, and its methods: one page to print, the same as PDF, every formula behind."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from flask import Response, render_template, request, url_for

from survey.errors import NotFoundError
from survey.methods import interval_anchor, references, symbols, topics
from survey.research.access import Route, Section
from survey.research.downloads import download, file_name
from survey.research.paper import to_pdf
from survey.research.workspace import Workspace
from survey.results.charts import is_clipped
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import Row
from survey.results.exports.codebook import survey_facts
from survey.results.exports.figures import page_charts
from survey.results.exports.methods import (
    method_name,
    methods_statement,
    question_methods,
    sections_used,
    works_cited,
)
from survey.results.options import query_of, wanted_from
from survey.store import PublishedSurvey, find_survey

STYLESHEET = Path(__file__).resolve().parent.parent / "static" / "report.css"
PDF = "application/pdf"


def sections(workspace: Workspace) -> list[Section]:
    """The pages of reports and methods, and the template functions that link to them."""
    pages = _Pages(workspace)
    of_survey = "/surveys/<slug>/<int:version>"
    routes = [
        Route("GET", "/methods", "researcher", pages.methods),
        Route("GET", f"{of_survey}/methods", "viewer", pages.survey_methods),
        Route("GET", f"{of_survey}/report", "viewer", pages.report),
        Route("GET", f"{of_survey}/report.pdf", "viewer", pages.report_pdf),
        Route("GET", "/assets/<version>/report.css", "anybody", pages.stylesheet),
    ]
    section = Section("reporting", "/research", routes)
    section.app_context_processor(lambda: {"methods_url": methods_url, "method_anchor": anchor})
    return [section]


def methods_url(survey: PublishedSurvey, to: str, query: dict[str, str] | None = None) -> str:
    """Where a survey's methods page explains something."""
    at: dict[str, Any] = {"slug": survey.slug, "version": survey.version, **(query or {})}
    return url_for("reporting.survey_methods", _anchor=to, **at)


def anchor(rows: list[Row]) -> str:
    """What explains the intervals of rows that stand in one table."""
    method = method_name(rows)
    return interval_anchor(method) if method else "interval"


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._results = workspace.store, workspace.results
        self._client_hash = workspace.client_hash
        self._style = STYLESHEET.read_text(encoding="utf-8")
        self._style_hash = hashlib.sha256(self._style.encode("utf-8")).hexdigest()

    def methods(self) -> str:
        """All methods, of no survey."""
        return _methods_page()

    def survey_methods(self, slug: str, version: int) -> str:
        """The same, with what ran for one survey above."""
        result = self._result(slug, version)
        return _methods_page(
            survey=result.survey,
            result=result,
            methods=question_methods(result),
            query=query_of(result.wanted),
        )

    def report(self, slug: str, version: int) -> str:
        """One page to read and to print."""
        return self._report(self._result(slug, version), for_screen=True)

    def report_pdf(self, slug: str, version: int) -> Response:
        """The same on A4."""
        result = self._result(slug, version)
        page = self._report(result, for_screen=False)
        return download(to_pdf(page, self._style), PDF, file_name(result.survey, "report.pdf"))

    def _report(self, result: SurveyResult, *, for_screen: bool) -> str:
        record = [
            *survey_facts(result.survey, result.n),
            ("Release", f"{result.release}, read {_read(result)}"),
            ("Intervals", result.wanted.words),
            ("Page code", self._client_hash),
        ]
        return render_template(
            "research/report.html",
            for_screen=for_screen,
            report_css=url_for("reporting.stylesheet", version=self._style_hash),
            survey=result.survey,
            definition=result.survey.definition,
            result=result,
            query=query_of(result.wanted),
            closed=result.survey.state != "open",
            charts={one.question.id: page_charts(one) for one in result.questions},
            is_clipped=is_clipped,
            record=record,
            read=_read(result),
            statement=methods_statement(result),
            methods=question_methods(result),
            sections=sections_used(result),
            references=works_cited(result),
        )

    def stylesheet(self, version: str) -> Response:
        """The look of a report, on screen and on paper."""
        if version != self._style_hash:
            raise NotFoundError("this file belongs to another version of the page")
        return Response(self._style, content_type="text/css; charset=utf-8")

    def _result(self, slug: str, version: int) -> SurveyResult:
        return self._results.of(find_survey(self._store, slug, version), wanted_from(request.args))


def _methods_page(**of_survey: Any) -> str:
    return render_template(
        "research/methods.html",
        topics=topics(),
        symbols=symbols(),
        references=references(),
        **of_survey,
    )


def _read(result: SurveyResult) -> str:
    """When the release was read, which is when its rows were made."""
    return result.rows[0].generated_at.replace("T", " ").replace("Z", " UTC")
