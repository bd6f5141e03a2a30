"""The editor of a draft: a question, the texts, the plan or a translation is saved separately.

Saving merges the values with those that other editors saved in the meantime.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from flask import Response, flash, jsonify, redirect, render_template, request, url_for
from pydantic import TypeAdapter, ValidationError

from survey.errors import ConflictError, DesignError, NotFoundError, StoreError
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.check import DraftCheck, check_draft, privacy_limits
from survey.questionnaire.drafts.draft import AUTOMATIC, DraftContent, Question, is_blank
from survey.questionnaire.drafts.edits import (
    LanguageSheet,
    Merge,
    PlanSheet,
    QuestionSheet,
    Sheet,
    SurveySheet,
    Values,
    merge,
    named_texts,
)
from survey.questionnaire.kinds import BaseQuestion, kind_of
from survey.questionnaire.privacy_loss import publication_warnings
from survey.questionnaire.similar_texts import METHOD
from survey.questionnaire.texts import MAX_LANGUAGES, Language
from survey.research.access import Pages, Route, Workspace, other_definitions
from survey.research.builder import forms
from survey.research.builder.design import (
    DesignPanel,
    design_panel,
    draw_table,
    recommended_levels,
)
from survey.research.builder.feedback import (
    NearestValues,
    draw_choices,
    errors_of,
    mark_fields,
    question_feedback,
    remedies_of,
    sampling_sentences,
    total_sentences,
)
from survey.research.builder.plan import parse_plan
from survey.research.forms import whole_number
from survey.respondent_texts import closest_language, interface_names, is_reviewed
from survey.results.plan.sentences import QuestionPlan, question_plan
from survey.store import Comment, Draft, Store, draft_key

ATTEMPTS = 5
"""Attempts of a save while other saves come first."""


_LANGUAGE: TypeAdapter[str] = TypeAdapter(Language)


WHOLE_DRAFT = 0
"""The question key of comments on the whole draft."""

CommentsByQuestion = Mapping[int, Sequence[Comment]]


@dataclass(frozen=True)
class OpenDraft:
    """A revision of a draft with its content."""

    draft: Draft
    content: DraftContent


@dataclass(frozen=True)
class Saved:
    """The result of a save, which stores nothing while there are clashes."""

    opened: OpenDraft
    merge: Merge
    was_removed: bool

    @property
    def is_saved(self) -> bool:
        """Whether the sent values are now in the draft."""
        return not self.merge.clashes


def readable_contents(drafts: Iterable[Draft]) -> Iterator[tuple[Draft, DraftContent]]:
    """Yield each draft with its content; skip drafts whose content cannot be read.

    One damaged draft must not break a page that lists others.
    """
    for draft in drafts:
        with suppress(StoreError):
            yield draft, DraftContent.from_json(draft.content)


class Drafts:
    """Reads and writes the drafts of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, slug: str) -> OpenDraft:
        """Return the newest revision; raises NotFoundError if the draft is gone."""
        draft = self._store.draft(draft_key(slug))
        if draft is None:
            raise NotFoundError("this draft was published or deleted")
        return OpenDraft(draft, DraftContent.from_json(draft.content))

    def change(
        self,
        slug: str,
        email: str,
        change: Callable[[DraftContent], DraftContent],
        pictures: Sequence[tuple[str, bytes]] = (),
    ) -> OpenDraft:
        """Change the newest revision, even if others changed it, and store its new pictures."""
        for _ in range(ATTEMPTS):
            opened = self.open(slug)
            content = change(opened.content)
            if content == opened.content:
                return opened
            with suppress(ConflictError):
                now = int(time.time())
                draft = self._store.save_draft(
                    opened.draft, content.to_json(), email, now, pictures
                )
                return OpenDraft(draft, content)
        raise ConflictError("others are saving this draft; try again in a moment")

    def save(self, slug: str, email: str, sheet: Sheet, mine: Values, revision: int) -> Saved:
        """Save a sheet that was opened at a revision.

        Changes that others made to it since then stay. If both changed the same field, nothing is
        saved, and the clashes hold the other values.
        """
        base = self.sheet_at(slug, sheet, revision) or {}
        results: list[tuple[Merge, bool]] = []

        def write(content: DraftContent) -> DraftContent:
            theirs = _values(sheet, content)
            result = merge(base, mine, mine if theirs is None else theirs)
            results[:] = [(result, theirs is None)]
            return content if result.clashes else sheet.apply(content, result.values)

        opened = self.change(slug, email, write)
        return Saved(opened, *results[0])

    def undo(self, slug: str, email: str, revision: int) -> OpenDraft:
        """Undo what the change after a revision added, removed or moved."""
        revisions = [self._store.draft(draft_key(slug), n) for n in (revision, revision + 1)]
        before, after = (
            DraftContent.from_json(draft.content) if draft else None for draft in revisions
        )
        if before is None or after is None:
            raise NotFoundError("the earlier revision is no longer stored")
        return self.change(slug, email, lambda content: edits.undo(content, before, after))

    def comments(self, opened: OpenDraft) -> CommentsByQuestion:
        """Return the comments on each question of a draft by its key, oldest first.

        Comments on removed questions are left out: they return when the removal is undone.
        """
        keys = (WHOLE_DRAFT, *(question["key"] for question in opened.content.questions))
        by_key: dict[int, list[Comment]] = {key: [] for key in keys}
        for comment in self._store.comments(opened.draft.key):
            if comment.question in by_key:
                by_key[comment.question].append(comment)
        return by_key

    def sheet_at(self, slug: str, sheet: Sheet, revision: int) -> Values | None:
        """Return a sheet's values in a revision; None if the revision or the part is gone."""
        draft = self._store.draft(draft_key(slug), revision)
        return _values(sheet, DraftContent.from_json(draft.content)) if draft else None


