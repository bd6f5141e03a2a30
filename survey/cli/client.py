"""Commands about the respondents' page: a copy of it for another host."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from survey.cli import PATH, quantity
from survey.errors import SurveyError

if TYPE_CHECKING:
    from survey.respond.client import Client


@click.command()
@click.argument("directory", metavar="DIR", type=PATH)
@click.option(
    "--collector",
    default="",
    metavar="URL",
    help="Address of the server that collects the reports (its SURVEY_PUBLIC_URL).",
)
def bundle(directory: Path, collector: str) -> None:
    """Write the respondents' page to a new DIR, for any static host to serve.

    A host that does not belong to the operator can then guarantee what respondents load. Without
    --collector, the files are those that the collecting server itself sends, to be compared or
    signed.
    """
    from survey.respond.client import Client
    from survey.settings import check_address

    if collector:
        check_address("--collector", collector)
    client = Client.load(collector.removesuffix("/"))
    _write(directory, client)
    headers = client.manifest["headers"]
    click.echo(f"wrote {quantity(len(client.served), 'file')} of version {client.version}")
    click.echo("\nThe host must send these headers with every file:")
    for name, value in headers["page"].items():
        if headers["files"].get(name) == value:
            click.echo(f"    {name}: {value}")
    click.echo(f"    Cache-Control: {headers['page']['Cache-Control']} (with index.html)")
    click.echo(f"    Cache-Control: {headers['files']['Cache-Control']} (with all other files)")
    if not client.collector:
        return
    click.echo(f"\nOn {client.collector}, add the host's origin to SURVEY_CLIENT_ORIGINS.")
    click.echo("Links to the host: survey link SLUG --page https://HOST/FOLDER/")
    click.echo(f"To verify the host: survey verify URL --collector {client.collector}")


def _write(directory: Path, client: Client) -> None:
    """Write all files, or none."""
    from survey.respond.client import MANIFEST

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise SurveyError(f"{directory} already exists; choose a new or empty directory")
    parent = directory.absolute().parent
    if not parent.is_dir():
        raise SurveyError(f"there is no directory {parent}; create it first")
    scratch = Path(tempfile.mkdtemp(dir=parent, prefix=f".{directory.name}-"))
    try:
        for path, content in client.served.items():
            (scratch / path).parent.mkdir(parents=True, exist_ok=True)
            (scratch / path).write_bytes(content)
        (scratch / MANIFEST).write_bytes(client.manifest_bytes)
        scratch.chmod(0o755)
        scratch.replace(directory)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
