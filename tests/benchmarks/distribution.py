"""Coverage and width of intervals of distributions: `python -m tests.benchmarks.distribution`.

For every channel: the least coverage over distributions and sizes of a cell's, a cumulative
share's and a median's interval by simulation, beside the two that were refused: the likelihood
interval (normal approximation, cutoff of one parameter) and the percentile bootstrap of the counts.
Then how far the shown shares are from the truth, plain and smoothed. `--quick` takes fewer rounds.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from survey.errors import CountsError
from survey.estimator.grid_shares import METHODS, SMOOTHED, grid_shares
from survey.estimator.quantiles import _Curve
from survey.estimator.smoothing import smoothed_shares
from survey.mechanism import WeightTable, from_epsilon
from survey.mechanism.noise import exponential, gaussian, geometric, laplace
from survey.mechanism.numeric import hybrid, piecewise, square_wave

Floats = NDArray[np.float64]
Covered = tuple[bool, float]

LEAST = 0.90
TWO_SIDED_CUTOFF = 3.8415
CELLS = 4
BOOTSTRAPS = 200
MEDIAN_EVERY = 4
"""A median takes twenty cumulative shares: it is asked for in one round of so many."""

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
    """Distributions of answers, the last three at an edge of what shares can be."""
    x = np.arange(points) / (points - 1)
    drawn = {
        "uniform": np.ones(points),
        "bell": np.exp(-(((x - 0.35) / 0.12) ** 2) / 2),
        "edge": np.exp(-10 * x),
        "one value": np.eye(points)[points // 4],
        "two values": np.eye(points)[points // 10] + np.eye(points)[3 * points // 5],
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
    return bool(low - 1e-9 <= truth <= high + 1e-9), high - low


def measured(channel: object, shares: Floats, n: int, rounds: int) -> dict[str, Floats]:
    """For each interval the rows (covered, width) of all rounds."""
    points, silent, _ = sizes(channel)
    values: list[float | None] = [*map(float, range(points)), *[None] * silent]
    seen: dict[str, list[Covered]] = {"cell": [], "cdf": [], "median": []}
    place = points // 3
    cumulative = np.cumsum(shares)
    middle = int(np.argmax(cumulative >= 0.5 - 1e-9))
    edges = np.linspace(0, points - 1, CELLS + 1)
    x = np.arange(points)
    cells = [(x >= a) & ((x < b) | (b == edges[-1])) for a, b in itertools.pairwise(edges)]
    for index, counts in enumerate(draws(channel, shares, n, rounds, points + n)):
        # Results stretch their intervals to hold what is shown; here they have to cover without.
        found = grid_shares(counts, channel, values, SMOOTHED, 0.95)
        *bins, below = found.shares_of([*cells, x <= place])
        for inside, one in zip(cells, bins, strict=True):
            seen["cell"].append(covered(one.low, one.high, shares[inside].sum()))
        seen["cdf"].append(covered(below.low, below.high, cumulative[place]))
        if index % MEDIAN_EVERY == 0:
            low, high = _Curve(found).quantile_ends(0.5)
            hit, width = covered(low, high, middle)
            seen["median"].append((hit, width / (points - 1)))
    return {name: np.array(rows, dtype=float) for name, rows in seen.items()}


def refused(channel: object, shares: Floats, n: int, rounds: int) -> dict[str, Floats]:
    """The same rows for a cumulative share, by likelihood and by bootstrap."""
    points, _, P = sizes(channel)
    inside = (np.arange(points) <= points // 3).astype(float)
    truth = float(inside @ shares)
    seen: dict[str, list[Covered]] = {"likelihood": [], "bootstrap": []}
    rng = np.random.default_rng(n)
    for counts in draws(channel, shares, n, rounds, points + n):
        seen["likelihood"].append(covered(*likelihood_ends(counts, P, inside), truth))
        again = [
            inside @ smoothed_shares(each, P, np.arange(points))[0]
            for each in rng.multinomial(n, counts / n, size=BOOTSTRAPS)
        ]
        seen["bootstrap"].append(covered(*np.quantile(again, [0.025, 0.975]), truth))
    return {name: np.array(rows, dtype=float) for name, rows in seen.items()}


def likelihood_ends(counts: Floats, P: Floats, inside: Floats) -> tuple[float, float]:
    """All x with min over shares with inside'pi = x of the weighted squares near the least."""
    shown, _ = smoothed_shares(counts, P, np.arange(len(P)))
    weights = np.sqrt(counts.sum() / (shown @ P))
    A, b = (P * weights).T, counts / counts.sum() * weights
    heavy = 1e4 * np.abs(A).max()

    def loss(x: float | None) -> float:
        rows, right = [A, np.full((1, len(P)), heavy)], [b, [heavy]]
        if x is not None:
            rows.append(heavy * (inside - x)[None])
            right.append([0.0])
        return float(nnls(np.vstack(rows), np.concatenate(right), maxiter=10_000)[1] ** 2)

    def pi_at_best() -> float:
        rows = np.vstack([A, np.full((1, len(P)), heavy)])
        return float(inside @ nnls(rows, np.append(b, heavy), maxiter=10_000)[0])

    best, middle = loss(None), min(max(pi_at_best(), 0.0), 1.0)
    return tuple(_reach(middle, end, lambda x: loss(x) - best) for end in (0.0, 1.0))


