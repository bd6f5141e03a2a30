"""The command that proves what the shipped client does."""

from __future__ import annotations

import click

from survey import demo
from survey.audit.summary import as_json_text, as_text, checks_of
from survey.cli.common import configured_store, refusing
from survey.errors import SurveyError
from survey.respond.client import Client
from survey.store import find_survey


@click.command()
@click.argument("slug", required=False)
@click.option(
    "--samples",
    default=100_000,
    show_default=True,
    type=click.IntRange(1_000),
    help="Perturbations of each truth with the real generator.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
@refusing
def audit(slug: str | None, samples: int, as_json: bool) -> None:
    """Prove that the shipped client runs the promised integers, for the demo's or SLUG's."""
    client = Client.find()
    definition = find_survey(configured_store(), slug).definition if slug else demo.definition()
    checks = list(checks_of(client.files, definition, samples))
    write = as_json_text if as_json else as_text
    click.echo(write(client.sha256, client.file_hashes, checks))
    if not all(check.ok for check in checks):
        raise SurveyError("the client does not keep what it promises")