def _values(sheet: Sheet, content: DraftContent) -> Values | None:
    """Return a sheet's values; None if its part was removed."""
    try:
        return sheet.values(content)
    except NotFoundError:
        return None


CHANGES: Mapping[str, str] = {
    "question-add": "Question added.",
    "questions-write": "Questions added.",
    "question-from": "Question added.",
    "question-copy": "Question duplicated.",
    "question-up": "Question moved.",
    "question-down": "Question moved.",
    "question-move": "Question moved.",
    "question-remove": "Question removed.",
    "page-add": "Page added.",
    "page-up": "Page moved.",
    "page-down": "Page moved.",
    "page-remove": "Page removed. Its questions moved to the page beside it.",
    "option-add": "Answer added.",
    "option-up": "Answer moved.",
    "option-down": "Answer moved.",
    "option-remove": "Answer removed.",
    "option-paste": "Answers added.",
    "ask-some": "Questions per person: {place}.",
    "ask-all": "Each person is now asked all questions.",
    "recommended-level": "Recommended privacy level set.",
    "use-design": "The draft now uses this design.",
    "use-mechanism": "The question now uses this mechanism.",
    "use-ranges": "The question now asks for ranges. Check their wording.",
    "language-remove": "Language and its texts removed.",
}
"""The buttons whose change can be undone, and the notice of the page that follows."""


@dataclass(frozen=True)
class LastChange:
    """The change that led to a page, which the page offers to undo.

    `action` is the button, `place` the key or row that keeps the focus, and `before` the revision
    before the change. Without such a change, `text` is empty.
    """

    action: str
    place: int
    before: int

    @classmethod
    def of_request(cls) -> LastChange:
        """Return the change that the address of the page names."""
        query = request.args
        place, before = (whole_number(query.get(name, ""), -1) for name in ("place", "undo"))
        return cls(query.get("did", ""), place, before)

    @property
    def query(self) -> dict[str, Any]:
        """The arguments of the page's address."""
        return {"did": self.action, "place": self.place, "undo": self.before}

    @property
    def text(self) -> str:
        """The notice."""
        return CHANGES.get(self.action, "").format(place=self.place)


