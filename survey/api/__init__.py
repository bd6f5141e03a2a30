"""The API for programs: released results, read with a token; the same rows as the pages."""

from __future__ import annotations

from flask import Flask

from survey.api.endpoints import blueprint, guard
from survey.api.tokens import Gate
from survey.results.estimates.result import ResultCache
from survey.settings import Settings
from survey.store import Store

__all__ = ["init_app"]


def init_app(app: Flask, store: Store, results: ResultCache, settings: Settings) -> None:
    """Add the API to the application."""
    app.register_blueprint(blueprint(store, results, Gate(store), settings.researchers_url))
    guard(app)
