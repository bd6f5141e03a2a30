"""Try-outs of drafts: a survey of its own beside the real ones, of which nothing stays.

Simulated respondents take the path of real ones: a device's randomization, the wire, the store,
the release. Nothing of a try-out is ever added to a published survey.
"""

from __future__ import annotations

import secrets
from datetime import date

import numpy as np

from survey.collect.release import release
from survey.collect.simulated import collected
from survey.collect.simulated_people import Shares, simulated_people
from survey.errors import DesignError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.model import Survey
from survey.store import Draft, PublishedSurvey, Store

MOST_SIMULATED = 5_000
"""Simulated respondents at a time: somebody waits for the page."""

SECRET_BYTES = 16
"""Random bytes in the address of a try-out: it is open, and only known to whom it was shown."""


def make_trial(store: Store, survey: Survey, draft: Draft, today: date) -> PublishedSurvey:
    """Publish a draft as its try-out, in the place of the one before; open to all who know of it.

    What is not published yet is for nobody else to read: its address is new and cannot be guessed.
    """
    remove_trial(store, draft, today)
    slug = f"{draft.slug}-{secrets.token_hex(SECRET_BYTES)}"
    others = {language: _tried(other, slug) for language, other in survey.translations.items()}
    return store.publish(freeze(_tried(survey, slug).translated(others), 1), today)


def _tried(survey: Survey, slug: str) -> Survey:
    """The survey under another name; every page, file and report of it says what it is."""
    title = f"TEST: {survey.title}"
    return survey.model_copy(update={"slug": slug, "access": "open", "title": title})


def remove_trial(store: Store, draft: Draft, today: date) -> None:
    """Delete a draft's try-out with all its reports, if there is one."""
    for trial in store.test_runs(draft.slug):
        store.close_survey(trial.slug, today)
        store.delete_survey(trial.slug, today)


def simulate(
    store: Store, survey: PublishedSurvey, n: int, shares: Shares, rng: np.random.Generator
) -> int:
    """Let n simulated respondents answer a try-out, and release; returns how many were stored.

    Raises DesignError for a survey that is no try-out or a closed one, or too many people at a
    time.
    """
    if not survey.is_test_run:
        raise DesignError(f"{survey.slug} is no try-out: nobody is simulated in a real survey")
    if survey.state != "open":
        raise DesignError("The try-out is closed and takes no more reports: make it anew")
    if not 1 <= n <= MOST_SIMULATED:
        raise DesignError(f"{n:,} respondents: from 1 to {MOST_SIMULATED:,} can be simulated")
    stored = sum(collected(store, survey, simulated_people(survey.definition, n, shares, rng)))
    release(store, survey, 1)
    return stored
