"""Measure the coverage of intervals of tables, groups, weights and trees.

    python -m tests.benchmarks.coverage_tables [NAME ...]

A seeded simulation covers, at level .95, all intervals that `tests.benchmarks.coverage` (one
question), `means`, `distribution` and `regression` leave out: cross-tabs; conditional shares;
shares among respondents who answered; weighted, post-stratified and raked shares; pairs of
options; tables with known margins; hierarchies of strata; finite populations; and answers
randomized by hand. A cell is an option or a table cell at one epsilon, sample size and
population, rare shares included. The output gives the minimum and the mean coverage over the
cells, the narrowest interval, and the number of rounds without an estimate because the group's
share was not clearly above zero.

At epsilon 5 to 8 wrong reports are rare, and cells and options that are truly 0 were covered in
.88 to .94 of surveys before ends moved by the lattice of the estimate: the column `before`.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from survey.errors import NoBaseError
from survey.estimator import (
    answered_shares,
    bit_pairs,
    conditional,
    consistent_proportions,
    count_bit_pairs,
    crosstab,
    finite_shares,
    lie_detector,
    option_pairs,
    poststratified,
    raked,
    reconciled_crosstab,
    subset_shares,
    weighted_shares,
)
from survey.mechanism import BitVector, SubsetSelection, from_epsilon
from survey.mechanism.channel import Floats

Generator = np.random.Generator

ROUNDS = 1_000
EPSILONS = (0.5, math.log(3), 4.0)
RARE_ERRORS = (5.0, 6.0, 7.0, 8.0)
"""Epsilons at which wrong reports are rare; surveys of these sizes contain hardly any."""

SIZES, SMALL_SIZES = (200, 1_000), (60, 300)
NOISE = 3 * math.sqrt(0.05 * 0.95 / ROUNDS)
"""Three standard errors of a simulated coverage."""

MIN_COVERAGE, MIN_MEAN_COVERAGE = 0.945 - NOISE, 0.945
"""The documented minimum is .945; the minimum of many noisy cells is lower."""

WITHOUT_SHIFT = {"crosstab": 0.896, "answered_shares": 0.903, "weighted_shares": 0.891}
"""Baseline: minimum coverage of cells that are truly 0, at epsilon 5 to 8, before the ends of these
intervals moved by the lattice of the estimate."""


@dataclass
class Coverage:
    """Coverage by cell, the narrowest interval and the number of rounds without an estimate."""

    cells: list[Floats] = field(default_factory=list)
    narrowest: float = math.inf
    n_refused: int = 0

    def add(self, low: Floats, high: Floats, truth: Floats, slack: float = 1e-9) -> Floats:
        self.narrowest = min(self.narrowest, float((high - low).min()))
        return np.asarray(((low <= truth + slack) & (truth <= high + slack)).astype(float)).ravel()


def simulate(coverage: Coverage, draw: Callable[[], tuple[Floats, Floats, Floats]]) -> None:
    """Add the coverage of each cell over ROUNDS draws of (low, high, truth).

    Rounds without an estimate are left out.
    """
    hits = []
    for _ in range(ROUNDS):
        with suppress(NoBaseError):
            hits.append(coverage.add(*draw()))
    coverage.n_refused += ROUNDS - len(hits)
    if len(hits) >= ROUNDS / 2:
        coverage.cells.append(np.mean(hits, axis=0))


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
    for table in TABLES:
        truth = (table / table.sum(axis=0))[:, [1]]

        def draw(table=table, truth=truth):
            estimate = conditional(crosstab(*joint(table, 2.0, 4_000, rng)), given=1, options=[1])
            return estimate.conf_low, estimate.conf_high, truth

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


def finite_populations(rng: Generator, coverage: Coverage) -> None:
    for epsilon, n in epsilons_and_sizes():
        for carriers in (0.01, 0.3):
            channel, population = from_epsilon(2, epsilon), 2 * n
            n_carriers = int(carriers * population)

            def draw(channel=channel, population=population, n_carriers=n_carriers, n=n):
                sample = rng.hypergeometric(n_carriers, population - n_carriers, n)
                yes = rng.binomial(sample, channel.p) + rng.binomial(n - sample, channel.q)
                estimate = finite_shares([yes, n - yes], channel, population)
                return (
                    estimate.conf_low[:1],
                    estimate.conf_high[:1],
                    np.array([n_carriers / population]),
                )

            simulate(coverage, draw)


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
    "reconciled_crosstab": known_margins,
    "answered_shares": shares_among_answers,
    "weighted_shares": weighted_groups,
    "poststratified": poststratified_groups,
    "raked": raked_cells,
    "bit_pairs": ticked_pairs,
    "option_pairs, subset_shares": patterns,
    "consistent_proportions": trees,
    "finite_shares": finite_populations,
    "lie_detector": hand_randomization,
}


def main(parts: Sequence[str]) -> None:
    print(f"{'':<28}{'cells':>6}{'minimum':>8}{'target':>8}{'ratio':>7}{'before':>9}{'mean':>8}{'target':>8}"
          f"{'narrowest':>11}{'refused':>9}{'seconds':>9}")  # fmt: skip
    for name, part in PARTS.items():
        if parts and name not in parts:
            continue
        coverage, start = Coverage(), perf_counter()
        part(np.random.default_rng(20), coverage)
        cells = np.concatenate(coverage.cells)
        minimum, seconds = cells.min(), perf_counter() - start
        status = (
            "yes" if minimum >= MIN_COVERAGE and cells.mean() >= MIN_MEAN_COVERAGE else "MISSED"
        )
        before = WITHOUT_SHIFT.get(name, math.nan)
        print(
            f"{name:<28}{cells.size:>6}{minimum:>8.3f}{MIN_COVERAGE:>8.3f}"
            f"{minimum / MIN_COVERAGE:>7.3f}{before:>9.3f}{cells.mean():>8.4f}"
            f"{MIN_MEAN_COVERAGE:>8}{coverage.narrowest:>11.5f}{coverage.n_refused:>9}"
            f"{seconds:>9.1f}  {status}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
