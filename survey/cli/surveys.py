"""The commands of one survey: check, publish, schedule, close, link and invite."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from survey.cli.common import PATH, configured_settings, configured_store, refusing
from survey.collect.admission import validate_schedule
from survey.collect.invitations import (
    issue_invitations,
    new_tokens,
    qr_code,
    respondent_link,
    validate_stratum,
)
from survey.collect.publication import close as close_survey
from survey.collect.publication import publish as publish_survey
from survey.collect.release import utc_today
from survey.errors import ClosedError, DefinitionError, SurveyError
from survey.mechanism.accounting import format_epsilon
from survey.questionnaire.canonical import freeze
from survey.questionnaire.ledger import ledger, lines
from survey.questionnaire.loading import load_file
from survey.respond.client import Client
from survey.results.exports.csv import links_csv
from survey.store import PublishedSurvey, Schedule, Store, find_survey

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
    return schedule if most is None else replace(schedule, maximum=most)


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
    schedule = validate_schedule(rescheduled(survey.schedule, opens, closes, most))
    if schedule != survey.schedule:
        store.set_schedule(survey.key, schedule)
    click.echo(f"{slug} takes {schedule_in_words(schedule)}")


def schedule_in_words(schedule: Schedule) -> str:
    """A schedule as the end of a sentence.

    >>> schedule_in_words(Schedule(maximum=500))
    'at most 500 reports, from now until it is closed'
    """
    number = (
        f"at most {schedule.maximum:,} reports" if schedule.maximum else "any number of reports"
    )
    begin = f"from {schedule.opens}" if schedule.opens else "from now"
    end = f"to {schedule.closes}" if schedule.closes else "until it is closed"
    return f"{number}, {begin} {end}"


@click.command()
@click.argument("file", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@refusing
def check(file: Path, as_json: bool) -> None:
    """Print every mistake in a definition FILE, or what its numbers mean."""
    try:
        survey = load_file(file, configured_settings().caps)
    except DefinitionError as error:
        for place, text in error.mistakes:
            click.echo(
                f"{file}: {place}: {text}" if place != file.name else f"{place}: {text}", err=True
            )
        sys.exit(1)
    definition = freeze(survey, 1)
    _warn(definition.epsilon)
    found = ledger(definition)
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=2))
        return
    click.echo(
        f"{file}: no mistakes. {len(definition.questions)} questions, "
        f"total epsilon {format_epsilon(definition.epsilon)}, reports of "
        f"{definition.report_bytes:,} bytes."
    )
    click.echo("\n".join(lines(found)))


@click.command()
@click.argument("file", type=PATH)
@scheduling
@refusing
def publish(file: Path, opens: datetime | None, closes: datetime | None, most: int | None) -> None:
    """Freeze a definition FILE and open it for reports."""
    settings, store = configured_settings(), configured_store()
    written = load_file(file, settings.caps)
    _warn(freeze(written, 1).epsilon)
    newest = next(iter(store.versions(written.slug)), None)
    schedule = rescheduled(newest.schedule if newest else Schedule(), opens, closes, most)
    survey = publish_survey(store, written, utc_today(), schedule)
    click.echo(f"published {survey.slug} version {survey.version}")
    click.echo(f"definition {survey.sha256}\npage code  {Client.load().sha256}")
    if survey.definition.access == "invitation":
        click.echo(f"make its personal links with survey invite {survey.slug}")
    else:
        click.echo(respondent_link(survey, settings.public_url))
    if survey.version > 1:
        click.echo("links and invitations of the version before lead nowhere any more", err=True)


@click.command()
@click.argument("slug")
@refusing
def close(slug: str) -> None:
    """Take no more reports for SLUG and release what waits."""
    n = close_survey(configured_store(), slug, utc_today())
    click.echo(f"closed {slug}" if n else f"{slug} was closed already")


def _warn(epsilon: float) -> None:
    """Say before it is frozen that a survey protects its respondents little."""
    if epsilon > configured_settings().caps.warning:
        click.echo(
            f"warning: total epsilon {format_epsilon(epsilon)}: taken together, these answers are "
            "protected little; ask fewer questions or choose a smaller epsilon for each",
            err=True,
        )


@click.command("link")
@click.argument("slug")
@click.option("--qr", type=PATH, metavar="FILE", help="Write it as a QR code (SVG) as well.")
@refusing
def link(slug: str, qr: Path | None) -> None:
    """Print the open link of SLUG, which is not limited to one report per person."""
    survey = _taking_reports(configured_store(), slug)
    if survey.definition.access == "invitation":
        raise SurveyError(
            f"{slug} takes reports from personal links only: make them with survey invite {slug}"
        )
    address = respondent_link(survey, _public_url())
    if qr:
        _refuse_existing(qr)
        qr.write_bytes(qr_code(address))
    click.echo(address)


@click.command("invite")
@click.argument("slug")
@click.option("--count", required=True, type=click.IntRange(1, 100_000), help="How many links.")
@click.option("--stratum", default="", help="The group that these links stand for, openly.")
@click.option("--csv", "csv_file", type=PATH, metavar="FILE", help="Write them to a new FILE.")
@click.option("--qr", type=PATH, metavar="DIR", help="Write each as a QR code (SVG) to a new DIR.")
@refusing
def invite(slug: str, count: int, stratum: str, csv_file: Path | None, qr: Path | None) -> None:
    """Make links to SLUG that are good for one report each; they are not kept here."""
    store = configured_store()
    survey = _taking_reports(store, slug)
    stratum = validate_stratum(store, survey, stratum, count)
    tokens = new_tokens(count)
    public_url = _public_url()
    links = [respondent_link(survey, public_url, token=token, stratum=stratum) for token in tokens]
    # On the disk before they are good for anything: no invitation is issued that nobody has.
    with _written(links, stratum, csv_file, qr):
        issue_invitations(store, survey, stratum, tokens)
    if csv_file is None:
        click.echo("\n".join(links))
    else:
        click.echo(f"{csv_file} holds {count:,} links, good for one report each")


def _taking_reports(store: Store, slug: str) -> PublishedSurvey:
    survey = find_survey(store, slug)
    if survey.state == "closed":
        raise ClosedError(f"{slug} is closed and takes no more reports")
    return survey


def _public_url() -> str:
    settings = configured_settings()
    if settings.opens_here_only:
        click.echo("these links open on this machine only: set SURVEY_PUBLIC_URL", err=True)
    return settings.public_url


@contextmanager
def _written(
    links: Sequence[str], stratum: str, csv_file: Path | None, qr: Path | None
) -> Iterator[None]:
    """The links in new files for their owner alone, which go again when they are not issued."""
    for new in (csv_file, qr):
        if new:
            _refuse_existing(new)
    try:
        if csv_file:
            _write_csv(links, stratum, csv_file)
        if qr:
            _write_qr_codes(links, qr)
        yield
    except BaseException:
        for file in [csv_file, *(qr.glob("*.svg") if qr else ())]:
            if file:
                file.unlink(missing_ok=True)
        raise


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise SurveyError(f"{path} is there already; name a new one")
    if not path.absolute().parent.is_dir():
        raise SurveyError(f"there is no directory {path.absolute().parent}")


def _write_csv(links: Sequence[str], stratum: str, file: Path) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as open_file:
        open_file.write(links_csv(links, stratum))
        open_file.flush()
        os.fsync(descriptor)


def _write_qr_codes(links: Sequence[str], directory: Path) -> None:
    directory.mkdir(mode=0o700)
    width = len(str(len(links)))
    for n, each in enumerate(links, 1):
        (directory / f"{n:0{width}}.svg").write_bytes(qr_code(each))
