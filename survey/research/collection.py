"""The collection of reports: links, invitations, dates, releases, closing and deletion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from flask import Response, flash, redirect, render_template, url_for

from survey.collect.admission import validate_schedule
from survey.collect.invitations import (
    issue_invitations,
    new_tokens,
    qr_code,
    respondent_link,
    validate_stratum,
)
from survey.collect.publication import close as close_survey
from survey.collect.release import release as release_reports
from survey.collect.release import utc_today
from survey.errors import ClosedError, ConflictError, DesignError, StoreBusyError
from survey.research.access import Route, Section
from survey.research.downloads import CSV, download
from survey.research.drafts.forms import DoForm
from survey.research.forms import (
    ArchiveForm,
    CloseForm,
    DeleteForm,
    InvitationsForm,
    ReleaseForm,
    ScheduleForm,
)
from survey.research.workspace import Workspace
from survey.results.exports.csv import links_csv
from survey.results.grouped import by_bucket, by_stratum
from survey.store import PublishedSurvey, Schedule, Store, find_survey

MADE_MEANWHILE = (
    "No links were made this time: since you opened the page, links of this group were made, by "
    "you or a colleague. They are in the file downloaded then; to make more, press once more"
)


def sections(workspace: Workspace) -> list[Section]:
    """The pages that follow a survey from its first link to its close."""
    pages = _Pages(workspace)
    routes = [
        Route("GET", "", "editor", pages.overview),
        Route("GET", "/link.svg", "editor", pages.drawn_link),
        Route("POST", "/invite", "editor", pages.invite),
        Route("POST", "/schedule", "editor", pages.schedule),
        Route("POST", "/release", "editor", pages.release),
        Route("POST", "/close", "owner", pages.close),
    ]
    ends = _EndPages(workspace)
    end_routes = [
        Route("POST", "/archive", "owner", ends.archive),
        Route("POST", "/delete", "owner", ends.delete),
    ]
    return [
        Section("collecting", "/research/surveys/<slug>/collect", routes),
        Section("lifecycle", "/research/surveys/<slug>", end_routes),
    ]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log
        self._public_url = workspace.settings.public_url
        self._minimum = workspace.settings.release_minimum

    def overview(self, slug: str) -> str:
        """Everything at once, without a mistake."""
        return self._page(slug)

    def _page(self, slug: str, **wrong: Any) -> str:
        survey = find_survey(self._store, slug)
        dates = survey.schedule
        usual = {
            "invite": InvitationsForm(formdata=None),
            "schedule": ScheduleForm(
                formdata=None, opens=dates.opens, closes=dates.closes, most=dates.maximum
            ),
            "release": ReleaseForm(formdata=None),
            "close": CloseForm(formdata=None),
        }
        forms, made = {**usual, **wrong}, self._store.n_invited_by_stratum(survey.key)
        forms["invite"].made.data = json.dumps(made)
        return render_template(
            "research/collect.html",
            survey=survey,
            link=respondent_link(survey, self._public_url),
            forms=forms,
            made=made,
            by_stratum=_by_stratum(self._store, survey),
            by_bucket=_by_bucket(self._store, survey),
            minimum=self._minimum,
            plan=self._store.plan(survey.key),
            archived=slug in self._store.archived_slugs(),
            lifecycle={"archive": ArchiveForm(formdata=None), "delete": DeleteForm(formdata=None)},
            draft_form=DoForm(formdata=None),
        )

    def drawn_link(self, slug: str) -> Response:
        """The open link as a picture for paper."""
        survey = _open(find_survey(self._store, slug))
        drawn = qr_code(respondent_link(survey, self._public_url))
        return download(drawn, "image/svg+xml", f"{slug}-link.svg")

    def invite(self, slug: str) -> Any:
        """Links that are good for one report each, in a file that is made once."""
        survey, form = _open(find_survey(self._store, slug)), InvitationsForm()
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
            respondent_link(survey, self._public_url, token=token, stratum=stratum)
            for token in tokens
        ]
        try:
            issue_invitations(self._store, survey, stratum, tokens, _known_of(form, stratum))
        except ConflictError:
            form.count.errors = [MADE_MEANWHILE]
            return self._page(slug, invite=form), 409
        self._log.write("made invitations", slug, f"{count} {stratum}".strip())
        return download(links_csv(links, stratum), CSV, f"{slug}-invitations.csv")

    def schedule(self, slug: str) -> Any:
        """From when to when, and how many."""
        survey, form = _open(find_survey(self._store, slug)), ScheduleForm()
        if not form.validate_on_submit():
            return self._page(slug, schedule=form), 422
        wanted = Schedule(form.opens.data, form.closes.data, form.most.data or 0)
        if not _is_to_come(form, wanted, survey.schedule):
            return self._page(slug, schedule=form), 422
        self._store.set_schedule(survey.key, wanted)
        self._log.write("changed dates or limit", slug, _in_words(wanted))
        flash("The dates and the limit are saved.")
        return redirect(url_for("collecting.overview", slug=slug))

    def release(self, slug: str) -> Any:
        """What waits, when it is enough."""
        if not ReleaseForm().validate_on_submit():
            return self._page(slug), 422
        versions = self._store.versions(slug)
        n = sum(release_reports(self._store, survey, self._minimum) for survey in versions)
        self._log.write("released", slug, f"{n} reports")
        fewer = f"Nothing was released: fewer than {self._minimum} reports of a group wait."
        flash(f"{n:,} reports were released." if n else fewer)
        return redirect(url_for("collecting.overview", slug=slug))

    def close(self, slug: str) -> Any:
        """For good; the survey's name must be typed."""
        form = CloseForm()
        if not form.validate_on_submit() or form.name.data.strip() != slug:
            form.name.errors = [f"Type {slug} to close it"]
            return self._page(slug, close=form), 422
        close_survey(self._store, slug, utc_today())
        self._log.write("closed", slug)
        flash(f"{slug} is closed; all its reports are released.")
        return redirect(url_for("collecting.overview", slug=slug))


