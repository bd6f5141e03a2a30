"""The commands that make links: for everybody, and for one report each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from survey.cli.common import PATH, configured_settings, configured_store, refusing
from survey.collect.invitations import checked_stratum, issue, new_tokens
from survey.collect.links import qr_code, respondent_link
from survey.errors import ClosedError, SurveyError
from survey.results.exports.csv import links_csv
from survey.store import PublishedSurvey, Store, find_survey


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
    stratum = checked_stratum(store, survey, stratum, count)
    tokens = new_tokens(count)
    public_url = _public_url()
    links = [respondent_link(survey, public_url, token=token, stratum=stratum) for token in tokens]
    # On the disk before they are good for anything: no invitation is issued that nobody has.
    with _written(links, stratum, csv_file, qr):
        issue(store, survey, stratum, tokens)
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
