"""The outline of a draft: create one, order its pages and questions, and delete them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain, count
from typing import Any

from flask import flash, redirect, render_template, request, url_for

from survey.collect.release import utc_today
from survey.collect.simulation import remove_test_run
from survey.errors import DefinitionError, DesignError, NotFoundError
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent, is_blank
from survey.questionnaire.drafts.draft import slug as slug_of
from survey.questionnaire.drafts.edits import PageSheet
from survey.questionnaire.imports import TOOLS, import_questionnaire, is_definition
from survey.questionnaire.kinds import DEFAULT_KIND, BaseQuestion
from survey.questionnaire.loading import MAX_FILE_BYTES, parse, source_of
from survey.questionnaire.validation import check
from survey.research.access import Route, Workspace
from survey.research.builder.bank import TEMPLATES, BankPages, template
from survey.research.builder.design import (
    apply_design,
    propose,
    recommended_levels,
    with_better_mechanism,
    with_ranges,
)
from survey.research.builder.draft_editor import (
    CHANGES,
    DraftPages,
    LastChange,
    readable_contents,
)
from survey.research.builder.feedback import total_sentences
from survey.research.builder.forms import (
    TYPE_ICONS,
    TYPE_NAMES,
    DoForm,
    DraftFileForm,
    NewDraftForm,
    PageForm,
    QuestionListForm,
    plain,
)
from survey.research.builder.plan import parse_plan, plan_fields
from survey.research.forms import whole_number
from survey.store import Draft, Role, find_survey

Edit = Callable[[DraftContent, int], DraftContent]

EDITS: Mapping[str, Edit] = {
    "page-add": lambda content, _key: edits.add_page(content),
    "page-up": lambda content, key: edits.move_page(content, key, -1),
    "page-down": lambda content, key: edits.move_page(content, key, 1),
    "page-remove": edits.remove_page,
    "question-up": lambda content, key: edits.move_question(content, key, -1),
    "question-down": lambda content, key: edits.move_question(content, key, 1),
    "question-remove": edits.remove_question,
    "ask-some": edits.ask_some,
    "ask-all": lambda content, _n: edits.ask_all(content),
}
"""The edit of a page or question for each button of the outline; `ask-some` has a number."""

QUESTION_EDITS: Mapping[str, Callable[[DraftContent, int, BaseQuestion], DraftContent]] = {
    "use-mechanism": with_better_mechanism,
    "use-ranges": with_ranges,
}
"""The buttons beside a question that change its design."""

PAGES: Mapping[str, str] = {"plan": "drafts.plan", "languages": "drafts.languages"}
"""Pages that their buttons return to, by name in the form; other buttons return to the outline."""

ANCHORS: Mapping[str, str] = {
    "ask-some": "protection",
    "ask-all": "protection",
    "recommended-level": "protection",
    "use-design": "design",
}
"""The part of the page where the effect of a button is visible."""

ON_NEWEST = ("question-add", "question-from", "question-copy", "page-add", "use-design")
"""Buttons that need the newest draft: pressed twice, they would add twice or use another design."""

OUTCOMES = ("dropped", "changed", "kept")
"""What can become of an element of an imported file; what needs attention comes first."""

TWICE_SECONDS = 10
"""Two identical drafts within this time come from one button pressed twice."""


def routes(workspace: Workspace) -> list[Route]:
    """Declare the pages of the outline."""
    pages = _OutlinePages(workspace)
    return [
        Route("GET POST", "/new", "researcher", pages.new),
        Route("POST", "/file", "researcher", pages.from_file),
        Route("POST", "/of/<slug>", "editor", pages.from_survey),
        Route("GET", "/<slug>", "viewer", pages.outline),
        Route("POST", "/<slug>/edit", "editor", pages.edit),
        Route("POST", "/<slug>/pages/<int:key>", "editor", pages.page),
        Route("POST", "/<slug>/pages/<int:key>/questions", "editor", pages.write_questions),
        Route("POST", "/<slug>/delete", "owner", pages.delete),
    ]


class _OutlinePages(DraftPages):
    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._bank = BankPages(workspace)

    def new(self) -> Any:
        """Create a draft from a title or a template."""
        form = NewDraftForm(TEMPLATES)
        if form.validate_on_submit():
            title = plain(form.title.data or "")
            if not form.template.data:
                return self._begin(DraftContent.new(title, slug_of(title)))
            content = template(form.template.data)
            title = title or content.title
            texts = {
                "title": {content.own_language: title},
                "slug": self._free_slug(slug_of(title)),
            }
            return self._begin(replace(content, survey={**content.survey, **texts}))
        return self._new_page(form), 422 if form.errors else 200

    def _new_page(
        self, form: NewDraftForm, upload: DraftFileForm | None = None, **more: Any
    ) -> str:
        upload = upload or DraftFileForm(formdata=None)
        templates = {name: template(name) for name in TEMPLATES}
        return render_template(
            "research/builder/new.html",
            form=form,
            upload=upload,
            templates=templates,
            tools=TOOLS,
            **more,
        )

    def from_file(self) -> Any:
        """Create a draft from a definition or another tool's file, or list the mistakes in it.

        The page about an import is the response itself: the report on its elements is not stored.
        """
        form, mistakes = DraftFileForm(), []
        if form.validate_on_submit():
            name = form.file.data.filename or ""
            with form.file.data.stream as upload:
                content = upload.read(MAX_FILE_BYTES + 1)
            is_own = False
            try:
                is_own = is_definition(content, name)
                if not is_own:
                    return self._import(content, name, skip_logic=form.skip_logic.data)
                definition = parse(content, name)
                check(definition, self._caps)
                return self._begin(draft_from(definition))
            except DefinitionError as error:
                mistakes = error.mistakes if is_own else []
                form.file.errors = [] if is_own else [_file_error(error)]
        return self._new_page(NewDraftForm(TEMPLATES, formdata=None), form, mistakes=mistakes), 422

    def _import(self, file: bytes, name: str, *, skip_logic: bool) -> str:
        """Create a draft from another tool's file, and show what became of each element."""
        imported = import_questionnaire(file, name, skip_logic=skip_logic)
        content = self._with_free_slug(imported.content)
        return render_template(
            "research/builder/import.html",
            draft=begin_draft(self._workspace, content),
            title=content.title,
            file_name=name,
            n_mistakes=len(check_draft(content, self._caps).mistakes),
            outcomes={
                outcome: [element for element in imported.elements if element.outcome == outcome]
                for outcome in OUTCOMES
            },
        )

    def _with_free_slug(self, content: DraftContent) -> DraftContent:
        """Return a draft with a free short name; a repeated request gets the name of the first."""
        for draft, earlier in readable_contents(self._store.drafts()):
            same = _with_slug(content, str(earlier.survey["slug"]))
            if draft.content == same.to_json() and time.time() - draft.at < TWICE_SECONDS:
                return same
        return _with_slug(content, self._free_slug(str(content.survey["slug"])))

    def from_survey(self, slug: str) -> Any:
        """Create a draft from the newest version, of the next version or of a copy."""
        survey, is_copy = find_survey(self._store, slug), "copy" in request.form
        content = draft_from(source_of(survey.definition))
        plan = plan_fields(self._store.plan(survey.key))
        content = replace(content, plan={**content.plan, **plan})
        if is_copy:
            return self._begin(_with_slug(content, self._free_slug(slug)))
        team = {member.researcher: member.role for member in self._store.members(slug)}
        return self._begin(content, team)

    def _free_slug(self, slug: str) -> str:
        """Return a short name, numbered if a survey or a draft already has it."""
        used = {survey.slug for survey in self._store.surveys()}
        drafts = readable_contents(self._store.drafts())
        used |= {str(content.survey["slug"]) for _, content in drafts}
        names = chain([slug], (f"{slug}-{n}" for n in count(2)))
        return next(name for name in names if name not in used)

    def _begin(self, content: DraftContent, team: Mapping[int, Role] | None = None) -> Any:
        draft = begin_draft(self._workspace, content, team)
        return redirect(url_for("drafts.outline", slug=draft.slug))

    def outline(self, slug: str) -> str:
        """Show all questions in order, with their mistakes and the privacy loss."""
        return self._outline(slug, QuestionListForm(formdata=None))

    def _outline(self, slug: str, list_form: QuestionListForm, list_page: int = 0) -> str:
        opened = self._drafts.open(slug)
        draft_check = check_draft(opened.content, self._caps)
        return render_template(
            "research/builder/outline.html",
            survey=opened.draft,
            content=opened.content,
            draft_check=draft_check,
            types=TYPE_NAMES,
            icons=TYPE_ICONS,
            shares=draft_check.epsilon_shares,
            form=DoForm(formdata=None),
            list_form=list_form,
            list_page=list_page or opened.content.pages[-1].key,
            titles={
                page.key: PageForm(
                    formdata=None,
                    prefix=f"p{page.key}-",
                    title=page.title.get(opened.content.own_language, ""),
                    revision=str(opened.draft.revision),
                )
                for page in opened.content.pages
            },
            total_sentences=total_sentences(draft_check, self._caps),
            protection=self._protection(opened, draft_check),
            change=self._last_change(slug),
            comments=self._drafts.comments(opened),
            is_blank=is_blank,
        )

    def edit(self, slug: str) -> Any:
        """Apply the action of the pressed button."""
        action, _, key = request.form.get("do", "").partition(" ")
        if not DoForm().validate_on_submit():
            return self.outline(slug), 422
        newest = self._drafts.open(slug).draft.revision
        if action in ON_NEWEST and whole_number(request.form.get("revision", "")) != newest:
            # The button was pressed twice, or on an outdated page.
            flash("The draft changed after you opened this page. Check it, then try again.")
            page = "drafts.plan" if action == "use-design" else "drafts.outline"
            return redirect(url_for(page, slug=slug))
        return self._apply(slug, action, whole_number(key))

    def _apply(self, slug: str, action: str, key: int) -> Any:
        email, new_key = self._gate.researcher().email, [0]
        unchanged: list[DraftContent] = []

        def change(content: DraftContent) -> DraftContent:
            unchanged[:] = [content]
            content, new_key[0] = self._edit(content, action, key)
            return content

        query: dict[str, Any] = {}
        try:
            if action == "undo":
                self._drafts.undo(slug, email, key)
                flash("The change was undone.")
            else:
                opened = self._drafts.change(slug, email, change)
                if action in CHANGES and opened.content not in unchanged:
                    query = LastChange(action, key, opened.draft.revision - 1).query
                    query["_anchor"] = _anchor_after(action, key, unchanged[0], opened.content)
        except (DesignError, NotFoundError) as error:
            flash(f"Nothing was changed: {error}.")
        return redirect(self._address_after(slug, action, key, new_key[0], query))

    def _address_after(
        self, slug: str, action: str, key: int, new_key: int, query: Mapping[str, Any]
    ) -> str:
        """Return the address of the page to show after a button was pressed."""
        question = whole_number(request.form.get("question", ""))
        if any(other["key"] == question for other in self._drafts.open(slug).content.questions):
            is_option_edit = request.form.get("did", "").startswith("option-")
            query = {**query, "_anchor": "options" if is_option_edit else None}
            return url_for("drafts.question", slug=slug, key=question, **query)
        if new_key or action in QUESTION_EDITS:
            query = {**query, "_anchor": None}
            return url_for("drafts.question", slug=slug, key=new_key or key, **query)
        name = "plan" if action == "use-design" else request.form.get("page", "")
        page = PAGES.get(name, "drafts.outline")
        if name == "plan" and action in ("ask-some", "ask-all"):
            query = {**query, "_anchor": "draws"}
        return url_for(page, slug=slug, **query)

    def _edit(self, content: DraftContent, action: str, key: int) -> tuple[DraftContent, int]:
        """Return the draft after a button was pressed, and the key of a question that it added."""
        if action == "question-add":
            kind = request.form.get("type", "")
            return edits.add_question(
                content, key, kind if kind in TYPE_NAMES else DEFAULT_KIND.type
            )
        if action == "question-from":
            copied, language = self._bank.question(request.form.get("source", ""))
            return edits.add_copy(content, key, copied, language)
        if action == "question-copy":
            return edits.duplicate_question(content, key)
        if action == "question-move":
            return edits.place_question(content, key, request.form.get("place", "")), 0
        if action == "use-design":
            return self._with_design(content, key), 0
        if action == "recommended-level":
            return self._with_recommended_level(content, key), 0
        if action in QUESTION_EDITS:
            return self._with_better_design(content, action, key), 0
        if action in EDITS:
            return EDITS[action](content, key), 0
        raise NotFoundError("the outline has no such button")

    def _with_better_design(self, content: DraftContent, action: str, key: int) -> DraftContent:
        question = check_draft(content, self._caps).questions.get(key)
        if question is None:
            raise NotFoundError("this question was removed or has mistakes")
        return QUESTION_EDITS[action](content, key, question)

    def _with_recommended_level(self, content: DraftContent, key: int) -> DraftContent:
        """Set the recommended privacy level of a question, or of all questions if key is 0."""
        draft_check, planned = check_draft(content, self._caps), parse_plan(content.plan)
        keys = {key} if key else None
        levels = recommended_levels(content, draft_check, planned, keys)
        if not levels:
            raise DesignError("no better privacy level is recommended")
        return edits.with_levels(content, levels)

    def _with_design(self, content: DraftContent, place: int) -> DraftContent:
        """Return the draft with the design at a place in the table of the plan page."""
        draft_check = check_draft(content, self._caps)
        if len(draft_check.questions) < sum(1 for _ in content.questions):
            raise DesignError("correct the questions with mistakes first")
        plan, _ = propose(draft_check, parse_plan(content.plan))
        if not 0 <= place < len(plan.designs):
            raise NotFoundError("the plan has no such design")
        return apply_design(content, draft_check, plan.designs[place])

    def write_questions(self, slug: str, key: int) -> Any:
        """Add several questions at the end of a page."""
        form, email = QuestionListForm(), self._gate.researcher().email
        if form.validate_on_submit():
            text, newest = plain(form.written.data), self._drafts.open(slug).draft.revision
            try:
                if whole_number(form.revision.data or "") != newest:
                    # The button was pressed twice, or on an outdated page.
                    raise DesignError(
                        "the draft changed after you opened this page: "
                        "check it, then press the button again"
                    )
                opened = self._drafts.change(
                    slug, email, lambda content: edits.add_question_list(content, key, text)
                )
            except (DesignError, NotFoundError) as error:
                message = str(error)
                form.written.errors = [f"{message[:1].upper()}{message[1:]}"]
            else:
                change = LastChange("questions-write", key, opened.draft.revision - 1)
                anchor = f"page-{key}"
                return redirect(
                    url_for("drafts.outline", slug=slug, **change.query, _anchor=anchor)
                )
        return self._outline(slug, form, key), 422

    def page(self, slug: str, key: int) -> Any:
        """Save the title of a page."""
        form = PageForm(prefix=f"p{key}-")
        if not form.validate_on_submit():
            return self.outline(slug), 422
        email, mine = self._gate.researcher().email, {"title": plain(form.title.data or "")}
        try:
            opened_at = whole_number(form.revision.data or "")
            saved = self._drafts.save(slug, email, PageSheet(key), mine, opened_at)
        except NotFoundError as error:
            flash(f"Nothing was changed: {error}.")
            return redirect(url_for("drafts.outline", slug=slug))
        for theirs in saved.merge.clashes.values():
            author = saved.opened.draft.author
            flash(f"Not saved: {author} renamed this page to “{theirs}” in the meantime.")
        return redirect(url_for("drafts.outline", slug=slug, _anchor=f"page-{key}"))

    def delete(self, slug: str) -> Any:
        """Delete the draft with its revisions, its test run and its team."""
        opened = self._drafts.open(slug)
        title = opened.content.title
        if not DoForm().validate_on_submit() or request.form.get("title", "").strip() != title:
            flash(f"Nothing was deleted. Type the title, {title}, to delete the draft.")
            return redirect(url_for("drafts.outline", slug=slug, _anchor="delete"))
        remove_draft(self._workspace, opened.draft)
        self._log.write("deleted a draft", slug, title)
        flash(f"The draft of {title} was deleted.")
        return redirect(url_for("research.surveys"))


