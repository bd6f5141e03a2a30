"""Coverage of tables, groups, weights and trees: `python -m tests.benchmarks.coverage_tables`.

Seeded simulation at .95 of every interval that `tests.benchmarks.coverage` (one question),
`means`, `distribution` and `regression` do not have: cross-tabs, shares under a condition, among
those who answered, weighted, post-stratified and raked, pairs of options, tables with known
margins, strata that add up, finite populations, and answers randomized by hand. For each: the
least and the mean coverage over its cells (an option or a cell of a table at one epsilon, number
of reports and population, rare shares among them), the narrowest
interval that was seen, and how many rounds were refused: the group was not clearly above nobody.

Of the least of so many simulated coverages much is noise: of a hundred cells that cover .95, in
1,000 rounds each, the least comes out at about .95 - 2.5 sqrt(.95 .05/1000) = .933.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

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

Floats = NDArray[np.float64]
Generator = np.random.Generator

ROUNDS = 1_000
EPSILONS = (0.5, math.log(3), 4.0)
SIZES = (200, 1_000)
LEAST, MEAN = 0.92, 0.94
"""Half a per cent below the least that is promised, .925, for the noise of ROUNDS rounds."""


@dataclass
class Seen:
    """How often the truth was inside, per cell, and the narrowest interval."""

    inside: list[Floats] = field(default_factory=list)
    narrowest: float = math.inf
    refused: int = 0

    def add(self, low: Floats, high: Floats, truth: Floats, slack: float = 1e-9) -> Floats:
        self.narrowest = min(self.narrowest, float((high - low).min()))
        return np.asarray(((low <= truth + slack) & (truth <= high + slack)).astype(float)).ravel()


def covered(seen: Seen, draw: Callable[[], tuple[Floats, Floats, Floats]]) -> None:
    """The coverage of each cell over ROUNDS draws of (low, high, truth); refused ones left out."""
    hits = []
    for _ in range(ROUNDS):
        with suppress(NoBaseError):
            hits.append(seen.add(*draw()))
    seen.refused += ROUNDS - len(hits)
    if len(hits) >= ROUNDS / 2:
        seen.inside.append(np.mean(hits, axis=0))


RARE = np.array([[0.01, 0.01, 0.01], [0.01, 0.01, 0.01], [0.01, 0.01, 0.92]])
TABLES = (
    np.array([[0.01, 0.29], [0.3, 0.4]]),
    np.array([[0.3, 0.1, 0.1], [0.05, 0.25, 0.05], [0.0, 0.05, 0.1]]),
)

GROUPS = (
    # Shares of the strata among people, and of the answers in each.
    (np.array([0.5, 0.3, 0.2]), np.array([[0.02, 0.98], [0.1, 0.9], [0.4, 0.6]])),
    (np.array([0.7, 0.2, 0.1]), np.array([[0.0, 0.3, 0.7], [0.05, 0.6, 0.35], [0.5, 0.0, 0.5]])),
)


def settings() -> Iterator[tuple[float, int]]:
    for epsilon in EPSILONS:
        for n in SIZES:
            yield epsilon, n


def joint(
    table: Floats, epsilon: float, n: int, rng: Generator
) -> tuple[Floats, list[SubsetSelection]]:
    """A table of joint counts, and the channels of its questions."""
    channels = [from_epsilon(k, epsilon) for k in table.shape]
    reports = channels[0].matrix.T @ table @ channels[1].matrix
    return rng.multinomial(n, reports.ravel()).reshape(table.shape), channels


def crosstabs(rng: Generator, seen: Seen) -> None:
    for epsilon, n in settings():
        for table in TABLES:

            def draw(table=table, epsilon=epsilon, n=n):
                found = crosstab(*joint(table, epsilon, n, rng))
                return found.conf_low, found.conf_high, table

            covered(seen, draw)


def conditions(rng: Generator, seen: Seen) -> None:
    for table in TABLES:
        truth = (table / table.sum(axis=0))[:, [1]]

        def draw(table=table, truth=truth):
            found = conditional(crosstab(*joint(table, 2.0, 4_000, rng)), given=1, options=[1])
            return found.conf_low, found.conf_high, truth

        covered(seen, draw)


def margins(rng: Generator, seen: Seen) -> None:
    for epsilon, n in [*settings(), (8.0, 100)]:
        for table in [*TABLES, RARE]:
            known = [table.sum(axis=1), table.sum(axis=0)]

            def draw(table=table, known=known, epsilon=epsilon, n=n):
                found = reconciled_crosstab(*joint(table, epsilon, n, rng), known)
                return found.conf_low, found.conf_high, table

            covered(seen, draw)


def answering(rng: Generator, seen: Seen) -> None:
    for epsilon, n in settings():
        for shares in ([0.02, 0.78, 0.2], [0.3, 0.1, 0.3, 0.3]):
            channel, truth = from_epsilon(len(shares), epsilon), np.array(shares)

            def draw(channel=channel, truth=truth, n=n):
                counts = rng.multinomial(n, truth @ channel.matrix)
                found = answered_shares(counts, channel, [truth.size - 1])
                return found.conf_low, found.conf_high, truth[:-1] / truth[:-1].sum()

            covered(seen, draw)


def by_stratum(
    people: Floats, answers: Floats, sampled: Floats, epsilon: float, n: int, rng: Generator
):
    """Counts of each stratum (sampled by other shares than there are people), and the truth."""
    channel = from_epsilon(answers.shape[1], epsilon)
    sizes = rng.multinomial(n, sampled)
    counts = np.array(
        [rng.multinomial(m, a @ channel.matrix) for m, a in zip(sizes, answers, strict=True)]
    )
    return counts, channel, people @ answers


def weighted(rng: Generator, seen: Seen) -> None:
    for epsilon, n in settings():
        for people, answers in GROUPS:
            sampled = np.array([0.2, 0.3, 0.5])

            def draw(people=people, answers=answers, sampled=sampled, epsilon=epsilon, n=n):
                counts, channel, truth = by_stratum(people, answers, sampled, epsilon, n, rng)
                found = weighted_shares(counts, people / sampled, channel)
                return found.conf_low, found.conf_high, truth

            covered(seen, draw)


def post_stratified(rng: Generator, seen: Seen) -> None:
    for epsilon, n in settings():
        for people, answers in GROUPS:

            def draw(people=people, answers=answers, epsilon=epsilon, n=n):
                counts, channel, truth = by_stratum(people, answers, people, epsilon, n, rng)
                found = poststratified(counts, people, channel)
                return found.conf_low, found.conf_high, truth

            covered(seen, draw)


def raked_cells(rng: Generator, seen: Seen) -> None:
    people = np.array([[0.35, 0.15], [0.2, 0.3]])
    for epsilon, n in settings():
        answers = np.array([[0.02, 0.98], [0.1, 0.9], [0.3, 0.7], [0.05, 0.95]])

        def draw(answers=answers, epsilon=epsilon, n=n):
            counts, channel, truth = by_stratum(
                people.ravel(), answers, people.ravel(), epsilon, n, rng
            )
            known = [people.sum(axis=1), people.sum(axis=0)]
            found = raked(counts.reshape(2, 2, -1), known, channel)
            return found.conf_low, found.conf_high, truth

        covered(seen, draw)


def bits(rng: Generator, seen: Seen) -> None:
    truths = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    for T, n in ((3, 200), (3, 1_000), (20, 200), (20, 1_000)):
        for shares in ([0.5, 0.2, 0.2, 0.1], [0.9, 0.07, 0.02, 0.01]):
            channel = BitVector(m=2, s=2, T=T, L=1)

            def draw(channel=channel, shares=shares, n=n):
                ticks = truths[rng.choice(4, n, p=shares)]
                flipped = rng.random(ticks.shape) >= channel.p
                counts = count_bit_pairs(ticks ^ flipped, channel, [(0, 1)])
                found = bit_pairs(counts, channel, [(0, 1)], n=n)
                return found.conf_low, found.conf_high, np.array([shares[3]])

            covered(seen, draw)


PATTERNS = ((), (0,), (1,), (0, 1))


def patterns(rng: Generator, seen: Seen) -> None:
    for epsilon, n in settings():
        channel, shares = from_epsilon(4, epsilon), np.array([0.6, 0.25, 0.13, 0.02])

        def draw(channel=channel, shares=shares, n=n):
            counts = rng.multinomial(n, shares @ channel.matrix)
            pair = option_pairs(counts, channel, PATTERNS, 2)
            each = subset_shares(counts, channel, PATTERNS, 2)
            return (
                np.append(pair.conf_low, each.conf_low),
                np.append(pair.conf_high, each.conf_high),
                np.array([shares[3], shares[1] + shares[3], shares[2] + shares[3]]),
            )

        covered(seen, draw)


def trees(rng: Generator, seen: Seen) -> None:
    parents, leaves = [-1, 0, 0, 1, 1, 2, 2], np.array([300.0, 100, 200, 400])
    member = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4)])
    people = member @ leaves
    for epsilon, n in settings():
        for answers in ([[0.02, 0.98]], [[0.0, 0.3, 0.7], [0.3, 0.1, 0.6]]):
            own = np.resize(answers, (4, len(answers[0])))
            truth = member @ (leaves[:, None] * own) / people[:, None]
            channel = from_epsilon(truth.shape[1], epsilon)

            def draw(truth=truth, channel=channel, n=n):
                counts = rng.multinomial(n, truth @ channel.matrix)
                found = consistent_proportions(counts, channel, parents, people)
                return found.conf_low, found.conf_high, truth

            covered(seen, draw)


def finite(rng: Generator, seen: Seen) -> None:
    for epsilon, n in settings():
        for carriers in (0.01, 0.3):
            channel, population = from_epsilon(2, epsilon), 2 * n
            has = int(carriers * population)

            def draw(channel=channel, population=population, has=has, n=n):
                drawn = rng.hypergeometric(has, population - has, n)
                yes = rng.binomial(drawn, channel.p) + rng.binomial(n - drawn, channel.q)
                found = finite_shares([yes, n - yes], channel, population)
                return found.conf_low[:1], found.conf_high[:1], np.array([has / population])

            covered(seen, draw)


def by_hand(rng: Generator, seen: Seen) -> None:
    p = (0.2, 0.8)
    for n in SIZES:
        for carriers, honest in ((0.3, 0.9), (0.1, 0.5), (0.5, 1.0)):

            def draw(carriers=carriers, honest=honest, n=n):
                chances = [carriers * honest + (1 - carriers) * (1 - each) for each in p]
                found = lie_detector(rng.binomial(n, chances), [n, n], p)
                return found.conf_low[:1], found.conf_high[:1], np.array([carriers])

            covered(seen, draw)


PARTS: dict[str, Callable[[Generator, Seen], None]] = {
    "crosstab": crosstabs,
    "conditional": conditions,
    "reconciled_crosstab": margins,
    "answered_shares": answering,
    "weighted_shares": weighted,
    "poststratified": post_stratified,
    "raked": raked_cells,
    "bit_pairs": bits,
    "option_pairs, subset_shares": patterns,
    "consistent_proportions": trees,
    "finite_shares": finite,
    "lie_detector": by_hand,
}


def main(parts: Sequence[str]) -> None:
    print(f"{'':<28}{'cells':>6}{'least':>8}{'target':>8}{'ratio':>7}{'mean':>8}{'target':>8}"
          f"{'narrowest':>11}{'refused':>9}{'seconds':>9}")  # fmt: skip
    for name, part in PARTS.items():
        if parts and name not in parts:
            continue
        seen, start = Seen(), perf_counter()
        part(np.random.default_rng(20), seen)
        cells = np.concatenate(seen.inside)
        reached = "yes" if cells.min() >= LEAST and cells.mean() >= MEAN else "MISSED"
        print(
            f"{name:<28}{cells.size:>6}{cells.min():>8.3f}{LEAST:>8}{cells.min() / LEAST:>7.3f}"
            f"{cells.mean():>8.4f}{MEAN:>8}{seen.narrowest:>11.5f}{seen.refused:>9}"
            f"{perf_counter() - start:>9.1f}  {reached}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
