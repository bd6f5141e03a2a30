"""Refused intervals of cumulative shares: `python -m tests.benchmarks.distribution_refused`.

Beside ours the likelihood interval (normal approximation, cutoff of one parameter) and the
percentile bootstrap of the counts. Half an hour; `--quick` takes a few rounds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from survey.estimator.core.likelihood import smoothed_shares
from tests.benchmarks.distribution import (
    CHANNELS,
    Covered,
    below,
    covered,
    draws,
    measured,
    shapes,
    sizes,
)

Floats = NDArray[np.float64]

TWO_SIDED_CUTOFF = 3.8415
BOOTSTRAPS = 200


def refused(channel: object, shares: Floats, n: int, rounds: int) -> dict[str, Floats]:
    """The same rows for a cumulative share, by likelihood and by bootstrap."""
    points, _, P = sizes(channel)
    inside = below(points)[points // 3].astype(float)
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


def table_of_refused(rounds: int) -> None:
    print(f"\nrefused, for a cumulative share, {rounds} rounds; coverage (mean width)")
    print(f"{'channel, distribution, n':<64}{'ours':>14}{'likelihood':>14}{'bootstrap':>14}")
    for name in list(CHANNELS)[:2]:
        channel = CHANNELS[name]
        points = sizes(channel)[0]
        for shape, shares in shapes(points).items():
            for n in (2000, 10_000):
                each = [
                    measured(channel, shares, n, rounds)["cdf"][points // 3],
                    *refused(channel, shares, n, rounds).values(),
                ]
                print(
                    f"{f'{name}, {shape}, {n:,}':<64}"
                    + "".join(f"{r[:, 0].mean():>7.2f} ({r[:, 1].mean():.2f})" for r in each)
                )


if __name__ == "__main__":
    table_of_refused(10 if "--quick" in sys.argv else 60)
