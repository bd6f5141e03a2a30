"""`survey demo`: prepare the database, simulate respondents, and run the server."""

from __future__ import annotations

import os
import secrets
import time
import webbrowser
from pathlib import Path

import click

from survey import demo, server
from survey.collect.invitations import respondent_link
from survey.collect.release import ReleaseLoop, release, utc_today
from survey.research.credentials import Passwords
from survey.settings import Settings
from survey.store import PublishedSurvey, Store, open_store

DATABASE_FILES = ("demo.db", "demo.db-wal", "demo.db-shm")


def default_directory() -> Path:
    """Return the directory of a demo that is started without --directory."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "ldp-survey" / "demo"


def start(directory: Path, port: int, respondents: int, *, fresh: bool, open_browser: bool) -> None:
    """Run the demo in its own directory until interrupted."""
    server.check_port("127.0.0.1", port)
    with demo.lock_directory(directory):
        if fresh:
            for name in DATABASE_FILES:
                (directory / name).unlink(missing_ok=True)
        settings = _settings(directory, port)
        store = open_store(settings.database)
        store.migrate()
        survey = demo.prepare(store, utc_today())
        password = secrets.token_urlsafe(12)
        demo.set_login(store, Passwords(settings.password_cost).hash(password))
        _simulate(store, survey, settings, respondents)
        store.close_connections()

        def show_links() -> None:
            click.echo(_links(survey, settings, password, directory))
            if open_browser:
                webbrowser.open(respondent_link(survey, settings.public_url))

        server.serve(settings, "127.0.0.1", port, 1, show_links)


def _settings(directory: Path, port: int) -> Settings:
    """Return the demo's settings and set them in the environment for the server's workers."""
    os.environ.update(
        SURVEY_SECRET=secrets.token_hex(32),
        SURVEY_DATABASE=f"sqlite:///{directory / 'demo.db'}",
        SURVEY_PUBLIC_URL=f"http://127.0.0.1:{port}",
    )
    return Settings.from_environment(os.environ)


def _simulate(store: Store, survey: PublishedSurvey, settings: Settings, respondents: int) -> None:
    """Add simulated respondents up to the number, and release reports as the server does."""
    n_reports = store.n_released(survey.key) + store.n_pending(survey.key)
    if respondents <= n_reports:
        return
    if not demo.is_unchanged(survey):
        click.echo(
            "The survey was changed or closed, so no respondents are added. --fresh starts over."
        )
        return
    releases = ReleaseLoop(store, settings)
    with click.progressbar(
        demo.respond(store, survey, respondents - n_reports, utc_today()),
        length=respondents - n_reports,
        label="Simulated respondents",
    ) as reports:
        for number in reports:
            if number % 100 == 0:
                releases.release_due(time.monotonic())
    release(store, survey, settings.release_minimum)


def _links(survey: PublishedSurvey, settings: Settings, password: str, directory: Path) -> str:
    dashboard = f"{settings.public_url}/research/surveys/{survey.slug}"
    return (
        f"\nAnswer the survey   {respondent_link(survey, settings.public_url)}\n"
        f"Dashboard           {dashboard}\n"
        f"  sign in with      {demo.EMAIL}  {password}\n"
        f"Estimates as CSV    {dashboard}/{survey.version}/estimates.csv\n\n"
        f"The data is in {directory}. Press Ctrl-C to stop."
    )
