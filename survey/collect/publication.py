"""Publish surveys, close them, and delete those whose retention period is over."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import date, timedelta

from survey.errors import ConflictError, DesignError, StoreBusyError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Survey
from survey.store import Action, PublishedSurvey, Role, Schedule, Store, find_survey


def publish(
    store: Store,
    survey: Survey,
    today: date,
    schedule: Schedule | None = None,
    team: Mapping[int, Role] | None = None,
    version: int | None = None,
) -> PublishedSurvey:
    """Freeze a survey as its next version; the previous version accepts reports for a few days.

    Without a schedule, the version gets that of the previous one. A first version belongs to
    `team`. Raises ConflictError if the newest version has exactly the same content, or if the next
    version is not `version` because another one was published meanwhile.
    """
    newest = next(iter(store.versions(survey.slug)), None)
    previous = newest.schedule if newest else Schedule()
    field_until = validate_field_until(survey, today)
    schedule = validate_schedule(previous if schedule is None else schedule, field_until)
    if newest and has_same_content(survey, newest):
        raise ConflictError(
            f"{survey.slug} is already published with the same content as version {newest.version}"
        )
    following = newest.version + 1 if newest else 1
    if version not in (None, following):
        raise ConflictError(f"somebody has published under the name {survey.slug} meanwhile")
    field_key = spare_field_key(store) if field_until else b""
    return store.publish(freeze(survey, following, field_key), today, schedule, team)


def validate_field_until(survey: Survey, today: date) -> date | None:
    """Return the last day for uploads from field mode, if any; DesignError if it has passed."""
    if not survey.field_until:
        return None
    field_until = date.fromisoformat(survey.field_until)
    if field_until < today:
        raise DesignError(
            f"field mode would accept uploads until {field_until}, a day in the past; "
            "choose a later day"
        )
    return field_until


def spare_field_key(store: Store) -> bytes:
    """Return a public key for the field mode of a new version; the keeper has the private key."""
    spares = store.spare_field_keys()
    if not spares:
        raise StoreBusyError(
            "field mode needs a key from the keeper; check that the keeper is running, and publish "
            "again"
        )
    return spares[0].public_key


def has_same_content(survey: Survey, newest: PublishedSurvey) -> bool:
    """Return whether the newest version is open and has exactly the content of the survey."""
    field = newest.definition.field
    same = freeze(survey, newest.version, field.key if field else b"")
    return newest.state == "open" and same.canonical == newest.canonical


def close(store: Store, slug: str, today: date) -> bool:
    """Close a survey to further reports; return whether anything changed.

    The keeper then publishes its pending reports, as far as the release policy allows.
    """
    find_survey(store, slug)
    return bool(store.close_survey(slug, today))


def validate_schedule(schedule: Schedule, field_until: date | None = None) -> Schedule:
    """Return a schedule if it is possible; raise DesignError with the reason if it is not.

    `field_until` is the last day on which tablets in field mode may upload reports, if any.
    """
    opens, closes = schedule.opens, schedule.closes
    if schedule.is_damaged:
        raise DesignError(
            "the survey's first or last day is damaged in the database; set both days again"
        )
    if opens and closes and closes < opens:
        raise DesignError(f"the survey would close on {closes}, before it opens on {opens}")
    if closes and field_until and closes < field_until:
        raise DesignError(
            f"the survey would close on {closes}, but its tablets may upload responses until "
            f"{field_until}; choose {field_until} or a later day"
        )
    if schedule.maximum < 0:
        raise DesignError(
            f"the maximum number of reports must be 0 (no maximum) or more, not {schedule.maximum}"
        )
    return schedule


ACTOR = "retention"
"""The name in the log of the command that deletes surveys."""


def overdue(store: Store, days: int, today: date) -> list[str]:
    """Return the slugs of the surveys that were closed more than `days` days ago."""
    last = today - timedelta(days=days)
    surveys = [survey for survey in store.surveys() if not survey.is_test_run]
    recent = {survey.slug for survey in surveys if survey.state == "open" or survey.changed >= last}
    return list(dict.fromkeys(survey.slug for survey in surveys if survey.slug not in recent))


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
