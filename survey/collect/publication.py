"""Publish a survey, which freezes it, and close it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from survey.collect.admission import checked_schedule
from survey.collect.release import release
from survey.errors import ConflictError, StoreBusyError
from survey.questionnaire.definition import freeze
from survey.questionnaire.model import Survey
from survey.store import PublishedSurvey, Role, Schedule, Store, find_survey


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
    schedule = checked_schedule(kept if schedule is None else schedule)
    if newest and says_the_same(survey, newest):
        raise ConflictError(
            f"{survey.slug} is published already, with the same content, as version "
            f"{newest.version}"
        )
    following = newest.version + 1 if newest else 1
    if version not in (None, following):
        raise ConflictError(f"somebody has published under the name {survey.slug} meanwhile")
    return store.publish(freeze(survey, following), today, schedule, team)


def says_the_same(survey: Survey, newest: PublishedSurvey) -> bool:
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
