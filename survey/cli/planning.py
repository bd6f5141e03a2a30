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

from survey.cli.common import configured_store, refusing
from survey.cli.output import form_options, print_result, reading_options
from survey.collect.release import release, utc_today
from survey.collect.simulated import collected
from survey.collect.simulated_people import Shares, simulated_people, typed_shares
from survey.collect.truths import Truth, truths_of
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
from survey.results.estimates.result import Results
from survey.results.options import Wanted
from survey.results.plan.chart import (
    check_suffix,
    grid_specification,
    tradeoff_specification,
    write_chart,
)
from survey.results.wording import amounts
from survey.store import PublishedSurvey, Store, find_survey, open_store

EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
SIZES = (100, 500, 1000, 2000, 5000, 10_000)
APART = 0.2
"""Usual numbers of reports nearer than this to one asked for are left out: lines would touch."""

NARROWEST = 11
"""Characters of a column of margins; a longer heading makes it wider."""

POWER = 0.8
"""How often a difference shall be found, usually."""

SURE = 0.995
"""Chances from here on would be rounded to certainty."""

DRAWN = 60
"""Epsilons of a line in the chart."""

DRAWN_RANGE = (0.1, 10.0)
SEED = 1
"""Of the simulated surveys: the same command draws the same chart."""

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--options", "k", default=2, show_default=True, help="Options of the question.")
@click.option("--share", default=0.5, show_default=True, help="The true share planned for.")
@click.option("--against", type=float, help="The share in another group: is it found to differ?")
@click.option("--epsilon", type=float, help="Privacy of the question.")
@click.option("--n", type=int, help="Reports.")
@click.option("--margin", type=float, help="Margin of error as a share: 0.03 is 3 points.")
@click.option("--population", type=int, help="People in all, when they are few.")
@click.option("--level", default=0.95, show_default=True, help="Of the interval.")
@click.option("--chart", type=FILE, help="Draw margin against epsilon: FILE.svg or FILE.png.")
@click.option("--grid", type=FILE, help="Draw simulated surveys: FILE.svg or FILE.png.")
@refusing
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
    """Plan a survey: of --epsilon, --n and --margin give two, and the third is found.

    Prints the plan and a table of margins, with --against also how surely the difference of two
    groups is found; for generalized randomized response.
    """
    asked: dict[str, Any] = {"k": k, "share": share, "level": level, "population": population}
    for file in (chart, grid):
        if file is not None:
            check_suffix(file)
    check_question(**asked)
    if n is not None:
        checked_n(n, population)
    found = _solved(epsilon, n, margin, asked)
    lines = [*(_plan_lines(found) if found else []), *_table(epsilon, n, found, asked)]
    if against is not None:
        lines += ["", *_comparison(epsilon, n, against, asked)]
    if chart is not None:
        write_chart(_chart(found, n, asked), chart)
    if grid is not None:
        rng = np.random.default_rng(SEED)
        simulated = simulated_grid(rng, k=k, share=share, level=level)
        write_chart(grid_specification(simulated), grid)
    click.echo("\n".join(lines))
    if found is not None and not found.possible:
        raise DesignError(found.note)


def _solved(
    epsilon: float | None, n: int | None, margin: float | None, asked: dict[str, Any]
) -> Plan | None:
    """The plan that two of the three make; None for one or none, the table alone."""
    if epsilon is not None and n is not None and margin is not None:
        raise DesignError("--epsilon, --n and --margin: give two of them, the third is computed")
    if epsilon is not None and margin is not None:
        return required_n(margin, epsilon=epsilon, **asked)
    if epsilon is not None and n is not None:
        return margin_of(n, epsilon=epsilon, **asked)
    if n is not None and margin is not None:
        return required_epsilon(n, margin, **asked)
    if margin is not None:
        raise DesignError("--margin needs --epsilon (to find n) or --n (to find epsilon)")
    return None


def _plan_lines(found: Plan) -> list[str]:
    of = "" if found.population is None else f" of {found.population:,} people"
    first = [] if found.possible else ["The nearest that is possible:"]
    return [
        *first,
        f"reports        {found.n:,}{of}",
        f"margin         ±{_exactly(found.margin)} points at level {found.level:g}",
        f"  sampling     ±{_exactly(found.sampling)} points, were answers given openly",
        f"  privacy      ±{_exactly(found.randomization)} points, were everybody asked",
        f"epsilon        {found.epsilon:.4g}; a report is the truth with probability {found.p:.3f}",
        "",
    ]


def _table(
    epsilon: float | None, n: int | None, found: Plan | None, asked: dict[str, Any]
) -> list[str]:
    """Margins in points, a row for each epsilon and a column for each number of reports."""
    epsilons = _with(EPSILONS, found.epsilon if found else epsilon)
    sizes = _sizes(found.n if found else n, asked["population"])
    table = tradeoff(epsilons, sizes, **asked)
    names = [f"n={size:,}" for size in sizes]
    widths = [max(NARROWEST, len(name) + 2) for name in names]
    head = f"{'epsilon':>8}{'truth':>8}" + _aligned(names, widths)
    lines = [
        f"Margin of error in points: {asked['k']} options, share {asked['share']:g}, "
        f"level {asked['level']:g}",
        head,
    ]
    for place, one in enumerate(epsilons):
        p = grr_chances(asked["k"], one).p
        cells = [_points(margin) for margin in table.margin[:, place].tolist()]
        lines.append(f"{one:>8.4g}{p:>8.3f}{_aligned(cells, widths)}")
    return lines


