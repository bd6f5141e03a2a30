"""The preview of a draft: the page that respondents would see, in a frame on the builder's pages.

Only members of the draft's team can open the page, on the researchers' origin. It loads the shipped
client's files and cannot send anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import Response, render_template, request, url_for

from survey.errors import DefinitionError, NotFoundError
from survey.questionnaire.drafts.check import DraftCheck, check_draft
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.drafts.preview import Preview, only_question
from survey.research.access import Route, Workspace
from survey.research.builder.draft_editor import DraftPages
from survey.research.builder.publication import Point, point_of
from survey.research.forms import whole_number
from survey.respondent_texts import interface_names

WIDTHS = {"phone": "Phone, 390 pixels", "wide": "Computer"}
"""The widths of the frame and their names; the first is the default."""


def routes(workspace: Workspace, script: str) -> list[Route]:
    """Declare the pages of the preview; `script` is the hash of the preview's script."""
    pages = _PreviewPages(workspace, script)
    return [
        Route("GET", "/<slug>/preview", "viewer", pages.preview),
        Route("GET", "/<slug>/preview/page", "viewer", pages.preview_page),
    ]


@dataclass(frozen=True)
class _Choice:
    """The part of the draft, the language and the width in the page's address.

    `key` is the key of a single question to show, or 0 for the whole survey.
    """

    key: int
    language: str
    width: str

    @classmethod
    def of_request(cls, content: DraftContent) -> _Choice:
        query = request.args
        key, language = whole_number(query.get("question", "")), query.get("language", "")
        languages = (content.own_language, *content.languages)
        return cls(
            key if any(question["key"] == key for question in content.questions) else 0,
            language if language in languages else content.own_language,
            query.get("width", "") if query.get("width") in WIDTHS else next(iter(WIDTHS)),
        )

    @property
    def query(self) -> dict[str, Any]:
        """The arguments of the preview's address."""
        return {"question": self.key or None, "language": self.language}


class _PreviewPages(DraftPages):
    def __init__(self, workspace: Workspace, script: str) -> None:
        super().__init__(workspace)
        self._script, self._page = script, workspace.preview_page

    def preview(self, slug: str) -> str:
        """Show the preview in a frame, or list what the draft lacks."""
        opened = self._drafts.open(slug)
        choice = _Choice.of_request(opened.content)
        draft_check = self._check(opened.content, choice.key)
        complete = check_draft(opened.content, self._caps).questions
        return render_template(
            "research/builder/preview.html",
            survey=opened.draft,
            content=opened.content,
            choice=choice,
            widths=WIDTHS,
            languages={
                tag: interface_names().get(tag, tag)
                for tag in (opened.content.own_language, *opened.content.languages)
            },
            missing=self._missing(slug, draft_check),
            complete=complete,
            questions=list(opened.content.questions),
        )

    def preview_page(self, slug: str) -> Any:
        """Return the respondents' page with the draft's definition in it."""
        content = self._drafts.open(slug).content
        choice = _Choice.of_request(content)
        if not choice.key and request.args.get("question"):
            raise NotFoundError("this question was removed from the draft")
        draft_check = self._check(content, choice.key)
        missing = self._missing(slug, draft_check)
        if draft_check.survey is None or missing:
            page: str | bytes = render_template(
                "research/builder/preview_missing.html", slug=slug, missing=missing
            )
        else:
            script = url_for("drafts.preview_script", version=self._script)
            survey, language = draft_check.survey, choice.language
            page = self._page(Preview.of(survey, language, script, starts=bool(choice.key)))
        return Response(page, content_type="text/html; charset=utf-8")

    def _check(self, content: DraftContent, key: int) -> DraftCheck:
        return check_draft(only_question(content, key) if key else content, self._caps)

    def _missing(self, slug: str, draft_check: DraftCheck) -> list[Point]:
        """Return the points to fix before the preview can appear."""
        if draft_check.survey is not None:
            try:
                Preview.of(draft_check.survey, "", "", starts=False)
            except DefinitionError as error:
                return [Point(str(error), url_for("drafts.outline", slug=slug))]
        return [point_of(slug, mistake) for mistake in draft_check.mistakes]
