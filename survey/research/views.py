"""Researchers' pages: the list, publishing a definition, the dashboard and its CSV."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from flask import Blueprint, Response, redirect, render_template, request, url_for
from werkzeug.datastructures import FileStorage

from survey.collect.links import respondent_link
from survey.collect.publication import publish as publish_survey
from survey.errors import ConflictError, DefinitionError, NotFoundError
from survey.estimator.binomial import POPULATION, RESPONDENTS
from survey.estimator.intervals import DEFAULT_INTERVAL
from survey.mechanism.accounting import shown_epsilon
from survey.questionnaire.label import labels, odds_in_words
from survey.questionnaire.native import load
from survey.research.access import Gate
from survey.research.downloads import CSV, download
from survey.research.forms import PublishForm
from survey.research.log import Log
from survey.research.workspace import Workspace
from survey.results.charts import chart_svg, is_clipped, middle_svg, spread_svg
from survey.results.export import to_csv
from survey.results.figures import KINDS
from survey.results.figures import figure as figure_of
from survey.results.tables import Results, SurveyResult
from survey.results.wanted import USUAL_LEVELS, Wanted, query_of, wanted_from
from survey.results.wording import in_words, percent, row_label
from survey.results.workbook import workbook
from survey.settings import Settings
from survey.store import PublishedSurvey, Store, find_survey

SURVEY_PAGES = (
    ("research.newest", "Results", "viewer"),
    ("exploring.crosstab", "Explore", "viewer"),
    ("collecting.overview", "Collect", "editor"),
    ("team.members", "Team", "owner"),
    ("team.log_of", "Log", "owner"),
)
"""The pages of one survey, and the least role that opens each (as in `access.POLICY`)."""

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
STYLESHEET = Path(__file__).resolve().parent.parent / "static" / "research.css"


def blueprints(workspace: Workspace) -> list[Blueprint]:
    """The researchers' routes over one store."""
    store, gate, settings = workspace.store, workspace.gate, workspace.settings
    routes = Blueprint("research", __name__, url_prefix="/research")
    stylesheet = STYLESHEET.read_bytes()
    stylesheet_hash = hashlib.sha256(stylesheet).hexdigest()

    @routes.app_context_processor
    def words() -> dict[str, Any]:
        return {
            "research_css": url_for("research.asset", version=stylesheet_hash),
            "client_hash": workspace.client_hash,
            "percent": percent,
            "in_words": in_words,
            "row_label": row_label,
            "shown_epsilon": shown_epsilon,
            "moment": moment,
            "gate": gate,
            "survey_pages": SURVEY_PAGES,
            "figure_kinds": list(KINDS),
        }

    @routes.get("/assets/<version>/research.css")
    def asset(version: str) -> Response:
        if version != stylesheet_hash:
            raise NotFoundError("this file belongs to another version of the page")
        return Response(stylesheet, content_type="text/css; charset=utf-8")

    @routes.get("/")
    def surveys() -> str:
        found = [survey for survey in store.surveys() if gate.allows(survey.slug, "viewer")]
        return render_template(
            "research/surveys.html",
            surveys=[(survey, store.released(survey.key)) for survey in found],
        )

    _add_publishing(routes, store, settings, gate, workspace.log)
    _add_results(routes, store, workspace.results, settings)
    _add_figures(routes, store, workspace.results)
    _add_workbook(routes, store, workspace.results)
    return [routes]


def _add_publishing(
    routes: Blueprint, store: Store, settings: Settings, gate: Gate, log: Log
) -> None:
    @routes.route("/publish", methods=["GET", "POST"])
    def publish() -> Any:
        form = PublishForm()
        mistakes: list[tuple[str, str]] = []
        if form.validate_on_submit():
            try:
                survey = _publish(store, form.file.data, settings, gate)
                log.write("published", survey.slug, f"version {survey.version}")
                return redirect(url_for("research.newest", slug=survey.slug))
            except DefinitionError as error:
                mistakes = error.mistakes
            except ConflictError as error:
                mistakes = [("", str(error))]
        page = render_template("research/publish.html", form=form, mistakes=mistakes)
        return page, 422 if mistakes or form.errors else 200


