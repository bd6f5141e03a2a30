"""What is kept no longer than was promised: closed surveys go whole, when their time is over."""

from __future__ import annotations

import time
from datetime import date, timedelta

from survey.store import Action, PublishedSurvey, Store

WHO = "retention"
"""Who did it, in the log."""


def over_since(versions: list[PublishedSurvey]) -> date | None:
    """The day on which the last version was closed; None while one still takes reports."""
    if any(survey.state == "open" for survey in versions):
        return None
    return max(survey.changed for survey in versions)


def overdue(store: Store, days: int, today: date) -> list[str]:
    """Names of the surveys that were closed more than `days` days ago."""
    slugs = dict.fromkeys(survey.slug for survey in store.surveys() if not survey.is_trial)
    last = today - timedelta(days=days)
    return [
        slug
        for slug in slugs
        if (over := over_since(store.versions(slug))) is not None and over < last
    ]


def delete_overdue(store: Store, days: int, today: date) -> list[str]:
    """Delete them with every report, and rewrite the file they lay in; returns their names."""
    slugs = overdue(store, days, today)
    for slug in slugs:
        store.delete_survey(slug, today)
        said = f"{slug}, with all its reports, {days} days after its close"
        store.add_action(Action(int(time.time()), WHO, "deleted a survey", "", said))
    if slugs:
        # What was deleted lies in free pages of the file until it is rewritten.
        store.vacuum()
    return slugs