MakeForm = Callable[[DraftContent, DraftCheck, Values, Any], forms.SheetForm]
"""Makes a sheet's form from the draft, its check, the values and the form data."""


@dataclass(frozen=True)
class Page:
    """How a sheet is shown: its template, its endpoint, its form and template variables."""

    template: str
    endpoint: str
    form: MakeForm
    variables: Mapping[str, Any]


def routes(workspace: Workspace) -> list[Route]:
    """Declare the pages of the sheets."""
    pages = _EditorPages(workspace)
    return [
        Route("GET POST", "/<slug>/questions/<int:key>", "editor", pages.question),
        Route("GET POST", "/<slug>/texts", "editor", pages.texts),
        Route("GET POST", "/<slug>/plan", "editor", pages.plan),
        Route("GET POST", "/<slug>/languages/<language>", "editor", pages.translation),
        Route("GET POST", "/<slug>/languages", "editor", pages.languages),
        Route("POST", "/<slug>/languages/<language>/remove", "editor", pages.remove_language),
    ]


@dataclass(frozen=True)
class Protection:
    """The protection of a draft: warnings, and improvements that take one click.

    `sampling` states how many questions each person is asked; it is empty if all are asked.
    `proposed_draw` is a better number out of `n_groups`, or 0. `has_links` is true if skip logic
    links questions to groups. `n_levels` counts the questions with a recommendation.
    """

    warnings: list[str]
    sampling: str
    proposed_draw: int
    n_groups: int
    has_links: bool
    n_levels: int
    method: str = METHOD


