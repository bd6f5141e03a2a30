"""The demo survey, and simulated respondents whose reports take the same path as real ones."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import numpy as np

from survey.collect.incoming_reports import Intake
from survey.collect.publication import publish
from survey.collect.simulation import simulated_report
from survey.errors import ConflictError, NotFoundError
from survey.mechanism.simulation import truths
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds.base import Answer
from survey.questionnaire.loading import load_file
from survey.questionnaire.survey import Survey
from survey.settings import Caps
from survey.store import PublishedSurvey, Store

DEFINITION = Path(__file__).with_name("workplace.toml")
EMAIL = "demo@example.org"

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


def respond(store: Store, survey: PublishedSurvey, n: int, today: date) -> Iterator[int]:
    """Submit reports of n simulated respondents; yield the number of stored reports after each."""
    intake = Intake(store)
    for number, answers in enumerate(_respondents(survey.definition, n), 1):
        intake.receive(survey.slug, simulated_report(survey, answers), today)
        yield number


def _respondents(definition: Definition, n: int) -> Iterator[tuple[Answer, ...]]:
    rng = np.random.default_rng()
    columns = []
    for question in definition.questions:
        answers, shares = zip(*TRUE_SHARES[question.id].items(), strict=True)
        indices = np.concatenate(list(truths(shares, n, rng)))
        columns.append([answers[i] for i in indices.tolist()])
    yield from zip(*columns, strict=True)
