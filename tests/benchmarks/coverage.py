"""Coverage of every interval, efficiency of estimates: `python -m tests.benchmarks.coverage`.

Its parts also one by one: `shares`, `together`, `linear`, `differences` behind the command.

Up to n = 200 by exact enumeration: the least coverage over every share from 0 to 1, not a grid of
them. Widths are exact too, means over 101 shares, over n = 50, 200 and 1,000 and shown for each n:
at n = 10 every interval that keeps its promise is wider. Above by seeded simulation of whole
questions at shares 0, .01, .1, .5 (also with all other options but one truly 0), at sizes that hold
n min(q, 1-p) = 200. Feldman-Cousins is computed exactly at every n here: nothing hands over, and
that size is on the grid to show it. Then the mean squared error of the linear estimate over the
Cramér-Rao bound, from the inverse of the Fisher information. Last, differences of two groups by
exact enumeration, at every pair of 41 shares, corners included.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from survey.estimator import debias, proportions
from survey.estimator.core.intervals import (
    DEFAULT_INTERVAL,
    INTERVALS,
    SIMULTANEOUS_DEFAULT,
    confidence_interval,
)
from survey.estimator.tables.difference import DEFAULT_DIFFERENCE, DIFFERENCE_INTERVALS
from survey.mechanism import SubsetSelection, from_epsilon
from tests.estimator.difference_enumeration import enumerated_difference
from tests.estimator.enumeration import Ends, all_ends, exact_coverage, mean_width

Floats = NDArray[np.float64]

OPTIONS = (2, 4, 10)
EPSILONS = (0.5, 1.0, math.log(3), 2.0, 4.0)
SHARES = (0.0, 0.01, 0.1, 0.5)
FINE = np.linspace(0, 1, 101)

ENUMERATED = (10, 50, 200)
WIDTHS = (10, 50, 200, 1000)
AVERAGED = (50, 200, 1000)
SIMULATED = (1000, 20_000)
HANDED_OVER_ELSEWHERE = 200
ROUNDS = 20_000
EFFICIENCY_ROUNDS = 40_000
EFFICIENCY_N = 1000

LEAST_COVERAGE = 0.945
LARGEST_WIDTH = 1.02
LEAST_TOGETHER = 0.93
EFFICIENCY = (0.98, 1.02)

DIFFERENCE_SIZES = ((20, 20), (50, 50), (100, 100), (50, 200), (200, 200))
DIFFERENCE_SHARES = np.linspace(0, 1, 41)
DIFFERENCE_LEAST_N = 50
LEAST_DIFFERENCE_COVERAGE = 0.942
LARGEST_DIFFERENCE_WIDTH = 1.06

FOR_THE_POPULATION = [name for name in INTERVALS if name != "fixed-population"]
"""The other one covers these respondents' share, which is another question."""


def channels() -> Iterator[tuple[int, float, SubsetSelection]]:
    for k in OPTIONS:
        for epsilon in EPSILONS:
            yield k, epsilon, from_epsilon(k, epsilon)


def share_vectors(k: int) -> Iterator[Floats]:
    """The first option has the share of the grid; the others share the rest, or one has it all."""
    for share in SHARES:
        yield np.array([share, *[(1 - share) / (k - 1)] * (k - 1)])
        if k > 2:
            yield np.array([share, 1 - share, *[0.0] * (k - 2)])


def verdict(value: float, target: float, *, at_least: bool) -> str:
    reached = value >= target if at_least else value <= target
    return f"{value:>9.4f}{target:>9.3f}{value / target:>8.3f}  {'yes' if reached else 'MISSED'}"


def enumerated() -> dict[str, dict[str, float]]:
    """Least coverage, widths over Wilson's for each n, worst chance of a zero width."""
    cells: dict[str, dict[str, list[float]]] = {name: {} for name in FOR_THE_POPULATION}
    for n in WIDTHS:
        for _, _, channel in channels():
            wilson = mean_width(all_ends(n, channel, "wilson"), FINE)
            for name, seen in cells.items():
                ends = all_ends(n, channel, name)
                seen.setdefault(f"width {n}", []).append(mean_width(ends, FINE) / wilson)
                seen.setdefault("zero", []).append(zero_width(ends))
                if n in ENUMERATED:
                    seen.setdefault("least", []).append(float(exact_coverage(ends).min()))
    return {name: summary(seen) for name, seen in cells.items()}


