"""Measure the coverage of all intervals of shares and the efficiency of the linear estimate.

    python -m tests.benchmarks.coverage [--short] [shares] [together] [linear] [differences]

Without arguments, the command runs all four parts.

`shares`: for n up to 200, exact enumeration gives the minimum coverage over the whole range of
shares from 0 to 1, without a grid. Widths are exact means over 101 shares; the summary averages
n = 50, 200 and 1,000 and leaves out n = 10, where all intervals with nominal coverage are wider.
For larger n, a seeded simulation covers whole questions at shares 0, .01, .1 and .5, also with all
options but two at share 0. Its sizes include n min(q, 1-p) = 200, where other implementations of
Feldman-Cousins switch to an approximation; this one is exact at every n.
`together`: simultaneous coverage of all intervals of a question.
`linear`: mean squared error of the linear estimate over the Cramér-Rao bound, which is the inverse
of the Fisher information.
`differences`: exact enumeration for two groups, at every pair of 41 shares, corners included.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from time import perf_counter

import numpy as np

from survey.estimator import debias, proportions
from survey.estimator.core.intervals import (
    DEFAULT_INTERVAL,
    INTERVALS,
    confidence_interval,
)
from survey.estimator.tables.difference import DEFAULT_DIFFERENCE, DIFFERENCE_INTERVALS
from survey.mechanism import SubsetSelection, from_epsilon
from survey.mechanism.channel import Floats
from tests.benchmarks.short import benchmark_parser, reduced, require_range
from tests.estimator.difference_enumeration import enumerated_difference
from tests.estimator.enumeration import Ends, all_ends, exact_coverage, mean_width

OPTIONS = (2, 4, 10)
EPSILONS = (0.5, 1.0, math.log(3), 2.0, 4.0)
SHARES = (0.0, 0.01, 0.1, 0.5)
SHARE_GRID = np.linspace(0, 1, 101)

ENUMERATED = (10, 50, 200)
WIDTHS = (10, 50, 200, 1000)
AVERAGED = (50, 200, 1000)
SIMULATED = (1000, 20_000)
EXPECTED_COUNT = 200
ROUNDS = 20_000
EFFICIENCY_ROUNDS = 40_000
EFFICIENCY_N = 1000

MIN_COVERAGE = 0.945
MAX_WIDTH_RATIO = 1.02
MIN_SIMULTANEOUS_COVERAGE = 0.93
EFFICIENCY = (0.98, 1.02)

SIMULTANEOUS_ROUNDS = 400

DIFFERENCE_SIZES = ((20, 20), (50, 50), (100, 100), (50, 200), (200, 200))
DIFFERENCE_SHARES = np.linspace(0, 1, 41)
DIFFERENCE_EPSILONS = (0.5, 1.0, 2.0, 4.0)
DIFFERENCE_MIN_N = 50
MIN_DIFFERENCE_COVERAGE = 0.945
MAX_DIFFERENCE_WIDTH_RATIO = 1.06

SHORT = {
    "OPTIONS": (2, 4),
    "EPSILONS": (1.0,),
    "SHARES": (0.1,),
    "ENUMERATED": (50,),
    "WIDTHS": (50,),
    "AVERAGED": (50,),
    "SIMULATED": (1000,),
    "ROUNDS": 4_000,
    "SIMULTANEOUS_ROUNDS": 100,
    "EFFICIENCY_ROUNDS": 4_000,
    "DIFFERENCE_SIZES": ((50, 50),),
    "DIFFERENCE_EPSILONS": (1.0,),
    "DIFFERENCE_SHARES": np.linspace(0, 1, 11),
}
PLAUSIBLE = (0.9, 1.2)
"""Plausible ratios of a figure to its target; a ratio outside means a faulty benchmark."""

POPULATION_METHODS = [name for name in INTERVALS if name != "fixed-population"]
"""Fixed-population intervals estimate a different quantity: the share of these respondents."""


def channels() -> Iterator[tuple[int, float, SubsetSelection]]:
    for k in OPTIONS:
        for epsilon in EPSILONS:
            yield k, epsilon, from_epsilon(k, epsilon)


def share_vectors(k: int) -> Iterator[Floats]:
    """Yield shares whose first option is on the grid; one or all others share the remainder."""
    for share in SHARES:
        yield np.array([share, *[(1 - share) / (k - 1)] * (k - 1)])
        if k > 2:
            yield np.array([share, 1 - share, *[0.0] * (k - 2)])


def verdict(value: float, target: float, *, at_least: bool) -> str:
    require_range("ratio to the target", value / target, *PLAUSIBLE)
    is_met = value >= target if at_least else value <= target
    return f"{value:>9.4f}{target:>9.3f}{value / target:>8.3f}  {'yes' if is_met else 'MISSED'}"


def exact_figures() -> dict[str, dict[str, float]]:
    """Return minimum coverage, widths over Wilson's and the worst zero-width probability."""
    cells: dict[str, dict[str, list[float]]] = {name: {} for name in POPULATION_METHODS}
    for n in WIDTHS:
        for _, _, channel in channels():
            wilson = mean_width(all_ends(n, channel, "wilson"), SHARE_GRID)
            for name, figures in cells.items():
                ends = all_ends(n, channel, name)
                figures.setdefault(f"width {n}", []).append(mean_width(ends, SHARE_GRID) / wilson)
                figures.setdefault("zero", []).append(zero_width(ends))
                if n in ENUMERATED:
                    figures.setdefault("minimum", []).append(float(exact_coverage(ends).min()))
    return {name: summary(figures) for name, figures in cells.items()}


