"""A draft or a published version as a file: its definition, and the formats of other tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from flask import Response, flash, redirect, render_template, url_for

from survey.errors import DefinitionError, NotFoundError
from survey.questionnaire.definition import Definition, Survey
from survey.questionnaire.designs import PRIVACY
from survey.questionnaire.drafts.check import DraftCheck, check_draft
from survey.questionnaire.drafts.conversion import definition_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.exports import NAMES, WRITERS, export_questionnaire
from survey.questionnaire.loading import source_of
from survey.questionnaire.validation import check
from survey.research.access import Pages, Route, Section, Workspace
from survey.research.builder.draft_editor import DraftPages
from survey.research.downloads import download, file_name
from survey.settings import Caps
from survey.store import PublishedSurvey, find_survey

JSON = "application/json; charset=utf-8"

DEFINITION = "definition"
"""The name of this project's own format."""

NO_CAPS = Caps(question=Decimal(10**6), survey=Decimal(10**6))
"""The conversion of a published version depends on no maximum."""


@dataclass(frozen=True)
class Questionnaire:
    """A definition file, and its survey for the formats of other tools; None if there is none."""

    source: Mapping[str, Any]
    survey: Survey | None

    @classmethod
    def of_draft(cls, content: DraftContent, draft_check: DraftCheck) -> Questionnaire:
        """Return a draft that asks as many questions as its check says."""
        drawn = {"questions_per_person": draft_check.draws} if draft_check.draws else {}
        return cls(definition_from(content) | drawn, draft_check.survey)

    @classmethod
    def of_version(cls, definition: Definition) -> Questionnaire:
        """Return a version as its researcher could have written it.

        Other tools do not randomize: for them, the survey has the usual mechanisms instead of its
        own, since some parameters cannot be read from a published definition. It has no survey if
        these do not suit its questions.
        """
        source = source_of(definition)
        pages = [
            {**page, "questions": [_usual_form(question) for question in page["questions"]]}
            for page in source["pages"]
        ]
        together = [{"questions": group["questions"]} for group in source.get("together", ())]
        usual = {**source, "epsilon": 1, "pages": pages, "together": together}
        try:
            return cls(source, check(usual, NO_CAPS))
        except DefinitionError:
            return cls(source, None)

    def page(self, here: str, file_endpoint: str, **variables: Any) -> str:
        """List the formats, with notes on what each of them cannot express."""
        survey = self.survey
        return render_template(
            "research/builder/downloads.html",
            here=here,
            file_endpoint=file_endpoint,
            exports={form: export_questionnaire(survey, form) for form in WRITERS if survey},
            names=NAMES,
            **variables,
        )

    def file(self, form: str, name: str) -> Response:
        """Return the file of a format; NotFoundError for an unknown or impossible one."""
        if form == DEFINITION:
            text = json.dumps(self.source, indent=2, ensure_ascii=False, default=str)
            return download(f"{text}\n", JSON, f"{name}.json")
        if form not in WRITERS or self.survey is None:
            raise NotFoundError("there is no such format")
        exported = export_questionnaire(self.survey, form)
        return download(exported.content, exported.media_type, f"{name}{exported.ending}")


def _usual_form(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question without its mechanism, parameters and statement of privacy."""
    own = {"mechanism", "parameters", *PRIVACY}
    return {key: value for key, value in question.items() if key not in own}


def routes(workspace: Workspace) -> list[Route]:
    """Declare the page of a draft's downloads and the files."""
    pages = _DraftDownloads(workspace)
    return [
        Route("GET", "/<slug>/download", "viewer", pages.downloads),
        Route("GET", "/<slug>/download/<form>", "viewer", pages.file),
    ]


def version_section(workspace: Workspace) -> Section:
    """Declare the page of a version's downloads and the files."""
    pages = _VersionDownloads(workspace)
    routes = [
        Route("GET", "", "viewer", pages.downloads),
        Route("GET", "/<form>", "viewer", pages.file),
    ]
    return Section("questionnaires", "/research/surveys/<slug>/<int:version>/download", routes)


class _DraftDownloads(DraftPages):
    def downloads(self, slug: str) -> str:
        """Show a draft's page."""
        opened = self._drafts.open(slug)
        questionnaire = self._questionnaire(opened.content)
        return questionnaire.page(
            "drafts.outline",
            "drafts.file",
            survey=opened.draft,
            address={"slug": slug},
            content=opened.content,
        )

    def file(self, slug: str, form: str) -> Any:
        """Return a draft without mistakes as a file."""
        opened = self._drafts.open(slug)
        questionnaire = self._questionnaire(opened.content)
        if questionnaire.survey is None and form in (DEFINITION, *WRITERS):
            flash("Nothing was downloaded. Correct the mistakes in the draft first.")
            return redirect(url_for("drafts.outline", slug=slug))
        return questionnaire.file(form, f"{opened.draft.slug}-{form}")

    def _questionnaire(self, content: DraftContent) -> Questionnaire:
        return Questionnaire.of_draft(content, check_draft(content, self._caps))


class _VersionDownloads(Pages):
    def downloads(self, slug: str, version: int) -> str:
        """Show a version's page."""
        survey = self._survey(slug, version)
        return Questionnaire.of_version(survey.definition).page(
            "results.newest",
            "questionnaires.file",
            survey=survey,
            address={"slug": slug, "version": version},
        )

    def file(self, slug: str, version: int, form: str) -> Response:
        """Return a version as a file."""
        survey = self._survey(slug, version)
        return Questionnaire.of_version(survey.definition).file(form, file_name(survey, form))

    def _survey(self, slug: str, version: int) -> PublishedSurvey:
        survey = find_survey(self._store, slug, version)
        if survey.is_test_run:
            raise NotFoundError("a test run is downloaded as its draft")
        return survey
