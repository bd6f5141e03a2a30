"""Coverage and width of intervals of distributions: `python -m tests.benchmarks.distribution`.

For every channel: the least coverage over distributions and sizes of a cell's, a cumulative
share's and a quantile's interval by simulation. Each is looked for with few
rounds; the two worst found are measured again with many, because the least of hundreds of noisy
figures is low by chance alone. Before that, how far the shown shares are from the truth.
`--full` takes more rounds, an hour instead of minutes.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.estimator.core.ratio import PseudoRatios
from survey.estimator.numbers.distribution import Curve
from survey.estimator.numbers.grid import METHODS, Share, grid_shares, set_ratios
from survey.mechanism import WeightTable, from_epsilon
from survey.mechanism.classical import exponential
from survey.mechanism.numeric import gaussian, geometric, hybrid, laplace, piecewise, square_wave

Floats = NDArray[np.float64]
Covered = tuple[bool, float]

LEAST = 0.94
LEVEL = 0.95
CELLS = 4
SIZES = (200, 1000, 10_000)
SHARES = (0.25, 0.5, 0.9)
ROUNDING = 1e-9
WORST = 2
"""Intervals of each kind that are measured again."""

AT_A_TIME = 2000
"""Surveys simulated together."""

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


def shapes(points: int) -> dict[str, Floats]:
    """Distributions of answers, the last four at an edge of what shares can be."""
    x = np.arange(points) / (points - 1)
    each = np.eye(points)
    drawn = {
        "uniform": np.ones(points),
        "bell": np.exp(-(((x - 0.35) / 0.12) ** 2) / 2),
        "edge": np.exp(-10 * x),
        "two humps": np.exp(-(((x - 0.2) / 0.07) ** 2) / 2)
        + np.exp(-(((x - 0.8) / 0.07) ** 2) / 2) / 2,
        "one value": each[points // 4],
        "two values": each[points // 10] + each[3 * points // 5],
        "both ends": 9 * each[0] + each[-1],
        "a spike on a plain": each[points // 3] + 1 / points,
    }
    return {name: shares / shares.sum() for name, shares in drawn.items()}


def sizes(channel: object) -> tuple[int, int, Floats]:
    """Points of the grid, truths that are no answer, and P(report | truth)."""
    if isinstance(channel, WeightTable):
        return channel.truths - channel.no_answers, channel.no_answers, channel.matrix
    return channel.k, 0, channel.matrix


def draws(channel: object, shares: Floats, n: int, rounds: int, seed: int) -> Iterator[Floats]:
    """Counts of reports; a fifth of the people gives no answer where that is possible."""
    _, silent, P = sizes(channel)
    truth = np.append(shares * (0.8 if silent else 1.0), np.full(silent, 0.2 / max(silent, 1)))
    yield from np.random.default_rng(seed).multinomial(n, truth @ P, size=rounds)


def covered(low: float, high: float, truth: float) -> Covered:
    return bool(low - ROUNDING <= truth <= high + ROUNDING), high - low


def truths(channel: object) -> Floats:
    """The numbers 0, 1, 2, ... and nan for no answer."""
    points, silent, _ = sizes(channel)
    return np.append(np.arange(float(points)), np.full(silent, np.nan))


def cells(points: int) -> list[NDArray[np.bool_]]:
    x, edges = np.arange(points), np.linspace(0, points - 1, CELLS + 1)
    return [(x >= a) & ((x < b) | (b == edges[-1])) for a, b in itertools.pairwise(edges)]


def below(points: int) -> list[NDArray[np.bool_]]:
    return [np.arange(points) <= place for place in range(points - 1)]


class Found(NamedTuple):
    """Intervals of sets in simulated surveys, shape (sets, surveys), in [-1, 1]."""

    low: Floats
    high: Floats


def simulated(readings: PseudoRatios, counts: NDArray[np.int64]) -> Found:
    found = readings.intervals(counts, LEVEL)
    return Found(found.low, found.high)


def hits(found: Found, truth: Floats) -> Floats:
    """Whether each interval holds its truth, and its width as a share: (sets, surveys, 2)."""
    true = truth[:, None]
    holds = (found.low - ROUNDING <= true) & (true <= found.high + ROUNDING)
    return np.stack([holds, (found.high - found.low) / 2], axis=-1)


def quantile_hits(found: Found, share: float, shares: Floats) -> Floats:
    """Whether each survey's interval holds the quantile, and its width over the range."""
    true, last = int(np.argmax(np.cumsum(shares) >= share - ROUNDING)), len(shares) - 1
    rows = []
    for low, high in zip((1 + found.low.T) / 2, (1 + found.high.T) / 2, strict=True):

        def look(places: list[int], low: Floats = low, high: Floats = high) -> list[Share]:
            return [Share(0.0, 0.0, float(low[at]), float(high[at])) for at in places]

        hit, width = covered(*Curve(last, look).quantile_ends(share), true)
        rows.append((hit, width / last))
    return np.array(rows, dtype=float)


