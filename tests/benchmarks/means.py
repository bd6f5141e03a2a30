"""Simulate the coverage of means whose truths lie at the ends of the range.

    python -m tests.benchmarks.means [--full | --short]

For each mechanism and epsilon, the output gives the minimum coverage over distributions and n: a
search with few rounds finds the worst case, and many new rounds measure it again. In every second
column, a fifth of the respondents gives no answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from survey.estimator.numbers.mean import mean_ratios
from survey.mechanism import from_epsilon
from survey.mechanism.channel import Floats
from survey.mechanism.numeric import (
    gaussian,
    geometric,
    hybrid,
    laplace,
    one_bit,
    optimal_piecewise,
    piecewise,
    square_wave,
)
from survey.mechanism.randomized_response import exponential
from tests.benchmarks.distribution import (
    LEAST_PLAUSIBLE,
    MIN_COVERAGE,
    hits,
    simulated_intervals,
)
from tests.benchmarks.short import benchmark_parser, reduced, require_range

SIZES = (50, 100, 200, 1000)
POINTS = 11
EPSILONS = (1, 4, 7)

CHANNELS: dict[str, Callable[[int, int], object]] = {
    "one bit": lambda epsilon, silent: one_bit(POINTS, epsilon, silent),
    "piecewise": lambda epsilon, silent: piecewise(POINTS, epsilon, silent),
    "hybrid": lambda epsilon, silent: hybrid(POINTS, epsilon, silent),
    "optimal piecewise": lambda epsilon, silent: optimal_piecewise(POINTS, epsilon, silent),
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

SHORT = {
    "CHANNELS": {name: CHANNELS[name] for name in ("one bit", "geometric")},
    "SIZES": (200,),
    "EPSILONS": (1,),
}


def shapes() -> dict[str, Floats]:
    """Return distributions with truths at the ends of the range."""
    unit = np.eye(POINTS)
    weights = {
        "low end": unit[0],
        "high end": unit[-1],
        "half at each end": unit[0] + unit[-1],
        "one in ten at the other end": 9 * unit[0] + unit[-1],
        "one in fifty at the other end": unit[0] + 49 * unit[-1],
        "one in ten in the middle": 9 * unit[0] + unit[POINTS // 2],
        "uniform": np.ones(POINTS),
    }
    return {name: shares / shares.sum() for name, shares in weights.items()}


def coverage(channel: object, shares: Floats, n: int, rounds: int, seed: int) -> float:
    """Return how often the interval covers the true mean of the respondents who answered."""
    x = np.linspace(-1, 1, POINTS)
    n_silent = len(channel.matrix) - POINTS
    ratios = mean_ratios(channel, (*x.tolist(), *[None] * n_silent), n)
    answers = np.append(
        shares * (0.8 if n_silent else 1.0), np.full(n_silent, 0.2 / max(n_silent, 1))
    )
    counts = np.random.default_rng(seed).multinomial(n, answers @ channel.matrix, size=rounds)
    return float(hits(simulated_intervals(ratios, counts), np.array([x @ shares]))[..., 0].mean())


def print_coverage(rounds: int, again: int) -> float:
    """Print the minimum coverage of means by mechanism; return the overall minimum."""
    print(
        f"minimum coverage at .95 of means, n {SIZES}, {len(shapes())} distributions; search "
        f"with\n{rounds} rounds, measured again with {again}, standard error "
        f"{np.sqrt(0.05 * 0.95 / again):.4f}; target >= {MIN_COVERAGE}"
    )
    print(f"{'channel':<40}" + "".join(f"{f'epsilon {e}':>12}{'silent':>8}" for e in EPSILONS))
    minimum = 1.0
    for name, make in CHANNELS.items():
        figures = []
        for epsilon, silent in itertools.product(EPSILONS, (0, 1)):
            channel = make(epsilon, silent)
            cases = [
                (coverage(channel, shares, n, rounds, n), shape, n)
                for shape, shares in shapes().items()
                for n in SIZES
            ]
            _, shape, n = min(cases)
            figures.append(coverage(channel, shapes()[shape], n, again, n + 10**6))
        minimum = min(minimum, *figures)
        print(
            f"{name:<40}"
            + "".join(f"{figure:>{8 + 4 * (i % 2 == 0)}.4f}" for i, figure in enumerate(figures)),
            flush=True,
        )
    require_range("overall minimum", minimum, LEAST_PLAUSIBLE, 1.0)
    print(f"overall minimum {minimum:.4f}, ratio to the target {minimum / MIN_COVERAGE:.3f}")
    return minimum


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--full", action="store_true", help="take more rounds")
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        rounds = (4000, 100_000) if options.full else (50, 200) if options.short else (500, 20_000)
        print_coverage(*rounds)


if __name__ == "__main__":
    main()
