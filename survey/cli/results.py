"""The commands that print and export the results of a survey."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from survey.cli.common import PATH, configured_store, exit_on_error
from survey.cli.output import (
    estimate_options,
    format_options,
    output_format,
    print_csv,
    print_result,
)
from survey.mechanism.arrays import Integers
from survey.parquet import ENGINES, export_reports, open_reports
from survey.results.crosstab.compute import compute_crosstab, crosstab_from_counts
from survey.results.crosstab.request import CrosstabRequest
from survey.results.crosstab.sentences import terminal_lines
from survey.results.crosstab.table import CrosstabResult, CrosstabRow
from survey.results.estimates.result import ResultCache, SurveyResult
from survey.results.exports.csv import to_csv, to_json
from survey.results.exports.microdata import write_microdata
from survey.results.options import IntervalOptions
from survey.store import PublishedSurvey, Store, find_survey

DEFAULT_ENGINE = next(iter(ENGINES))


@click.command()
@click.argument("slug", required=False)
@estimate_options
@format_options
@click.option("--cross", nargs=2, metavar="A B", help="Cross-tabulate the questions A and B.")
@click.option("--parquet", type=PATH, help="Read a Parquet export instead of the database.")
@click.option("--engine", help=f"Engine that counts a Parquet export: {', '.join(ENGINES)}.")
@exit_on_error
def estimate(
    slug: str | None,
    version: int | None,
    as_json: bool,
    as_csv: bool,
    cross: tuple[str, str] | None,
    parquet: Path | None,
    engine: str | None,
    **fields: Any,
) -> None:
    """Print the estimates of SLUG, or of a Parquet export."""
    form = output_format(as_json=as_json, as_csv=as_csv)
    if (slug is None) == (parquet is None):
        raise click.UsageError("name the survey: either SLUG or --parquet DIR")
    if parquet is None and engine is not None:
        raise click.UsageError("--engine requires --parquet")
    if parquet is not None and version is not None:
        raise click.UsageError("--version requires SLUG: an export contains one version")
    options = IntervalOptions(**fields)
    if cross is not None:
        if options != IntervalOptions(level=options.level):
            raise click.UsageError("--cross allows --level, and no other option of estimates")
        if parquet is not None:
            table = _crosstab_of_export(parquet, engine or DEFAULT_ENGINE, cross, options)
        else:
            store = configured_store()
            table = compute_crosstab(
                store, find_survey(store, str(slug), version), CrosstabRequest(*cross), options
            )
        _print_crosstab(table, form)
        return
    if parquet is not None:
        result = _result_of_export(parquet, engine or DEFAULT_ENGINE, options)
    else:
        result = _result(str(slug), version, options)
    print_result(result, form)


@click.command()
@click.argument("slug")
@estimate_options
@click.option("--output", type=PATH, help="Write the CSV to a file.")
@click.option("--parquet", type=PATH, help="Write the released reports to a Parquet directory.")
@click.option(
    "--microdata", type=PATH, help="Write the released reports to a ZIP of CSV and codebook."
)
@exit_on_error
def export(
    slug: str,
    version: int | None,
    output: Path | None,
    parquet: Path | None,
    microdata: Path | None,
    **fields: Any,
) -> None:
    """Write the estimates of SLUG as CSV, or its released reports."""
    options = IntervalOptions(**fields)
    if parquet is None and microdata is None:
        text = to_csv(_result(slug, version, options).rows)
        if output is None:
            print_csv(text)
        else:
            output.write_text(text, encoding="utf-8", newline="")
        return
    if output is not None or options != IntervalOptions() or (parquet and microdata):
        name = "--parquet" if parquet else "--microdata"
        raise click.UsageError(f"{name} writes reports: only --version can be added")
    store = configured_store()
    survey = find_survey(store, slug, version)
    if microdata is not None:
        _export_microdata(store, survey, microdata)
    if parquet is not None:
        _export_parquet(store, survey, parquet)


def _result(slug: str, version: int | None, options: IntervalOptions) -> SurveyResult:
    store = configured_store()
    return ResultCache(store).result(find_survey(store, slug, version), options)


def _result_of_export(directory: Path, engine: str, options: IntervalOptions) -> SurveyResult:
    with open_reports(directory, engine) as reports:
        return SurveyResult(reports.survey, reports.tally(), datetime.now(UTC), options)


def _crosstab_of_export(
    directory: Path, engine: str, names: tuple[str, str], options: IntervalOptions
) -> CrosstabResult:
    with open_reports(directory, engine) as reports:
        ids = [question.id for question in reports.survey.definition.questions]

        def counts(first: int, second: int) -> Integers:
            return reports.joint_counts(ids[first], ids[second])

        return crosstab_from_counts(counts, reports.survey, CrosstabRequest(*names), options)


def _print_crosstab(table: CrosstabResult, form: str) -> None:
    if form == "csv":
        print_csv(to_csv(table.rows, CrosstabRow))
    else:
        click.echo(to_json(table.rows) if form == "json" else "\n".join(terminal_lines(table)))


def _export_microdata(store: Store, survey: PublishedSurvey, file: Path) -> None:
    # Single reports, even randomized, stay with their owner until the owner shares them.
    file.touch(mode=0o600)
    with file.open("wb") as archive:
        n = write_microdata(archive, store, survey)
    click.echo(f"wrote {n:,} released reports to {file}")


def _export_parquet(store: Store, survey: PublishedSurvey, directory: Path) -> None:
    with click.progressbar(
        length=store.n_released(survey.key),
        label="writing",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        manifest = export_reports(store, survey, directory, bar.update)
    click.echo(
        f"wrote {manifest.n:,} released reports to {directory} in {len(manifest.parts)} files"
    )
