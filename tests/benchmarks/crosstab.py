"""Cross-tabs: speed, type-I error, RMSE, with their targets: `python -m tests.benchmarks.crosstab`.

Speed is that of this machine now; the ratio to plain chunked numpy in the same run is what counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from survey.estimator import crosstab, independence, joint_counts
from survey.estimator.tables.crosstab import CHUNK
from survey.mechanism import SubsetSelection, from_epsilon

Floats = NDArray[np.float64]
Column = NDArray[np.uint8]

REPORTS = 10**7
TURNS = 5
SLOWEST = 1.5
LEVELS = (0.035, 0.065)
SURVEYS = 4000


def plain(columns: list[Column], sizes: list[int]) -> NDArray[np.int64]:
    """The baseline: chunked bincount of a combined index, as one would write it."""
    a, b = columns
    counts = np.zeros(sizes[0] * sizes[1], dtype=np.int64)
    for start in range(0, len(a), CHUNK):
        index = a[start : start + CHUNK].astype(np.intp) * sizes[1] + b[start : start + CHUNK]
        counts += np.bincount(index, minlength=counts.size)
    return counts.reshape(sizes)


def plain_table(columns: list[Column], channels: list[SubsetSelection]) -> Floats:
    """The baseline of a whole cross-tab: without errors and intervals."""
    F = plain(columns, [channel.k for channel in channels]) / len(columns[0])
    A, B = (np.linalg.inv(channel.matrix) for channel in channels)
    return np.asarray(A.T @ F @ B)


def seconds(works: list[Callable[[], object]]) -> list[float]:
    """Median seconds of each, taken in turns so that all meet the same machine."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(TURNS):
        for work, times in zip(works, taken, strict=True):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in taken]


def print_speed(k: int) -> float:
    """One line per kind of work at k x k; returns the worst ratio."""
    rng = np.random.default_rng(k)
    columns = [rng.integers(0, k, REPORTS, dtype=np.uint8) for _ in range(2)]
    channels = [from_epsilon(k, 1)] * 2
    sizes = [k, k]
    worst = 0.0
    for name, ours, theirs in (
        ("counting", lambda: joint_counts(columns, sizes), lambda: plain(columns, sizes)),
        (
            "cross-tab with errors and intervals",
            lambda: crosstab(joint_counts(columns, sizes), channels),
            lambda: plain_table(columns, channels),
        ),
    ):
        own, other = seconds([ours, theirs])
        ratio = own / other
        worst = max(worst, ratio)
        print(
            f"{name:<40}{k:>4} x {k:<4}{REPORTS / own / 1e6:>8.0f}{REPORTS / other / 1e6:>8.0f}"
            f"{ratio:>8.2f}"
        )
    return worst


def independent(k: int, epsilon: str, n: int, rng: np.random.Generator) -> float:
    """The share of surveys of unrelated answers in which the test at .05 says related."""
    channel = from_epsilon(k, epsilon)
    a, b = (share @ channel.matrix for share in rng.dirichlet(np.full(k, 2.0), size=2))
    tables = rng.multinomial(n, np.outer(a, b).ravel(), size=SURVEYS).reshape(-1, k, k)
    return float(np.mean([independence(table).p_value <= 0.05 for table in tables]))


def squared_errors(k: int, epsilon: str, n: int, surveys: int) -> dict[str, float]:
    """RMSE per cell over tables drawn at random."""
    rng, channel = np.random.default_rng(5), from_epsilon(k, epsilon)
    errors: dict[str, list[float]] = {"linear": [], "em": []}
    for _ in range(surveys):
        P = rng.dirichlet(np.ones(k * k)).reshape(k, k)
        F = channel.matrix.T @ P @ channel.matrix
        counts = rng.multinomial(n, F.ravel() / F.sum()).reshape(k, k)
        for method in ("linear", "em"):
            found = crosstab(counts, [channel, channel], method=method).estimate  # type: ignore[arg-type]
            errors[method].append(float(np.mean((found - P) ** 2)))
    return {method: float(np.sqrt(np.mean(each))) for method, each in errors.items()}


def verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def main() -> None:
    print(
        f"{'million reports per second, n = 10^7':<40}{'table':>11}{'ours':>8}{'numpy':>8}", end=""
    )
    print(f"{'ratio':>8}")
    worst = max(print_speed(k) for k in (2, 5, 20, 100))
    print(
        f"slowest against numpy: {worst:.2f} (target <= {SLOWEST}: {verdict(worst <= SLOWEST)})\n"
    )

    print(f"type-I error at .05 of the test on reports, {SURVEYS:,} surveys each")
    print(
        f"{'k':>4}{'epsilon':>9}" + "".join(f"{'n = ' + str(n):>10}" for n in (500, 2000, 10_000))
    )
    rng = np.random.default_rng(7)
    found = []
    for k in (2, 3, 5, 8):
        for epsilon in ("0.5", "1", "2", "4"):
            row = [independent(k, epsilon, n, rng) for n in (500, 2000, 10_000)]
            found += row
            print(f"{k:>4}{epsilon:>9}" + "".join(f"{each:>10.4f}" for each in row))
    inside = LEVELS[0] <= min(found) and max(found) <= LEVELS[1]
    print(
        f"from {min(found):.4f} to {max(found):.4f} "
        f"(target {LEVELS[0]} to {LEVELS[1]}: {verdict(inside)})\n"
    )

    errors = squared_errors(5, "1", 2000, 300)
    ratio = errors["em"] / errors["linear"]
    print("RMSE per cell, 5 x 5, epsilon 1, n = 2,000, random tables")
    print(f"em {errors['em']:.4f}, linear {errors['linear']:.4f}: ratio {ratio:.2f} ", end="")
    print(f"(target < 1: {verdict(ratio < 1)})")


if __name__ == "__main__":
    main()
