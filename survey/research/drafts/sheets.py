"""The sheets of a draft: a question, the survey's texts, its plan, a language; saved one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flask import Response, flash, jsonify, redirect, render_template, request, url_for

from survey.questionnaire.drafts.check import Examined, examined
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.drafts.edits import (
    LanguageSheet,
    PlanSheet,
    QuestionSheet,
    Sheet,
    SurveySheet,
    Values,
)
from survey.questionnaire.kinds import BaseQuestion
from survey.research.access import Route
from survey.research.drafts.conditions import add_conditions
from survey.research.drafts.feedback import errors_of, marked, question_feedback, total_words
from survey.research.drafts.forms import PlanForm, QuestionForm, SheetForm, SurveyForm
from survey.research.drafts.planned import planned_of
from survey.research.drafts.rows import options_after, padded, values_of
from survey.research.drafts.saving import Drafts, Saved
from survey.research.drafts.translating import LanguagePages, translation_of
from survey.research.forms import whole_number
from survey.research.workspace import Workspace
from survey.results.plan.sentences import QuestionPlan, question_plan

MakeForm = Callable[[DraftContent, Examined, Values, Any], SheetForm]
"""Makes the form of a sheet with values, of a draft that was examined, from what was sent."""


@dataclass(frozen=True)
class Page:
    """How one kind of sheet is shown: its form, its template, and where saving leads."""

    template: str
    endpoint: str
    form: MakeForm
    more: Mapping[str, Any]


def routes(workspace: Workspace) -> list[Route]:
    """Declare the pages of the sheets."""
    pages = _Pages(workspace)
    return [
        Route("GET POST", "/<slug>/questions/<int:key>", "editor", pages.question),
        Route("GET POST", "/<slug>/texts", "editor", pages.texts),
        Route("GET POST", "/<slug>/plan", "editor", pages.plan),
        Route("GET POST", "/<slug>/languages/<language>", "editor", pages.translation),
        *LanguagePages(workspace).routes(),
    ]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._drafts, self._caps = Drafts(workspace.store), workspace.settings.caps
        self._gate = workspace.gate

    def question(self, slug: str, key: int) -> Any:
        """One question, its options and its privacy."""
        fixes = request.form.get("do", "") not in ("autosave", "look")
        page = Page("question", "drafts.question", _question_form, {"key": key})
        return self._sheet(slug, QuestionSheet(key, fixes), page)

    def texts(self, slug: str) -> Any:
        """The texts and settings of the survey."""
        page = Page("texts", "drafts.texts", _form_of(SurveyForm), {})
        return self._sheet(slug, SurveySheet(), page)

    def plan(self, slug: str) -> Any:
        """What is planned."""
        page = Page("plan", "drafts.plan", _form_of(PlanForm), {})
        return self._sheet(slug, PlanSheet(), page)

    def translation(self, slug: str, language: str) -> Any:
        """All texts in another language."""
        more = {"language": language}
        page = Page("translation", "drafts.translation", translation_of(language), more)
        return self._sheet(slug, LanguageSheet(language), page)

    def _sheet(self, slug: str, sheet: Sheet, page: Page) -> Any:
        opened = self._drafts.open(slug)
        found = examined(opened.content, self._caps)
        if request.method != "POST":  # also HEAD, which is answered like GET
            values = sheet.read(opened.content)
            form = page.form(opened.content, found, values, None)
            form.revision.data = str(opened.draft.revision)
            return self._shown(slug, page, opened.content, form)
        revision = whole_number(request.form.get("revision", ""))
        base = self._drafts.sheet_at(slug, sheet, revision) or sheet.read(opened.content)
        form = page.form(opened.content, found, base, request.form)
        if not form.validate_on_submit():
            return self._shown(slug, page, opened.content, form), 422
        mine = values_of(form, base)
        if request.form.get("do") in ("autosave", "look") and "language" in mine:
            # Half a tag that somebody still types is no language.
            mine["language"] = base["language"]
        if "options" in mine:
            mine["options"] = options_after(mine["options"], request.form.get("do", ""))
        return self._sent(slug, sheet, page, form, mine, revision)

    def _sent(
        self, slug: str, sheet: Sheet, page: Page, form: SheetForm, mine: Values, revision: int
    ) -> Any:
        """Look at what was sent without keeping it, or keep it."""
        do = request.form.get("do", "")
        if do == "look":
            content = sheet.write(self._drafts.open(slug).content, mine)
            return self._told(slug, page, content, form)
        saved = self._drafts.save(slug, self._gate.researcher().email, sheet, mine, revision)
        if do == "autosave":
            return self._told(slug, page, saved.opened.content, form, saved)
        if not saved.is_kept:
            return self._clashing(slug, page, saved), 409
        _say_what_others_did(saved, form)
        anchor = "options" if do.startswith("option-") else None
        if do == "done":
            return redirect(url_for("drafts.outline", slug=slug))
        return redirect(url_for(page.endpoint, slug=slug, **page.more, _anchor=anchor))

    def _clashing(self, slug: str, page: Page, saved: Saved) -> str:
        """The sheet with what both wrote, opened at what the others saved last."""
        content = saved.opened.content
        values = saved.merged.values
        form = page.form(content, examined(content, self._caps), values, None)
        form.revision.data = str(saved.opened.draft.revision)
        return self._shown(slug, page, content, form, saved)

    def _shown(
        self,
        slug: str,
        page: Page,
        content: DraftContent,
        form: SheetForm,
        saved: Saved | None = None,
    ) -> str:
        found = examined(content, self._caps)
        opened = self._drafts.open(slug)
        elsewhere = self._mark(form, found, content, page)
        return render_template(
            f"research/drafts/{page.template}.html",
            survey=opened.draft,
            content=content,
            form=form,
            found=found,
            elsewhere=elsewhere,
            clashes=saved.merged.clashes if saved and not saved.is_kept else {},
            who=opened.draft.author,
            feedback=self._feedback(slug, page, content, found),
            plans=_plans(found, content) if isinstance(form, PlanForm) else [],
            **page.more,
        )

    def _told(
        self,
        slug: str,
        page: Page,
        content: DraftContent,
        form: SheetForm,
        saved: Saved | None = None,
    ) -> Response:
        """The same for the page's own program, which writes it where it belongs."""
        found = examined(content, self._caps)
        elsewhere = self._mark(form, found, content, page)
        told: dict[str, Any] = {
            "errors": errors_of(form),
            "elsewhere": elsewhere,
            "live": self._feedback(slug, page, content, found),
        }
        if saved is not None:
            told["revision"] = saved.opened.draft.revision if saved.is_kept else 0
            told["clashes"] = [_label(form, name) for name in saved.merged.clashes]
            told["who"] = saved.opened.draft.author
        return jsonify(told)

    def _feedback(
        self, slug: str, page: Page, content: DraftContent, found: Examined
    ) -> dict[str, str]:
        if "key" in page.more:
            planned = planned_of(content.plan)
            return question_feedback(slug, page.more["key"], found, planned, self._caps).form
        total, warning = total_words(found, self._caps)
        return {"total": total, "warning": warning}

    def _mark(
        self, form: SheetForm, found: Examined, content: DraftContent, page: Page
    ) -> list[str]:
        if "key" in page.more:
            own = [m for m in found.of_question(page.more["key"]) if not m.language]
            return marked(form, own)
        if isinstance(form, PlanForm):
            return marked(form, list(planned_of(content.plan).mistakes))
        if isinstance(form, SurveyForm):
            marked(form, [m for m in found.mistakes if m.question is None and m.page is None])
        return []


