"""Whether a survey accepts reports now, by its state, its schedule and its maximum."""

from __future__ import annotations

from datetime import date, timedelta

from survey.errors import ClosedError, DesignError, FullError, NotOpenError, SurveyError
from survey.store import PublishedSurvey, Schedule, Store

GRACE = timedelta(days=7)
"""How long the previous version accepts reports, and a closed survey recognizes copies of them."""


def refusal(store: Store, survey: PublishedSurvey, today: date) -> SurveyError | None:
    """Return why a survey accepts no new report today, or None if it does.

    For pages: the store counts again while it adds a report, and never exceeds the maximum.
    """
    maximum = survey.schedule.maximum
    if error := schedule_refusal(survey, today):
        return error
    if maximum and store.n_released(survey.key) + store.n_pending(survey.key) >= maximum:
        return FullError(f"this survey has its maximum of {maximum:,} reports")
    return None


def schedule_refusal(survey: PublishedSurvey, today: date) -> SurveyError | None:
    """Return why a survey's state and days allow no new report today, or None if they do."""
    schedule = survey.schedule
    if survey.state == "closed" or (schedule.closes and today > schedule.closes):
        return ClosedError("this survey is closed and accepts no more reports")
    if schedule.opens and today < schedule.opens:
        return NotOpenError(schedule.opens)
    return None


def is_over(survey: PublishedSurvey, today: date) -> bool:
    """Return whether the last day of an open survey has passed."""
    closes = survey.schedule.closes
    return survey.state == "open" and closes is not None and today > closes


def validate_schedule(schedule: Schedule) -> Schedule:
    """Return a schedule if it is possible; raise DesignError with the reason if it is not."""
    opens, closes = schedule.opens, schedule.closes
    if opens and closes and closes < opens:
        raise DesignError(f"the survey would close on {closes}, before it opens on {opens}")
    if schedule.maximum < 0:
        raise DesignError(
            f"the maximum number of reports must be 0 (no maximum) or more, not {schedule.maximum}"
        )
    return schedule
