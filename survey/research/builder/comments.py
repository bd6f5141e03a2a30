"""Comments of a team on the questions of a draft and on the whole draft.

Everyone who may see a draft may comment on it. Publishing deletes the draft and its comments.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_wtf import FlaskForm
from wtforms import SelectChoice, SelectField, SubmitField, TextAreaField
from wtforms.validators import ValidationError

from survey.errors import ConflictError, ForbiddenError
from survey.research.access import Route, Workspace
from survey.research.builder.draft_editor import WHOLE_DRAFT, DraftPages
from survey.research.builder.forms import DoForm, plain
from survey.research.forms import whole_number
from survey.store import MAX_COMMENT_LENGTH


class CommentForm(FlaskForm):  # type: ignore[misc]
    """A comment and the question that it is about."""

    question = SelectField("About", validate_choice=False)
    text = TextAreaField("Comment")
    submit = SubmitField("Add comment")

    def validate_text(self, field: TextAreaField) -> None:
        """Reject an empty comment and one that is too long."""
        n = len(plain(field.data or ""))
        if not n:
            raise ValidationError("Write a comment")
        if n > MAX_COMMENT_LENGTH:
            raise ValidationError(
                f"The comment must be at most {MAX_COMMENT_LENGTH:,} characters long (found {n:,})"
            )


def routes(workspace: Workspace) -> list[Route]:
    """Declare the pages of comments."""
    pages = _CommentPages(workspace)
    return [
        Route("GET", "/<slug>/comments", "viewer", pages.comments),
        Route("POST", "/<slug>/comments", "viewer", pages.add_comment),
        Route("POST", "/<slug>/comments/<int:number>", "viewer", pages.change_comment),
    ]


class _CommentPages(DraftPages):
    def comments(self, slug: str) -> str:
        """List the comments by question."""
        form = CommentForm(formdata=None, question=request.args.get("question", ""))
        return self._page(slug, form)

    def _page(self, slug: str, form: CommentForm) -> str:
        opened = self._drafts.open(slug)
        content, language = opened.content, opened.content.own_language
        form.question.choices = [
            SelectChoice(str(WHOLE_DRAFT), "The whole draft"),
            *(
                SelectChoice(str(question["key"]), f"{number}. {_text(question, language)}")
                for number, question in enumerate(content.questions, 1)
            ),
        ]
        return render_template(
            "research/builder/comments.html",
            survey=opened.draft,
            content=content,
            comments=self._drafts.comments(opened),
            texts={question["key"]: _text(question, language) for question in content.questions},
            form=form,
            act=DoForm(formdata=None),
            me=self._gate.researcher().key,
        )

    def add_comment(self, slug: str) -> Any:
        """Add a comment."""
        form, opened = CommentForm(), self._drafts.open(slug)
        if not form.validate_on_submit():
            return self._page(slug, form), 422
        key = whole_number(form.question.data or "")
        if key != WHOLE_DRAFT and all(q["key"] != key for q in opened.content.questions):
            form.question.errors = ["This question was removed from the draft; choose another one"]
            return self._page(slug, form), 422
        try:
            self._store.add_comment(
                opened.draft.key,
                key,
                self._gate.researcher().key,
                int(time.time()),
                plain(form.text.data),
            )
        except ConflictError as error:
            form.text.errors = [f"The comment was not added: {error}"]
            return self._page(slug, form), 409
        return redirect(url_for("drafts.comments", slug=slug, _anchor=f"question-{key}"))

    def change_comment(self, slug: str, number: int) -> Any:
        """Resolve, reopen or delete a comment."""
        draft, do = self._drafts.open(slug).draft, request.form.get("do", "")
        comment = next((c for c in self._store.comments(draft.key) if c.number == number), None)
        if not DoForm().validate_on_submit() or do not in ("resolve", "reopen", "delete"):
            flash("Nothing was changed. Press one of the buttons beside the comment.")
        elif comment is None:
            flash("This comment has already been deleted.")
        elif do != "delete":
            self._store.resolve_comment(draft.key, number, resolved=do == "resolve")
        elif not self._store.delete_comment(draft.key, number, self._gate.researcher().key):
            raise ForbiddenError("only its author may delete a comment; resolve it instead")
        else:
            flash("The comment was deleted.")
        anchor = f"question-{comment.question}" if comment else None
        return redirect(url_for("drafts.comments", slug=slug, _anchor=anchor))


def _text(question: Mapping[str, Any], language: str) -> str:
    return str(question["text"].get(language) or "Question without text")