def _comparison(
    epsilon: float | None, n: int | None, against: float, asked: dict[str, Any]
) -> list[str]:
    """Per cent of surveys that find the difference, and the reports with which 80% do."""
    k, share, significance = asked["k"], asked["share"], 1 - asked["level"]
    shares = {"share_a": share, "share_b": against, "significance": significance}
    # A sample's people are few beside everybody's: no correction for a small population.
    sizes = _sizes(n, None)
    names = [*(f"n={size:,}" for size in sizes), f"n for {POWER:.0%}"]
    widths = [max(NARROWEST, len(name) + 2) for name in names]
    lines = [
        f"Surveys that find the difference of shares {share:g} and {against:g}, in per cent, with "
        "n reports",
        "of each group of a large population:",
        f"{'epsilon':>8}{'truth':>8}" + _aligned(names, widths),
    ]
    for one in _with(EPSILONS, epsilon):
        needed = required_n_difference(**shares, epsilon=one, k=k, target=POWER).n_a
        found = [power(size, size, **shares, epsilon=one, k=k).power for size in sizes]
        cells = [*(f"{100 * chance:.0f}" if chance < SURE else ">99" for chance in found)]
        cells.append(f"{needed:,}")
        lines.append(f"{one:>8.4g}{grr_chances(k, one).p:>8.3f}{_aligned(cells, widths)}")
    return lines


def _aligned(cells: list[str], widths: list[int]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _chart(found: Plan | None, n: int | None, asked: dict[str, Any]) -> dict[str, Any]:
    low, high = DRAWN_RANGE
    if found is not None:
        low, high = min(low, found.epsilon), max(high, found.epsilon)
    epsilons = np.geomspace(low, min(high, LARGEST_EPSILON), DRAWN).tolist()
    # Rounding may step over the ends, which a plan refuses.
    epsilons[0], epsilons[-1] = low, high
    sizes = _sizes(n, asked["population"])
    return tradeoff_specification(tradeoff(epsilons, sizes, **asked), found)


def _sizes(n: int | None, population: int | None) -> list[int]:
    """Numbers of reports to show: n, everybody where they are few, and the usual ones apart."""
    everybody = [] if population is None or population > SIZES[-1] else [population]
    own = sorted({*([] if n is None else [n]), *everybody})
    most = math.inf if population is None else population
    apart = [
        size
        for size in SIZES
        if size <= most and not any(math.isclose(size, one, rel_tol=APART) for one in own)
    ]
    return sorted([*own, *apart])


def _with(usual: tuple[float, ...], one: float | None) -> list[float]:
    """The usual values and one more, unless it is nearly one of them."""
    if one is None or any(math.isclose(one, each, rel_tol=1e-3) for each in usual):
        return list(usual)
    return sorted([*usual, one])


def _points(margin: float) -> str:
    return f"±{rounded(100 * margin, decimals=1, digits=1)}" if margin <= 1 else "above 100"


def _exactly(margin: float) -> str:
    return rounded(100 * margin, decimals=2, digits=2)


@click.command("simulate")
@click.argument("slug")
@click.option("--n", default=2_000, show_default=True, type=click.IntRange(1, 1_000_000))
@click.option(
    "--true",
    "typed",
    multiple=True,
    metavar="QUESTION=SHARE,...",
    help="True shares of its options, as fractions, in order; may be given for each question.",
)
@reading_options
@form_options
@refusing
def simulate_survey(
    slug: str,
    n: int,
    typed: Sequence[str],
    version: int | None,
    form: str | None,
    **asked: Any,
) -> None:
    """Print what SLUG would tell of N simulated people; nothing of them is kept.

    They answer a copy of the survey in a database of its own, which is deleted at the end.
    """
    wanted = Wanted(**asked)
    definition = unpublished(find_survey(configured_store(), slug, version).definition)
    shares = typed_shares(definition, dict(map(_parted, typed)))
    with _own_store() as store:
        survey = store.publish(definition, utc_today())
        _answer(store, survey, n, shares, np.random.default_rng())
        print_result(Results(store).of(survey, wanted), form)
    if form is None:
        click.echo("\n".join(["", *_true_lines(definition, truths_of(definition, shares))]))


def _parted(text: str) -> tuple[str, list[float]]:
    """`slept=.1,.8,.1` as a question and its shares."""
    question, _, shares = text.partition("=")
    try:
        return question, [float(share) for share in shares.split(",")]
    except ValueError:
        raise DesignError(
            f"--true {text}: must be a question and its shares, such as slept=.1,.8,.1"
        ) from None


@contextmanager
def _own_store() -> Iterator[Store]:
    with TemporaryDirectory(prefix="survey-simulated-") as directory:
        store = open_store(f"sqlite:///{Path(directory) / 'simulated.db'}")
        try:
            store.migrate()
            yield store
        finally:
            store.close_connections()


def _answer(
    store: Store, survey: PublishedSurvey, n: int, shares: Shares, rng: np.random.Generator
) -> None:
    people = simulated_people(survey.definition, n, shares, rng)
    with click.progressbar(
        length=n, label="Simulated people", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        for stored in collected(store, survey, people):
            bar.update(stored)
    release(store, survey, 1)


def _true_lines(definition: Definition, truths: dict[str, Truth]) -> Iterator[str]:
    """What the estimates above would be if nothing were random."""
    yield "All of this is simulated. What the people were drawn from:"
    for question in definition.questions:
        if (truth := truths.get(question.id)) is None:
            continue
        yield f"  {question.text}"
        width = max((len(option.label) for option in question.options), default=0)
        for option in question.options:
            yield f"    {option.label:<{width}}  {truth.shares[option.id]:.1%}"
        if truth.mean is not None:
            yield f"    Mean of those who answer: {amounts(question, 'mean').text(truth.mean)}"
