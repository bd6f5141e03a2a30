"""Researchers' pages: the list of surveys, and publishing a definition."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from werkzeug.datastructures import FileStorage

from survey.collect.publication import has_same_content
from survey.collect.publication import publish as publish_survey
from survey.collect.release import utc_today
from survey.errors import ConflictError, DefinitionError
from survey.mechanism.composition import format_epsilon
from survey.questionnaire.definition import Survey
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.loading import parse
from survey.questionnaire.privacy_loss import (
    Questions,
    publication_warnings,
    report_heading,
    report_sentences,
    report_strength,
)
from survey.questionnaire.validation import check
from survey.research.access import (
    Pages,
    Route,
    Section,
    Workspace,
    other_definitions,
    static_file,
)
from survey.research.builder.outline import begin_draft
from survey.research.forms import PublishForm
from survey.results.charts import FORMATS
from survey.results.estimates.table import describe_estimate, row_label
from survey.results.number_format import percent, share_interval
from survey.store import Role

SURVEY_PAGES = (
    ("results.newest", "Results"),
    ("results.crosstab", "Explore"),
    ("collection.overview", "Collect"),
    ("team.members", "Team"),
    ("team.log", "Log"),
)
"""The endpoints and link texts of the pages of a survey, in the order of its navigation."""

STYLESHEET = Path(__file__).resolve().parent.parent / "static" / "research.css"


def sections(workspace: Workspace) -> list[Section]:
    """The list of surveys, the upload of a definition, results, and all templates' variables."""
    stylesheet_hash, stylesheet = static_file(STYLESHEET, "text/css; charset=utf-8")
    pages = _SurveyPages(workspace)
    routes = [
        Route("GET", "/assets/<version>/research.css", "anybody", stylesheet, "asset"),
        Route("GET", "/", "researcher", pages.surveys),
        Route("GET POST", "/publish", "researcher", pages.publish),
    ]
    section = Section("research", "/research", routes)

    @section.app_context_processor
    def variables() -> dict[str, Any]:
        return {
            "research_css": url_for("research.asset", version=stylesheet_hash),
            "client_hash": workspace.client_hash,
            "percent": percent,
            "share_interval": share_interval,
            "describe_estimate": describe_estimate,
            "row_label": row_label,
            "format_epsilon": format_epsilon,
            "report_heading": report_heading,
            "report_sentences": report_sentences,
            "report_strength": report_strength,
            "moment": moment,
            "gate": workspace.gate,
            "survey_pages": SURVEY_PAGES,
            "figure_kinds": list(FORMATS),
        }

    return [section]


class _SurveyPages(Pages):
    def surveys(self) -> str:
        """List the researcher's surveys and drafts."""
        store, roles, archived = self._store, self._gate.roles(), self._store.archived_slugs()
        surveys = [survey for survey in store.surveys() if survey.slug in roles]
        shows_archive = "archived" in request.args
        listed = [
            survey
            for survey in surveys
            if not survey.is_test_run and (survey.slug in archived) == shows_archive
        ]
        drafts = [draft for draft in store.drafts() if draft.slug in roles]
        return render_template(
            "research/surveys.html",
            surveys=[(survey, store.n_released(survey.key)) for survey in listed],
            drafts=[(draft, DraftContent.from_json(draft.content)) for draft in drafts],
            shows_archive=shows_archive,
            n_archived=len({survey.slug for survey in surveys} & archived),
        )

    def publish(self) -> Any:
        """Publish a definition file, or list its mistakes.

        A file with warnings becomes a draft, so that researchers read them before they publish.
        """
        form = PublishForm()
        mistakes: list[tuple[str, str]] = []
        if form.validate_on_submit():
            try:
                return self._publish(form.file.data)
            except DefinitionError as error:
                mistakes = error.mistakes
            except ConflictError as error:
                mistakes = [("", str(error))]
        page = render_template("research/publish.html", form=form, mistakes=mistakes)
        return page, 422 if mistakes or form.errors else 200

    def _publish(self, upload: FileStorage) -> Any:
        definition = parse(upload.read(), upload.filename or "")
        survey = check(definition, self._settings.caps)
        newest = next(iter(self._store.versions(survey.slug)), None)
        if newest and not self._gate.allows(survey.slug, "editor"):
            raise ConflictError(
                f'the slug "{survey.slug}" belongs to a survey that you cannot edit; '
                "choose another slug"
            )
        is_known = newest is not None and has_same_content(survey, newest)
        if not is_known and self._warnings(survey):
            draft = begin_draft(self._workspace, draft_from(definition))
            flash("Not published yet. Read the warnings first; you can publish below.")
            return redirect(url_for("drafts.publish", slug=draft.slug))
        team: dict[int, Role] = {self._gate.researcher().key: "owner"}
        published = publish_survey(self._store, survey, utc_today(), team=team)
        self._log.write("published", published.slug, f"version {published.version}")
        return redirect(url_for("results.newest", slug=published.slug))

    def _warnings(self, survey: Survey) -> list[str]:
        """Return the warnings about a survey that is published from a file."""
        members = {member.researcher for member in self._store.members(survey.slug)}
        members.add(self._gate.researcher().key)
        others = other_definitions(self._store, survey.slug, members, self._gate.roles())
        return publication_warnings(Questions.of(survey), self._settings.caps, others)


def moment(seconds: int) -> str:
    """Format a Unix time.

    >>> moment(0)
    '1970-01-01 00:00 UTC'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
