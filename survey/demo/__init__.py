"""`survey demo`: a survey with simulated respondents who take the same path as real ones."""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np

from survey.collect.publication import publish
from survey.collect.submission import receive
from survey.errors import ConflictError, NotFoundError
from survey.mechanism import secure_uniform_below
from survey.mechanism.simulate import truths
from survey.questionnaire.definition import Definition, freeze, report_body
from survey.questionnaire.native import load_file
from survey.settings import Caps
from survey.store import PublishedSurvey, Store

DEFINITION = Path(__file__).with_name("workplace.toml")
EMAIL = "demo@example.org"

TRUE_SHARES: Mapping[str, Sequence[float]] = {
    "injured": (0.20, 0.68, 0.12),
    "sick_at_work": (0.34, 0.24, 0.30, 0.12),
    "bullied": (0.18, 0.67, 0.15),
    "harassed": (0.16, 0.84),
    "support": (0.36, 0.18, 0.14, 0.18, 0.14),
    "unpaid_overtime": (0.38, 0.30, 0.20, 0.12),
    "satisfaction": (0.08, 0.10, 0.14, 0.14, 0.18, 0.23, 0.13),
    "leaving": (0.34, 0.66),
}
"""What the simulated respondents would truthfully answer; invented."""


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Keep the directory to one demo: a second one would take away the first one's database."""
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


def today() -> date:
    """The UTC date."""
    return datetime.now(UTC).date()


def definition() -> Definition:
    """The demo's survey as it is published."""
    return freeze(load_file(DEFINITION, Caps()), 1)


def prepare(store: Store, today: date) -> PublishedSurvey:
    """The demo's survey, published if it is not yet."""
    found = store.versions("workplace")
    return found[0] if found else publish(store, load_file(DEFINITION, Caps()), today)


def is_untouched(survey: PublishedSurvey) -> bool:
    """Whether this is still the survey that the simulated respondents know how to answer."""
    asked = {question.id: question.channel.k for question in survey.definition.questions}
    known = {question: len(shares) for question, shares in TRUE_SHARES.items()}
    return survey.state == "open" and asked == known


def set_login(store: Store, password_hash: str) -> None:
    """Give the demo's researcher a password, new at every start."""
    try:
        store.set_password(EMAIL, password_hash)
    except NotFoundError:
        store.add_researcher(EMAIL, password_hash)


def respond(store: Store, survey: PublishedSurvey, n: int, today: date) -> Iterator[int]:
    """Let n simulated respondents answer; yields after each report is on the disk."""
    for number, answers in enumerate(_respondents(survey.definition, n), 1):
        receive(store, survey.slug, _report(survey, answers), today)
        yield number


def _respondents(definition: Definition, n: int) -> Iterator[tuple[int, ...]]:
    rng = np.random.default_rng()
    columns = [
        np.concatenate(list(truths(TRUE_SHARES[question.id], n, rng)))
        for question in definition.questions
    ]
    for answers in zip(*columns, strict=True):
        yield tuple(int(answer) for answer in answers)


def _report(survey: PublishedSurvey, answers: Sequence[int]) -> bytes:
    """One person's report, perturbed exactly as a device does it."""
    codes = [
        question.channel.perturb_one(answer, secure_uniform_below)
        for question, answer in zip(survey.definition.questions, answers, strict=True)
    ]
    return report_body(
        survey.sha256, secrets.token_urlsafe(16), codes, length=survey.definition.report_bytes
    )
