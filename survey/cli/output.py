"""What the commands that print estimates share: how a survey is read, and how its rows are said."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from survey.estimator.shares.binomial import TARGETS
from survey.results.estimates.result import SurveyResult
from survey.results.exports.csv import to_csv, to_json, to_lines
from survey.results.options import OFFERED, Wanted


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how a survey is read: the fields of `Wanted`, and the version."""
    usual = Wanted()
    for option in (
        click.option("--target", default=usual.target, help=f"Whose shares: {', '.join(TARGETS)}."),
        click.option("--simultaneous", is_flag=True, help="Cover all of a question at once."),
        click.option("--interval", default=usual.interval, help=f"One of {', '.join(OFFERED)}."),
        click.option("--level", default=usual.level, show_default=True, help="Of each interval."),
        click.option("--version", type=int, help="A version other than the newest."),
    ):
        function = option(function)
    return function


def form_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how rows are printed, if not in words."""
    for option in (
        click.option("--json", "form", flag_value="json", help="Print the rows as JSON."),
        click.option("--csv", "form", flag_value="csv", help="Print the rows as CSV."),
    ):
        function = option(function)
    return function


def print_result(result: SurveyResult, form: str | None) -> None:
    """A survey's rows as CSV or JSON, or what they tell in words."""
    if form == "csv":
        sys.stdout.buffer.write(to_csv(result.rows).encode("utf-8"))
    else:
        click.echo(to_json(result.rows) if form == "json" else "\n".join(to_lines(result)))
