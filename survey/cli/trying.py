"""The command that shows everything on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from survey.cli.common import PATH, refusing
from survey.demo import run


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
