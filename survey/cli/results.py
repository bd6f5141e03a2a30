"""The commands that print and export estimates: estimate, export and simulate."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from survey.cli import (
    PATH,
    combine,
    configured_settings,
    configured_store,
    json_option,
    progress_bar,
    quantity,
)
from survey.collect.release import utc_today
from survey.collect.simulation import (
    Truth,
    add_simulated,
    complete_shares,
    simulate_respondents,
    true_values,
)
from survey.errors import CountsError, DesignError
from survey.estimator.shares.proportions import TARGETS
from survey.mechanism.channel import Integers
from survey.parquet import ENGINES, export_reports, open_reports
from survey.questionnaire.canonical import freeze, unpublished
from survey.questionnaire.definition import Definition
from survey.questionnaire.loading import load_file
from survey.results.crosstab import table as crosstab_table
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab, crosstab_from_counts
from survey.results.crosstab.table import CrosstabResult, CrosstabRow
from survey.results.estimates.result import ResultCache, SurveyResult, terminal_lines
from survey.results.exports.csv import to_csv, to_json
from survey.results.number_format import number_format
from survey.results.request import INTERVAL_CHOICES, IntervalOptions
from survey.store import PublishedSurvey, Store, find_survey, open_store

VERSION = click.IntRange(1, 2**31 - 1)
DEFAULT_ENGINE = next(iter(ENGINES))


MICRODATA_FORMATS = ("csv", "labels", "spss", "stata")
"""The formats of `--microdata`; Parquet and the replication package have separate options."""

DEFAULTS = IntervalOptions()

interval_options = combine(
    click.option("--level", default=DEFAULTS.level, show_default=True, help="Confidence level."),
    click.option(
        "--interval",
        default=DEFAULTS.interval,
        show_default=True,
        help=f"Interval method: {', '.join(INTERVAL_CHOICES)}.",
    ),
    click.option(
        "--simultaneous", is_flag=True, help="Cover all shares of a question simultaneously."
    ),
    click.option(
        "--target",
        default=DEFAULTS.target,
        show_default=True,
        help=f"Population of the shares: {', '.join(TARGETS)}.",
    ),
)
"""The fields of `IntervalOptions` as options."""

estimate_options = combine(
    click.option("--version", type=VERSION, help="Version of the survey; default: newest."),
    interval_options,
)
"""The options of the estimates of a survey."""

format_options = combine(
    click.option("--csv", "as_csv", is_flag=True, help="Print the rows as CSV."),
    json_option("Print the rows, or errors, as JSON."),
)
"""The options --csv and --json; `output_format` combines their values."""


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


@click.command()
@click.argument("slug", required=False)
@estimate_options
@format_options
@click.option("--cross", nargs=2, metavar="A B", help="Cross-tabulate the questions A and B.")
@click.option("--parquet", type=PATH, help="Read a Parquet export instead of the database.")
@click.option("--engine", help=f"Engine that counts a Parquet export: {', '.join(ENGINES)}.")
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
    if cross is not None and options != IntervalOptions(level=options.level):
        raise click.UsageError(
            "--cross cannot be combined with --target, --simultaneous or --interval"
        )
    if parquet is None:
        store = configured_store()
        survey = find_survey(store, str(slug), version)
        if cross is None:
            print_result(ResultCache(store).result(survey, options), form)
        else:
            _print_crosstab(compute_crosstab(store, survey, CrosstabRequest(*cross), options), form)
        return
    with open_reports(parquet, engine or DEFAULT_ENGINE) as reports:
        if cross is None:
            tally, now = reports.tally(), datetime.now(UTC)
            print_result(SurveyResult(reports.survey, tally, now, options), form)
            return
        ids = [question.id for question in reports.survey.definition.questions]

        def counts(first: int, second: int) -> Integers:
            return reports.joint_counts(ids[first], ids[second])

        table = crosstab_from_counts(counts, reports.survey, CrosstabRequest(*cross), options)
    _print_crosstab(table, form)


@click.command()
@click.argument("slug")
@estimate_options
@click.option("--output", type=PATH, help="Write the CSV to a file.")
@click.option("--parquet", type=PATH, help="Write the released reports to a Parquet directory.")
@click.option(
    "--debiased",
    "with_debiased",
    is_flag=True,
    help="Add columns to --parquet whose averages are the published shares and means.",
)
@click.option(
    "--microdata", type=PATH, help="Write the released reports and their codebook to a ZIP file."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(MICRODATA_FORMATS),
    help="Format of --microdata; default: csv, with codes.",
)
@click.option(
    "--replication",
    type=PATH,
    help="Write a ZIP file with which others can recompute the estimates in R and Python.",
)
def export(
    slug: str,
    version: int | None,
    output: Path | None,
    parquet: Path | None,
    with_debiased: bool,
    microdata: Path | None,
    form: str | None,
    replication: Path | None,
    **fields: Any,
) -> None:
    """Write the estimates of SLUG as CSV, or its released reports."""
    options = IntervalOptions(**fields)
    targets = {"--parquet": parquet, "--microdata": microdata, "--replication": replication}
    chosen = [name for name, path in targets.items() if path]
    if chosen and (output or options != DEFAULTS or len(chosen) > 1):
        raise click.UsageError(f"{chosen[0]} writes reports: only --version can be added")
    if form and not microdata:
        raise click.UsageError("--format requires --microdata")
    if with_debiased and not parquet:
        raise click.UsageError("--debiased requires --parquet")
    store = configured_store()
    survey = find_survey(store, slug, version)
    if chosen and not store.n_released(survey.key):
        raise CountsError(f"{slug} has no released reports yet, so there is nothing to write")
    if archive := microdata or replication:
        _write_archive(archive, store, survey, form or ("csv" if microdata else "replication"))
    elif parquet is not None:
        with progress_bar("writing", store.n_released(survey.key)) as bar:
            manifest = export_reports(
                store, survey, parquet, bar.update, with_debiased=with_debiased
            )
        click.echo(
            f"wrote {quantity(manifest.n, 'released report')} to {parquet} "
            f"in {quantity(len(manifest.parts), 'file')}"
        )
    else:
        text = to_csv(ResultCache(store).result(survey, options).rows)
        if output is None:
            print_csv(text)
        else:
            output.write_text(text, encoding="utf-8", newline="")


@click.command()
@click.argument("survey", metavar="SLUG|FILE")
@click.option(
    "--n",
    default=2_000,
    show_default=True,
    type=click.IntRange(1, 1_000_000),
    help="Number of simulated respondents.",
)
@click.option(
    "--true",
    "typed",
    multiple=True,
    metavar="QUESTION=SHARE,...",
    help="True shares of the options of a question, as fractions in order; can be repeated.",
)
@estimate_options
@format_options
def simulate(
    survey: str,
    n: int,
    typed: Sequence[str],
    version: int | None,
    as_json: bool,
    as_csv: bool,
    **fields: Any,
) -> None:
    """Print the estimates that simulated respondents would give.

    SLUG is a published survey; FILE is a definition, which ends in .toml or .json. The simulated
    respondents answer a copy in a temporary database, which is deleted afterwards.
    """
    form = output_format(as_json=as_json, as_csv=as_csv)
    options = IntervalOptions(**fields)
    definition = _simulated_definition(survey, version)
    shares = complete_shares(definition, dict(map(_parse_shares, typed)))
    with _temporary_store() as store:
        copy = store.publish(definition, utc_today())
        respondents = simulate_respondents(definition, n, shares, np.random.default_rng())
        with progress_bar("simulating", n) as bar:
            for stored in add_simulated(store, copy, respondents):
                bar.update(stored)
        print_result(ResultCache(store).result(copy, options), form)
    if form == "text":
        click.echo("\n".join(["", *_truth_lines(definition, true_values(definition, shares))]))


def _simulated_definition(survey: str, version: int | None) -> Definition:
    """Return the definition of a published survey, or of a file."""
    if not survey.endswith((".toml", ".json")):
        return unpublished(find_survey(configured_store(), survey, version).definition)
    if version is not None:
        raise click.UsageError("--version needs a published survey, not a file")
    return unpublished(freeze(load_file(Path(survey), configured_settings().caps), 1, b"copy"))


def _write_archive(file: Path, store: Store, survey: PublishedSurvey, form: str) -> None:
    # The statistics behind the formats take time to load, and other commands need none of them.
    from survey.results.exports.formats import FORMATS

    # A file is complete once it has its final name; a failure leaves an earlier file as it was.
    part = file.with_name(f".{file.name}.part")
    # Single reports, even randomized, stay with their owner until the owner shares them.
    part.touch(mode=0o600)
    try:
        with part.open("wb") as archive:
            n = FORMATS[form].write(archive, store, survey)
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    click.echo(f"wrote {quantity(n, 'released report')} to {file}")


def _print_crosstab(table: CrosstabResult, form: str) -> None:
    if form == "csv":
        print_csv(to_csv(table.rows, CrosstabRow))
    elif form == "json":
        click.echo(to_json(table.rows))
    else:
        click.echo("\n".join(crosstab_table.terminal_lines(table)))


def _parse_shares(text: str) -> tuple[str, list[float]]:
    """Parse `slept=.1,.8,.1` as a question and its shares."""
    question, _, shares = text.partition("=")
    try:
        return question, [float(share) for share in shares.split(",")]
    except ValueError:
        raise DesignError(
            f"--true {text}: must be a question and its shares, such as slept=.1,.8,.1"
        ) from None


@contextmanager
def _temporary_store() -> Iterator[Store]:
    with TemporaryDirectory(prefix="survey-simulated-") as directory:
        store = open_store(f"sqlite:///{Path(directory) / 'simulated.db'}")
        try:
            store.migrate()
            yield store
        finally:
            store.close_connections()


def _truth_lines(definition: Definition, truths: dict[str, Truth]) -> Iterator[str]:
    """Yield the true values from which the respondents were simulated."""
    yield "All responses are simulated. Their true values:"
    for question in definition.questions:
        if (truth := truths.get(question.id)) is None:
            continue
        yield f"  {question.text}"
        width = max((len(option.label) for option in question.options), default=0)
        for option in question.options:
            yield f"    {option.label:<{width}}  {truth.shares[option.id]:.1%}"
        labels = {option.id: f"Mean rank of “{option.label}”" for option in question.options}
        formatter = number_format(question, "mean")
        for name, mean in truth.means.items():
            label = labels.get(name, "Mean")
            yield f"    {label} among those who answer: {formatter.text(mean)}"
