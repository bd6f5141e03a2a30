"""Coverage of means with people at the ends: `python -m tests.benchmarks.means [--full]`.

For every mechanism and epsilon the least coverage over distributions and n: looked for with few
rounds, then the worst found measured again with many others. Every second column is that of
a channel with one answer that is none, given by a fifth of the people.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from survey.estimator.numbers.mean import _pseudo_ratios
from survey.mechanism import from_epsilon
from survey.mechanism.classical import exponential
from survey.mechanism.numeric import (
    gaussian,
    geometric,
    hybrid,
    laplace,
    one_bit,
    piecewise,
    square_wave,
)
from tests.benchmarks.distribution import LEAST, hits, simulated

Floats = NDArray[np.float64]

SIZES = (50, 100, 200, 1000)
POINTS = 11
EPSILONS = (1, 4, 7)

CHANNELS: dict[str, Callable[[int, int], object]] = {
    "one bit": lambda epsilon, silent: one_bit(POINTS, epsilon, silent),
    "piecewise": lambda epsilon, silent: piecewise(POINTS, epsilon, silent),
    "hybrid": lambda epsilon, silent: hybrid(POINTS, epsilon, silent),
    "square wave": lambda epsilon, silent: square_wave(POINTS, epsilon, silent),
    "geometric": lambda epsilon, silent: geometric(POINTS, epsilon, silent),
    "Laplace": lambda epsilon, silent: laplace(POINTS, epsilon, silent),
    "Gaussian, sigma 11, 2.75, 2.75": lambda epsilon, silent: gaussian(
        POINTS, f"{POINTS / min(epsilon, 4):.2f}", silent
    ),
    "exponential": lambda epsilon, silent: exponential(
        [[-abs(i - j) for j in range(POINTS)] for i in range(POINTS)], epsilon, silent
    ),
    "generalized randomized response": lambda epsilon, silent: from_epsilon(
        POINTS + silent, epsilon
    ),
}


def shapes() -> dict[str, Floats]:
    """Distributions with people at the ends."""
    each = np.eye(POINTS)
    drawn = {
        "low end": each[0],
        "high end": each[-1],
        "half at each end": each[0] + each[-1],
        "one in ten at the other end": 9 * each[0] + each[-1],
        "one in fifty at the other end": each[0] + 49 * each[-1],
        "one in ten in the middle": 9 * each[0] + each[POINTS // 2],
        "uniform": np.ones(POINTS),
    }
    return {name: shares / shares.sum() for name, shares in drawn.items()}


def coverage(channel: object, shares: Floats, n: int, rounds: int, seed: int) -> float:
    """How often the mean's interval holds the true mean of those who answered."""
    x = np.linspace(-1, 1, POINTS)
    silent = len(channel.matrix) - POINTS
    reading = _pseudo_ratios(channel, (*x.tolist(), *[None] * silent), n)
    answers = np.append(shares * (0.8 if silent else 1.0), np.full(silent, 0.2 / max(silent, 1)))
    counts = np.random.default_rng(seed).multinomial(n, answers @ channel.matrix, size=rounds)
    return float(hits(simulated(reading, counts), np.array([x @ shares]))[..., 0].mean())


def table_of_means(rounds: int, again: int) -> float:
    """Print the least coverage of means by mechanism; returns the least of all."""
    print(
        f"least coverage at .95 of means, n {SIZES}, {len(shapes())} distributions; found "
        f"with\n{rounds} rounds, measured again with {again}, standard error "
        f"{np.sqrt(0.05 * 0.95 / again):.4f}; target >= {LEAST}"
    )
    print(f"{'channel':<40}" + "".join(f"{f'epsilon {e}':>12}{'silent':>8}" for e in EPSILONS))
    least = 1.0
    for name, made in CHANNELS.items():
        figures = []
        for epsilon, silent in itertools.product(EPSILONS, (0, 1)):
            channel = made(epsilon, silent)
            found = [
                (coverage(channel, shares, n, rounds, n), shape, n)
                for shape, shares in shapes().items()
                for n in SIZES
            ]
            _, shape, n = min(found)
            figures.append(coverage(channel, shapes()[shape], n, again, n + 10**6))
        least = min(least, *figures)
        print(
            f"{name:<40}"
            + "".join(f"{figure:>{8 + 4 * (i % 2 == 0)}.4f}" for i, figure in enumerate(figures))
        )
        sys.stdout.flush()
    print(f"least of all {least:.4f}, ratio to the target {least / LEAST:.3f}")
    return least


def main() -> None:
    table_of_means(*((4000, 100_000) if "--full" in sys.argv else (500, 20_000)))


if __name__ == "__main__":
    main()
