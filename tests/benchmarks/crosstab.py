"""Measure speed, type I error and RMSE of cross-tabs: `python -m tests.benchmarks.crosstab`.

Times depend on the machine; compare the ratio to plain chunked numpy in the same run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from survey.estimator import crosstab, independence, joint_counts
from survey.mechanism import SubsetSelection, from_epsilon
from survey.mechanism.channel import CHUNK, Codes, Floats, Integers, count_indices
from tests.benchmarks.short import benchmark_parser

REPORTS = 10**7
TURNS = 5
MAX_COUNTING_RATIO, MAX_TABLE_RATIO = 1.2, 1.6
LEVELS = (0.035, 0.065)
SURVEYS = 4000


def baseline_counts(columns: list[Codes], sizes: list[int]) -> Integers:
    """Return the baseline: chunked bincounts of a combined index."""
    a, b = columns
    counts = np.zeros(sizes[0] * sizes[1], dtype=np.int64)
    for start in range(0, len(a), CHUNK):
        index = a[start : start + CHUNK].astype(np.intp) * sizes[1] + b[start : start + CHUNK]
        counts += np.bincount(index, minlength=counts.size)
    return counts.reshape(sizes)


def baseline_codes(column: Codes, k: int) -> Integers:
    """Return the baseline: chunked bincounts of the codes of one question."""
    counts = np.zeros(k, dtype=np.int64)
    for start in range(0, len(column), CHUNK):
        counts += np.bincount(column[start : start + CHUNK], minlength=k)
    return counts


def baseline_table(columns: list[Codes], channels: list[SubsetSelection]) -> Floats:
    """Return the baseline of a cross-tab, without standard errors and intervals."""
    F = baseline_counts(columns, [channel.k for channel in channels]) / len(columns[0])
    A, B = (np.linalg.inv(channel.matrix) for channel in channels)
    return np.asarray(A.T @ F @ B)


def seconds(works: list[Callable[[], object]]) -> list[float]:
    """Return the median CPU seconds of several functions, run in turns."""
    runs: list[list[float]] = [[] for _ in works]
    for _ in range(TURNS):
        for work, times in zip(works, runs, strict=True):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
    return [statistics.median(times) for times in runs]


def print_codes(k: int, n: int) -> float:
    """Print the times of counting the codes of one question; return the ratio to the baseline."""
    column = np.random.default_rng(k).integers(0, k, n, dtype=np.uint8)
    stored = column.reshape(-1, 1)
    np.testing.assert_array_equal(count_indices(stored, k), baseline_codes(column, k))
    ours, baseline = seconds([lambda: count_indices(stored, k), lambda: baseline_codes(column, k)])
    print(
        f"{'codes of one question':<40}{k:>4}{'':7}{n / ours / 1e6:>8.0f}"
        f"{n / baseline / 1e6:>8.0f}{ours / baseline:>8.2f}"
    )
    return ours / baseline


def print_times(k: int, n: int) -> tuple[float, float]:
    """Print times for k x k tables; return the ratios to the baselines of counts and of tables."""
    rng = np.random.default_rng(k)
    columns = [rng.integers(0, k, n, dtype=np.uint8) for _ in range(2)]
    channels = [from_epsilon(k, 1)] * 2
    sizes = [k, k]
    ratios = []
    np.testing.assert_array_equal(joint_counts(columns, sizes), baseline_counts(columns, sizes))
    for name, ours, baseline in (
        ("counting", lambda: joint_counts(columns, sizes), lambda: baseline_counts(columns, sizes)),
        (
            "cross-tab with errors and intervals",
            lambda: crosstab(joint_counts(columns, sizes), channels),
            lambda: baseline_table(columns, channels),
        ),
    ):
        our_time, baseline_time = seconds([ours, baseline])
        ratios.append(our_time / baseline_time)
        print(
            f"{name:<40}{k:>4} x {k:<4}{n / our_time / 1e6:>8.0f}"
            f"{n / baseline_time / 1e6:>8.0f}{ratios[-1]:>8.2f}"
        )
    return ratios[0], ratios[1]


def type_one_error(k: int, epsilon: str, n: int, rng: np.random.Generator) -> float:
    """Return the share of surveys with independent answers that the test at .05 rejects."""
    channel = from_epsilon(k, epsilon)
    a, b = (share @ channel.matrix for share in rng.dirichlet(np.full(k, 2.0), size=2))
    tables = rng.multinomial(n, np.outer(a, b).ravel(), size=SURVEYS).reshape(-1, k, k)
    return float(np.mean([independence(table).p_value <= 0.05 for table in tables]))


def squared_errors(k: int, epsilon: str, n: int, surveys: int) -> dict[str, float]:
    """Return the RMSE per cell over random tables for each method."""
    rng, channel = np.random.default_rng(5), from_epsilon(k, epsilon)
    errors: dict[str, list[float]] = {"linear": [], "em": []}
    for _ in range(surveys):
        P = rng.dirichlet(np.ones(k * k)).reshape(k, k)
        F = channel.matrix.T @ P @ channel.matrix
        counts = rng.multinomial(n, F.ravel() / F.sum()).reshape(k, k)
        for method in ("linear", "em"):
            estimate = crosstab(counts, [channel, channel], method=method).estimate  # type: ignore[arg-type]
            errors[method].append(float(np.mean((estimate - P) ** 2)))
    return {method: float(np.sqrt(np.mean(squares))) for method, squares in errors.items()}


def verdict(is_met: bool) -> str:
    return "reached" if is_met else "MISSED"


def print_speed(n: int) -> None:
    """Print all times and compare the slowest ones with their targets."""
    title = f"million reports per second, n = {n:,}"
    print(f"{title:<40}{'table':>11}{'ours':>8}{'numpy':>8}{'ratio':>8}")
    codes = max(print_codes(k, n) for k in (3, 8, 100, 256))
    counting, tables = map(max, zip(*(print_times(k, n) for k in (2, 5, 20, 100)), strict=True))
    for name, worst, target in (
        ("counting codes", codes, MAX_COUNTING_RATIO),
        ("counting pairs", counting, MAX_COUNTING_RATIO),
        ("cross-tab", tables, MAX_TABLE_RATIO),
    ):
        status = verdict(worst <= target)
        print(f"slowest {name} against numpy: {worst:.2f} (target <= {target}: {status})")
    print()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    if parser.parse_args(arguments).short:
        print_speed(10**5)
        return
    print_speed(REPORTS)
    print(f"type I error at .05 of the test on reports, {SURVEYS:,} surveys per setting")
    print(
        f"{'k':>4}{'epsilon':>9}" + "".join(f"{'n = ' + str(n):>10}" for n in (500, 2000, 10_000))
    )
    rng = np.random.default_rng(7)
    rates = []
    for k in (2, 3, 5, 8):
        for epsilon in ("0.5", "1", "2", "4"):
            row = [type_one_error(k, epsilon, n, rng) for n in (500, 2000, 10_000)]
            rates += row
            print(f"{k:>4}{epsilon:>9}" + "".join(f"{rate:>10.4f}" for rate in row))
    is_inside = LEVELS[0] <= min(rates) and max(rates) <= LEVELS[1]
    print(
        f"from {min(rates):.4f} to {max(rates):.4f} "
        f"(target {LEVELS[0]} to {LEVELS[1]}: {verdict(is_inside)})\n"
    )

    errors = squared_errors(5, "1", 2000, 300)
    ratio = errors["em"] / errors["linear"]
    print("RMSE per cell, 5 x 5, epsilon 1, n = 2,000, random tables")
    print(f"em {errors['em']:.4f}, linear {errors['linear']:.4f}: ratio {ratio:.2f} ", end="")
    print(f"(target < 1: {verdict(ratio < 1)})")


if __name__ == "__main__":
    main()