def summary(figures: dict[str, list[float]]) -> dict[str, float]:
    widths = {f"width {n}": float(np.mean(figures[f"width {n}"])) for n in WIDTHS}
    averaged = float(np.mean([widths[f"width {n}"] for n in AVERAGED]))
    return {
        "minimum": min(figures["minimum"]),
        "zero": max(figures["zero"]),
        "width": averaged,
        **widths,
    }


def zero_width(ends: Ends) -> float:
    """Return the largest probability, over true shares, that the interval has no width."""
    flat = Ends(np.zeros(ends.n + 1), (ends.width <= 0).astype(float), ends.n, ends.channel)
    return max(mean_width(flat, np.array([share])) for share in SHARE_GRID)


def sizes(channel: SubsetSelection) -> list[int]:
    return [*SIMULATED, math.ceil(EXPECTED_COUNT / min(channel.q, 1 - channel.p))]


def simulated_coverage() -> dict[str, float]:
    """Return the minimum coverage of the first option's interval for each method."""
    minima = dict.fromkeys(POPULATION_METHODS, 1.0)
    for k, epsilon, channel in channels():
        for n in sizes(channel):
            for place, pi in enumerate(share_vectors(k)):
                rng = np.random.default_rng([k, round(100 * epsilon), n, place])
                counts = rng.multinomial(n, pi @ channel.matrix, size=ROUNDS)[:, 0]
                distinct, frequencies = np.unique(counts, return_counts=True)
                for name in POPULATION_METHODS:
                    low, high = confidence_interval(distinct, n, channel, 0.95, name)
                    hit = frequencies[(low <= pi[0]) & (pi[0] <= high)].sum() / ROUNDS
                    minima[name] = min(minima[name], float(hit))
    return minima


def simultaneous_coverage() -> float:
    """Return the minimum coverage of all intervals of a question at once, for n = 200."""
    minimum = 1.0
    for k, epsilon, channel in channels():
        for place, pi in enumerate(share_vectors(k)):
            rng = np.random.default_rng([k, round(100 * epsilon), place])
            hits = 0
            for counts in rng.multinomial(200, pi @ channel.matrix, size=SIMULTANEOUS_ROUNDS):
                estimate = proportions(counts, channel, simultaneous=True)
                hits += bool(np.all((estimate.conf_low <= pi) & (pi <= estimate.conf_high)))
            minimum = min(minimum, hits / SIMULTANEOUS_ROUNDS)
    return minimum


def efficiency() -> tuple[float, float]:
    """Return the minimum and maximum of the linear estimate's MSE over the Cramér-Rao bound."""
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
    """Return the trace of the inverse Fisher information of n reports; shares add up to 1.

    I = n P diag(1/lambda) P'; with shares free in k - 1 directions B: tr B (B' I B)^-1 B'.
    """
    P = channel.matrix
    information = n * P @ np.diag(1 / (pi @ P)) @ P.T
    B = np.linalg.svd(np.ones((1, channel.k)))[2][1:].T
    return float(np.trace(B @ np.linalg.inv(B.T @ information @ B) @ B.T))


def channel_pairs() -> Iterator[tuple[SubsetSelection, SubsetSelection | None]]:
    """Yield pairs of groups' channels: equal, different, and one without randomization (None)."""
    channels = [from_epsilon(k, epsilon) for k in (2, 4) for epsilon in DIFFERENCE_EPSILONS]
    for place, channel in enumerate(channels):
        yield from ((channel, second) for second in channels[place:])
        yield channel, None


