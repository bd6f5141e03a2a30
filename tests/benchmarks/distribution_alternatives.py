"""Compare intervals of cumulative shares with two rejected methods.

    python -m tests.benchmarks.distribution_alternatives [--quick | --short]

The rejected methods are the likelihood interval (normal approximation, cutoff of one parameter)
and the percentile bootstrap of the counts. The run takes half an hour; `--quick` takes few rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import nnls

from survey.estimator.core.maximum_likelihood import smoothed_shares
from survey.mechanism.channel import Floats
from tests.benchmarks.distribution import (
    CHANNELS,
    LEAST_PLAUSIBLE,
    MIN_COVERAGE,
    Hit,
    below,
    covers,
    draws,
    measure,
    shapes,
    sizes,
)
from tests.benchmarks.short import benchmark_parser, reduced, require_range

TWO_SIDED_CUTOFF = 3.8415
BOOTSTRAPS = 200
REPORTS = (2000, 10_000)
N_CHANNELS = 2

SHORT = {"BOOTSTRAPS": 2, "REPORTS": (2000,), "N_CHANNELS": 1}


def rejected_methods(channel: object, shares: Floats, n: int, rounds: int) -> dict[str, Floats]:
    """Return (hit, width) of all rounds for a cumulative share, by method."""
    points, _, P = sizes(channel)
    inside = below(points)[points // 3].astype(float)
    truth = float(inside @ shares)
    rows: dict[str, list[Hit]] = {"likelihood": [], "bootstrap": []}
    rng = np.random.default_rng(n)
    for counts in draws(channel, shares, n, rounds, points + n):
        rows["likelihood"].append(covers(*likelihood_ends(counts, P, inside), truth))
        resampled = [
            inside @ smoothed_shares(sample, P, np.arange(points))[0]
            for sample in rng.multinomial(n, counts / n, size=BOOTSTRAPS)
        ]
        rows["bootstrap"].append(covers(*np.quantile(resampled, [0.025, 0.975]), truth))
    return {name: np.array(hits, dtype=float) for name, hits in rows.items()}


def likelihood_ends(counts: Floats, P: Floats, inside: Floats) -> tuple[float, float]:
    """Return the range of x = inside'pi whose minimal weighted squares are near the minimum."""
    pi, _ = smoothed_shares(counts, P, np.arange(len(P)))
    weights = np.sqrt(counts.sum() / (pi @ P))
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

    minimum, middle = loss(None), min(max(pi_at_best(), 0.0), 1.0)
    return tuple(_bound(middle, end, lambda x: loss(x) - minimum) for end in (0.0, 1.0))


def _bound(inner: float, end: float, excess: Callable[[float], float]) -> float:
    if excess(end) <= TWO_SIDED_CUTOFF:
        return end
    outer = end
    for _ in range(10):
        halfway = (inner + outer) / 2
        inner, outer = (halfway, outer) if excess(halfway) <= TWO_SIDED_CUTOFF else (inner, halfway)
    return outer


def print_comparison(rounds: int) -> None:
    print(f"\nrejected methods for a cumulative share, {rounds} rounds; coverage (mean width)")
    print(f"{'channel, distribution, n':<64}{'ours':>14}{'likelihood':>14}{'bootstrap':>14}")
    hits: dict[str, list[Floats]] = {"ours": [], "likelihood": [], "bootstrap": []}
    for name in list(CHANNELS)[:N_CHANNELS]:
        channel = CHANNELS[name]
        points = sizes(channel)[0]
        for shape, shares in shapes(points).items():
            for n in REPORTS:
                methods = [
                    measure(channel, shares, n, rounds)["cdf"][points // 3],
                    *rejected_methods(channel, shares, n, rounds).values(),
                ]
                for found, rows in zip(hits.values(), methods, strict=True):
                    found.append(rows)
                print(
                    f"{f'{name}, {shape}, {n:,}':<64}"
                    + "".join(f"{r[:, 0].mean():>7.2f} ({r[:, 1].mean():.2f})" for r in methods)
                )
    coverages, widths = zip(
        *(np.mean(np.concatenate(rows), axis=0) for rows in hits.values()), strict=True
    )
    print(f"{'':<12}{'coverage':>10}{'target':>8}{'ratio':>7}{'width of ours':>15}")
    for method, coverage, width in zip(hits, coverages, widths, strict=True):
        print(f"{method:<12}{coverage:>10.3f}{MIN_COVERAGE:>8}{coverage / MIN_COVERAGE:>7.3f}"
              f"{widths[0] / width:>15.2f}")  # fmt: skip
    require_range("mean coverage of our intervals", coverages[0], LEAST_PLAUSIBLE, 1.0)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="take few rounds")
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        print_comparison(1 if options.short else 10 if options.quick else 60)


if __name__ == "__main__":
    main()
