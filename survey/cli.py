"""The `survey` command: exit 0 done, 1 refused with one clear line, 2 wrong usage."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import click

from survey import __version__, demo
from survey.audit.report import as_json_text, as_text, checks_of
from survey.cli_inviting import invite, link
from survey.cli_operating import config, release, retention, serve
from survey.cli_reading import estimate, export
from survey.cli_scheduling import rescheduled, schedule_survey, scheduling
from survey.cli_simulating import simulate_survey
from survey.cli_stores import backup_store, check_store, copy_stores, restore_store
from survey.collect.links import respondent_link
from survey.collect.publication import close as close_survey
from survey.collect.publication import publish as publish_survey
from survey.commands import configured_store, refusing
from survey.demo import run
from survey.errors import DefinitionError, SurveyError
from survey.mechanism.accounting import shown_epsilon
from survey.plan import plan
from survey.questionnaire.definition import freeze
from survey.questionnaire.ledger import ledger, lines
from survey.questionnaire.native import load_file
from survey.research.people.passwords import Passwords
from survey.respond.client import Client
from survey.settings import Settings
from survey.store import Schedule, find_survey

FILE = click.Path(path_type=Path)


@click.group()
@click.version_option(__version__)
def main() -> None:
    """Surveys whose server never learns an answer."""


def _settings() -> Settings:
    return Settings.from_environment(os.environ)


def _today() -> date:
    return datetime.now(UTC).date()


def _warn(epsilon: float) -> None:
    """Say before it is frozen that a survey protects its respondents little."""
    if epsilon > _settings().caps.warning:
        click.echo(
            f"warning: total epsilon {shown_epsilon(epsilon)}: taken together, these answers are "
            "protected little; ask fewer questions or choose a smaller epsilon for each",
            err=True,
        )


@main.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@refusing
def check(file: Path, as_json: bool) -> None:
    """Print every mistake in a definition FILE, or what its numbers mean."""
    try:
        survey = load_file(file, _settings().caps)
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
        f"total epsilon {shown_epsilon(definition.epsilon)}, reports of "
        f"{definition.report_bytes:,} bytes."
    )
    click.echo("\n".join(lines(found)))


@main.command()
@refusing
def migrate() -> None:
    """Create the database or bring it up to date."""
    applied = configured_store().migrate()
    click.echo("\n".join(f"applied {step}" for step in applied) or "nothing to do")


@main.command()
@click.argument("file", type=FILE)
@scheduling
@refusing
def publish(file: Path, opens: datetime | None, closes: datetime | None, most: int | None) -> None:
    """Freeze a definition FILE and open it for reports."""
    settings, store = _settings(), configured_store()
    written = load_file(file, settings.caps)
    _warn(freeze(written, 1).epsilon)
    newest = next(iter(store.versions(written.slug)), None)
    schedule = rescheduled(newest.schedule if newest else Schedule(), opens, closes, most)
    survey = publish_survey(store, written, _today(), schedule)
    click.echo(f"published {survey.slug} version {survey.version}")
    click.echo(f"definition {survey.sha256}\npage code  {Client.find().sha256}")
    if survey.definition.access == "invitation":
        click.echo(f"make its personal links with survey invite {survey.slug}")
    else:
        click.echo(respondent_link(survey, settings.public_url))
    if survey.version > 1:
        click.echo("links and invitations of the version before lead nowhere any more", err=True)


@main.command()
@click.argument("slug")
@refusing
def close(slug: str) -> None:
    """Take no more reports for SLUG and release what waits."""
    n = close_survey(configured_store(), slug, _today())
    click.echo(f"closed {slug}" if n else f"{slug} was closed already")


@main.group()
def researcher() -> None:
    """People who may sign in."""


asking_password = click.option(
    "--password",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help="Asked for when not given.",
)


@researcher.command("add")
@click.argument("email")
@asking_password
@click.option("--admin", is_flag=True, help="May do everything; the first researcher may anyway.")
@refusing
def add_researcher(email: str, password: str, admin: bool) -> None:
    """Let EMAIL sign in."""
    if "@" not in email or len(email) > 254:
        raise SurveyError(f"{email!r} is not an email address")
    hashed = Passwords(_settings().password_cost).hash(password)
    configured_store().add_researcher(email, hashed, is_admin=admin)
    click.echo(f"{email} can sign in at {_settings().public_url}/research/")


@researcher.command("reset")
@click.argument("email")
@asking_password
@refusing
def reset_researcher(email: str, password: str) -> None:
    """Give EMAIL a new password, without a second step; their sessions and tokens end."""
    store = configured_store()
    store.set_password(email, Passwords(_settings().password_cost).hash(password))
    if found := store.researcher(email):
        store.set_second_factor(found.key, "", [])
    click.echo(f"{email} can sign in with the new password; there is no second step any more")


@main.command()
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


@main.command("demo")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
@click.option("--respondents", default=2000, show_default=True, type=click.IntRange(0, 1_000_000))
@click.option("--fresh", is_flag=True, help="Forget the demo of an earlier start.")
@click.option("--open", "open_browser", is_flag=True, help="Open the survey in a browser.")
@click.option("--directory", type=FILE, help="Where the demo's database is kept.")
@refusing
def run_demo(
    port: int, respondents: int, fresh: bool, open_browser: bool, directory: Path | None
) -> None:
    """Try everything on this machine: a survey, simulated respondents, a dashboard."""
    run.start(
        (directory or run.usual_directory()).absolute(),
        port,
        respondents,
        fresh=fresh,
        open_browser=open_browser,
    )


main.add_command(plan)
for command in (schedule_survey, invite, link, estimate, export, simulate_survey):
    main.add_command(command)
for command in (config, serve, release, retention):
    main.add_command(command)
for command in (check_store, backup_store, restore_store, copy_stores):
    main.add_command(command)

if __name__ == "__main__":
    main()
