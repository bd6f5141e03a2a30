"""The commands that plan a survey and simulate it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from survey.cli.common import configured_store, exit_on_error
from survey.cli.output import estimate_options, format_options, output_format, print_result
from survey.collect.release import release, utc_today
from survey.collect.simulation import (
    Shares,
    Truth,
    complete_shares,
    send_reports,
    simulate_respondents,
    true_values,
)
from survey.errors import DesignError
from survey.estimator import (
    Plan,
    margin_of,
    power,
    required_epsilon,
    required_n,
    required_n_difference,
    simulated_grid,
    tradeoff,
)
from survey.estimator.planning.sample_size import (
    LARGEST_EPSILON,
    check_question,
    checked_n,
    grr_chances,
    rounded,
)
from survey.questionnaire.canonical import unpublished
from survey.questionnaire.definition import Definition
from survey.results.estimates.result import ResultCache
from survey.results.number_format import number_format
from survey.results.options import IntervalOptions
from survey.results.plan.chart import (
    check_suffix,
    grid_specification,
    tradeoff_specification,
    write_chart,
)
from survey.store import PublishedSurvey, Store, find_survey, open_store

EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
SIZES = (100, 500, 1000, 2000, 5000, 10_000)
MIN_DISTANCE = 0.2
"""Relative distance between the requested number of reports and the usual ones that are shown
beside it: the lines of nearer ones would touch in the chart."""

MIN_WIDTH = 11
"""Characters of a column of margins; a longer heading makes it wider."""

POWER = 0.8
"""The power for which the table gives the number of reports."""

NEARLY_CERTAIN = 0.995
"""A power from here on would be rounded to 100%."""

CHART_POINTS = 60
"""Number of epsilons of a line in the chart."""

CHART_EPSILONS = (0.1, 10.0)
SEED = 1
"""Seed of the simulated surveys: the same command draws the same chart."""

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--options", "k", default=2, show_default=True, help="Number of answer options.")
@click.option("--share", default=0.5, show_default=True, help="Expected true share.")
@click.option("--against", type=float, help="Expected share in a second group, to compare.")
@click.option("--epsilon", type=float, help="Privacy loss of the question.")
@click.option("--n", type=int, help="Number of reports.")
@click.option("--margin", type=float, help="Margin of error as a share: 0.03 is 3 points.")
@click.option("--population", type=int, help="Size of the population, if it is small.")
@click.option("--level", default=0.95, show_default=True, help="Confidence level.")
@click.option("--chart", type=FILE, help="Draw margin against epsilon: FILE.svg or FILE.png.")
@click.option("--grid", type=FILE, help="Draw simulated surveys: FILE.svg or FILE.png.")
@exit_on_error
def plan(
    k: int,
    share: float,
    against: float | None,
    epsilon: float | None,
    n: int | None,
    margin: float | None,
    population: int | None,
    level: float,
    chart: Path | None,
    grid: Path | None,
) -> None:
    """Plan a survey with generalized randomized response, and print a table of margins.

    Give any two of --epsilon, --n and --margin; the third is computed. With --against, also print
    the power to detect the difference between two groups.
    """
    question: dict[str, Any] = {"k": k, "share": share, "level": level, "population": population}
    for file in (chart, grid):
        if file is not None:
            check_suffix(file)
    check_question(**question)
    if n is not None:
        checked_n(n, population)
    result = _solve(epsilon, n, margin, question)
    lines = [*(_plan_lines(result) if result else []), *_table(epsilon, n, result, question)]
    if against is not None:
        lines += ["", *_power_table(epsilon, n, against, question)]
    if chart is not None:
        write_chart(_chart(result, n, question), chart)
    if grid is not None:
        rng = np.random.default_rng(SEED)
        simulated = simulated_grid(rng, k=k, share=share, level=level)
        write_chart(grid_specification(simulated), grid)
    click.echo("\n".join(lines))
    if result is not None and not result.possible:
        raise DesignError(result.note)


def _solve(
    epsilon: float | None, n: int | None, margin: float | None, question: dict[str, Any]
) -> Plan | None:
    """Compute the third quantity from two; return None if fewer than two are given."""
    if epsilon is not None and n is not None and margin is not None:
        raise DesignError("give two of --epsilon, --n and --margin; the third is computed")
    if epsilon is not None and margin is not None:
        return required_n(margin, epsilon=epsilon, **question)
    if epsilon is not None and n is not None:
        return margin_of(n, epsilon=epsilon, **question)
    if n is not None and margin is not None:
        return required_epsilon(n, margin, **question)
    if margin is not None:
        raise DesignError("--margin requires --epsilon (to compute n) or --n (to compute epsilon)")
    return None


def _plan_lines(result: Plan) -> list[str]:
    population = "" if result.population is None else f" of {result.population:,} people"
    first = [] if result.possible else ["The nearest possible plan:"]
    return [
        *first,
        f"reports        {result.n:,}{population}",
        f"margin         ±{_exact_points(result.margin)} points at level {result.level:g}",
        f"  sampling     ±{_exact_points(result.sampling)} points without randomization",
        f"  privacy      ±{_exact_points(result.randomization)} points if everybody responded",
        f"epsilon        {result.epsilon:.4g}, truth probability {result.p:.3f}",
        "",
    ]


def _table(
    epsilon: float | None, n: int | None, result: Plan | None, question: dict[str, Any]
) -> list[str]:
    """Format margins in points: a row for each epsilon, a column for each number of reports."""
    epsilons = _epsilons(result.epsilon if result else epsilon)
    sizes = _sizes(result.n if result else n, question["population"])
    table = tradeoff(epsilons, sizes, **question)
    names = [f"n={size:,}" for size in sizes]
    widths = [max(MIN_WIDTH, len(name) + 2) for name in names]
    lines = [
        f"Margin of error in points: {question['k']} options, share {question['share']:g}, "
        f"level {question['level']:g}",
        f"{'epsilon':>8}{'truth':>8}" + _align(names, widths),
    ]
    for column, row_epsilon in enumerate(epsilons):
        p = grr_chances(question["k"], row_epsilon).p
        cells = [_points(margin) for margin in table.margin[:, column].tolist()]
        lines.append(f"{row_epsilon:>8.4g}{p:>8.3f}{_align(cells, widths)}")
    return lines


def _power_table(
    epsilon: float | None, n: int | None, against: float, question: dict[str, Any]
) -> list[str]:
    """Format the power to detect a difference, and the reports for which it is `POWER`."""
    k, share, significance = question["k"], question["share"], 1 - question["level"]
    shares = {"share_a": share, "share_b": against, "significance": significance}
    # Samples are small in comparison with the population: it needs no correction here.
    sizes = _sizes(n, None)
    names = [*(f"n={size:,}" for size in sizes), f"n for {POWER:.0%}"]
    widths = [max(MIN_WIDTH, len(name) + 2) for name in names]
    lines = [
        f"Power in per cent to detect the difference between the shares {share:g} and {against:g},",
        "with n reports from each group of a large population:",
        f"{'epsilon':>8}{'truth':>8}" + _align(names, widths),
    ]
    for row_epsilon in _epsilons(epsilon):
        n_required = required_n_difference(**shares, epsilon=row_epsilon, k=k, target=POWER).n_a
        powers = [power(size, size, **shares, epsilon=row_epsilon, k=k).power for size in sizes]
        cells = [f"{100 * value:.0f}" if value < NEARLY_CERTAIN else ">99" for value in powers]
        p = grr_chances(k, row_epsilon).p
        row = _align([*cells, f"{n_required:,}"], widths)
        lines.append(f"{row_epsilon:>8.4g}{p:>8.3f}{row}")
    return lines


def _align(cells: list[str], widths: list[int]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _chart(result: Plan | None, n: int | None, question: dict[str, Any]) -> dict[str, Any]:
    low, high = CHART_EPSILONS
    if result is not None:
        low, high = min(low, result.epsilon), max(high, result.epsilon)
    epsilons = np.geomspace(low, min(high, LARGEST_EPSILON), CHART_POINTS).tolist()
    # Rounding may exceed the limits, which `tradeoff` rejects.
    epsilons[0], epsilons[-1] = low, high
    sizes = _sizes(n, question["population"])
    return tradeoff_specification(tradeoff(epsilons, sizes, **question), result)


def _sizes(n: int | None, population: int | None) -> list[int]:
    """Return the numbers of reports to show: n, a small population, and distant usual ones."""
    everybody = [] if population is None or population > SIZES[-1] else [population]
    requested = sorted({*([] if n is None else [n]), *everybody})
    maximum = math.inf if population is None else population
    usual = [
        size
        for size in SIZES
        if size <= maximum
        and not any(math.isclose(size, other, rel_tol=MIN_DISTANCE) for other in requested)
    ]
    return sorted([*requested, *usual])


def _epsilons(requested: float | None) -> list[float]:
    """Return the usual values of epsilon, with the requested one unless it is nearly equal."""
    if requested is None or any(math.isclose(requested, usual, rel_tol=1e-3) for usual in EPSILONS):
        return list(EPSILONS)
    return sorted([*EPSILONS, requested])


def _points(margin: float) -> str:
    return f"±{rounded(100 * margin, decimals=1, digits=1)}" if margin <= 1 else "above 100"


def _exact_points(margin: float) -> str:
    return rounded(100 * margin, decimals=2, digits=2)


@click.command()
@click.argument("slug")
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
@exit_on_error
def simulate(
    slug: str,
    n: int,
    typed: Sequence[str],
    version: int | None,
    as_json: bool,
    as_csv: bool,
    **fields: Any,
) -> None:
    """Print the estimates that simulated respondents of SLUG would give.

    They answer a copy of the survey in a temporary database, which is deleted afterwards.
    """
    form = output_format(as_json=as_json, as_csv=as_csv)
    options = IntervalOptions(**fields)
    definition = unpublished(find_survey(configured_store(), slug, version).definition)
    shares = complete_shares(definition, dict(map(_parse_shares, typed)))
    with _temporary_store() as store:
        survey = store.publish(definition, utc_today())
        _collect(store, survey, n, shares, np.random.default_rng())
        print_result(ResultCache(store).result(survey, options), form)
    if form == "text":
        click.echo("\n".join(["", *_truth_lines(definition, true_values(definition, shares))]))


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


def _collect(
    store: Store, survey: PublishedSurvey, n: int, shares: Shares, rng: np.random.Generator
) -> None:
    """Collect and release the reports of n simulated respondents."""
    respondents = simulate_respondents(survey.definition, n, shares, rng)
    with click.progressbar(
        length=n, label="Simulated respondents", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        for stored in send_reports(store, survey, respondents):
            bar.update(stored)
    release(store, survey, 1)


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
        if truth.mean is not None:
            mean = number_format(question, "mean").text(truth.mean)
            yield f"    Mean of those who answer: {mean}"