class DraftPages(Pages):
    """Base of the views of drafts."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._drafts, self._caps = Drafts(workspace.store), workspace.settings.caps

    def _protection(self, opened: OpenDraft, draft_check: DraftCheck) -> Protection:
        """Return the protection of a draft, for the researchers who publish it."""
        members = self._store.members(opened.draft.slug)
        others = other_definitions(
            self._store,
            str(opened.content.survey["slug"]),
            [member.researcher for member in members],
            self._gate.roles(),
        )
        is_automatic = opened.content.survey["questions_per_person"] == AUTOMATIC
        planned = parse_plan(opened.content.plan)
        return Protection(
            warnings=publication_warnings(draft_check.asked, self._caps, others),
            sampling=sampling_sentences(draft_check, planned, is_automatic=is_automatic),
            proposed_draw=draft_check.proposed_draw or 0,
            n_groups=draft_check.asked.n_groups,
            has_links=draft_check.asked.n_groups < len(draft_check.published),
            n_levels=len(recommended_levels(opened.content, draft_check, planned)),
        )

    def _last_change(self, slug: str) -> LastChange:
        """Return the change that the address names, if the reader made it.

        A link from another person must not claim a change, and offer to undo a different one.
        """
        change = LastChange.of_request()
        made = self._store.draft(draft_key(slug), change.before + 1) if change.text else None
        if made is None or made.author != self._gate.researcher().email:
            return LastChange("", 0, 0)
        return change

    def _change(self, slug: str, change: Callable[[DraftContent], DraftContent]) -> OpenDraft:
        return self._drafts.change(slug, self._gate.researcher().email, change)


class _EditorPages(DraftPages):
    def question(self, slug: str, key: int) -> Any:
        """Edit one question, its options and its privacy."""
        fixes = request.form.get("do", "") not in ("autosave", "look")
        page = Page("question", "drafts.question", _question_form, {"key": key})
        return self._sheet(slug, QuestionSheet(key, fixes), page)

    def texts(self, slug: str) -> Any:
        """Edit the texts and settings of the survey."""
        page = Page("texts", "drafts.texts", _survey_form, {})
        return self._sheet(slug, SurveySheet(), page)

    def plan(self, slug: str) -> Any:
        """Edit the plan."""
        page = Page("plan", "drafts.plan", _form_of(forms.PlanForm), {})
        return self._sheet(slug, PlanSheet(), page)

    def translation(self, slug: str, language: str) -> Any:
        """Edit all texts in another language."""
        variables = {"language": language}
        page = Page("translation", "drafts.translation", translation_of(language), variables)
        return self._sheet(slug, LanguageSheet(language), page)

    def languages(self, slug: str) -> Any:
        """List the languages and their progress, and add one."""
        form = forms.LanguageForm()
        if form.validate_on_submit() and self._added(slug, form):
            language = form.language.data.strip()
            return redirect(url_for("drafts.translation", slug=slug, language=language))
        opened = self._drafts.open(slug)
        page = render_template(
            "research/builder/languages.html",
            survey=opened.draft,
            content=opened.content,
            form=form,
            remove=forms.DoForm(formdata=None),
            names=interface_names(),
            closest=closest_language,
            is_reviewed=is_reviewed,
            progress={tag: progress(opened.content, tag) for tag in opened.content.languages},
            change=self._last_change(slug),
            draft_check=check_draft(opened.content, self._caps),
        )
        return page, 422 if form.errors else 200

    def _added(self, slug: str, form: forms.LanguageForm) -> bool:
        language = form.language.data.strip()
        try:
            _LANGUAGE.validate_python(language)
            if len(self._drafts.open(slug).content.languages) + 1 >= MAX_LANGUAGES:
                raise DesignError(f"a survey has at most {MAX_LANGUAGES} languages")
            self._change(slug, lambda content: edits.with_language(content, language))
        except ValidationError:
            form.language.errors = ["Enter a language as its tag, such as es or pt-BR"]
        except DesignError as error:
            form.language.errors = [str(error)]
        return not form.language.errors

    def remove_language(self, slug: str, language: str) -> Any:
        """Remove a language with all its texts."""
        query: dict[str, Any] = {}
        if forms.DoForm().validate_on_submit():
            try:
                opened = self._change(
                    slug, lambda content: edits.without_language(content, language)
                )
                query = LastChange("language-remove", 0, opened.draft.revision - 1).query
            except DesignError as error:
                flash(f"Nothing was removed: {error}.")
        return redirect(url_for("drafts.languages", slug=slug, **query))

    def _sheet(self, slug: str, sheet: Sheet, page: Page) -> Any:
        opened = self._drafts.open(slug)
        draft_check = check_draft(opened.content, self._caps)
        if request.method != "POST":  # also HEAD, which is answered like GET
            values = sheet.values(opened.content)
            form = page.form(opened.content, draft_check, values, None)
            form.revision.data = str(opened.draft.revision)
            return self._render(slug, page, opened.content, form)
        revision = whole_number(request.form.get("revision", ""))
        base = self._drafts.sheet_at(slug, sheet, revision) or sheet.values(opened.content)
        form = page.form(opened.content, draft_check, base, request.form)
        if not form.validate_on_submit():
            return self._render(slug, page, opened.content, form), 422
        mine = forms.values_of(form, base)
        if request.form.get("do") in ("autosave", "look") and "language" in mine:
            # While a researcher types, the field holds half a language tag.
            mine["language"] = base["language"]
        do = request.form.get("do", "")
        if do in ("save", "done", "next"):
            mine = _with_pasted(form, mine)
        if do.startswith("nearest "):
            nearest = NearestValues.parse(do).values
            mine |= {name: value for name, value in nearest if name in mine}
        return self._receive(slug, sheet, page, form, mine, revision)

    def _receive(
        self,
        slug: str,
        sheet: Sheet,
        page: Page,
        form: forms.SheetForm,
        mine: dict[str, Any],
        revision: int,
    ) -> Any:
        """Save what was sent, or only return the feedback on it."""
        do = request.form.get("do", "")
        if do == "look":
            content = sheet.apply(self._drafts.open(slug).content, mine)
            return self._respond(slug, page, content, form)
        saved = self._drafts.save(slug, self._gate.researcher().email, sheet, mine, revision)
        if do == "autosave":
            return self._respond(slug, page, saved.opened.content, form, saved)
        if not saved.is_saved:
            # Show the sheet with both versions, opened at the newest revision.
            content = saved.opened.content
            form = page.form(content, check_draft(content, self._caps), saved.merge.values, None)
            form.revision.data = str(saved.opened.draft.revision)
            return self._render(slug, page, content, form, saved), 409
        if do.startswith("option-") and "options" in mine:
            query = self._change_options(slug, sheet, form, mine, saved)
            return redirect(url_for(page.endpoint, slug=slug, **page.variables, **query))
        _flash_merge(saved, form)
        if do == "next" and isinstance(sheet, QuestionSheet):
            return redirect(self._next_question(slug, sheet.key))
        if do == "done":
            return redirect(url_for("drafts.outline", slug=slug))
        return redirect(url_for(page.endpoint, slug=slug, **page.variables))

    def _next_question(self, slug: str, key: int) -> str:
        """Add a question of the same type to the page of a question; return its address.

        Reuse a blank question of the page, because the button may be pressed twice.
        """
        new_key = [0]

        def add(content: DraftContent) -> DraftContent:
            page = next(p for p in content.pages if any(q["key"] == key for q in p.questions))
            blank = (q["key"] for q in page.questions if is_blank(q) and q["key"] != key)
            new_key[0] = next(blank, 0)
            if new_key[0]:
                return content
            kind = content.question(key)["type"]
            content, new_key[0] = edits.add_question(content, page.key, kind)
            return content

        try:
            opened = self._change(slug, add)
        except DesignError as error:
            flash(f"No question was added: {error}.")
            return url_for("drafts.outline", slug=slug)
        change = LastChange("question-add", new_key[0], opened.draft.revision - 1)
        return url_for("drafts.question", slug=slug, key=new_key[0], **change.query)

    def _change_options(
        self, slug: str, sheet: Sheet, form: forms.SheetForm, mine: dict[str, Any], saved: Saved
    ) -> dict[str, Any]:
        """Apply the button of a row after the form was saved, so that undoing it keeps the texts.

        Return the arguments of the address of the page that follows.
        """
        action, _, number = request.form["do"].partition(" ")
        place, before = whole_number(number, -1), saved.opened.draft.revision
        if action == "option-paste":
            options = _with_pasted(form, mine)["options"]
        else:
            options = forms.options_after(form.options.data, action, place)
        if "options" not in saved.merge.theirs:
            values = {**mine, "options": options}
            saved = self._drafts.save(slug, self._gate.researcher().email, sheet, values, before)
        if not saved.is_saved or saved.opened.draft.revision != before + 1:
            flash(
                "Nothing was changed: someone else changed the answers. Check them, then try again."
            )
            return {}
        steps = {"option-up": -1, "option-down": 1}
        is_added = action in ("option-add", "option-paste")
        place = len(options) - 1 if is_added else place + steps.get(action, 0)
        return LastChange(action, place, before).query

    def _render(
        self,
        slug: str,
        page: Page,
        content: DraftContent,
        form: forms.SheetForm,
        saved: Saved | None = None,
    ) -> str:
        draft_check = check_draft(content, self._caps)
        opened = self._drafts.open(slug)
        elsewhere = self._mark(form, draft_check, content, page)
        return render_template(
            f"research/builder/{page.template}.html",
            survey=opened.draft,
            content=content,
            form=form,
            draft_check=draft_check,
            elsewhere=elsewhere,
            clashes=saved.merge.clashes if saved and not saved.is_saved else {},
            author=opened.draft.author,
            feedback=self._feedback(slug, page, content, draft_check),
            plans=_plans(draft_check, content) if isinstance(form, forms.PlanForm) else [],
            design=_design(draft_check, content) if isinstance(form, forms.PlanForm) else None,
            draw_table=draw_table(draft_check, parse_plan(content.plan))
            if isinstance(form, forms.PlanForm)
            else None,
            topics=list(content.topics),
            earlier_answers=forms.earlier_answers,
            limits=self._limits(page, content),
            change=self._last_change(slug),
            comments=self._drafts.comments(opened),
            **page.variables,
        )

    def _respond(
        self,
        slug: str,
        page: Page,
        content: DraftContent,
        form: forms.SheetForm,
        saved: Saved | None = None,
    ) -> Response:
        """Return errors and feedback for the page's script."""
        draft_check = check_draft(content, self._caps)
        elsewhere = self._mark(form, draft_check, content, page)
        response: dict[str, Any] = {
            "errors": errors_of(form),
            "remedies": remedies_of(form),
            "limits": self._limits(page, content),
            "elsewhere": elsewhere,
            "live": self._feedback(slug, page, content, draft_check),
        }
        if saved is not None:
            response["revision"] = saved.opened.draft.revision if saved.is_saved else 0
            response["clashes"] = [_label(form, name) for name in saved.merge.clashes]
            response["who"] = saved.opened.draft.author
        return jsonify(response)

    def _feedback(
        self, slug: str, page: Page, content: DraftContent, draft_check: DraftCheck
    ) -> dict[str, str]:
        if "key" in page.variables:
            key, planned = page.variables["key"], parse_plan(content.plan)
            return question_feedback(slug, key, content, draft_check, planned, self._caps).form
        return asdict(total_sentences(draft_check, self._caps))

    def _limits(self, page: Page, content: DraftContent) -> dict[str, list[float]]:
        """Return the limits of the privacy slider; empty on pages without a question."""
        key = page.variables.get("key", 0)
        exists = any(question["key"] == key for question in content.questions)
        return privacy_limits(content, key, self._caps) if exists else {}

    def _mark(
        self, form: forms.SheetForm, draft_check: DraftCheck, content: DraftContent, page: Page
    ) -> list[str]:
        if "key" in page.variables:
            key = page.variables["key"]
            is_new = any(q["key"] == key and is_blank(q) for q in content.questions)
            if is_new and request.method != "POST":
                return []
            return mark_fields(form, [m for m in draft_check.of_question(key) if not m.language])
        if isinstance(form, forms.PlanForm):
            return mark_fields(form, list(parse_plan(content.plan).mistakes))
        if isinstance(form, forms.SurveyForm):
            of_survey = [m for m in draft_check.mistakes if m.question is None and m.page is None]
            mark_fields(form, of_survey)
        return []


