"""The command that estimates from a table of another system: debias."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from survey.cli import PATH, quantity
from survey.cli.results import format_options, interval_options, output_format, print_csv
from survey.errors import DesignError, naming_file
from survey.mechanism import AnyChannel
from survey.results.exports.csv import to_csv, to_json
from survey.results.plain_table import (
    Column,
    DebiasedRow,
    parse_channel,
    read_channels,
    read_table,
    share_problem,
    terminal_lines,
)
from survey.results.request import IntervalOptions


@click.command()
@click.argument("file", type=PATH)
@click.option(
    "--channel",
    required=True,
    metavar="CHANNEL",
    help="Mechanism, such as grr:k=4,p=0.5, grr:k=4,epsilon=1 or warner:p=0.7; or a JSON file: "
    "a channel, or the channels.json of an export.",
)
@click.option(
    "--column", "names", multiple=True, help="Column of a question; default: the only one."
)
@click.option("--labels", default="", help="Answers in the order of the channel: A,B,C.")
@click.option("--by", default="", help="Column whose values divide the reports into groups.")
@click.option("--delimiter", default=",", show_default=True, help="Character between cells.")
@click.option("--skip-empty", is_flag=True, help="Leave out empty cells and print their number.")
@interval_options
@format_options
def debias(
    file: Path,
    channel: str,
    names: Sequence[str],
    labels: str,
    by: str,
    delimiter: str,
    skip_empty: bool,
    as_json: bool,
    as_csv: bool,
    **fields: Any,
) -> None:
    """Estimate shares from FILE, a CSV table of randomized reports of another system.

    The table has one row per respondent and one column per question. A cell is the reported
    answer: one of --labels, or its position from 0; for several bits, bits separated by spaces. If
    the devices used another mechanism, the estimates are wrong, and nothing shows it.
    """
    form = output_format(as_json=as_json, as_csv=as_csv)
    options = IntervalOptions(**fields)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise click.UsageError("--delimiter must be one character, such as ;")
    described = _described(channel)
    with naming_file(file), file.open(encoding="utf-8-sig", newline="") as text:
        table = read_table(
            text,
            lambda header: _columns(header, channel, described, names, labels, by),
            by=by,
            delimiter=delimiter,
            skip_empty=skip_empty,
        )
    if table.n_empty:
        click.echo(f"left out {quantity(table.n_empty, 'empty cell')}", err=True)
    if form == "text":
        click.echo("\n".join(terminal_lines(table, options)))
    elif form == "csv":
        print_csv(to_csv(table.rows(options), DebiasedRow))
    else:
        click.echo(to_json(table.rows(options)))


def _described(channel: str) -> AnyChannel | dict[str, Column]:
    """Return the channel of the option --channel, or the columns of an export's channels.json."""
    path = Path(channel)
    if path.suffix != ".json" and not path.is_file():
        return parse_channel(channel)
    with naming_file(path):
        return read_channels(path)


def _columns(
    header: Sequence[str],
    channel: str,
    described: AnyChannel | dict[str, Column],
    names: Sequence[str],
    labels: str,
    by: str,
) -> dict[str, Column]:
    """Return the columns to estimate, with their channels and labels."""
    if isinstance(described, dict):
        if labels:
            raise click.UsageError(f"--labels: {channel} already names the answers")
        return _export_columns(header, channel, described, names)
    candidates = names or [name for name in header if name != by]
    if not names and len(candidates) != 1:
        raise click.UsageError(f"name a column with --column: {', '.join(candidates)}")
    answers = tuple(next(csv.reader([labels]), [])) if labels else ()
    return {name: Column(described, answers, bool(answers)) for name in candidates}


def _export_columns(
    header: Sequence[str], channel: str, form: Mapping[str, Column], names: Sequence[str]
) -> dict[str, Column]:
    """Return the columns of an export to estimate; without `names`, all that have shares."""
    if unknown := [name for name in names if name not in form]:
        raise DesignError(f"{channel} has no question {unknown[0]!r}: it has {', '.join(form)}")
    chosen = names or [name for name in header if name in form]
    if not chosen:
        raise DesignError(f"no column is a question of {channel}: {', '.join(form)}")
    problems = {name: problem for name in chosen if (problem := share_problem(form[name]))}
    for name, problem in problems.items():
        text = f"{name} has no shares to estimate here: {problem}; see the results page"
        if name in names or len(problems) == len(chosen):
            raise DesignError(text)
        click.echo(f"left out: {text}", err=True)
    return {name: form[name] for name in chosen if name not in problems}
