"""Measure the coverage of intervals of tables, groups, weights and trees.

    python -m tests.benchmarks.coverage_tables [--short] [NAME ...]

A seeded simulation covers, at level .95, all intervals that `tests.benchmarks.coverage` (one
question), `means`, `distribution` and `regression` leave out: cross-tabs; conditional shares and
their differences; shares among respondents who answered; weighted, post-stratified and raked
shares; pairs of options; tables with known margins; hierarchies of strata; and answers randomized
by hand. A cell is an option or a table cell at one epsilon, sample size and population, rare shares
included. The intervals of finite populations are enumerated: every outcome of every population. The
output gives the minimum coverage over the cells, from a second, longer simulation; the mean
coverage; the narrowest interval; and the number of rounds without an estimate because the group's
share was not clearly above zero.

Each part runs twice, the second time with a baseline: its minimum coverage, and the mean width over
that of the baseline. At epsilon 5 to 8 wrong reports are rare; the baseline of simulated intervals
is the same interval without the shift of its ends by whole reports (`continuity`). That of finite
populations is the score interval with this shift.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from unittest.mock import patch

import numpy as np

from survey.errors import DesignError, NoBaseError
from survey.estimator import (
    answered_shares,
    bit_pairs,
    conditional,
    conditional_difference,
    consistent_proportions,
    consistent_shares,
    count_bit_pairs,
    crosstab,
    lie_detector,
    option_pairs,
    poststratified,
    proportions,
    raked,
    reconciled_crosstab,
    subset_shares,
    weighted_shares,
)
from survey.estimator.core import intervals
from survey.estimator.core.finite_population import outcome_table
from survey.estimator.core.intervals import finite_population, mapped_to_shares
from survey.estimator.shares import answered_shares as answered_shares_module
from survey.estimator.tables import hierarchical_consistency
from survey.mechanism import BitVector, SubsetSelection, from_epsilon
from survey.mechanism.channel import Floats
from tests.benchmarks.short import benchmark_parser, reduced, require_range

Generator = np.random.Generator
Draw = Callable[[], tuple[Floats, Floats, Floats]]

ROUNDS = 1_000
EPSILONS = (0.5, math.log(3), 4.0)
RARE_ERRORS = (5.0, 6.0, 7.0, 8.0)
"""Epsilons at which wrong reports are rare; surveys of these sizes contain hardly any."""

SIZES, SMALL_SIZES = (200, 1_000), (60, 300)
AGAIN, TIMES_AGAIN = 2, 20
"""How many populations are simulated again, with how many times more rounds: the minimum of many
noisy figures is too low. The standard error of 20,000 rounds is .0015."""

MIN_COVERAGE, MIN_MEAN_COVERAGE, MIN_EXACT_COVERAGE = 0.945, 0.945, 0.95 - 1e-9


@dataclass
class Coverage:
    """Coverage by cell, widths, and the number of rounds without an estimate."""

    cells: list[Floats] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    narrowest: float = math.inf
    n_refused: int = 0
    least: list[tuple[float, int, Draw]] = field(default_factory=list)

    def add(self, low: Floats, high: Floats, truth: Floats, slack: float = 1e-9) -> Floats:
        self.narrowest = min(self.narrowest, float((high - low).min()))
        self.widths.append(float((high - low).mean()))
        return np.asarray(((low <= truth + slack) & (truth <= high + slack)).astype(float)).ravel()

    def minimum(self) -> float:
        """Simulate the cells that covered least again; return their least coverage.

        Enumerated cells have no noise.
        """
        if not self.least:
            return float(np.concatenate(self.cells).min())
        self.least.sort(key=lambda of_population: of_population[0])
        return min(
            float(np.mean(hits(self, draw, ROUNDS * TIMES_AGAIN), axis=0)[cell])
            for _, cell, draw in self.least[:AGAIN]
        )


def hits(coverage: Coverage, draw: Draw, rounds: int) -> list[Floats]:
    """Return where (low, high, truth) of the draws covers; leave out those without an estimate."""
    covered = []
    for _ in range(rounds):
        with suppress(DesignError, NoBaseError):
            covered.append(coverage.add(*draw()))
    return covered


def simulate(coverage: Coverage, draw: Draw) -> None:
    """Add the coverage of each cell over ROUNDS draws."""
    start = len(coverage.widths)
    covered = hits(coverage, draw, ROUNDS)
    # One mean width for each design, also where rounds were left out.
    coverage.widths[start:] = [float(np.mean(coverage.widths[start:]))]
    coverage.n_refused += ROUNDS - len(covered)
    if len(covered) >= ROUNDS / 2:
        cells = np.mean(covered, axis=0)
        coverage.cells.append(cells)
        coverage.least.append((float(cells.min()), int(cells.argmin()), draw))


RARE = np.array([[0.01, 0.01, 0.01], [0.01, 0.01, 0.01], [0.01, 0.01, 0.92]])
TABLES = (
    np.array([[0.01, 0.29], [0.3, 0.4]]),
    np.array([[0.0, 0.3], [0.3, 0.4]]),
    np.array([[0.3, 0.1, 0.1], [0.05, 0.25, 0.05], [0.0, 0.05, 0.1]]),
)

GROUPS = (
    # Shares of the strata in the population, and shares of the answers in each stratum.
    (np.array([0.5, 0.3, 0.2]), np.array([[0.02, 0.98], [0.1, 0.9], [0.4, 0.6]])),
    (np.array([0.7, 0.2, 0.1]), np.array([[0.0, 0.3, 0.7], [0.05, 0.6, 0.35], [0.5, 0.0, 0.5]])),
)


def epsilons_and_sizes() -> Iterator[tuple[float, int]]:
    yield from itertools.product(EPSILONS, SIZES)
    yield from itertools.product(RARE_ERRORS, SMALL_SIZES)


def joint(
    table: Floats, epsilon: float, n: int, rng: Generator
) -> tuple[Floats, list[SubsetSelection]]:
    """Draw a table of joint counts; return it with the channels of its questions."""
    channels = [from_epsilon(k, epsilon) for k in table.shape]
    reports = channels[0].matrix.T @ table @ channels[1].matrix
    return rng.multinomial(n, reports.ravel()).reshape(table.shape), channels


def crosstabs(rng: Generator, coverage: Coverage) -> None:
    for epsilon, n in epsilons_and_sizes():
        for table in TABLES:

            def draw(table=table, epsilon=epsilon, n=n):
                estimate = crosstab(*joint(table, epsilon, n, rng))
                return estimate.conf_low, estimate.conf_high, table

            simulate(coverage, draw)


def conditional_shares(rng: Generator, coverage: Coverage) -> None:
    for epsilon, n in [(2.0, 4_000), *itertools.product(RARE_ERRORS, SMALL_SIZES)]:
        for table in TABLES:
            truth = (table / table.sum(axis=0))[:, [1]]

            def draw(table=table, truth=truth, epsilon=epsilon, n=n):
                crossed = crosstab(*joint(table, epsilon, n, rng))
                estimate = conditional(crossed, given=1, options=[1])
                return estimate.conf_low, estimate.conf_high, truth

            simulate(coverage, draw)


DIFFERENCES = ([[0.1, 0.0], [0.0, 0.9]], [[0.0, 0.3], [0.1, 0.6]])
"""Tables in which shares among people with an answer are 0 or 1, and few people gave it."""


def conditional_differences(rng: Generator, coverage: Coverage) -> None:
    # About the smallest numbers of reports with which the difference is shown.
    for epsilon, n in ((1.0, 1_209), (2.0, 204), (4.0, 96)):
        for table in map(np.array, DIFFERENCES):
            shares = table / table.sum(axis=0)

            def draw(table=table, shares=shares, epsilon=epsilon, n=n):
                crossed = crosstab(*joint(table, epsilon, n, rng))
                estimate = conditional_difference(crossed, [0, 1])
                return estimate.conf_low, estimate.conf_high, shares[:, 0] - shares[:, 1]

            simulate(coverage, draw)


def known_margins(rng: Generator, coverage: Coverage) -> None:
    for epsilon, n in epsilons_and_sizes():
        for table in [*TABLES, RARE]:
            margins = [table.sum(axis=1), table.sum(axis=0)]

            def draw(table=table, margins=margins, epsilon=epsilon, n=n):
                estimate = reconciled_crosstab(*joint(table, epsilon, n, rng), margins)
                return estimate.conf_low, estimate.conf_high, table

            simulate(coverage, draw)


def shares_among_answers(rng: Generator, coverage: Coverage) -> None:
    for epsilon, n in epsilons_and_sizes():
        for shares in ([0.02, 0.78, 0.2], [0.3, 0.1, 0.3, 0.3], [0.0, 0.5, 0.3, 0.2]):
            channel, truth = from_epsilon(len(shares), epsilon), np.array(shares)

            def draw(channel=channel, truth=truth, n=n):
                counts = rng.multinomial(n, truth @ channel.matrix)
                estimate = answered_shares(counts, channel, [truth.size - 1])
                return estimate.conf_low, estimate.conf_high, truth[:-1] / truth[:-1].sum()

            simulate(coverage, draw)


def draw_by_stratum(
    people: Floats, answers: Floats, sampled: Floats, epsilon: float, n: int, rng: Generator
):
    """Draw counts by stratum with sampling shares `sampled`; return counts, channel and truth."""
    channel = from_epsilon(answers.shape[1], epsilon)
    sizes = rng.multinomial(n, sampled)
    counts = np.array(
        [rng.multinomial(m, a @ channel.matrix) for m, a in zip(sizes, answers, strict=True)]
    )
    return counts, channel, people @ answers


def weighted_groups(rng: Generator, coverage: Coverage) -> None:
    for epsilon, n in epsilons_and_sizes():
        for people, answers in GROUPS:
            sampled = np.array([0.2, 0.3, 0.5])

            def draw(people=people, answers=answers, sampled=sampled, epsilon=epsilon, n=n):
                counts, channel, truth = draw_by_stratum(people, answers, sampled, epsilon, n, rng)
                estimate = weighted_shares(counts, people / sampled, channel)
                return estimate.conf_low, estimate.conf_high, truth

            simulate(coverage, draw)


def poststratified_groups(rng: Generator, coverage: Coverage) -> None:
    for epsilon, n in epsilons_and_sizes():
        for people, answers in GROUPS:

            def draw(people=people, answers=answers, epsilon=epsilon, n=n):
                counts, channel, truth = draw_by_stratum(people, answers, people, epsilon, n, rng)
                estimate = poststratified(counts, people, channel)
                return estimate.conf_low, estimate.conf_high, truth

            simulate(coverage, draw)


def raked_cells(rng: Generator, coverage: Coverage) -> None:
    people = np.array([[0.35, 0.15], [0.2, 0.3]])
    for epsilon, n in epsilons_and_sizes():
        answers = np.array([[0.02, 0.98], [0.1, 0.9], [0.3, 0.7], [0.05, 0.95]])

        def draw(answers=answers, epsilon=epsilon, n=n):
            counts, channel, truth = draw_by_stratum(
                people.ravel(), answers, people.ravel(), epsilon, n, rng
            )
            margins = [people.sum(axis=1), people.sum(axis=0)]
            estimate = raked(counts.reshape(2, 2, -1), margins, channel)
            return estimate.conf_low, estimate.conf_high, truth

        simulate(coverage, draw)


def ticked_pairs(rng: Generator, coverage: Coverage) -> None:
    truths = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    for T, n in ((3, 200), (3, 1_000), (20, 200), (20, 1_000)):
        for shares in ([0.5, 0.2, 0.2, 0.1], [0.9, 0.07, 0.02, 0.01]):
            channel = BitVector(m=2, s=2, T=T, L=1)

            def draw(channel=channel, shares=shares, n=n):
                ticks = truths[rng.choice(4, n, p=shares)]
                flipped = rng.random(ticks.shape) >= channel.p
                counts = count_bit_pairs(ticks ^ flipped, channel, [(0, 1)])
                estimate = bit_pairs(counts, channel, [(0, 1)], n=n)
                return estimate.conf_low, estimate.conf_high, np.array([shares[3]])

            simulate(coverage, draw)


PATTERNS = ((), (0,), (1,), (0, 1))


def patterns(rng: Generator, coverage: Coverage) -> None:
    for epsilon, n in epsilons_and_sizes():
        channel, shares = from_epsilon(4, epsilon), np.array([0.6, 0.25, 0.13, 0.02])

        def draw(channel=channel, shares=shares, n=n):
            counts = rng.multinomial(n, shares @ channel.matrix)
            pair = option_pairs(counts, channel, PATTERNS, 2)
            subset = subset_shares(counts, channel, PATTERNS, 2)
            return (
                np.append(pair.conf_low, subset.conf_low),
                np.append(pair.conf_high, subset.conf_high),
                np.array([shares[3], shares[1] + shares[3], shares[2] + shares[3]]),
            )

        simulate(coverage, draw)


def trees(rng: Generator, coverage: Coverage) -> None:
    parents, leaves = [-1, 0, 0, 1, 1, 2, 2], np.array([300.0, 100, 200, 400])
    member = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4)])
    people = member @ leaves
    for epsilon, n in epsilons_and_sizes():
        for answers in ([[0.02, 0.98]], [[0.0, 0.3, 0.7], [0.3, 0.1, 0.6]]):
            shares = np.resize(answers, (4, len(answers[0])))
            truth = member @ (leaves[:, None] * shares) / people[:, None]
            channel = from_epsilon(truth.shape[1], epsilon)

            def draw(truth=truth, channel=channel, n=n):
                counts = rng.multinomial(n, truth @ channel.matrix)
                estimate = consistent_proportions(counts, channel, parents, people)
                return estimate.conf_low, estimate.conf_high, truth

            simulate(coverage, draw)


def trees_of_errors(rng: Generator, coverage: Coverage) -> None:
    for epsilon, sizes in itertools.product(RARE_ERRORS, ((0, 50, 50), (100, 50, 50))):
        for share in (0.03, 0.1):
            channel = from_epsilon(2, epsilon)

            def draw(channel=channel, sizes=sizes, share=share):
                given = np.full((2, 3), np.nan)
                for stratum, n in enumerate(sizes):
                    if n:
                        counts = rng.multinomial(n, np.array([share, 1 - share]) @ channel.matrix)
                        shares = proportions(counts, channel, interval="wilson")
                        given[:, stratum] = shares.estimate[0], shares.std_error[0]
                estimate = consistent_shares(*given, [-1, 0, 0], [200, 100, 100], n=sizes)
                return estimate.conf_low, estimate.conf_high, np.full(3, share)

            simulate(coverage, draw)


FINITE_EPSILONS = (0.2, 0.5, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0)
FINITE_SIZES = ((25, 25), (25, 50), (25, 1_000), (100, 100), (100, 200), (250, 250), (400, 800),
                (400, 400), (1_000, 1_000))  # fmt: skip
"""Numbers of reports and of people. The table of the last one, and that of 800 people, would be too
large: they have the score interval."""


def finite_populations(_rng: Generator, coverage: Coverage) -> None:
    """Enumerate the outcomes of every population; a cell is a number of people with the option."""
    for k, epsilon in itertools.product((2, 3, 5, 10), FINITE_EPSILONS):
        p_and_q = from_epsilon(k, epsilon)
        floor, ceiling = p_and_q.q, p_and_q.p
        for n, population in FINITE_SIZES:
            P = outcome_table(n, population, floor, ceiling)
            ends = finite_population(np.arange(n + 1), n, floor, ceiling, 0.95, population)
            low, high = mapped_to_shares(ends, p_and_q)
            truth = np.arange(population + 1)[:, None] / population
            is_covered = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
            coverage.cells.append((P * is_covered).sum(axis=1))
            coverage.widths.append(float((P @ (high - low)).mean()))
            coverage.narrowest = min(coverage.narrowest, float((high - low).min()))


def hand_randomization(rng: Generator, coverage: Coverage) -> None:
    p = (0.2, 0.8)
    for n in SIZES:
        for carriers, honest in ((0.3, 0.9), (0.1, 0.5), (0.5, 1.0)):

            def draw(carriers=carriers, honest=honest, n=n):
                chances = [carriers * honest + (1 - carriers) * (1 - p_yes) for p_yes in p]
                estimate = lie_detector(rng.binomial(n, chances), [n, n], p)
                return estimate.conf_low[:1], estimate.conf_high[:1], np.array([carriers])

            simulate(coverage, draw)


PARTS: dict[str, Callable[[Generator, Coverage], None]] = {
    "crosstab": crosstabs,
    "conditional": conditional_shares,
    "conditional_difference": conditional_differences,
    "reconciled_crosstab": known_margins,
    "answered_shares": shares_among_answers,
    "weighted_shares": weighted_groups,
    "poststratified": poststratified_groups,
    "raked": raked_cells,
    "bit_pairs": ticked_pairs,
    "option_pairs, subset_shares": patterns,
    "consistent_proportions": trees,
    "consistent_shares": trees_of_errors,
    "finite_shares": finite_populations,
    "lie_detector": hand_randomization,
}


@contextmanager
def unshifted_ends() -> Iterator[None]:
    """Leave out the shift of ends by whole reports."""
    with ExitStack() as stack:
        for module in (intervals, answered_shares_module, hierarchical_consistency):
            stack.enter_context(patch.object(module, "continuity", return_value=0.0))
        yield


@contextmanager
def score_intervals() -> Iterator[None]:
    """Use the score interval for all finite populations."""
    with patch.object(intervals, "has_table", return_value=False):
        yield


BASELINES = {"finite_shares": score_intervals}
"""Baselines other than `unshifted_ends`."""

EXACT = ("finite_shares",)
"""Parts without simulation: no noise to allow for."""

SHORT = {
    "PARTS": {name: PARTS[name] for name in ("crosstab", "raked", "finite_shares")},
    "ROUNDS": 20,
    "EPSILONS": (math.log(3),),
    "RARE_ERRORS": (5.0,),
    "SIZES": (200,),
    "SMALL_SIZES": (60,),
    "TIMES_AGAIN": 2,
    "FINITE_EPSILONS": (1.0,),
    "FINITE_SIZES": ((25, 50),),
}
LEAST_PLAUSIBLE = 0.75
"""A minimum below this means a fault, even in a short run, which simulates 40 rounds again."""


def measured(name: str) -> Coverage:
    coverage = Coverage()
    PARTS[name](np.random.default_rng(20), coverage)
    return coverage


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("parts", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        measure(options.parts)


def measure(parts: Sequence[str]) -> None:
    """Run the given parts, or all parts."""
    print(f"{'':<28}{'cells':>7}{'minimum':>8}{'target':>8}{'ratio':>7}{'mean':>8}{'target':>8}"
          f"{'baseline':>10}{'width':>7}{'narrowest':>11}{'refused':>9}{'seconds':>9}")  # fmt: skip
    for name in PARTS:
        if parts and name not in parts:
            continue
        start, coverage = perf_counter(), measured(name)
        widths = list(coverage.widths)
        minimum = coverage.minimum()
        require_range(f"{name}: least coverage", minimum, LEAST_PLAUSIBLE, 1.0 + 1e-9)
        with BASELINES.get(name, unshifted_ends)():
            baseline = measured(name)
        cells, seconds = np.concatenate(coverage.cells), perf_counter() - start
        target = MIN_EXACT_COVERAGE if name in EXACT else MIN_COVERAGE
        status = "yes" if minimum >= target and cells.mean() >= MIN_MEAN_COVERAGE else "MISSED"
        width = np.mean(np.divide(widths, baseline.widths))
        print(
            f"{name:<28}{cells.size:>7}{minimum:>8.3f}{target:>8.3f}{minimum / target:>7.3f}"
            f"{cells.mean():>8.4f}{MIN_MEAN_COVERAGE:>8}"
            f"{np.concatenate(baseline.cells).min():>10.3f}{width:>7.3f}"
            f"{coverage.narrowest:>11.5f}{coverage.n_refused:>9}{seconds:>9.1f}  {status}",
            flush=True,
        )


if __name__ == "__main__":
    main()
