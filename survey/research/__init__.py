"""Researchers' side: sign in, publish, read released estimates."""

from __future__ import annotations

from flask import Flask
from flask_wtf.csrf import CSRFProtect

from survey.research import accounts, views
from survey.research.forms import MAX_UPLOAD_BYTES
from survey.results.tables import Results
from survey.settings import Settings
from survey.store import Store

__all__ = ["MAX_UPLOAD_BYTES", "init_app"]


def init_app(
    app: Flask, store: Store, results: Results, settings: Settings, client_hash: str
) -> None:
    """Add the researchers' addresses to the application, each form guarded against CSRF."""
    csrf = CSRFProtect(app)
    # Reports carry no cookie that could be abused; their origin is checked instead.
    csrf.exempt("survey.respond.views.reports")
    signed_in = accounts.SignedIn(store, accounts.Passwords(settings.password_cost))
    app.register_blueprint(accounts.blueprint(signed_in))
    app.register_blueprint(views.blueprint(store, results, settings, signed_in, client_hash))
