"""Released reports of simulated respondents with known joint shares of answers."""

from __future__ import annotations

import os

import numpy as np

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, Store, StoredReport
from tests.conftest import SMALL, TODAY
from tests.store.reports import publish_pending

SHARES = np.array([[0.20, 0.10, 0.02], [0.20, 0.35, 0.03], [0.05, 0.03, 0.02]])
"""True joint shares of (yes, no, prefer not to say) by (never, once, often); they add up to 1."""


def published(store: Store, toml: str = SMALL) -> PublishedSurvey:
    """Publish a version of the small survey, which has two questions with three answers each."""
    return publish(store, load(toml.encode(), "small.toml", Caps()), TODAY)


def add_people(
    store: Store,
    survey: PublishedSurvey,
    n: int,
    stratum: str = "",
    shares: np.ndarray = SHARES,
    seed: int = 7,
) -> None:
    """Store and release n reports of respondents drawn from these joint shares."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(shares.size, size=n, p=shares.ravel() / shares.sum())
    channels = [question.channel for question in survey.definition.questions]
    codes = [
        channel.perturb(answers, rng)
        for channel, answers in zip(channels, np.unravel_index(truth, shares.shape), strict=True)
    ]
    rows = np.stack(codes, axis=1).astype(np.uint8)
    store.add_reports(
        [(survey.key, StoredReport(os.urandom(16), stratum, row.tobytes())) for row in rows]
    )
    publish_pending(store, survey, 25)


def shares_by_first_answer(first: float) -> np.ndarray:
    """Return `SHARES` with another share of "yes" to the first question."""
    remainder = (1 - first) * SHARES[1:] / SHARES[1:].sum()
    return np.vstack([first * SHARES[0] / SHARES[0].sum(), remainder])
