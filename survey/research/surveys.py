"""Researchers' surveys: publishing a definition, and the collection of reports.

Collection has links, invitations, dates, releases, closing and deletion.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from flask import flash, redirect, render_template, url_for
from markupsafe import Markup
from werkzeug.datastructures import FileStorage

from survey.collect.incoming_reports import Intake
from survey.collect.invitations import (
    field_link,
    issue_invitations,
    new_tokens,
    qr_code,
    respondent_link,
    validate_stratum,
)
from survey.collect.publication import close as close_survey
from survey.collect.publication import has_same_content, validate_schedule
from survey.collect.publication import publish as publish_survey
from survey.collect.release import utc_today
from survey.disclosure import MINIMUM_REPORTS, next_release
from survey.errors import (
    ClosedError,
    ConflictError,
    DefinitionError,
    DesignError,
    NotFoundError,
    OutdatedError,
    ReportError,
    StoreBusyError,
)
from survey.mechanism.composition import format_epsilon
from survey.questionnaire.definition import Survey
from survey.questionnaire.drafts.conversion import draft_from
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
    JAVASCRIPT,
    Pages,
    Route,
    Section,
    Workspace,
    other_definitions,
    static_file,
)
from survey.research.builder.forms import DoForm
from survey.research.builder.outline import begin_draft
from survey.research.downloads import CSV, download
from survey.research.forms import (
    ArchiveForm,
    CloseForm,
    DeleteForm,
    InvitationsForm,
    PublishForm,
    ScheduleForm,
    TabletForm,
)
from survey.research.home import HomePage
from survey.results.charts import FORMATS
from survey.results.estimates.table import describe_estimate, row_label
from survey.results.exports.csv import links_csv
from survey.results.groups import split_by_link, split_by_period
from survey.results.number_format import percent, share_interval
from survey.store import PublishedSurvey, Role, Schedule, find_survey

SURVEY_PAGES = (
    ("results.newest", "Results"),
    ("results.crosstab", "Explore"),
    ("collection.overview", "Collect"),
    ("share.page", "Share"),
    ("team.members", "Team"),
    ("team.log", "Log"),
)
"""The endpoints and link texts of the pages of a survey, in the order of its navigation."""

STATIC = Path(__file__).resolve().parent.parent / "static"


def sections(workspace: Workspace) -> list[Section]:
    """The home page, the upload of a definition, and the variables of all templates."""
    stylesheet_hash, stylesheet = static_file(STATIC / "research.css", "text/css; charset=utf-8")
    charts_hash, charts = static_file(STATIC / "charts.js", JAVASCRIPT)
    contents_hash, contents = static_file(STATIC / "contents.js", JAVASCRIPT)
    progress_hash, progress = static_file(STATIC / "progress.js", JAVASCRIPT)
    pages = _SurveyPages(workspace)
    routes = [
        Route("GET", "/assets/<version>/research.css", "anybody", stylesheet, "asset"),
        Route("GET", "/assets/<version>/charts.js", "anybody", charts, "chart_script"),
        Route("GET", "/assets/<version>/contents.js", "anybody", contents, "contents_script"),
        Route("GET", "/assets/<version>/progress.js", "anybody", progress, "progress_script"),
        Route("GET", "/", "researcher", HomePage(workspace).surveys),
        Route("GET POST", "/publish", "researcher", pages.publish),
    ]
    section = Section("research", "/research", routes)

    @section.app_context_processor
    def variables() -> dict[str, Any]:
        return {
            "stylesheet_hash": stylesheet_hash,
            "charts_hash": charts_hash,
            "contents_hash": contents_hash,
            "progress_hash": progress_hash,
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

    return [*_collection_sections(workspace), section]


class _SurveyPages(Pages):
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
        flash(published.slug, "published")
        return redirect(url_for("collection.overview", slug=published.slug))

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


CREATED_MEANWHILE = (
    "No invitations were created: since you opened this page, you or a colleague created "
    "invitations for this group. They are in the file downloaded then. To create more, press the "
    "button again."
)


def _collection_sections(workspace: Workspace) -> list[Section]:
    """Return the pages of a published survey, from its first link to its deletion."""
    pages = _CollectionPages(workspace)
    return [
        Section(
            "collection",
            "/research/surveys/<slug>/collect",
            [
                Route("GET", "", "editor", pages.overview),
                Route("POST", "/invite", "editor", pages.invite),
                Route("POST", "/schedule", "editor", pages.schedule),
                Route("POST", "/tablet", "editor", pages.import_tablet),
                Route("POST", "/close", "owner", pages.close),
            ],
        ),
        Section(
            "lifecycle",
            "/research/surveys/<slug>",
            [
                Route("POST", "/archive", "owner", pages.archive),
                Route("POST", "/delete", "owner", pages.delete),
            ],
        ),
    ]


class _CollectionPages(Pages):
    def overview(self, slug: str) -> str:
        """Show links, schedule, releases and the forms that change them."""
        return self._page(slug)

    def _page(self, slug: str, **rejected: Any) -> str:
        """Render the page; forms with mistakes replace the empty ones."""
        survey = find_survey(self._store, slug)
        schedule = survey.schedule
        forms = {
            "invite": InvitationsForm(formdata=None),
            "schedule": ScheduleForm(
                formdata=None,
                opens=schedule.opens,
                closes=schedule.closes,
                most=schedule.maximum or None,
            ),
            "close": CloseForm(formdata=None),
            "tablet": TabletForm(formdata=None),
            **rejected,
        }
        n_invited = self._store.n_invited_by_stratum(survey.key)
        tallies = self._store.tallies(survey.key)
        forms["invite"].made.data = json.dumps(n_invited)
        has_field_mode = survey.definition.field is not None
        tablet_link = field_link(survey, self._settings) if has_field_mode else ""
        return render_template(
            "research/collect.html",
            survey=survey,
            link=respondent_link(survey, self._settings),
            tablet_link=tablet_link,
            tablet_code=Markup(qr_code(tablet_link, inline=True).decode())  # noqa: S704
            if tablet_link
            else "",
            forms=forms,
            n_invited=n_invited,
            by_stratum={group.name: tally.n for group, tally in split_by_link(tallies).items()},
            by_bucket={group.name: tally.n for group, tally in split_by_period(tallies).items()},
            minimum=MINIMUM_REPORTS,
            next_release=self._next_release(),
            plan=self._store.plan(survey.key),
            archived=slug in self._store.archived_slugs(),
            lifecycle={"archive": ArchiveForm(formdata=None), "delete": DeleteForm(formdata=None)},
            draft_form=DoForm(formdata=None),
        )

    def _next_release(self) -> str:
        return next_release(time.time(), self._settings.release_every)

    def invite(self, slug: str) -> Any:
        """Create single-use invitations and return them as a file."""
        survey, form = _open_survey(find_survey(self._store, slug)), InvitationsForm()
        if not form.validate_on_submit():
            return self._page(slug, invite=form), 422
        count = form.count.data
        try:
            stratum = validate_stratum(self._store, survey, form.stratum.data or "", count)
        except DesignError as error:
            form.stratum.errors = [str(error)]
            return self._page(slug, invite=form), 422
        tokens = new_tokens(count)
        links = [
            respondent_link(survey, self._settings, token=token, stratum=stratum)
            for token in tokens
        ]
        try:
            issue_invitations(self._store, survey, stratum, tokens, _n_invited(form, stratum))
        except ConflictError:
            form.count.errors = [CREATED_MEANWHILE]
            return self._page(slug, invite=form), 409
        self._log.write("created invitations", slug, f"{count} {stratum}".strip())
        return download(links_csv(links, stratum), CSV, f"{slug}-invitations.csv")

    def schedule(self, slug: str) -> Any:
        """Change the dates and the response limit."""
        survey, form = _open_survey(find_survey(self._store, slug)), ScheduleForm()
        if not form.validate_on_submit():
            return self._page(slug, schedule=form), 422
        schedule = Schedule(form.opens.data, form.closes.data, form.most.data or 0)
        if not _check_dates(form, schedule, survey):
            return self._page(slug, schedule=form), 422
        self._store.set_schedule(survey.key, schedule)
        self._log.write("changed the schedule", slug, _describe(schedule))
        flash("The dates and the response limit have been saved.")
        return redirect(url_for("collection.overview", slug=slug))

    def import_tablet(self, slug: str) -> Any:
        """Store the responses that a tablet saved as a file because it could not upload them."""
        survey, form = _open_survey(find_survey(self._store, slug)), TabletForm()
        if not form.validate_on_submit():
            return self._page(slug, tablet=form), 422
        try:
            n_slots = Intake(self._store).receive_file(slug, form.file.data.read(), utc_today())
        except (ReportError, OutdatedError, ClosedError, NotFoundError) as error:
            form.file.errors = [str(error)]
            return self._page(slug, tablet=form), 422
        self._log.write("imported a tablet's file", survey.slug)
        flash(
            f"Imported the whole file ({n_slots} {'slot' if n_slots == 1 else 'slots'}). Its "
            "responses will appear with the next releases. Importing it again changes nothing."
        )
        return redirect(url_for("collection.overview", slug=slug))

    def close(self, slug: str) -> Any:
        """Close the survey permanently; its short name must be typed."""
        form = CloseForm()
        if not form.validate_on_submit() or form.name.data.strip() != slug:
            form.name.errors = [f"Type {slug} to close the survey"]
            return self._page(slug, close=form), 422
        close_survey(self._store, slug, utc_today())
        self._log.write("closed", slug)
        flash(f"{slug} is closed. Its last release is at {self._next_release()}.")
        return redirect(url_for("collection.overview", slug=slug))

    def archive(self, slug: str) -> Any:
        """Hide a survey from the list, or show it again."""
        find_survey(self._store, slug)
        if ArchiveForm().validate_on_submit():
            archived = slug not in self._store.archived_slugs()
            self._store.set_archived(slug, archived=archived)
            self._log.write("archived" if archived else "restored from the archive", slug)
            flash(f"{slug} has been {'archived' if archived else 'restored to the list'}.")
        return redirect(url_for("collection.overview", slug=slug))

    def delete(self, slug: str) -> Any:
        """Delete a survey with all versions and reports; its short name must be typed."""
        find_survey(self._store, slug)
        form = DeleteForm()
        if not form.validate_on_submit() or form.typed.data.strip() != slug:
            flash(f"Nothing was deleted. To delete the survey, type {slug}.")
            return redirect(url_for("collection.overview", slug=slug, _anchor="delete"))
        try:
            self._store.delete_survey(slug, utc_today())
        except ConflictError as error:
            flash(f"Nothing was deleted: {error}.")
            return redirect(url_for("collection.overview", slug=slug, _anchor="delete"))
        # Logged without a slug: a new survey with the same slug starts with an empty log.
        self._log.write("deleted a survey", detail=f"{slug}, with all its reports")
        try:
            # Deleted rows remain in free pages of the database file until it is rewritten.
            self._store.vacuum()
        except StoreBusyError:
            flash("The database is in use: the freed space will be overwritten later.")
        flash(f"{slug} and all its responses are deleted. Earlier backups still contain them.")
        return redirect(url_for("research.surveys"))


def _n_invited(form: InvitationsForm, stratum: str) -> int:
    """Return how many invitations a group had when the page of the form was opened."""
    try:
        counts = json.loads(form.made.data or "{}")
    except (ValueError, RecursionError):
        return 0
    n = counts.get(stratum, 0) if isinstance(counts, dict) else 0
    return n if isinstance(n, int) else 0


def _open_survey(survey: PublishedSurvey) -> PublishedSurvey:
    if survey.state == "closed":
        raise ClosedError(f"{survey.slug} is closed and accepts no responses")
    return survey


def _check_dates(form: ScheduleForm, schedule: Schedule, survey: PublishedSurvey) -> bool:
    """Return whether all changed dates are in the future; if not, add errors to the form."""
    previous = survey.schedule
    if _has_passed(schedule.opens, previous.opens):
        form.opens.errors = [f"{schedule.opens} has passed; leave this empty to open at once"]
        return False
    try:
        validate_schedule(schedule, survey.definition.field_until)
    except DesignError as error:
        form.closes.errors = [str(error)]
        return False
    if _has_passed(schedule.closes, previous.closes):
        form.closes.errors = [
            f"{schedule.closes} has passed; to close the survey now, use the button below"
        ]
        return False
    return True


def _has_passed(day: date | None, previous: date | None) -> bool:
    return day is not None and day != previous and day < utc_today()


def _describe(schedule: Schedule) -> str:
    limit = f", at most {schedule.maximum:,}" if schedule.maximum else ""
    return f"{schedule.opens or 'now'} to {schedule.closes or 'closed by hand'}{limit}"
