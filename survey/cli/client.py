"""Commands that copy the respondents' page for other hosts and verify it."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survey.cli import PATH, progress_bar, quantity
from survey.errors import SurveyError

if TYPE_CHECKING:
    from survey.respond.client import Client
    from survey.verification.result import Result


@click.command()
@click.argument("directory", metavar="DIR", type=PATH)
@click.option(
    "--collector",
    default="",
    metavar="URL",
    help="Address of the server that collects the reports (its SURVEY_PUBLIC_URL).",
)
def bundle(directory: Path, collector: str) -> None:
    """Write the respondents' page to a new DIR, ready for any static web host.

    If the host does not belong to the operator, the operator cannot alter the page. Without
    --collector, the command writes the files that the server itself sends, so that you can compare
    or sign them.
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
    click.echo(f"    Cache-Control: {headers['files']['Cache-Control']} (with the files in client)")
    click.echo(
        "\nFor the files in the folder field, send the Cache-Control of index.html and this policy:"
    )
    click.echo(f"    Content-Security-Policy: {headers['field']['Content-Security-Policy']}")
    if not client.collector:
        return
    click.echo(f"\nAdd the host's origin to SURVEY_CLIENT_ORIGINS on {client.collector}.")
    click.echo("To create links to the host: survey link SLUG --page https://HOST/FOLDER/")
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


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

NOT_CHECKED = 2
"""Exit status of `survey verify` if nothing could be compared, and for usage errors."""


def _seconds(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """Convert a time such as 10m to seconds."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,5})([smhd])", text)
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{text!r} is not a time; write, for example, 30s, 10m, 2h or 1d")
    return int(match[1]) * UNITS[match[2]]


@click.command()
@click.argument("url", required=False)
@click.option(
    "--collector", default="", metavar="URL", help="Server that a bundle sends reports to."
)
@click.option("--visits", default=66, show_default=True, type=click.IntRange(1, 10_000))
@click.option(
    "--pause",
    type=click.FloatRange(0, 3600),
    metavar="SECONDS",
    help="Mean pause between visits; default: 1, or 0 for a server on this machine.",
)
@click.option(
    "--manifest", type=PATH, metavar="FILE", help="Compare with this client-manifest.json."
)
@click.option(
    "--proxy", default="", metavar="URL", help="http://HOST:PORT; Tor: socks5h://127.0.0.1:9050."
)
@click.option(
    "--onion", default="", metavar="URL", help="Onion address that the operator has published."
)
@click.option("--browser", is_flag=True, help="Use a real Chromium (needs playwright).")
@click.option("--without-audit", is_flag=True, help="Do not audit the received files.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "--save",
    type=PATH,
    metavar="DIR",
    help="Save the result, and all received files that differ, in a folder for each verification.",
)
@click.option(
    "--watch",
    callback=_seconds,
    metavar="TIME",
    help="Repeat until interrupted, for example every 10m or 1h.",
)
@click.option("--log", type=PATH, metavar="FILE", help="Append each result to a hash-chained log.")
@click.option("--check-log", type=PATH, metavar="FILE", help="Check a log instead of a server.")
@click.option(
    "--head", default="", metavar="HASH", help="Earlier head of the log, to detect removed lines."
)
def verify(url: str | None, check_log: Path | None, head: str, **options: Any) -> None:
    """Compare what a server sends with the published client.

    URL is a survey link or the address of a page. The result is only as trustworthy as this
    machine and this installation: use your own machine, and get the installation from the project,
    not from the operator.

    Exit status: 0 identical, 1 different, 2 not checked.
    """
    try:
        if check_log is not None:
            status = _check_log(check_log, head)
        elif url is None:
            raise click.UsageError("give a URL to verify, or a log with --check-log FILE")
        elif head:
            raise click.UsageError("--head can only be used with --check-log FILE")
        else:
            status = _verify(url, **options)
    except (SurveyError, OSError) as error:
        click.echo(f"survey: {error}", err=True)
        status = NOT_CHECKED
    raise click.exceptions.Exit(status)


def _check_log(file: Path, head: str) -> int:
    from survey.verification.result import check_log

    if not file.exists():
        raise SurveyError(f"there is no file {file}")
    try:
        entries, newest = check_log(file, head)
    except SurveyError as error:
        click.echo(f"CHANGED: {error}")
        return 1
    n_different = sum(entry.get("status") == "different" for entry in entries)
    click.echo(f"complete: {len(entries):,} verifications, {n_different:,} with differences")
    if not head:
        click.echo("Without --head, this check cannot detect that the newest lines were removed.")
    click.echo(f"head {newest}")
    return 0


def _verify(
    url: str,
    *,
    watch: int | None,
    log: Path | None,
    as_json: bool,
    save: Path | None,
    **options: Any,
) -> int:
    """Verify once, or repeat until interrupted; return the exit status of the worst result."""
    from survey.verification.result import append_entry

    statuses = []
    try:
        while True:
            started = time.monotonic()
            result = _result(url, **options)
            statuses.append(result.exit_status)
            form = result.to_json()
            click.echo(
                json.dumps(form, indent=None if watch else 2) if as_json else result.to_text()
            )
            if save is not None:
                save.mkdir(exist_ok=True)
                result.save(save / datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ"))
            if log is not None:
                click.echo(f"head {append_entry(log, form)}", err=as_json)
            if watch is None:
                break
            time.sleep(max(0.0, watch - (time.monotonic() - started)))
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    return 1 if 1 in statuses else max(statuses, default=NOT_CHECKED)


def _result(
    url: str,
    *,
    collector: str,
    visits: int,
    pause: float | None,
    manifest: Path | None,
    proxy: str,
    onion: str,
    browser: bool,
    without_audit: bool,
) -> Result:
    from survey.settings import check_address, is_onion
    from survey.verification.connection import Proxy
    from survey.verification.run import audit, manifests_for, network_visits, verify
    from survey.verification.visitors import CHROMIUM, USER_AGENTS
    from survey.verification.visits import Target

    if collector:
        check_address("--collector", collector)
    if onion and not is_onion(onion):
        raise SurveyError(f"--onion {onion}: must be http://, 56 characters and .onion")
    target = Target.parse(url, collector)
    manifests = manifests_for(target, manifest, onion.rstrip("/"))
    via = Proxy.parse(proxy) if proxy else None
    with ExitStack() as stack:
        browsers = tuple(USER_AGENTS)
        make_visit, make_probe = network_visits(target, manifests, via)
        if browser:
            from survey.verification.browser import browser_visits

            browsers = CHROMIUM
            chromium = browser_visits(target, manifests, via)
            make_visit = stack.enter_context(chromium)
        bar = stack.enter_context(progress_bar("visiting", visits))
        result = verify(
            target,
            make_visit,
            make_probe,
            n_visits=visits,
            pause=pause,
            watch=lambda n: bar.update(n - bar.pos),
            browsers=browsers,
        )
    result.used_browser = browser
    if without_audit:
        result.audit_note = "not run (--without-audit)"
    else:
        audit(result)
    return result
