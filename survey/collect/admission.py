"""Whether a survey takes reports now, by its state and its schedule; every refusal named."""

from __future__ import annotations

from datetime import date, timedelta

from survey.errors import ClosedError, DesignError, FullError, NotOpenError, SurveyError
from survey.store import PublishedSurvey, Schedule, Store

GRACE = timedelta(days=7)
"""How long the version before the current one, and the ids of a closed survey, are known."""


def refusal(store: Store, survey: PublishedSurvey, today: date) -> SurveyError | None:
    """Why a survey takes no new report today, or None when it does.

    How many it has is counted when it is asked: reports that arrive at the same moment may bring
    it a few above its limit.
    """
    schedule = survey.schedule
    if survey.state == "closed" or (schedule.closes and today > schedule.closes):
        return ClosedError("this survey is closed and takes no more reports")
    if schedule.opens and today < schedule.opens:
        return NotOpenError(schedule.opens)
    if schedule.maximum and taken(store, survey) >= schedule.maximum:
        return FullError(f"this survey has the {schedule.maximum:,} reports that it takes")
    return None


def taken(store: Store, survey: PublishedSurvey) -> int:
    """Reports that a version has, released or waiting; for its limit alone, never for readers."""
    return store.n_released(survey.key) + store.n_pending(survey.key)


def is_over(survey: PublishedSurvey, today: date) -> bool:
    """Whether a survey's last day has passed and nobody has closed it yet."""
    closes = survey.schedule.closes
    return survey.state == "open" and closes is not None and today > closes


def validate_schedule(schedule: Schedule) -> Schedule:
    """A schedule that can be kept; DesignError says why another cannot."""
    opens, closes = schedule.opens, schedule.closes
    if opens and closes and closes < opens:
        raise DesignError(f"the survey would close on {closes}, before it opens on {opens}")
    if schedule.maximum < 0:
        raise DesignError(f"a survey takes at most {schedule.maximum} reports; 0 means any number")
    return schedule
