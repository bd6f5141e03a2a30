"""The commands that check a definition, freeze it for its respondents, and close it again."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path

import click

from survey.cli.common import PATH, configured_settings, configured_store, refusing
from survey.cli.scheduling import rescheduled, scheduling
from survey.collect.links import respondent_link
from survey.collect.publication import close as close_survey
from survey.collect.publication import publish as publish_survey
from survey.collect.release import utc_today
from survey.errors import DefinitionError
from survey.mechanism.accounting import format_epsilon
from survey.questionnaire.definition import freeze
from survey.questionnaire.ledger import ledger, lines
from survey.questionnaire.native import load_file
from survey.respond.client import Client
from survey.store import Schedule


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
    click.echo(f"definition {survey.sha256}\npage code  {Client.find().sha256}")
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
