"""What becomes of a survey when its work is done: out of the lists, or gone for good."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, url_for

from survey.collect.release import utc_today
from survey.errors import ConflictError, StoreBusyError
from survey.research.access import Route, Section
from survey.research.forms import ArchiveForm, DeleteForm
from survey.research.workspace import Workspace
from survey.store import find_survey


def sections(workspace: Workspace) -> list[Section]:
    """The forms by which owners archive or delete a survey."""
    pages = _Pages(workspace)
    routes = [
        Route("POST", "/archive", "owner", pages.archive),
        Route("POST", "/delete", "owner", pages.delete),
    ]
    return [Section("lifecycle", "/research/surveys/<slug>", routes)]


class _Pages:
    def __init__(self, workspace: Workspace) -> None:
        self._store, self._log = workspace.store, workspace.log

    def archive(self, slug: str) -> Any:
        """Out of the lists, or back into them."""
        find_survey(self._store, slug)
        if ArchiveForm().validate_on_submit():
            away = slug not in self._store.archived()
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
