"""A regression of one question on others: odds ratios, and the words to write."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from survey.errors import ChannelError, CountsError
from survey.questionnaire.kinds import PublishedQuestion
from survey.research.access import Route, Section
from survey.research.downloads import CSV, download, file_name
from survey.research.explore.asking import Asked, asked, page, refusing
from survey.research.workspace import Workspace
from survey.results.crosstab.compute import answers
from survey.results.exports.csv import to_csv
from survey.results.regression.compute import (
    MOST_PREDICTORS,
    has_links,
    regressable,
    regressed,
    usual_reference,
)
from survey.results.regression.sentences import (
    by_answer,
    by_predictor,
    caveats,
    number,
    predictor_label,
    predictor_text,
    to_write,
)
from survey.results.regression.table import LINK, Regressed, RegressionRow
from survey.results.wording import p_value


def sections(workspace: Workspace) -> list[Section]:
    """The pages of regressions; a link reproduces its view."""
    pages = _Pages(workspace)
    routes = [
        Route("GET", "", "viewer", pages.regression),
        Route("GET", "/regression.csv", "viewer", pages.as_csv),
    ]
    return [Section("regressing", "/research/surveys/<slug>/explore/regression", routes)]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store = workspace.store

    def regression(self, slug: str) -> Any:
        """Choose what is explained by what, and see the odds ratios."""
        of = asked(self._store, slug)
        chosen = _chosen()
        found, refusals = None, {}
        if chosen["question"]:
            try:
                found = self._regressed(of)
            except (CountsError, ChannelError) as error:
                refusals = {"predictors": str(error)}
        possible = regressable(of.survey)
        return page(
            "research/regression.html",
            of,
            chosen,
            refusals,
            possible=possible,
            options=_options(next((one for one in possible if one.id == chosen["question"]), None)),
            link=LINK if has_links(self._store, of.survey) else "",
            most=MOST_PREDICTORS,
            **_shown(found),
        )

    def as_csv(self, slug: str) -> Response:
        """The same coefficients, one row each."""
        of = asked(self._store, slug)
        with refusing():
            found = self._regressed(of)
        name = file_name(of.survey, f"{found.question.id}-regression.csv")
        return download(to_csv(found.rows, RegressionRow), CSV, name)

    def _regressed(self, of: Asked) -> Regressed:
        chosen = _chosen()
        name, predictors = chosen["question"], chosen["predictor"]
        # An answer to another question is left from a view of that one.
        asked_for, _, against = chosen["against"].partition(":")
        against = against if asked_for == name else ""
        return regressed(self._store, of.survey, name, predictors, of.wanted, against)


def _chosen() -> dict[str, Any]:
    said = {name: request.args.get(name, "") for name in ("question", "against")}
    return {**said, "predictor": request.args.getlist("predictor")}


def _shown(found: Regressed | None) -> dict[str, Any]:
    if found is None:
        return {"found": None}
    return {
        "found": found,
        "number": number,
        "p_value": p_value,
        "predictor_label": predictor_label,
        "predictor_text": lambda name: predictor_text(found, name),
        "sentences": to_write(found),
        "caveats": caveats(found),
        "tables": by_answer(found),
        "by_predictor": by_predictor,
    }


def _options(question: PublishedQuestion | None) -> list[tuple[str, str]]:
    """The answers that others can be held against, as links name them; the usual one first."""
    if question is None:
        return []
    named = [(f"{question.id}:{option}", label) for option, label in answers(question)]
    usual = named.pop(usual_reference(question))
    return [usual, *named]
