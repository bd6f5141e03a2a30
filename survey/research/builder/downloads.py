"""A draft as a file: its definition, and the formats of other tools."""

from __future__ import annotations

import json
from typing import Any

from flask import flash, redirect, render_template, url_for

from survey.errors import NotFoundError
from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.conversion import definition_from
from survey.questionnaire.exports import NAMES, WRITERS, export_questionnaire
from survey.research.access import Route, Workspace
from survey.research.builder.draft_editor import DraftPages
from survey.research.downloads import download

JSON = "application/json; charset=utf-8"

DEFINITION = "definition"
"""The name of this project's own format."""


def routes(workspace: Workspace) -> list[Route]:
    """Declare the page of the downloads and the files."""
    pages = _DownloadPages(workspace)
    return [
        Route("GET", "/<slug>/download", "viewer", pages.downloads),
        Route("GET", "/<slug>/download/<form>", "viewer", pages.file),
    ]


class _DownloadPages(DraftPages):
    def downloads(self, slug: str) -> str:
        """List the formats, with notes on what each of them cannot express."""
        opened = self._drafts.open(slug)
        survey = check_draft(opened.content, self._caps).survey
        exports = {form: export_questionnaire(survey, form) for form in WRITERS if survey}
        return render_template(
            "research/builder/downloads.html",
            survey=opened.draft,
            content=opened.content,
            exports=exports,
            names=NAMES,
        )

    def file(self, slug: str, form: str) -> Any:
        """Return a draft without mistakes as a file."""
        opened = self._drafts.open(slug)
        name = f"{opened.draft.slug}-{form}"
        draft_check = check_draft(opened.content, self._caps)
        if form != DEFINITION and form not in WRITERS:
            raise NotFoundError("there is no such format")
        if draft_check.survey is None:
            flash("Nothing was downloaded. Correct the mistakes in the draft first.")
            return redirect(url_for("drafts.outline", slug=slug))
        if form == DEFINITION:
            drawn = {"questions_per_person": draft_check.draws} if draft_check.draws else {}
            source = definition_from(opened.content) | drawn
            text = json.dumps(source, indent=2, ensure_ascii=False, default=str)
            return download(f"{text}\n", JSON, f"{name}.json")
        exported = export_questionnaire(draft_check.survey, form)
        return download(exported.content, exported.media_type, f"{name}{exported.ending}")
