"""The commands of the operator: configuration, server, releases, backups, audit and demo."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from survey import demo, server
from survey.archive import Checked, Watch, backup, check, copy_store, restore
from survey.audit.summary import as_json_text, as_text, checks_of
from survey.cli.common import PATH, configured_settings, configured_store, opened, refusing
from survey.collect.publication import delete_overdue
from survey.collect.release import release as release_reports
from survey.collect.release import utc_today
from survey.demo import run
from survey.errors import SettingsError, SurveyError
from survey.ops.safety import SetUp, findings, unusable
from survey.respond.client import Client
from survey.store import Store, find_survey

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
    default=server.usual_workers,
    show_default="one for each core, at most 4",
    type=click.IntRange(1, 64),
)
@refusing
def serve(address: str, port: int, workers: int) -> None:
    """Run the production server; SIGHUP renews its workers, SIGTERM stops it."""
    # Until there are workers to renew: otherwise it would end a server that only just starts.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    settings = configured_settings()
    server.serve(
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


@click.command("check-store")
@refusing
def check_store() -> None:
    """Rebuild every count from what is stored, and compare."""
    store = configured_store()
    with store.snapshot() as snapshot:
        found = check(snapshot)
    if not found.mistakes:
        click.echo(f"{_surveys(found)}: every count agrees")
        return
    for mistake in found.mistakes:
        click.echo(mistake, err=True)
    sys.exit(1)


@click.command("backup")
@click.argument("file", type=PATH)
@refusing
def backup_store(file: Path) -> None:
    """Write all that is stored at this moment to a new FILE, also while the server runs."""
    store = configured_store()
    with _watched("writing") as watch:
        found = backup(store, file, watch)
    click.echo(f"{file} holds {_surveys(found)} released, and those that wait")


@click.command("restore")
@click.argument("file", type=PATH)
@refusing
def restore_store(file: Path) -> None:
    """Bring a backup FILE back into an empty database; interrupted, it goes on when run again."""
    store = configured_store()
    with _watched("restoring") as watch:
        found = restore(file, store, watch)
    click.echo(f"restored {_surveys(found)} released, and those that wait")


@click.command("copy-store")
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@refusing
def copy_stores(source: str, target: str) -> None:
    """Copy all that the database SRC holds to the empty database DST; both are urls.

    Stop serving from SRC first. Interrupted, it goes on when run again.
    """
    if source == target:
        raise SurveyError("SRC and DST are the same database")
    stores = _named(source, "SRC"), _named(target, "DST")
    with _watched("copying") as watch:
        found = copy_store(*stores, watch)
    click.echo(f"copied {_surveys(found)} released, and those that wait; every row agrees")
    click.echo("set SURVEY_DATABASE to DST before anybody serves again")


def _named(url: str, argument: str) -> Store:
    """A store whose refusal of its url names the argument."""
    try:
        return opened(url)
    except SettingsError as error:
        raise SettingsError(f"{argument}: {error}") from None


@contextmanager
def _watched(label: str) -> Iterator[Watch]:
    """A bar on a terminal, silence in a pipe."""
    with click.progressbar(
        length=1, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:

        def watch(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        yield watch


def _surveys(found: Checked) -> str:
    surveys = f"{found.surveys:,} survey{'s' if found.surveys != 1 else ''}"
    return f"{surveys}, {found.reports:,} report{'s' if found.reports != 1 else ''}"


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
    client = Client.load()
    definition = find_survey(configured_store(), slug).definition if slug else demo.definition()
    checks = list(checks_of(client.files, definition, samples))
    write = as_json_text if as_json else as_text
    click.echo(write(client.sha256, client.file_hashes, checks))
    if not all(check.ok for check in checks):
        raise SurveyError("the client does not keep what it promises")


@click.command("demo")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
@click.option("--respondents", default=2000, show_default=True, type=click.IntRange(0, 1_000_000))
@click.option("--fresh", is_flag=True, help="Forget the demo of an earlier start.")
@click.option("--open", "open_browser", is_flag=True, help="Open the survey in a browser.")
@click.option("--directory", type=PATH, help="Where the demo's database is kept.")
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