def _known_of(form: InvitationsForm, stratum: str) -> int:
    """How many links of a group there were when the page of a form was opened."""
    try:
        made = json.loads(form.made.data or "{}")
    except (ValueError, RecursionError):
        return 0
    known = made.get(stratum, 0) if isinstance(made, dict) else 0
    return known if isinstance(known, int) else 0


def _open(survey: PublishedSurvey) -> PublishedSurvey:
    if survey.state == "closed":
        raise ClosedError(f"{survey.slug} is closed and takes no more reports")
    return survey


def _is_to_come(form: ScheduleForm, wanted: Schedule, before: Schedule) -> bool:
    """Whether days that are changed are days to come; else what is wrong stands in the form."""
    if _has_passed(wanted.opens, before.opens):
        form.opens.errors = [f"{wanted.opens} has passed; leave it empty to open at once"]
        return False
    try:
        validate_schedule(wanted)
    except DesignError as error:
        form.closes.errors = [str(error)]
        return False
    if _has_passed(wanted.closes, before.closes):
        form.closes.errors = [
            f"{wanted.closes} has passed; to close the survey now, use the button below"
        ]
        return False
    return True


def _has_passed(day: date | None, before: date | None) -> bool:
    return day is not None and day != before and day < utc_today()


def _in_words(schedule: Schedule) -> str:
    most = f", at most {schedule.maximum:,}" if schedule.maximum else ""
    return f"{schedule.opens or 'now'} to {schedule.closes or 'closed by hand'}{most}"


def _by_stratum(store: Store, survey: PublishedSurvey) -> Mapping[str, int]:
    """Released reports by link, small ones together; none when there is only the open link."""
    found = by_stratum(store.tallies(survey.key))
    return {group.stratum: tally.n for group, tally in found.items()}


def _by_bucket(store: Store, survey: PublishedSurvey) -> Mapping[str, int]:
    """Released reports by the day or week of their release, where the survey keeps it."""
    return {group.bucket: tally.n for group, tally in by_bucket(store.tallies(survey.key)).items()}


class _EndPages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log

    def archive(self, slug: str) -> Any:
        """Out of the lists, or back into them."""
        find_survey(self._store, slug)
        if ArchiveForm().validate_on_submit():
            away = slug not in self._store.archived_slugs()
            self._store.set_archived(slug, archived=away)
            self._log.write("archived" if away else "took out of the archive", slug)
            flash(f"{slug} is {'in the archive' if away else 'in the list again'}.")
        return redirect(url_for("collecting.overview", slug=slug))

    def delete(self, slug: str) -> Any:
        """Every version with every report; the name must be typed."""
        find_survey(self._store, slug)
        form = DeleteForm()
        if not form.validate_on_submit() or form.typed.data.strip() != slug:
            flash(f"Nothing was deleted: type {slug} to delete it.")
            return redirect(url_for("collecting.overview", slug=slug, _anchor="delete"))
        try:
            self._store.delete_survey(slug, utc_today())
        except ConflictError as error:
            flash(f"Nothing was deleted: {error}.")
            return redirect(url_for("collecting.overview", slug=slug, _anchor="delete"))
        # Under no name: whoever takes this one next has their own log.
        self._log.write("deleted a survey", detail=f"{slug}, with all its reports")
        try:
            # What was deleted lies in free pages of the file until it is rewritten.
            self._store.vacuum()
        except StoreBusyError:
            flash("Its pages will be overwritten when nobody reads the whole database.")
        flash(f"{slug} is deleted, with all its reports. Backups made before still hold it.")
        return redirect(url_for("research.surveys"))
