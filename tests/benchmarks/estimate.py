"""How long estimates take, against their targets: `python -m tests.benchmarks.estimate`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from survey.estimator import proportions
from survey.estimator.core.intervals import _ends
from survey.mechanism import SubsetSelection, from_epsilon, grr

QUESTIONS = 30
ROUNDS = 7

Question = tuple[NDArray[np.int64], SubsetSelection]


def survey_of(n: int, channels: list[SubsetSelection], seed: int = 1) -> list[Question]:
    """Counts of n reports for each channel, from random true shares."""
    rng = np.random.default_rng(seed)
    return [(rng.multinomial(n, rng.dirichlet(np.ones(c.k)) @ c.matrix), c) for c in channels]


def estimate(questions: list[Question]) -> None:
    for counts, channel in questions:
        proportions(counts, channel)


def median_seconds(work: Callable[[], None], before: Callable[[], None]) -> float:
    def once() -> float:
        before()
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return statistics.median(once() for _ in range(ROUNDS))


def wilson_by_scipy(questions: list[Question]) -> None:
    """The baseline: a textbook interval per option, by scipy, without the channel."""
    for counts, _ in questions:
        n = int(counts.sum())
        for count in counts:
            binomtest(int(count), n).proportion_ci(0.95, method="wilson")


def first_then(questions: list[Question]) -> Callable[[], None]:
    """Forget everything, then estimate one question: what the rest of a survey starts from."""

    def prepare() -> None:
        _ends.cache_clear()
        estimate(questions[:1])

    return prepare


def main() -> None:
    same = survey_of(2000, [grr(4, "0.7")] * (QUESTIONS + 1))
    mixed = [from_epsilon(2 + i % 9, f"{0.5 + i / 10:.1f}") for i in range(QUESTIONS)]
    different = survey_of(1000, mixed)
    large = survey_of(10**6, [grr(4, "0.7")] * QUESTIONS)
    large_mixed = survey_of(10**6, mixed)
    many = survey_of(10**6, [from_epsilon(10_000, 4)])
    rows: list[tuple[str, float, float | None]] = [
        (
            "30 questions, one channel, n = 2,000, after the first",
            median_seconds(lambda: estimate(same[1:]), first_then(same)),
            0.05,
        ),
        (
            "30 questions, 30 channels, n = 1,000, the first time",
            median_seconds(lambda: estimate(different), _ends.cache_clear),
            6.0,
        ),
        (
            "the same 30 again",
            median_seconds(lambda: estimate(different), lambda: estimate(different)),
            0.05,
        ),
        (
            "30 questions, one channel, n = 10^6, the first time",
            median_seconds(lambda: estimate(large), _ends.cache_clear),
            0.05,
        ),
        (
            "30 questions, 30 channels (k 2 to 10), n = 10^6, the first time",
            median_seconds(lambda: estimate(large_mixed), _ends.cache_clear),
            None,
        ),
        (
            "1 question with 10,000 options, n = 10^6, the first time",
            median_seconds(lambda: estimate(many), _ends.cache_clear),
            None,
        ),
        (
            "baseline: scipy's Wilson per option, 30 questions, 30 channels, n = 1,000",
            median_seconds(lambda: wilson_by_scipy(different), lambda: None),
            None,
        ),
    ]
    print(f"{f'median of {ROUNDS}':<76}{'ms':>9}{'target':>9}{'ratio':>8}")
    for name, seconds, target in rows:
        goal = f"{1000 * target:>9.0f}{seconds / target:>8.3f}" if target else ""
        print(f"{name:<76}{1000 * seconds:>9.2f}{goal}")


if __name__ == "__main__":
    main()