def measured(
    channel: object, shares: Floats, n: int, rounds: int, seed: int = 0
) -> dict[str, Floats]:
    """For each interval (covered, width) of all rounds: cells and cumulative shares by set.

    Results stretch their intervals to hold what is shown; here they have to cover without.
    """
    points = sizes(channel)[0]
    sets = [*cells(points), *below(points)]
    readings = set_ratios(channel, truths(channel), sets, n)
    counts = np.array(list(draws(channel, shares, n, rounds, seed + points + n)))
    found = simulated(readings, counts)
    every = hits(found, 2 * np.array(sets) @ shares - 1)
    curve = Found(found.low[CELLS:], found.high[CELLS:])
    return {
        "cell": every[:CELLS],
        "cdf": every[CELLS:],
        **{f"quantile {share}": quantile_hits(curve, share, shares)[None] for share in SHARES},
    }


class Worst(NamedTuple):
    """The least covered interval of a kind: its coverage, where it was found, which of its kind."""

    coverage: float
    shape: str
    n: int
    place: int


def table_of_coverage(rounds: int, again: int) -> float:
    """Print the least coverage of each kind by channel; returns the least of all."""
    print(
        f"least coverage at .95 (mean width) over {len(shapes(9))} distributions and n {SIZES}; "
        f"found\nwith {rounds} rounds each, measured again with {again}, standard error "
        f"{np.sqrt(0.05 * 0.95 / again):.4f}; target >= {LEAST}"
    )
    kinds = ["cell", "cdf", *(f"quantile {share}" for share in SHARES)]
    print(f"{'channel':<55}" + "".join(f"{kind:>15}" for kind in kinds))
    least = 1.0
    for name, channel in CHANNELS.items():
        worst, width = worst_of(channel, rounds)
        figures = {
            kind: min(once_more(channel, kind, one, again) for one in worst[kind]) for kind in kinds
        }
        least = min(least, *figures.values())
        print(f"{name:<55}" + "".join(f"{figures[k]:>8.4f} ({width[k]:.2f})" for k in kinds))
        sys.stdout.flush()
    print(f"least of all {least:.4f}, ratio to the target {least / LEAST:.3f}")
    return least


def worst_of(channel: object, rounds: int) -> tuple[dict[str, list[Worst]], dict[str, float]]:
    """The worst intervals of each kind and the mean width of all of that kind."""
    worst: dict[str, list[Worst]] = {}
    widths: dict[str, list[float]] = {}
    for shape, shares in shapes(sizes(channel)[0]).items():
        for n in SIZES:
            for kind, seen in measured(channel, shares, n, rounds).items():
                by_set = seen[..., 0].mean(axis=1)
                each = [Worst(float(c), shape, n, place) for place, c in enumerate(by_set)]
                worst[kind] = sorted([*worst.get(kind, []), *each])[:WORST]
                widths.setdefault(kind, []).append(float(seen[..., 1].mean()))
    return worst, {kind: float(np.mean(all_of)) for kind, all_of in widths.items()}


def once_more(channel: object, kind: str, worst: Worst, rounds: int) -> float:
    """The coverage of one interval in fresh surveys."""
    points = sizes(channel)[0]
    shares = shapes(points)[worst.shape]
    sets = [cells(points)[worst.place]] if kind == "cell" else below(points)
    if kind == "cdf":
        sets = [sets[worst.place]]
    readings = set_ratios(channel, truths(channel), sets, worst.n)
    seen = []
    for start in range(0, rounds, AT_A_TIME):
        counts = draws(channel, shares, worst.n, AT_A_TIME, 10**6 + start)
        found = simulated(readings, np.array(list(counts)))
        if kind.startswith("quantile"):
            seen.append(quantile_hits(found, float(kind.split()[1]), shares)[:, 0])
        else:
            seen.append(hits(found, 2 * np.array(sets) @ shares - 1)[0, :, 0])
    return float(np.mean(seen))


def distance(shown: Floats, shares: Floats) -> float:
    """Mean difference of cumulative shares: on a grid, Wasserstein's over the range."""
    return float(np.abs(np.cumsum(shown - shares)).mean())


def table_of_pictures(rounds: int) -> None:
    print(
        f"\nmean distance of the shown cumulative shares from the truth, {rounds} rounds, n 2,000"
    )
    print(f"{'channel':<55}" + "".join(f"{method:>12}" for method in METHODS))
    for name, channel in CHANNELS.items():
        points, silent, _ = sizes(channel)
        values = [*map(float, range(points)), *[None] * silent]
        off = {
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
        print(f"{name:<55}" + "".join(f"{off[method]:>12.4f}" for method in METHODS))


def main() -> None:
    full = "--full" in sys.argv
    table_of_pictures(20 if full else 2)
    table_of_coverage(*((4000, 20_000) if full else (200, 2000)))


if __name__ == "__main__":
    main()
