"""The sheets of a draft (a question, the texts, the plan, a translation), each saved on its own.

Saving merges a sheet with what others saved in the meantime.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flask import Response, flash, jsonify, redirect, render_template, request, url_for
from pydantic import TypeAdapter, ValidationError

from survey.errors import ConflictError, DesignError, NotFoundError
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.check import Examined, examined
from survey.questionnaire.drafts.draft import DraftContent, Question
from survey.questionnaire.drafts.edits import (
    LanguageSheet,
    Merged,
    PlanSheet,
    QuestionSheet,
    Sheet,
    SurveySheet,
    Values,
    merged,
    texts_of,
)
from survey.questionnaire.kinds import BaseQuestion, kind_of
from survey.questionnaire.texts import MAX_LANGUAGES, Language
from survey.research.access import Route
from survey.research.drafts.feedback import errors_of, marked, question_feedback, total_words
from survey.research.drafts.forms import (
    DoForm,
    LanguageForm,
    PlanForm,
    QuestionForm,
    SheetForm,
    SurveyForm,
    add_conditions,
    options_after,
    padded,
    translation_form,
    values_of,
)
from survey.research.drafts.plan import planned_of
from survey.research.forms import whole_number
from survey.research.workspace import Workspace
from survey.results.plan.sentences import QuestionPlan, question_plan
from survey.store import Draft, Store, draft_key

TRIES = 5
"""How often a save begins again because another one was quicker."""


@dataclass(frozen=True)
class Opened:
    """A revision of a draft, read."""

    draft: Draft
    content: DraftContent


@dataclass(frozen=True)
class Saved:
    """What became of a save: nothing was kept while there are clashes to decide."""

    opened: Opened
    merged: Merged
    was_removed: bool

    @property
    def is_kept(self) -> bool:
        """Whether what was sent is in the draft now."""
        return not self.merged.clashes


class Drafts:
    """Reads and writes the drafts of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, slug: str) -> Opened:
        """The newest revision; NotFoundError when the draft is gone."""
        draft = self._store.draft(draft_key(slug))
        if draft is None:
            raise NotFoundError("this draft was published or deleted")
        return Opened(draft, DraftContent.from_json(draft.content))

    def change(self, slug: str, who: str, change: Callable[[DraftContent], DraftContent]) -> Opened:
        """Do something to whatever is the newest revision."""
        for _ in range(TRIES):
            opened = self.open(slug)
            content = change(opened.content)
            if content == opened.content:
                return opened
            try:
                draft = self._store.save_draft(opened.draft, content.to_json(), who, _now())
            except ConflictError:
                continue
            return Opened(draft, content)
        raise ConflictError("others are saving this draft; try again in a moment")

    def save(self, slug: str, who: str, sheet: Sheet, mine: Values, revision: int) -> Saved:
        """Save a sheet that was opened at a revision.

        What others changed in it meanwhile stays; where both changed the same field nothing is
        saved, and the clashes say what the others wrote.
        """
        base = self.sheet_at(slug, sheet, revision) or {}
        found: list[tuple[Merged, bool]] = []

        def write(content: DraftContent) -> DraftContent:
            theirs = _read(sheet, content)
            both = merged(base, mine, mine if theirs is None else theirs)
            found[:] = [(both, theirs is None)]
            return content if both.clashes else sheet.write(content, both.values)

        opened = self.change(slug, who, write)
        return Saved(opened, *found[0])

    def sheet_at(self, slug: str, sheet: Sheet, revision: int) -> Values | None:
        """What a sheet held in a revision; None when that is not kept, or had no such part."""
        draft = self._store.draft(draft_key(slug), revision)
        return _read(sheet, DraftContent.from_json(draft.content)) if draft else None


def _read(sheet: Sheet, content: DraftContent) -> Values | None:
    """What a sheet holds; None when its part was removed."""
    try:
        return sheet.read(content)
    except NotFoundError:
        return None


def _now() -> int:
    return int(time.time())


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
            author=opened.draft.author,
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
        flash("Someone removed this question in the meantime. It is back, at the end.")
    elif saved.merged.theirs:
        names = ", ".join(_label(form, name) for name in saved.merged.theirs)
        flash(f"Saved. In the meantime someone else changed: {names}. Both changes are kept.")
    else:
        flash("Saved.")


