"""Test runs of a draft, and its publication.

The checklist shows mistakes to fix, points to check, and what cannot be changed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flask import Response, flash, redirect, render_template, request, url_for

from survey.collect.invitations import respondent_link
from survey.collect.publication import (
    has_same_content,
    publish,
    validate_field_until,
    validate_schedule,
)
from survey.collect.release import utc_today
from survey.collect.simulation import (
    MAX_SIMULATED,
    add_test_responses,
    make_test_run,
    remove_test_run,
)
from survey.errors import ConflictError, DefinitionError, DesignError, NotFoundError
from survey.estimator.core.arguments import LARGEST_N
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Survey
from survey.questionnaire.drafts.check import DraftCheck, Mistake, check_draft
from survey.questionnaire.drafts.draft import TypedShares
from survey.questionnaire.kinds import PublishedQuestion
from survey.research.access import Route, Workspace
from survey.research.builder.design import propose
from survey.research.builder.draft_editor import DraftPages, OpenDraft, progress
from survey.research.builder.feedback import mistake_sentence, total_sentences
from survey.research.builder.forms import (
    DoForm,
    PageForm,
    PublishDraftForm,
    QuestionForm,
    SheetForm,
    SimulateForm,
    SurveyForm,
    name_of,
)
from survey.research.builder.outline import remove_draft
from survey.research.builder.plan import DraftPlan, parse_plan
from survey.research.forms import whole_number
from survey.research.handbook import application_page
from survey.research.version_changes import changes_page
from survey.results.charts import PALETTES, convert
from survey.results.plan.chart import design_chart, survey_design_chart, tradeoff_chart
from survey.store import Draft, PublishedSurvey, Schedule


@dataclass(frozen=True)
class Point:
    """One point of the checklist; `address` is the page where it is fixed."""

    text: str
    address: str


def routes(workspace: Workspace) -> list[Route]:
    """Declare the pages of test runs and of publication."""
    pages, publication = _TestRunPages(workspace), _PublicationPages(workspace)
    return [
        Route("GET", "/<slug>/try", "editor", pages.test_run),
        Route("POST", "/<slug>/try/make", "editor", pages.make_test_run),
        Route("POST", "/<slug>/try/simulate", "editor", pages.add_test_responses),
        Route("GET", "/<slug>/tradeoff.svg", "viewer", pages.tradeoff),
        Route("GET", "/<slug>/design.svg", "viewer", pages.design),
        Route("GET POST", "/<slug>/publish", "editor", publication.publish),
        Route("GET", "/<slug>/changes", "viewer", publication.changes),
        Route("GET", "/<slug>/application/<name>", "viewer", publication.application),
    ]


class _PublicationPages(DraftPages):
    def publish(self, slug: str) -> Any:
        """Show the checklist; publish the draft if it has no mistakes."""
        opened = self._drafts.open(slug)
        draft_check = check_draft(opened.content, self._caps)
        planned = parse_plan(opened.content.plan)
        version = self._next_version(draft_check)
        obstacles = self._obstacles(slug, draft_check, planned)
        form = PublishDraftForm()
        if form.validate_on_submit():
            if form.revision.data != str(opened.draft.revision):
                form.agreed.errors = [
                    f"{opened.draft.author} changed the draft after you opened this page; check it "
                    "again"
                ]
            elif draft_check.survey is not None and not obstacles:
                try:
                    return self._publish(opened, draft_check.survey, planned, version)
                except ConflictError as error:
                    if self._store.published_slug(opened.draft.key):
                        return redirect(url_for("results.newest", slug=draft_check.survey.slug))
                    form.agreed.errors = [f"Nothing was published: {error}; check the draft again"]
        form.revision.data = str(opened.draft.revision)
        page = render_template(
            "research/builder/publish.html",
            survey=opened.draft,
            content=opened.content,
            draft_check=draft_check,
            form=form,
            obstacles=obstacles,
            recommendations=self._recommendations(slug, opened),
            total_sentences=total_sentences(draft_check, self._caps),
            protection=self._protection(opened, draft_check),
            next_version=version,
        )
        return page, 422 if form.errors else 200

    def changes(self, slug: str) -> str:
        """Show the differences between the draft and the version that it replaces."""
        opened = self._drafts.open(slug)
        survey = check_draft(opened.content, self._caps).survey
        name = str(opened.content.survey["slug"])
        # A researcher can type the short name of a survey that they may not see.
        versions = self._store.versions(name) if self._gate.allows(name, "viewer") else []
        old = versions[0].definition if versions else None
        new = None
        if survey and versions:
            with suppress(DefinitionError):  # the Publish page shows this mistake
                # The comparison ignores the key of field mode, but not its day.
                field_key = old.field.key if old and old.field else b"draft"
                new = freeze(survey, versions[0].version + 1, field_key)
        return changes_page(opened.draft, old, new)

    def application(self, slug: str, name: str) -> str:
        """Show texts for an ethics or data-protection application, with the draft's figures.

        Raises ConflictError while the draft has mistakes: its figures are unknown.
        """
        opened = self._drafts.open(slug)
        survey = check_draft(opened.content, self._caps).survey
        if survey is None:
            raise ConflictError("this draft has mistakes; fix those on its page Publish first")
        definition = freeze(survey, 1, b"draft")
        n = parse_plan(opened.content.plan).n
        return application_page(
            name, definition, n, self._settings, survey=opened.draft, endpoint="drafts.application"
        )

    def _obstacles(self, slug: str, draft_check: DraftCheck, planned: DraftPlan) -> list[Point]:
        """Return the points that prevent publishing."""
        points = [point_of(slug, mistake) for mistake in draft_check.mistakes]
        plan = url_for("drafts.plan", slug=slug)
        points += [Point(mistake.text, plan) for mistake in planned.mistakes]
        if draft_check.survey is not None:
            try:
                freeze(draft_check.survey, 1)
            except DefinitionError as error:
                points.append(Point(str(error), url_for("drafts.outline", slug=slug)))
            try:
                field_until = validate_field_until(draft_check.survey, utc_today())
                validate_schedule(planned.schedule, field_until)
            except DesignError as error:
                where = url_for("drafts.texts", slug=slug, _anchor="field_until")
                points.append(Point(str(error), where))
            name = draft_check.survey.slug
            if self._store.versions(name) and not self._gate.allows(name, "editor"):
                points.append(
                    Point(
                        f"Another survey, which you cannot edit, has the address “{name}”; "
                        "choose another short name",
                        url_for("drafts.texts", slug=slug, _anchor="slug"),
                    )
                )
        return points

    def _recommendations(self, slug: str, opened: OpenDraft) -> list[Point]:
        """Return the points that are allowed but usually unintended."""
        content, comments = opened.content, self._drafts.comments(opened)
        texts = url_for("drafts.texts", slug=slug)
        points = [
            Point(text, f"{texts}#{name}")
            for name, text in RECOMMENDED_TEXTS.items()
            if not content.survey[name].get(content.own_language)
        ]
        for language in content.languages:
            translated, total = progress(content, language)
            if translated < total:
                where = url_for("drafts.translation", slug=slug, language=language)
                missing = (
                    f"{total - translated} of {total} texts are not translated into {language}"
                )
                points.append(Point(f"{missing}; they are shown in {content.own_language}", where))
        if not self._store.test_runs(slug):
            points.append(Point("Not tested yet", url_for("drafts.test_run", slug=slug)))
        if n := sum(not comment.resolved for part in comments.values() for comment in part):
            are_open = "1 comment is open" if n == 1 else f"{n} comments are open"
            text = f"{are_open}; publishing deletes all comments"
            points.append(Point(text, url_for("drafts.comments", slug=slug)))
        return points

    def _next_version(self, draft_check: DraftCheck) -> int:
        versions = self._store.versions(draft_check.survey.slug) if draft_check.survey else []
        return versions[0].version + 1 if versions else 1

    def _publish(self, opened: OpenDraft, survey: Survey, planned: DraftPlan, version: int) -> Any:
        newest = next(iter(self._store.versions(survey.slug)), None)
        if newest and has_same_content(survey, newest):
            # An earlier attempt was interrupted after publishing; this one finishes it.
            flash(
                f"Version {newest.version} has the same content and is already published. "
                "The draft is deleted."
            )
            return self._finish(opened, newest, planned)
        published = publish(
            self._store,
            survey,
            utc_today(),
            None if planned.schedule == Schedule() else planned.schedule,
            # Publishing gives the researcher no new role.
            {member.researcher: member.role for member in self._store.members(opened.draft.slug)},
            version,
        )
        self._log.write("published", published.slug, f"version {published.version}")
        flash(published.slug, "published")
        return self._finish(opened, published, planned)

    def _finish(self, opened: OpenDraft, survey: PublishedSurvey, planned: DraftPlan) -> Any:
        """Store the plan and delete the draft with its test run."""
        self._store.set_plan(survey.key, planned.plan)
        self._store.set_archived(survey.slug, archived=False)
        remove_draft(self._workspace, opened.draft, survey.slug)
        return redirect(url_for("collection.overview", slug=survey.slug))


RECOMMENDED_TEXTS = {
    "contact": "No contact given",
    "consent": "No consent text given",
    "ethics": "No ethics approval given",
    "helpline": "No place to find help given",
}


def point_of(slug: str, mistake: Mistake) -> Point:
    """Return a mistake with the page where it is fixed, under the label of its field."""
    form: type[SheetForm] = SurveyForm
    if mistake.question is not None:
        form = QuestionForm
    elif mistake.page is not None:
        form = PageForm
    if mistake.language:
        where = url_for("drafts.translation", slug=slug, language=mistake.language)
    elif mistake.question is not None:
        where = url_for("drafts.question", slug=slug, key=mistake.question, _anchor=mistake.field)
    elif mistake.page is not None or not mistake.field:
        where = url_for("drafts.outline", slug=slug)
    else:
        where = url_for("drafts.texts", slug=slug, _anchor=mistake.field)
    return Point(mistake_sentence(name_of(form, mistake.field), mistake.text), where)


SVG = "image/svg+xml"

SHARE = "share-"
"""Prefix of the fields of shares."""


class _TestRunPages(DraftPages):
    def test_run(self, slug: str) -> str:
        """Show the test run and the fields of its shares."""
        return self._page(slug, SimulateForm(formdata=None))

    def _page(self, slug: str, form: SimulateForm, error: str = "") -> str:
        opened = self._drafts.open(slug)
        test_run = next(iter(self._store.test_runs(slug)), None)
        if form.n.data is None:
            form.n.data = min(parse_plan(opened.content.plan).n, MAX_SIMULATED)
        return render_template(
            "research/builder/test_run.html",
            survey=opened.draft,
            content=opened.content,
            draft_check=check_draft(opened.content, self._caps),
            test_run=test_run,
            link=respondent_link(test_run, self._settings) if test_run else "",
            released=self._store.n_released(test_run.key) if test_run else 0,
            form=form,
            make=DoForm(formdata=None),
            shares=_share_fields(
                test_run, {**opened.content.typed_shares.typed, **request.form.to_dict()}
            ),
            error=error,
            maximum=MAX_SIMULATED,
        )

    def make_test_run(self, slug: str) -> Any:
        """Build the test run from the current draft, or delete it."""
        opened = self._drafts.open(slug)
        draft_check = check_draft(opened.content, self._caps)
        if DoForm().validate_on_submit():
            if draft_check.survey is None:
                flash("The draft has mistakes. Fix them before you test it.")
            elif request.form.get("do") == "remove":
                remove_test_run(self._store, opened.draft, utc_today())
                self._save_shares(slug, TypedShares.reset)
                flash("The test run and its responses were deleted.")
            else:
                self._make(opened.draft, draft_check.survey)
        return redirect(url_for("drafts.test_run", slug=slug))

    def _make(self, draft: Draft, survey: Survey) -> None:
        try:
            make_test_run(self._store, survey, draft, utc_today())
            self._save_shares(draft.slug, TypedShares.reset)
            self._log.write("built a test run", draft.slug)
        except (ConflictError, NotFoundError):  # the button was pressed twice
            flash("The test run is already being built.")
            return
        flash("The test run is ready.")

    def add_test_responses(self, slug: str) -> Any:
        """Add the responses of simulated respondents and release them."""
        form = SimulateForm()
        test_run = next(iter(self._store.test_runs(slug)), None)
        if test_run is None:
            flash("Start the test run first.")
            return redirect(url_for("drafts.test_run", slug=slug))
        if not form.validate_on_submit():
            return self._page(slug, form), 422
        try:
            shares = _parse_shares(test_run, request.form)
            rng = np.random.default_rng()
            n = add_test_responses(self._store, test_run, form.n.data, shares, rng)
        except DesignError as error:
            return self._page(slug, form, str(error)), 422
        typed = {name: request.form[name] for name in request.form if name.startswith(SHARE)}
        self._save_shares(slug, lambda shares_before: shares_before.after_simulation(typed, shares))
        self._log.write("simulated respondents", slug, f"{n}")
        flash(f"{n:,} test responses were added. The results page shows the estimates.")
        return redirect(url_for("drafts.test_run", slug=slug))

    def _save_shares(self, slug: str, change: Callable[[TypedShares], TypedShares]) -> None:
        """Store the typed shares with the draft: results pages of the test run show them."""
        self._change(
            slug, lambda content: replace(content, typed_shares=change(content.typed_shares))
        )

    def tradeoff(self, slug: str) -> Response:
        """Return a chart of the margin of error against epsilon for one question.

        With a `look`, it is the narrow chart beside the question.
        """
        opened, query = self._drafts.open(slug), request.args
        palette = look if (look := query.get("look", "")) in PALETTES else ""
        n = _between(query.get("n", ""), 1, LARGEST_N)
        if "question" in query:
            draft_check = check_draft(opened.content, self._caps)
            question = draft_check.questions.get(whole_number(query["question"]))
            if question is None:
                raise NotFoundError("this question does not exist or has mistakes")
            chart = design_chart(question, n, palette)
        else:
            options = _between(query.get("options", ""), 2, 200)
            try:
                epsilon = float(query.get("epsilon", ""))
            except ValueError:
                raise DesignError("epsilon must be a number, such as 1.1") from None
            if not 0 < epsilon < 50:  # also nan
                raise DesignError("epsilon must be above 0, such as 1.1")
            chart = tradeoff_chart(options, epsilon, n, palette)
        return Response(convert(chart, "svg"), content_type=SVG)

    def design(self, slug: str) -> Response:
        """Return a chart of the margins of the proposed designs."""
        opened = self._drafts.open(slug)
        draft_check = check_draft(opened.content, self._caps)
        if not draft_check.questions:
            raise NotFoundError("the draft has no complete question yet")
        plan, present = propose(draft_check, parse_plan(opened.content.plan))
        palette = "dark" if request.args.get("look") == "dark" else "light"
        chart = survey_design_chart(plan, present, palette)
        return Response(convert(chart, "svg"), content_type=SVG)


def _between(text: str, low: int, high: int) -> int:
    number = whole_number(text, -1)
    if not low <= number <= high:
        raise DesignError(f"{text[:20]!r} must be a whole number from {low:,} to {high:,}")
    return number


def field_name(question: PublishedQuestion, place: int) -> str:
    """Return the name of the field of one share."""
    return f"{SHARE}{question.id}-{place}"


def _share_fields(
    survey: PublishedSurvey | None, typed: Any
) -> list[tuple[PublishedQuestion, list[tuple[str, str, str]]]]:
    """Return the name, label and percent of each share by question, as typed or the default."""
    if survey is None:
        return []
    fields = []
    for question in survey.definition.questions:
        kind = question.kind
        shares = zip(kind.share_labels(question), kind.default_shares(question), strict=True)
        rows = [
            (name, label, typed.get(name, f"{100 * share:.3g}"))
            for place, (label, share) in enumerate(shares)
            if (name := field_name(question, place))
        ]
        fields.append((question, rows))
    return fields


def _parse_shares(survey: PublishedSurvey, typed: Any) -> dict[str, list[float]]:
    """Return the typed shares as fractions; those of single choices are scaled to a sum of 1."""
    return {
        question.id: question.kind.normalize_shares(
            question, [_share(question, label, text) for _, label, text in rows]
        )
        for question, rows in _share_fields(survey, typed)
    }


def _share(question: PublishedQuestion, label: str, text: str) -> float:
    try:
        percent = float(text or 0)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise DesignError(f"{question.text}, {label}: “{text[:20]}” is not a number from 0 to 100")
    return percent / 100