def _plans(found: Examined, content: DraftContent) -> list[tuple[BaseQuestion, QuestionPlan]]:
    """Every question that is right, with what the planned reports tell of it."""
    planned = planned_of(content.plan)
    questions = [
        found.questions[one["key"]] for one in content.questions if one["key"] in found.questions
    ]
    return [(one, question_plan(one, planned.n, planned.margin)) for one in questions]


def _form_of(kind: type[SheetForm]) -> MakeForm:
    def make(_: DraftContent, _found: Examined, values: Values, formdata: Any) -> SheetForm:
        form: SheetForm = kind(formdata=formdata, data=values)
        return form

    return make


def _question_form(
    content: DraftContent, found: Examined, values: Values, formdata: Any
) -> SheetForm:
    """The form of the question as it was opened: what was sent is of that type."""
    shown = {**values, "options": padded(values["options"])} if formdata is None else values
    form = QuestionForm(formdata=formdata, data=shown).for_type(str(values["type"]))
    add_conditions(form, content, found, values)
    return form


def _label(form: SheetForm, name: str) -> str:
    return str(form[name].label.text) if name in form else name


def _say_what_others_did(saved: Saved, form: SheetForm) -> None:
    if saved.was_removed:
        flash("Somebody had removed this question meanwhile. It is back, at the end.")
    elif saved.merged.theirs:
        names = ", ".join(_label(form, name) for name in saved.merged.theirs)
        flash(f"Saved. Meanwhile somebody else changed here: {names}. Both are kept.")
    else:
        flash("Saved.")
