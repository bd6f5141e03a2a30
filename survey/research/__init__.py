"""The researchers' pages: accounts and teams, drafts, collection and results."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask
from flask_wtf.csrf import CSRFProtect

from survey.questionnaire.drafts.preview import Preview
from survey.research import (
    accounts,
    analyses,
    builder,
    downloads,
    handbook,
    look,
    share,
    surveys,
    team,
    version_changes,
)
from survey.research.access import Workspace
from survey.research.forms import MAX_UPLOAD_BYTES
from survey.results.estimates.result import ResultCache
from survey.settings import Settings
from survey.store import Store

__all__ = ["MAX_UPLOAD_BYTES", "init_app"]


def init_app(
    app: Flask,
    store: Store,
    results: ResultCache,
    settings: Settings,
    preview_page: Callable[[Preview], bytes],
) -> None:
    """Add the researchers' pages to the application; a CSRF token protects each form.

    `preview_page` returns the respondents' page with the preview of a draft.
    """
    csrf = CSRFProtect(app)
    # Reports are sent without cookies; their origin is checked instead.
    for endpoint in ("respond.reports", "respond.field_reports"):
        csrf.exempt(app.view_functions[endpoint])
    workspace = Workspace(store, results, settings, preview_page)
    parts = (
        *(accounts, team, builder, surveys, analyses, version_changes, downloads),
        *(share, look, handbook),
    )
    workspace.gate.add(app, [section for part in parts for section in part.sections(workspace)])
