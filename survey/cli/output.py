"""The options of commands that print estimates, and the formats they print."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from survey.cli.common import VERSION
from survey.estimator.shares.binomial import TARGETS
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.sentences import terminal_lines
from survey.results.exports.csv import to_csv, to_json
from survey.results.options import INTERVAL_CHOICES, IntervalOptions


def estimate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the fields of `IntervalOptions` and the version of the survey as options."""
    defaults = IntervalOptions()
    for option in (
        click.option(
            "--target",
            default=defaults.target,
            show_default=True,
            help=f"Population of the shares: {', '.join(TARGETS)}.",
        ),
        click.option(
            "--simultaneous", is_flag=True, help="Cover all shares of a question simultaneously."
        ),
        click.option(
            "--interval",
            default=defaults.interval,
            show_default=True,
            help=f"Interval method: {', '.join(INTERVAL_CHOICES)}.",
        ),
        click.option(
            "--level", default=defaults.level, show_default=True, help="Confidence level."
        ),
        click.option("--version", type=VERSION, help="Version of the survey; default: newest."),
    ):
        command = option(command)
    return command


def format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json and --csv; `output_format` combines their values."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON."),
        click.option("--csv", "as_csv", is_flag=True, help="Print the rows as CSV."),
    ):
        command = option(command)
    return command


def output_format(*, as_json: bool, as_csv: bool) -> str:
    """Return "json", "csv" or "text". Raises click.UsageError if both formats are requested."""
    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other: give one of them")
    return "json" if as_json else "csv" if as_csv else "text"


def print_csv(text: str) -> None:
    """Print a CSV file with its own line ends."""
    sys.stdout.buffer.write(text.encode("utf-8"))


def print_result(result: SurveyResult, form: str) -> None:
    """Print the estimates of a survey as "csv", "json" or "text"."""
    if form == "csv":
        print_csv(to_csv(result.rows))
    else:
        click.echo(to_json(result.rows) if form == "json" else "\n".join(terminal_lines(result)))