_LANGUAGE: TypeAdapter[str] = TypeAdapter(Language)

USUAL = {"en": "English", "es": "Español", "pt": "Português", "ar": "العربية"}
"""Languages in which the pages around a survey speak too."""


class LanguagePages:
    """The list of a draft's languages."""

    def __init__(self, workspace: Workspace) -> None:
        self._drafts, self._caps = Drafts(workspace.store), workspace.settings.caps
        self._gate = workspace.gate

    def routes(self) -> list[Route]:
        """Declare the pages of the list."""
        remove = "/<slug>/languages/<language>/remove"
        return [
            Route("GET POST", "/<slug>/languages", "editor", self.languages),
            Route("POST", remove, "editor", self.remove_language),
        ]

    def languages(self, slug: str) -> Any:
        """Those there are, how far each is translated, and one more."""
        form = LanguageForm()
        if form.validate_on_submit() and self._added(slug, form):
            language = form.language.data.strip()
            return redirect(url_for("drafts.translation", slug=slug, language=language))
        opened = self._drafts.open(slug)
        page = render_template(
            "research/drafts/languages.html",
            survey=opened.draft,
            content=opened.content,
            form=form,
            remove=DoForm(formdata=None),
            names=USUAL,
            progress={tag: progress(opened.content, tag) for tag in opened.content.languages},
            found=examined(opened.content, self._caps),
        )
        return page, 422 if form.errors else 200

    def _added(self, slug: str, form: LanguageForm) -> bool:
        language = form.language.data.strip()
        try:
            _LANGUAGE.validate_python(language)
            if len(self._drafts.open(slug).content.languages) + 1 >= MAX_LANGUAGES:
                raise DesignError(f"a survey has at most {MAX_LANGUAGES} languages")
            who = self._gate.researcher().email
            self._drafts.change(slug, who, lambda one: edits.with_language(one, language))
        except ValidationError:
            form.language.errors = ["Enter a language as its tag, such as es or pt-BR"]
        except DesignError as error:
            form.language.errors = [str(error)]
        return not form.language.errors

    def remove_language(self, slug: str, language: str) -> Any:
        """One language less, with all its texts."""
        if DoForm().validate_on_submit():
            who = self._gate.researcher().email
            try:
                self._drafts.change(slug, who, lambda one: edits.without_language(one, language))
                flash(f"The texts in {language} were deleted.")
            except DesignError as error:
                flash(f"Nothing was removed: {error}.")
        return redirect(url_for("drafts.languages", slug=slug))


def translation_of(language: str) -> Any:
    """Makes the form of all texts in one language, beside those of the survey's own."""

    def make(content: DraftContent, _found: Examined, values: Values, formdata: Any) -> SheetForm:
        if language not in content.languages:
            raise NotFoundError(f"this draft has no texts in {language[:20]}")
        to_translate = list(_to_translate(content))
        data = {name: values.get(name, "") for name, _ in to_translate}
        form = translation_form(to_translate, formdata, **data)
        for field in form:
            field.render_kw = {"lang": language, "dir": "auto", "rows": 2}
        return form

    return make


def _to_translate(content: DraftContent) -> Iterator[tuple[str, str]]:
    """The names and texts of the own language that respondents see, in their order."""
    shown = {
        f"question-{question['key']}-{name}"
        for question in content.questions
        for name in _shown_texts(question)
    }
    for name, texts in texts_of(content):
        text = texts.get(content.own, "")
        if text and (not name.startswith("question-") or name in shown):
            yield name, text


def _shown_texts(question: Question) -> list[str]:
    """What respondents see of a question of its type; the rest of a draft's is for other types."""
    own = kind_of(question).fields
    keys = [option["key"] for option in question["options"]] if "options" in own else []
    always = ("text", "help", "prefer_not_to_say_label", "does_not_apply_label")
    return [*always, *own, *(f"option-{key}" for key in keys)]


def progress(content: DraftContent, language: str) -> tuple[int, int]:
    """How many texts are translated, of how many."""
    names = {name for name, _ in _to_translate(content)}
    told = [texts for name, texts in texts_of(content) if name in names]
    return sum(1 for texts in told if texts.get(language)), len(told)
