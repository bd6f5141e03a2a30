"""Simulate coverage and width of intervals of distributions, and the error of shown shares.

    python -m tests.benchmarks.distribution [--full | --short]

For each channel, the output gives the minimum coverage over distributions and sample sizes of the
intervals of cells, cumulative shares and quantiles. A search with few rounds finds the two worst
intervals of each kind, and many new rounds measure them again, because the minimum of hundreds of
noisy figures is low by chance alone. `--full` takes more rounds: an hour instead of minutes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from survey.estimator.core.fieller import PseudoRatios
from survey.estimator.numbers.distribution import METHODS, Share, grid_shares, set_ratios
from survey.estimator.numbers.quantiles import Curve
from survey.mechanism import WeightTable, from_epsilon
from survey.mechanism.channel import Booleans, Floats, Integers
from survey.mechanism.numeric import gaussian, geometric, hybrid, laplace, piecewise, square_wave
from survey.mechanism.randomized_response import exponential
from tests.benchmarks.short import benchmark_parser, reduced, require_range

Hit = tuple[bool, float]

MIN_COVERAGE = 0.94
LEVEL = 0.95
CELLS = 4
SIZES = (200, 1000, 10_000)
SHARES = (0.25, 0.5, 0.9)
ROUNDING = 1e-9
N_WORST = 2
"""Number of intervals of each kind that are measured again."""

BATCH = 2000
"""Number of surveys simulated together."""

CHANNELS = {
    "square wave, 51 points, epsilon 1": square_wave(51, 1),
    "square wave, 51 points, epsilon 3": square_wave(51, 3),
    "square wave, 21 points, epsilon 1, with no answers": square_wave(21, 1, 1),
    "piecewise, 51 points, epsilon 2": piecewise(51, 2),
    "hybrid, 21 points, epsilon 2, with no answers": hybrid(21, 2, 2),
    "geometric, 11 points, epsilon 4": geometric(11, 4),
    "Laplace, 21 points, epsilon 4": laplace(21, 4),
    "Gaussian, 11 points, sigma 3": gaussian(11, 3),
    "exponential, 7 options, epsilon 2": exponential(
        [[-abs(i - j) for j in range(7)] for i in range(7)], 2
    ),
    "generalized randomized response, 7 options, epsilon 1": from_epsilon(7, 1),
}

SHORT = {
    "CHANNELS": {name: CHANNELS[name] for name in ("geometric, 11 points, epsilon 4",)},
    "SIZES": (200,),
    "BATCH": 50,
}
LEAST_PLAUSIBLE = 0.8
"""A coverage below this means a fault, even in a short run, which simulates 50 surveys."""


def shapes(points: int) -> dict[str, Floats]:
    """Return distributions of answers; the last four have shares at or near 0."""
    x = np.arange(points) / (points - 1)
    unit = np.eye(points)
    weights = {
        "uniform": np.ones(points),
        "bell": np.exp(-(((x - 0.35) / 0.12) ** 2) / 2),
        "edge": np.exp(-10 * x),
        "two humps": np.exp(-(((x - 0.2) / 0.07) ** 2) / 2)
        + np.exp(-(((x - 0.8) / 0.07) ** 2) / 2) / 2,
        "one value": unit[points // 4],
        "two values": unit[points // 10] + unit[3 * points // 5],
        "both ends": 9 * unit[0] + unit[-1],
        "a spike on a plain": unit[points // 3] + 1 / points,
    }
    return {name: shares / shares.sum() for name, shares in weights.items()}


def sizes(channel: object) -> tuple[int, int, Floats]:
    """Return the numbers of points and of truths without an answer, and P(report | truth)."""
    if isinstance(channel, WeightTable):
        return channel.truths - channel.no_answers, channel.no_answers, channel.matrix
    return channel.k, 0, channel.matrix


def draws(channel: object, shares: Floats, n: int, rounds: int, seed: int) -> Iterator[Floats]:
    """Yield counts of reports; a fifth of the respondents gives no answer if the channel allows."""
    _, n_silent, P = sizes(channel)
    truth = np.append(
        shares * (0.8 if n_silent else 1.0), np.full(n_silent, 0.2 / max(n_silent, 1))
    )
    yield from np.random.default_rng(seed).multinomial(n, truth @ P, size=rounds)


def covers(low: float, high: float, truth: float) -> Hit:
    return bool(low - ROUNDING <= truth <= high + ROUNDING), high - low


def truths(channel: object) -> Floats:
    """Return the numbers 0, 1, 2, ... and nan for truths without an answer."""
    points, n_silent, _ = sizes(channel)
    return np.append(np.arange(float(points)), np.full(n_silent, np.nan))


def cells(points: int) -> list[Booleans]:
    x, edges = np.arange(points), np.linspace(0, points - 1, CELLS + 1)
    return [(x >= a) & ((x < b) | (b == edges[-1])) for a, b in itertools.pairwise(edges)]


def below(points: int) -> list[Booleans]:
    return [np.arange(points) <= place for place in range(points - 1)]


class Intervals(NamedTuple):
    """Intervals of sets in simulated surveys, shape (sets, surveys), in [-1, 1], and errors."""

    low: Floats
    high: Floats
    std_error: Floats

    def by_survey(self) -> list[list[Share]]:
        """Return the shares of all sets in each survey."""
        columns = np.stack(
            [np.zeros_like(self.low), self.std_error / 2, (1 + self.low) / 2, (1 + self.high) / 2]
        )
        return [[Share._make(row) for row in rows] for rows in columns.transpose(2, 1, 0).tolist()]


def simulated_intervals(ratios: PseudoRatios, counts: Integers, level: float = LEVEL) -> Intervals:
    intervals = ratios.intervals(counts, level)
    return Intervals(intervals.low, intervals.high, intervals.std_error)


def hits(intervals: Intervals, truth: Floats) -> Floats:
    """Return whether each interval covers its truth, and its width: shape (sets, surveys, 2)."""
    true = truth[:, None]
    is_hit = (intervals.low - ROUNDING <= true) & (true <= intervals.high + ROUNDING)
    return np.stack([is_hit, (intervals.high - intervals.low) / 2], axis=-1)


class QuantileIntervals:
    """All intervals that quantiles of simulated surveys are read from.

    `two_sided` is the baseline: intervals whose ends have half the error throughout.
    """

    def __init__(self, channel: object, values: Floats, counts: Integers) -> None:
        points, n = int((~np.isnan(values)).sum()), int(counts[0].sum())
        below_ = set_ratios(channel, values, below(points), n)
        single = [np.arange(points) == place for place in range(points)]
        self.last = points - 1
        self.curve = simulated_intervals(below_, counts).by_survey()
        self.one_sided = simulated_intervals(below_, counts, 2 * LEVEL - 1).by_survey()
        self.value_shares = simulated_intervals(
            set_ratios(channel, values, single, n), counts
        ).by_survey()

    def hits(self, share: float, shares: Floats, *, two_sided: bool = False) -> Floats:
        """Return whether each survey's interval covers the quantile, and its width over the range.

        Shape (surveys, 2). Results widen an interval that excludes the displayed quantile.
        """
        true = int(np.argmax(np.cumsum(shares) >= share - ROUNDING))
        rows = []
        for curve, one_sided, value_shares in zip(
            self.curve, self.one_sided, self.value_shares, strict=True
        ):
            ends = Curve(
                self.last,
                lambda places, curve=curve: [curve[place] for place in places],
                value_shares.__getitem__,
                None if two_sided else one_sided.__getitem__,
            ).quantile_ends(share)
            hit, width = covers(*ends, true)
            rows.append((hit, width / self.last))
        return np.array(rows, dtype=float)


def measure(
    channel: object, shares: Floats, n: int, rounds: int, seed: int = 0
) -> dict[str, Floats]:
    """Return (hit, width) of all rounds for each kind of interval; cells and shares by set.

    Results widen an interval that excludes the shown share; here the intervals stay as computed.
    """
    points = sizes(channel)[0]
    sets = [*cells(points), *below(points)]
    ratios = set_ratios(channel, truths(channel), sets, n)
    counts = np.array(list(draws(channel, shares, n, rounds, seed + points + n)))
    intervals = simulated_intervals(ratios, counts)
    rows = hits(intervals, 2 * np.array(sets) @ shares - 1)
    quantiles = QuantileIntervals(channel, truths(channel), counts)
    return {
        "cell": rows[:CELLS],
        "cdf": rows[CELLS:],
        **{f"quantile {share}": quantiles.hits(share, shares)[None] for share in SHARES},
    }


class IntervalCoverage(NamedTuple):
    """The coverage of an interval, its distribution, its sample size and its place in its kind."""

    coverage: float
    shape: str
    n: int
    place: int


def print_coverage(rounds: int, again: int) -> float:
    """Print the minimum coverage of each kind by channel; return the overall minimum."""
    print(
        f"minimum coverage at .95 (mean width) over {len(shapes(9))} distributions and n {SIZES}; "
        f"search\nwith {rounds} rounds, measured again with {again}, standard error "
        f"{np.sqrt(0.05 * 0.95 / again):.4f}; target >= {MIN_COVERAGE}"
    )
    kinds = ["cell", "cdf", *(f"quantile {share}" for share in SHARES)]
    print(f"{'channel':<55}" + "".join(f"{kind:>15}" for kind in kinds))
    minimum = 1.0
    for name, channel in CHANNELS.items():
        worst, width = worst_intervals(channel, rounds)
        figures = {
            kind: min(fresh_coverage(channel, kind, interval, again) for interval in worst[kind])
            for kind in kinds
        }
        minimum = min(minimum, *figures.values())
        columns = "".join(f"{figures[k]:>8.4f} ({width[k]:.2f})" for k in kinds)
        print(f"{name:<55}{columns}", flush=True)
    require_range("overall minimum", minimum, LEAST_PLAUSIBLE, 1.0)
    print(f"overall minimum {minimum:.4f}, ratio to the target {minimum / MIN_COVERAGE:.3f}")
    return minimum


def worst_intervals(
    channel: object, rounds: int
) -> tuple[dict[str, list[IntervalCoverage]], dict[str, float]]:
    """Return the worst intervals of each kind and the mean width of that kind."""
    worst: dict[str, list[IntervalCoverage]] = {}
    widths: dict[str, list[float]] = {}
    for shape, shares in shapes(sizes(channel)[0]).items():
        for n in SIZES:
            for kind, rows in measure(channel, shares, n, rounds).items():
                by_set = rows[..., 0].mean(axis=1)
                intervals = [
                    IntervalCoverage(float(c), shape, n, place) for place, c in enumerate(by_set)
                ]
                worst[kind] = sorted([*worst.get(kind, []), *intervals])[:N_WORST]
                widths.setdefault(kind, []).append(float(rows[..., 1].mean()))
    return worst, {kind: float(np.mean(values)) for kind, values in widths.items()}


def fresh_coverage(channel: object, kind: str, interval: IntervalCoverage, rounds: int) -> float:
    """Return the coverage of an interval in newly simulated surveys."""
    points = sizes(channel)[0]
    shares = shapes(points)[interval.shape]
    sets = [cells(points)[interval.place]] if kind == "cell" else below(points)
    if kind == "cdf":
        sets = [sets[interval.place]]
    ratios = set_ratios(channel, truths(channel), sets, interval.n)
    batches = []
    for start in range(0, rounds, BATCH):
        counts = draws(channel, shares, interval.n, BATCH, 10**6 + start)
        counts = np.array(list(counts))
        if kind.startswith("quantile"):
            quantiles = QuantileIntervals(channel, truths(channel), counts)
            batches.append(quantiles.hits(float(kind.split()[1]), shares)[:, 0])
        else:
            intervals = simulated_intervals(ratios, counts)
            batches.append(hits(intervals, 2 * np.array(sets) @ shares - 1)[0, :, 0])
    return float(np.mean(batches))


def print_distances(rounds: int) -> None:
    """Print the mean distance of cumulative shares: Wasserstein's over the range of the grid."""
    print(
        f"\nmean distance of the shown cumulative shares from the truth, {rounds} rounds, n 2,000"
    )
    print(f"{'channel':<55}" + "".join(f"{method:>12}" for method in METHODS))
    for name, channel in CHANNELS.items():
        points, n_silent, _ = sizes(channel)
        values = [*map(float, range(points)), *[None] * n_silent]
        distances = {
            method: np.mean(
                [
                    np.abs(
                        np.cumsum(grid_shares(c, channel, values, method, 0.95).shares - s)
                    ).mean()
                    for s in shapes(points).values()
                    for c in draws(channel, s, 2000, rounds, 1)
                ]
            )
            for method in METHODS
        }
        print(f"{name:<55}" + "".join(f"{distances[method]:>12.4f}" for method in METHODS))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--full", action="store_true", help="take more rounds")
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        print_distances(20 if options.full else 1 if options.short else 2)
        rounds = (4000, 20_000) if options.full else (20, 50) if options.short else (200, 2000)
        print_coverage(*rounds)


if __name__ == "__main__":
    main()