def _anchor_after(action: str, key: int, before: DraftContent, after: DraftContent) -> str | None:
    """Return where the outline opens; None if the button that was pressed keeps the focus."""
    if action == "page-add":
        return f"page-{after.pages[-1].key}"
    if action != "question-remove":
        return ANCHORS.get(action)
    keys = [question["key"] for question in before.questions]
    place = keys.index(key)
    neighbors = [*keys[place + 1 : place + 2], *keys[max(place - 1, 0) : place]]
    return f"question-{neighbors[0]}" if neighbors else None


def _with_slug(content: DraftContent, slug: str) -> DraftContent:
    return replace(content, survey={**content.survey, "slug": slug})


def _file_error(error: DefinitionError) -> str:
    """Return the first mistake in another tool's file as a sentence."""
    place, text = error.mistakes[0]
    sentence = f"{place} {text}" if place else text
    return f"{sentence[:1].upper()}{sentence[1:]}"


def begin_draft(
    workspace: Workspace, content: DraftContent, team: Mapping[int, Role] | None = None
) -> Draft:
    """Store a new draft of the signed-in researcher, or return the one of a repeated request."""
    researcher, store = workspace.gate.researcher(), workspace.store
    members: dict[int, Role] = {**(team or {}), researcher.key: "owner"}
    for draft in store.drafts():
        is_mine = (draft.author, draft.content) == (researcher.email, content.to_json())
        if is_mine and time.time() - draft.at < TWICE_SECONDS:
            return draft
    draft = store.add_draft(content.to_json(), researcher.email, int(time.time()), members)
    workspace.log.write("began a draft", draft.slug, content.title)
    return draft


def remove_draft(workspace: Workspace, draft: Draft, became: str = "") -> None:
    """Delete a draft with its test run; `became` is the slug of the published survey."""
    remove_test_run(workspace.store, draft, utc_today())
    workspace.store.delete_draft(draft.key, utc_today(), became)
