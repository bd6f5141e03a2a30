"""Publish surveys, close them, and delete closed ones when their retention period is over."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import date, timedelta

from survey.collect.admission import validate_schedule
from survey.collect.release import release
from survey.errors import ConflictError, StoreBusyError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.model import Survey
from survey.store import Action, PublishedSurvey, Role, Schedule, Store, find_survey


def publish(
    store: Store,
    survey: Survey,
    today: date,
    schedule: Schedule | None = None,
    team: Mapping[int, Role] | None = None,
    version: int | None = None,
) -> PublishedSurvey:
    """Freeze a survey as its next version; the version before takes reports for a few days more.

    Without a schedule it goes on with that of the version before. A first version belongs to
    `team`. Raises ConflictError when the newest version says exactly the same, and when it would
    not be the `version` that somebody agreed to: another was published under the name meanwhile.
    """
    newest = next(iter(store.versions(survey.slug)), None)
    kept = newest.schedule if newest else Schedule()
    schedule = validate_schedule(kept if schedule is None else schedule)
    if newest and has_same_content(survey, newest):
        raise ConflictError(
            f"{survey.slug} is published already, with the same content, as version "
            f"{newest.version}"
        )
    following = newest.version + 1 if newest else 1
    if version not in (None, following):
        raise ConflictError(f"somebody has published under the name {survey.slug} meanwhile")
    return store.publish(freeze(survey, following), today, schedule, team)


def has_same_content(survey: Survey, newest: PublishedSurvey) -> bool:
    """Whether the newest version is open and is what the survey would be published as."""
    return newest.state == "open" and freeze(survey, newest.version).canonical == newest.canonical


def close(store: Store, slug: str, today: date) -> bool:
    """Take no more reports and release what waits; returns whether there was anything to do.

    What waits is released even when it is fewer than a release's minimum: a report that nobody
    may ever read would have been given for nothing. Interrupted, it is finished by closing again.
    The file is rewritten at the end, so that its pages tell nothing of who came when.
    """
    find_survey(store, slug)
    closed = store.close_survey(slug, today)
    released = sum(
        release(store, survey, 1, clock=lambda: today) for survey in store.versions(slug)
    )
    try:
        store.vacuum()
    except StoreBusyError as error:
        raise StoreBusyError(
            f"{slug} is closed and all its reports are released, but its tables are still to be "
            "rewritten without their history: somebody reads all of them just now, a backup "
            f"perhaps. The server does so by itself; or close it again when that is over ({error})"
        ) from None
    return bool(closed or released)


WHO = "retention"
"""Who did it, in the log."""


def over_since(versions: list[PublishedSurvey]) -> date | None:
    """The day on which the last version was closed; None while one still takes reports."""
    if any(survey.state == "open" for survey in versions):
        return None
    return max(survey.changed for survey in versions)


def overdue(store: Store, days: int, today: date) -> list[str]:
    """Names of the surveys that were closed more than `days` days ago."""
    slugs = dict.fromkeys(survey.slug for survey in store.surveys() if not survey.is_test_run)
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
