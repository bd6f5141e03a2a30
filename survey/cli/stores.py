"""The commands about whole stores: check, back up, restore, move to another database."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from survey.archive import Checked, backup, check, copy_store, restore
from survey.archive.copying import Watch
from survey.cli.common import PATH, configured_store, opened, refusing
from survey.errors import SettingsError, SurveyError
from survey.store import Store


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
