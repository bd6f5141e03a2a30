"""Translations of a draft: which languages there are, and the form of all texts in one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flask import flash, redirect, render_template, url_for
from pydantic import TypeAdapter, ValidationError

from survey.errors import DesignError, NotFoundError
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.check import Examined, examined
from survey.questionnaire.drafts.draft import DraftContent, Question
from survey.questionnaire.drafts.edits import Values, texts_of
from survey.questionnaire.kinds import kind_of
from survey.questionnaire.texts import MAX_LANGUAGES, Language
from survey.research.access import Route
from survey.research.drafts.forms import DoForm, LanguageForm, SheetForm, translation_form
from survey.research.drafts.saving import Drafts
from survey.research.workspace import Workspace

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
                flash(f"The texts in {language} are gone.")
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
