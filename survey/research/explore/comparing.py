"""A question's answers in two groups: the differences, the test, and the words to write."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from survey.errors import ChannelError, CountsError, NotFoundError
from survey.research.access import Route, Section
from survey.research.downloads import CSV, download, file_name
from survey.research.explore.asking import Asked, asked, page, refusing
from survey.research.workspace import Workspace
from survey.results.charts import difference_specification, difference_svg, has_numbers
from survey.results.difference.compute import compared
from survey.results.difference.sentences import caveats, mean_points, measured, people_of, to_write
from survey.results.difference.table import Compared, DifferenceRow, is_number
from survey.results.exports.csv import to_csv
from survey.results.exports.figures import FORMATS, chart_file
from survey.results.groups import group_named, groups
from survey.results.wording import amounts, p_value, points

FIELDS = ("question", "a", "b")


def sections(workspace: Workspace) -> list[Section]:
    """The pages of differences between groups; a link reproduces its view."""
    pages = _Pages(workspace)
    routes = [
        Route("GET", "", "viewer", pages.difference),
        Route("GET", "/difference.csv", "viewer", pages.as_csv),
        Route("GET", "/figure.<kind>", "viewer", pages.figure),
    ]
    return [Section("comparing", "/research/surveys/<slug>/explore/difference", routes)]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store = workspace.store

    def difference(self, slug: str) -> Any:
        """Choose a question and two groups, and see how far apart they are."""
        of, chosen = asked(self._store, slug), _chosen()
        found, refusals = None, {}
        if all(chosen.values()):
            try:
                found = self._compared(of)
            except (CountsError, ChannelError) as error:
                refusals = {"b": str(error)}
        return page(
            "research/difference.html",
            of,
            chosen,
            refusals,
            groups=groups(self._store, of.survey),
            **_shown(found),
        )

    def as_csv(self, slug: str) -> Response:
        """The same differences, one row for each answer."""
        of = asked(self._store, slug)
        with refusing():
            found = self._compared(of)
        return download(to_csv(found.rows, DifferenceRow), CSV, f"{_file(of)}.csv")

    def figure(self, slug: str, kind: str) -> Response:
        """The chart as a file of its own."""
        of = asked(self._store, slug)
        with refusing():
            found = self._compared(of)
        if kind not in FORMATS or not has_numbers(found.share_rows):
            raise NotFoundError("there is no such figure, or it is hidden on its page")
        drawn = difference_specification(_title(found), found.share_rows)
        return download(chart_file(of.survey, drawn, kind), FORMATS[kind], f"{_file(of)}.{kind}")

    def _compared(self, of: Asked) -> Compared:
        chosen = _chosen()
        first, second = (group_named(self._store, of.survey, chosen[name]) for name in ("a", "b"))
        return compared(self._store, of.survey, chosen["question"], (first, second), of.wanted)


def _chosen() -> dict[str, str]:
    return {name: request.args.get(name, "") for name in FIELDS}


def _file(of: Asked) -> str:
    return file_name(of.survey, f"{_chosen()['question']}-difference")


def _title(found: Compared) -> str:
    first, second = found.groups
    return (
        f"{found.question.text} {first.label} minus {second.label}, "
        f"with {found.wanted.percent} intervals"
    )


def _shown(found: Compared | None) -> dict[str, Any]:
    if found is None:
        return {"found": None}
    return {
        "found": found,
        "people": [people_of(group, found.survey) for group in found.groups],
        "chart": difference_svg(_title(found), found.share_rows),
        "mean_text": amounts(found.question, "mean").text,
        "mean_points": lambda value: mean_points(found, value),
        "points": points,
        "measured": measured(found),
        "compared": "means" if is_number(found.question) else "shares",
        "p_value": p_value,
        "sentences": to_write(found),
        "caveats": caveats(found),
    }
