"""The commands that read: estimates of a survey, here or in an engine, and what is exported."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from survey.cli.common import PATH, configured_store, refusing
from survey.cli.output import form_options, print_result, reading_options
from survey.parquet import ENGINES, export_reports, open_reports
from survey.results.counts import Integers
from survey.results.crosstab.compute import CrossedQuestions, CrossedRow, crossed, crossed_by
from survey.results.crosstab.compute import to_lines as crossed_lines
from survey.results.estimates.result import Results, SurveyResult, survey_result
from survey.results.exports.csv import to_csv, to_json
from survey.results.exports.microdata import write_microdata
from survey.results.options import Wanted
from survey.store import PublishedSurvey, Store, find_survey

DEFAULT_ENGINE = next(iter(ENGINES))


@click.command()
@click.argument("slug", required=False)
@reading_options
@form_options
@click.option("--cross", nargs=2, metavar="A B", help="Cross the questions A and B instead.")
@click.option("--parquet", type=PATH, help="Read an export's directory, and no database.")
@click.option("--engine", help=f"What counts it: {' or '.join(ENGINES)}.")
@refusing
def estimate(
    slug: str | None,
    version: int | None,
    form: str | None,
    cross: tuple[str, str] | None,
    parquet: Path | None,
    engine: str | None,
    **asked: Any,
) -> None:
    """Print the estimates of SLUG from its released reports, or those of an export."""
    if (slug is None) == (parquet is None):
        raise click.UsageError("say which survey: either SLUG or --parquet DIR")
    if parquet is None and engine is not None:
        raise click.UsageError("--engine goes with --parquet")
    if parquet is not None and version is not None:
        raise click.UsageError("--version goes with SLUG: an export holds one version")
    wanted = Wanted(**asked)
    if cross is not None:
        if wanted != Wanted(level=wanted.level):
            raise click.UsageError("of the other options --level alone goes with --cross")
        if parquet is not None:
            table = _counted_crossed(parquet, engine or DEFAULT_ENGINE, cross, wanted)
        else:
            store = configured_store()
            table = crossed(store, find_survey(store, str(slug), version), cross, wanted)
        _print_crossed(table, form)
        return
    if parquet is not None:
        result = _counted(parquet, engine or DEFAULT_ENGINE, wanted)
    else:
        result = _result(str(slug), version, wanted)
    print_result(result, form)


def _counted_crossed(
    directory: Path, engine: str, names: tuple[str, str], wanted: Wanted
) -> CrossedQuestions:
    """The table of two questions of an export, counted by an engine."""
    with open_reports(directory, engine) as reports:
        ids = [question.id for question in reports.survey.definition.questions]

        def counted(first: int, second: int) -> Integers:
            return reports.joint_counts(ids[first], ids[second])

        return crossed_by(counted, reports.survey, names, wanted)


def _print_crossed(found: CrossedQuestions, form: str | None) -> None:
    if form == "csv":
        sys.stdout.buffer.write(to_csv(found.rows, CrossedRow).encode("utf-8"))
    else:
        click.echo(to_json(found.rows) if form == "json" else "\n".join(crossed_lines(found)))


@click.command()
@click.argument("slug")
@reading_options
@click.option("--output", type=PATH, help="A file instead of the standard output.")
@click.option("--parquet", type=PATH, help="Write the reports themselves into this directory.")
@click.option("--microdata", type=PATH, help="Write them as a ZIP of CSV, channels and codebook.")
@refusing
def export(
    slug: str,
    version: int | None,
    output: Path | None,
    parquet: Path | None,
    microdata: Path | None,
    **asked: Any,
) -> None:
    """Write the estimates of SLUG as CSV, or its released reports."""
    if parquet is not None or microdata is not None:
        _export_reports(slug, version, parquet, microdata, output, Wanted(**asked))
        return
    text = to_csv(_result(slug, version, Wanted(**asked)).rows)
    if output is None:
        sys.stdout.buffer.write(text.encode("utf-8"))
    else:
        output.write_text(text, encoding="utf-8", newline="")


def _result(slug: str, version: int | None, wanted: Wanted) -> SurveyResult:
    """What a survey's released reports tell."""
    store = configured_store()
    return Results(store).of(find_survey(store, slug, version), wanted)


def _counted(directory: Path, engine: str, wanted: Wanted) -> SurveyResult:
    """The same from an export, counted by an engine."""
    with open_reports(directory, engine) as reports:
        return survey_result(reports.survey, reports.tally(), datetime.now(UTC), wanted)


def _export_reports(
    slug: str,
    version: int | None,
    directory: Path | None,
    file: Path | None,
    output: Path | None,
    wanted: Wanted,
) -> None:
    """Write the reports themselves, in one of the two ways there are."""
    if output is not None or wanted != Wanted() or (directory and file):
        name = "--parquet" if directory else "--microdata"
        raise click.UsageError(f"{name} writes reports: only --version goes with it")
    store = configured_store()
    survey = find_survey(store, slug, version)
    if file is not None:
        # Reports one by one, if randomized: for its owner, until the owner says otherwise.
        file.touch(mode=0o600)
        with file.open("wb") as packed:
            n = write_microdata(packed, store, survey)
        click.echo(f"{file} holds {n:,} released reports")
    if directory is not None:
        _export_parquet(store, survey, directory)


def _export_parquet(store: Store, survey: PublishedSurvey, directory: Path) -> None:
    with click.progressbar(
        length=store.n_released(survey.key),
        label="writing",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        manifest = export_reports(store, survey, directory, bar.update)
    click.echo(f"{directory} holds {manifest.n:,} released reports in {len(manifest.parts)} files")
