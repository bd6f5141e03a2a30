"""Two questions of a survey beside each other: the table, the test, and the words to write."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, render_template, request

from survey.errors import ChannelError, CountsError
from survey.research.downloads import CSV, download
from survey.research.workspace import Workspace
from survey.results.crossed import CrossedQuestions, CrossedRow, crossed
from survey.results.crossed_words import by_row, caveats, to_write
from survey.results.export import to_csv
from survey.results.wanted import USUAL_LEVELS, Wanted, wanted_from
from survey.store import PublishedSurvey, find_survey


def blueprints(workspace: Workspace) -> list[Blueprint]:
    """The routes of cross-tabs; a link reproduces its view."""
    routes = Blueprint("exploring", __name__, url_prefix="/research/surveys/<slug>/explore")
    pages = _Pages(workspace)
    routes.add_url_rule("", view_func=pages.crosstab)
    routes.add_url_rule("/crosstab.csv", view_func=pages.as_csv)
    return [routes]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store = workspace.store

    def crosstab(self, slug: str) -> Any:
        """Choose two questions, and see them crossed."""
        survey, wanted = self._asked(slug)
        names = [request.args.get(name, "") for name in ("first", "second")]
        found, refusal = None, ""
        if all(names):
            try:
                found = crossed(self._store, survey, names, wanted)
            except (CountsError, ChannelError) as error:
                refusal = str(error)
        page = render_template(
            "research/explore.html",
            survey=survey,
            questions=survey.definition.questions,
            names=names,
            wanted=wanted,
            levels=USUAL_LEVELS,
            refusal=refusal,
            **_shown(found),
        )
        return page, 422 if refusal else 200

    def as_csv(self, slug: str) -> Response:
        """The same table, one row per cell."""
        survey, wanted = self._asked(slug)
        names = [request.args.get(name, "") for name in ("first", "second")]
        found = crossed(self._store, survey, names, wanted)
        file = f"{slug}-{survey.version}-{names[0]}-{names[1]}.csv"
        return download(to_csv(found.rows, CrossedRow), CSV, file)

    def _asked(self, slug: str) -> tuple[PublishedSurvey, Wanted]:
        version = request.args.get("version", "")
        survey = find_survey(self._store, slug, int(version) if version.isdecimal() else None)
        level = request.args.get("level", "")
        return survey, wanted_from({"level": level} if level else {})


def _shown(found: CrossedQuestions | None) -> dict[str, Any]:
    if found is None:
        return {"found": None}
    return {
        "found": found,
        "rows": by_row(found),
        "sentences": to_write(found),
        "caveats": caveats(found),
    }
