"""Two questions of a survey beside each other: the table, the test, and the words to write."""

from __future__ import annotations

from typing import Any, cast

from flask import Response, request

from survey.errors import ChannelError, CountsError, DesignError
from survey.research.access import Route, Section
from survey.research.downloads import CSV, download, file_name
from survey.research.explore.asking import Asked, asked, page, refusing
from survey.research.workspace import Workspace
from survey.results.crosstab.compute import METHODS, CrossedQuestions, CrossedRow, Method, crossed
from survey.results.crosstab.sentences import by_row, caveats, to_write
from survey.results.exports.csv import to_csv
from survey.results.exports.workbook import XLSX, crossed_workbook
from survey.results.variables import items_of


def sections(workspace: Workspace) -> list[Section]:
    """The pages of cross-tabulations; a link reproduces its view."""
    pages = _Pages(workspace)
    routes = [
        Route("GET", "", "viewer", pages.crosstab),
        Route("GET", "/crosstab.csv", "viewer", pages.as_csv),
        Route("GET", "/crosstab.xlsx", "viewer", pages.as_xlsx),
    ]
    return [Section("exploring", "/research/surveys/<slug>/explore", routes)]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store = workspace.store

    def crosstab(self, slug: str) -> Any:
        """Choose two questions, and see them crossed."""
        of, chosen = asked(self._store, slug), _chosen()
        found, refusals = None, {}
        if chosen["first"] and chosen["second"]:
            try:
                found = self._crossed(of)
            except (CountsError, ChannelError) as error:
                refusals = {"second": str(error)}
        items = [item.question for item in items_of(of.survey)]
        shown = {"methods": METHODS, "items": items, **_shown(found)}
        return page("research/explore.html", of, chosen, refusals, **shown)

    def as_csv(self, slug: str) -> Response:
        """The same table, one row per cell."""
        found, name = self._file(slug)
        return download(to_csv(found.rows, CrossedRow), CSV, f"{name}.csv")

    def as_xlsx(self, slug: str) -> Response:
        """The same rows with their codebook and methods."""
        found, name = self._file(slug)
        return download(crossed_workbook(found), XLSX, f"{name}.xlsx")

    def _file(self, slug: str) -> tuple[CrossedQuestions, str]:
        """The table that was asked for, and what its file is called."""
        of, chosen = asked(self._store, slug), _chosen()
        with refusing():
            found = self._crossed(of)
        return found, file_name(of.survey, f"{chosen['first']}-{chosen['second']}")

    def _crossed(self, of: Asked) -> CrossedQuestions:
        chosen = _chosen()
        names, method = [chosen["first"], chosen["second"]], chosen["method"]
        if method not in METHODS:
            raise DesignError(f"method = {method[:40]!r} must be one of {', '.join(METHODS)}")
        return crossed(self._store, of.survey, names, of.wanted, cast(Method, method))


def _chosen() -> dict[str, str]:
    said = {name: request.args.get(name, "") for name in ("first", "second", "method")}
    return {**said, "method": said["method"] or "linear"}


def _shown(found: CrossedQuestions | None) -> dict[str, Any]:
    if found is None:
        return {"found": None}
    return {
        "found": found,
        "rows": by_row(found),
        "sentences": to_write(found),
        "caveats": caveats(found),
    }
