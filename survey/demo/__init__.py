"""`survey demo`: a survey with simulated respondents, whose reports are published at once."""

from __future__ import annotations

import fcntl
import os
import secrets
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import click
import numpy as np

from survey import server
from survey.collect.invitations import respondent_link
from survey.collect.publication import publish
from survey.collect.release import release_simulated, utc_today
from survey.collect.simulation import BATCH
from survey.demo.respondents import SHIFTS, simulate
from survey.errors import ConflictError, NotFoundError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition, Survey
from survey.questionnaire.loading import load_file
from survey.research.credentials import Passwords
from survey.settings import Caps, Settings
from survey.store import PublishedSurvey, Store, StoredReport, open_store

DEFINITION = Path(__file__).with_name("workplace.toml")
EMAIL = "demo@example.org"
ID_BYTES = 16
DATABASE_FILES = ("demo.db", "demo.db-wal", "demo.db-shm")

RELEASE_SECONDS = 60
"""Time between releases, short so that a visitor of the demo can see one."""

EXAMPLES: Mapping[str, str] = {
    "Cross-tabulation": "explore?first=bullied&second=leaving",
    "Difference": "explore/difference?question=leaving&a=link:Night+shift&b=link:Day+shift",
    "Regression": "explore/regression?question=leaving&predictor=bullied&predictor=link",
}
"""Example analyses, with their paths below the survey's dashboard."""


@contextmanager
def lock_directory(directory: Path) -> Iterator[None]:
    """Lock the directory; ConflictError if another demo uses it, because both share a database."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(
                f"another demo runs in {directory}; stop it, or choose another "
                "directory with --directory"
            ) from None
        yield


def load() -> Survey:
    """Return the demo's survey as loaded from its file."""
    return load_file(DEFINITION, Caps())


def definition() -> Definition:
    """Return the demo's survey as published."""
    return freeze(load(), 1)


def prepare(store: Store, today: date) -> PublishedSurvey:
    """Return the demo's published survey, and publish it first if necessary."""
    versions = store.versions("workplace")
    return versions[0] if versions else publish(store, load(), today)


def is_unchanged(survey: PublishedSurvey) -> bool:
    """Return whether the survey is open and has the questions that `simulate` answers."""
    return (
        survey.state == "open"
        and survey.definition.canonical == freeze(load(), survey.version).canonical
    )


def set_login(store: Store, password_hash: str) -> None:
    """Set the password of the demo's researcher, who gets a new one at every start."""
    try:
        store.set_password(EMAIL, password_hash)
    except NotFoundError:
        store.add_researcher(EMAIL, password_hash)


def respond(
    store: Store, survey: PublishedSurvey, n: int, rng: np.random.Generator
) -> Iterator[int]:
    """Publish the reports of n simulated respondents; yield the number per transaction."""
    for start in range(0, n, BATCH):
        population = simulate(min(BATCH, n - start), rng)
        codes = population.reports(survey.definition, rng)
        for shift, name in enumerate(SHIFTS):
            reports = [
                StoredReport(os.urandom(ID_BYTES), name, row.tobytes())
                for row in codes[population.shifts == shift]
            ]
            release_simulated(store, survey, reports, name)
            yield len(reports)


def default_directory() -> Path:
    """Return the directory of a demo that is started without --directory."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "ldp-survey" / "demo"


def start(directory: Path, port: int, respondents: int, *, fresh: bool, open_browser: bool) -> None:
    """Run the demo in its own directory until interrupted."""
    server.check_port("127.0.0.1", port)
    with lock_directory(directory):
        if fresh:
            for name in DATABASE_FILES:
                (directory / name).unlink(missing_ok=True)
        settings = _settings(directory, port)
        store = open_store(settings.database)
        store.migrate()
        survey = prepare(store, utc_today())
        password = secrets.token_urlsafe(12)
        set_login(store, Passwords(settings.password_cost).hash(password))
        _simulate(store, survey, respondents)
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
        SURVEY_KEYS=str(directory / "keys"),
        SURVEY_RELEASE_EVERY=str(RELEASE_SECONDS),
    )
    return Settings.from_environment(os.environ)


def _simulate(store: Store, survey: PublishedSurvey, respondents: int) -> None:
    """Add simulated respondents until the results have at least this many reports."""
    n_reports = store.n_released(survey.key)
    if respondents <= n_reports:
        return
    if not is_unchanged(survey):
        click.echo(
            "The survey was changed or closed, so no respondents are added. --fresh starts over."
        )
        return
    n = respondents - n_reports
    with click.progressbar(length=n, label="Simulated respondents") as bar:
        for n_added in respond(store, survey, n, np.random.default_rng()):
            bar.update(n_added)


def _links(survey: PublishedSurvey, settings: Settings, password: str, directory: Path) -> str:
    dashboard = f"{settings.public_url}/research/surveys/{survey.slug}"
    examples = "".join(f"{name:20}{dashboard}/{path}\n" for name, path in EXAMPLES.items())
    return (
        f"\nAnswer the survey   {respondent_link(survey, settings.public_url)}\n"
        f"Dashboard           {dashboard}\n"
        f"  sign in with      {EMAIL}  {password}\n"
        f"Estimates as CSV    {dashboard}/{survey.version}/estimates.csv\n"
        f"{examples}\n"
        f"The data is in {directory}. Press Ctrl-C to stop."
    )
