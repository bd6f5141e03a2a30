"""Delete surveys whose retention period after their close is over."""

from __future__ import annotations

import time
from datetime import date, timedelta

from survey.store import Action, PublishedSurvey, Store

ACTOR = "retention"
"""The name in the log of the command that deletes surveys."""


def _closed_since(versions: list[PublishedSurvey]) -> date | None:
    """Return the day on which the last version was closed, or None if one is open."""
    if any(survey.state == "open" for survey in versions):
        return None
    return max(survey.changed for survey in versions)


def overdue(store: Store, days: int, today: date) -> list[str]:
    """Return the slugs of the surveys that were closed more than `days` days ago."""
    slugs = dict.fromkeys(survey.slug for survey in store.surveys() if not survey.is_test_run)
    last = today - timedelta(days=days)
    return [
        slug
        for slug in slugs
        if (closed := _closed_since(store.versions(slug))) is not None and closed < last
    ]


def delete_overdue(store: Store, days: int, today: date) -> list[str]:
    """Delete the surveys of `overdue` with all their reports; return their slugs."""
    slugs = overdue(store, days, today)
    for slug in slugs:
        store.delete_survey(slug, today)
        detail = f"{slug}, with all its reports, {days} days after its close"
        store.add_action(Action(int(time.time()), ACTOR, "deleted a survey", "", detail))
    if slugs:
        # Deleted rows stay in free pages of the file until it is rewritten.
        store.vacuum()
    return slugs
