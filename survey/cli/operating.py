"""The commands of whoever runs a server: is it safe, migrate, serve, release, delete."""

from __future__ import annotations

import os
import signal
import sys

import click

from survey import serving
from survey.cli.common import configured_settings, configured_store, refusing
from survey.collect.release import release as release_reports
from survey.collect.release import utc_today
from survey.collect.retention import delete_overdue
from survey.errors import SurveyError
from survey.ops.safety import SetUp, findings, unusable
from survey.store import find_survey

listening = click.option(
    "--address", default="127.0.0.1", show_default=True, help="Where the server listens."
)


@click.group()
def config() -> None:
    """How this server is set up."""


@config.command("check")
@listening
@refusing
def check_config(address: str) -> None:
    """List what is unsafe in the settings, and what to do; exit 1 if the server would not start."""
    settings = configured_settings()
    found = [*unusable(settings), *findings(SetUp(settings, os.environ, address))]
    for each in found:
        word = "refused" if each.refused else "advice"
        click.echo(f"{word}: {each.setting}: {each.what}\n         {each.do}")
    refused = sum(each.refused for each in found)
    if refused:
        click.echo(f"survey: the server does not start like this ({refused} refused)", err=True)
        sys.exit(1)
    click.echo(f"the server starts; {len(found) or 'no'} pieces of advice")


@click.command()
@refusing
def migrate() -> None:
    """Create the database or bring it up to date."""
    applied = configured_store().migrate()
    click.echo("\n".join(f"applied {step}" for step in applied) or "nothing to do")


@click.command()
@listening
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--workers",
    default=serving.usual_workers,
    show_default="one for each core, at most 4",
    type=click.IntRange(1, 64),
)
@refusing
def serve(address: str, port: int, workers: int) -> None:
    """Run the production server; SIGHUP renews its workers, SIGTERM stops it."""
    # Until there are workers to renew: otherwise it would end a server that only just starts.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    settings = configured_settings()
    serving.serve(
        settings,
        address,
        port,
        workers,
        lambda: _tell(f"listening on {address} port {port}; people open {settings.public_url}"),
    )


def _tell(line: str) -> None:
    """Say it to who looks on; a log holds lines of JSON and nothing else."""
    if sys.stdout.isatty():
        click.echo(line)


@click.command()
@click.argument("slug", required=False)
@refusing
def release(slug: str | None) -> None:
    """Release what waits for SLUG, or for every survey, if enough reports do."""
    store, settings = configured_store(), configured_settings()
    minimum = settings.release_minimum
    if slug:
        find_survey(store, slug)
    surveys = store.versions(slug) if slug else store.surveys()
    n = sum(release_reports(store, survey, minimum) for survey in surveys)
    if slug and not n:
        raise SurveyError(f"nothing released: fewer than {minimum} reports wait")
    click.echo(f"released {n:,} reports")


@click.command()
@refusing
def retention() -> None:
    """Delete the surveys that were closed more than SURVEY_RETENTION_DAYS days ago."""
    days = configured_settings().retention_days
    if not days:
        # A choice, not a failure: the timer that asks each night is well.
        click.echo("SURVEY_RETENTION_DAYS is 0: every closed survey is kept")
        return
    deleted = delete_overdue(configured_store(), days, utc_today())
    click.echo("\n".join(f"deleted {slug}" for slug in deleted) or "nothing to delete")