def _reach(inner: float, end: float, excess: Callable[[float], float]) -> float:
    if excess(end) <= TWO_SIDED_CUTOFF:
        return end
    outer = end
    for _ in range(10):
        halfway = (inner + outer) / 2
        inner, outer = (halfway, outer) if excess(halfway) <= TWO_SIDED_CUTOFF else (inner, halfway)
    return outer


def table_of_coverage(rounds: int) -> float:
    worst = 1.0
    print(
        f"least coverage at .95 (mean width) over 5 distributions, n 200, 2,000, 10,000; {rounds}"
    )
    print(f"rounds each, standard error {np.sqrt(0.05 * 0.95 / rounds):.3f}; target >= {LEAST}")
    print(f"{'channel':<55}{'cell of 4':>16}{'cdf':>16}{'median':>16}")
    for name, channel in CHANNELS.items():
        points = sizes(channel)[0]
        rows: dict[str, list[Floats]] = {}
        for shares in shapes(points).values():
            for n in (200, 2000, 10_000):
                try:
                    one = measured(channel, shares, n, rounds)
                except CountsError as error:
                    print(f"  {name}, n = {n}: {error}")
                    continue
                for kind, seen in one.items():
                    rows.setdefault(kind, []).append(_by_cell(kind, seen))
        least = {kind: min(float(r[:, 0].min()) for r in seen) for kind, seen in rows.items()}
        wide = {kind: np.mean([r[:, 1].mean() for r in seen]) for kind, seen in rows.items()}
        worst = min(worst, *least.values())
        print(f"{name:<55}" + "".join(f"{least[k]:>9.3f} ({wide[k]:.2f})" for k in rows))
    print(f"least of all {worst:.3f}, ratio to the target {worst / LEAST:.3f}")
    return worst


def _by_cell(kind: str, seen: Floats) -> Floats:
    """Coverage and width of each interval of its own: a histogram has one per cell."""
    cells = CELLS if kind == "cell" else 1
    return seen.reshape(-1, cells, 2).mean(axis=0)


def table_of_refused(rounds: int) -> None:
    print(f"\nrefused, for a cumulative share, {rounds} rounds; coverage (mean width)")
    print(f"{'channel, distribution, n':<64}{'ours':>14}{'likelihood':>14}{'bootstrap':>14}")
    for name in list(CHANNELS)[:2]:
        channel = CHANNELS[name]
        points = sizes(channel)[0]
        for shape, shares in shapes(points).items():
            for n in (2000, 10_000):
                each = [
                    measured(channel, shares, n, rounds)["cdf"],
                    *refused(channel, shares, n, rounds).values(),
                ]
                print(
                    f"{f'{name}, {shape}, {n:,}':<64}"
                    + "".join(f"{r[:, 0].mean():>7.2f} ({r[:, 1].mean():.2f})" for r in each)
                )


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
    quick = "--quick" in sys.argv
    table_of_pictures(5 if quick else 20)
    table_of_refused(20 if quick else 60)
    table_of_coverage(60 if quick else 200)


if __name__ == "__main__":
    main()
