"""The operator's commands: configuration, server, keeper, backups, audit and demo.

Each command imports what it needs when it runs: a nightly `survey retention` loads no web server.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from survey.cli import (
    PATH,
    configured_settings,
    configured_store,
    open_until_exit,
    progress_bar,
    quantity,
)
from survey.errors import SettingsError, StoreError, SurveyError

if TYPE_CHECKING:
    from survey.archive import CheckResult, Watch
    from survey.collect.release import Keeper
    from survey.store import PrivateKeys, Store

MAX_SAMPLES = 10**9
MAX_WORKERS = 64

address_option = click.option(
    "--address", default="127.0.0.1", show_default=True, help="Address to listen on."
)
port_option = click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port."
)


@click.group()
def config() -> None:
    """Inspect the configuration of this server."""


without_keeper_option = click.option(
    "--without-keeper", is_flag=True, help="Do not release reports; `survey keeper` does."
)


@config.command("check")
@address_option
@without_keeper_option
def check_config(address: str, without_keeper: bool) -> None:
    """List unsafe settings and their remedies; exit 1 if the server would not start."""
    from survey.ops.config_check import Deployment, database_findings, findings

    settings = configured_settings()
    deployment = Deployment(settings, os.environ, address, has_keeper=not without_keeper)
    problems = [*database_findings(settings), *findings(deployment)]
    for problem in problems:
        word = "refused" if problem.is_fatal else "advice"
        click.echo(f"{word}: {problem.setting}: {problem.problem}\n         {problem.remedy}")
    errors = sum(problem.is_fatal for problem in problems)
    if errors:
        click.echo(f"survey: the server would not start ({errors} refused)", err=True)
        sys.exit(1)
    advice = quantity(len(problems), "recommendation") if problems else "no recommendations"
    click.echo(f"the server would start; {advice}")


@click.command()
def migrate() -> None:
    """Create the database or update it to this version."""
    from survey.collect.release import merge_small_cells

    store = configured_store()
    steps: list[str] = []
    # A server may use an up-to-date database.
    if store.pending_migrations():
        with store.reserve():
            steps = store.migrate()
    merge_small_cells(store, store.surveys())
    click.echo("\n".join(f"applied {step}" for step in steps) or "nothing to do")


@click.command()
@address_option
@port_option
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    help="Number of worker processes; default: one for each core, at most 4.",
)
@without_keeper_option
def serve(address: str, port: int, workers: int | None, without_keeper: bool) -> None:
    """Run the server. SIGHUP replaces its workers, with the same settings; SIGTERM stops it."""
    # Until there are workers, the default action of SIGHUP would end the starting server.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from survey import server

    settings = configured_settings()

    def announce() -> None:
        # A log file contains lines of JSON only.
        if sys.stdout.isatty():
            urls = f"public URL {settings.public_url}"
            if settings.research_url:
                urls += f", researchers' URL {settings.research_url}"
            click.echo(f"listening on {address} port {port}; {urls}")

    n_workers = workers or server.default_workers()
    server.serve(settings, address, port, n_workers, announce, has_keeper=not without_keeper)


@click.command()
def release() -> None:
    """Run the keeper once: release the reports that are due, and none before their time."""
    keeper, keys, store = _keeper()
    with keys.lock(), store.use():
        try:
            n = keeper.work()
        except SurveyError as error:
            if failing := keeper.failing():
                raise StoreError(f"{', '.join(failing)} cannot be served: {error}") from error
            raise
        click.echo(f"released {quantity(n, 'report')}")


@click.command()
@click.option(
    "--take-over",
    is_flag=True,
    help="Delete pending reports whose private key is lost, so that devices can resend them; "
    "then exit.",
)
@click.option(
    "--destroy-unused",
    is_flag=True,
    help="Destroy the private keys that SURVEY_DATABASE does not use, after copy-store; then exit.",
)
@click.option("--yes", is_flag=True, help="Delete or destroy without asking.")
def keeper(take_over: bool, destroy_unused: bool, yes: bool) -> None:
    """Run the keeper until SIGTERM: hold the private keys and release reports on time."""
    from threading import Event

    from survey.ops.config_check import Deployment, refuse_unsafe_keeper

    refuse_unsafe_keeper(Deployment(configured_settings(), os.environ))
    unit, keys, store = _keeper()
    if take_over:
        with keys.lock():
            # An unmounted key volume looks the same as lost keys.
            if unit.lost_keys() and not yes:
                # State no number: anyone with an empty directory could watch reports arrive.
                raise SurveyError(
                    f"{keys.directory} does not contain all private keys of this database. Taking "
                    "over deletes the pending reports sealed with the missing keys. If these keys "
                    "are permanently lost, add --yes"
                )
            n = unit.take_over()
        click.echo(f"deleted {quantity(n, 'pending report')} whose private key is lost")
        return
    if destroy_unused:
        with keys.lock():
            unused = unit.unused_keys()
            if unused and not yes:
                raise SurveyError(
                    f"{quantity(len(unused), 'private key')} would be destroyed, because the "
                    "database does not use them; if SURVEY_DATABASE is the right one, add --yes"
                )
            keys.destroy(*unused)
        click.echo(f"destroyed {quantity(len(unused), 'private key')} that nothing uses")
        return
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with store.use():
        unit.run(stop)


def _keeper() -> tuple[Keeper, PrivateKeys, Store]:
    """Return the keeper that the settings describe, its keys and its store."""
    from survey.collect.release import Keeper

    keys, store = _private_keys(), configured_store()
    return Keeper(store, keys, configured_settings().release_every), keys, store


def _private_keys() -> PrivateKeys:
    from survey.store import PrivateKeys

    return PrivateKeys(Path(configured_settings().keys))


@click.command()
def retention() -> None:
    """Delete surveys that closed more than SURVEY_RETENTION_DAYS days ago."""
    from survey.collect.publication import delete_overdue
    from survey.collect.release import utc_today

    days = configured_settings().retention_days
    if not days:
        # This is a choice, not an error: a timer that runs this every night must succeed.
        click.echo("SURVEY_RETENTION_DAYS is 0: closed surveys are never deleted")
        return
    slugs = delete_overdue(configured_store(), days, utc_today())
    click.echo("\n".join(f"deleted {slug}" for slug in slugs) or "nothing to delete")


@click.command()
def notify() -> None:
    """Send messages about new releases by e-mail and to webhooks; exit 1 if any fails."""
    from survey.collect.release_notices import send_due

    n_sent, n_failed = 0, 0
    for due, problem in send_due(configured_store(), configured_settings()):
        if problem:
            # The path of a webhook's URL can contain a secret.
            target = urlsplit(due.notice.url).netloc or "an e-mail address"
            click.echo(f"{due.notice.slug}: not sent to {target}: {problem}", err=True)
        n_failed += bool(problem)
        n_sent += not problem
    click.echo(f"sent {quantity(n_sent, 'message')}" if n_sent or n_failed else "nothing to send")
    if n_failed:
        sys.exit(1)


@click.command()
def check_store() -> None:
    """Recount the stored reports, and compare all content with its digests and with itself."""
    from survey.archive import check_store as check_all_content

    store = configured_store()
    result = check_all_content(store)
    if unchecked := store.unchecked_content():
        click.echo(f"warning: {unchecked}", err=True)
    if not result.mistakes:
        click.echo(f"{_describe(result)}: every count and every digest agrees")
        return
    for mistake in result.mistakes:
        click.echo(mistake, err=True)
    sys.exit(1)


@click.command()
@click.argument("file", type=PATH)
def backup(file: Path) -> None:
    """Write a consistent backup to a new FILE; the server may keep running."""
    from survey.archive import backup as write_backup

    store = configured_store()
    with _progress("writing") as watch:
        result = write_backup(store, file, watch)
    if result.mistakes:
        raise StoreError(
            f"{file} was written, but it is damaged like the database, and `survey restore` will "
            f"refuse it; keep the older backups, and run `survey check-store`: {result.mistakes[0]}"
        )
    click.echo(f"{file} contains {_describe(result)} and all pending reports")


@click.command()
@click.argument("file", type=PATH)
@click.option(
    "--yes",
    is_flag=True,
    help="Continue if every private key is lost, and omit all pending reports.",
)
def restore(file: Path, yes: bool) -> None:
    """Restore a backup FILE into an empty database; run again to continue after an interruption.

    Stop the servers and keepers that use the database or SURVEY_KEYS first.
    """
    from survey.archive import restore as restore_backup

    keys, store = _private_keys(), configured_store()
    with keys.lock(), store.reserve(), _progress("restoring") as watch:
        result, n_lost = restore_backup(file, store, keys, watch, may_lose_all=yes)
    click.echo(f"restored {_describe(result)} and the readable pending reports")
    if n_lost:
        click.echo(
            f"{quantity(n_lost, 'pending report')} cannot be read, because the private keys are "
            "destroyed. Devices that still have these reports can send them again."
        )


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
def copy_store(source: str, target: str) -> None:
    """Copy the database at the URL SRC to the empty database at the URL DST.

    Stop the server and the keeper that use SRC first. Pending reports are sealed again with new
    keys in SURVEY_KEYS. Run again to continue after an interruption.
    """
    from survey.archive import copy_store as copy_database

    if source == target:
        raise SurveyError("SRC and DST are the same database")
    original, copy = _open_argument(source, "SRC"), _open_argument(target, "DST")
    keys = _private_keys()
    # Check first, because the lock would create a file next to a mistyped SRC.
    original.check_complete()
    with keys.lock(), original.reserve(), copy.reserve(), _progress("copying") as watch:
        result = copy_database(original, copy, keys, watch)
    click.echo(f"copied {_describe(result)} and all pending reports; every row agrees")
    click.echo("set SURVEY_DATABASE to DST and run `survey keeper --destroy-unused --yes` before")
    click.echo("you start the server again: it destroys the private keys that only SRC needs")


@click.command()
@click.argument("slug", required=False)
@click.option(
    "--samples",
    default=100_000,
    show_default=True,
    type=click.IntRange(1_000, MAX_SAMPLES),
    help="Number of random draws for each answer.",
)
@click.option("--seed", type=int, help="Repeat the random choices of an earlier audit.")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def audit(slug: str | None, samples: int, seed: int | None, as_json: bool) -> None:
    """Check that the client randomizes exactly as the definition of SLUG (default: demo) states."""
    from survey import demo as demo_survey
    from survey.audit.summary import run_checks, to_json, to_text
    from survey.respond.client import FIELD_INDEX, FIELD_WORKER, INDEX, Client
    from survey.store import find_survey

    client = Client.load()
    served = client.served
    files = {**client.files, **{name: served[name] for name in (INDEX, FIELD_INDEX, FIELD_WORKER)}}
    survey = find_survey(configured_store(), slug) if slug else None
    definition = survey.definition if survey else demo_survey.definition()
    checks = []
    for check in run_checks(files, definition, samples, seed=seed):
        checks.append(check)
        if not as_json:
            click.echo(f"{len(checks)} checks, {check.group}: {check.name}", err=True)
    write = to_json if as_json else to_text
    click.echo(write(client.sha256, client.file_hashes, checks))
    if not all(check.ok for check in checks):
        raise SurveyError("the client does not randomize as promised")


@click.command()
@port_option
@click.option(
    "--respondents",
    default=200_000,
    show_default=True,
    type=click.IntRange(0, 1_000_000),
    help="Number of simulated respondents.",
)
@click.option("--fresh", is_flag=True, help="Delete the data of an earlier demo.")
@click.option("--open", "open_browser", is_flag=True, help="Open the survey in a browser.")
@click.option("--directory", type=PATH, help="Directory of the demo's database.")
def demo(
    port: int, respondents: int, fresh: bool, open_browser: bool, directory: Path | None
) -> None:
    """Start a demonstration on this machine: a survey, simulated respondents and results."""
    from survey.demo import default_directory, start

    start(
        (directory or default_directory()).absolute(),
        port,
        respondents,
        fresh=fresh,
        open_browser=open_browser,
    )


def _open_argument(url: str, argument: str) -> Store:
    """Open the store of an argument; error messages name the argument."""
    try:
        return open_until_exit(url)
    except SettingsError as error:
        raise SettingsError(f"{argument}: {error}") from None


@contextmanager
def _progress(label: str) -> Iterator[Watch]:
    """Show the progress of a copy."""
    with progress_bar(label, 1) as bar:

        def watch(n_copied: int, n_total: int) -> None:
            bar.length = max(n_total, 1)
            bar.update(n_copied - bar.pos)

        yield watch


def _describe(result: CheckResult) -> str:
    return f"{quantity(result.surveys, 'survey')}, {quantity(result.reports, 'released report')}"
