"""`survey demo`: a survey whose simulated respondents send reports by the path of real ones."""

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
from survey.collect.release import utc_today
from survey.collect.simulation import add_simulated
from survey.errors import ConflictError, NotFoundError
from survey.mechanism.simulation import truths
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition, Survey
from survey.questionnaire.kinds.base import Answer
from survey.questionnaire.loading import load_file
from survey.research.credentials import Passwords
from survey.settings import Caps, Settings
from survey.store import PublishedSurvey, Store, open_store

DEFINITION = Path(__file__).with_name("workplace.toml")
EMAIL = "demo@example.org"
DATABASE_FILES = ("demo.db", "demo.db-wal", "demo.db-shm")

RELEASE_SECONDS = 60
"""Time between releases: the demo's visitor wants to see one, and shares it with nobody."""

OVERTIME = (0.34, 0.08, 0.09, 0.08, 0.07, 0.07, 0.05, 0.04, 0.04, 0.03, 0.03)

TRUE_SHARES: Mapping[str, Mapping[Answer, float]] = {
    "injured": dict(enumerate((0.20, 0.68, 0.12))),
    "sick_at_work": dict(enumerate((0.34, 0.24, 0.30, 0.12))),
    "bullied": dict(enumerate((0.18, 0.67, 0.15))),
    "harassed": dict(enumerate((0.16, 0.84))),
    "support": {
        (0,): 0.20,
        (0, 1): 0.16,
        (0, 2): 0.08,
        (0, 1, 2): 0.04,
        (1,): 0.10,
        (2,): 0.08,
        (1, 3): 0.05,
        (3,): 0.06,
        (4,): 0.15,
        (5,): 0.08,
    },
    "unpaid_overtime": {**dict(enumerate(OVERTIME)), 12: 0.03, 15: 0.02, 20: 0.01, 31: 0.02},
    "satisfaction": dict(enumerate((0.08, 0.10, 0.14, 0.14, 0.18, 0.23, 0.13))),
    "leaving": dict(enumerate((0.34, 0.66))),
}
"""Fictitious true answers of the simulated respondents, with their shares."""


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
    """Return whether the survey is open and has the questions that `TRUE_SHARES` answers."""
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


def _respondents(definition: Definition, n: int) -> Iterator[tuple[Answer, ...]]:
    rng = np.random.default_rng()
    columns = []
    for question in definition.questions:
        answers, shares = zip(*TRUE_SHARES[question.id].items(), strict=True)
        indices = np.concatenate(list(truths(shares, n, rng)))
        columns.append([answers[i] for i in indices.tolist()])
    yield from zip(*columns, strict=True)


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
    """Add simulated respondents until the results have at least so many reports."""
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
        for n_added in add_simulated(store, survey, _respondents(survey.definition, n)):
            bar.update(n_added)


def _links(survey: PublishedSurvey, settings: Settings, password: str, directory: Path) -> str:
    dashboard = f"{settings.public_url}/research/surveys/{survey.slug}"
    return (
        f"\nAnswer the survey   {respondent_link(survey, settings.public_url)}\n"
        f"Dashboard           {dashboard}\n"
        f"  sign in with      {EMAIL}  {password}\n"
        f"Estimates as CSV    {dashboard}/{survey.version}/estimates.csv\n\n"
        f"The data is in {directory}. Press Ctrl-C to stop."
    )
