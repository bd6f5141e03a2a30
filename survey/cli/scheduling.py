"""When a survey takes reports, and how many: said at publication, changed at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import click

from survey.cli.common import configured_store, refusing
from survey.collect.admission import checked_schedule
from survey.errors import ClosedError
from survey.store import Schedule, find_survey

DAY = click.DateTime(["%Y-%m-%d"])


def scheduling(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that says when a survey takes reports."""
    for option in (
        click.option("--most", type=click.IntRange(0), help="Most reports; 0 is any number."),
        click.option("--closes", type=DAY, help="Last day (UTC) on which it takes reports."),
        click.option("--opens", type=DAY, help="First day (UTC) on which it takes reports."),
    ):
        command = option(command)
    return command


def rescheduled(
    schedule: Schedule, opens: datetime | None, closes: datetime | None, most: int | None
) -> Schedule:
    """A schedule with what was said of it anew."""
    if opens:
        schedule = replace(schedule, opens=opens.date())
    if closes:
        schedule = replace(schedule, closes=closes.date())
    return schedule if most is None else replace(schedule, most=most)


@click.command("schedule")
@click.argument("slug")
@scheduling
@refusing
def schedule_survey(
    slug: str, opens: datetime | None, closes: datetime | None, most: int | None
) -> None:
    """Change from when to when SLUG takes reports, and how many; print what holds."""
    store = configured_store()
    survey = find_survey(store, slug)
    if survey.state == "closed":
        raise ClosedError(f"{slug} is closed; what is closed stays closed")
    schedule = checked_schedule(rescheduled(survey.schedule, opens, closes, most))
    if schedule != survey.schedule:
        store.set_schedule(survey.key, schedule)
    click.echo(f"{slug} takes {in_words(schedule)}")


def in_words(schedule: Schedule) -> str:
    """A schedule as the end of a sentence.

    >>> in_words(Schedule(most=500))
    'at most 500 reports, from now until it is closed'
    """
    number = f"at most {schedule.most:,} reports" if schedule.most else "any number of reports"
    begin = f"from {schedule.opens}" if schedule.opens else "from now"
    end = f"to {schedule.closes}" if schedule.closes else "until it is closed"
    return f"{number}, {begin} {end}"
