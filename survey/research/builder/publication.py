"""Publish a draft: mistakes to fix, points to check, and what cannot be changed afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import flash, redirect, render_template, url_for

from survey.collect.publication import has_same_content, publish
from survey.collect.release import utc_today
from survey.errors import ConflictError, DefinitionError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Survey
from survey.questionnaire.drafts.check import DraftCheck, Mistake, check_draft
from survey.questionnaire.drafts.draft import DraftContent
from survey.research.access import Route, Workspace
from survey.research.builder.draft_editor import DraftPages, OpenDraft, progress
from survey.research.builder.feedback import mistake_sentence, total_sentences
from survey.research.builder.forms import (
    PageForm,
    PublishDraftForm,
    QuestionForm,
    SheetForm,
    SurveyForm,
    name_of,
)
from survey.research.builder.outline import remove_draft
from survey.research.builder.plan import DraftPlan, parse_plan
from survey.store import PublishedSurvey, Schedule


@dataclass(frozen=True)
class Point:
    """One point of the checklist; `address` is the page where it is fixed."""

    text: str
    address: str


def routes(workspace: Workspace) -> list[Route]:
    """Declare the page of publication."""
    return [Route("GET POST", "/<slug>/publish", "editor", _PublicationPages(workspace).publish)]


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
            recommendations=self._recommendations(slug, opened.content),
            total_sentences=total_sentences(draft_check, self._caps),
            protection=self._protection(opened, draft_check),
            next_version=version,
        )
        return page, 422 if form.errors else 200

    def _obstacles(self, slug: str, draft_check: DraftCheck, planned: DraftPlan) -> list[Point]:
        """Return the points that prevent publishing."""
        points = [_point(slug, mistake) for mistake in draft_check.mistakes]
        plan = url_for("drafts.plan", slug=slug)
        points += [Point(mistake.text, plan) for mistake in planned.mistakes]
        if draft_check.survey is not None:
            try:
                freeze(draft_check.survey, 1)
            except DefinitionError as error:
                points.append(Point(str(error), url_for("drafts.outline", slug=slug)))
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

    def _recommendations(self, slug: str, content: DraftContent) -> list[Point]:
        """Return the points that are allowed but usually unintended."""
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


def _point(slug: str, mistake: Mistake) -> Point:
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
