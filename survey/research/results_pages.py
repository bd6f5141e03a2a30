"""The results of one version of a survey: the dashboard, its figures and its files."""

from __future__ import annotations

from typing import Any

from flask import Response, redirect, render_template, request, url_for

from survey.collect.invitations import respondent_link
from survey.collect.simulation import true_values
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.label import labels, linked, odds_in_words
from survey.research.access import Route
from survey.research.downloads import CSV, download, file_name
from survey.research.reading import Page, choices, version_choices
from survey.research.workspace import Workspace
from survey.results.charts import has_numbers, is_clipped, size
from survey.results.estimates.result import SurveyResult, asks, place_of
from survey.results.exports.csv import to_csv
from survey.results.exports.figures import FORMATS, figure_file, page_chart_svg
from survey.results.exports.workbook import XLSX, workbook
from survey.results.options import query_of, wanted_from
from survey.results.wording import exact
from survey.store import PublishedSurvey, draft_key, find_survey, team_slug


def result_routes(workspace: Workspace) -> list[Route]:
    """Declare the pages of a survey's results."""
    pages = _Pages(workspace)
    version = "/surveys/<slug>/<int:version>"
    charts, figures = f"{version}/charts", f"{version}/figures"
    return [
        Route("GET", "/surveys/<slug>", "viewer", pages.newest),
        Route("GET", version, "viewer", pages.dashboard),
        Route("GET", f"{version}/estimates.csv", "viewer", pages.estimates),
        Route("GET", f"{version}/estimates.xlsx", "viewer", pages.estimates_xlsx),
        Route("GET", f"{version}/questions/<question>", "viewer", pages.question),
        Route("GET", f"{charts}/<question>-<part>-<look>.svg", "viewer", pages.chart),
        Route("GET", f"{figures}/<question>-<part>.<kind>", "viewer", pages.figure),
    ]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._results = workspace.store, workspace.results
        self._settings = workspace.settings

    def newest(self, slug: str) -> Any:
        """The dashboard of the newest version, read as the link says."""
        version, wanted = find_survey(self._store, slug).version, wanted_from(request.args)
        said: dict[str, Any] = {**query_of(wanted)}
        return redirect(url_for("research.dashboard", slug=slug, version=version, **said))

    def dashboard(self, slug: str, version: int) -> str:
        """All questions of a version."""
        result = self._of(slug, version)
        page = Page("research.dashboard", slug, version, {})
        said = self._said(result, page, self._store.versions(slug))
        return render_template(
            "research/dashboard.html",
            link=respondent_link(result.survey, self._settings.public_url),
            total_odds=odds_in_words(result.survey.definition.ratio),
            little_protected=result.survey.definition.epsilon > self._settings.caps.warning,
            questions=result.questions,
            **said,
        )

    def question(self, slug: str, version: int, question: str) -> str:
        """One question with everything about it."""
        result = self._of(slug, version)
        page = Page("research.question", slug, version, {"question": question})
        asking = [each for each in self._store.versions(slug) if asks(each, question)]
        return render_template(
            "research/question.html",
            question=result.question(question),
            place=place_of(result.survey, question),
            **self._said(result, page, asking),
        )

    def chart(self, slug: str, version: int, question: str, part: str, look: str) -> Response:
        """One chart as the page shows it."""
        drawn = page_chart_svg(self._of(slug, version).question(question), part, look)
        return Response(drawn, content_type=FORMATS["svg"])

    def estimates(self, slug: str, version: int) -> Response:
        """The rows of the dashboard as CSV."""
        result = self._of(slug, version)
        return download(to_csv(result.rows), CSV, file_name(result.survey, "estimates.csv"))

    def estimates_xlsx(self, slug: str, version: int) -> Response:
        """The same with codebook and methods, for a spreadsheet."""
        result = self._of(slug, version)
        return download(workbook(result), XLSX, file_name(result.survey, "estimates.xlsx"))

    def figure(self, slug: str, version: int, question: str, part: str, kind: str) -> Response:
        """One chart of the dashboard as a file."""
        result = self._of(slug, version)
        drawn = figure_file(result.survey, result.question(question), part, kind)
        name = file_name(result.survey, f"{question}-{part}.{kind}")
        return download(drawn, FORMATS[kind], name)

    def _of(self, slug: str, version: int) -> SurveyResult:
        return self._results.of(find_survey(self._store, slug, version), wanted_from(request.args))

    def _said(
        self, result: SurveyResult, page: Page, versions: list[PublishedSurvey]
    ) -> dict[str, Any]:
        """What is said above and around the figures of every page of results."""
        definition = result.survey.definition
        return {
            "result": result,
            "survey": result.survey,
            "definition": definition,
            "release_minimum": self._settings.release_minimum,
            "query": query_of(result.wanted),
            "choices": choices(page, result.wanted),
            "versions": version_choices(page, result.wanted, versions),
            "closed": result.survey.state != "open",
            "labels": labels(definition),
            "linked": linked(definition),
            **self._truths(result.survey),
            "chart_size": size,
            "is_clipped": is_clipped,
            "has_numbers": has_numbers,
            "exact": exact,
        }

    def _truths(self, survey: PublishedSurvey) -> dict[str, Any]:
        """What is true among the simulated respondents of a try-out, and whether that is known."""
        draft = self._store.draft(draft_key(team_slug(survey.slug))) if survey.is_test_run else None
        if draft is None:
            return {"truths": {}, "truths_differed": False}
        typed = DraftContent.from_json(draft.content).typed_shares
        is_known = typed.simulated and not typed.differed
        truths = true_values(survey.definition, typed.shares) if is_known else {}
        return {"truths": truths, "truths_differed": typed.differed}