def summary(seen: dict[str, list[float]]) -> dict[str, float]:
    widths = {f"width {n}": float(np.mean(seen[f"width {n}"])) for n in WIDTHS}
    averaged = float(np.mean([widths[f"width {n}"] for n in AVERAGED]))
    return {"least": min(seen["least"]), "zero": max(seen["zero"]), "width": averaged, **widths}


def zero_width(ends: Ends) -> float:
    """The largest chance, over true shares, that the interval has no width."""
    flat = Ends(np.zeros(ends.n + 1), (ends.width <= 0).astype(float), ends.n, ends.channel)
    return max(mean_width(flat, np.array([share])) for share in FINE)


def sizes(channel: SubsetSelection) -> list[int]:
    return [*SIMULATED, math.ceil(HANDED_OVER_ELSEWHERE / min(channel.q, 1 - channel.p))]


def simulated() -> dict[str, float]:
    """The least coverage of the first option's interval; equal counts are computed once."""
    least = dict.fromkeys(FOR_THE_POPULATION, 1.0)
    for k, epsilon, channel in channels():
        for n in sizes(channel):
            for place, pi in enumerate(share_vectors(k)):
                rng = np.random.default_rng([k, round(100 * epsilon), n, place])
                counts = rng.multinomial(n, pi @ channel.matrix, size=ROUNDS)[:, 0]
                different, often = np.unique(counts, return_counts=True)
                for name in FOR_THE_POPULATION:
                    low, high = confidence_interval(different, n, channel, 0.95, name)
                    hit = often[(low <= pi[0]) & (pi[0] <= high)].sum() / ROUNDS
                    least[name] = min(least[name], float(hit))
    return least


def together() -> float:
    """Least coverage of all intervals of a question at once, `simultaneous=True`, n = 200."""
    least, rounds = 1.0, 400
    for k, epsilon, channel in channels():
        for place, pi in enumerate(share_vectors(k)):
            rng = np.random.default_rng([k, round(100 * epsilon), place])
            hits = 0
            for counts in rng.multinomial(200, pi @ channel.matrix, size=rounds):
                found = proportions(counts, channel, simultaneous=True)
                hits += bool(np.all((found.conf_low <= pi) & (pi <= found.conf_high)))
            least = min(least, hits / rounds)
    return least


def efficiency() -> tuple[float, float]:
    """Least and largest mean squared error of the linear estimate over the Cramér-Rao bound."""
    ratios = []
    for k, epsilon, channel in channels():
        for place, pi in enumerate(share_vectors(k)):
            rng = np.random.default_rng([k, round(100 * epsilon), place])
            counts = rng.multinomial(EFFICIENCY_N, pi @ channel.matrix, size=EFFICIENCY_ROUNDS)
            estimates = debias(counts / EFFICIENCY_N, channel)
            squared = float(((estimates - pi) ** 2).sum(axis=1).mean())
            ratios.append(squared / cramer_rao(channel, pi, EFFICIENCY_N))
    return min(ratios), max(ratios)


def cramer_rao(channel: SubsetSelection, pi: Floats, n: int) -> float:
    """Trace of the inverse Fisher information of n reports, for shares that add up to one.

    I = n P diag(1/lambda) P'; with shares free in k - 1 directions B: tr B (B' I B)^-1 B'.
    """
    P = channel.matrix
    information = n * P @ np.diag(1 / (pi @ P)) @ P.T
    B = np.linalg.svd(np.ones((1, channel.k)))[2][1:].T
    return float(np.trace(B @ np.linalg.inv(B.T @ information @ B) @ B.T))


def compared() -> Iterator[tuple[SubsetSelection, SubsetSelection | None]]:
    """Pairs of groups: one channel, two different ones, and one beside open answers."""
    each = [from_epsilon(k, epsilon) for k in (2, 4) for epsilon in (0.5, 1.0, 2.0, 4.0)]
    for place, channel in enumerate(each):
        yield from ((channel, other) for other in each[place:])
        yield channel, None