def _add_results(routes: Blueprint, store: Store, results: Results, settings: Settings) -> None:
    @routes.get("/surveys/<slug>")
    def newest(slug: str) -> Any:
        version, wanted = find_survey(store, slug).version, wanted_from(request.args)
        said: dict[str, Any] = {**query_of(wanted)}
        return redirect(url_for("research.dashboard", slug=slug, version=version, **said))

    @routes.get("/surveys/<slug>/<int:version>")
    def dashboard(slug: str, version: int) -> str:
        result = results.of(find_survey(store, slug, version), wanted_from(request.args))
        return render_template("research/dashboard.html", **_dashboard(result, settings))

    @routes.get("/surveys/<slug>/<int:version>/estimates.csv")
    def estimates(slug: str, version: int) -> Response:
        result = results.of(find_survey(store, slug, version), wanted_from(request.args))
        return download(to_csv(result.rows), CSV, f"{slug}-{version}-estimates.csv")


def moment(seconds: int) -> str:
    """A moment since 1970 as people write it.

    >>> moment(0)
    '1970-01-01 00:00 UTC'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _add_figures(routes: Blueprint, store: Store, results: Results) -> None:
    @routes.get("/surveys/<slug>/<int:version>/figures/<question>-<part>.<kind>")
    def figure(slug: str, version: int, question: str, part: str, kind: str) -> Response:
        result = results.of(find_survey(store, slug, version), wanted_from(request.args))
        for one in result.questions:
            if one.question.id == question:
                name = f"{slug}-{version}-{question}-{part}.{kind}"
                return download(figure_of(one, part, kind), KINDS[kind], name)
        raise NotFoundError(f'{slug} has no question "{question}"')


def _add_workbook(routes: Blueprint, store: Store, results: Results) -> None:
    @routes.get("/surveys/<slug>/<int:version>/estimates.xlsx")
    def estimates_xlsx(slug: str, version: int) -> Response:
        result = results.of(find_survey(store, slug, version), wanted_from(request.args))
        return download(workbook(result), XLSX, f"{slug}-{version}-estimates.xlsx")


def _publish(store: Store, upload: FileStorage, settings: Settings, gate: Gate) -> PublishedSurvey:
    written = load(upload.read(), upload.filename or "", settings.caps)
    if store.versions(written.slug) and not gate.allows(written.slug, "editor"):
        raise ConflictError(
            f'the address "{written.slug}" is another survey\'s, which you do not edit; '
            "choose another slug"
        )
    today = datetime.now(UTC).date()
    return publish_survey(store, written, today, owner=gate.researcher().key)


def _dashboard(result: SurveyResult, settings: Settings) -> dict[str, Any]:
    definition = result.survey.definition
    return {
        "result": result,
        "survey": result.survey,
        "definition": definition,
        "link": respondent_link(result.survey, settings.public_url),
        "total_odds": odds_in_words(definition.ratio),
        "little_protected": definition.epsilon > settings.caps.warning,
        "release_minimum": settings.release_minimum,
        "query": query_of(result.wanted),
        "choices": _choices(result.wanted),
        "charts": {
            question.question.id: {
                "shares": chart_svg(question),
                "middle": middle_svg(question),
                "spread": spread_svg(question),
                "is_clipped": is_clipped((*question.shares, *question.spread)),
            }
            for question in result.questions
            if question.disclosure != "hide"
        },
        "closed": result.survey.state == "closed",
        "labels": labels(definition),
    }


class Choice(NamedTuple):
    """A link to another way of reading the same survey; `chosen` is the one that is shown."""

    label: str
    query: dict[str, str]
    chosen: bool


def _choices(wanted: Wanted) -> dict[str, list[Choice]]:
    """The links above the figures, by what they choose."""

    def choice(label: str, **changed: Any) -> Choice:
        other = replace(wanted, **changed)
        return Choice(label, query_of(other), other == wanted)

    return {
        "Intervals": [choice(f"{100 * level:g}%", level=level) for level in USUAL_LEVELS],
        "Covering": [
            choice("each share", simultaneous=False),
            choice("all at once", simultaneous=True),
        ],
        "Shares of": [
            choice("population", target=POPULATION),
            choice("respondents", target=RESPONDENTS, interval=DEFAULT_INTERVAL),
        ],
    }
