"""Publish a draft: what has to be right, what is worth a look, and what freezes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import flash, redirect, render_template, url_for

from survey.collect.publication import has_same_content, publish
from survey.collect.release import utc_today
from survey.errors import ConflictError, DefinitionError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.drafts.check import Examined, Mistake, examined
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.model import Survey
from survey.research.access import Route
from survey.research.drafts.feedback import in_words, total_words
from survey.research.drafts.forms import (
    PageForm,
    PublishDraftForm,
    QuestionForm,
    SurveyForm,
    name_of,
)
from survey.research.drafts.outline import remove_draft
from survey.research.drafts.plan import Planned, planned_of
from survey.research.drafts.sheets import Drafts, Opened, progress
from survey.research.workspace import Workspace
from survey.store import PublishedSurvey, Schedule


@dataclass(frozen=True)
class Point:
    """One point of the checklist; `where` is the page that mends it."""

    text: str
    where: str


def routes(workspace: Workspace) -> list[Route]:
    """Declare the page of publication."""
    return [Route("GET POST", "/<slug>/publish", "editor", _Pages(workspace).publish)]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._store = workspace, workspace.store
        self._drafts, self._caps = Drafts(workspace.store), workspace.settings.caps

    def publish(self, slug: str) -> Any:
        """The checklist, and the button when nothing is wrong."""
        opened = self._drafts.open(slug)
        found = examined(opened.content, self._caps)
        planned = planned_of(opened.content.plan)
        version = self._next_version(found)
        wrong = self._wrong(slug, found, planned)
        form = PublishDraftForm()
        if form.validate_on_submit():
            if form.revision.data != str(opened.draft.revision):
                form.agreed.errors = [
                    f"{opened.draft.author} changed the draft after you opened this page; check it "
                    "again"
                ]
            elif found.survey is not None and not wrong:
                try:
                    return self._published(opened, found.survey, planned, version)
                except ConflictError as error:
                    if self._store.published_slug(opened.draft.key):
                        return redirect(url_for("research.newest", slug=found.survey.slug))
                    form.agreed.errors = [f"Nothing was published: {error}; check the draft again"]
        form.revision.data = str(opened.draft.revision)
        page = render_template(
            "research/drafts/publish.html",
            survey=opened.draft,
            content=opened.content,
            found=found,
            form=form,
            wrong=wrong,
            worth=self._worth(slug, opened.content),
            whole=total_words(found, self._caps),
            next_version=version,
        )
        return page, 422 if form.errors else 200

    def _wrong(self, slug: str, found: Examined, planned: Planned) -> list[Point]:
        """What keeps the draft from being published."""
        points = [_point(slug, mistake) for mistake in found.mistakes]
        plan = url_for("drafts.plan", slug=slug)
        points += [Point(mistake.text, plan) for mistake in planned.mistakes]
        if found.survey is not None:
            try:
                freeze(found.survey, 1)
            except DefinitionError as error:
                points.append(Point(str(error), url_for("drafts.outline", slug=slug)))
            if self._is_taken(found.survey.slug):
                points.append(
                    Point(
                        f"Another survey, which you cannot edit, has the address "
                        f"“{found.survey.slug}”; choose another short name",
                        url_for("drafts.texts", slug=slug, _anchor="slug"),
                    )
                )
        return points

    def _is_taken(self, name: str) -> bool:
        there = bool(self._store.versions(name))
        return there and not self._workspace.gate.allows(name, "editor")

    def _worth(self, slug: str, content: DraftContent) -> list[Point]:
        """What is allowed, and mostly not meant."""
        texts = url_for("drafts.texts", slug=slug)
        points = [
            Point(text, f"{texts}#{name}")
            for name, text in USUALLY_SAID.items()
            if not content.survey[name].get(content.own)
        ]
        for language in content.languages:
            done, of = progress(content, language)
            if done < of:
                where = url_for("drafts.translation", slug=slug, language=language)
                left = f"{of - done} of {of} texts are not translated into {language}"
                points.append(Point(f"{left}; they are shown in {content.own}", where))
        if not self._store.test_runs(slug):
            points.append(Point("Not tested yet", url_for("drafts.test_run", slug=slug)))
        return points

    def _next_version(self, found: Examined) -> int:
        versions = self._store.versions(found.survey.slug) if found.survey else []
        return versions[0].version + 1 if versions else 1

    def _published(self, opened: Opened, survey: Survey, planned: Planned, version: int) -> Any:
        newest = next(iter(self._store.versions(survey.slug)), None)
        if newest and has_same_content(survey, newest):
            # Interrupted between publishing and what follows, pressing again finishes it.
            flash(
                f"Version {newest.version} has the same content and is already published. "
                "The draft is deleted."
            )
            return self._handed_over(opened, newest, planned)
        done = publish(
            self._store,
            survey,
            utc_today(),
            None if planned.schedule == Schedule() else planned.schedule,
            # Whoever presses the button gains no role by it.
            {member.researcher: member.role for member in self._store.members(opened.draft.slug)},
            version,
        )
        self._workspace.log.write("published", done.slug, f"version {done.version}")
        return self._handed_over(opened, done, planned)

    def _handed_over(self, opened: Opened, survey: PublishedSurvey, planned: Planned) -> Any:
        """Keep what is planned; the draft and its try-out are gone."""
        self._store.set_plan(survey.key, planned.plan)
        self._store.set_archived(survey.slug, archived=False)
        remove_draft(self._workspace, opened.draft, survey.slug)
        return redirect(url_for("collection.overview", slug=survey.slug))


USUALLY_SAID = {
    "contact": "No contact given",
    "consent": "No consent text given",
    "ethics": "No ethics approval given",
    "helpline": "No place to find help given",
}


def _point(slug: str, mistake: Mistake) -> Point:
    """A mistake with the page it is mended on."""
    if mistake.language:
        where = url_for("drafts.translation", slug=slug, language=mistake.language)
    elif mistake.question is not None:
        where = url_for("drafts.question", slug=slug, key=mistake.question, _anchor=mistake.field)
    elif mistake.page is not None or not mistake.field:
        where = url_for("drafts.outline", slug=slug)
    else:
        where = url_for("drafts.texts", slug=slug, _anchor=mistake.field)
    return Point(in_words(_name(mistake), mistake.text), where)


def _name(mistake: Mistake) -> str:
    """What the form calls the field that is wrong."""
    if mistake.question is not None:
        return name_of(QuestionForm, mistake.field)
    return name_of(PageForm if mistake.page is not None else SurveyForm, mistake.field)