def _plans(
    draft_check: DraftCheck, content: DraftContent
) -> list[tuple[BaseQuestion, QuestionPlan]]:
    """Return every question without mistakes, with its planned precision."""
    planned, valid = parse_plan(content.plan), draft_check.questions
    questions = [
        row
        for q in content.questions
        if q["key"] in valid
        for row in (valid[q["key"]], *draft_check.rows.get(q["key"], ()))
    ]
    share = draft_check.asked.share_asked
    return [(q, question_plan(q, planned.n, planned.margin, share)) for q in questions]


def _design(draft_check: DraftCheck, content: DraftContent) -> DesignPanel | None:
    """Return the proposed design; None for fewer than two questions without mistakes."""
    if len(draft_check.questions) < 2:
        return None
    n_questions = sum(1 for _ in content.questions)
    return design_panel(draft_check, parse_plan(content.plan), n_questions)


def _form_of(kind: type[forms.SheetForm]) -> MakeForm:
    def make(
        _: DraftContent, _draft_check: DraftCheck, values: Values, formdata: Any
    ) -> forms.SheetForm:
        form: forms.SheetForm = kind(formdata=formdata, data=values)
        return form

    return make


def _survey_form(
    _: DraftContent, draft_check: DraftCheck, values: Values, formdata: Any
) -> forms.SheetForm:
    form = forms.SurveyForm(formdata=formdata, data=values)
    field = form.questions_per_person
    field.choices = forms.choices(draw_choices(draft_check, str(field.data)))
    return form


