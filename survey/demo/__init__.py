"""`survey demo`: a survey with simulated respondents, whose reports are published at once.

The respondents' answers are fictitious, with known associations. Night-shift respondents are
injured, bullied and on overtime more often. Bullied respondents have less support, are less
satisfied, and look for another job far more often.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import click
import numpy as np

from survey import server
from survey.collect.invitations import respondent_link
from survey.collect.publication import publish
from survey.collect.release import release_simulated, utc_today
from survey.collect.simulation import BATCH
from survey.errors import ConflictError, NotFoundError
from survey.mechanism import AnyChannel
from survey.mechanism.channel import Booleans, Codes, Floats, Integers
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition, Survey
from survey.questionnaire.loading import load_file
from survey.research.credentials import Passwords
from survey.settings import Caps, Settings
from survey.store import PublishedSurvey, Store, StoredReport, open_store

DAY, NIGHT = "Day shift", "Night shift"
SHIFTS = DAY, NIGHT
"""The groups of respondents."""

NIGHT_SHARE = 0.4
"""Share of respondents who work at night."""

YES, NO, SILENT = 0, 1, 2
"""Positions of the options of a yes/no question with "Prefer not to say"."""

SICK = {False: (0.42, 0.26, 0.22, 0.10), True: (0.28, 0.24, 0.38, 0.10)}
"""Shares of each frequency of working while ill, and of no answer, by night shift."""

SCORES = 7
"""Number of points of the satisfaction scale; the next position is "Prefer not to say"."""

MOST_HOURS = 12
"""Last point of the grid of hours; the next position is "Prefer not to say"."""


@dataclass(frozen=True)
class Population:
    """True answers of n respondents.

    shifts   (n,): the position of each respondent's shift in `SHIFTS`
    answers  by question, (n,): the position of the option or grid point; of a multiple choice,
             (n, options): 1 for each ticked option
    """

    shifts: Integers
    answers: Mapping[str, Integers]

    def reports(self, definition: Definition, rng: np.random.Generator) -> Codes:
        """Randomize the answers to the questions drawn for each respondent.

        Returns the codes as a store keeps them, shape (n, bytes of a report).
        """
        n, n_groups = len(self.shifts), len(definition.groups)
        order = np.argsort(rng.random((n, n_groups)), axis=1)
        drawn = (order < definition.drawn).astype(np.uint8)
        group_of = {id_: place for place, group in enumerate(definition.groups) for id_ in group}
        codes = self._codes(definition, rng)
        columns: list[Codes] = []
        for question in definition.questions:
            # A stored code begins with 1 if its question was asked, and is 0 otherwise.
            is_drawn = drawn[:, group_of[question.id], None]
            columns += [is_drawn, codes[question.id] * is_drawn]
        return np.concatenate(columns, axis=1)

    def _codes(self, definition: Definition, rng: np.random.Generator) -> dict[str, Codes]:
        """Randomize all answers, by question; a joint response at its first question."""
        by_id = {question.id: question for question in definition.questions}
        codes: dict[str, Codes] = {}
        for question in definition.questions:
            joint = question.joint
            if joint is None:
                codes[question.id] = _stored(question.channel, self.answers[question.id], rng)
            elif question.id == joint.questions[0]:
                sizes = [by_id[id_].channel.options for id_ in joint.questions]
                truths = np.ravel_multi_index([self.answers[id_] for id_ in joint.questions], sizes)
                options = np.unravel_index(joint.channel.perturb(truths, rng), sizes)
                for id_, column in zip(joint.questions, options, strict=True):
                    codes[id_] = column.astype(np.uint8)[:, None]
        return codes


def _stored(channel: AnyChannel, truths: Integers, rng: np.random.Generator) -> Codes:
    reports = channel.perturb(truths, rng).astype(np.uint8)
    return np.packbits(reports, axis=1) if channel.report_bits else reports[:, None]


def simulate(n: int, rng: np.random.Generator) -> Population:
    """Draw the shifts and true answers of n respondents."""
    night = rng.random(n) < NIGHT_SHARE
    bullied = rng.random(n) < np.where(night, 0.38, 0.24)
    injured = rng.random(n) < np.where(night, 0.34, 0.16)
    harassed = rng.random(n) < np.where(bullied, 0.30, 0.12)
    ill = np.where(night, _draw(SICK[True], n, rng), _draw(SICK[False], n, rng))
    hours = np.minimum(np.rint(rng.gamma(1.8, np.where(night, 3.8, 2.6))), MOST_HOURS)
    mood = 4.5 - 1.3 * bullied - 0.6 * night - 0.1 * hours + rng.normal(0, 1.3, n)
    satisfaction = np.clip(np.rint(mood), 0, 6)
    log_odds = -0.95 + 1.2 * bullied + 0.4 * night - 0.25 * (satisfaction - 3.5)
    leaving = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    return Population(
        night.astype(np.int64),
        {
            "injured": _or_silent(_yes_no(injured), SILENT, 0.10, rng),
            "sick_at_work": ill,
            "bullied": _or_silent(_yes_no(bullied), SILENT, 0.08, rng),
            "harassed": _or_silent(_yes_no(harassed), SILENT, 0.12, rng),
            "support": _support(bullied, rng),
            "unpaid_overtime": _or_silent(hours, MOST_HOURS + 1, 0.06, rng),
            "satisfaction": _or_silent(satisfaction, SCORES, 0.04, rng),
            "leaving": _or_silent(_yes_no(leaving), SILENT, 0.06, rng),
        },
    )


def _draw(shares: tuple[float, ...], n: int, rng: np.random.Generator) -> Integers:
    return rng.choice(len(shares), size=n, p=shares)


def _yes_no(is_yes: Booleans) -> Integers:
    return np.where(is_yes, YES, NO)


def _or_silent(
    answers: Integers | Floats, silent: int, share: float, rng: np.random.Generator
) -> Integers:
    """Replace a share of the answers by "Prefer not to say"."""
    return np.where(rng.random(len(answers)) < share, silent, answers).astype(np.int64)


def _support(bullied: Booleans, rng: np.random.Generator) -> Integers:
    """Draw who supports each respondent; bullied ones have less support."""
    shares = np.where(bullied[:, None], (0.36, 0.16, 0.22, 0.14), (0.56, 0.40, 0.20, 0.14))
    is_silent = rng.random((len(bullied), 1)) < 0.06
    ticks = (rng.random(shares.shape) < shares) & ~is_silent
    nobody = ~ticks.any(axis=1, keepdims=True) & ~is_silent
    return np.concatenate([ticks, nobody, is_silent], axis=1).astype(np.int64)


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
                webbrowser.open(respondent_link(survey, settings))

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
    dashboard = f"{settings.researchers_url}/research/surveys/{survey.slug}"
    examples = "".join(f"{name:20}{dashboard}/{path}\n" for name, path in EXAMPLES.items())
    return (
        f"\nAnswer the survey   {respondent_link(survey, settings)}\n"
        f"Dashboard           {dashboard}\n"
        f"  sign in with      {EMAIL}  {password}\n"
        f"Estimates as CSV    {dashboard}/{survey.version}/estimates.csv\n"
        f"{examples}\n"
        f"The data is in {directory}. Press Ctrl-C to stop."
    )