def differences() -> None:
    """Print minimum coverage and width by size, and compare them with the targets."""
    print(f"\n{'difference':<16}{'sizes':>12}{'minimum coverage':>17}{'width / MOVER':>15}")
    minima, widths = [], []
    for n in DIFFERENCE_SIZES:
        cells = {
            name: [
                enumerated_difference(n, pair, name, DIFFERENCE_SHARES) for pair in channel_pairs()
            ]
            for name in DIFFERENCE_INTERVALS
        }
        mover = np.mean([cell.width.mean() for cell in cells["mover-wilson"]])
        for name, row in cells.items():
            minimum = min(float(cell.coverage.min()) for cell in row)
            width = float(np.mean([cell.width.mean() for cell in row]) / mover)
            print(f"{name:<16}{n!s:>12}{minimum:>17.4f}{width:>15.4f}")
            if name == DEFAULT_DIFFERENCE and min(n) >= DIFFERENCE_MIN_N:
                minima.append(minimum)
                widths.append(width)
    label = f"difference, {DEFAULT_DIFFERENCE}: minimum coverage, n from 50"
    print(f"{label:<58}{verdict(min(minima), MIN_DIFFERENCE_COVERAGE, at_least=True)}")
    label = f"difference, {DEFAULT_DIFFERENCE}: maximum mean width over MOVER's"
    print(f"{label:<58}{verdict(max(widths), MAX_DIFFERENCE_WIDTH_RATIO, at_least=False)}")


def shares() -> None:
    """Print coverage and width of all intervals of shares, and compare them with the targets."""
    rows, simulated = exact_figures(), simulated_coverage()
    print(
        f"\n{'':<18}{'minimum':>9}{'width':>9}{'':<4}{'at n =':<31}"
        f"{'probability':>11}{'simulated':>11}"
    )
    heads = "".join(f"{n:>9,}" for n in WIDTHS)
    print(f"{'method':<18}{'coverage':>9}{'/ Wilson':>9}{heads}{'no width':>10}{'minimum':>11}")
    for name, row in rows.items():
        by_n = "".join(f"{row[f'width {n}']:>9.4f}" for n in WIDTHS)
        print(
            f"{name:<18}{row['minimum']:>9.4f}{row['width']:>9.4f}{by_n}"
            f"{row['zero']:>10.4f}{simulated[name]:>11.4f}"
        )
    error = math.sqrt(0.05 * 0.95 / ROUNDS)
    print(
        f"(width: over Wilson's; simulated: {ROUNDS:,} rounds per cell, standard error {error:.4f})"
    )
    default, simulated_minimum = rows[DEFAULT_INTERVAL], simulated[DEFAULT_INTERVAL]
    print(TARGETS)
    for label, value, target, at_least in (
        ("default: minimum coverage, exact", default["minimum"], MIN_COVERAGE, True),
        ("default: minimum coverage, simulated", simulated_minimum, MIN_COVERAGE, True),
        ("default: mean width over Wilson's", default["width"], MAX_WIDTH_RATIO, False),
    ):
        print(f"{label:<58}{verdict(value, target, at_least=at_least)}")
    status = "yes" if default["zero"] == 0 else "MISSED"
    print(
        f"{'default: probability of zero width':<58}{default['zero']:>9.4f}{0:>9}{'':>8}  {status}"
    )


def simultaneous() -> None:
    """Print the minimum coverage of simultaneous intervals."""
    label = f"simultaneous, {DEFAULT_INTERVAL}: minimum coverage"
    print(TARGETS)
    print(
        f"{label:<58}{verdict(simultaneous_coverage(), MIN_SIMULTANEOUS_COVERAGE, at_least=True)}"
    )


def linear() -> None:
    """Print the efficiency of the linear estimate."""
    minimum, maximum = efficiency()
    print(TARGETS)
    print(
        f"{'linear MSE / Cramér-Rao: minimum':<58}{verdict(minimum, EFFICIENCY[0], at_least=True)}"
    )
    print(
        f"{'linear MSE / Cramér-Rao: maximum':<58}{verdict(maximum, EFFICIENCY[1], at_least=False)}"
    )


TARGETS = f"\n{'target':<58}{'figure':>9}{'target':>9}{'ratio':>8}  reached"
PARTS = {"shares": shares, "together": simultaneous, "linear": linear, "differences": differences}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        measure(options.parts)


def measure(parts: Sequence[str]) -> None:
    """Run the given parts, or all parts."""
    if unknown := [part for part in parts if part not in PARTS]:
        sys.exit(f"Unknown part: {', '.join(unknown)}. The parts are {', '.join(PARTS)}.")
    print(f"k {OPTIONS}, epsilon {[round(e, 3) for e in EPSILONS]}, level .95")
    for part in parts or PARTS:
        start = perf_counter()
        PARTS[part]()
        print(f"({part}: {perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