def _question_form(
    content: DraftContent, draft_check: DraftCheck, values: Values, formdata: Any
) -> forms.SheetForm:
    """Return the form of the question as it was opened: the sent fields are of that type."""
    data = (
        {**values, "options": forms.pad_options(values["options"])} if formdata is None else values
    )
    form = forms.QuestionForm(formdata=formdata, data=data).for_type(str(values["type"]))
    forms.add_conditions(form, content, draft_check, values)
    forms.add_companions(form, content, values)
    return form


def _with_pasted(form: forms.SheetForm, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the answers that were pasted below the rows."""
    text = form.pasted.data if "pasted" in form else ""
    return {**values, "options": forms.pasted_options(values["options"], text)} if text else values


def _label(form: forms.SheetForm, name: str) -> str:
    return str(form[name].label.text) if name in form else name


def _flash_merge(saved: Saved, form: forms.SheetForm) -> None:
    if saved.was_removed:
        flash(
            "Someone removed this question while you were editing. Saving restored it, at the end."
        )
    elif saved.merge.theirs:
        names = ", ".join(_label(form, name) for name in saved.merge.theirs)
        flash(f"Saved. Someone else changed at the same time: {names}. Both changes are saved.")
    else:
        flash("Saved.")


def translation_of(language: str) -> Any:
    """Return the maker of the form of all texts in one language."""

    def make(
        content: DraftContent, _draft_check: DraftCheck, values: Values, formdata: Any
    ) -> forms.SheetForm:
        if language not in content.languages:
            raise NotFoundError(f"this draft has no texts in {language[:20]}")
        to_translate = list(_to_translate(content))
        data = {name: values.get(name, "") for name, _ in to_translate}
        form = forms.translation_form(to_translate, formdata, **data)
        for field in form:
            field.render_kw = {"lang": language, "dir": "auto", "rows": 2}
        return form

    return make


def _to_translate(content: DraftContent) -> Iterator[tuple[str, str]]:
    """Yield the names and texts that respondents see, in order."""
    visible = {
        f"question-{question['key']}-{name}"
        for question in content.questions
        for name in _visible_texts(question)
    }
    usual = {f"usual-{name}" for q in content.questions for name in content.usual_in(q)}
    topics: set[str] = set()
    for name, texts in named_texts(content):
        text = texts.get(content.own_language, "")
        if name.endswith("-topic"):
            # One translation serves all questions of a topic.
            if text in topics:
                continue
            topics.add(text)
        is_shared = not name.startswith(("question-", "usual-"))
        if text and (is_shared or name in visible or name in usual):
            yield name, text


def _visible_texts(question: Question) -> list[str]:
    """Return the names of the texts that a question of its type shows."""
    fields = kind_of(question).fields
    keys = [option["key"] for option in question["options"]] if "options" in fields else []
    rows = [row["key"] for row in question["rows"]] if "rows" in fields else []
    always = ("text", "help", "topic", "prefer_not_to_say_label", "does_not_apply_label")
    options = (f"{part}-{key}" for key in keys for part in ("option", "picture"))
    return [*always, *fields, *options, *(f"row-{key}" for key in rows)]


def progress(content: DraftContent, language: str) -> tuple[int, int]:
    """Return how many texts are translated, and how many there are."""
    names = {name for name, _ in _to_translate(content)}
    texts = [texts for name, texts in named_texts(content) if name in names]
    return sum(1 for text in texts if text.get(language)), len(texts)
