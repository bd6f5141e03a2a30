"""The outline of a draft: begin one, put its pages and questions in order, take them away."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from flask import flash, redirect, render_template, request, url_for

from survey.collect.release import utc_today
from survey.collect.simulation import remove_test_run
from survey.errors import DefinitionError, DesignError, NotFoundError
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.check import examined
from survey.questionnaire.drafts.conversion import drafted
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.drafts.draft import slug as slug_of
from survey.questionnaire.drafts.edits import PageSheet
from survey.questionnaire.kinds import DEFAULT_KIND
from survey.questionnaire.loading import check, parse
from survey.questionnaire.source import source_of
from survey.research.access import Route
from survey.research.drafts.feedback import total_words
from survey.research.drafts.forms import TYPE_NAMES, DoForm, NewDraftForm, PageForm, plain
from survey.research.drafts.plan import typed_plan
from survey.research.drafts.sheets import Drafts
from survey.research.forms import PublishForm, whole_number
from survey.research.workspace import Workspace
from survey.store import Draft, Role, find_survey

Edit = Callable[[DraftContent, int], DraftContent]

EDITS: Mapping[str, Edit] = {
    "page-up": lambda content, key: edits.move_page(content, key, -1),
    "page-down": lambda content, key: edits.move_page(content, key, 1),
    "page-remove": edits.remove_page,
    "question-up": lambda content, key: edits.move_question(content, key, -1),
    "question-down": lambda content, key: edits.move_question(content, key, 1),
    "question-remove": edits.remove_question,
}
"""What the buttons of the outline do to a page or question."""


ADDING = ("question-add", "question-copy", "page-add")
"""Buttons that make something: pressed twice, they would make two."""

TWICE_SECONDS = 10
"""How soon after another the same draft is the same press of the button."""


def routes(workspace: Workspace) -> list[Route]:
    """Declare the pages of the outline."""
    pages = _Pages(workspace)
    return [
        Route("GET POST", "/new", "researcher", pages.new),
        Route("POST", "/file", "researcher", pages.of_file),
        Route("POST", "/of/<slug>", "editor", pages.of_survey),
        Route("GET", "/<slug>", "viewer", pages.outline),
        Route("POST", "/<slug>/edit", "editor", pages.edit),
        Route("POST", "/<slug>/pages/<int:key>", "editor", pages.page),
        Route("POST", "/<slug>/delete", "owner", pages.delete),
    ]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._store, self._log = workspace.store, workspace.log
        self._drafts, self._caps = Drafts(workspace.store), workspace.settings.caps

    def new(self) -> Any:
        """A title, or a file."""
        form = NewDraftForm()
        if form.validate_on_submit():
            title = plain(form.title.data) or "Untitled survey"
            return self._begin(DraftContent.new(title, slug_of(title)))
        return self._new_page(form), 422 if form.errors else 200

    def _new_page(self, form: NewDraftForm, upload: PublishForm | None = None, **more: Any) -> str:
        upload = upload or PublishForm(formdata=None)
        return render_template("research/drafts/new.html", form=form, upload=upload, **more)

    def of_file(self) -> Any:
        """A draft of a definition file; what is wrong with the file is listed."""
        form, mistakes = PublishForm(), []
        if form.validate_on_submit():
            try:
                written = parse(form.file.data.read(), form.file.data.filename or "")
                check(written, self._caps)
                return self._begin(drafted(written))
            except DefinitionError as error:
                mistakes = error.mistakes
        return self._new_page(NewDraftForm(formdata=None), form, mistakes=mistakes), 422

    def of_survey(self, slug: str) -> Any:
        """A draft of the newest version: for the next one, or a copy under another name."""
        survey, is_copy = find_survey(self._store, slug), "copy" in request.form
        content = drafted(source_of(survey.definition))
        typed = typed_plan(self._store.plan(survey.key))
        content = replace(content, plan={**content.plan, **typed})
        if is_copy:
            other = {**content.survey, "slug": self._free_slug(slug)}
            return self._begin(replace(content, survey=other))
        team = {member.researcher: member.role for member in self._store.members(slug)}
        return self._begin(content, team)

    def _free_slug(self, slug: str) -> str:
        """A short name that no survey has, and no draft means to have."""
        taken = {survey.slug for survey in self._store.surveys()}
        drafts = (DraftContent.from_json(draft.content) for draft in self._store.drafts())
        taken |= {str(content.survey["slug"]) for content in drafts}
        return next(name for n in count(2) if (name := f"{slug}-{n}") not in taken)

    def _begin(self, content: DraftContent, team: Mapping[int, Role] | None = None) -> Any:
        known = self._workspace.gate.researcher()
        members: dict[int, Role] = {**(team or {}), known.key: "owner"}
        for draft in self._store.drafts():
            is_mine = (draft.author, draft.content) == (known.email, content.to_json())
            if is_mine and time.time() - draft.at < TWICE_SECONDS:
                return redirect(url_for("drafts.outline", slug=draft.slug))
        draft = self._store.add_draft(content.to_json(), known.email, int(time.time()), members)
        self._log.write("began a draft", draft.slug, content.title)
        return redirect(url_for("drafts.outline", slug=draft.slug))

    def outline(self, slug: str) -> str:
        """All questions in their order, what is wrong with them, and what they give away."""
        opened = self._drafts.open(slug)
        found = examined(opened.content, self._caps)
        return render_template(
            "research/drafts/outline.html",
            survey=opened.draft,
            content=opened.content,
            found=found,
            types=TYPE_NAMES,
            form=DoForm(formdata=None),
            titles={
                page.key: PageForm(
                    formdata=None,
                    prefix=f"p{page.key}-",
                    title=page.title.get(opened.content.own, ""),
                    revision=str(opened.draft.revision),
                )
                for page in opened.content.pages
            },
            whole=total_words(found, self._caps),
        )

    def edit(self, slug: str) -> Any:
        """One of the buttons."""
        what, _, key = request.form.get("do", "").partition(" ")
        if not DoForm().validate_on_submit():
            return self.outline(slug), 422
        newest = self._drafts.open(slug).draft.revision
        if what in ADDING and whole_number(request.form.get("revision", "")) != newest:
            # Pressed twice, or on a page that is old: what would be added may be there already.
            flash("The draft changed after you opened this page. Check it, then try again.")
            return redirect(url_for("drafts.outline", slug=slug))
        return self._done(slug, what, whole_number(key))

    def _done(self, slug: str, what: str, key: int) -> Any:
        known, made = self._workspace.gate.researcher(), [0]

        def change(content: DraftContent) -> DraftContent:
            if what == "question-add":
                kind = request.form.get("type", "")
                kind = kind if kind in TYPE_NAMES else DEFAULT_KIND.type
                content, made[0] = edits.add_question(content, key, kind)
                return content
            if what == "question-copy":
                content, made[0] = edits.duplicate_question(content, key)
                return content
            if what == "page-add":
                return edits.add_page(content)
            if what not in EDITS:
                raise NotFoundError("the outline has no such button")
            return EDITS[what](content, key)

        try:
            self._drafts.change(slug, known.email, change)
        except (DesignError, NotFoundError) as error:
            flash(f"Nothing was changed: {error}.")
        if made[0]:
            return redirect(url_for("drafts.question", slug=slug, key=made[0]))
        anchor = f"{what.partition('-')[0]}-{key}" if what in EDITS else None
        return redirect(url_for("drafts.outline", slug=slug, _anchor=anchor))

    def page(self, slug: str, key: int) -> Any:
        """The title of a page."""
        form = PageForm(prefix=f"p{key}-")
        if not form.validate_on_submit():
            return self.outline(slug), 422
        who, mine = self._workspace.gate.researcher().email, {"title": plain(form.title.data or "")}
        try:
            opened_at = whole_number(form.revision.data or "")
            saved = self._drafts.save(slug, who, PageSheet(key), mine, opened_at)
        except NotFoundError as error:
            flash(f"Nothing was changed: {error}.")
            return redirect(url_for("drafts.outline", slug=slug))
        for theirs in saved.merged.clashes.values():
            other = saved.opened.draft.author
            flash(f"Not saved: {other} renamed this page to “{theirs}” in the meantime.")
        return redirect(url_for("drafts.outline", slug=slug, _anchor=f"page-{key}"))

    def delete(self, slug: str) -> Any:
        """The draft, its revisions, its try-out and its team."""
        opened = self._drafts.open(slug)
        title = opened.content.title
        if not DoForm().validate_on_submit() or request.form.get("title", "").strip() != title:
            flash(f"Nothing was deleted. Type the title, {title}, to delete the draft.")
            return redirect(url_for("drafts.outline", slug=slug, _anchor="delete"))
        remove_draft(self._workspace, opened.draft)
        self._log.write("deleted a draft", slug, title)
        flash(f"The draft of {title} was deleted.")
        return redirect(url_for("research.surveys"))


def remove_draft(workspace: Workspace, draft: Draft, became: str = "") -> None:
    """Delete a draft with its try-out; `became` is the survey it was published as."""
    remove_test_run(workspace.store, draft, utc_today())
    workspace.store.delete_draft(draft.key, utc_today(), became)