def differences() -> None:
    """Print least coverage and width by size, and what of it has a target."""
    print(f"\n{'difference':<16}{'sizes':>12}{'least coverage':>16}{'width / MOVER':>15}")
    least, widths = [], []
    for n in DIFFERENCE_SIZES:
        cells = {
            name: [enumerated_difference(n, pair, name, DIFFERENCE_SHARES) for pair in compared()]
            for name in DIFFERENCE_INTERVALS
        }
        mover = np.mean([each.width.mean() for each in cells["mover-wilson"]])
        for name, found in cells.items():
            low = min(float(each.coverage.min()) for each in found)
            width = float(np.mean([each.width.mean() for each in found]) / mover)
            print(f"{name:<16}{n!s:>12}{low:>16.4f}{width:>15.4f}")
            if name == DEFAULT_DIFFERENCE and min(n) >= DIFFERENCE_LEAST_N:
                least.append(low)
                widths.append(width)
    label = f"difference, {DEFAULT_DIFFERENCE}: least coverage, n from 50"
    print(f"{label:<58}{verdict(min(least), LEAST_DIFFERENCE_COVERAGE, at_least=True)}")
    label = f"difference, {DEFAULT_DIFFERENCE}: largest mean width over MOVER's"
    print(f"{label:<58}{verdict(max(widths), LARGEST_DIFFERENCE_WIDTH, at_least=False)}")


def shares() -> None:
    """Print coverage and width of every interval for shares, and what of it has a target."""
    rows, above = enumerated(), simulated()
    print(
        f"\n{'':<18}{'least':>9}{'width':>9}{'':<4}{'at n =':<32}{'chance of':>10}{'simulated':>11}"
    )
    heads = "".join(f"{n:>9,}" for n in WIDTHS)
    print(f"{'method':<18}{'coverage':>9}{'/ Wilson':>9}{heads}{'no width':>10}{'least':>11}")
    for name, row in rows.items():
        by_n = "".join(f"{row[f'width {n}']:>9.4f}" for n in WIDTHS)
        print(
            f"{name:<18}{row['least']:>9.4f}{row['width']:>9.4f}{by_n}"
            f"{row['zero']:>10.4f}{above[name]:>11.4f}"
        )
    error = math.sqrt(0.05 * 0.95 / ROUNDS)
    print(
        f"(width: over Wilson's; simulated: {ROUNDS:,} rounds per cell, standard error {error:.4f})"
    )
    chosen, simulated_least = rows[DEFAULT_INTERVAL], above[DEFAULT_INTERVAL]
    print(TARGETS)
    for label, value, target, at_least in (
        ("default: least coverage, exact", chosen["least"], LEAST_COVERAGE, True),
        ("default: least coverage, simulated", simulated_least, LEAST_COVERAGE, True),
        ("default: mean width over Wilson's", chosen["width"], LARGEST_WIDTH, False),
    ):
        print(f"{label:<58}{verdict(value, target, at_least=at_least)}")
    flat = "yes" if chosen["zero"] == 0 else "MISSED"
    print(f"{'default: chance of a zero width':<58}{chosen['zero']:>9.4f}{0:>9}{'':>8}  {flat}")


def all_at_once() -> None:
    """Print the least coverage of simultaneous intervals."""
    label = f"all at once, {SIMULTANEOUS_DEFAULT}: least coverage"
    print(TARGETS)
    print(f"{label:<58}{verdict(together(), LEAST_TOGETHER, at_least=True)}")


def linear() -> None:
    """Print the efficiency of the linear estimate."""
    least, most = efficiency()
    print(TARGETS)
    print(f"{'linear MSE / Cramér-Rao: least':<58}{verdict(least, EFFICIENCY[0], at_least=True)}")
    print(f"{'linear MSE / Cramér-Rao: largest':<58}{verdict(most, EFFICIENCY[1], at_least=False)}")


TARGETS = f"\n{'target':<58}{'figure':>9}{'target':>9}{'ratio':>8}  reached"
PARTS = {"shares": shares, "together": all_at_once, "linear": linear, "differences": differences}


def main(parts: Sequence[str]) -> None:
    if unknown := [part for part in parts if part not in PARTS]:
        sys.exit(f"no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    print(f"k {OPTIONS}, epsilon {[round(e, 3) for e in EPSILONS]}, level .95")
    for part in parts or PARTS:
        started = perf_counter()
        PARTS[part]()
        print(f"({part}: {perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
