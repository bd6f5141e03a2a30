"""Respondents' side: a page, a definition, a place to send one report to; no cookie, no log."""

from __future__ import annotations

from flask import Flask

from survey.collect.intake import IntakeMetrics
from survey.respond.client import Client
from survey.respond.views import blueprint
from survey.settings import Settings
from survey.store import Store

__all__ = ["Client", "init_app"]


def init_app(
    app: Flask, store: Store, settings: Settings, client: Client, figures: IntakeMetrics
) -> None:
    """Add the respondents' addresses to the application."""
    app.register_blueprint(blueprint(store, client, settings, figures))
