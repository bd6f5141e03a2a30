"""Try a draft: answer it as a respondent does, and let simulated respondents answer it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from flask import Response, flash, redirect, render_template, request, url_for

from survey.collect.invitations import respondent_link
from survey.collect.release import utc_today
from survey.collect.simulation import (
    MAX_SIMULATED,
    add_test_responses,
    make_test_run,
    remove_test_run,
)
from survey.errors import ConflictError, DesignError, NotFoundError
from survey.estimator.core.arguments import LARGEST_N
from survey.questionnaire.drafts.check import examined
from survey.questionnaire.drafts.draft import Tried
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.model import Survey
from survey.research.access import Route
from survey.research.drafts.forms import DoForm, SimulateForm
from survey.research.drafts.plan import planned_of
from survey.research.drafts.sheets import Drafts
from survey.research.forms import whole_number
from survey.research.workspace import Workspace
from survey.results.exports.figures import convert
from survey.results.plan.chart import design_chart, tradeoff_chart
from survey.store import Draft, PublishedSurvey, Store

SVG = "image/svg+xml"

SHARE = "share-"
"""How the fields of shares begin."""


def routes(workspace: Workspace) -> list[Route]:
    """Declare the pages of test runs."""
    pages = _Pages(workspace)
    return [
        Route("GET", "/<slug>/try", "editor", pages.test_run),
        Route("POST", "/<slug>/try/make", "editor", pages.make_test_run),
        Route("POST", "/<slug>/try/simulate", "editor", pages.add_test_responses),
        Route("GET", "/<slug>/tradeoff.svg", "viewer", pages.tradeoff),
    ]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store: Store = workspace.store
        self._log, self._settings, self._gate = workspace.log, workspace.settings, workspace.gate
        self._drafts = Drafts(workspace.store)

    def test_run(self, slug: str) -> str:
        """What there is to try, and how."""
        return self._page(slug, SimulateForm(formdata=None))

    def _page(self, slug: str, form: SimulateForm, wrong: str = "") -> str:
        opened = self._drafts.open(slug)
        made = next(iter(self._store.test_runs(slug)), None)
        if form.n.data is None:
            form.n.data = min(planned_of(opened.content.plan).n, MAX_SIMULATED)
        return render_template(
            "research/drafts/test_run.html",
            survey=opened.draft,
            content=opened.content,
            found=examined(opened.content, self._settings.caps),
            made=made,
            link=respondent_link(made, self._settings.public_url) if made else "",
            released=self._store.n_released(made.key) if made else 0,
            form=form,
            make=DoForm(formdata=None),
            shares=_shown_shares(made, {**opened.content.tried.typed, **request.form.to_dict()}),
            wrong=wrong,
            most=MAX_SIMULATED,
        )

    def make_test_run(self, slug: str) -> Any:
        """The draft as it is now becomes the try-out; the one before goes with its reports."""
        opened = self._drafts.open(slug)
        found = examined(opened.content, self._settings.caps)
        if DoForm().validate_on_submit():
            if found.survey is None:
                flash("The draft has mistakes. Fix them before you test it.")
            elif request.form.get("do") == "remove":
                remove_test_run(self._store, opened.draft, utc_today())
                self._tried(slug, Tried.anew)
                flash("The test run and its responses were deleted.")
            else:
                self._make(opened.draft, found.survey)
        return redirect(url_for("drafts.test_run", slug=slug))

    def _make(self, draft: Draft, survey: Survey) -> None:
        try:
            make_test_run(self._store, survey, draft, utc_today())
            self._tried(draft.slug, Tried.anew)
            self._log.write("made a try-out", draft.slug)
        except (ConflictError, NotFoundError):  # the button was pressed twice
            flash("The test run is already being built.")
            return
        flash("The test run is ready.")

    def add_test_responses(self, slug: str) -> Any:
        """Simulated respondents answer, and their reports are released."""
        form = SimulateForm()
        made = next(iter(self._store.test_runs(slug)), None)
        if made is None:
            flash("Start the test run first.")
            return redirect(url_for("drafts.test_run", slug=slug))
        if not form.validate_on_submit():
            return self._page(slug, form), 422
        try:
            shares = _typed_shares(made, request.form)
            rng = np.random.default_rng()
            n = add_test_responses(self._store, made, form.n.data, shares, rng)
        except DesignError as error:
            return self._page(slug, form, str(error)), 422
        typed = {name: request.form[name] for name in request.form if name.startswith(SHARE)}
        self._tried(slug, lambda tried: tried.again(typed, shares))
        self._log.write("simulated respondents", slug, f"{n}")
        flash(f"{n:,} test responses were added. The results page shows the estimates.")
        return redirect(url_for("drafts.test_run", slug=slug))

    def _tried(self, slug: str, change: Callable[[Tried], Tried]) -> None:
        """Keep with the draft what was typed: pages of its try-out show it beside estimates."""
        who = self._gate.researcher().email
        self._drafts.change(
            slug, who, lambda content: replace(content, tried=change(content.tried))
        )

    def tradeoff(self, slug: str) -> Response:
        """Margin against epsilon for a question of so many options, as a picture."""
        opened, asked = self._drafts.open(slug), request.args
        if "question" in asked:
            found = examined(opened.content, self._settings.caps)
            question = found.questions.get(whole_number(asked["question"]))
            if question is None:
                raise NotFoundError("this question does not exist or has mistakes")
            n = _between(asked.get("n", ""), 1, LARGEST_N)
            drawn = convert(design_chart(question, n), "svg")
            return Response(drawn, content_type=SVG)
        options = _between(asked.get("options", ""), 2, 200)
        n = _between(asked.get("n", ""), 1, LARGEST_N)
        try:
            epsilon = float(asked.get("epsilon", ""))
        except ValueError:
            raise DesignError("epsilon must be a number, such as 1.1") from None
        if not 0 < epsilon < 50:  # also nan
            raise DesignError("epsilon must be above 0, such as 1.1")
        drawn = convert(tradeoff_chart(options, epsilon, n), "svg")
        return Response(drawn, content_type=SVG)


def _between(text: str, low: int, high: int) -> int:
    number = whole_number(text, -1)
    if not low <= number <= high:
        raise DesignError(f"{text[:20]!r} must be a whole number from {low:,} to {high:,}")
    return number


def field_name(question: PublishedQuestion, place: int) -> str:
    """The field of one share."""
    return f"{SHARE}{question.id}-{place}"


def _labels(question: PublishedQuestion) -> list[str]:
    options = [option.label for option in question.options]
    if question.type in ("number", "date"):
        return ["Where the mean lies between lowest (0) and highest (100)", *options]
    return options


def _shown_shares(
    made: PublishedSurvey | None, typed: Any
) -> list[tuple[PublishedQuestion, list[tuple[str, str, str]]]]:
    """For each question the name, label and per cent of each share, as typed or as usual."""
    if made is None:
        return []
    shown = []
    for question in made.definition.questions:
        usual = question.kind.default_shares(question)
        rows = [
            (name, label, typed.get(name, f"{100 * share:.3g}"))
            for place, (label, share) in enumerate(zip(_labels(question), usual, strict=True))
            if (name := field_name(question, place))
        ]
        shown.append((question, rows))
    return shown


def _typed_shares(made: PublishedSurvey, typed: Any) -> dict[str, list[float]]:
    """Shares as fractions; those of single choices are brought to a sum of 1."""
    found = {}
    for question, rows in _shown_shares(made, typed):
        shares = [_share(question, label, text) for _, label, text in rows]
        if question.type in ("yes_no", "single_choice", "scale"):
            if not (total := sum(shares)):
                raise DesignError(f"{question.text}: at least one share must be above 0")
            shares = [share / total for share in shares]
        found[question.id] = shares
    return found


def _share(question: PublishedQuestion, label: str, text: str) -> float:
    try:
        percent = float(text or 0)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise DesignError(f"{question.text}, {label}: “{text[:20]}” is not a number from 0 to 100")
    return percent / 100
