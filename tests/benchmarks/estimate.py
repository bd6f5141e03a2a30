"""Measure how long estimates take: `python -m tests.benchmarks.estimate [--short]`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import binomtest

from survey.estimator import proportions
from survey.estimator.core.intervals import _ends
from survey.mechanism import SubsetSelection, from_epsilon, grr
from survey.mechanism.channel import Integers
from tests.benchmarks.short import benchmark_parser, reduced, require_range

QUESTIONS = 30
ROUNDS = 7
MANY_OPTIONS = 10_000

SHORT = {"QUESTIONS": 2, "ROUNDS": 1, "MANY_OPTIONS": 100}

Question = tuple[Integers, SubsetSelection]


def simulate_survey(n: int, channels: list[SubsetSelection], seed: int = 1) -> list[Question]:
    """Return counts of n reports for each channel, drawn with random true shares."""
    rng = np.random.default_rng(seed)
    return [(rng.multinomial(n, rng.dirichlet(np.ones(c.k)) @ c.matrix), c) for c in channels]


def estimate(questions: list[Question]) -> None:
    for counts, channel in questions:
        shares = proportions(counts, channel).estimate
        require_range("sum of the estimated shares", float(shares.sum()), 1 - 1e-6, 1 + 1e-6)


def median_seconds(work: Callable[[], None], before: Callable[[], None]) -> float:
    def run_time() -> float:
        before()
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return statistics.median(run_time() for _ in range(ROUNDS))


def wilson_by_scipy(questions: list[Question]) -> None:
    """Run the baseline: scipy's Wilson interval for each option, without a channel."""
    for counts, _ in questions:
        n = int(counts.sum())
        for count in counts:
            binomtest(int(count), n).proportion_ci(0.95, method="wilson")


def warm_up(questions: list[Question]) -> Callable[[], None]:
    """Return a function that clears the cache and estimates the first question."""

    def prepare() -> None:
        _ends.cache_clear()
        estimate(questions[:1])

    return prepare


def main(arguments: Sequence[str] | None = None) -> None:
    is_short = benchmark_parser(__doc__).parse_args(arguments).short
    with reduced(__name__, SHORT, is_short):
        measure()


def measure() -> None:
    """Print the times of all surveys."""
    equal_channels = simulate_survey(2000, [grr(4, "0.7")] * (QUESTIONS + 1))
    channels = [from_epsilon(2 + i % 9, f"{0.5 + i / 10:.1f}") for i in range(QUESTIONS)]
    mixed = simulate_survey(1000, channels)
    large = simulate_survey(10**6, [grr(4, "0.7")] * QUESTIONS)
    large_mixed = simulate_survey(10**6, channels)
    many_options = simulate_survey(10**6, [from_epsilon(MANY_OPTIONS, 4)])
    rows: list[tuple[str, float, float | None]] = [
        (
            f"{QUESTIONS} questions, one channel, n = 2,000, after the first question",
            median_seconds(lambda: estimate(equal_channels[1:]), warm_up(equal_channels)),
            0.05,
        ),
        (
            f"{QUESTIONS} questions, {QUESTIONS} channels, n = 1,000, empty cache",
            median_seconds(lambda: estimate(mixed), _ends.cache_clear),
            6.0,
        ),
        (
            f"{QUESTIONS} questions, {QUESTIONS} channels, n = 1,000, warm cache",
            median_seconds(lambda: estimate(mixed), lambda: estimate(mixed)),
            0.05,
        ),
        (
            f"{QUESTIONS} questions, one channel, n = 10^6, empty cache",
            median_seconds(lambda: estimate(large), _ends.cache_clear),
            0.05,
        ),
        (
            f"{QUESTIONS} questions, {QUESTIONS} channels (k 2 to 10), n = 10^6, empty cache",
            median_seconds(lambda: estimate(large_mixed), _ends.cache_clear),
            None,
        ),
        (
            f"1 question with {MANY_OPTIONS:,} options, n = 10^6, empty cache",
            median_seconds(lambda: estimate(many_options), _ends.cache_clear),
            None,
        ),
        (
            f"baseline: scipy's Wilson per option, {QUESTIONS} questions and channels, n = 1,000",
            median_seconds(lambda: wilson_by_scipy(mixed), lambda: None),
            None,
        ),
    ]
    print(f"{f'median of {ROUNDS} runs':<76}{'ms':>9}{'target':>9}{'ratio':>8}")
    for name, seconds, target in rows:
        comparison = f"{1000 * target:>9.0f}{seconds / target:>8.3f}" if target else ""
        print(f"{name:<76}{1000 * seconds:>9.2f}{comparison}")


if __name__ == "__main__":
    main()
