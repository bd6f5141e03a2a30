"""The researchers' pages: accounts and teams, drafts, collection and results."""

from __future__ import annotations

from flask import Flask
from flask_wtf.csrf import CSRFProtect

from survey.research import accounts, analyses, builder, downloads, surveys, team
from survey.research.access import Workspace
from survey.research.forms import MAX_UPLOAD_BYTES
from survey.results.estimates.result import ResultCache
from survey.settings import Settings
from survey.store import Store

__all__ = ["MAX_UPLOAD_BYTES", "init_app"]


def init_app(app: Flask, store: Store, results: ResultCache, settings: Settings) -> None:
    """Add the researchers' pages to the application; a CSRF token protects each form."""
    csrf = CSRFProtect(app)
    # Reports are sent without cookies; their origin is checked instead.
    csrf.exempt(app.view_functions["respond.reports"])
    workspace = Workspace(store, results, settings)
    parts = (accounts, team, builder, surveys, analyses, downloads)
    workspace.gate.add(app, [section for part in parts for section in part.sections(workspace)])
