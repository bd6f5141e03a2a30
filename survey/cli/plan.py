"""The command `survey plan`: margins, sample sizes, power and whole designs before a survey."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from survey.cli import json_option
from survey.cli.survey_design import design_survey
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
from survey.results.plan.chart import (
    check_suffix,
    grid_specification,
    tradeoff_specification,
    write_chart,
)

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
"""The lowest power that would be rounded to 100%."""

CHART_POINTS = 60
"""Number of epsilons of a line in the chart."""

CHART_EPSILONS = (0.1, 10.0)
SEED = 1
"""Seed of the simulated surveys: the same command draws the same chart."""

SURVEY_OPTIONS = ("questions", "total", "n", "cross", "answer_factor", "chart", "as_json")
"""Parameters that plan a whole survey."""

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
@click.option(
    "--questions", help="Plan a whole survey: a definition file, or a number of yes/no questions."
)
@click.option("--total", help="With --questions: maximum total epsilon of a complete response.")
@click.option(
    "--cross",
    multiple=True,
    metavar="ID,ID",
    help="Two questions to cross-tabulate; can be repeated.",
)
@click.option("--answer-factor", type=float, help="Maximum odds factor of one answer.")
@json_option("Print the plan, or errors, as JSON.")
@click.pass_context
def plan(
    context: click.Context,
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
    questions: str | None,
    total: str | None,
    cross: tuple[str, ...],
    answer_factor: float | None,
    as_json: bool,
) -> None:
    """Plan a survey with generalized randomized response, and print a table of margins.

    Give any two of --epsilon, --n and --margin; the third is computed. With --against, also print
    the power to detect the difference between two groups.

    With --questions, --total and --n, plan a whole survey: how many of its questions each person
    is asked, and the mechanism and epsilon of each. --chart then draws the margin of each design.
    """
    if questions or total or cross or answer_factor is not None:
        _refuse_question_options(context)
        design_survey(questions, total, n, cross, answer_factor, chart, as_json=as_json)
        return
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
    _print_plan(result, lines, as_json=as_json)


def _print_plan(result: Plan | None, lines: list[str], *, as_json: bool) -> None:
    """Print a plan, and raise an error if it is impossible."""
    is_impossible = result is not None and not result.possible
    if as_json:
        click.echo(json.dumps({"plan": result and asdict(result)}, indent=2))
        if is_impossible:  # The plan's note says why.
            raise click.exceptions.Exit(1)
        return
    click.echo("\n".join(lines))
    if result is not None and is_impossible:
        raise DesignError(result.note)


def _refuse_question_options(context: click.Context) -> None:
    """Raise DesignError if options for one question and for a whole survey are combined."""
    for name in context.params:
        is_given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if is_given and name not in SURVEY_OPTIONS:
            raise DesignError(
                f"--{'options' if name == 'k' else name} plans one question; to plan a whole "
                "survey, use --questions, --total, --n, --cross, --answer-factor and --chart"
            )


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
        and not any(math.isclose(size, near, rel_tol=MIN_DISTANCE) for near in requested)
    ]
    return sorted([*requested, *usual])


def _epsilons(requested: float | None) -> list[float]:
    """Return the usual values of epsilon, with the requested one unless it is nearly equal."""
    if requested is None or any(math.isclose(requested, usual, rel_tol=1e-3) for usual in EPSILONS):
        return list(EPSILONS)
    return sorted([*EPSILONS, requested])


def _points(margin: float) -> str:
    return f"±{rounded(100 * margin, decimals=1, digits=1)}"


def _exact_points(margin: float) -> str:
    return rounded(100 * margin, decimals=2, digits=2)
