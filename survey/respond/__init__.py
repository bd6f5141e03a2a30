"""Respondents' side: a page, a definition, a place to send one report to; no cookie, no log."""

from __future__ import annotations

from flask import Flask

from survey.respond.client import Client
from survey.respond.views import blueprint
from survey.store import Store


def init_app(app: Flask, store: Store) -> None:
    """Add the respondents' addresses to the application."""
    app.register_blueprint(blueprint(store, Client.find()))
